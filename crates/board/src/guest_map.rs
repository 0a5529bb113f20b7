//! Places of what every guest has, and of its emulated devices, in its address space; and their interrupts.

use riscv::imsic::PAGE_BYTES;
use riscv::plic;

use crate::Range;

/// Base of a guest's emulated UART, as on QEMU's `virt` board.
pub const UART_BASE: u64 = 0x1000_0000;
/// Bytes that the UART's node claims.
pub const UART_SIZE: u64 = 0x100;
/// The UART's source number at the guest's interrupt controller.
pub const UART_SOURCE: u32 = 10;
/// Base of a guest's emulated real-time clock, as on QEMU's `virt` board.
pub const CLOCK_BASE: u64 = 0x0010_1000;
/// Bytes that the clock's node claims.
pub const CLOCK_SIZE: u64 = 0x1000;
/// The clock's source number at the guest's interrupt controller.
pub const CLOCK_SOURCE: u32 = 11;
/// Base of a guest's supervisor-level APLIC.
pub const APLIC_BASE: u64 = 0x0d00_0000;
/// Base of a guest's PLIC, as on QEMU's `virt` board.
pub const PLIC_BASE: u64 = 0x0c00_0000;
/// Bytes of the APLIC's control region: 16 KiB of registers and room for the delivery structures
/// of direct mode, which are read-only zeros here.
pub const APLIC_SIZE: u64 = 0x8000;
/// Base of a guest's supervisor-level interrupt files, one page a vCPU.
pub const IMSIC_BASE: u64 = 0x2800_0000;
/// Base of a guest's RAM unless it is the computer's own: base of RAM on most boards, above all that a VM has besides.
pub const RESIDENT_BASE: u64 = 0x8000_0000;
/// Address of the first emulated device for a guest, a page each: above all that a VM has of the board's on most boards.
pub const EMULATED_BASE: u64 = 0x1020_0000;
/// Base of what the bridge of an emulated device of PCI leads to, for a guest that has one.
pub const PCI_WINDOW_BASE: u64 = 0x1800_0000;
/// Configuration space of that bridge: of one bus.
pub const PCI_CONFIGURATION_BASE: u64 = 0x2010_0000;
/// Its bytes.
pub const PCI_CONFIGURATION_SIZE: u64 = 1 << 20;
/// Interrupt identities that each of the guest's interrupt files implements, 1 to this.
pub const IMSIC_IDENTITIES: u32 = 63;

/// Bytes of the registers of a PLIC with a context for each of so many vCPUs.
#[must_use]
pub const fn plic_size(vcpus: u32) -> u64 {
    plic::THRESHOLD + plic::CONTEXT_STRIDE * vcpus as u64
}

/// The pages of the interrupt files of so many vCPUs, as the guest sees them.
#[must_use]
pub const fn interrupt_files(vcpus: u32) -> Range {
    Range {
        start: IMSIC_BASE,
        size: (vcpus as u64).saturating_mul(PAGE_BYTES),
    }
}
