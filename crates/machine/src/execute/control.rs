//! Jumps, branches and all else that ends a block.

use super::Exit;
use super::Mode;
use super::measure::{cost, predict};
use super::position::{Jump, Position, Step};
use crate::hart::{Hart, Trapped};
use crate::instruction::Operation;
use crate::system::System;
use crate::timing::Transfer;
use crate::zicsr::Next;

/// Jumps, and ends of blocks that no instruction makes.
#[inline(always)]
pub(super) fn jump<M: Mode>(hart: &mut Hart, system: &mut System, position: Position) -> Step {
    let target = || position.block().wrapping_add(position.immediate());
    match position.operation() {
        Operation::Stale => Step::Leave(Jump::unlinked(position.block(), 0)),
        Operation::Jal => {
            let (target, behind) = (target(), position.behind_jump());
            if M::TIMED {
                let call = is_link(position.rd()).then_some(behind);
                predict(hart, system, position, Transfer::Direct { target, call });
            }
            hart.x[position.rd()] = behind;
            position.linked(target, position.count())
        }
        Operation::Jump => {
            let target = target();
            if M::TIMED {
                let jump = Transfer::Direct { target, call: None };
                predict(hart, system, position, jump);
            }
            position.linked(target, position.count())
        }
        Operation::Jalr => {
            let target = hart.x[position.rs1()].wrapping_add(position.immediate()) & !1;
            if M::TIMED {
                predict(hart, system, position, indirect(position, target));
            }
            hart.x[position.rd()] = position.behind_jump();
            // By link registers and x7 go returns, direct calls and jumps that software guards.
            if hart.landing_pads != 0 && !matches!(position.rs1(), 1 | 5 | 7) {
                return expect_landing_pad(hart, position, target);
            }
            Step::Leave(Jump::unlinked(target, position.count()))
        }
        _ => position.linked(target(), position.count()),
    }
}

/// Ends the loop behind a jump that must lead to a landing pad: "Landing Pad (Zicfilp)".
#[cold]
fn expect_landing_pad(hart: &mut Hart, position: Position, target: u64) -> Step {
    position.retire_before(hart);
    hart.retired += 1;
    hart.cycles += 1;
    hart.pc = target;
    hart.expect_landing_pad();
    Step::End(Exit::Stop)
}

/// Tests whether a register holds return addresses by convention: unprivileged specification, "Unconditional Jumps".
const fn is_link(register: usize) -> bool {
    matches!(register, 1 | 5)
}

/// JALR as a predictor sees it. The same chapter has the table of what a return stack does.
#[inline(always)]
const fn indirect(position: Position, target: u64) -> Transfer {
    let (rd, rs1) = (position.rd(), position.rs1());
    Transfer::Indirect {
        target,
        call: if is_link(rd) {
            Some(position.behind_jump())
        } else {
            None
        },
        returns: is_link(rs1) && rd != rs1,
    }
}

/// Conditional branch on rs1 and rs2.
#[inline(always)]
pub(super) fn branch<M: Mode>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    condition: impl FnOnce(u64, u64) -> bool,
) -> Step {
    let taken = condition(hart.x[position.rs1()], hart.x[position.rs2()]);
    branch_if::<M>(hart, system, position, taken)
}

/// Conditional branch on rs1 alone: C.BEQZ, C.BNEZ and comparisons with x0.
#[inline(always)]
pub(super) fn branch_zero<M: Mode>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    condition: impl FnOnce(u64) -> bool,
) -> Step {
    let taken = condition(hart.x[position.rs1()]);
    branch_if::<M>(hart, system, position, taken)
}

#[inline(always)]
fn branch_if<M: Mode>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    taken: bool,
) -> Step {
    let target = position.block().wrapping_add(position.immediate());
    if M::TIMED {
        let transfer = Transfer::Branch(taken.then_some(target));
        predict(hart, system, position, transfer);
    }
    if taken {
        position.linked(target, position.count())
    } else {
        Step::Next
    }
}

/// FENCE.I. Decoded instructions always agree with memory: it only costs.
#[inline(always)]
pub(super) fn fence_instructions<M: Mode>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
) -> Step {
    if M::TIMED {
        hart.cycles += cost(system, |costs| costs.fence_i);
        if let Some(timing) = &mut system.timing {
            timing.fence_instructions(hart.id);
        }
    }
    position.linked(position.behind(), position.count())
}

/// CSR and SYSTEM instructions. They may look at anything: the hart is brought up to date before them.
#[inline(always)]
pub(super) fn privileged<M: Mode>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
) -> Step {
    let encoding = position.field().cast_unsigned();
    let is_csr = position.operation() == Operation::Csr;
    let cost = if M::TIMED {
        cost(system, |costs| match is_csr {
            true => costs.csr,
            false => costs.of_system(encoding),
        })
    } else {
        0
    };
    hart.cycles += cost;
    position.retire_before(hart);
    hart.look_at_interrupts = true;
    let next = if is_csr {
        hart.execute_csr(encoding, system)
    } else {
        // HLV and HSV give way by the time at which they began. By the time at which they end, the hart that all
        // others wait for would wait as well.
        let horizon = hart.horizon;
        hart.horizon = horizon.saturating_add(cost);
        let next = hart.execute_system(encoding, system);
        hart.horizon = horizon;
        next
    };
    if M::TIMED && hart.yielded {
        // It is executed in the next turn, and charged then.
        hart.cycles -= cost;
    }
    proceed(hart, position, next)
}

#[inline(always)]
fn proceed(hart: &mut Hart, position: Position, next: Result<Next, Trapped>) -> Step {
    let Ok(next) = next else {
        return Step::End(Exit::Trap);
    };
    hart.retired += 1;
    hart.cycles += 1;
    match next {
        Next::Continue => {
            hart.pc = hart.pc.wrapping_add(4);
            position.linked(hart.pc, 0)
        }
        Next::Refetch => Step::Leave(Jump::unlinked(hart.pc, 0)),
        Next::Stop => Step::End(Exit::Stop),
    }
}
