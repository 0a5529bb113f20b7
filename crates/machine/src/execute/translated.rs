//! From the execution loop into translated code, and back.

use super::Mode;
use crate::hart::Hart;
use crate::instruction::{CodeIndex, Site};
use crate::native::{FilterTables, Left};
use crate::system::System;

/// How the execution loop goes on after translated code. `block` is the block's virtual address.
pub(super) enum After {
    /// It executes an instruction itself.
    Instruction {
        at: CodeIndex,
        block: u64,
        /// True if translated code may go on behind it.
        pending: bool,
    },
    /// It goes to an address.
    Target {
        target: u64,
        /// The jump that leads there, if it stays in its page, and its place in translated code.
        from: Option<(CodeIndex, Site)>,
    },
    /// It ends: the hart's limit is reached, and all is noted.
    Limit,
}

/// Executes translated code from the decoded instruction `at` on, or where it was left at a limit.
#[inline(always)]
pub(super) fn run_translated<M: Mode>(
    hart: &mut Hart,
    system: &mut System,
    (mut at, mut block): (CodeIndex, u64),
    mut resume: Option<Site>,
) -> After {
    loop {
        let filters = match &mut system.timing {
            Some(timing) if M::TIMED => timing.tables(hart.id, hart.tlb.epoch()),
            _ => FilterTables::NONE,
        };
        let (code, ram) = (&system.memory.code, &system.memory.ram);
        // SAFETY: the filters are the hart's, and nothing else looks at them until this comes back.
        let left = unsafe {
            match resume.take() {
                None => code.run(hart, ram, filters, at, block),
                Some(site) => code
                    .resume(hart, ram, filters, site, block)
                    .or(Some(Left::Behind {
                        target: block,
                        from: None,
                    })),
            }
        };
        let mut pending = true;
        match left {
            None => pending = false,
            Some(Left::Before {
                at: index,
                block: own,
            }) => (at, block) = (index, own),
            Some(Left::Outside {
                at: index,
                block: own,
                offset,
            }) => {
                (at, block) = (index, own);
                if M::TIMED && hart.measure_fetch(system, offset, block) {
                    // Charged for now: the translation goes on.
                    continue;
                }
            }
            Some(Left::Behind { target, from }) => return After::Target { target, from },
            Some(Left::Limit { target, from, site }) => {
                hart.pc = target;
                hart.resume_from(from, Some(site));
                return After::Limit;
            }
        }
        return After::Instruction { at, block, pending };
    }
}

/// Notes that a block is executed; says whether it is translated. In the timing mode the translation asks
/// the filter for the block's fetch itself.
#[inline]
pub(super) fn enter_block(system: &mut System, index: CodeIndex, block: u64) -> bool {
    let base = system.memory.ram.base();
    system.memory.code.warm(index, block, base)
}
