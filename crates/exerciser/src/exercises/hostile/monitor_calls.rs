//! SBI calls with garbage: every extension and function, specified and not.

use exerciser::instruction::{A0, A1, ECALL};
use exerciser::random::Random;
use exerciser::sbi::{ends_run, is_defined_error};
use riscv::sbi::error::{INVALID_PARAMETER, NOT_SUPPORTED};
use riscv::sbi::{
    BASE, CPPC, DBCN, DBTR, FWFT, HSM, IPI, MPXY, NACL, PMU, RFENCE, SRST, SSE, STA, SUSP, TIME,
    software_events,
};

use super::{
    LOAD_FAULT, LOAD_MISALIGNED, LOAD_PAGE_FAULT, Siege, addresses, plain_setting, run_word,
};
use crate::arch::sandbox::Ending;
use crate::arch::sbi;
use crate::board::board;
use crate::console::say;
use crate::harts;

/// Extensions with the number of functions that are tried: one more than the specification has, at least.
const EXTENSIONS: [(u64, u64); 16] = [
    (BASE, 12),
    (TIME, 4),
    (IPI, 4),
    (RFENCE, 12),
    (HSM, 8),
    (SRST, 4),
    (PMU, 12),
    (DBCN, 6),
    (SUSP, 4),
    (CPPC, 8),
    (NACL, 8),
    (STA, 4),
    (SSE, 12),
    (FWFT, 4),
    (DBTR, 10),
    (MPXY, 10),
];

pub fn run(siege: &mut Siege) {
    let scrap = siege.scrap;
    unknown_extensions(siege);
    if siege.is_virtual() {
        wild_console(siege);
    }
    let mut random = siege.random(6);
    let mut accepted = 0u64;
    for call in 0..siege.calls {
        let (extension, functions) = EXTENSIONS
            .get(call as usize % EXTENSIONS.len())
            .copied()
            .unwrap_or_default();
        let function = if random.one_in(8) {
            random.next()
        } else {
            random.below(functions)
        };
        let mut arguments = [0; 6];
        for argument in &mut arguments {
            *argument = garbage(siege, &mut random, scrap);
        }
        // Attributes of an event that there is, which are written to or read from what the other arguments name.
        if siege.is_virtual() && extension == SSE && function <= software_events::WRITE {
            arguments[0] = random.pick(&[
                u64::from(software_events::LOCAL_SOFTWARE),
                u64::from(software_events::GLOBAL_SOFTWARE),
            ]);
        }
        // OpenSBI 1.5 touches whatever memory a console call names, and stops for good where there is none. An event that it has sends the hart to
        // whatever address it was registered with (SBI chapter 17).
        let is_fatal = matches!(extension, DBCN | SSE) && !siege.is_virtual();
        if is_fatal || ends_run(extension, function, arguments[0]) {
            continue;
        }
        accepted += u64::from(checked_call(siege, extension, function, arguments) == Some(0));
    }
    // The calls set timers and sent interrupts.
    harts::set_timer(u64::MAX);
    crate::arch::csr::take_interrupts();
    say!("sbi calls={} accepted={accepted}", siege.calls);
}

fn garbage(siege: &Siege, random: &mut Random, scrap: u64) -> u64 {
    match random.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => random.below(8),
        3 => scrap + random.below(16 * 4096),
        4 => addresses::foreign(siege, random).unwrap_or(u64::MAX),
        5 => 1 << random.below(64),
        6 => board().memory.1.wrapping_sub(random.below(4096)),
        _ => random.next() >> random.below(64),
    }
}

/// A call from the sandbox, so that every register can be compared: the environment keeps all but a0 and a1
/// (SBI chapter 3). Returns the error code.
pub fn checked_call(
    siege: &mut Siege,
    extension: u64,
    function: u64,
    arguments: [u64; 6],
) -> Option<i64> {
    let mut setting = plain_setting();
    for (index, register) in setting.registers.iter_mut().enumerate() {
        *register = 0x5a5a_0000_0000_0000 | index as u64;
    }
    for (register, argument) in setting
        .registers
        .iter_mut()
        .skip(A0 as usize)
        .zip(arguments)
    {
        *register = argument;
    }
    setting.registers[16] = function;
    setting.registers[17] = extension;
    let before = setting.registers;
    let ending = run_word(ECALL, &mut setting);
    let error = setting.registers[A0 as usize].cast_signed();
    if ending != Ending::Completed {
        // A timer that the call itself set may come first: the call was made, or is made anew by nobody.
        let is_timer = matches!(ending, Ending::TimedOut { .. });
        siege.check(
            is_timer,
            format_args!("sbi {extension:#x}.{function:#x}: {ending:x?}"),
        );
        return None;
    }
    siege.check(
        is_defined_error(error),
        format_args!("sbi {extension:#x}.{function:#x} {arguments:x?}: error {error}"),
    );
    for (index, (old, new)) in before.iter().zip(setting.registers).enumerate().skip(1) {
        let is_result = index == A0 as usize || index == A1 as usize;
        siege.check(
            is_result || *old == new,
            format_args!(
                "sbi {extension:#x}.{function:#x} changed x{index} from {old:#x} to {new:#x}"
            ),
        );
    }
    Some(error)
}

/// Extensions that nobody has: NOT_SUPPORTED (SBI chapter 3). Ranges: chapters 17 to 19.
fn unknown_extensions(siege: &mut Siege) {
    let (mut random, mut others) = (siege.random(7), siege.random(9));
    for extension in [
        0x11,
        0x1234,
        0x0800_0000,
        0x09ff_fff0,
        0x0aff_fff0,
        0x7fff_ffff,
        u64::MAX,
        1 << 40,
        0x10_0000_0010,
    ]
    .into_iter()
    .chain(core::iter::repeat_with(|| 0x1000_0000 | others.below(1 << 28)).take(64))
    .filter(|extension| !EXTENSIONS.iter().any(|(known, _)| known == extension))
    {
        let probed = sbi::probe(extension);
        let function = random.below(4);
        let error = checked_call(siege, extension, function, [0; 6]);
        siege.check(
            probed || error == Some(NOT_SUPPORTED),
            format_args!("sbi {extension:#x}.{function:#x} is unknown but returns {error:?}"),
        );
    }
    // Legacy calls (chapter 5) but for shutdown (8). Their hart mask is a pointer: to our own memory, and
    // anywhere, where a load fault at the call is right.
    for extension in [0u64, 1, 2, 3, 4, 5, 6, 7] {
        for pointer in [siege.scrap, 0x2e, u64::MAX, 1 << 45] {
            let mut setting = plain_setting();
            setting.registers[A0 as usize] = pointer;
            setting.registers[17] = extension;
            let ending = run_word(ECALL, &mut setting);
            let passed = matches!(
                ending,
                Ending::Completed
                    | Ending::TimedOut { .. }
                    | Ending::Trapped {
                        cause: LOAD_FAULT | LOAD_MISALIGNED | LOAD_PAGE_FAULT,
                        ..
                    }
            );
            siege.check(
                passed,
                format_args!("legacy call {extension} with {pointer:#x}: {ending:x?}"),
            );
        }
    }
    harts::set_timer(u64::MAX);
}

/// Debug console calls with memory that is not ours: INVALID_PARAMETER (SBI §12.1).
fn wild_console(siege: &mut Siege) {
    if !sbi::probe(DBCN) {
        return;
    }
    let mut random = siege.random(8);
    for function in [0, 1] {
        for _ in 0..32 {
            let Some(address) = addresses::foreign(siege, &mut random) else {
                continue;
            };
            let error = checked_call(siege, DBCN, function, [16, address, 0, 0, 0, 0]);
            siege.check(
                error == Some(INVALID_PARAMETER),
                format_args!("dbcn {function} at {address:#x}: {error:?}"),
            );
        }
        let inside = board().memory.1 - 4096;
        for (length, low, high) in [
            (u64::MAX, inside, 0),
            (8192, inside, 0),
            (16, inside, 1),
            (16, u64::MAX - 7, 0),
            (16, inside, u64::MAX),
        ] {
            let error = checked_call(siege, DBCN, function, [length, low, high, 0, 0, 0]);
            siege.check(
                error == Some(INVALID_PARAMETER),
                format_args!("dbcn {function} length {length:#x} at {high:#x}:{low:#x}: {error:?}"),
            );
        }
    }
}
