//! QEMU 10.0 in landing pads and shadow stacks.

use super::departure::Departure;
use super::instruction::Instruction;
use super::seen::{FLOAT, Seen, VECTORS};
use crate::compare::Place;
use crate::csr;
use riscv::exception::SOFTWARE_CHECK;

/// SSE of menvcfg, henvcfg and senvcfg.
const SSE: u64 = 1 << 3;
/// GVA of mstatus.
const GVA: u64 = 1 << 38;
/// SPELP and MPELP.
const LANDING_PADS: u64 = 1 << 23 | 1 << 41;
/// Bits of ssp that are zero where XLEN is never 32.
const MISALIGNED: u64 = 7;

/// Faults of shadow stack instructions: store faults of all kinds, and the software check.
const fn is_shadow_fault(cause: u64) -> bool {
    matches!(cause, 7 | 15 | 18 | 23)
}

/// Tests whether senvcfg.SSE is set there and cannot be here.
fn has_enabled_more(seen: &Seen<'_>) -> bool {
    let here = seen.ours.left(csr::MENVCFG) & seen.ours.left(csr::HENVCFG) & SSE;
    here == 0 && seen.theirs.left(csr::SENVCFG) & SSE != 0
}

/// Tests whether a leaf of the first stage permits to write but not to read.
fn has_shadow_pages(seen: &Seen<'_>) -> bool {
    seen.program.has_flaw("W without R")
}

/// Tests whether an integer register has ssp there by SSRDP.
fn is_shadow_pointer(seen: &Seen<'_>) -> bool {
    let Place::Integer(register) = seen.difference.place else {
        return false;
    };
    seen.has(|instruction| {
        instruction.is_shadow_pointer_read() && (instruction.0 >> 7 & 31) as usize == register
    })
}

pub(super) const ALL: &[Departure] = &[
    Departure {
        name: "senvcfg.SSE is writable where menvcfg.SSE is clear",
        section: "privileged specification, menvcfg: with SSE clear, henvcfg.SSE and senvcfg.SSE are read-only zero",
        misleads: false,
        explains: |seen| seen.only(csr::SENVCFG, SSE) || seen.is_read_of(&[csr::SENVCFG], SSE),
    },
    Departure {
        name: "senvcfg.SSE activates shadow stacks where menvcfg.SSE or henvcfg.SSE is clear",
        section: "privileged specification, menvcfg and henvcfg: with SSE clear, senvcfg.SSE is read-only zero, and shadow \
            stack instructions are may-be operations",
        misleads: true,
        explains: |seen| {
            let is_use = |instruction: Instruction| {
                instruction.is_shadow_stack()
                    || instruction.is_shadow_swap()
                    || instruction
                        .csr()
                        .is_some_and(|(_, number)| number == csr::SSP)
            };
            has_enabled_more(seen)
                && (seen.only_theirs(|cause, instruction| {
                    is_shadow_fault(cause) && is_use(instruction)
                }) || seen
                    .only_ours(|cause, instruction| matches!(cause, 2 | 22) && is_use(instruction))
                    || seen.both(|left, right, instruction| {
                        matches!(left, 2 | 22) && is_shadow_fault(right) && is_use(instruction)
                    })
                    || seen.difference.ours == 0 && is_shadow_pointer(seen)
                    || seen.number() == Some(csr::SSP)
                    || has_shadow_pages(seen)
                        && (seen.both(|left, right, _| (left, right) == (15, 7))
                            || seen.only_ours(|cause, _| cause == 13)))
        },
    },
    Departure {
        name: "pages of shadow stacks are reserved where the mode itself has no shadow stack",
        section: "privileged specification, \"Shadow Stack Memory Protection\": menvcfg.SSE and henvcfg.SSE alone decide, so \
            that M-mode, U-mode and VU-mode may load from them and stores raise access faults",
        misleads: true,
        explains: |seen| {
            has_shadow_pages(seen)
                && (seen.both(|left, right, _| (left, right) == (7, 15))
                    || seen.only_theirs(|cause, _| cause == 13))
        },
    },
    Departure {
        name: "a misaligned SSAMOSWAP raises an access fault",
        section: "a choice: unprivileged specification, \"Zicfiss\": the exceptions of AMOs, address-misaligned or access fault",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| {
                (left, right) == (6, 7) && instruction.is_shadow_swap()
            })
        },
    },
    Departure {
        name: "ssp holds its low bits",
        section: "unprivileged specification, \"Shadow Stack Pointer\": bits 1 and 0 are read-only zero, bit 2 too where \
            XLEN is never 32",
        misleads: true,
        explains: |seen| {
            let is_misaligned = || {
                seen.trap_values()
                    .is_some_and(|(_, theirs)| theirs & MISALIGNED != 0)
            };
            seen.only(csr::SSP, MISALIGNED)
                || seen.is_read_of(&[csr::SSP], MISALIGNED)
                || seen.bits() & !MISALIGNED == 0 && is_shadow_pointer(seen)
                || (seen
                    .only_theirs(|cause, instruction| cause == 7 && instruction.is_shadow_stack())
                    || seen
                        .both(|_, right, instruction| right == 7 && instruction.is_shadow_stack()))
                    && is_misaligned()
        },
    },
    Departure {
        name: "shadow stack instructions may access pages that are not a shadow stack's",
        section: "privileged specification, \"Shadow Stack Memory Protection\": a store access fault unless the page is a \
            shadow stack's or read-only",
        misleads: true,
        explains: |seen| {
            let is_access = |instruction: Instruction| {
                instruction.is_shadow_stack() || instruction.is_shadow_swap()
            };
            let goes_on = seen.traps().is_some_and(|(left, right)| right.at > left.at);
            goes_on && seen.only_ours(|cause, instruction| cause == 7 && is_access(instruction))
                || seen.both(|left, right, instruction| {
                    left == 7 && is_shadow_fault(right) && right != 7 && is_access(instruction)
                })
        },
    },
    Departure {
        name: "ssp and SSAMOSWAP raise an illegal instruction in VS-mode and VU-mode",
        section: "privileged specification, \"Shadow Stack Pointer (ssp) CSR access control\": a virtual-instruction exception \
            where only henvcfg.SSE or senvcfg.SSE is clear",
        misleads: true,
        explains: |seen| {
            seen.both(|left, right, instruction| {
                let is_pointer = |(_, number)| number == csr::SSP;
                (left, right) == (22, 2)
                    && (instruction.is_shadow_swap() || instruction.csr().is_some_and(is_pointer))
            })
        },
    },
    Departure {
        name: "the trap value of SSAMOSWAP in M-mode is another fault's",
        section: "privileged specification, mtval: zero or the faulting address",
        misleads: false,
        explains: |seen| {
            seen.recorded()
                .is_some_and(|(cause, instruction)| cause == 7 && instruction.is_shadow_swap())
        },
    },
    Departure {
        name: "SPELP and MPELP are left by traps from modes without landing pads, and VS-mode has mstatus.SPELP unless \
            henvcfg.LPE is set",
        section: "privileged specification, \"Preserving Expected Landing Pad State on Traps\": a trap writes ELP to xPELP; \
            hypervisor extension, vsstatus: VS-mode's sstatus is vsstatus",
        misleads: false,
        explains: |seen| {
            seen.bits() & LANDING_PADS != 0 && seen.status(LANDING_PADS | GVA | FLOAT | VECTORS)
        },
    },
    Departure {
        name: "xPELP that a trap has left makes a landing pad expected after the return",
        section: "privileged specification, \"Preserving Expected Landing Pad State on Traps\": a trap writes ELP to xPELP",
        misleads: true,
        explains: |seen| {
            let is_landing = |cause, instruction: Instruction| {
                cause == SOFTWARE_CHECK && !instruction.is_shadow_stack()
            };
            seen.only_theirs(is_landing) || seen.only_ours(is_landing)
        },
    },
    Departure {
        name: "the trap value of an illegal cache-block instruction that is a double trap is zero",
        section: "a choice: privileged specification, mtval: zero or the instruction's bits",
        misleads: false,
        explains: |seen| {
            seen.difference.theirs == 0
                && seen
                    .recorded()
                    .is_some_and(|(cause, instruction)| cause == 2 && instruction.is_cache_block())
        },
    },
];
