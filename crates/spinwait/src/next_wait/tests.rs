//! Guests that are interrupted somewhere in their waits.

use proptest::prelude::*;

use std::vec::Vec;

use super::*;
use crate::iteration::tests::{BASE, Machine};

/// A wait by WRS.NTO while the word at x13 is x16, with a count, a limit of time and a jump through a register.
const LOOP: [u16; 27] = [
    0xa72f, 0x1006, // 0: lr.w a4, (a3)
    0x8f3d, // xor a4, a4, a5
    0xe319, // bnez a4, 12
    0x0073, 0x00d0, // 8: wrs.nto
    0x0e85, // 12: addi t4, t4, 1
    0x2573, 0xc010, // rdtime a0
    0x0533, 0x41e5, // sub a0, a0, t5
    0x7d63, 0x00b5, // bgeu a0, a1, 48
    0x429c, // 26: lw a5, 0(a3)
    0x000f, 0x0230, // fence r, rw
    0x0297, 0x0000, // 32: auipc t0, 0
    0x02a9, // addi t0, t0, 10
    0x8282, // jr t0
    0x0000, // no instruction
    0x9563, 0x0107, // 42: bne a5, a6, 52
    0xbfc9, // j 0
    0xc2c8, // 48: sw a0, 4(a3)
    0xb7e5, // j 26
    0x8082, // 52: ret
];
const WAIT: u64 = BASE + 8;
const WORD: u64 = 0x1000;
/// Offsets of the loop's instructions, without those of the way out.
const PLACES: [u64; 16] = [0, 4, 6, 8, 12, 14, 18, 22, 26, 28, 32, 36, 38, 42, 46, 8];

/// The guest has seen 7 in the word, and its limit of time is 100 after 1000.
fn waits() -> Machine {
    let registers = [(11, 100), (13, WORD), (15, 7), (16, 7), (30, 1000)];
    let mut machine = Machine::new(&LOOP, &registers, &[(WORD, 7)]);
    machine.time = 1050;
    machine
}

fn register(number: u32) -> Register {
    Register::from_field(number)
}

#[test]
fn wait_is_found_throughout_its_loop() {
    for place in PLACES {
        let mut machine = waits();
        // What LR, and AUIPC and ADDI, leave for what follows them.
        machine.registers[14] = if place == 4 { 7 } else { 0 };
        machine.registers[5] = BASE + if place == 38 { 42 } else { 32 };
        // What RDTIME and SUB do.
        machine.registers[10] = if place == 18 { 1050 } else { 50 };
        let found = NextWait::find(&machine, BASE + place).unwrap();
        assert_eq!(found.at, WAIT);
        let value = |number| {
            let written = found.written(register(number));
            written.unwrap_or(machine.registers[number as usize])
        };
        assert_eq!((value(13), value(15)), (WORD, 7), "from {place}");
        assert_eq!(found.written(register(13)), None, "no one writes it");
    }
    let turn = NextWait::find(&waits(), WAIT + 4).unwrap();
    assert_eq!(turn.written(register(29)), Some(1), "one more turn");
    assert_eq!(turn.written(register(10)), Some(50), "since 1000");
    assert_eq!(turn.written(register(5)), Some(BASE + 42));
}

#[test]
fn wait_that_is_over_is_not_found() {
    // Out of the loop there is nothing.
    let over = waits().with(WORD, 8);
    assert_eq!(NextWait::find(&over, BASE + 26), None);
    // The limit of time is reached, which is noted in memory.
    let mut late = waits();
    late.time = 1100;
    assert_eq!(NextWait::find(&late, BASE + 12), None);
    // Past that it would wait again.
    assert!(NextWait::find(&late, BASE + 26).is_some());
}

#[test]
fn unreadable_word_ends_the_search() {
    let mut machine = waits();
    machine.registers[13] = WORD + 8;
    assert_eq!(NextWait::find(&machine, BASE), None);
    assert_eq!(NextWait::find(&machine, BASE + 12), None);
    assert_eq!(NextWait::find(&machine, BASE - 2), None, "no code");
}

/// A test-and-set lock: LR and SC, and a WRS.NTO where it is held.
#[test]
fn held_lock_alone_is_waited_for() {
    let code = [
        0xa72f, 0x1406, // 0: lr.w.aq a4, (a3)
        0xe701, // bnez a4, 12
        0xa72f, 0x18f6, // sc.w a4, a5, (a3)
        0xc709, // beqz a4, 20
        0x0073, 0x00d0, // 12: wrs.nto
        0xbfc5, // j 0
        0x0001, // nop
    ];
    let held = Machine::new(&code, &[(13, WORD), (15, 1)], &[(WORD, 1)]);
    for place in [0, 12, 16] {
        assert_eq!(NextWait::find(&held, BASE + place).unwrap().at, BASE + 12);
    }
    assert_eq!(NextWait::find(&held.with(WORD, 0), BASE), None);
}

/// AMOSWAP, AMOOR and AMOAND of one bit; a lock that is taken by one of the first two waits while the bit is there.
#[test]
fn atomic_operation_without_effect_is_followed() {
    for (operation, operand, leaves) in [
        (0x0af6_a72f, 1, [false, true]),
        (0x40f6_a72f, 1, [false, true]),
        (0x60f6_a72f, !1, [true, false]),
    ] {
        // amo a4, a5, (a3); wrs.nto; j 0
        let code = [
            operation as u16,
            (operation >> 16) as u16,
            0x0073,
            0x00d0,
            0xbfe5,
        ];
        for (word, leaves) in leaves.into_iter().enumerate() {
            let words = [(WORD, word as u64)];
            let machine = Machine::new(&code, &[(13, WORD), (15, operand)], &words);
            let found = NextWait::find(&machine, BASE).map(|wait| wait.written(register(14)));
            assert_eq!(found, leaves.then_some(Some(word as u64)));
        }
    }
}

#[test]
fn endless_work_is_no_wait() {
    // addi a0, a0, -1; bnez a0, 0
    let machine = Machine::new(&[0x157d, 0xfd7d], &[(10, 1 << 40)], &[]);
    assert_eq!(NextWait::find(&machine, BASE), None);
    assert_eq!(machine.fetches.get(), MAX_INSTRUCTIONS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn search_ends_for_any_code(
        code in prop::collection::vec(any::<u16>(), 0..64),
        registers in any::<[u64; 32]>(),
        at in 0u64..64,
    ) {
        let machine = Machine { code, registers, ..Machine::default() };
        let _ = NextWait::find(&machine, BASE + 2 * at);
        prop_assert!(machine.fetches.get() <= 2 * MAX_INSTRUCTIONS);
    }

    /// A guest that has gone a part of the way by itself is found in the same wait, with the same registers there.
    #[test]
    fn every_point_leads_to_the_same_wait(
        body in prop::collection::vec((0u32..6, 10u32..16, 10u32..16, 10u32..16, any::<u32>()), 1..12),
        registers in any::<[u16; 6]>(),
        word in any::<u64>(),
    ) {
        let mut code = Vec::new();
        for (kind, to, first, second, bits) in body {
            let bits = match kind {
                // LD of the word, ANDI, SLLI, ADD or SUB, a branch over the next instruction, RDTIME.
                0 => 8 << 15 | 3 << 12 | to << 7 | 0x03,
                1 => (bits & 0xfff) << 20 | first << 15 | 7 << 12 | to << 7 | 0x13,
                2 => (bits & 63) << 20 | first << 15 | 1 << 12 | to << 7 | 0x13,
                3 => (bits & 1) << 30 | second << 20 | first << 15 | to << 7 | 0x33,
                4 => second << 20 | first << 15 | (bits & 1) << 12 | 4 << 8 | 0x63,
                _ => 0xc010_2073 | to << 7,
            };
            code.extend([bits as u16, (bits >> 16) as u16]);
        }
        code.extend([0x0013, 0, 0x0073, 0x00d0]);
        let mut machine = Machine::new(&code, &[(8, WORD)], &[(WORD, word)]);
        machine.time = word ^ 77;
        for (number, value) in registers.into_iter().enumerate() {
            machine.registers[10 + number] = u64::from(value) & 3;
        }
        let whole = |machine: &Machine, found: &NextWait| {
            let mut all = machine.registers;
            for number in 1..32 {
                if let Some(value) = found.written(register(number)) {
                    all[number as usize] = value;
                }
            }
            (found.at, all)
        };
        let first = NextWait::find(&machine, BASE).unwrap();
        let expected = whole(&machine, &first);
        let mut at = BASE;
        while at != first.at {
            let found = NextWait::find(&machine, at).unwrap();
            prop_assert_eq!(whole(&machine, &found), expected);
            // The guest makes a step of its own.
            let mut path = Path { guest: &machine, written: [None; 32] };
            let parcel = parcel::fetch(at, |at| machine.fetch(at)).unwrap();
            at = path.step(at, parcel).unwrap();
            let written = path.written;
            for (number, value) in written.into_iter().enumerate() {
                if let Some(value) = value {
                    machine.registers[number] = value;
                }
            }
        }
    }
}
