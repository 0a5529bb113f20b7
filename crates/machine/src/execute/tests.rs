//! Devices that act in the middle of a hart's turn.

use super::{Fast, run};
use crate::device::Memory;
use crate::{Config, Machine};

const CODE: u64 = 0x8000_0000;
const WORD: u64 = 0x8000_1000;

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
    run::<Fast>(hart, system, next);
    assert!(hart.reservation.is_some());
    if let Some(address) = device_stores_to {
        system.memory.store(address, &[1]).expect("RAM");
    }
    let next = hart.cycles + 1;
    run::<Fast>(hart, system, next);
    hart.x[7]
}

#[test]
fn a_devices_store_ends_a_reservation() {
    assert_eq!(conditional(None), 0);
    assert_eq!(conditional(Some(WORD + 3)), 1);
}
