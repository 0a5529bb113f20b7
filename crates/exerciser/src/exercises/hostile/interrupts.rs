//! Interrupts to harts and identities that do not exist.

use core::sync::atomic::Ordering;

use exerciser::instruction::{A0, A1, ACCESSES};
use riscv::sbi::IPI;
use riscv::sbi::error::INVALID_PARAMETER;

use super::{STORE_FAULT, Siege, plain_setting, run_word};
use crate::arch::sandbox::Ending;
use crate::arch::{csr, imsic, sbi, team};
use crate::board::board;
use crate::interrupts::{FIRST_COUNTED, WAKE};

pub fn run(siege: &mut Siege) {
    let board = board();
    // SBI: harts that do not exist, alone and beside one that does (SBI §3.1: hart masks; error
    // SBI_ERR_INVALID_PARAM).
    let boot = team::current().id();
    for (mask, base) in [
        (1, 4096),
        (1, 1 << 40),
        (u64::MAX, boot),
        (1, u64::MAX - 1),
        (1 << 63, boot),
        (2, u64::MAX - 1),
    ] {
        let answer = sbi::call(IPI, 0, [mask, base, 0, 0, 0, 0]);
        siege.check_strictly(
            answer.error == INVALID_PARAMETER,
            format_args!(
                "send_ipi mask {mask:#x} base {base:#x}: error {}",
                answer.error
            ),
        );
    }
    csr::take_interrupts();
    if board.files.base == 0 {
        return;
    }
    // Pages of interrupt files beyond ours.
    if siege.is_virtual() {
        let store = ACCESSES
            .iter()
            .find(|access| access.0 == "sw")
            .map_or(0, |access| access.1);
        for index in board.hart_count as u64..board.hart_count as u64 + 64 {
            let mut setting = plain_setting();
            setting.registers[A0 as usize] = board.files.base + index * board.files.stride;
            setting.registers[A1 as usize] = WAKE;
            let ending = run_word(store, &mut setting);
            let passed = matches!(
                ending,
                Ending::Trapped {
                    cause: STORE_FAULT,
                    ..
                }
            );
            siege.check(
                passed,
                format_args!("interrupt to file {index}: {ending:x?}"),
            );
        }
    }
    // Identities that the file does not have are ignored (AIA §3.5), and one that it has still works.
    let hart = team::current();
    let mut random = siege.random(5);
    let page = hart.page();
    let total = || {
        hart.received
            .iter()
            .map(|count| count.load(Ordering::Acquire))
            .sum::<u64>()
    };
    csr::take_interrupts();
    let before = total();
    for _ in 0..1000 {
        let identity = match random.below(3) {
            0 => 0,
            1 => 2048 + random.below(1 << 20),
            _ => u64::from(u32::MAX) - random.below(1000),
        };
        imsic::send(page, identity);
    }
    csr::take_interrupts();
    siege.check(
        total() == before,
        format_args!("identities that do not exist: {} came", total() - before),
    );
    imsic::send(page, FIRST_COUNTED);
    csr::set_interrupt_enables(csr::interrupt_enables() | csr::EXTERNAL);
    csr::take_interrupts();
    siege.check(
        hart.taken(FIRST_COUNTED) > 0,
        format_args!("own identity {FIRST_COUNTED} did not come"),
    );
}
