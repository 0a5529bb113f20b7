//! Translation tables that name what is not ours.

use exerciser::instruction::{A0, ACCESSES, Access};

use super::{FETCH_FAULT, LOAD_FAULT, STORE_FAULT, Siege, addresses, plain_setting, run_word};
use crate::arch::csr;
use crate::arch::memory;
use crate::arch::paging::{IDENTITY_END, R, Space, U, W, WINDOW, X};
use crate::arch::sandbox::{Ending, Sandbox};
use crate::arch::team;
use crate::board::board;
use crate::console::say;
use crate::harts;

/// Identity, supervisor only, but for the program's page of this hart's sandbox, which is the user's. What
/// is not our memory is the user's too.
pub fn user_space() -> Option<Space> {
    let sandbox = Sandbox::of(team::current());
    let program = sandbox.page() + 8192;
    let (start, end) = board().memory;
    let space = Space::new()?;
    space.map(0, 0, start, R | W | X | U)?;
    space.map(start, start, program - start, R | W | X)?;
    space.map(program, program, 4096, R | W | X | U)?;
    space.map(
        program + 4096,
        program + 4096,
        end - program - 4096,
        R | W | X,
    )?;
    space.map(end, end, IDENTITY_END - end, R | W | X | U)?;
    Some(space)
}

/// Leaves and tables at addresses that are not ours, tried by every kind of access.
pub fn run(siege: &mut Siege) {
    if !siege.is_virtual() {
        say!(
            "tables: on the computer itself there is nothing that is not ours; only absent addresses are tried"
        );
    }
    let mut random = siege.random(2);
    for round in 0..64u64 {
        let Some(target) = addresses::foreign(siege, &mut random) else {
            return;
        };
        let Some(space) = Space::new() else { return };
        let kernel = space.map(0, 0, IDENTITY_END, R | W | X);
        // Even rounds: a leaf at each level that lies in a foreign frame. Odd rounds: a table there.
        let level = (round / 2 % 3) as usize;
        let (Some(()), Some(entry)) = (kernel, space.entry(WINDOW, level)) else {
            return;
        };
        let frame = target & !((4096 << (9 * level)) - 1);
        let is_leaf = round % 2 == 0 || level == 0;
        memory::store(
            entry,
            Space::leaf(frame, if is_leaf { R | W | X } else { 0 }) & leaf_bits(is_leaf),
        );
        let offset = if is_leaf {
            target & ((4096 << (9 * level)) - 1) & !7
        } else {
            0
        };
        for &(name, word, kind, _) in ACCESSES {
            let mut setting = plain_setting();
            setting.satp = space.satp(0);
            setting.registers[A0 as usize] = WINDOW + offset;
            let ending = run_word(word, &mut setting);
            let wanted = if kind == Access::Load {
                LOAD_FAULT
            } else {
                STORE_FAULT
            };
            // A table that can be read by chance holds no valid entry: a page fault (13, 15) is right too.
            let passed = matches!(ending, Ending::Trapped { cause, value, .. }
                if value == WINDOW + offset && (cause == wanted || !is_leaf && (cause == 13 || cause == 15)));
            siege.check(
                passed,
                format_args!("{name} by a table to {frame:#x} level {level}: {ending:x?}"),
            );
        }
        let mut setting = plain_setting();
        setting.satp = space.satp(0);
        let ending = Sandbox::of(team::current()).run_at(WINDOW + offset, &mut setting, 0);
        let passed = matches!(ending, Ending::Trapped { cause, .. } if cause == FETCH_FAULT || !is_leaf && cause == 12);
        siege.check(
            passed,
            format_args!("fetch by a table to {frame:#x} level {level}: {ending:x?}"),
        );
    }
}

/// A non-leaf entry has neither permissions nor A and D.
fn leaf_bits(is_leaf: bool) -> u64 {
    if is_leaf { u64::MAX } else { !0xfe }
}

/// Harts that never come back: translation by a root table that does not exist, so that every fetch faults,
/// the trap's own among them; a loop with interrupts closed; a wait with none enabled. The first hart goes
/// on and must be able to turn the computer off.
pub fn run_wedge(siege: &mut Siege) {
    if siege.harts < 2 {
        say!("wedge needs two harts");
        return;
    }
    let mut random = siege.random(3);
    let target = addresses::foreign(siege, &mut random).unwrap_or(1 << 40);
    for (index, hart) in harts::all(siege.harts).iter().enumerate().skip(1) {
        let Some(sandbox) = Sandbox::make() else {
            return;
        };
        // x10 = hart id and x11 = opaque at entry (SBI HSM, table "Supervisor hart start").
        let program: &[u32] = match index % 4 {
            // csrw satp, a1; j .
            1 => &[0x1805_9073, 0x0000_006f],
            // j .
            2 => &[0x0000_006f],
            // wfi; j .-4
            _ => &[0x1050_0073, 0xffdf_f06f],
        };
        for (offset, pair) in (0u64..).step_by(8).zip(program.chunks(2)) {
            let low = pair.first().copied().unwrap_or(0);
            let high = pair.get(1).copied().unwrap_or(0x0000_006f);
            memory::store(
                sandbox.program() + offset,
                u64::from(high) << 32 | u64::from(low),
            );
        }
        csr::fence_instructions();
        // One in four starts where nothing is, which may be refused (SBI_ERR_INVALID_ADDRESS, -5).
        let start = if index % 4 == 0 {
            target
        } else {
            sandbox.program()
        };
        let root = 8 << 60 | target >> 12;
        let answer = crate::arch::sbi::hart_start(hart.id(), start, root);
        siege.check(
            answer.error == 0 || index % 4 == 0 && answer.error == -5,
            format_args!("start of hart {}: {}", hart.id(), answer.error),
        );
    }
    let end = csr::time() + board().ticks(siege.storm_ms * 1000);
    while csr::time() < end {
        harts::sleep_until(end);
    }
}
