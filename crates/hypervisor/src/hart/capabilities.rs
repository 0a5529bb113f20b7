//! Optional features of a hart, found once when it starts.
//!
//! Nothing that belongs to an optional extension is executed, or written to, unless it was found here: named by the
//! device tree, and then tried. A trial runs where the trap vector survives an exception, so that a device tree that
//! promises too much costs a feature and nothing else.

use super::{common, isa};

/// Optional feature of a hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// WRS.STO (Zawrs).
    WaitOnReservation,
    /// hstateen0 (Smstateen).
    StateEnable,
    /// scountovf, and counters that tell modes apart (Sscofpmf).
    CounterOverflow,
    /// CBO.ZERO for HS-mode (Zicboz, and menvcfg.CBZE by the firmware).
    ZeroBlocks,
    /// The seed register for HS-mode (Zkr, and mseccfg.SSEED by the firmware).
    EntropySource,
    /// The papers' pending test of any hart's guest files (docs/reference/extensions.md).
    PendingTest,
    /// The papers' exit of pause loops (docs/reference/extensions.md).
    PauseLoopExit,
    /// The papers' memory of a guest's fences (docs/reference/extensions.md).
    PurgeMask,
    /// The papers' purge by the hart when it enters a guest (docs/reference/extensions.md).
    PurgeCheck,
    /// The machine's answer which vCPU holds a lock, a bound for comparisons (docs/reference/extensions.md).
    LockHolder,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::WaitOnReservation,
        Self::StateEnable,
        Self::CounterOverflow,
        Self::ZeroBlocks,
        Self::EntropySource,
        Self::PendingTest,
        Self::PauseLoopExit,
        Self::PurgeMask,
        Self::PurgeCheck,
        Self::LockHolder,
    ];

    /// The names by which a device tree promises it.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::WaitOnReservation => &["zawrs"],
            Self::StateEnable => &["smstateen", "ssstateen"],
            Self::CounterOverflow => &["sscofpmf"],
            Self::ZeroBlocks => &["zicboz"],
            Self::EntropySource => &["zkr"],
            Self::PendingTest => &["xpartitaotpi"],
            Self::PauseLoopExit => &["xpartitaple"],
            Self::PurgeMask => &["xpartitatlbpcw"],
            Self::PurgeCheck => &["xpartitapurge"],
            Self::LockHolder => &["xpartitaholder"],
        }
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Features that a hart was found to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities(u32);

impl Capabilities {
    /// Tries the features that are promised by name. `works` is called for no others: an encoding that was not promised may mean
    /// anything.
    #[must_use]
    pub fn find(
        promised: impl Fn(&str) -> bool,
        mut works: impl FnMut(Capability) -> bool,
    ) -> Self {
        let found = Capability::ALL.into_iter().filter(|capability| {
            capability.names().iter().any(|name| promised(name)) && works(*capability)
        });
        Self(found.fold(0, |bits, capability| bits | capability.bit()))
    }

    /// Returns true if the hart has `capability`.
    #[must_use]
    pub const fn has(self, capability: Capability) -> bool {
        self.0 & capability.bit() != 0
    }

    /// Number that fits into an atomic.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Inverse of [`Capabilities::bits`].
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

/// A block that CBO.ZERO may be tried on: no block is larger than its alignment.
#[repr(align(4096))]
struct Scrap([u8; 4096]);

/// Tries the instructions and registers of `capability` on the calling hart.
#[must_use]
pub fn works(capability: Capability) -> bool {
    let outcome = match capability {
        Capability::WaitOnReservation => isa::trial::wait_on_reservation(),
        Capability::StateEnable => isa::trial::state_enable(),
        Capability::CounterOverflow => isa::trial::counter_overflow(),
        Capability::ZeroBlocks => {
            let mut scrap = Scrap([1; 4096]);
            let outcome = isa::trial::zero_block(&raw mut scrap.0);
            return outcome.is_some() && core::hint::black_box(&scrap).0[0] == 0;
        }
        Capability::EntropySource => isa::trial::seed(),
        Capability::PendingTest => isa::trial::pending_test(),
        Capability::PauseLoopExit => isa::trial::pause_loop(),
        Capability::LockHolder => isa::trial::lock_holder(),
        // The second has no encoding of its own; it is of use with the mask alone.
        Capability::PurgeMask | Capability::PurgeCheck => isa::trial::purge_mask(),
    };
    outcome.is_some()
}

/// Name of the first required feature that the calling hart lacks.
#[must_use]
pub fn missing() -> Option<&'static str> {
    if isa::trial::hypervisor().is_none() {
        return Some("the hypervisor extension (H)");
    }
    if common::has_interrupt_files() && isa::trial::interrupt_file().is_none() {
        return Some("the Advanced Interrupt Architecture (Ssaia)");
    }
    if common::has_supervisor_timer() && !has_supervisor_timer() {
        return Some("timers for supervisors (Sstc)");
    }
    None
}

/// Tries the timer of the supervisor level (Sstc) on the calling hart.
#[must_use]
pub fn has_supervisor_timer() -> bool {
    isa::trial::timer().is_some()
}

/// Entropy of the hart's own source, 16 bits at a time, until `bytes` is full. Returns false if the source did not give it in
/// good time (Zkr, "Entropy Source").
///
/// # Safety
/// The hart must have [`Capability::EntropySource`].
#[must_use]
pub unsafe fn entropy(bytes: &mut [u8]) -> bool {
    const STATE: u64 = 3 << 30;
    const ENOUGH: u64 = 2 << 30;
    let mut tries = 64 * bytes.len();
    for pair in bytes.chunks_mut(2) {
        let value = loop {
            if tries == 0 {
                return false;
            }
            tries -= 1;
            match isa::trial::seed() {
                Some(value) if value & STATE == ENOUGH => break value as u16,
                Some(_) => {}
                None => return false,
            }
        };
        let new = value.to_le_bytes();
        pair.copy_from_slice(new.get(..pair.len()).unwrap_or(&new));
    }
    true
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    #[test]
    fn what_is_not_promised_is_not_tried() {
        let mut tried = Vec::new();
        let found = Capabilities::find(
            |name| name == "zicboz" || name == "ssstateen",
            |capability| {
                tried.push(capability);
                true
            },
        );
        assert_eq!(tried, [Capability::StateEnable, Capability::ZeroBlocks]);
        assert!(found.has(Capability::StateEnable) && found.has(Capability::ZeroBlocks));
        assert!(!found.has(Capability::WaitOnReservation));
    }

    #[test]
    fn promised_features_that_fail_are_absent() {
        let works = |capability| capability != Capability::WaitOnReservation;
        let found = Capabilities::find(|_| true, works);
        for capability in Capability::ALL {
            assert_eq!(found.has(capability), works(capability));
        }
        assert_eq!(Capabilities::from_bits(found.bits()), found);
    }

    /// The stand-in has no instruction of a hart.
    #[test]
    fn another_computer_has_nothing() {
        assert_eq!(Capabilities::find(|_| true, works), Capabilities::default());
        assert!(missing().is_some());
    }
}
