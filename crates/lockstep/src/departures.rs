//! Where other implementations are known to depart from the specification, by name.
//!
//! A difference that one of these explains is counted under its name, never passed over.

use crate::compare::{Difference, Place, Run};
use crate::csr;
use crate::oracle::Oracle;

/// A known departure.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    /// Whose.
    pub oracle: Oracle,
    /// What it does, in a few words.
    pub name: &'static str,
    /// What the specification says, and where.
    pub section: &'static str,
    /// Whether everything after it may differ too.
    pub misleads: bool,
    /// Whether a difference is this departure.
    pub explains: fn(&Difference, Run<'_>, Run<'_>) -> bool,
}

/// Whether two values of a CSR, wherever it was read, differ in these bits only.
fn only_bits(difference: &Difference, number: u16, bits: u64) -> bool {
    let found = match difference.place {
        Place::Trap { number, .. } | Place::Csr(number) => number,
        _ => return false,
    };
    found == number && (difference.ours ^ difference.theirs) & !bits == 0
}

/// Whether a trap's causes, wherever it went, are this here and that there.
fn causes(difference: &Difference, ours: u64, theirs: u64) -> bool {
    let is_cause = matches!(
        difference.place,
        Place::Trap {
            number: csr::MCAUSE | csr::SCAUSE | csr::VSCAUSE,
            ..
        }
    );
    is_cause && difference.ours == ours && difference.theirs == theirs
}

/// All that are known.
pub const ALL: &[Departure] = &[
    Departure {
        oracle: Oracle::Spike,
        name: "a misaligned atomic access raises an access fault",
        section: "a choice: unprivileged specification, \"A\": address-misaligned or access fault",
        misleads: true,
        explains: |difference, _, _| causes(difference, 4, 5) || causes(difference, 6, 7),
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "hvip shows bits of mip",
        section: "privileged specification, hypervisor extension, hvip: only VSSIP, VSTIP and \
            VSEIP are writable, the others read-only zero",
        misleads: false,
        explains: |difference, _, _| only_bits(difference, csr::HVIP, !0x444),
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "vsstatus.SD does not follow FS",
        section: "privileged specification, hypervisor extension, vsstatus: SD summarises FS, VS \
            and XS of vsstatus",
        misleads: false,
        explains: |difference, _, _| only_bits(difference, csr::VSSTATUS, 1 << 63),
    },
];

/// What becomes of the differences of a program.
#[derive(Debug, Default)]
pub struct Explained {
    /// The departures that were met.
    pub departures: Vec<&'static str>,
    /// The differences that none explains.
    pub unknown: Vec<Difference>,
}

/// Sorts differences into those that a known departure explains and the others.
#[must_use]
pub fn explain(
    oracle: Oracle,
    differences: &[Difference],
    ours: Run<'_>,
    theirs: Run<'_>,
) -> Explained {
    let mut explained = Explained::default();
    for difference in differences {
        let departure = ALL.iter().find(|departure| {
            departure.oracle == oracle && (departure.explains)(difference, ours, theirs)
        });
        match departure {
            Some(departure) => {
                if !explained.departures.contains(&departure.name) {
                    explained.departures.push(departure.name);
                }
                if departure.misleads {
                    break;
                }
            }
            None => explained.unknown.push(*difference),
        }
    }
    explained
}
