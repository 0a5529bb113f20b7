//! QEMU 10.0.

use super::departure::{
    DEADLINE, Departure, ENDLESS_LOOP, RESERVATION_WAIT, TIMER_DUE, TWO_WIDTHS,
};
use super::instruction::Instruction;
use super::seen::{FLOAT, VECTORS, is_timer};
use crate::assembler::MRET;
use crate::compare::Place;
use crate::csr;
use crate::layout;

pub(super) const ALL: &[Departure] = &[
    Departure {
        name: "hvip shows bits of mip",
        section: "privileged specification, hypervisor extension, hvip: only VSSIP, VSTIP and \
            VSEIP are writable, the others read-only zero",
        misleads: false,
        explains: |seen| seen.number() == Some(csr::HVIP) || seen.is_read_of(&[csr::HVIP], !0x404),
    },
    Departure {
        name: "FS does not become Dirty by flags of instructions that write an integer register",
        section: "privileged specification, extension context status: FS is Dirty once fcsr has \
            changed",
        misleads: false,
        explains: |seen| seen.status(FLOAT) && seen.difference.ours & FLOAT == FLOAT,
    },
    Departure {
        name: "FS that did not become Dirty is Off once one of its bits is cleared",
        section: "privileged specification, extension context status: FS is Dirty once fcsr has \
            changed",
        misleads: true,
        explains: |seen| {
            seen.status(FLOAT)
                && seen.difference.ours & FLOAT != 0
                && seen.difference.theirs & FLOAT == 0
        },
    },
    Departure {
        name: "GVA is left from an earlier trap, and not set by faults of HLV and HSV",
        section: "privileged specification, hypervisor extension, mstatus and hstatus: GVA is \
            written by every trap, and set if a guest virtual address is written to the trap value",
        misleads: false,
        explains: |seen| {
            seen.only(csr::MSTATUS, 1 << 38 | FLOAT)
                || seen.is_read_of(&[csr::MSTATUS], 1 << 38 | FLOAT)
                || seen.only(csr::HSTATUS, 1 << 6)
                || seen.is_read_of(&[csr::HSTATUS], 1 << 6)
        },
    },
    Departure {
        name: "VS does not become Dirty by vector instructions that change nothing",
        section: "a choice: privileged specification, extension context status: VS may become Dirty at any time",
        misleads: false,
        // FS and GVA have departures of their own, and may differ at the same time.
        explains: |seen| {
            seen.status(VECTORS | FLOAT | 1 << 38)
                && seen.bits() & VECTORS != 0
                && seen.difference.ours & VECTORS == VECTORS
        },
    },
    Departure {
        name: "an assertion ends QEMU at a whole-register load or store whose vstart is beyond the last element",
        section: "unprivileged specification, \"V\", \"Vector Load/Store Whole Register Instructions\": if vstart is at \
            least evl, no element is moved",
        misleads: true,
        explains: |seen| {
            seen.difference.place == Place::End
                && seen.difference.theirs == 0
                && seen.has(Instruction::is_whole_register_transfer)
        },
    },
    Departure {
        name: "a vector load or store looks at memory protection once a page",
        section: "privileged specification, \"Physical Memory Protection\", \"Priority and Matching Logic\": an access fails \
            unless its own bytes are permitted",
        misleads: true,
        explains: |seen| {
            seen.program.is_protected()
                && seen.only_ours(|cause, instruction| {
                    matches!(cause, 5 | 7) && instruction.is_vector()
                })
        },
    },
    Departure {
        name: "a fault-only-first load makes vl smaller without a fault",
        section: "a choice: unprivileged specification, \"V\", \"Unit-stride Fault-Only-First Loads\": fewer elements may \
            be processed, but one",
        misleads: true,
        explains: |seen| {
            let (ours, theirs) = (seen.ours.left(csr::VL), seen.theirs.left(csr::VL));
            // vl may have been set again since: what is protected is known before.
            let is_smaller = (1..ours).contains(&theirs) || seen.program.is_protected();
            is_smaller && seen.has(Instruction::is_fault_only_first)
        },
    },
    Departure {
        name: "a fault-only-first load that faults at its first element has made vl smaller",
        section: "unprivileged specification, \"V\", \"Unit-stride Fault-Only-First Loads\": if element 0 raises an \
            exception, vl is not modified",
        misleads: true,
        explains: |seen| {
            seen.both_trapped_before(|cause, instruction| {
                matches!(cause, 5 | 13 | 21) && instruction.is_fault_only_first()
            })
        },
    },
    Departure {
        name: "a masked fault-only-first load faults at the page of an element that is not active",
        section: "unprivileged specification, \"V\", \"Vector Masking\": inactive elements raise no exception",
        misleads: true,
        explains: |seen| {
            seen.only_theirs(|cause, instruction| {
                matches!(cause, 5 | 13 | 21) && instruction.is_masked_fault_only_first()
            })
        },
    },
    Departure {
        name: "a vector's offsets lead to devices that only the other board has",
        section: "a choice of the platform: privileged specification, \"Physical Memory Attributes\": vacant regions",
        misleads: true,
        explains: |seen| seen.leads_to_device(),
    },
    Departure {
        name: "VZEXT and VSEXT read a source whose EMUL is below an eighth",
        section: "unprivileged specification, \"V\", \"Vector Integer Extension\": encodings whose source EMUL is below the \
            least LMUL are reserved",
        misleads: true,
        explains: |seen| {
            seen.only_ours(|cause, instruction| cause == 2 && instruction.is_integer_extension())
        },
    },
    TWO_WIDTHS,
    Departure {
        name: "htinst ignores writes",
        section: "privileged specification, hypervisor extension, htinst: WARL, holds what a trap \
            may write",
        misleads: false,
        explains: |seen| seen.number() == Some(csr::HTINST) && !seen.is_guest_page_fault(),
    },
    Departure {
        name: "mtval2 and htval are written by traps other than guest-page faults",
        section: "privileged specification, hypervisor extension, htval and mtval2: zero but for \
            guest-page faults",
        misleads: false,
        explains: |seen| {
            matches!(seen.number(), Some(csr::MTVAL2 | csr::HTVAL)) && !seen.is_guest_page_fault()
                || seen.is_read_of(&[csr::MTVAL2, csr::HTVAL], u64::MAX)
        },
    },
    Departure {
        name: "sepc and vsepc hold bit 0",
        section: "privileged specification, sepc: the low bit is always zero",
        misleads: false,
        explains: |seen| {
            seen.only(csr::SEPC, 1)
                || seen.only(csr::VSEPC, 1)
                || seen.is_read_of(&[csr::SEPC, csr::VSEPC], 1)
        },
    },
    Departure {
        name: "CSRs of supervisors raise an illegal instruction in VU-mode",
        section: "privileged specification, hypervisor extension, virtual-instruction exception",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| (left, right) == (22, 2) && instruction.is_csr())
        },
    },
    Departure {
        name: "after AMOCAS into x0 a zero is what was loaded, to the end of the translated block",
        section: "unprivileged specification, \"Programmers' Model for Base Integer ISA\": x0 is hardwired to zero",
        misleads: true,
        explains: |seen| {
            matches!(seen.difference.place, Place::Integer(_))
                && (seen.difference.ours == 0 || seen.is_constant())
                && seen.has(Instruction::is_swap_into_zero)
        },
    },
    Departure {
        name: "HLVX is checked as a fetch",
        section: "privileged specification, hypervisor extension, HLVX: faults are those \
            of loads, and memory protection has to permit a load and a fetch",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| {
                instruction.is_guest_fetch()
                    && matches!((left, right), (13 | 21, 12) | (5, 1) | (21, 20))
            }) || seen.only_theirs(|cause, instruction| {
                instruction.is_guest_fetch() && matches!(cause, 1 | 12 | 20)
            }) || seen.only_ours(|cause, instruction| {
                cause == 5 && instruction.is_guest_fetch() && seen.program.is_protected()
            })
        },
    },
    Departure {
        name: "a misaligned AMO raises a load's exception",
        section: "unprivileged specification, \"A\": AMOs raise store exceptions",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| (left, right) == (6, 4) && instruction.is_atomic())
        },
    },
    Departure {
        name: "an AMO to nothing raises a fetch access fault",
        section: "unprivileged specification, \"A\": AMOs raise store exceptions",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| (left, right) == (7, 1) && instruction.is_atomic())
        },
    },
    Departure {
        name: "an AMO to a page that is not writable, of memory that is not there, raises an access \
            fault",
        section: "privileged specification, \"Virtual Address Translation Process\": page faults \
            come before what the physical address leads to",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| {
                matches!((left, right), (15 | 23, 7)) && instruction.is_atomic()
            })
        },
    },
    RESERVATION_WAIT,
    ENDLESS_LOOP,
    TIMER_DUE,
    DEADLINE,
    Departure {
        name: "SFENCE.W.INVAL and SFENCE.INVAL.IR do nothing in U-mode and VU-mode",
        section: "privileged specification, \"Svinval\": they raise exceptions in U-mode and VU-mode",
        misleads: true,
        explains: |seen| {
            seen.only_ours(|cause, instruction| {
                matches!(cause, 2 | 22) && instruction.is_invalidation_order()
            })
        },
    },
    Departure {
        name: "A is set by an access that is misaligned",
        section: "a choice: privileged specification, \"Virtual Address Translation Process\": A \
            may be set speculatively",
        misleads: false,
        explains: |seen| {
            matches!(seen.difference.place, Place::Memory(offset) if offset >= layout::FIRST_TABLES)
                && seen.difference.ours | 1 << 6 == seen.difference.theirs
        },
    },
    Departure {
        name: "CBO.CLEAN and CBO.FLUSH name the block's start in a fault",
        section: "a choice: unprivileged specification, \"CMO\": any address of the block",
        misleads: false,
        explains: |seen| seen.is_in_block(),
    },
    Departure {
        name: "CBO.INVAL, CBO.CLEAN and CBO.FLUSH of memory that is not there raise nothing",
        section: "unprivileged specification, \"CMO\": an access fault where neither a load nor a \
            store is permitted by the physical memory attributes",
        misleads: true,
        explains: |seen| {
            seen.only_ours(|cause, instruction| cause == 7 && instruction.is_cache_management())
        },
    },
    Departure {
        name: "the trap value of an illegal MRET is another instruction's",
        section: "privileged specification, mtval: zero or the instruction's bits",
        misleads: false,
        explains: |seen| {
            seen.recorded()
                .is_some_and(|(cause, instruction)| cause == 2 && instruction.0 == MRET)
        },
    },
    Departure {
        name: "the timers overwrite STIP of mip and VSTIP of hvip",
        section: "Sstc: STIP is the comparison or, with STCE clear, what was written; VSTIP is the \
            comparison or hvip.VSTIP",
        misleads: true,
        explains: |seen| {
            seen.only(csr::MIP, 0x60)
                || seen.only(csr::SIP, 0x20)
                || seen.only(csr::HIP, 0x40)
                || seen.only(csr::VSIP, 0x20)
                || seen.bits() == 0x40 && seen.number() == Some(csr::HVIP)
                || seen.is_read_of(&[csr::MIP, csr::SIP, csr::HIP, csr::VSIP], 0x60)
                || seen
                    .traps()
                    .is_some_and(|(left, right)| is_timer(left.cause) || is_timer(right.cause))
        },
    },
    Departure {
        name: "a timer that is due ends a WFI though STCE is clear",
        section: "Sstc: with menvcfg.STCE or henvcfg.STCE clear STIP or VSTIP is not the comparison",
        misleads: true,
        explains: |seen| {
            // Here M-mode's timer had to end it.
            seen.only(csr::MIP, 0xe0)
                && seen.difference.ours & 0x80 != 0
                && seen.program.has_timers_off()
        },
    },
    Departure {
        name: "writes of vsie and vsip reach bits of hie and hip unshifted",
        section: "privileged specification, hypervisor extension, vsip and vsie: aliases of hip and \
            hie, one place lower",
        misleads: true,
        explains: |seen| {
            const PENDING: [u16; 9] = [
                csr::MIE,
                csr::MIP,
                csr::HIE,
                csr::HIP,
                csr::SIE,
                csr::SIP,
                csr::VSIE,
                csr::VSIP,
                csr::HVIP,
            ];
            seen.only(csr::MIE, 0x444)
                || seen.only(csr::VSIE, 0x222)
                || seen.only(csr::MIP, 0x444)
                || seen.only(csr::HIP, 0x444)
                || seen.only(csr::VSIP, 0x222)
                || seen.is_read_of(&PENDING, 0x666)
                || seen.traps().is_some_and(|(left, right)| {
                    left.cause != right.cause && (left.cause | right.cause) >> 63 != 0
                })
        },
    },
    Departure {
        name: "a G-stage fault of an implicit access shows as a page fault",
        section: "privileged specification, hypervisor extension, two-stage address translation: \
            guest-page fault",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, _| matches!((left, right), (20, 12) | (21, 13) | (23, 15)))
        },
    },
    Departure {
        name: "no fault for a reserved PBMT",
        section: "privileged specification, \"Svpbmt\": the value 3 is reserved and faults",
        misleads: true,
        explains: |seen| {
            // What is there instead may be no memory.
            let refused =
                seen.both(|left, right, _| is_page_fault(left) && matches!(right, 1 | 5 | 7));
            (seen.only_ours(|cause, _| is_page_fault(cause)) || refused)
                && seen.program.has_flaw("PBMT")
        },
    },
    Departure {
        name: "no fault for an A or D write to a guest page that is read-only",
        section: "privileged specification, hypervisor extension, two-stage address translation: \
            implicit writes of the VS-stage need the G-stage's permission",
        misleads: true,
        explains: |seen| {
            seen.only_ours(|cause, _| matches!(cause, 20 | 21 | 23))
                || seen.implicit() == Some(0x3020)
        },
    },
    Departure {
        name: "implicit writes of A and D do not set D of the guest page",
        section: "privileged specification, hypervisor extension, two-stage address translation: \
            implicit writes are stores for the G-stage",
        misleads: false,
        explains: |seen| {
            matches!(seen.difference.place, Place::Memory(offset) if offset >= layout::GUEST_TABLES)
                && seen.difference.theirs | 1 << 7 == seen.difference.ours
        },
    },
    Departure {
        name: "an AMO that a guest-page fault ends does not set D of the VS-stage",
        section: "privileged specification, hypervisor extension, two-stage address translation: the \
            VS-stage is complete, with D, before the G-stage is asked for the final address",
        misleads: false,
        explains: |seen| {
            let is_table = |offset| (layout::FIRST_TABLES..layout::GUEST_TABLES).contains(&offset);
            matches!(seen.difference.place, Place::Memory(offset) if is_table(offset))
                && seen.difference.theirs | 1 << 7 == seen.difference.ours
                && seen.has(Instruction::is_atomic)
        },
    },
    Departure {
        name: "MXR lets page tables be read from guest pages that are execute-only",
        section: "privileged specification, hypervisor extension, vsstatus and sstatus: MXR concerns \
            explicit loads",
        misleads: true,
        explains: |seen| seen.implicit() == Some(0x3000) && seen.program.has_flaw("execute only"),
    },
    Departure {
        name: "HLV and HSV set A and D though henvcfg.ADUE is clear",
        section: "privileged specification, \"Svadu\": henvcfg.ADUE controls the VS-stage",
        misleads: true,
        explains: |seen| {
            seen.only_ours(|cause, instruction| {
                is_page_fault(cause) && instruction.is_guest_access()
            })
        },
    },
    Departure {
        name: "WFI in VS-mode with mstatus.TW and hstatus.VTW raises a virtual instruction",
        section: "privileged specification, hypervisor extension, hstatus: VTW counts while TW is 0",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| (left, right) == (2, 22) && instruction.is_wait())
        },
    },
    Departure {
        name: "mstatus.TSR traps SRET in VS-mode",
        section: "privileged specification, hypervisor extension, mstatus: TSR affects HS-mode, \
            hstatus.VTSR VS-mode",
        misleads: true,
        explains: |seen| {
            let Place::Trap { trap, .. } = seen.difference.place else {
                return false;
            };
            let traps = seen.theirs.recorded(trap, csr::MSTATUS) >> 22 & 1 != 0;
            let instead = seen.both(|left, right, instruction| {
                (left, right) == (22, 2) && instruction.is_supervisor_return()
            });
            traps
                && (instead
                    || seen.only_theirs(|cause, instruction| {
                        cause == 2 && instruction.is_supervisor_return()
                    }))
        },
    },
    Departure {
        name: "henvcfg with mstateen0.ENVCFG clear raises a virtual instruction in VS-mode",
        section: "privileged specification, \"Smstateen\": an illegal instruction where mstateen0 \
            forbids the access",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| {
                (left, right) == (2, 22)
                    && instruction
                        .csr()
                        .is_some_and(|(_, number)| number == csr::HENVCFG)
            })
        },
    },
    Departure {
        name: "a page fault of the VS-stage shows as a guest-page fault",
        section: "privileged specification, hypervisor extension, two-stage address translation: \
            permissions of the VS-stage are checked before the G-stage is asked for the final address",
        misleads: true,
        explains: |seen| seen.both(|left, right, _| matches!((left, right), (13, 21) | (15, 23))),
    },
    Departure {
        name: "vsstatus.SD does not follow FS",
        section: "privileged specification, hypervisor extension, vsstatus: SD summarises FS, VS \
            and XS of vsstatus",
        misleads: false,
        explains: |seen| {
            // Once it is read, it may be moved on.
            let reads = |instruction: Instruction| {
                matches!(instruction.csr(), Some((_, csr::VSSTATUS | csr::SSTATUS)))
            };
            let moved = matches!(
                seen.difference.place,
                Place::Integer(_) | Place::Float(_) | Place::Memory(_)
            );
            seen.only(csr::VSSTATUS, 1 << 63) || moved && seen.bits() == 1 << 63 && seen.has(reads)
        },
    },
    Departure {
        name: "A and D are written to page tables that PMP makes read-only",
        section: "privileged specification, \"Physical Memory Protection\" and \"Svadu\": an access \
            fault where PMP forbids the write of a page table entry",
        misleads: true,
        explains: |seen| {
            seen.only_ours(|cause, _| matches!(cause, 1 | 5 | 7)) && seen.program.protects_tables()
        },
    },
];

const fn is_page_fault(cause: u64) -> bool {
    matches!(cause, 12 | 13 | 15 | 20 | 21 | 23)
}
