//! Where things are: the physical address map of QEMU's `virt` board.
//!
//! The addresses are those that QEMU 10.0's board documentation, `info mtree -f` and generated
//! device tree (`-M virt,aia=aplic-imsic,dumpdtb=FILE`) show; a test compares the tree with
//! QEMU's where QEMU is installed.

/// A window of physical addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First address.
    pub base: u64,
    /// Length in bytes.
    pub size: u64,
}

impl Window {
    /// The offset of `address` in the window, if `size` bytes at it lie within.
    #[must_use]
    pub const fn offset(&self, address: u64, size: u64) -> Option<u64> {
        match address.checked_sub(self.base) {
            Some(offset) if offset < self.size && size <= self.size - offset => Some(offset),
            _ => None,
        }
    }
}

const fn window(base: u64, size: u64) -> Window {
    Window { base, size }
}

/// Boot ROM with the reset vector.
pub const ROM: Window = window(0x1000, 0xf000);
/// SiFive test finisher, the `syscon` of poweroff and reboot.
pub const FINISHER: Window = window(0x10_0000, 0x1000);
/// Goldfish real-time clock.
pub const CLOCK: Window = window(0x10_1000, 0x1000);
/// Bytes of the clock's window that answer: nine registers. The rest of the window is a hole.
pub const CLOCK_REGISTERS: u64 = 0x24;
/// The APLIC source of the real-time clock.
pub const CLOCK_SOURCE: u32 = 11;
/// ACLINT MSWI and MTIMER, together a SiFive CLINT.
pub const ACLINT: Window = window(0x200_0000, 0x1_0000);
/// ACLINT MSWI: machine-level software interrupts.
pub const MSWI: Window = window(0x200_0000, 0x4000);
/// ACLINT MTIMER: mtimecmp of each hart, mtime in the last eight bytes.
pub const MTIMER: Window = window(0x200_4000, 0x8000);
/// Offset of mtime from the start of MTIMER.
pub const MTIME_OFFSET: u64 = 0x7ff8;
/// ACLINT SSWI: supervisor-level software interrupts.
pub const SSWI: Window = window(0x2f0_0000, 0x4000);
/// APLIC, machine-level root domain.
pub const APLIC_MACHINE: Window = window(0xc00_0000, 0x100_0000);
/// APLIC, supervisor-level child domain.
pub const APLIC_SUPERVISOR: Window = window(0xd00_0000, 0x100_0000);
/// Interrupt sources of the APLIC, numbered from 1.
pub const APLIC_SOURCES: u32 = 96;
/// 16550 UART.
pub const UART: Window = window(0x1000_0000, 0x100);
/// Bytes of the UART's window that answer: eight registers. The rest of the window is a hole.
pub const UART_REGISTERS: u64 = 8;
/// The APLIC source of the UART.
pub const UART_SOURCE: u32 = 10;
/// Frequency of the UART's baud generator in hertz.
pub const UART_HERTZ: u32 = 3_686_400;
/// First virtio-mmio slot; the others follow at [`VIRTIO_STRIDE`].
pub const VIRTIO: Window = window(0x1000_1000, 0x1000);
/// Bytes of a slot that answer: the registers and, from 0x100 on, the configuration. The rest of the slot is a hole.
pub const VIRTIO_REGISTERS: u64 = 0x200;
/// Distance between virtio-mmio slots.
pub const VIRTIO_STRIDE: u64 = 0x1000;
/// The APLIC source of slot 0; the others follow.
pub const VIRTIO_SOURCE: u32 = 1;
/// Most virtio-mmio slots: source 9 is the last before the UART's.
pub const VIRTIO_SLOTS: usize = 8;
/// IOMMU.
pub const IOMMU: Window = window(0x301_0000, 0x1000);
/// The APLIC source of the IOMMU's first wire; the others follow.
pub const IOMMU_SOURCE: u32 = 36;
/// Configuration space of PCI Express (ECAM): 256 buses.
pub const PCI_CONFIGURATION: Window = window(0x3000_0000, 0x1000_0000);
/// Window of 32-bit addresses of PCI, which are the harts' own.
pub const PCI_NARROW: Window = window(0x4000_0000, 0x4000_0000);
/// Bytes of the window of 64-bit addresses of PCI.
pub const PCI_WIDE_BYTES: u64 = 16 << 30;
/// The APLIC source of PCI's first wire; the others follow.
pub const PCI_SOURCE: u32 = 32;
/// Wires of PCI.
pub const PCI_LINES: u32 = 4;

/// Window of 64-bit addresses of PCI, above RAM.
#[must_use]
pub const fn pci_wide(memory: u64) -> Window {
    window(
        (RAM + memory).next_multiple_of(PCI_WIDE_BYTES),
        PCI_WIDE_BYTES,
    )
}

/// IMSIC machine-level files, one page a hart.
pub const IMSIC_MACHINE: Window = window(0x2400_0000, 0x400_0000);
/// IMSIC supervisor-level and guest files, a power of two of pages a hart.
pub const IMSIC_SUPERVISOR: Window = window(0x2800_0000, 0x400_0000);
/// An interrupt file's page.
pub const IMSIC_PAGE: u64 = 0x1000;
/// Start of RAM.
pub const RAM: u64 = 0x8000_0000;
/// Most harts, as for QEMU's board.
pub const HARTS: u32 = 512;

/// Bits of the guest index in an IMSIC address: enough for file 0 (supervisor) and `guest_files`.
#[must_use]
pub const fn guest_index_bits(guest_files: u8) -> u32 {
    (guest_files as u32 + 1)
        .next_power_of_two()
        .trailing_zeros()
}

/// The size of an APLIC domain's register window: the fixed registers and, for direct delivery,
/// 32 bytes a hart, in whole 16 KiB (AIA 4.5).
#[must_use]
pub const fn aplic_size(harts: u32) -> u64 {
    (0x4000 + harts as u64 * 32).next_multiple_of(0x4000)
}
