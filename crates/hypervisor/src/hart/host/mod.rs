//! A stand-in for a hart's instructions, so that the library compiles and is tested on other computers.
//!
//! A thread stands for a hart: it has CSRs that keep what is written to them, a pointer, and no firmware.

extern crate std;

use core::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::thread_local;

use super::context::{FloatContext, GuestContext, VectorControl};
use super::outcome::Outcome;

thread_local! {
    static REGISTERS: RefCell<BTreeMap<u16, u64>> = const { RefCell::new(BTreeMap::new()) };
    static DEVICE_FENCES: Cell<u32> = const { Cell::new(0) };
    static POINTER: Cell<*const ()> = const { Cell::new(core::ptr::null()) };
}

/// Registers that keep what is written to them. None has an effect.
pub mod csr {
    use super::REGISTERS;

    /// The register numbered `N`; 0 where nothing was written to it.
    #[must_use]
    pub fn read<const N: u16>() -> u64 {
        REGISTERS.with_borrow(|registers| registers.get(&N).copied().unwrap_or(0))
    }

    /// Writes the register numbered `N`.
    ///
    /// # Safety
    /// None is needed here; a hart's register needs it.
    pub unsafe fn write<const N: u16>(value: u64) {
        let _ = REGISTERS.with_borrow_mut(|registers| registers.insert(N, value));
    }

    /// Writes the register numbered `N` and returns its former value.
    ///
    /// # Safety
    /// As for [`fn@write`].
    pub unsafe fn swap<const N: u16>(value: u64) -> u64 {
        REGISTERS.with_borrow_mut(|registers| registers.insert(N, value).unwrap_or(0))
    }

    /// Sets the bits of `mask` in the register numbered `N`.
    ///
    /// # Safety
    /// As for [`fn@write`].
    pub unsafe fn set<const N: u16>(mask: u64) {
        REGISTERS.with_borrow_mut(|registers| *registers.entry(N).or_insert(0) |= mask);
    }

    /// Clears the bits of `mask` in the register numbered `N`.
    ///
    /// # Safety
    /// As for [`fn@write`].
    pub unsafe fn clear<const N: u16>(mask: u64) {
        REGISTERS.with_borrow_mut(|registers| *registers.entry(N).or_insert(0) &= !mask);
    }
}

/// Fences: nothing is cached here.
pub mod fence {
    /// Drops nothing.
    pub fn guest_virtual_all() {}

    /// Drops nothing.
    pub fn guest_virtual_page(_address: u64, _asid: Option<u16>) {}

    /// Drops nothing.
    pub fn guest_virtual_space(_asid: u16) {}

    /// Drops nothing.
    pub fn guest_physical_of(_vmid: u64) {}

    /// Drops nothing.
    pub fn guest_physical_page(_address: u64, _vmid: u64) {}

    /// Drops nothing.
    pub fn guest_physical_all() {}

    /// Drops nothing.
    pub fn instructions() {}

    /// Orders nothing: no device is there.
    pub fn devices() {}
}

/// Copies of large pieces of memory.
pub mod copy {
    /// Copies `length` bytes from `from` to `to`.
    ///
    /// # Safety
    /// Both ranges must be the caller's to read and to write, and must not overlap.
    pub unsafe fn forward(from: *const u8, to: *mut u8, length: usize) {
        // SAFETY: the caller answers for the ranges.
        unsafe { core::ptr::copy_nonoverlapping(from, to, length) };
    }

    /// Makes `length` bytes from `to` zero, a block of `block` bytes at a time.
    ///
    /// # Safety
    /// The range must be the caller's to write.
    pub unsafe fn zero_blocks(to: *mut u8, length: usize, _block: usize) {
        // SAFETY: the caller answers for the range.
        unsafe { core::ptr::write_bytes(to, 0, length) };
    }

    /// Makes `length` bytes from `to` zero.
    ///
    /// # Safety
    /// The range must be the caller's to write.
    pub unsafe fn zero(to: *mut u8, length: usize) {
        // SAFETY: the caller answers for the range.
        unsafe { core::ptr::write_bytes(to, 0, length) };
    }
}

/// Stand-in without an image: no hart starts.
pub mod entry {
    /// A host's threads have stacks of their own.
    #[must_use]
    pub fn is_stack_long_enough() -> bool {
        true
    }

    /// An image without a byte.
    #[must_use]
    pub fn image() -> (u64, u64) {
        (0, 0)
    }

    /// Nowhere.
    #[must_use]
    pub fn secondary() -> u64 {
        0
    }

    /// No hart starts here.
    #[must_use]
    pub fn roll_call() -> u64 {
        0
    }

    /// Stand-in that has no hart to continue on.
    ///
    /// # Safety
    /// As on a hart.
    ///
    /// # Panics
    /// Always.
    pub unsafe fn leave_firmware(_hart_id: u64, _tree: *const u8) -> ! {
        panic!("there is no hart")
    }
}

/// Accesses to devices, each of which faults: no device is there.
pub mod device {
    use super::Outcome;

    macro_rules! faults {
        ($($name:ident($($argument:ident),+))+) => {
            $(
                /// Faults.
                ///
                /// # Safety
                /// None is needed here; a hart's instruction needs it.
                #[must_use]
                pub unsafe fn $name($($argument: u64),+) -> Outcome {
                    Outcome {
                        value: 0,
                        faulted: 1,
                    }
                }
            )+
        };
    }
    faults! {
        load_byte(_address) load_half(_address) load_word(_address) load_double(_address)
        store_byte(_address, _value) store_half(_address, _value) store_word(_address, _value) store_double(_address, _value)
    }
}

/// Trials of instructions: none is there.
pub mod trial {
    macro_rules! none {
        ($($name:ident)+) => {
            $(
                /// Stand-in without the feature.
                #[must_use]
                pub fn $name() -> Option<u64> {
                    None
                }
            )+
        };
    }
    none!(wait_on_reservation vector_length timer state_enable counter_overflow hypervisor interrupt_file seed pending_test pause_loop purge_mask lock_holder);

    /// Stand-in without the feature.
    #[must_use]
    pub fn zero_block(_page: *mut [u8; 4096]) -> Option<u64> {
        None
    }
}

/// Counts down to zero.
pub fn count_down(steps: u64) {
    for _ in 0..steps.max(1) {
        core::hint::spin_loop();
    }
}

/// Lets others have the processor.
pub fn wait_for_interrupt() {
    std::thread::yield_now();
}

/// Value of this thread's last [`set_pointer`].
///
/// # Panics
/// Where it was given nothing: a test must say what its hart is.
#[must_use]
pub fn pointer() -> *const () {
    let pointer = POINTER.get();
    assert!(!pointer.is_null(), "this thread stands for no hart yet");
    pointer
}

/// Keeps a pointer for this thread.
pub fn set_pointer(pointer: *const ()) {
    POINTER.set(pointer);
}

/// Stand-in without firmware: every call is answered by SBI_ERR_NOT_SUPPORTED.
#[must_use]
pub fn call_firmware(_extension: u64, _function: u64, _arguments: [u64; 5]) -> (i64, u64) {
    (-2, 0)
}

/// Stand-in that does nothing: there are no devices.
pub fn memory_before_devices() {}

/// Orders nothing, since there are no devices, but is counted.
pub fn devices_before_memory() {
    DEVICE_FENCES.set(DEVICE_FENCES.get() + 1);
}

/// Calls of [`devices_before_memory`] by this thread.
#[cfg(test)]
#[must_use]
pub fn fences_behind_devices() -> u32 {
    DEVICE_FENCES.get()
}

/// Stand-in that does not stall.
///
/// # Safety
/// None is needed here; a hart's instruction needs it.
pub unsafe fn stall_on_doubleword(_address: u64, _value: u64) {}

/// Stand-in that does not stall.
///
/// # Safety
/// None is needed here; a hart's instruction needs it.
pub unsafe fn stall_on_word(_address: u64, _value: u64) {}

/// No file has anything.
///
/// # Safety
/// None is needed here; a hart's instruction needs it.
#[must_use]
pub unsafe fn guest_files_pending(_hart: u64) -> u64 {
    0
}

/// A load through a guest's translation, which faults: there is no guest.
///
/// # Safety
/// None is needed here; a hart's instruction needs it.
#[must_use]
pub unsafe fn fetch_halfword(_address: u64) -> Outcome {
    Outcome {
        value: 0,
        faulted: 1,
    }
}

/// No guest is entered: it has left at once.
///
/// # Safety
/// None is needed here; a hart's world switch needs it.
pub unsafe fn enter_guest(_context: *mut GuestContext) {}

/// The trap vector, which nothing calls.
///
/// # Safety
/// None is needed here; a hart's trap vector needs it.
pub unsafe fn trap_vector() {}

/// Stand-in that saves nothing: a thread's floating-point registers are its own.
///
/// # Safety
/// None is needed here; a hart's registers need it.
pub unsafe fn float_save(_context: *mut FloatContext) {}

/// Stand-in that restores nothing.
///
/// # Safety
/// None is needed here; a hart's registers need it.
pub unsafe fn float_restore(_context: *const FloatContext) {}

/// Stand-in that saves nothing.
///
/// # Safety
/// None is needed here; a hart's registers need it.
pub unsafe fn vector_save(_registers: *mut u8) {}

/// Stand-in that saves nothing.
///
/// # Safety
/// None is needed here; a hart's CSRs need it.
pub unsafe fn vector_save_control(_control: *mut VectorControl) {}

/// Stand-in that restores nothing.
///
/// # Safety
/// None is needed here; a hart's registers need it.
pub unsafe fn vector_restore(_control: *const VectorControl, _registers: *const u8) {}
