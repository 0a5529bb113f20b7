//! Accesses to every class of physical address that is not ours, and odd accesses to those that are.

use exerciser::instruction::{A0, A1, ACCESSES, Access, STORE_CONDITIONAL};
use exerciser::random::Random;

use super::{
    FETCH_FAULT, ILLEGAL, LOAD_FAULT, LOAD_MISALIGNED, STORE_FAULT, Siege, plain_setting, run_word,
};
use crate::arch::sandbox::{Ending, Sandbox};
use crate::arch::team;
use crate::board::board;
use crate::console::say;
use crate::harts;

/// Tests whether an address belongs to what the device tree gives us, a page's width around it included.
fn is_ours(address: u64) -> bool {
    let board = board();
    let within = |start: u64, size: u64| start != 0 && address >= start && address < start + size;
    address >= board.memory.0 && address < board.memory.1
        || within(board.uart, 4096)
        || within(board.aplic, 0x8000)
        || within(board.plic.0, board.plic.1)
        || within(board.clock.address, 0x1000)
        || board
            .slots
            .iter()
            .take(board.slot_count)
            .any(|slot| within(slot.address, 4096))
        || harts::all(board.hart_count)
            .iter()
            .any(|hart| within(hart.page(), 4096))
}

/// Tests whether an address is absent on QEMU's `virt` board itself too: above all memory and PCI windows.
fn is_absent(address: u64) -> bool {
    (1 << 44..1 << 50).contains(&address)
}

/// An address that is not ours: on the computer itself, one that is absent.
pub fn foreign(siege: &Siege, random: &mut Random) -> Option<u64> {
    (0..1000)
        .map(|_| sample(random))
        .find(|&address| is_foreign(siege, address))
}

fn is_foreign(siege: &Siege, address: u64) -> bool {
    if siege.is_virtual() {
        !is_ours(address) && address < 1 << 50
    } else {
        is_absent(address)
    }
}

/// Addresses of every class: devices of the board, round about our memory, powers of two, anything.
fn sample(random: &mut Random) -> u64 {
    let memory = board().memory;
    let base = match random.below(6) {
        0 => random.below(1 << 31),
        // The first gigabytes of RAM: the hypervisor's, and other VMs'.
        1 => 0x8000_0000 + random.below(1 << 33),
        2 => memory.0.wrapping_sub(random.below(64 << 20)),
        3 => memory.1.wrapping_add(random.below(64 << 20)),
        4 => 1 << random.below(50),
        _ => random.next() >> random.below(64),
    };
    base & !7
}

/// Places worth a visit in their own right: devices of QEMU's `virt` board (hw/riscv/virt.c) and edges.
const PLACES: [u64; 26] = [
    0,
    0x1000,
    0x10_0000,
    0x10_1000,
    0x200_0000,
    0x200_4000,
    0x200_bff8,
    0x2f0_0000,
    0x300_0000,
    0x400_0000,
    0xc00_0000,
    0xd00_0000,
    0xd00_8000,
    0x1000_0000,
    0x1000_1000,
    0x1000_2000,
    0x1000_8000,
    0x1000_9000,
    0x1010_0000,
    0x2000_0000,
    0x2400_0000,
    0x2800_1000,
    0x2801_0000,
    0x3000_0000,
    0x4000_0000,
    0x8000_0000,
];

pub fn run(siege: &mut Siege) {
    let mut random = siege.random(4);
    let mut tried = 0;
    let memory = board().memory;
    let edges = [
        memory.0.wrapping_sub(8),
        memory.0.wrapping_sub(4096),
        memory.1,
        memory.1 + 4096,
    ];
    let pages = board().files;
    let others = (0..64u64)
        .map(|index| pages.base + index * 4096)
        .filter(|_| pages.base != 0);
    for address in PLACES.into_iter().chain(edges).chain(others) {
        if is_foreign(siege, address) {
            try_all(siege, address);
            tried += 1;
        }
    }
    for _ in 0..siege.rounds * 8 {
        if let Some(address) = foreign(siege, &mut random) {
            try_all(siege, address);
            tried += 1;
        }
    }
    say!("addresses tried={tried}");
}

fn try_all(siege: &mut Siege, address: u64) {
    for &(name, word, kind, _) in ACCESSES {
        let mut setting = plain_setting();
        setting.registers[A0 as usize] = address;
        setting.registers[A1 as usize] = 0xa5a5_a5a5_a5a5_a5a5;
        let ending = run_word(word, &mut setting);
        let wanted = if kind == Access::Load {
            LOAD_FAULT
        } else {
            STORE_FAULT
        };
        let passed = matches!(ending, Ending::Trapped { cause, value, .. } if cause == wanted && value == address);
        siege.check(passed, format_args!("{name} at {address:#x}: {ending:x?}"));
    }
    let mut setting = plain_setting();
    setting.registers[A0 as usize] = address;
    let ending = run_word(STORE_CONDITIONAL, &mut setting);
    let passed = match ending {
        // Without a reservation it may fail before it touches memory.
        Ending::Completed => setting.registers[A1 as usize] != 0,
        Ending::Trapped { cause, .. } => cause == STORE_FAULT,
        Ending::TimedOut { .. } => false,
    };
    siege.check(passed, format_args!("sc.w at {address:#x}: {ending:x?}"));
    let ending = Sandbox::of(team::current()).run_at(address, &mut plain_setting(), 0);
    let passed = matches!(ending, Ending::Trapped { cause: FETCH_FAULT, value, pc } if value == address && pc == address);
    siege.check(passed, format_args!("fetch at {address:#x}: {ending:x?}"));
}

/// Misaligned, wide, floating-point and atomic accesses to our own devices: whatever they do, they end in
/// completion or in a misaligned or access fault, and never in anything else.
pub fn run_misaligned(siege: &mut Siege) {
    let board = board();
    let page = team::current().page();
    // Registers that an odd access cannot hurt: the UART's scratch register (7), the APLIC's read-only
    // domaincfg neighbourhood, an interrupt file's unused words, a device slot's magic value.
    let targets = [
        (board.uart, 7),
        (board.aplic, 0x1bc0),
        (page, 8),
        (board.slots.first().map_or(0, |slot| slot.address), 0),
    ];
    for (base, offset) in targets.into_iter().filter(|(base, _)| *base != 0) {
        if siege.is_virtual() {
            // What is emulated cannot be fetched; what is mapped may be, and holds no instruction.
            let ending = Sandbox::of(team::current()).run_at(base, &mut plain_setting(), 0);
            let passed = matches!(ending, Ending::Trapped { cause: FETCH_FAULT | ILLEGAL, pc, .. } if pc == base);
            siege.check(passed, format_args!("fetch at own {base:#x}: {ending:x?}"));
        }
        for &(name, word, kind, bytes) in ACCESSES {
            for skew in 0..4 {
                let address = base + offset + skew;
                let mut setting = plain_setting();
                setting.registers[A0 as usize] = address;
                setting.registers[A1 as usize] = 0;
                let ending = run_word(word, &mut setting);
                // QEMU, where it runs all harts in one thread, names the load half of a misaligned AMO.
                let is_amo = name.starts_with("amo");
                let misaligned = if kind == Access::Load { 4 } else { 6 };
                let fault = if kind == Access::Load {
                    LOAD_FAULT
                } else {
                    STORE_FAULT
                };
                let passed = match ending {
                    Ending::Completed => true,
                    Ending::Trapped { cause, value, .. } => {
                        // A misaligned access may be split and its second part fault (there stval is that
                        // part's address: privileged specification, "Supervisor Trap Value Register").
                        (cause == misaligned
                            || cause == fault
                            || is_amo && cause == LOAD_MISALIGNED)
                            && value >= address
                            && value < address + bytes
                    }
                    Ending::TimedOut { .. } => false,
                };
                siege.check(
                    passed,
                    format_args!("{name} at own {address:#x}: {ending:x?}"),
                );
            }
        }
    }
}
