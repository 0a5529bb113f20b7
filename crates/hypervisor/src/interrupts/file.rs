//! Sequences on a guest file's registers, during which messages may arrive at any point.

use super::port::{Array, Register, Registers};
use crate::interrupts::softfile::State;

/// All identities of the first array; bit 0 belongs to none.
const ALL: u64 = !1;

const PENDING: Register = Register::Pending(Array::FIRST);
const ENABLED: Register = Register::Enabled(Array::FIRST);

/// Reads the settings; the pending bits stay in the file.
#[must_use]
pub fn settings(file: &impl Registers) -> State {
    State {
        pending: 0,
        enabled: file.read(ENABLED),
        delivery: file.read(Register::Delivery) == 1,
        // Thresholds above the guest's last identity let all of them through, as 0 does.
        threshold: u8::try_from(file.read(Register::Threshold))
            .ok()
            .filter(|limit| *limit < 64)
            .unwrap_or(0),
    }
}

/// Writes the settings, and adds the pending bits to those that have arrived meanwhile.
pub fn restore(file: &impl Registers, state: &State) {
    file.write(Register::Threshold, u64::from(state.threshold));
    file.write(ENABLED, state.enabled);
    add_pending(file, state.pending);
    file.write(Register::Delivery, u64::from(state.delivery));
}

/// Sets pending bits of the first array and leaves the others. One instruction: no bit that arrives at the same time
/// is lost.
pub fn add_pending(file: &impl Registers, bits: u64) {
    if bits != 0 {
        file.set(PENDING, bits);
    }
}

/// Takes those of the first array's pending bits that are in `mask` out of the file. Only bits that were seen are
/// cleared, so that none is lost between the two accesses.
#[must_use]
pub fn take_pending(file: &impl Registers, mask: u64) -> u64 {
    let pending = file.read(PENDING) & mask;
    if pending != 0 {
        file.clear(PENDING, pending);
    }
    pending
}

/// Returns true if an identity of the first array is pending, enabled and delivered; the threshold is not read.
#[must_use]
pub fn asserts(file: &impl Registers) -> bool {
    file.read(PENDING) & file.read(ENABLED) != 0 && file.read(Register::Delivery) == 1
}

/// Makes messages with the identities that guests know show in `hgeip`, whatever the guest had enabled, and no
/// others: a bit that a guest has set above the first array would show for ever, since it is never taken out.
pub fn open_for_forwarding(file: &impl Registers, last_identity: u32) {
    for array in Array::after_first(last_identity) {
        file.write(Register::Enabled(array), 0);
        file.write(Register::Pending(array), 0);
    }
    file.write(Register::Threshold, 0);
    file.write(ENABLED, ALL);
    file.write(Register::Delivery, 1);
}

/// Empties the file: nothing pending, nothing enabled, nothing delivered, of all identities that it implements.
#[inline]
pub fn clear(file: &impl Registers, last_identity: u32) {
    file.write(Register::Delivery, 0);
    file.write(Register::Threshold, 0);
    for array in core::iter::once(Array::FIRST).chain(Array::after_first(last_identity)) {
        file.write(Register::Enabled(array), 0);
        file.write(Register::Pending(array), 0);
    }
}
