//! Raw memory and device registers, and the device tree's bytes.

use core::ptr;

/// Loads a word from an address that the caller owns.
pub fn load(address: u64) -> u64 {
    // SAFETY: the exercises call this only with addresses of frames that they took (`frames`), or of pages
    // that they mapped to such frames, aligned to 8.
    unsafe { ptr::read_volatile(ptr::with_exposed_provenance::<u64>(address as usize)) }
}

/// Stores a word at an address that the caller owns.
pub fn store(address: u64, value: u64) {
    // SAFETY: as for `load`.
    unsafe {
        ptr::write_volatile(
            ptr::with_exposed_provenance_mut::<u64>(address as usize),
            value,
        )
    };
}

/// Loads 16 bits of memory that a device writes.
pub fn load16(address: u64) -> u16 {
    // SAFETY: as for `load`, aligned to 2.
    unsafe { ptr::read_volatile(ptr::with_exposed_provenance::<u16>(address as usize)) }
}

/// Loads 32 bits of memory that a device writes.
pub fn load32(address: u64) -> u32 {
    // SAFETY: as for `load`, aligned to 4.
    unsafe { ptr::read_volatile(ptr::with_exposed_provenance::<u32>(address as usize)) }
}

/// Stores 16 bits to memory that a device reads.
pub fn store16(address: u64, value: u16) {
    // SAFETY: as for `load`, aligned to 2.
    unsafe {
        ptr::write_volatile(
            ptr::with_exposed_provenance_mut::<u16>(address as usize),
            value,
        )
    };
}

/// Calls the function at an address that the caller owns: code without stack use that returns a number.
pub fn call(address: u64) -> u64 {
    // SAFETY: the caller wrote `addi a0, x0, n; ret` there, and mapped it executable.
    unsafe {
        let function: extern "C" fn() -> u64 =
            core::mem::transmute(ptr::with_exposed_provenance::<()>(address as usize));
        function()
    }
}

/// Reads an 8-bit device register.
pub fn device_load8(address: u64) -> u8 {
    // SAFETY: the address comes from the device tree's `reg` of a device that is ours.
    unsafe { ptr::read_volatile(ptr::with_exposed_provenance::<u8>(address as usize)) }
}

/// Writes an 8-bit device register.
pub fn device_store8(address: u64, value: u8) {
    // SAFETY: as for `device_load8`.
    unsafe {
        ptr::write_volatile(
            ptr::with_exposed_provenance_mut::<u8>(address as usize),
            value,
        )
    };
}

/// Reads a 32-bit device register.
pub fn device_load32(address: u64) -> u32 {
    // SAFETY: as for `device_load8`; the registers are aligned.
    unsafe { ptr::read_volatile(ptr::with_exposed_provenance::<u32>(address as usize)) }
}

/// Writes a 32-bit device register, after every earlier store to memory.
pub fn device_store32(address: u64, value: u32) {
    // SAFETY: as for `device_load8`; the registers are aligned. The fence orders memory before device output,
    // which those between memory accesses alone do not.
    unsafe {
        core::arch::asm!("fence rw, o");
        ptr::write_volatile(
            ptr::with_exposed_provenance_mut::<u32>(address as usize),
            value,
        );
    }
}

/// The device tree that the boot loader left.
///
/// # Errors
/// `None` when what stands there is no device tree.
pub fn device_tree(address: *const u8) -> Option<fdt::Fdt<'static>> {
    if address.is_null() || !address.addr().is_multiple_of(8) {
        return None;
    }
    // SAFETY: the boot contract says that a1 is the address of a device tree, which lies in RAM that this
    // kernel never gives out as frames (`frames` leaves it alone), so it lives for ever.
    unsafe { fdt::Fdt::from_ptr(address) }.ok()
}
