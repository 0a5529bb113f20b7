//! The execution loop, from block to block.

use super::position::{Jump, Position, Step, index_of};
use super::step::step;
use super::translated::{After, enter_block, run_translated};
use super::{Exit, Mode};
use crate::base::PAGE_SHIFT;
use crate::hart::Hart;
use crate::instruction::{CodeIndex, Instruction, Site};
use crate::system::System;

/// Where the loop is.
struct Cursor {
    /// The next decoded instruction.
    at: *const Instruction,
    /// Virtual address of the first instruction of the block.
    block: u64,
    /// True if translated code may be entered before the next instruction: at the beginning of a block, and behind an instruction
    /// that it has left to this loop.
    pending: bool,
    /// True behind an instruction that translated code has left to this loop. It would leave the next one as well, if that is none of
    /// its own, so it is not entered for that. The beginning of a block is different: its fetch is measured there.
    inside: bool,
}

impl Cursor {
    /// Tests whether translated code is to be entered before the next instruction.
    #[inline(always)]
    const fn enters(&self) -> bool {
        // SAFETY: `at` points into a decoded block, all of which end with an operation that leaves the loop.
        self.pending && !(self.inside && unsafe { (*self.at).operation }.is_interpreted())
    }
}

/// Executes blocks until the limit of the hart's deadlines or something that the caller has to look after.
///
/// On return `pc`, `cycles` and `retired` are up to date.
pub fn execute<M: Mode>(hart: &mut Hart, system: &mut System) -> Exit {
    // The address of the decoded instructions does not change while the cache exists.
    let base = system.memory.code.base();
    // Translated code asks neither debuggers nor the checker of fences.
    let native = system.memory.code.is_translated()
        && hart.stops.is_none()
        && hart.shadow.is_none()
        && !hart.watched;
    let mut cursor = Cursor {
        at: base,
        block: hart.pc,
        pending: true,
        inside: false,
    };
    let resumed = hart.resumed(system.memory.code.generation());
    hart.resume.pc = !0;
    // Where translated code is entered that has been left at the limit.
    let mut resume = resumed.site;
    resume = resume.filter(|&site| native && system.memory.code.is_current(site));
    if resume.is_none() {
        let first = if hart.watched {
            hart.watched_code(system)
        } else {
            hart.first_code(system, resumed.from)
        };
        let Ok(index) = first else {
            return Exit::Trap;
        };
        begin_block::<M>(hart, system, &mut cursor, (base, index), native);
    }
    loop {
        // A jump in translated code that wants to know where it leads.
        let mut site = None;
        let jump = loop {
            if cursor.enters() {
                let at = index_of(base, cursor.at);
                let after = run_translated::<M>(hart, system, (at, cursor.block), resume.take());
                match continue_after(&mut cursor, base, after, &mut site) {
                    Some(Step::Leave(jump)) => break jump,
                    Some(Step::End(exit)) => return exit,
                    _ => {}
                }
            }
            // SAFETY: `at` points into a decoded block, all of which end with an operation that
            // leaves the loop.
            let position = unsafe { Position::new(base, cursor.at, cursor.block) };
            // SAFETY: at most one past the last decoded instruction.
            cursor.at = unsafe { cursor.at.add(1) };
            match step::<M>(hart, system, position) {
                Step::Next => {}
                Step::Leave(jump) => break jump,
                Step::End(exit) => return exit,
            }
        };
        if let Err(exit) = follow::<M>(hart, system, &mut cursor, base, jump, native, site) {
            return exit;
        }
    }
}

/// Puts the loop at the start of a block.
#[inline(always)]
fn begin_block<M: Mode>(
    hart: &mut Hart,
    system: &mut System,
    cursor: &mut Cursor,
    (base, index): (*const Instruction, CodeIndex),
    native: bool,
) {
    // SAFETY: an index of a decoded instruction: indices are all forgotten when they lose their meaning.
    cursor.at = unsafe { base.add(index as usize) };
    cursor.pending = native && enter_block(system, index, cursor.block);
    cursor.inside = false;
    if M::TIMED && !cursor.pending {
        let offset = system.memory.code.offset_of(index);
        hart.measure_fetch(system, offset, cursor.block);
    }
}

/// Takes over from translated code; gives how the loop goes on if not with the instruction at the cursor.
#[inline(always)]
fn continue_after(
    cursor: &mut Cursor,
    base: *const Instruction,
    after: After,
    site: &mut Option<Site>,
) -> Option<Step> {
    match after {
        After::Instruction { at, block, pending } => {
            // SAFETY: a decoded instruction of the block.
            let at = unsafe { base.add(at as usize) };
            *cursor = Cursor {
                at,
                block,
                pending,
                inside: pending,
            };
            None
        }
        After::Target { target, from: None } => Some(Step::Leave(Jump::unlinked(target, 0))),
        After::Target {
            target,
            from: Some((index, wanted)),
        } => {
            *site = Some(wanted);
            // SAFETY: as above.
            let from = unsafe { base.add(index as usize) };
            // The translation's block is not known here any more, but the jump stays in its page.
            cursor.block = target;
            Some(Step::Leave(Jump {
                target,
                count: 0,
                // SAFETY: as above.
                link: unsafe { (*from).link },
                from,
            }))
        }
        After::Limit => Some(Step::End(Exit::Limit)),
    }
}

/// Retires a block and goes to the next one.
#[inline(always)]
fn follow<M: Mode>(
    hart: &mut Hart,
    system: &mut System,
    cursor: &mut Cursor,
    base: *const Instruction,
    jump: Jump,
    native: bool,
    site: Option<Site>,
) -> Result<(), Exit> {
    let Jump {
        target,
        count,
        link,
        from,
    } = jump;
    hart.retired += u64::from(count);
    hart.cycles += u64::from(count);
    let linkable = !from.is_null() && target >> PAGE_SHIFT == cursor.block >> PAGE_SHIFT;
    let from = if linkable { index_of(base, from) } else { 0 };
    if hart.cycles >= hart.deadlines.limit() {
        hart.pc = target;
        hart.resume_from(from, None);
        return Err(Exit::Limit);
    }
    let index = match link {
        0 => match hart.chase(system, from, cursor.block, target) {
            Ok(index) => index,
            Err(_) => return Err(Exit::Trap),
        },
        link => link,
    };
    cursor.block = target;
    begin_block::<M>(hart, system, cursor, (base, index), native);
    if let Some(site) = site.filter(|_| native) {
        system.memory.code.connect(site, index);
    }
    Ok(())
}
