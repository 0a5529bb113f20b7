//! Ratified options: counters by mode, the seed CSR, entries that become valid.

use riscv::csr::number::{MCYCLE, MCYCLECFG, MINSTRET, MINSTRETCFG, SATP, SEED};

use super::{LEAF, RAM, VALUE, machine, map, write};
use crate::hart::{Cause, Hart, Mode};
use crate::machine::{Config, Machine};
use crate::system::System;
use crate::timing::Profile;

const MINH: u64 = 1 << 62;
const SINH: u64 = 1 << 61;

/// Reads a CSR in M-mode.
fn read(hart: &mut Hart, system: &mut System, number: u16) -> u64 {
    let mode = hart.mode();
    hart.set_mode(Mode::MACHINE);
    assert!(
        hart.execute_csr(u32::from(number) << 20 | 0x2373, system)
            .is_ok()
    );
    hart.set_mode(mode);
    hart.x[6]
}

/// Spends cycles, and half as many instructions, in a mode.
fn spend(hart: &mut Hart, mode: Mode, cycles: u64) {
    hart.set_mode(mode);
    hart.cycles += cycles;
    hart.retired += cycles / 2;
}

#[test]
fn filters_leave_out_modes() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    spend(hart, Mode::MACHINE, 1000);
    // The counters go on from what they hold, whatever filters there were.
    let [cycles, instructions] = [MCYCLE, MINSTRET].map(|number| read(hart, system, number));
    assert_eq!((cycles, instructions), (1000, 500));
    write(hart, system, MCYCLECFG, MINH | 1 << 63 | 1);
    write(hart, system, MINSTRETCFG, SINH);
    assert_eq!(read(hart, system, MCYCLECFG), MINH);
    spend(hart, Mode::HYPERVISOR, 40);
    spend(hart, Mode::MACHINE, 10_000);
    spend(hart, Mode::VIRTUAL_SUPERVISOR, 200);
    assert_eq!(read(hart, system, MCYCLE), 1000 + 40 + 200);
    assert_eq!(read(hart, system, MINSTRET), 500 + 5_000 + 100);
    write(hart, system, MCYCLECFG, 0);
    spend(hart, Mode::MACHINE, 7);
    assert_eq!(read(hart, system, MCYCLE), 1000 + 40 + 200 + 7);
}

/// Values of seed from the first one on, of a hart of a machine with a seed.
fn drawn(seed: u64, hart: usize) -> [u64; 4] {
    let mut config = Config::default();
    config.board.memory = 4 << 20;
    config.board.harts = 2;
    config.board.seed = seed;
    let mut machine = Machine::new(config).expect("a machine");
    let (hart, system) = (&mut machine.harts[hart], &mut machine.system);
    [(); 4].map(|()| {
        // csrrw t1, seed, x0
        let word = u32::from(SEED) << 20 | 0x1373;
        assert!(hart.execute_csr(word, system).is_ok());
        hart.x[6]
    })
}

#[test]
fn seed_csr_follows_from_the_seed() {
    let first = drawn(1, 0);
    assert_eq!(first, drawn(1, 0));
    assert_ne!(first, drawn(2, 0));
    assert_ne!(first, drawn(1, 1));
    for value in first {
        // ES16, and nothing between it and the entropy.
        assert_eq!(value >> 16, 0x8000);
    }
    assert_ne!(first[0], first[1]);
}

#[test]
fn seed_csr_needs_a_write() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    let before = hart.extension.entropy;
    // csrrs t1, seed, x0; csrrci t1, seed, 0
    for word in [0x2373, 0x7373] {
        let refused = hart.execute_csr(u32::from(SEED) << 20 | word, system);
        assert!(refused.is_err());
        assert_eq!(hart.exception.cause, Cause::IllegalInstruction);
    }
    assert_eq!(hart.extension.entropy, before);
}

/// An entry that becomes valid is found at the next access, without a fence: no walk's failure is kept.
#[test]
fn valid_entries_need_no_fence() {
    for timed in [false, true] {
        let mut machine = machine();
        if timed {
            machine.set_profile(Some(&Profile::default()));
        }
        let (hart, system) = (&mut machine.harts[0], &mut machine.system);
        hart.set_mode(Mode::HYPERVISOR);
        let space = map(system, 0, LEAF);
        let root = RAM + 0x1000;
        for place in [root, root + 0x1000] {
            let entry = system.memory.ram.read::<u64>(place).expect("in RAM");
            assert!(system.memory.store_scalar(place, 0_u64, 0).is_some());
            write(hart, system, SATP, space);
            hart.fence(crate::base::Fence::Everything);
            assert!(hart.load_slow::<u64>(system, 0, 1).is_err());
            assert_eq!(hart.exception.cause, Cause::LoadPage);
            assert!(system.memory.store_scalar(place, entry, 0).is_some());
            assert_eq!(hart.load_slow::<u64>(system, 0, 1), Ok(VALUE));
        }
    }
}
