//! Iterations of Linux's loops, and of made-up ones.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use super::*;

mod any;

pub const BASE: u64 = 0xffff_ffff_8000_1000;
const PAUSE: [u16; 2] = [0x000f, 0x0100];

/// A guest whose code starts at `BASE`.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub code: Vec<u16>,
    pub registers: [u64; 32],
    pub memory: BTreeMap<u64, u64>,
    pub time: u64,
    pub fetches: Cell<usize>,
}

impl Guest for Machine {
    type Address = u64;

    fn fetch(&self, address: u64) -> Option<u16> {
        self.fetches.set(self.fetches.get() + 1);
        let index = usize::try_from(address.checked_sub(BASE)? / 2).ok()?;
        self.code.get(index).copied()
    }

    fn load(&self, address: u64, width: Width) -> Option<(u64, u64)> {
        let word = address.is_multiple_of(width.bytes());
        let value = *self.memory.get(&address).filter(|_| word)?;
        Some((address, width.truncate(value)))
    }

    fn register(&self, register: Register) -> u64 {
        self.registers[register.number()]
    }

    fn clock(&self) -> u64 {
        self.time
    }
}

impl Machine {
    pub fn new(code: &[u16], registers: &[(usize, u64)], memory: &[(u64, u64)]) -> Self {
        let mut machine = Self {
            code: code.to_vec(),
            memory: memory.iter().copied().collect(),
            ..Self::default()
        };
        for &(number, value) in registers {
            machine.registers[number] = value;
        }
        machine
    }

    fn iteration(&self, pause: u64) -> Option<Iteration<u64>> {
        Iteration::follow(self, BASE + pause)
    }

    /// Conditions of a wait.
    fn waits(&self, pause: u64) -> Vec<Condition<u64>> {
        match self.iteration(pause) {
            Some(Iteration::Waits(conditions)) => conditions.into_iter().flatten().collect(),
            other => panic!("{other:x?}"),
        }
    }

    fn hold(&self, conditions: &[Condition<u64>]) -> bool {
        let raw = |condition: &Condition<u64>| self.memory[&condition.address];
        conditions
            .iter()
            .all(|condition| condition.holds(raw(condition)))
    }

    pub fn with(&self, place: u64, value: u64) -> Self {
        let mut other = self.clone();
        other.memory.insert(place, value);
        other
    }
}

/// `mutex_spin_on_owner` of Debian's kernel 6.12, from the first test of the owner on. Its PAUSE is at 46.
const MUTEX: [u16; 34] = [
    0x51fc, // 0: lw a5, 100(a1)
    0xcb99, // beqz a5, 24
    0x519c, // lw a5, 32(a1)
    0x3783, 0x0002, // ld a5, 0(tp)
    0x8ba1, // andi a5, a5, 8
    0xe791, // bnez a5, 24
    0xce11, // beqz a2, 42
    0x4a1c, // lw a5, 16(a2)
    0xcb81, // beqz a5, 34
    0x711c, // ld a5, 32(a0)
    0xc791, // beqz a5, 34
    0x4501, // 24: li a0, 0
    0x60a2, // ld ra, 8(sp)
    0x6402, // ld s0, 0(sp)
    0x0141, // addi sp, sp, 16
    0x8082, // ret
    0xce91, // 34: beqz a3, 62
    0x691c, // ld a5, 16(a0)
    0x99e3, 0xfef6, // bne a3, a5, 24
    0xc7b3, 0x0207, // 42: div a5, a5, x0
    0x000f, 0x0100, // pause
    0x611c, // ld a5, 0(a0)
    0x9be1, // andi a5, a5, -8
    0x85e3, 0xfcf5, // beq a1, a5, 0
    0x4505, // li a0, 1
    0xbff9, // j 26
    0x611c, // 62: ld a5, 0(a0)
    0x8b85, // andi a5, a5, 1
    0xd7e5, // beqz a5, 42
];
const MUTEX_PAUSE: u64 = 46;
const LOCK: u64 = 0x1000;
const OWNER: u64 = 0x2000;
const THREAD: u64 = 0x3000;

fn mutex() -> Machine {
    let registers = [(10, LOCK), (11, OWNER), (4, THREAD)];
    let memory = [
        (LOCK, OWNER | 1),
        (OWNER + 100, 1),
        (OWNER + 32, 7),
        (THREAD, 1 << 32 | 2),
    ];
    Machine::new(&MUTEX, &registers, &memory)
}

#[test]
fn mutex_waits_for_three_words() {
    let machine = mutex();
    let conditions = machine.waits(MUTEX_PAUSE);
    let condition = |address, width, mask, value, equal| Condition {
        address,
        width,
        signed: true,
        mask,
        value,
        equal,
    };
    let expected = [
        condition(LOCK, Width::Double, !7, OWNER, true),
        condition(OWNER + 100, Width::Word, u64::MAX, 0, false),
        condition(THREAD, Width::Double, 8, 0, true),
    ];
    assert_eq!(conditions, expected);
    let holds = |place, value| machine.with(place, value).hold(&conditions);
    assert!(holds(LOCK, OWNER) && holds(LOCK, OWNER | 7), "flags alone");
    assert!(holds(OWNER + 32, 1), "a word that decides nothing");
    assert!(holds(THREAD, 2) && holds(OWNER + 100, 2));
    assert!(!holds(LOCK, 0) && !holds(LOCK, OWNER + 64));
    assert!(!holds(OWNER + 100, 0) && !holds(THREAD, 10));
}

#[test]
fn mutex_that_is_free_is_over() {
    for (place, value) in [(LOCK, 0), (LOCK, OWNER + 8), (OWNER + 100, 0), (THREAD, 8)] {
        let left = mutex().with(place, value);
        assert_eq!(
            left.iteration(MUTEX_PAUSE),
            Some(Iteration::Over(LOCK)),
            "{place:x}"
        );
    }
}

/// With a context for several mutexes the loop takes another path, by registers alone.
#[test]
fn registers_decide_the_path_of_a_mutex() {
    const CONTEXT: u64 = 0x4000;
    let mut machine = mutex().with(CONTEXT + 16, 0).with(LOCK + 16, 0x5000);
    machine.registers[12] = CONTEXT;
    machine.registers[13] = 0x5000;
    // Owner, its CPU, the thread, the context, the first that waits: more than four.
    assert_eq!(machine.iteration(MUTEX_PAUSE), None);
    // The owner's CPU, where only it and the context are looked at.
    machine.code[4] = 0x0001;
    machine.code[5] = 0x0001;
    machine.code[3] = 0x0001;
    machine.code[6] = 0x0001;
    let conditions = machine.waits(MUTEX_PAUSE);
    assert_eq!(conditions.len(), 4);
    assert!(!machine.with(CONTEXT + 16, 1).hold(&conditions));
    assert!(!machine.with(LOCK + 16, 1).hold(&conditions));
}

/// A test-and-set lock by AMOOR of one bit: the loop waits while the whole word is unchanged, since any other value may be a free lock.
#[test]
fn atomic_lock_waits_for_its_word() {
    // amoor.w.aq a4, a5, (a3); and a4, a4, a5; beqz a4, 16; pause; j 0; nop; nop; ret
    let code = [
        0xa72f, 0x44f6, 0x8f7d, 0xc709, 0x000f, 0x0100, 0xbfd5, 0x0001, 0x0001, 0x8082,
    ];
    let machine = Machine::new(&code, &[(13, LOCK), (15, 1)], &[(LOCK, 5)]);
    let conditions = machine.waits(8);
    for condition in &conditions {
        assert_eq!((condition.address, condition.width), (LOCK, Width::Word));
    }
    assert!(machine.hold(&conditions));
    for other in [0, 1, 4, 7] {
        assert!(!machine.with(LOCK, other).hold(&conditions), "{other}");
    }
    // It would be taken, which is no wait.
    assert_eq!(machine.with(LOCK, 4).iteration(8), None);
}

/// A loop with a jump through a word waits while that word is unchanged, too.
#[test]
fn jump_through_a_word_waits_for_it() {
    // pause; lw a5, 0(a0); ld a4, 8(a0); jr a4; ret; beqz a5, 0; ret
    let code = [
        0x000f, 0x0100, 0x411c, 0x6518, 0x8702, 0x8082, 0xdbf5, 0x8082,
    ];
    let words = [(0x1000, 0), (0x1008, BASE + 12)];
    let machine = Machine::new(&code, &[(10, 0x1000)], &words);
    let conditions = machine.waits(0);
    assert!(machine.hold(&conditions));
    assert!(!machine.with(0x1000, 1).hold(&conditions));
    assert!(!machine.with(0x1008, BASE + 10).hold(&conditions));
    assert_eq!(machine.with(0x1008, BASE + 10).iteration(0), None);
}

/// `rwsem_spin_on_owner`: its loop from the test of the flags on. Its PAUSE is at 20.
#[test]
fn semaphore_waits_for_its_owner() {
    let code = [
        0xe29d, // 0: bnez a3, 38
        0x3703, 0x0002, // ld a4, 0(tp)
        0x8b21, // andi a4, a4, 8
        0xef15, // bnez a4, 68
        0x53f8, // lw a4, 100(a5)
        0xcf05, // beqz a4, 68
        0x5398, // lw a4, 32(a5)
        0x4733, 0x0207, // div a4, a4, x0
        0x000f, 0x0100, // 20: pause
        0x6518, // ld a4, 8(a0)
        0x7613, 0xffc7, // andi a2, a4, -4
        0x7693, 0x0037, // andi a3, a4, 3
        0x8fe3, 0xfcc7, // beq a5, a2, 0
        0x7793, 0x0027, // 38: andi a5, a4, 2
        0x8082,
    ];
    let registers = [(10, LOCK), (15, OWNER), (4, THREAD)];
    let memory = [
        (LOCK + 8, OWNER),
        (OWNER + 100, 1),
        (OWNER + 32, 3),
        (THREAD, 0),
    ];
    let machine = Machine::new(&code, &registers, &memory);
    let conditions = machine.waits(20);
    assert_eq!(conditions.len(), 4);
    for (place, value) in [
        (LOCK + 8, 0),
        (LOCK + 8, OWNER | 1),
        (LOCK + 8, OWNER | 2),
        (OWNER + 100, 0),
        (THREAD, 8),
    ] {
        let left = machine.with(place, value);
        assert!(!left.hold(&conditions), "{place:x}");
        assert_eq!(left.iteration(20), Some(Iteration::Over(LOCK + 8)));
    }
    assert!(machine.with(OWNER + 32, 1).hold(&conditions));
}

/// `osq_lock` on harts without Zawrs, where the kernel has left the jump to the PAUSE: the node's word, and the own thread. The PAUSE
/// is at 152.
#[test]
fn queue_waits_for_node_and_thread() {
    let mut whole = vec![0x006f, 0x0980]; // 0: j 152
    whole.resize(12, 0);
    whole.extend([
        0x3683, 0x0002, // 24: ld a3, 0(tp)
        0x8aa1, // andi a3, a3, 8
        0xd2ed, // beqz a3, 0
    ]);
    whole.resize(76, 0);
    whole.extend([
        0x000f, 0x0100, // 152: pause
        0x4b94, // lw a3, 16(a5)
        0xdead, // beqz a3, 24
        0x4505, // li a0, 1
    ]);
    let node = 0x6000;
    let memory = [(node + 16, 0), (THREAD, 0)];
    let machine = Machine::new(&whole, &[(15, node), (4, THREAD)], &memory);
    let conditions = machine.waits(152);
    assert_eq!(conditions.len(), 2);
    assert_eq!(conditions[0].address, node + 16);
    assert!(!machine.with(node + 16, 1).hold(&conditions));
    assert!(!machine.with(THREAD, 0x18).hold(&conditions));
    assert!(machine.with(THREAD, 0x10).hold(&conditions));
}

/// The way out of the same queue: the node before this one may change, and its address with it.
#[test]
fn loaded_address_is_followed() {
    let code = [
        0x4b98, // 0: lw a4, 16(a5)
        0x2701, // sext.w a4, a4
        0x000f, 0x0230, // fence r, rw
        0xeb2d, // bnez a4, 122
        0x4733, 0x0207, // div a4, a4, x0
        0x000f, 0x0100, // 14: pause
        0x6798, // ld a4, 8(a5)
        0x6314, // ld a3, 0(a4)
        0x95e3, 0xfed7, // bne a5, a3, 0
    ];
    let (node, before) = (0x6000, 0x7000);
    let memory = [(node + 16, 0), (node + 8, before), (before, 0x9000)];
    let machine = Machine::new(&code, &[(15, node)], &memory);
    let conditions = machine.waits(14);
    assert_eq!(conditions.len(), 3);
    for (place, value) in [(node + 16, 1), (node + 8, 0), (before, node)] {
        assert!(!machine.with(place, value).hold(&conditions), "{place:x}");
    }
    assert!(machine.with(before, 0x9008).hold(&conditions));
    // What is there now is another node, which cannot be loaded.
    assert_eq!(machine.with(node + 8, 0x7004).iteration(14), None);
}

/// A spin of a program on a byte and a sequence count, as compilers write them without short instructions.
#[test]
fn conditions_name_bits_of_bytes_and_counts() {
    let code = [
        0x000f, 0x0100, // 0: pause
        0x4783, 0x0015, // lbu a5, 1(a0)
        0x9863, 0x0007, // bnez a5, 24
        0xa703, 0x0085, // lw a4, 8(a1)
        0x7713, 0x0017, // andi a4, a4, 1
        0x16e3, 0xfe07, // bnez a4, 0
        0x8082,
    ];
    let memory = [(0x1001, 0), (0x2008, 0xffff_fff1)];
    let machine = Machine::new(&code, &[(10, 0x1000), (11, 0x2000)], &memory);
    let conditions = machine.waits(0);
    assert_eq!(conditions.len(), 2);
    assert!(machine.with(0x2008, 3).hold(&conditions));
    assert!(!machine.with(0x2008, 4).hold(&conditions));
    assert!(!machine.with(0x1001, 0x80).hold(&conditions));
}

/// Shifted bits are named by their place in the word.
#[test]
fn shifted_field_is_named_in_the_word() {
    let code = [
        0x000f, 0x0100, // 0: pause
        0x611c, // ld a5, 0(a0)
        0x8391, // srli a5, a5, 4
        0x8b8d, // andi a5, a5, 3
        0x07a2, // slli a5, a5, 8
        0x8ae3, 0xfef5, // beq a1, a5, 0
    ];
    let machine = Machine::new(&code, &[(10, 0x1000), (11, 0x200)], &[(0x1000, 0x1f2f)]);
    let expected = Condition {
        address: 0x1000,
        width: Width::Double,
        signed: true,
        mask: 0x30,
        value: 0x20,
        equal: true,
    };
    assert_eq!(machine.waits(0), [expected]);
}

/// Words compared by size, or with each other, must not change.
#[test]
fn words_compared_by_size_must_not_change() {
    let code = [
        0x000f, 0x0100, // 0: pause
        0x411c, // lw a5, 0(a0)
        0x4198, // lw a4, 0(a1)
        0xece3, 0xfee7, // bltu a5, a4, 0
    ];
    let memory = [(0x1000, 5), (0x2000, 9)];
    let machine = Machine::new(&code, &[(10, 0x1000), (11, 0x2000)], &memory);
    let conditions = machine.waits(0);
    assert!(machine.hold(&conditions));
    assert!(!machine.with(0x1000, 6).hold(&conditions));
    assert!(!machine.with(0x2000, 10).hold(&conditions));
    assert_eq!(
        machine.with(0x1000, 9).iteration(0),
        Some(Iteration::Over(0x1000))
    );
}

/// The sign of a number is one bit.
#[test]
fn sign_is_one_bit() {
    let code = [
        0x000f, 0x0100, // 0: pause
        0x4114, // lw a3, 0(a0)
        0x02e2, // c.slli t0, 24: no code asks for it
        0xcce3, 0xfe06, // bltz a3, 0
    ];
    let machine = Machine::new(&code, &[(10, 0x1000)], &[(0x1000, 0x8000_0000)]);
    // The shift changes what it reads.
    assert_eq!(machine.iteration(0), None);
    let mut machine = machine;
    machine.code[3] = 0x0001;
    let conditions = machine.waits(0);
    assert!(machine.with(0x1000, 0xffff_ffff).hold(&conditions));
    assert!(!machine.with(0x1000, 0x7fff_ffff).hold(&conditions));
}

fn with_instructions(between: &[u16]) -> Option<Iteration<u64>> {
    let mut code = PAUSE.to_vec();
    code.push(0x411c); // lw a5, 0(a0)
    code.extend(between);
    code.push(0xc391); // beqz a5, 4
    code.push(0x8082); // ret
    let back = 2 * code.len() as i32;
    let offset = (-back) as u32;
    let jump = (offset >> 20 & 1) << 31
        | (offset >> 1 & 0x3ff) << 21
        | (offset >> 11 & 1) << 20
        | (offset >> 12 & 0xff) << 12
        | 0x6f;
    code.extend([jump as u16, (jump >> 16) as u16]);
    let machine = Machine::new(&code, &[(10, 0x1000), (11, 5)], &[(0x1000, 0), (0x1004, 0)]);
    machine.iteration(0)
}

#[test]
fn instructions_with_effects_are_with_instructions() {
    assert!(matches!(with_instructions(&[]), Some(Iteration::Waits(_))));
    assert!(matches!(
        with_instructions(&[0x0001; 30]),
        Some(Iteration::Waits(_))
    ));
    // lr.w a5, (a0): a load
    assert!(matches!(
        with_instructions(&[0x27af, 0x1005]),
        Some(Iteration::Waits(_))
    ));
    let tries: [&[u16]; 11] = [
        &[0x0001; 100],    // a hundred instructions
        &[0x0511],         // addi a0, a0, 4: the base changes
        &[0x15fd],         // addi a1, a1, -1: a count
        &[0x6108],         // ld a0, 0(a0): the base is loaded from where it shows
        &[0xc10c],         // sw a1, 0(a0)
        &[0x272f, 0x0ee5], // amoswap.w
        &[0x00ef, 0x0080], // jal ra
        &[0x9582],         // jalr a1
        &[0x2773, 0xc010], // rdtime a4
        &[0x0073, 0x0010], // ebreak
        &[0x0000],         // reserved
    ];
    for between in tries {
        assert_eq!(with_instructions(between), None, "{between:x?}");
    }
    // A word that is not aligned, or not there.
    assert_eq!(with_instructions(&[0x2703, 0x0025]), None);
    assert_eq!(with_instructions(&[0x2703, 0x0085]), None);
}

#[test]
fn loop_without_a_word_is_with_instructions() {
    // A jump to the PAUSE; one into the midst of an instruction; one to itself.
    for jump in [0xbff5, 0xa001, 0xbfed] {
        let mut code = PAUSE.to_vec();
        code.push(jump);
        assert_eq!(Machine::new(&code, &[], &[]).iteration(0), None);
    }
    // Branches that registers decide, and a word that decides nothing.
    let code = [0x000f, 0x0100, 0x411c, 0xdded]; // pause; lw a5, 0(a0); beqz a1, -6
    let machine = Machine::new(&code, &[(10, 0x1000)], &[(0x1000, 0)]);
    assert_eq!(machine.iteration(0), None);
}

/// Many branches, each of which could have led back.
#[test]
fn following_is_bounded() {
    let mut code = PAUSE.to_vec();
    code.push(0x411c); // lw a5, 0(a0)
    for _ in 0..60 {
        code.push(0xc399); // beqz a5, 6
        code.extend([0x0001; 2]);
    }
    let machine = Machine::new(&code, &[(10, 0x1000)], &[(0x1000, 0)]);
    assert_eq!(machine.iteration(0), None);
    let most = (1 + MAX_BRANCHES as usize) * MAX_INSTRUCTIONS * 2;
    assert!(machine.fetches.get() <= most, "{}", machine.fetches.get());
}
