//! The execution loop.

use super::integer as int;
use super::position::{index_of, next_offset};
use super::translated::{After, enter_block, run_translated};
use super::{Exit, Gear};
use crate::base::PAGE_SHIFT;
use crate::code::CodeIndex;
use crate::hart::{Cause, Exception, Hart};
use crate::instruction::{FloatOperation, Instruction, Operation};
use crate::system::System;
use crate::zicsr::Next;

/// Sign-extends the low 32 bits.
#[inline(always)]
const fn word(value: u64) -> u64 {
    value as u32 as i32 as i64 as u64
}

/// Executes blocks until [`Hart::limit`] or something that the caller has to look after.
///
/// On return `pc`, `cycles` and `retired` are up to date.
pub fn execute<G: Gear>(hart: &mut Hart, system: &mut System) -> Exit {
    // The address of the decoded instructions does not change while the cache exists.
    let base = system.memory.code.base();
    // Virtual address of the first instruction of the block.
    let mut block = hart.pc;
    // Translated code asks neither debuggers nor the checker of fences.
    let native =
        system.memory.code.is_translated() && hart.stops.is_none() && hart.shadow.is_none();
    let resumed = hart.resumed(system.memory.code.generation());
    hart.resume.pc = !0;
    // Where translated code is entered that has been left at the limit.
    let mut resume = resumed.site;
    resume = resume.filter(|&site| native && system.memory.code.is_current(site));
    let mut at: *const Instruction = base;
    // Whether translated code may be entered before the next instruction: at the beginning of a block, and
    // behind an instruction that it has left to this loop.
    let mut pending = true;
    if resume.is_none() {
        let index = match hart.first_code(system, resumed.from) {
            Ok(index) => index,
            Err(_) => return Exit::Trap,
        };
        // SAFETY: an index of a decoded instruction.
        at = unsafe { base.add(index as usize) };
        pending = native && enter_block(system, index, block);
        if G::MEASURED && !pending {
            let offset = system.memory.code.offset_of(index);
            hart.measure_fetch(system, offset, block);
        }
    }
    loop {
        // A jump in translated code that wants to know where it leads.
        let mut site = None;
        // What the block leads to: target, instructions retired, link, and where the link stands.
        let (target, count, link, from): (u64, u8, CodeIndex, *const Instruction) = 'block: loop {
            if pending {
                match run_translated::<G>(hart, system, (index_of(base, at), block), resume.take())
                {
                    After::Instruction {
                        at: index,
                        block: own,
                        pending: more,
                    } => {
                        // SAFETY: a decoded instruction of the block.
                        at = unsafe { base.add(index as usize) };
                        (block, pending) = (own, more);
                    }
                    After::Target { target, from: None } => {
                        break 'block (target, 0, 0, std::ptr::null());
                    }
                    After::Target {
                        target,
                        from: Some((index, wanted)),
                    } => {
                        site = Some(wanted);
                        // SAFETY: as above.
                        let from = unsafe { base.add(index as usize) };
                        // The translation's block is not known here any more, but the jump stays in its page.
                        block = target;
                        // SAFETY: as above.
                        break 'block (target, 0, unsafe { (*from).link }, from);
                    }
                    After::Limit => return Exit::Limit,
                }
            }
            // SAFETY: `at` points into a decoded block, all of which end with an operation that
            // leaves the loop; what a store does to a block while it runs is to mark its first instruction.
            let operation = unsafe { (*at).operation };
            let here = at;
            // SAFETY: at most one past the last decoded instruction.
            at = unsafe { at.add(1) };

            // Operands are read where they are needed: few operations need all of them.
            macro_rules! field {
                ($name:ident) => {{
                    // SAFETY: as above.
                    unsafe { (*here).$name }
                }};
            }
            macro_rules! whole {
                () => {{
                    // SAFETY: as above.
                    unsafe { here.read() }
                }};
            }
            macro_rules! rs1 {
                () => {
                    hart.x[field!(rs1) as usize]
                };
            }
            macro_rules! rs2 {
                () => {
                    hart.x[field!(rs2) as usize]
                };
            }
            macro_rules! immediate {
                () => {
                    i64::from(field!(immediate)) as u64
                };
            }
            macro_rules! set {
                ($value:expr) => {{
                    let value = $value;
                    hart.x[field!(rd) as usize] = value;
                }};
            }
            // Looked for where they are needed: few of the instructions that come here cost more than a cycle.
            macro_rules! cost {
                ($cost:ident) => {
                    system
                        .timing
                        .as_ref()
                        .map_or(0, |timing| timing.costs.$cost)
                };
            }
            macro_rules! costly {
                ($cost:ident, $value:expr) => {{
                    if G::MEASURED {
                        hart.cycles += cost!($cost);
                    }
                    set!($value)
                }};
            }
            macro_rules! computed {
                () => {{
                    // SAFETY: as above.
                    let instruction = unsafe { &*here };
                    match int::computed(operation, &hart.x, instruction) {
                        Some(value) => value,
                        None => illegal!(),
                    }
                }};
            }
            macro_rules! trap {
                () => {{
                    let done = u64::from(field!(count)) - 1;
                    hart.retired += done;
                    hart.cycles += done;
                    hart.pc = block.wrapping_add(u64::from(field!(offset)));
                    return Exit::Trap;
                }};
            }
            macro_rules! illegal {
                () => {{
                    let raw = u64::from(field!(immediate).cast_unsigned());
                    hart.raise(Exception::new(Cause::IllegalInstruction, raw));
                    trap!();
                }};
            }
            // After a store of an instruction that is not the last of its block, which may have discarded the block.
            macro_rules! stored {
                ($outcome:expr) => {
                    match $outcome {
                        Ok(outcome) if outcome.discarded_current => {
                            let next = block.wrapping_add(next_offset(at));
                            break 'block (next, field!(count), 0, std::ptr::null());
                        }
                        Ok(_) => {}
                        Err(_) => trap!(),
                    }
                };
            }
            macro_rules! load_value {
                ($type:ty) => {{
                    let address = rs1!().wrapping_add(immediate!());
                    let entry = hart.tlb.load_entry(address);
                    if entry.serves::<$type>(address, hart.data_tag) {
                        let offset = entry.addend.wrapping_add(address);
                        if G::MEASURED {
                            let count = field!(count);
                            if hart
                                .measure_load::<$type>(system, address, offset, count)
                                .is_err()
                            {
                                trap!();
                            }
                        }
                        // SAFETY: entries lead to whole pages of RAM, and serve what is inside.
                        unsafe { system.memory.ram.read_unchecked::<$type>(offset) }
                    } else {
                        match hart.load_slow::<$type>(system, address, field!(count)) {
                            Ok(value) => value,
                            Err(_) => trap!(),
                        }
                    }
                }};
            }
            macro_rules! store_value {
                ($type:ty, $value:expr) => {{
                    let address = rs1!().wrapping_add(immediate!());
                    let value = $value as $type;
                    let entry = hart.tlb.store_entry(address);
                    if entry.serves::<$type>(address, hart.data_tag) {
                        let offset = entry.addend.wrapping_add(address);
                        if G::MEASURED {
                            let count = field!(count);
                            if hart
                                .measure_store::<$type>(system, address, offset, count)
                                .is_err()
                            {
                                trap!();
                            }
                        }
                        // SAFETY: entries lead to whole pages of RAM, and serve what is inside.
                        unsafe { system.memory.ram.write_unchecked::<$type>(offset, value) };
                    } else {
                        let current = index_of(base, here);
                        stored!(hart.store_slow::<$type>(
                            system,
                            address,
                            value,
                            field!(count),
                            current,
                        ))
                    }
                }};
            }
            macro_rules! branch {
                ($condition:expr) => {
                    if $condition {
                        break 'block (
                            block.wrapping_add(immediate!()),
                            field!(count),
                            field!(link),
                            here,
                        );
                    }
                };
            }
            macro_rules! require_float {
                () => {
                    if hart.float_off {
                        hart.illegal_at(system, block.wrapping_add(u64::from(field!(offset))));
                        trap!();
                    }
                };
            }
            // The instruction may look at anything: the hart is brought up to date before it.
            macro_rules! out_of_line {
                ($method:ident, $cost:expr) => {{
                    if G::MEASURED {
                        hart.cycles += $cost;
                    }
                    let done = u64::from(field!(count)) - 1;
                    hart.retired += done;
                    hart.cycles += done;
                    hart.pc = block.wrapping_add(u64::from(field!(offset)));
                    hart.look_at_interrupts = true;
                    match hart.$method(field!(immediate).cast_unsigned(), system) {
                        Ok(next) => {
                            hart.retired += 1;
                            hart.cycles += 1;
                            match next {
                                Next::Continue => {
                                    hart.pc = hart.pc.wrapping_add(4);
                                    break 'block (hart.pc, 0, field!(link), here);
                                }
                                Next::Refetch => {
                                    break 'block (hart.pc, 0, 0, std::ptr::null());
                                }
                                Next::Stop => return Exit::Stop,
                            }
                        }
                        Err(_) => return Exit::Trap,
                    }
                }};
            }

            match operation {
                Operation::Stale => {
                    break 'block (block, 0, 0, std::ptr::null());
                }
                Operation::Nop => {}
                Operation::Fence => {
                    if G::MEASURED {
                        hart.cycles += cost!(fence);
                    }
                }
                Operation::Pause => {
                    if G::MEASURED {
                        hart.cycles += cost!(pause);
                    }
                    if hart.events.is_some() {
                        let pc = block.wrapping_add(u64::from(field!(offset)));
                        hart.note_pause(system, pc, field!(count));
                    }
                    if hart.extension.pause.is_armed() && hart.pause(field!(count)).is_err() {
                        trap!();
                    }
                }
                Operation::LoadImmediate => set!(immediate!()),
                Operation::Move => set!(rs1!()),
                Operation::Auipc => {
                    set!(
                        block
                            .wrapping_add(u64::from(field!(offset)))
                            .wrapping_add(immediate!())
                    );
                }
                Operation::FallThrough | Operation::Jump => {
                    break 'block (
                        block.wrapping_add(immediate!()),
                        field!(count),
                        field!(link),
                        here,
                    );
                }
                Operation::Jal => {
                    let length = u64::from(field!(offset)) + u64::from(field!(rs2));
                    set!(block.wrapping_add(length));
                    break 'block (
                        block.wrapping_add(immediate!()),
                        field!(count),
                        field!(link),
                        here,
                    );
                }
                Operation::Jalr => {
                    let target = rs1!().wrapping_add(immediate!()) & !1;
                    let length = u64::from(field!(offset)) + u64::from(field!(rs2));
                    set!(block.wrapping_add(length));
                    break 'block (target, field!(count), 0, std::ptr::null());
                }
                Operation::Beq => branch!(rs1!() == rs2!()),
                Operation::Bne => branch!(rs1!() != rs2!()),
                Operation::Blt => branch!((rs1!() as i64) < rs2!() as i64),
                Operation::Bge => branch!(rs1!() as i64 >= rs2!() as i64),
                Operation::Bltu => branch!(rs1!() < rs2!()),
                Operation::Bgeu => branch!(rs1!() >= rs2!()),
                Operation::Beqz => branch!(rs1!() == 0),
                Operation::Bnez => branch!(rs1!() != 0),

                Operation::Lb => set!(load_value!(u8) as i8 as i64 as u64),
                Operation::Lh => set!(load_value!(u16) as i16 as i64 as u64),
                Operation::Lw => set!(load_value!(u32) as i32 as i64 as u64),
                Operation::Ld => set!(load_value!(u64)),
                Operation::Lbu => set!(u64::from(load_value!(u8))),
                Operation::Lhu => set!(u64::from(load_value!(u16))),
                Operation::Lwu => set!(u64::from(load_value!(u32))),
                Operation::Sb => store_value!(u8, rs2!()),
                Operation::Sh => store_value!(u16, rs2!()),
                Operation::Sw => store_value!(u32, rs2!()),
                Operation::Sd => store_value!(u64, rs2!()),
                Operation::Flh => {
                    require_float!();
                    let value = load_value!(u16);
                    hart.f[field!(rd) as usize] = u64::from(value) | 0xffff_ffff_ffff_0000;
                    hart.csrs.set_float_dirty(hart.mode().virtualized);
                }
                Operation::Flw => {
                    require_float!();
                    let value = load_value!(u32);
                    hart.f[field!(rd) as usize] = u64::from(value) | 0xffff_ffff_0000_0000;
                    hart.csrs.set_float_dirty(hart.mode().virtualized);
                }
                Operation::Fld => {
                    require_float!();
                    hart.f[field!(rd) as usize] = load_value!(u64);
                    hart.csrs.set_float_dirty(hart.mode().virtualized);
                }
                Operation::Fsh => {
                    require_float!();
                    store_value!(u16, hart.f[field!(rs2) as usize]);
                }
                Operation::Fsw => {
                    require_float!();
                    store_value!(u32, hart.f[field!(rs2) as usize]);
                }
                Operation::Fsd => {
                    require_float!();
                    store_value!(u64, hart.f[field!(rs2) as usize]);
                }

                Operation::Mul
                | Operation::Mulh
                | Operation::Mulhsu
                | Operation::Mulhu
                | Operation::Mulw => {
                    costly!(multiply, computed!())
                }
                Operation::Div
                | Operation::Divu
                | Operation::Rem
                | Operation::Remu
                | Operation::Divw
                | Operation::Divuw
                | Operation::Remw
                | Operation::Remuw => {
                    costly!(divide, computed!())
                }

                Operation::LrW => match hart.load_reserved::<u32>(system, whole!()) {
                    Ok(value) => set!(word(value)),
                    Err(_) => trap!(),
                },
                Operation::LrD => match hart.load_reserved::<u64>(system, whole!()) {
                    Ok(value) => set!(value),
                    Err(_) => trap!(),
                },
                Operation::ScW
                | Operation::ScD
                | Operation::AmoW
                | Operation::AmoD
                | Operation::AmoNarrow
                | Operation::CompareAndSwap => {
                    stored!(hart.atomic(system, whole!(), index_of(base, here)))
                }
                Operation::Float => {
                    if G::MEASURED {
                        let divides = FloatOperation::unpack(field!(immediate)).divides();
                        hart.cycles += if divides {
                            cost!(float_divide)
                        } else {
                            cost!(float)
                        };
                    }
                    if hart.float_off || hart.float(whole!()).is_err() {
                        hart.illegal_at(system, block.wrapping_add(u64::from(field!(offset))));
                        trap!();
                    }
                }
                Operation::CacheBlock => {
                    stored!(hart.cache_block(system, whole!(), index_of(base, here)))
                }
                Operation::FenceI => {
                    // Decoded instructions always agree with memory.
                    if G::MEASURED {
                        hart.cycles += cost!(fence_i);
                        if let Some(timing) = &mut system.timing {
                            timing.fence_instructions(hart.id);
                        }
                    }
                    let next = block.wrapping_add(u64::from(field!(offset)) + 4);
                    break 'block (next, field!(count), field!(link), here);
                }
                Operation::Csr => out_of_line!(execute_csr, cost!(csr)),
                Operation::System => {
                    out_of_line!(
                        execute_system,
                        system.timing.as_ref().map_or(0, |timing| {
                            timing.costs.of_system(field!(immediate).cast_unsigned())
                        })
                    )
                }
                Operation::Illegal => illegal!(),
                // All that is left only computes.
                _ => set!(computed!()),
            }
        };

        hart.retired += u64::from(count);
        hart.cycles += u64::from(count);
        let linkable = !from.is_null() && target >> PAGE_SHIFT == block >> PAGE_SHIFT;
        let from = if linkable { index_of(base, from) } else { 0 };
        if hart.cycles >= hart.limit {
            hart.pc = target;
            hart.resume_from(from, None);
            return Exit::Limit;
        }
        let index = match link {
            0 => match hart.chase(system, from, block, target) {
                Ok(index) => index,
                Err(_) => return Exit::Trap,
            },
            link => link,
        };
        // SAFETY: an index of a decoded instruction: indices are all forgotten when they lose their meaning.
        at = unsafe { base.add(index as usize) };
        block = target;
        pending = false;
        if native {
            pending = enter_block(system, index, block);
            if let Some(site) = site {
                system.memory.code.connect(site, index);
            }
        }
        if G::MEASURED && !pending {
            let offset = system.memory.code.offset_of(index);
            hart.measure_fetch(system, offset, block);
        }
    }
}
