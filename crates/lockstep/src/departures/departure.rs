//! Form of a known departure, and those that two implementations share.

use super::seen::Seen;
use crate::compare::Difference;
use crate::csr;

/// A known departure.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    /// Behaviour in a few words.
    pub name: &'static str,
    /// Requirement of the specification, with its section.
    pub section: &'static str,
    /// True if everything after it may differ too.
    pub misleads: bool,
    /// Tests whether a difference is this departure.
    pub explains: fn(&Seen<'_>) -> bool,
}

/// Choice of an implementation: the longest wait of a WRS.NTO that traps at last.
pub(super) const RESERVATION_WAIT: Departure = Departure {
    name: "WRS.NTO traps at once where it may not wait for long",
    section: "a choice: unprivileged specification, \"Zawrs\": a bounded time, which may be zero",
    misleads: true,
    explains: |seen| {
        seen.only_theirs(|cause, instruction| {
            matches!(cause, 2 | 22) && instruction.is_reservation_wait()
        })
    },
};

/// Interrupt of M-mode's timer, which ends what would go on for ever: where it finds a loop depends on what instructions take.
pub(super) const ENDLESS_LOOP: Departure = Departure {
    name: "the timer that ends an endless loop finds it at another place",
    section: "a choice: unprivileged specification, \"Zicntr\": how much time an instruction takes",
    misleads: true,
    explains: |seen| {
        const TIMER: u64 = 1 << 63 | 7;
        seen.traps().is_some_and(|(left, right)| {
            (left.to, right.to) == ("M", "M")
                && (left.cause, right.cause) == (TIMER, TIMER)
                && left.at != right.at
        })
    },
};

/// M-mode's timer, pending or not: when it is due depends on what instructions take.
pub(super) const TIMER_DUE: Departure = Departure {
    name: "the timer that ends an endless loop is due sooner or later",
    section: "a choice: unprivileged specification, \"Zicntr\": how much time an instruction takes",
    misleads: false,
    explains: |seen| seen.only(csr::MIP, 1 << 7),
};

/// Deadline computed from the time: a program that was interrupted between the two writes of a comparison leaves one.
pub(super) const DEADLINE: Departure = Departure {
    name: "a deadline was computed from the time",
    section: "a choice: unprivileged specification, \"Zicntr\": how much time an instruction takes",
    misleads: false,
    explains: |seen| {
        let is_deadline = |value: u64| value != 0 && value < 1 << 32;
        // With htimedelta, which is any number.
        let is_near = |found: &Difference| found.ours.abs_diff(found.theirs) < 1 << 24;
        matches!(seen.number(), Some(csr::STIMECMP | csr::VSTIMECMP))
            && (is_deadline(seen.difference.ours) && is_deadline(seen.difference.theirs)
                || seen.number() == Some(csr::VSTIMECMP) && is_near(&seen.difference))
    },
};

/// Operands of one instruction that share a register and read it with two widths.
pub(super) const TWO_WIDTHS: Departure = Departure {
    name: "a vector register may be read with two widths",
    section: "unprivileged specification, \"V\", \"Vector Operands\": encodings that read a \
        register with more than one EEW are reserved",
    misleads: true,
    explains: |seen| {
        seen.only_ours(|cause, instruction| cause == 2 && instruction.may_read_two_widths())
            || seen.both(|left, right, instruction| {
                left == 2 && right != 2 && instruction.may_read_two_widths()
            })
    },
};
