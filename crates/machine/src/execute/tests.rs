//! Devices and other harts that act in the middle of a hart's turn.

use super::{Functional, Timing, run};
use crate::base::{HartId, Space};
use crate::count::EventCounts;
use crate::device::Memory;
use crate::timing::{Charge, LineAccess, Profile, Walked};
use crate::{Config, Machine};

const CODE: u64 = 0x8000_0000;
const WORD: u64 = 0x8000_1000;
/// Cycles of HLV and HSV, more than of other instructions.
const GUEST_ACCESS: u64 = 5;

/// SC's result behind LR of the same doubleword, after a device has stored in between, if it has.
fn conditional(device_stores_to: Option<u64>) -> u64 {
    let mut config = Config::default();
    config.board.memory = 16 << 20;
    config.blocks.instructions = 1;
    let blocks = config.blocks;
    let mut machine = Machine::new(config).expect("a machine");
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    system.memory.code.set_limit(blocks);
    let words: [u32; 2] = [0x1002_b32f, 0x1862_b3af]; // lr.d x6, (x5); sc.d x7, x6, (x5)
    for (address, word) in (CODE..).step_by(4).zip(words) {
        let stored = system.memory.store(address, &word.to_le_bytes());
        stored.expect("RAM");
    }
    hart.pc = CODE;
    hart.x[5] = WORD;
    hart.x[7] = 77;
    let next = hart.cycles + 1;
    run::<Functional>(hart, system, next);
    assert!(hart.reservation.is_some());
    if let Some(address) = device_stores_to {
        system.memory.store(address, &[1]).expect("RAM");
    }
    let next = hart.cycles + 1;
    run::<Functional>(hart, system, next);
    hart.x[7]
}

#[test]
fn a_devices_store_ends_a_reservation() {
    assert_eq!(conditional(None), 0);
    assert_eq!(conditional(Some(WORD + 3)), 1);
}

/// Executes an instruction before whose line another hart has stored to it, and which is behind by some cycles: for the first time, and when
/// the page is in the host TLB. Gives, for each, true if the turn was given away, and the cycles that were charged.
fn gives_way(word: u32, behind: u64) -> [(bool, u64); 2] {
    [false, true].map(|known| {
        let mut config = Config::default();
        config.board.harts = 2;
        config.board.memory = 16 << 20;
        config.blocks.instructions = 1;
        let blocks = config.blocks;
        let mut machine = Machine::new(config).expect("a machine");
        let mut profile = Profile::default();
        profile.costs.guest_access = GUEST_ACCESS;
        machine.set_profile(Some(&profile));
        let (hart, system) = (&mut machine.harts[0], &mut machine.system);
        system.memory.code.set_limit(blocks);
        // csrw pmpaddr0, x6; csrw pmpcfg0, x7: for what is done as a lower mode does it.
        let words: [u32; 4] = [0x3b03_1073, 0x3a03_9073, word, word];
        for (address, word) in (CODE..).step_by(4).zip(words) {
            let stored = system.memory.store(address, &word.to_le_bytes());
            stored.expect("RAM");
        }
        hart.pc = CODE;
        hart.x[5] = WORD;
        (hart.x[6], hart.x[7]) = (u64::MAX, 31);
        for _ in 0..2 + usize::from(known) {
            let next = hart.cycles + 1;
            assert!(!run::<Timing>(hart, system, next));
        }
        let charge = Charge {
            access: LineAccess::Store,
            address: WORD,
            physical: WORD,
            space: Space::default(),
            translated: false,
            name: None,
            shared: false,
        };
        let timing = system.timing.as_mut().expect("measured");
        let walk = || Walked {
            shift: 12,
            global: false,
            guest_physical: 0,
            references: &[],
        };
        timing.access((HartId(1), 0), charge, &mut EventCounts::default(), walk);
        let before = hart.cycles;
        hart.horizon = before - behind;
        let gave_way = run::<Timing>(hart, system, before + 1);
        (gave_way, hart.cycles - before)
    })
}

const ACCESSES: [(u32, &str); 7] = [
    (0x0002_b303, "ld x6, (x5)"),
    (0x0062_b023, "sd x6, (x5)"),
    (0x0062_b32f, "amoadd.d x6, x6, (x5)"),
    (0x6c02_c373, "hlv.d x6, (x5)"),
    (0x6e62_c073, "hsv.d x6, (x5)"),
    (0x0042_a00f, "cbo.zero (x5)"),
    (0x0022_a00f, "cbo.flush (x5)"),
];

#[test]
fn accesses_to_moved_lines_give_way() {
    for (word, name) in ACCESSES {
        assert_eq!(gives_way(word, 1), [(true, 0); 2], "{name}");
    }
    assert_eq!(
        gives_way(0x0010_0313, 1).map(|(gave_way, _)| gave_way),
        [false; 2]
    );
}

/// The hart that all others wait for goes on, whatever its instruction costs: otherwise no hart ever would.
#[test]
fn last_hart_never_gives_way() {
    for (word, name) in ACCESSES {
        let given = gives_way(word, 0).map(|(gave_way, _)| gave_way);
        assert_eq!(given, [false; 2], "{name}");
    }
}
