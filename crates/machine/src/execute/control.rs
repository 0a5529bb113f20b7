//! Jumps, branches and all else that ends a block.

use super::Exit;
use super::Mode;
use super::measure::cost;
use super::position::{Jump, Position, Step};
use crate::hart::{Hart, Trapped};
use crate::instruction::Operation;
use crate::system::System;
use crate::zicsr::Next;

/// Jumps, and ends of blocks that no instruction makes.
#[inline(always)]
pub(super) fn jump(hart: &mut Hart, position: Position) -> Step {
    let target = || position.block().wrapping_add(position.immediate());
    match position.operation() {
        Operation::Stale => Step::Leave(Jump::unlinked(position.block(), 0)),
        Operation::Jal => {
            hart.x[position.rd()] = position.behind_jump();
            position.linked(target(), position.count())
        }
        Operation::Jalr => {
            let target = hart.x[position.rs1()].wrapping_add(position.immediate()) & !1;
            hart.x[position.rd()] = position.behind_jump();
            Step::Leave(Jump::unlinked(target, position.count()))
        }
        _ => position.linked(target(), position.count()),
    }
}

/// Conditional branch on rs1 and rs2.
#[inline(always)]
pub(super) fn branch(
    hart: &Hart,
    position: Position,
    condition: impl FnOnce(u64, u64) -> bool,
) -> Step {
    if condition(hart.x[position.rs1()], hart.x[position.rs2()]) {
        let target = position.block().wrapping_add(position.immediate());
        position.linked(target, position.count())
    } else {
        Step::Next
    }
}

/// Conditional branch on rs1 alone: C.BEQZ, C.BNEZ and comparisons with x0.
#[inline(always)]
pub(super) fn branch_zero(
    hart: &Hart,
    position: Position,
    condition: impl FnOnce(u64) -> bool,
) -> Step {
    if condition(hart.x[position.rs1()]) {
        let target = position.block().wrapping_add(position.immediate());
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
