//! Changing the profile of a machine that has already run.

use crate::extension::Extensions;
use crate::machine::Machine;
use crate::system::Limits;
use crate::timing::Profile;

/// Why a machine cannot go on with a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the machine was started with {what} {found} and the profile has {wanted}: software has seen \
     it, so start the machine with this profile (--mode functional boots fast) before the checkpoint"
)]
pub struct ProfileMismatch {
    /// Name of the value that differs.
    pub what: &'static str,
    /// Value of the machine.
    pub found: String,
    /// Value of the profile.
    pub wanted: String,
}

impl Machine {
    /// Goes on in the timing mode, with this profile's costs, quantum and limits. The models are
    /// cold, unless the machine is in this mode with this profile already: then nothing changes.
    ///
    /// # Errors
    /// [`ProfileMismatch`] if the profile differs in what software has already seen: frequencies and
    /// the number of guest interrupt files.
    pub fn continue_with_profile(&mut self, profile: &Profile) -> Result<(), ProfileMismatch> {
        let board = &self.config.board;
        let seen = [
            (
                "a frequency in hertz of",
                board.clock.cycles_per_second(),
                profile.hertz,
            ),
            (
                "a timebase in hertz of",
                board.clock.ticks_per_second(),
                profile.timebase,
            ),
            (
                "a number of guest interrupt files of",
                board.guest_files.into(),
                profile.guest_files.into(),
            ),
            (
                "a number of VMID bits of",
                board.isa.vmid_bits.count().into(),
                profile.vmid_bits.into(),
            ),
            (
                "a number of PMP entries of",
                board.isa.pmp_entries.count() as u64,
                profile.pmp_entries.into(),
            ),
            (
                "a number of vector register bits of",
                board.isa.vector_length.bits().into(),
                profile.vector.map_or(0, |vector| vector.vlen).into(),
            ),
        ];
        for (what, found, wanted) in seen {
            if found != wanted {
                return Err(ProfileMismatch {
                    what,
                    found: found.to_string(),
                    wanted: wanted.to_string(),
                });
            }
        }
        let (own, wanted) = (Extensions::of(&board.isa), profile.extensions);
        if own != wanted {
            return Err(ProfileMismatch {
                what: "the custom extensions",
                found: format!("{own:?}"),
                wanted: format!("{wanted:?}"),
            });
        }
        if self.profile() == Some(profile) {
            return Ok(());
        }
        self.config.quantum = profile.quantum;
        self.config.limits = Limits {
            wrs_nto: profile.wrs_nto_limit,
            wrs_sto: profile.wrs_sto_limit,
        };
        self.system.limits = self.config.limits;
        self.set_profile(Some(profile));
        Ok(())
    }
}
