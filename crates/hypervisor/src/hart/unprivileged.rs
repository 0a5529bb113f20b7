//! Reads of guest memory through the guest's own translation (HLVX), which may fault harmlessly.
//!
//! They use vsatp, hgatp, vsstatus and hstatus.SPVP as they stand, so they are only for the vCPU that has just left
//! this hart. The trap vector steps over an instruction of this module that faults and sets the flag in t1.

use super::isa;
use super::outcome::Outcome;

fn checked(outcome: &Outcome) -> Option<u64> {
    (outcome.faulted == 0).then_some(outcome.value)
}

/// The instruction at the guest-virtual `address`, 16 or 32 bits wide as its lowest bits say (HLVX.HU).
#[must_use]
#[inline]
pub fn fetch_instruction(address: u64) -> Option<u32> {
    let low = u32::from(fetch_halfword(address)?);
    if low & 3 != 3 {
        return Some(low);
    }
    let high = u32::from(fetch_halfword(address.wrapping_add(2))?);
    Some(high << 16 | low)
}

/// The halfword of code at the guest-virtual `address` (HLVX.HU).
#[must_use]
pub fn fetch_halfword(address: u64) -> Option<u16> {
    // SAFETY: the access is translated and checked as the guest's own; a fault sets the flag and nothing else.
    checked(&unsafe { isa::fetch_halfword(address) }).map(|value| value as u16)
}
