//! The execution loop.

use super::integer as int;
use super::{Exit, Gear};
use crate::code::CodeIndex;
use crate::hart::{Cause, Exception, Hart};
use crate::instruction::{FloatOperation, Instruction, Operation};
use crate::native::{FilterTables, Left};
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
                let index = index_of(base, at);
                let filters = match &mut system.timing {
                    Some(timing) if G::MEASURED => timing.tables(hart.id, hart.tlb.epoch()),
                    _ => FilterTables::NONE,
                };
                let memory = &system.memory;
                let (code, ram) = (&memory.code, &memory.ram);
                // SAFETY: the filters are the hart's, and nothing else looks at them until this comes back.
                let left = unsafe {
                    match resume.take() {
                        None => code.run(hart, ram, filters, index, block),
                        Some(site) => {
                            let left = code.resume(hart, ram, filters, site, block);
                            left.or(Some(Left::Behind {
                                target: block,
                                from: None,
                            }))
                        }
                    }
                };
                match left {
                    None => pending = false,
                    Some(Left::Before {
                        at: index,
                        block: own,
                    }) => {
                        // SAFETY: a decoded instruction of a block that has been translated.
                        at = unsafe { base.add(index as usize) };
                        block = own;
                    }
                    Some(Left::Outside {
                        at: index,
                        block: own,
                        offset,
                    }) => {
                        // SAFETY: as above.
                        at = unsafe { base.add(index as usize) };
                        block = own;
                        if G::MEASURED && hart.measure_fetch(system, offset, block) {
                            // Charged for now: the translation goes on.
                            continue 'block;
                        }
                    }
                    Some(Left::Behind { target, from: None }) => {
                        break 'block (target, 0, 0, std::ptr::null());
                    }
                    Some(Left::Behind {
                        target,
                        from: Some((index, wanted)),
                    }) => {
                        site = Some(wanted);
                        // SAFETY: as above.
                        let from = unsafe { base.add(index as usize) };
                        // The block that the translation was in is no longer known here, but the jump
                        // stays in its page.
                        block = target;
                        // SAFETY: as above.
                        break 'block (target, 0, unsafe { (*from).link }, from);
                    }
                    Some(Left::Limit { target, from, site }) => {
                        hart.pc = target;
                        hart.resume_from(from, Some(site));
                        return Exit::Limit;
                    }
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
            macro_rules! trap {
                () => {{
                    let done = u64::from(field!(count)) - 1;
                    hart.retired += done;
                    hart.cycles += done;
                    hart.pc = block.wrapping_add(u64::from(field!(offset)));
                    return Exit::Trap;
                }};
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
                        match hart.store_slow::<$type>(
                            system,
                            address,
                            value,
                            field!(count),
                            current,
                        ) {
                            Ok(outcome) if outcome.discarded_current => {
                                let next = block.wrapping_add(next_offset(at));
                                break 'block (next, field!(count), 0, std::ptr::null());
                            }
                            Ok(_) => {}
                            Err(_) => trap!(),
                        }
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
            // Instructions that look at the hart's own counts, or may change everything: the
            // hart is brought up to date before them.
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
                Operation::FallThrough => {
                    break 'block (
                        block.wrapping_add(immediate!()),
                        field!(count),
                        field!(link),
                        here,
                    );
                }
                Operation::Stale => {
                    // The jump cache may have led here, and would again.
                    hart.jumps.forget(block);
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
                Operation::Jump => {
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

                Operation::Addi => set!(rs1!().wrapping_add(immediate!())),
                Operation::Slti => set!(u64::from((rs1!() as i64) < i64::from(field!(immediate)))),
                Operation::Sltiu => set!(u64::from(rs1!() < immediate!())),
                Operation::Xori => set!(rs1!() ^ immediate!()),
                Operation::Ori => set!(rs1!() | immediate!()),
                Operation::Andi => set!(rs1!() & immediate!()),
                Operation::Slli => set!(rs1!() << (field!(immediate) & 63)),
                Operation::Srli => set!(rs1!() >> (field!(immediate) & 63)),
                Operation::Srai => set!((rs1!() as i64 >> (field!(immediate) & 63)) as u64),
                Operation::Addiw => set!(word(rs1!().wrapping_add(immediate!()))),
                Operation::Slliw => set!(word(rs1!() << (field!(immediate) & 31))),
                Operation::Srliw => {
                    set!(word(u64::from(rs1!() as u32 >> (field!(immediate) & 31))))
                }
                Operation::Sraiw => set!((rs1!() as i32 >> (field!(immediate) & 31)) as i64 as u64),
                Operation::Add => set!(rs1!().wrapping_add(rs2!())),
                Operation::Sub => set!(rs1!().wrapping_sub(rs2!())),
                Operation::Sll => set!(rs1!() << (rs2!() & 63)),
                Operation::Slt => set!(u64::from((rs1!() as i64) < rs2!() as i64)),
                Operation::Sltu => set!(u64::from(rs1!() < rs2!())),
                Operation::Xor => set!(rs1!() ^ rs2!()),
                Operation::Srl => set!(rs1!() >> (rs2!() & 63)),
                Operation::Sra => set!((rs1!() as i64 >> (rs2!() & 63)) as u64),
                Operation::Or => set!(rs1!() | rs2!()),
                Operation::And => set!(rs1!() & rs2!()),
                Operation::Addw => set!(word(rs1!().wrapping_add(rs2!()))),
                Operation::Subw => set!(word(rs1!().wrapping_sub(rs2!()))),
                Operation::Sllw => set!(word(rs1!() << (rs2!() & 31))),
                Operation::Srlw => set!(word(u64::from(rs1!() as u32 >> (rs2!() & 31)))),
                Operation::Sraw => set!((rs1!() as i32 >> (rs2!() & 31)) as i64 as u64),

                Operation::Mul => costly!(multiply, rs1!().wrapping_mul(rs2!())),
                Operation::Mulh => costly!(multiply, int::mulh(rs1!(), rs2!())),
                Operation::Mulhsu => costly!(multiply, int::mulhsu(rs1!(), rs2!())),
                Operation::Mulhu => costly!(multiply, int::mulhu(rs1!(), rs2!())),
                Operation::Mulw => costly!(multiply, word(rs1!().wrapping_mul(rs2!()))),
                Operation::Div => costly!(divide, int::div(rs1!(), rs2!())),
                Operation::Divu => costly!(divide, int::divu(rs1!(), rs2!())),
                Operation::Rem => costly!(divide, int::rem(rs1!(), rs2!())),
                Operation::Remu => costly!(divide, int::remu(rs1!(), rs2!())),
                Operation::Divw => costly!(divide, int::divw(rs1!(), rs2!())),
                Operation::Divuw => costly!(divide, int::divuw(rs1!(), rs2!())),
                Operation::Remw => costly!(divide, int::remw(rs1!(), rs2!())),
                Operation::Remuw => costly!(divide, int::remuw(rs1!(), rs2!())),

                Operation::AddUw => set!((rs1!() as u32 as u64).wrapping_add(rs2!())),
                Operation::Sh1add => set!((rs1!() << 1).wrapping_add(rs2!())),
                Operation::Sh2add => set!((rs1!() << 2).wrapping_add(rs2!())),
                Operation::Sh3add => set!((rs1!() << 3).wrapping_add(rs2!())),
                Operation::Sh1addUw => set!(((rs1!() as u32 as u64) << 1).wrapping_add(rs2!())),
                Operation::Sh2addUw => set!(((rs1!() as u32 as u64) << 2).wrapping_add(rs2!())),
                Operation::Sh3addUw => set!(((rs1!() as u32 as u64) << 3).wrapping_add(rs2!())),
                Operation::SlliUw => set!((rs1!() as u32 as u64) << (field!(immediate) & 63)),
                Operation::Andn => set!(rs1!() & !rs2!()),
                Operation::Orn => set!(rs1!() | !rs2!()),
                Operation::Xnor => set!(!(rs1!() ^ rs2!())),
                Operation::Clz => set!(u64::from(rs1!().leading_zeros())),
                Operation::Clzw => set!(u64::from((rs1!() as u32).leading_zeros())),
                Operation::Ctz => set!(u64::from(rs1!().trailing_zeros())),
                Operation::Ctzw => set!(u64::from((rs1!() as u32).trailing_zeros())),
                Operation::Cpop => set!(u64::from(rs1!().count_ones())),
                Operation::Cpopw => set!(u64::from((rs1!() as u32).count_ones())),
                Operation::Max => set!((rs1!() as i64).max(rs2!() as i64) as u64),
                Operation::Maxu => set!(rs1!().max(rs2!())),
                Operation::Min => set!((rs1!() as i64).min(rs2!() as i64) as u64),
                Operation::Minu => set!(rs1!().min(rs2!())),
                Operation::SextB => set!(rs1!() as i8 as i64 as u64),
                Operation::SextH => set!(rs1!() as i16 as i64 as u64),
                Operation::ZextH => set!(rs1!() & 0xffff),
                Operation::Rol => set!(rs1!().rotate_left(rs2!() as u32 & 63)),
                Operation::Rolw => {
                    set!(word((rs1!() as u32).rotate_left(rs2!() as u32 & 31).into()))
                }
                Operation::Ror => set!(rs1!().rotate_right(rs2!() as u32 & 63)),
                Operation::Rorw => {
                    set!(word(
                        (rs1!() as u32).rotate_right(rs2!() as u32 & 31).into()
                    ));
                }
                Operation::Rori => set!(rs1!().rotate_right(field!(immediate) as u32 & 63)),
                Operation::Roriw => {
                    set!(word(
                        (rs1!() as u32)
                            .rotate_right(field!(immediate) as u32 & 31)
                            .into()
                    ));
                }
                Operation::OrcB => set!(int::orc_b(rs1!())),
                Operation::Rev8 => set!(rs1!().swap_bytes()),
                Operation::Bclr => set!(rs1!() & !(1 << (rs2!() & 63))),
                Operation::Bclri => set!(rs1!() & !(1 << (field!(immediate) & 63))),
                Operation::Bext => set!(rs1!() >> (rs2!() & 63) & 1),
                Operation::Bexti => set!(rs1!() >> (field!(immediate) & 63) & 1),
                Operation::Binv => set!(rs1!() ^ 1 << (rs2!() & 63)),
                Operation::Binvi => set!(rs1!() ^ 1 << (field!(immediate) & 63)),
                Operation::Bset => set!(rs1!() | 1 << (rs2!() & 63)),
                Operation::Bseti => set!(rs1!() | 1 << (field!(immediate) & 63)),
                Operation::CzeroEqz => set!(if rs2!() == 0 { 0 } else { rs1!() }),
                Operation::Clmul => set!(int::clmul(rs1!(), rs2!())),
                Operation::Clmulh => set!(int::clmulh(rs1!(), rs2!())),
                Operation::Clmulr => set!(int::clmulr(rs1!(), rs2!())),
                Operation::Pack => set!(rs1!() as u32 as u64 | rs2!() << 32),
                Operation::Packh => set!(rs1!() & 0xff | (rs2!() & 0xff) << 8),
                Operation::Packw => set!(word(rs1!() & 0xffff | rs2!() << 16)),
                Operation::Brev8 => set!(rs1!().reverse_bits().swap_bytes()),
                Operation::Xperm4 => set!(int::xperm(rs1!(), rs2!(), 4)),
                Operation::Xperm8 => set!(int::xperm(rs1!(), rs2!(), 8)),
                Operation::CzeroNez => set!(if rs2!() != 0 { 0 } else { rs1!() }),

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
                    match hart.atomic(system, whole!(), index_of(base, here)) {
                        Ok(outcome) if outcome.discarded_current => {
                            let next = block.wrapping_add(next_offset(at));
                            break 'block (next, field!(count), 0, std::ptr::null());
                        }
                        Ok(_) => {}
                        Err(_) => trap!(),
                    }
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
                    match hart.cache_block(system, whole!(), index_of(base, here)) {
                        Ok(outcome) if outcome.discarded_current => {
                            let next = block.wrapping_add(next_offset(at));
                            break 'block (next, field!(count), 0, std::ptr::null());
                        }
                        Ok(_) => {}
                        Err(_) => trap!(),
                    }
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
                Operation::Illegal => {
                    let raw = u64::from(field!(immediate).cast_unsigned());
                    hart.raise(Exception::new(Cause::IllegalInstruction, raw));
                    trap!();
                }
            }
        };

        hart.retired += u64::from(count);
        hart.cycles += u64::from(count);
        if hart.cycles >= hart.limit {
            hart.pc = target;
            let linkable = !from.is_null() && target >> 12 == block >> 12;
            hart.resume_from(if linkable { index_of(base, from) } else { 0 }, None);
            return Exit::Limit;
        }
        at = if link != 0 {
            // SAFETY: links are indices of decoded instructions, all reset when they lose their
            // meaning.
            unsafe { base.add(link as usize) }
        } else {
            let linkable = !from.is_null() && target >> 12 == block >> 12;
            let place = hart.jumps.place(target);
            if !linkable && place.pc == target && place.tag == hart.jump_tag {
                // SAFETY: the jump cache is cleared when indices lose their meaning.
                unsafe { base.add(place.index as usize) }
            } else {
                hart.pc = target;
                let from = if linkable { index_of(base, from) } else { 0 };
                match hart.chase(system, from, block, target) {
                    // SAFETY: as at the top.
                    Ok(index) => unsafe { base.add(index as usize) },
                    Err(_) => return Exit::Trap,
                }
            }
        };
        block = target;
        pending = false;
        if native {
            let index = index_of(base, at);
            pending = enter_block(system, index, block);
            if let Some(site) = site {
                system.memory.code.connect(site, index);
            }
        }
        if G::MEASURED && !pending {
            let offset = system.memory.code.offset_of(index_of(base, at));
            hart.measure_fetch(system, offset, block);
        }
    }
}

/// Notes that a block is executed; says whether it is translated. In the measured gear the translation asks
/// the filter for the block's fetch itself.
#[inline]
fn enter_block(system: &mut System, index: CodeIndex, block: u64) -> bool {
    let base = system.memory.ram.base();
    system.memory.code.warm(index, block, base)
}

/// The index of a decoded instruction.
#[inline(always)]
fn index_of(base: *const Instruction, at: *const Instruction) -> CodeIndex {
    // SAFETY: both point into the code cache's one allocation.
    unsafe { at.offset_from(base) as CodeIndex }
}

/// The offset in the block of the instruction that comes next.
#[inline(never)]
fn next_offset(next: *const Instruction) -> u64 {
    // SAFETY: the instruction before `next` does not end its block, so there is one here.
    let instruction = unsafe { next.read() };
    match instruction.operation {
        Operation::FallThrough => i64::from(instruction.immediate) as u64,
        _ => u64::from(instruction.offset),
    }
}
