//! Where other implementations are known to depart from the specification, by name.
//!
//! A difference that one of these explains is counted under its name, never passed over.

use crate::compare::{Difference, Place, Run};
use crate::csr;
use crate::layout;
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

/// Whether a difference belongs to a trap whose causes, wherever it went, are these.
fn causes(
    difference: &Difference,
    ours: Run<'_>,
    theirs: Run<'_>,
    are: impl Fn(u64, u64) -> bool,
) -> bool {
    let Place::Trap { trap, .. } = difference.place else {
        return false;
    };
    let (_, left, _) = ours.trap(trap);
    let (_, right, _) = theirs.trap(trap);
    are(left, right)
}

/// The causes of the supervisors' timer interrupts: 5, and 6 as HS-mode sees VS-mode's.
const fn is_timer(cause: u64) -> bool {
    cause == 1 << 63 | 5 || cause == 1 << 63 | 6
}

/// Whether a trap value of an illegal or virtual instruction differs.
fn is_instruction(difference: &Difference, ours: Run<'_>) -> bool {
    let (trap, cause) = match difference.place {
        Place::Trap { trap, number } => match number {
            csr::MTVAL => (trap, csr::MCAUSE),
            csr::STVAL => (trap, csr::SCAUSE),
            csr::VSTVAL => (trap, csr::VSCAUSE),
            _ => return false,
        },
        _ => return false,
    };
    matches!(ours.recorded(trap, cause), 2 | 22)
}

/// Whether an address differs in nothing but its place in the cache block.
fn is_in_block(difference: &Difference) -> bool {
    let low = match number(difference) {
        Some(csr::MTVAL | csr::STVAL | csr::VSTVAL) => 63,
        Some(csr::MTVAL2 | csr::HTVAL) => 15,
        _ => return false,
    };
    // One of the two is the block's start.
    let start = difference.ours & !low;
    start == difference.theirs & !low && [difference.ours, difference.theirs].contains(&start)
}

/// Whether a status register differs in no other bits than these.
fn status_bits(difference: &Difference, bits: u64) -> bool {
    [csr::MSTATUS, csr::SSTATUS, csr::VSSTATUS]
        .into_iter()
        .any(|number| only_bits(difference, number, bits))
}

/// FS and SD of mstatus, sstatus and vsstatus.
const FLOAT: u64 = 3 << 13 | 1 << 63;

/// Whether a value was written by a guest-page fault, not left from an earlier trap.
fn is_guest_page_fault(difference: &Difference, run: Run<'_>) -> bool {
    let Place::Trap { trap, number } = difference.place else {
        return false;
    };
    let (to, cause, _) = run.trap(trap);
    let machine = matches!(number, csr::MTVAL2 | csr::MTINST);
    (to == "M") == machine && matches!(cause, 20 | 21 | 23)
}

/// The number of the CSR that differs.
const fn number(difference: &Difference) -> Option<u16> {
    match difference.place {
        Place::Trap { number, .. } | Place::Csr(number) => Some(number),
        _ => None,
    }
}

/// All that are known.
pub const ALL: &[Departure] = &[
    Departure {
        oracle: Oracle::Spike,
        name: "a misaligned atomic access raises an access fault",
        section: "a choice: unprivileged specification, \"A\": address-misaligned or access fault",
        misleads: true,
        explains: |difference, ours, theirs| {
            let atomic = |left, right| matches!((left, right), (4, 5 | 13 | 21) | (6, 7 | 15 | 23));
            causes(difference, ours, theirs, atomic)
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "hvip shows bits of mip",
        section: "privileged specification, hypervisor extension, hvip: only VSSIP, VSTIP and \
            VSEIP are writable, the others read-only zero",
        misleads: false,
        explains: |difference, _, _| number(difference) == Some(csr::HVIP),
    },
    Departure {
        oracle: Oracle::Spike,
        name: "FS becomes Dirty by flags that are set already",
        section: "a choice: privileged specification, extension context status: FS may be Dirty \
            where nothing has changed",
        misleads: false,
        explains: |difference, _, _| {
            let read = matches!(difference.place, Place::Integer(_))
                && (difference.ours ^ difference.theirs) & !FLOAT == 0;
            (status_bits(difference, FLOAT) || read) && difference.theirs & FLOAT == FLOAT
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "FS does not become Dirty by flags of instructions that write an integer register",
        section: "privileged specification, extension context status: FS is Dirty once fcsr has \
            changed",
        misleads: false,
        explains: |difference, _, _| {
            let read = matches!(difference.place, Place::Integer(_))
                && (difference.ours ^ difference.theirs) & !FLOAT == 0;
            (status_bits(difference, FLOAT) || read) && difference.ours & FLOAT == FLOAT
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "GVA is left from an earlier trap, and not set by faults of HLV and HSV",
        section: "privileged specification, hypervisor extension, mstatus and hstatus: GVA is \
            written by every trap, and set if a guest virtual address is written to the trap value",
        misleads: false,
        explains: |difference, _, _| {
            only_bits(difference, csr::MSTATUS, 1 << 38 | FLOAT)
                || only_bits(difference, csr::HSTATUS, 1 << 6)
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "htinst ignores writes",
        section: "privileged specification, hypervisor extension, htinst: WARL, holds what a trap \
            may write",
        misleads: false,
        explains: |difference, ours, _| {
            number(difference) == Some(csr::HTINST) && !is_guest_page_fault(difference, ours)
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "mtval2 and htval are written by traps other than guest-page faults",
        section: "privileged specification, hypervisor extension, htval and mtval2: zero but for \
            guest-page faults",
        misleads: false,
        explains: |difference, ours, _| {
            matches!(number(difference), Some(csr::MTVAL2 | csr::HTVAL))
                && !is_guest_page_fault(difference, ours)
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "vsepc holds bit 0",
        section: "privileged specification, sepc: the low bit is always zero",
        misleads: false,
        explains: |difference, _, _| only_bits(difference, csr::VSEPC, 1),
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "CSRs of supervisors raise an illegal instruction in VU-mode",
        section: "privileged specification, hypervisor extension, virtual-instruction exception",
        misleads: true,
        explains: |difference, ours, theirs| {
            causes(difference, ours, theirs, |left, right| {
                (left, right) == (22, 2)
            })
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "HLVX faults as a fetch",
        section: "privileged specification, hypervisor extension, HLVX: faults are those of loads",
        misleads: true,
        explains: |difference, ours, theirs| {
            let fetch = |left, right| matches!((left, right), (13 | 21, 12) | (5, 1) | (21, 20));
            causes(difference, ours, theirs, fetch)
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "a misaligned AMO raises a load's exception",
        section: "unprivileged specification, \"A\": AMOs raise store exceptions",
        misleads: true,
        explains: |difference, ours, theirs| {
            causes(difference, ours, theirs, |left, right| {
                (left, right) == (6, 4)
            })
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "A is set by an access that is misaligned",
        section: "a choice: privileged specification, \"Virtual Address Translation Process\": A \
            may be set speculatively",
        misleads: false,
        explains: |difference, _, _| {
            matches!(difference.place, Place::Memory(offset) if offset >= layout::FIRST_TABLES)
                && difference.ours | 1 << 6 == difference.theirs
        },
    },
    Departure {
        oracle: Oracle::Spike,
        name: "a timer that is due interrupts late",
        section: "a choice: Sstc: changes of the comparison need not show at once",
        misleads: true,
        explains: |difference, ours, theirs| {
            causes(difference, ours, theirs, |left, right| {
                is_timer(left) || is_timer(right)
            })
        },
    },
    Departure {
        oracle: Oracle::Spike,
        name: "a cache-block instruction's fault names the block's start, or the address given",
        section: "a choice: unprivileged specification, \"CMO\": any address of the block",
        misleads: false,
        explains: |difference, _, _| is_in_block(difference),
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "CBO.CLEAN and CBO.FLUSH name the block's start in a fault",
        section: "a choice: unprivileged specification, \"CMO\": any address of the block",
        misleads: false,
        explains: |difference, _, _| is_in_block(difference),
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "the trap value of an illegal MRET is another instruction's",
        section: "privileged specification, mtval: zero or the instruction's bits",
        misleads: false,
        explains: |difference, ours, _| is_instruction(difference, ours),
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "the timers overwrite STIP of mip and VSTIP of hvip",
        section: "Sstc: STIP is the comparison or, with STCE clear, what was written; VSTIP is the \
            comparison or hvip.VSTIP",
        misleads: true,
        explains: |difference, ours, theirs| {
            let bits = |number, bits| only_bits(difference, number, bits);
            bits(csr::MIP, 0x60)
                || bits(csr::SIP, 0x20)
                || bits(csr::HIP, 0x40)
                || bits(csr::VSIP, 0x20)
                || difference.ours ^ difference.theirs == 0x40
                    && number(difference) == Some(csr::HVIP)
                || causes(difference, ours, theirs, |left, right| {
                    is_timer(left) || is_timer(right)
                })
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "writes of vsie and vsip reach bits of hie and hip unshifted",
        section: "privileged specification, hypervisor extension, vsip and vsie: aliases of hip and \
            hie, one place lower",
        misleads: true,
        explains: |difference, ours, theirs| {
            let bits = |number, bits| only_bits(difference, number, bits);
            bits(csr::MIE, 0x444)
                || bits(csr::VSIE, 0x222)
                || bits(csr::MIP, 0x444)
                || bits(csr::HIP, 0x444)
                || bits(csr::VSIP, 0x222)
                || matches!(difference.place, Place::Integer(_))
                    && (difference.ours ^ difference.theirs) & !0x666 == 0
                || causes(difference, ours, theirs, |left, right| {
                    left != right && (left | right) >> 63 != 0
                })
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "a G-stage fault of an implicit access shows as a page fault",
        section: "privileged specification, hypervisor extension, two-stage address translation: \
            guest-page fault",
        misleads: true,
        explains: |difference, ours, theirs| {
            let shown = |left, right| matches!((left, right), (20, 12) | (21, 13) | (23, 15));
            causes(difference, ours, theirs, shown)
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "no fault for a reserved PBMT, for an A or D write to a read-only guest page, and where \
            HLV and HSV find A or D clear with henvcfg.ADUE clear",
        section: "privileged specification, \"Svpbmt\", hypervisor extension, \"Svadu\"",
        misleads: true,
        explains: |difference, ours, theirs| {
            let Place::Trap { trap, .. } = difference.place else {
                return false;
            };
            let ((_, cause, here), (_, _, there)) = (ours.trap(trap), theirs.trap(trap));
            matches!(cause, 12 | 13 | 15 | 20 | 21 | 23) && here != there
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "an AMO to nothing raises a fetch access fault",
        section: "unprivileged specification, \"A\": AMOs raise store exceptions",
        misleads: true,
        explains: |difference, ours, theirs| {
            causes(difference, ours, theirs, |left, right| {
                (left, right) == (7, 1)
            })
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "WFI in VS-mode with mstatus.TW and hstatus.VTW raises a virtual instruction",
        section: "privileged specification, hypervisor extension, hstatus: VTW counts while TW is 0",
        misleads: true,
        explains: |difference, ours, theirs| {
            causes(difference, ours, theirs, |left, right| {
                (left, right) == (2, 22)
            })
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "mstatus.TSR traps SRET in VS-mode",
        section: "privileged specification, hypervisor extension, mstatus: TSR affects HS-mode, \
            hstatus.VTSR VS-mode",
        misleads: true,
        explains: |difference, ours, theirs| {
            let Place::Trap { trap, .. } = difference.place else {
                return false;
            };
            let trapped = theirs.recorded(trap, csr::MSTATUS) >> 22 & 1 != 0;
            let ((_, _, here), (_, cause, there)) = (ours.trap(trap), theirs.trap(trap));
            trapped && cause == 2 && here != there
        },
    },
    Departure {
        oracle: Oracle::Qemu,
        name: "a store's page fault of the VS-stage shows as a guest-page fault",
        section: "privileged specification, hypervisor extension, two-stage address translation: \
            permissions of the VS-stage are checked before the G-stage is asked for the final address",
        misleads: true,
        explains: |difference, ours, theirs| {
            causes(difference, ours, theirs, |left, right| {
                (left, right) == (15, 23)
            })
        },
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
        let explains = |departure: &&Departure| {
            departure.oracle == oracle && (departure.explains)(difference, ours, theirs)
        };
        // What misleads explains all that comes after it.
        let misleading = ALL.iter().filter(|departure| departure.misleads);
        let harmless = ALL.iter().filter(|departure| !departure.misleads);
        match misleading.chain(harmless).find(explains) {
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
