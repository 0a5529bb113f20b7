//! Loops of any instructions, with any words in memory.

use super::*;
use proptest::prelude::*;

/// A loop of understood instructions, which first loads x10 to x12 and never writes x13 to x15.
fn any_body() -> impl Strategy<Value = Vec<u16>> {
    let loaded = 10u32..13;
    let step = (0u32..9, loaded.clone(), loaded, 10u32..16, any::<u32>()).prop_map(
        |(kind, to, first, second, bits)| {
            let immediate = bits & 0xfff;
            match kind {
                // Loads from two words that are there, of each width and sign.
                0 | 1 => {
                    let width = [0, 1, 2, 3, 4, 5, 6][bits as usize % 7];
                    (bits >> 8 & 1) << 23 | 8 << 15 | width << 12 | to << 7 | 0x03
                }
                2 => immediate << 20 | first << 15 | 7 << 12 | to << 7 | 0x13,
                3 => (bits & 63) << 20 | first << 15 | 1 << 12 | to << 7 | 0x13,
                4 => (bits & 63) << 20 | first << 15 | 5 << 12 | to << 7 | 0x13,
                5 => first << 15 | to << 7 | 0x1b,
                6 => (bits & 1) << 30 | second << 20 | first << 15 | to << 7 | 0x33,
                // Over the next instruction.
                7 => {
                    let kind = [0, 1, 4, 5, 6, 7][bits as usize % 6];
                    let second = if bits & 64 == 0 { 0 } else { second };
                    second << 20 | first << 15 | kind << 12 | 8 << 8 | 0x63
                }
                _ => (bits & 0x1f) << 20 | to << 7 | 0x13,
            }
        },
    );
    let last = (0usize..6, 10u32..16, any::<bool>());
    (prop::collection::vec(step, 1..10), last).prop_map(|(steps, (kind, second, zero))| {
        let loads = (10..13).map(|to| (to & 1) << 23 | 8 << 15 | 3 << 12 | to << 7 | 0x03);
        let kind = [0, 1, 4, 5, 6, 7][kind];
        let second = if zero { 0 } else { second };
        // Over the way back.
        let last = second << 20 | 10 << 15 | kind << 12 | 8 << 8 | 0x63;
        let all = loads.chain(steps).chain([0x13, last]);
        all.flat_map(|bits: u32| [bits as u16, (bits >> 16) as u16])
            .collect()
    })
}

/// Executes the guest: true if it comes back to its PAUSE.
fn comes_back(machine: &Machine) -> bool {
    let mut registers = machine.registers;
    let mut at = BASE + 4;
    for _ in 0..100 {
        if at == BASE {
            return true;
        }
        let Some(parcel) = parcel::fetch(at, |at| machine.fetch(at)) else {
            return false;
        };
        let next = at + parcel.length();
        let get = |register: Register| registers[register.number()];
        let (to, value) = match Instruction::decode(parcel).unwrap() {
            Instruction::Load(load) => {
                let address = get(load.base).wrapping_add_signed(load.offset);
                let (_, raw) = machine.load(address, load.width).unwrap();
                let unused = 64 - 8 * load.width.bytes();
                let high = raw << unused;
                let value = match load.signed {
                    true => (high.cast_signed() >> unused).cast_unsigned(),
                    false => high >> unused,
                };
                (load.to, value)
            }
            Instruction::Value(to, value) => (to, value),
            Instruction::Compute(to, operation, first, second) => {
                let second = match second {
                    Operand::Register(second) => get(second),
                    Operand::Value(value) => value,
                };
                (to, operation.of(get(first), second))
            }
            Instruction::Jump(offset) => {
                at = at.wrapping_add_signed(offset);
                continue;
            }
            Instruction::Branch(comparison, (first, second), offset) => {
                at = match comparison.holds(get(first), get(second)) {
                    true => at.wrapping_add_signed(offset),
                    false => next,
                };
                continue;
            }
            _ => (Register::from_field(0), 0),
        };
        if !to.is_zero() {
            registers[to.number()] = value;
        }
        at = next;
    }
    false
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Any words: the guest comes back while the conditions hold.
    #[test]
    fn guest_loops_while_conditions_hold(
        body in any_body(),
        registers in any::<[u16; 6]>(),
        words in any::<[u8; 2]>(),
        flips in prop::collection::vec(any::<[[u64; 2]; 3]>(), 16),
    ) {
        let mut code = PAUSE.to_vec();
        code.extend(body);
        let back = 2 * code.len() as u32;
        let offset = back.wrapping_neg();
        let jump = (offset >> 20 & 1) << 31 | (offset >> 1 & 0x3ff) << 21
            | (offset >> 11 & 1) << 20 | (offset >> 12 & 0xff) << 12 | 0x6f;
        code.extend([jump as u16, (jump >> 16) as u16]);
        let mut machine = Machine::new(&code, &[(8, 0x1000)], &[]);
        for (number, value) in registers.into_iter().enumerate() {
            machine.registers[10 + number] = u64::from(value) & 7;
        }
        let set = |machine: &mut Machine, words: [u64; 2]| {
            machine.memory = [(0x1000, words[0]), (0x1008, words[1])].into();
        };
        let before = words.map(|word| u64::from(word) << (word & 31));
        set(&mut machine, before);
        if let Some(Iteration::Waits(conditions)) = machine.iteration(0) {
            let conditions: Vec<_> = conditions.into_iter().flatten().collect();
            prop_assert!(machine.hold(&conditions));
            prop_assert!(comes_back(&machine));
            for [a, b, c] in flips {
                let flipped = [0, 1].map(|word| before[word] ^ (a[word] & b[word] & c[word]));
                set(&mut machine, flipped);
                if machine.hold(&conditions) {
                    prop_assert!(comes_back(&machine), "{conditions:x?}");
                }
            }
        }
    }

    #[test]
    fn following_ends_for_any_code(
        code in prop::collection::vec(any::<u16>(), 0..64),
        registers in any::<[u64; 32]>(),
        at in 0u64..64,
    ) {
        let machine = Machine { code, registers, ..Machine::default() };
        let _ = machine.iteration(2 * at);
        prop_assert!(machine.fetches.get() <= (1 + MAX_BRANCHES as usize) * MAX_INSTRUCTIONS * 2);
    }
}
