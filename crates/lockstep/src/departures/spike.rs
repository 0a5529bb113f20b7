//! Spike.

use super::departure::{
    DEADLINE, Departure, ENDLESS_LOOP, RESERVATION_WAIT, TIMER_DUE, TWO_WIDTHS,
};
use super::instruction::Instruction;
use super::seen::{CLEAN, FLOAT, Seen, is_timer};
use crate::compare::Place;
use crate::csr;
use crate::layout::PAGE;

pub(super) const ALL: &[Departure] = &[
    Departure {
        name: "a misaligned atomic access raises an access fault",
        section: "a choice: unprivileged specification, \"A\": address-misaligned or access fault",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| {
                instruction.is_atomic()
                    && matches!((left, right), (4, 5 | 13 | 21) | (6, 7 | 15 | 23))
            })
        },
    },
    Departure {
        name: "FS becomes Dirty by flags that are set already",
        section: "a choice: privileged specification, extension context status: FS may be Dirty \
            where nothing has changed",
        misleads: false,
        explains: |seen| seen.status(FLOAT) && seen.difference.theirs & FLOAT == FLOAT,
    },
    // The same choice, once the lower bit of FS has been cleared: Dirty has become Clean there, and Initial has become Off here.
    Departure {
        name: "FS is Clean where it is Off here, as it had become Dirty by flags that were set already",
        section: "a choice: privileged specification, extension context status: FS may be Dirty \
            where nothing has changed",
        misleads: false,
        explains: |seen| {
            seen.status(FLOAT)
                && (seen.difference.ours & FLOAT, seen.difference.theirs & FLOAT) == (0, CLEAN)
                && seen.has(Instruction::clears_bits_of_status)
        },
    },
    Departure {
        name: "a floating-point instruction goes on where FS is Clean and Off here",
        section: "a choice: privileged specification, extension context status: FS may be Dirty \
            where nothing has changed",
        misleads: true,
        explains: |seen| {
            seen.only_ours(|cause, instruction| cause == 2 && instruction.needs_float())
                && seen.has(Instruction::clears_bits_of_status)
        },
    },
    RESERVATION_WAIT,
    ENDLESS_LOOP,
    TIMER_DUE,
    DEADLINE,
    TWO_WIDTHS,
    Departure {
        name: "vector arithmetic whose vstart is not zero raises an illegal instruction",
        section: "a choice: unprivileged specification, \"V\", \"Vector Start Index (vstart) Register\": values that an \
            implementation never produces for the instruction may be refused",
        misleads: true,
        explains: |seen| {
            seen.only_theirs(|cause, instruction| cause == 2 && instruction.is_vector_arithmetic())
        },
    },
    Departure {
        name: "VSETVLI and VSETVL of x0 and x0 set vill where they change VLMAX",
        section: "a choice: unprivileged specification, \"V\", \"AVL encoding\": reserved, vill may be set",
        misleads: true,
        explains: |seen| {
            let is_refused =
                |cause, instruction: Instruction| cause == 2 && instruction.is_vector();
            seen.has(Instruction::keeps_vector_length)
                && (seen.only_theirs(is_refused)
                    || seen.both(|left, right, instruction| {
                        left != 2 && is_refused(right, instruction)
                    })
                    || seen.number() == Some(csr::VTYPE) && seen.difference.theirs >> 63 != 0)
        },
    },
    Departure {
        name: "cache-block management that neither a load nor a store may do fails as the load does",
        section: "a choice: unprivileged specification, \"CMO\": a store's page fault, guest-page \
            fault or access fault",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| {
                instruction.is_cache_management() && matches!((left, right), (15, 23 | 7) | (23, 7))
            })
        },
    },
    Departure {
        name: "a store across pages that faults has stored its first part",
        section: "a choice: unprivileged specification, \"Load and Store Instructions\": misaligned \
            stores need not be atomic",
        misleads: false,
        explains: |seen| matches!(seen.difference.place, Place::Memory(offset) if offset % PAGE == PAGE - 8),
    },
    Departure {
        name: "cache-block management looks at one byte of the block for memory protection",
        section: "unprivileged specification, \"CMO\": an access fault where an access to any of the \
            block's addresses is not permitted",
        misleads: true,
        explains: |seen| {
            seen.only_ours(|cause, instruction| cause == 7 && instruction.is_cache_management())
                && seen.program.is_protected()
        },
    },
    Departure {
        name: "a timer that is due interrupts late",
        section: "a choice: Sstc: changes of the comparison need not show at once",
        misleads: true,
        explains: timer,
    },
    Departure {
        name: "a cache-block instruction's fault names the block's start, or the address given",
        section: "a choice: unprivileged specification, \"CMO\": any address of the block",
        misleads: false,
        explains: |seen| seen.is_in_block(),
    },
];

fn timer(seen: &Seen<'_>) -> bool {
    seen.traps()
        .is_some_and(|(left, right)| is_timer(left.cause) || is_timer(right.cause))
        || seen.is_read_of(&[csr::MIP, csr::SIP, csr::HIP, csr::VSIP], 0x60)
}
