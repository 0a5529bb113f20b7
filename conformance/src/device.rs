//! The devices of the board: UART, test finisher, ACLINT, APLIC, IMSIC.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::csr;

const FINISHER: usize = 0x10_0000;
const UART: usize = 0x1000_0000;
const MSWI: usize = 0x200_0000;
/// The machine-level and the supervisor-level APLIC domain.
pub const APLIC_MACHINE: usize = 0xc00_0000;
/// See above.
pub const APLIC_SUPERVISOR: usize = 0xd00_0000;
/// The pages of the machine-level interrupt files.
pub const IMSIC_MACHINE: usize = 0x2400_0000;
/// The pages of the supervisor-level and guest interrupt files.
pub const IMSIC_SUPERVISOR: usize = 0x2800_0000;
/// Guest interrupt files of a hart: the bits that hgeie can hold. To be asked in M-mode.
pub fn guest_files() -> u32 {
    /// Result plus one; zero before.
    static FOUND: AtomicU32 = AtomicU32::new(0);
    if FOUND.load(Ordering::Relaxed) == 0 {
        let before = csr::swap::<{ csr::HGEIE }>(u64::MAX).unwrap_or(0);
        let files = csr::swap::<{ csr::HGEIE }>(before)
            .unwrap_or(0)
            .count_ones();
        FOUND.store(files + 1, Ordering::Relaxed);
    }
    FOUND.load(Ordering::Relaxed) - 1
}

/// Bits of the guest index in the address of a file: enough for these files and file 0.
pub fn guest_index_bits() -> u32 {
    (guest_files() + 1).next_power_of_two().trailing_zeros()
}

/// Reads a word of a device.
pub fn read(address: usize) -> u32 {
    // SAFETY: a register of a device: nothing that Rust knows of. A fault is skipped.
    unsafe { (address as *const u32).read_volatile() }
}

/// Writes a word of a device.
pub fn write(address: usize, value: u32) {
    // SAFETY: as for `read`.
    unsafe { (address as *mut u32).write_volatile(value) };
    // The consequences may take their way; a later CSR read is to see them.
    // SAFETY: a fence has no operands.
    unsafe { core::arch::asm!("fence iorw, iorw") };
}

/// Reads a byte of the UART.
pub fn read_uart(register: usize) -> u8 {
    // SAFETY: as for `read`.
    unsafe { ((UART + register) as *const u8).read_volatile() }
}

/// Writes a byte of the UART.
pub fn write_uart(register: usize, value: u8) {
    // SAFETY: as for `read`.
    unsafe { ((UART + register) as *mut u8).write_volatile(value) };
}

struct Uart;

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            while read_uart(5) & 0x20 == 0 {}
            write_uart(0, byte);
        }
        Ok(())
    }
}

/// Prints on the UART.
pub fn print(text: fmt::Arguments<'_>) {
    // The UART takes everything.
    let _ = Uart.write_fmt(text);
}

/// Ends the machine: successfully with code 0.
pub fn finish(code: u16) -> ! {
    let request = if code == 0 {
        0x5555
    } else {
        u32::from(code) << 16 | 0x3333
    };
    loop {
        write(FINISHER, request);
    }
}

/// Sets or clears a hart's machine-level software interrupt.
pub fn set_software_interrupt(hart: usize, pending: bool) {
    write(MSWI + 4 * hart, pending.into());
}

/// The page of a hart's machine-level interrupt file.
pub const fn machine_file(hart: usize) -> usize {
    IMSIC_MACHINE + (hart << 12)
}

/// The page of a hart's supervisor-level (0) or guest interrupt file.
pub fn supervisor_file(hart: usize, guest: usize) -> usize {
    IMSIC_SUPERVISOR + (hart << (12 + guest_index_bits())) + (guest << 12)
}
