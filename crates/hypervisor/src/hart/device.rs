//! Accesses to the registers of the board's devices, which survive an access fault.
//!
//! Every access that the hypervisor makes to a device goes through here: a device may answer any of its addresses with a fault, and a fault of
//! the hypervisor's own would end the whole system.

use super::decode::Width;
use super::isa::device;
use super::outcome::Outcome;

const fn value_of(outcome: &Outcome) -> Option<u64> {
    match outcome.faulted {
        0 => Some(outcome.value),
        _ => None,
    }
}

/// The value of a device's register; `None` where the device answers with a fault.
///
/// # Safety
/// The address must lie in the registers of a device of the board, aligned to its width.
#[inline]
#[must_use]
pub unsafe fn load(address: u64, width: Width) -> Option<u64> {
    // SAFETY: the caller answers for the address. A register is nothing that Rust knows of, and a fault sets the flag and nothing else.
    let outcome = unsafe {
        match width {
            Width::Byte => device::load_byte(address),
            Width::Half => device::load_half(address),
            Width::Word => device::load_word(address),
            Width::Double => device::load_double(address),
        }
    };
    value_of(&outcome)
}

/// Sets a device's register. `None` where the device answers with a fault.
///
/// # Safety
/// As for [`load`]; and what the device then does must be the caller's to ask for: its accesses to memory, above all.
#[inline]
pub unsafe fn store(address: u64, width: Width, value: u64) -> Option<()> {
    // SAFETY: as for `load`.
    let outcome = unsafe {
        match width {
            Width::Byte => device::store_byte(address, value),
            Width::Half => device::store_half(address, value),
            Width::Word => device::store_word(address, value),
            Width::Double => device::store_double(address, value),
        }
    };
    value_of(&outcome).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_survive_faults() {
        for width in [Width::Byte, Width::Half, Width::Word, Width::Double] {
            // SAFETY: the stand-in for a hart reaches no memory: every access faults.
            let answers = unsafe { (load(0x1000_1200, width), store(0x1000_1200, width, 1)) };
            assert_eq!(answers, (None, None));
        }
    }
}
