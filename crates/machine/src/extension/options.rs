//! Ratified extensions that RVA23 leaves open or that are younger, each of which a profile can take away.

use serde::{Deserialize, Serialize};

use super::Isa;

/// Which of them a hart has: all but one, unless a profile says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Privilege modes that cycle and instret leave out: Smcntrpmf.
    pub counter_filters: bool,
    /// Entropy source: Zkr.
    pub entropy: bool,
    /// Counters of supervisors, by indirect registers: Smcdeleg and Ssccfg.
    pub counter_delegation: bool,
    /// Double traps below M-mode: Ssdbltrp.
    pub double_traps: bool,
    /// Double traps of M-mode: Smdbltrp. Firmware that does not know of it cannot take a trap after reset.
    pub machine_double_traps: bool,
    /// Landing pads: Zicfilp.
    pub landing_pads: bool,
    /// Shadow stacks: Zicfiss.
    pub shadow_stacks: bool,
    /// Debug triggers: Sdtrig.
    pub triggers: bool,
    /// Entries that become valid are seen without a fence: Svvptc.
    pub valid_entries: bool,
}

/// An option, and its names in ISA strings.
type Named = (fn(&mut Options) -> &mut bool, &'static [&'static str]);

const NAMED: [Named; 9] = [
    (
        |options| &mut options.counter_delegation,
        &["smcdeleg", "smcsrind", "ssccfg", "sscsrind"],
    ),
    (|options| &mut options.machine_double_traps, &["smdbltrp"]),
    (|options| &mut options.double_traps, &["ssdbltrp"]),
    (|options| &mut options.landing_pads, &["zicfilp"]),
    (|options| &mut options.shadow_stacks, &["zicfiss"]),
    (|options| &mut options.triggers, &["sdtrig"]),
    (|options| &mut options.counter_filters, &["smcntrpmf"]),
    (|options| &mut options.valid_entries, &["svvptc"]),
    (|options| &mut options.entropy, &["zkr"]),
];

impl Options {
    /// None of them.
    pub const NONE: Self = Self {
        counter_filters: false,
        entropy: false,
        counter_delegation: false,
        double_traps: false,
        machine_double_traps: false,
        landing_pads: false,
        shadow_stacks: false,
        triggers: false,
        valid_entries: false,
    };

    /// Options that an instruction-set description names.
    #[must_use]
    pub fn of(isa: &Isa) -> Self {
        let mut options = Self::NONE;
        for (option, names) in NAMED {
            let has = |name: &&str| isa.extensions.iter().any(|extension| extension == name);
            *option(&mut options) = names.iter().all(has);
        }
        options
    }

    /// Their names in ISA strings.
    pub fn names(mut self) -> impl Iterator<Item = &'static str> {
        let present = NAMED.map(|(option, names)| if *option(&mut self) { names } else { &[] });
        present.into_iter().flatten().copied()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            counter_filters: true,
            entropy: true,
            counter_delegation: true,
            double_traps: true,
            machine_double_traps: false,
            landing_pads: true,
            shadow_stacks: true,
            triggers: true,
            valid_entries: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{PmpEntries, VectorLength};
    use crate::extension::VmidBits;

    fn isa(options: Options) -> Isa {
        Isa {
            base: "rv64i".to_owned(),
            extensions: options.names().map(str::to_owned).collect(),
            mmu: "riscv,sv48".to_owned(),
            cache_block: 64,
            vmid_bits: VmidBits::default(),
            pmp_entries: PmpEntries::default(),
            vector_length: VectorLength::NONE,
        }
    }

    #[test]
    fn option_names_lead_back() {
        assert_eq!(Options::NONE.names().count(), 0);
        for (option, names) in NAMED {
            let mut one = Options::NONE;
            *option(&mut one) = true;
            assert!(one.names().eq(names.iter().copied()));
            assert_eq!(Options::of(&isa(one)), one);
        }
        assert_eq!(Options::of(&isa(Options::default())), Options::default());
    }
}
