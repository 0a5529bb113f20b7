//! Reading by waiting: a program waits for a word of its kernel's memory to change. What ends at once and what does not would tell
//! what stands there.

use exerciser::instruction::{A0, A1, WRS_NTO, jump};

use super::{Siege, plain_setting, tables};
use crate::arch::memory;
use crate::arch::sandbox::{Ending, Sandbox};
use crate::arch::team;
use crate::board::board;

/// LR.W a3, (a2): a reservation of the program's own, without which no wait lasts.
const OWN_LOAD: u32 = 0x1000_202f | 13 << 7 | A2 << 15;
/// LR.W a3, (a0): what a kernel's wait for a word begins with.
const LOAD: u32 = 0x1000_202f | 13 << 7 | A0 << 15;
/// C.XOR a3, a1 and C.BNEZ a3, to behind the wait.
const COMPARE: u16 = 0x8c21 | (13 - 8) << 7 | (11 - 8) << 2;
const BRANCH: u16 = 0xe001 | (13 - 8) << 7 | 0b11 << 3;

/// Argument register a2.
const A2: u32 = 12;

/// Secret value of the kernel.
const SECRET: u32 = 0x5ec2_e700;

/// A wait that nothing ends is ended by the timer after so long, in microseconds.
const LIMIT_US: u64 = 20_000;

/// By so many waits the two may differ, as one of them is the last beside a neighbour and the next the first without.
const TOLERANCE: u64 = 2;

/// The program jumps over the load, which it could not execute, to the wait behind it. Whether what it guesses is right must
/// make no difference. Something else has to want the hart, so that a hypervisor is asked at all.
pub fn run(siege: &mut Siege) {
    let Some(space) = tables::user_space() else {
        crate::start::fail(format_args!("not enough memory for translation tables"));
    };
    memory::store(siege.scrap, u64::from(SECRET));
    let sandbox = Sandbox::of(team::current());
    let mut program = [0; 10];
    let words = [
        OWN_LOAD,
        jump(12),
        LOAD,
        u32::from(BRANCH) << 16 | u32::from(COMPARE),
        WRS_NTO,
    ];
    for (place, word) in program.as_chunks_mut::<2>().0.iter_mut().zip(words) {
        *place = [word as u16, (word >> 16) as u16];
    }
    let mut lasted = [0, 0];
    for _ in 0..siege.rounds {
        for (guess, lasted) in [SECRET, SECRET + 1].into_iter().zip(&mut lasted) {
            let mut setting = plain_setting();
            setting.user = true;
            setting.satp = space.satp(0);
            setting.limit = board().ticks(LIMIT_US);
            setting.registers[A0 as usize] = siege.scrap;
            setting.registers[A1 as usize] = guess.into();
            setting.registers[A2 as usize] = sandbox.program();
            match sandbox.run(&program, &mut setting) {
                Ending::Completed => {}
                // Alone on its hart a wait lasts until an interrupt comes, whatever it is for.
                Ending::TimedOut { .. } => *lasted += 1,
                ending => siege.check(false, format_args!("a wait ends as {ending:x?}")),
            }
        }
    }
    let [right, wrong] = lasted;
    siege.check(
        right <= wrong + TOLERANCE,
        format_args!("{right} waits with the right guess last, and {wrong} with a wrong one"),
    );
}
