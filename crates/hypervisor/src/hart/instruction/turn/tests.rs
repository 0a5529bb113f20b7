//! Turns of Linux's loops, and of loops that are made up.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::*;

mod any;

pub const BASE: u64 = 0xffff_ffff_8000_1000;
const PAUSE: [u16; 2] = [0x000f, 0x0100];

/// A guest whose code starts at `BASE` and whose words lie where it says.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub code: Vec<u16>,
    pub registers: [u64; 32],
    pub memory: BTreeMap<u64, u64>,
    pub time: u64,
    pub looks: Cell<usize>,
}

impl Guest for Machine {
    fn fetch(&self, address: u64) -> Option<u16> {
        self.looks.set(self.looks.get() + 1);
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

    fn turn(&self, pause: u64) -> Option<Turn> {
        Turn::of(self, BASE + pause)
    }

    /// The conditions of a wait.
    fn waits(&self, pause: u64) -> Vec<Condition> {
        match self.turn(pause) {
            Some(Turn::Waits(conditions)) => conditions.into_iter().flatten().collect(),
            other => panic!("{other:x?}"),
        }
    }

    fn hold(&self, conditions: &[Condition]) -> bool {
        let raw = |condition: &Condition| self.memory[&condition.place];
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

/// `mutex_spin_on_owner` of Debian's kernel 6.12, from the first look at the owner on. Its PAUSE is at 46.
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
fn a_mutex_waits_for_owner_its_cpu_and_its_own_thread() {
    let machine = mutex();
    let conditions = machine.waits(MUTEX_PAUSE);
    let condition = |place, width, mask, value, equal| Condition {
        place,
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
fn a_mutex_that_is_left_now_is_over() {
    for (place, value) in [(LOCK, 0), (LOCK, OWNER + 8), (OWNER + 100, 0), (THREAD, 8)] {
        let left = mutex().with(place, value);
        assert_eq!(left.turn(MUTEX_PAUSE), Some(Turn::Over(LOCK)), "{place:x}");
    }
}

/// With a context for several mutexes the loop goes another way, by what registers have alone.
#[test]
fn a_mutex_goes_the_way_that_its_registers_say() {
    const CONTEXT: u64 = 0x4000;
    let mut machine = mutex().with(CONTEXT + 16, 0).with(LOCK + 16, 0x5000);
    machine.registers[12] = CONTEXT;
    machine.registers[13] = 0x5000;
    // Owner, its CPU, the thread, the context, the first that waits: more than four.
    assert_eq!(machine.turn(MUTEX_PAUSE), None);
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

/// A test-and-set lock by AMOOR with one bit of a word: the loop waits for as long as the whole word is as it was, since any other may be a free lock.
#[test]
fn a_lock_that_is_tried_by_an_atomic_operation_waits_for_its_word() {
    // amoor.w.aq a4, a5, (a3); and a4, a4, a5; beqz a4, 16; pause; j 0; nop; nop; ret
    let code = [
        0xa72f, 0x44f6, 0x8f7d, 0xc709, 0x000f, 0x0100, 0xbfd5, 0x0001, 0x0001, 0x8082,
    ];
    let machine = Machine::new(&code, &[(13, LOCK), (15, 1)], &[(LOCK, 5)]);
    let conditions = machine.waits(8);
    for condition in &conditions {
        assert_eq!((condition.place, condition.width), (LOCK, Width::Word));
    }
    assert!(machine.hold(&conditions));
    for other in [0, 1, 4, 7] {
        assert!(!machine.with(LOCK, other).hold(&conditions), "{other}");
    }
    // It would be taken, which is no wait.
    assert_eq!(machine.with(LOCK, 4).turn(8), None);
}

/// A loop that goes on where a word says: it waits for as long as that word is as it was, too.
#[test]
fn a_jump_to_where_a_word_says_waits_for_that_word() {
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
    assert_eq!(machine.with(0x1008, BASE + 10).turn(0), None);
}

/// `rwsem_spin_on_owner`: its loop from where it tests the flags. Its PAUSE is at 20.
#[test]
fn a_semaphore_waits_for_its_owner() {
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
        assert_eq!(left.turn(20), Some(Turn::Over(LOCK + 8)));
    }
    assert!(machine.with(OWNER + 32, 1).hold(&conditions));
}

/// `osq_lock` on harts without Zawrs, where the kernel has left the jump to the PAUSE: the node's turn, and the own thread. The PAUSE
/// is at 152.
#[test]
fn a_queue_waits_for_its_node_and_its_own_thread() {
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
    assert_eq!(conditions[0].place, node + 16);
    assert!(!machine.with(node + 16, 1).hold(&conditions));
    assert!(!machine.with(THREAD, 0x18).hold(&conditions));
    assert!(machine.with(THREAD, 0x10).hold(&conditions));
}

/// The way out of the same queue: the node before this one may change, and its address with it.
#[test]
fn a_word_whose_address_was_loaded_is_followed() {
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
    assert_eq!(machine.with(node + 8, 0x7004).turn(14), None);
}

/// A spin of a program on a byte and a sequence count, as compilers write them without short instructions.
#[test]
fn bytes_and_counts_are_told_by_their_bits() {
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

/// Bits that are shifted first are told by their place in the word.
#[test]
fn a_field_is_told_by_its_place_in_the_word() {
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
        place: 0x1000,
        width: Width::Double,
        signed: true,
        mask: 0x30,
        value: 0x20,
        equal: true,
    };
    assert_eq!(machine.waits(0), [expected]);
}

/// What is compared by size, or with another word, has to stay as it is.
#[test]
fn what_is_no_mask_has_to_stay() {
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
    assert_eq!(machine.with(0x1000, 9).turn(0), Some(Turn::Over(0x1000)));
}

/// A number's sign is one bit of it.
#[test]
fn a_sign_is_a_bit() {
    let code = [
        0x000f, 0x0100, // 0: pause
        0x4114, // lw a3, 0(a0)
        0x02e2, // c.slli t0, 24: nobody asks for it
        0xcce3, 0xfe06, // bltz a3, 0
    ];
    let machine = Machine::new(&code, &[(10, 0x1000)], &[(0x1000, 0x8000_0000)]);
    // The shift changes what it reads.
    assert_eq!(machine.turn(0), None);
    let mut machine = machine;
    machine.code[3] = 0x0001;
    let conditions = machine.waits(0);
    assert!(machine.with(0x1000, 0xffff_ffff).hold(&conditions));
    assert!(!machine.with(0x1000, 0x7fff_ffff).hold(&conditions));
}

fn refused(between: &[u16]) -> Option<Turn> {
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
    machine.turn(0)
}

#[test]
fn what_is_no_turn_of_a_loop_is_not_understood() {
    assert!(matches!(refused(&[]), Some(Turn::Waits(_))));
    assert!(matches!(refused(&[0x0001; 30]), Some(Turn::Waits(_))));
    // lr.w a5, (a0): a load
    assert!(matches!(refused(&[0x27af, 0x1005]), Some(Turn::Waits(_))));
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
        assert_eq!(refused(between), None, "{between:x?}");
    }
    // A word that is not aligned, or not there.
    assert_eq!(refused(&[0x2703, 0x0025]), None);
    assert_eq!(refused(&[0x2703, 0x0085]), None);
}

#[test]
fn a_loop_without_an_end_or_a_word_is_not_understood() {
    // A jump to the PAUSE; one into the midst of an instruction; one to itself.
    for jump in [0xbff5, 0xa001, 0xbfed] {
        let mut code = PAUSE.to_vec();
        code.push(jump);
        assert_eq!(Machine::new(&code, &[], &[]).turn(0), None);
    }
    // Branches that registers decide, and a word that decides nothing.
    let code = [0x000f, 0x0100, 0x411c, 0xdded]; // pause; lw a5, 0(a0); beqz a1, -6
    let machine = Machine::new(&code, &[(10, 0x1000)], &[(0x1000, 0)]);
    assert_eq!(machine.turn(0), None);
}

/// Many branches, each of which could have led back.
#[test]
fn reading_is_bounded() {
    let mut code = PAUSE.to_vec();
    code.push(0x411c); // lw a5, 0(a0)
    for _ in 0..60 {
        code.push(0xc399); // beqz a5, 6
        code.extend([0x0001; 2]);
    }
    let machine = Machine::new(&code, &[(10, 0x1000)], &[(0x1000, 0)]);
    assert_eq!(machine.turn(0), None);
    let most = (1 + MOST_BRANCHES as usize) * MOST_STEPS * 2;
    assert!(machine.looks.get() <= most, "{}", machine.looks.get());
}
