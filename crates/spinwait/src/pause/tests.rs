use std::vec::Vec;

use super::*;
use proptest::prelude::*;
use riscv::instruction::PAUSE;

/// Address of the tests' code.
const BASE: u64 = 0xffff_ffff_8000_1000;

/// Assembler of code from its beginning to its end.
#[derive(Clone, Debug, Default)]
struct Text(Vec<u16>);

impl Text {
    fn here(&self) -> u64 {
        BASE + 2 * self.0.len() as u64
    }

    fn long(&mut self, bits: u32) {
        self.0.extend([bits as u16, (bits >> 16) as u16]);
    }

    fn jump(&mut self, to: u64) {
        let offset = to.wrapping_sub(self.here()) as u32;
        let bits = (offset >> 20 & 1) << 31
            | (offset >> 1 & 0x3ff) << 21
            | (offset >> 11 & 1) << 20
            | (offset >> 12 & 0xff) << 12;
        self.long(bits | 0x6f);
    }

    fn branch(&mut self, funct3: u32, first: u32, second: u32, to: u64) {
        let offset = to.wrapping_sub(self.here()) as u32;
        let bits = (offset >> 12 & 1) << 31
            | (offset >> 5 & 0x3f) << 25
            | (offset >> 1 & 0xf) << 8
            | (offset >> 11 & 1) << 7;
        self.long(bits | second << 20 | first << 15 | funct3 << 12 | 0x63);
    }

    fn immediate(&mut self, opcode: u32, funct3: u32, to: u32, from: u32, value: u32) {
        self.long((value & 0xfff) << 20 | from << 15 | funct3 << 12 | to << 7 | opcode);
    }

    fn decode(&self, pause: u64) -> Option<PauseLoop> {
        PauseLoop::decode(pause, |at| {
            let index = at.checked_sub(BASE)? / 2;
            self.0.get(usize::try_from(index).ok()?).copied()
        })
    }
}

fn register(number: u32) -> Register {
    Register::from_field(number)
}

/// A loop with every choice that a compiler has.
#[derive(Clone, Copy, Debug)]
struct Form {
    base: u32,
    seen: u32,
    owner: u32,
    ticket: u32,
    offset: i32,
    wide: bool,
    /// The word is the kernel's own: an AUIPC says where.
    own: bool,
    is_ticket: bool,
    one_extension: bool,
    sign: bool,
    fence: bool,
    /// The PAUSE lies behind the loop, which jumps there and back.
    apart: bool,
    /// The branch leaves the loop, and a jump goes on.
    leaves: bool,
}

impl Form {
    /// Code, address of the PAUSE, and address of the word.
    fn text(self) -> (Text, u64, WordAddress) {
        let mut text = Text::default();
        let mut pause = BASE;
        if !self.apart {
            text.long(PAUSE);
        }
        let look = text.here();
        let address = if self.own {
            text.long(0x12345 << 12 | self.seen << 7 | 0x17);
            let value = look.wrapping_add(0x1234_5000);
            WordAddress::Fixed(value.wrapping_add_signed(self.offset.into()))
        } else {
            WordAddress::Register(register(self.base), self.offset.into())
        };
        let base = if self.own { self.seen } else { self.base };
        let width = if self.wide { 3 } else { 2 };
        text.immediate(0x03, width, self.seen, base, self.offset as u32);
        if self.is_ticket && self.one_extension {
            text.long(0x04 << 25 | self.seen << 15 | 4 << 12 | self.owner << 7 | 0x3b);
        } else if self.is_ticket {
            text.immediate(0x13, 1, self.owner, self.seen, 48);
            text.immediate(0x13, 5, self.owner, self.owner, 48);
        }
        if self.sign && !self.wide {
            text.immediate(0x1b, 0, self.seen, self.seen, 0);
        }
        if self.fence {
            text.long(0x0230_000f);
        }
        let (first, second) = if self.is_ticket {
            (self.ticket, self.owner)
        } else {
            (self.seen, 0)
        };
        // How far the rest is, where the PAUSE lies apart.
        let behind = text.here() + if self.leaves { 8 } else { 4 } + 64;
        if self.apart {
            pause = behind;
        }
        if self.leaves {
            text.branch(0, first, second, behind + 128);
            text.jump(pause);
        } else {
            text.branch(1, first, second, pause);
        }
        if self.apart {
            while text.here() < behind {
                text.0.push(1); // c.nop
            }
            text.long(PAUSE);
            text.jump(look);
        }
        (text, pause, address)
    }
}

fn any_form() -> impl Strategy<Value = Form> {
    let registers = prop::sample::subsequence((5u32..32).collect::<Vec<_>>(), 4).prop_shuffle();
    (registers, -2048i32..2048, any::<[bool; 8]>()).prop_map(|(registers, offset, choices)| {
        let [
            wide,
            own,
            is_ticket,
            one_extension,
            sign,
            fence,
            apart,
            leaves,
        ] = choices;
        Form {
            base: registers[0],
            seen: registers[1],
            owner: registers[2],
            ticket: registers[3],
            offset,
            wide,
            own,
            is_ticket,
            one_extension,
            sign,
            fence,
            apart,
            leaves,
        }
    })
}

proptest! {
    #[test]
    fn every_compiled_loop_is_decoded(form in any_form()) {
        let (text, pause, address) = form.text();
        let ticket = (form.is_ticket && !form.wide).then(|| register(form.ticket));
        let width = if form.wide { Width::Double } else { Width::Word };
        let expected = PauseLoop { address, seen: register(form.seen), width, ticket };
        prop_assert_eq!(text.decode(pause), Some(expected));
    }

    #[test]
    fn loop_without_a_way_back_is_refused(form in any_form()) {
        let (text, pause, _) = form.text();
        // Another PAUSE, from which nothing is known of this loop.
        let mut other = text.clone();
        // The way out of the loop does not lead there.
        other.0.push(1); // c.nop
        let at = other.here();
        other.long(PAUSE);
        let to = if form.apart { BASE } else { BASE + 4 };
        other.jump(to);
        prop_assert_eq!(other.decode(at), None);
        // Cut off in front of its branch.
        let end = usize::try_from((pause - BASE) / 2).unwrap();
        let mut cut = text;
        cut.0.truncate(if form.apart { end } else { 4 });
        prop_assert_eq!(cut.decode(pause), None);
    }

    #[test]
    fn decoding_ends_for_any_code(code in prop::collection::vec(any::<u16>(), 0..64), at in 0u64..64) {
        let text = Text(code);
        if let Some(found) = text.decode(BASE + 2 * at) {
            prop_assert!(!found.seen.is_zero());
            prop_assert_ne!(found.ticket, Some(found.seen));
        }
    }
}

/// A register of the branch is overwritten, or there are two words.
#[test]
fn loop_that_overwrites_operands_is_refused() {
    let (base, seen, other) = (10, 15, 14);
    let tries: [&dyn Fn(&mut Text); 5] = [
        // The value, by a mask; the base, by a shift; a second load; a sum; a store.
        &|text| text.immediate(0x13, 7, seen, seen, 1),
        &|text| text.immediate(0x13, 1, base, seen, 48),
        &|text| text.immediate(0x03, 3, other, 4, 0),
        &|text| text.immediate(0x13, 0, other, seen, 1),
        &|text| text.long(0x00f5_2023),
    ];
    for between in tries {
        let mut text = Text::default();
        text.long(PAUSE);
        text.immediate(0x03, 2, seen, base, 4);
        between(&mut text);
        text.branch(1, seen, 0, BASE);
        assert_eq!(text.decode(BASE), None, "{text:x?}");
    }
    let mut text = Text::default();
    text.long(PAUSE);
    text.immediate(0x03, 2, seen, base, 4);
    text.branch(1, seen, 0, BASE);
    assert!(text.decode(BASE).is_some());
}

/// Jumps to themselves, and code without a branch.
#[test]
fn decoding_ends_for_endless_code() {
    let mut text = Text::default();
    text.long(PAUSE);
    text.jump(BASE + 4);
    assert_eq!(text.decode(BASE), None);
    let mut text = Text::default();
    text.long(PAUSE);
    text.immediate(0x03, 2, 15, 10, 0);
    (0..40).for_each(|_| text.long(0x0230_000f));
    assert_eq!(text.decode(BASE), None);
}

/// Linux's `cpu_relax`, as stock kernels wait for the next tick: `while (jiffies == before) cpu_relax();`.
fn wait_for_tick(divided: u32) -> (Text, u64) {
    let mut text = Text::default();
    let begin = text.here();
    text.long(0x0200_4033 | 14 << 15 | divided << 7);
    let pause = text.here();
    text.long(PAUSE);
    // ld s10, 0(s9)
    text.immediate(0x03, 3, 26, 25, 0);
    text.branch(0, 15, 26, begin);
    (text, pause)
}

#[test]
fn division_before_the_pause_is_accepted() {
    let (text, pause) = wait_for_tick(14);
    let expected = PauseLoop {
        address: WordAddress::Register(register(25), 0),
        seen: register(26),
        width: Width::Double,
        ticket: None,
    };
    assert_eq!(text.decode(pause), Some(expected));
}

#[test]
fn division_over_an_operand_is_refused() {
    for needed in [25, 26, 15] {
        let (text, pause) = wait_for_tick(needed);
        assert_eq!(text.decode(pause), None, "x{needed}");
    }
}
