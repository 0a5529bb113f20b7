//! Demands of RVA23 (RISC-V profiles, "RVA23U64 Mandatory Extensions" and "RVA23S64 Mandatory Extensions"), and what of it
//! the machine has.

mod program;

use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};
use program::{
    BASE, Register, addi, andi, atomic, auipc, cbo, csrrs, elf, end_with, i_type, load_constant,
    or, power_off, sd, slli, write_csr_twice,
};
use riscv::csr::number;

/// How it is known that the machine has an extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// The device tree names it.
    Tree,
    /// The device tree names these, which are all of it or more.
    Parts(&'static [&'static str]),
    /// It is a way to behave, which the tree has no name for: what checks it.
    Behaviour(&'static str),
    /// The machine does not have it.
    Missing,
}
use Known::{Behaviour, Missing, Parts, Tree};

const SWEEP: &str = "`lockstep --test sweep`";
const LOCKSTEP: &str = "`lockstep --test lockstep`";
const HERE: &str = "`machine --test rva23`";
const ORDER: &str = "`machine --test order`";

const USER: [(&str, Known); 34] = [
    ("m", Tree),
    ("a", Tree),
    ("f", Tree),
    ("d", Tree),
    ("c", Tree),
    ("b", Parts(&["zba", "zbb", "zbs"])),
    ("zicsr", Tree),
    ("zicntr", Tree),
    ("zihpm", Tree),
    ("ziccif", Behaviour(ORDER)),
    ("ziccrse", Behaviour(ORDER)),
    ("ziccamoa", Behaviour(LOCKSTEP)),
    ("zicclsm", Behaviour(LOCKSTEP)),
    ("za64rs", Behaviour(HERE)),
    ("zihintpause", Tree),
    ("zic64b", Behaviour(HERE)),
    ("zicbom", Tree),
    ("zicbop", Tree),
    ("zicboz", Tree),
    ("zfhmin", Parts(&["zfh"])),
    ("zkt", Behaviour(HERE)),
    ("v", Tree),
    ("zvfhmin", Tree),
    ("zvbb", Tree),
    ("zvkt", Behaviour(HERE)),
    ("zihintntl", Tree),
    ("zicond", Tree),
    ("zimop", Tree),
    ("zcmop", Tree),
    ("zcb", Tree),
    ("zfa", Tree),
    ("zawrs", Tree),
    ("supm", Parts(&["ssnpm"])),
    ("zifencei", Tree),
];

const SUPERVISOR: [(&str, Known); 25] = [
    ("ss1p13", Behaviour(SWEEP)),
    ("svbare", Behaviour(LOCKSTEP)),
    ("sv39", Behaviour(LOCKSTEP)),
    ("svade", Behaviour(LOCKSTEP)),
    ("ssccptr", Behaviour(LOCKSTEP)),
    ("sstvecd", Behaviour(HERE)),
    ("sstvala", Behaviour(LOCKSTEP)),
    ("sscounterenw", Behaviour(SWEEP)),
    ("svpbmt", Tree),
    ("svinval", Tree),
    ("svnapot", Tree),
    ("sstc", Tree),
    ("sscofpmf", Tree),
    ("ssnpm", Tree),
    ("ssu64xl", Behaviour(HERE)),
    ("h", Tree),
    ("ssstateen", Parts(&["smstateen"])),
    ("shcounterenw", Behaviour(SWEEP)),
    ("shvstvala", Behaviour(LOCKSTEP)),
    ("shtvala", Behaviour(LOCKSTEP)),
    ("shvstvecd", Behaviour(HERE)),
    ("shvsatpa", Behaviour(HERE)),
    ("shgatpa", Behaviour(HERE)),
    // Development options, which a later profile is to demand.
    ("zabha", Tree),
    ("zacas", Tree),
];

#[test]
fn device_trees_name_rva23() {
    let profile = Profile::named("k3-class").expect("it ships");
    let named = Config::with_profile(&profile).board.isa.extensions;
    let names = |name: &str| named.iter().any(|extension| extension == name);
    println!("| extension | here | by |\n|---|---|---|");
    for (name, known) in USER.into_iter().chain(SUPERVISOR) {
        let (has, by) = match known {
            Tree => (names(name), String::from("named in the device tree")),
            Parts(parts) => (
                parts.iter().all(|part| names(part)),
                format!("{} in the device tree", parts.join(", ")),
            ),
            Behaviour(check) => (true, String::from(check)),
            Missing => (names(name), String::new()),
        };
        println!("| {name} | {} | {by} |", if has { "yes" } else { "no" });
        assert_eq!(has, known != Missing, "{name}");
    }
}

/// Sixteen bits of what a CSR holds after a write, from bit `shift` on.
fn left(number: i32, value: u64, shift: i32, profile: &Profile) -> u64 {
    let mut config = Config::with_profile(profile);
    config.board.memory = 16 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    let words = write_csr_twice(number, 0, value, shift);
    machine.load_bare(&elf(&words)).expect("the program loads");
    let limit = Limit {
        instructions: Some(1000),
        cycles: None,
    };
    match machine.run(limit) {
        Stop::Exit(code) => code - 1,
        other => panic!("the program ended with {other:?}"),
    }
}

#[test]
fn vectors_widths_and_modes_follow_rva23() {
    let profile = Profile {
        virtual_address_bits: 57,
        ..Profile::default()
    };
    let left = |number, value, shift| left(number, value, shift, &profile);
    // Sstvecd and Shvstvecd: stvec and vstvec hold mode Direct with any base at a multiple of four.
    let base = 0x2ad5_a5a5_a5a4;
    for number in [0x105, 0x205] {
        for shift in [0, 16, 32, 48] {
            assert_eq!(left(number, base, shift), base >> shift & 0xffff);
        }
    }
    // Ssu64xl: sstatus.UXL and vsstatus.UXL hold 2.
    for number in [0x100, 0x200] {
        assert_eq!(left(number, 2 << 32, 32) & 3, 2);
    }
    // Svbare, Sv39, and Sv48 and Sv57 where there are any; Shvsatpa and Shgatpa: vsatp and hgatp know them too.
    for mode in [0, 8, 9, 10] {
        for number in [0x180, 0x280, 0x680] {
            assert_eq!(left(number, mode << 60, 48) >> 12, mode, "{number:#x}");
        }
    }
}

/// Runs a program to its end.
fn run(words: &[u32], profile: &Profile) -> (Machine, Stop) {
    let mut config = Config::with_profile(profile);
    config.board.memory = 16 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    machine.set_profile(Some(profile));
    machine.load_bare(&elf(words)).expect("the program loads");
    let stop = machine.run(Limit {
        instructions: Some(10_000),
        cycles: None,
    });
    (machine, stop)
}

/// Zic64b.
#[test]
fn cache_blocks_have_64_bytes() {
    const FIRST: u64 = BASE + 0x1_0000;
    let (pointer, ones, code) = (5, 6, 7);
    let mut words = vec![auipc(pointer, 16), addi(ones, 0, -1)];
    for _ in 0..24 {
        words.extend([sd(ones, pointer), addi(pointer, pointer, 8)]);
    }
    // Some address in the second block.
    words.extend([addi(pointer, pointer, 64 + 44 - 192), cbo(4, pointer)]);
    words.extend(power_off(code, pointer));
    let (mut machine, _) = run(&words, &Profile::default());
    let bytes = machine.read_memory(FIRST, FIRST + 192).expect("RAM");
    let zeroed: Vec<_> = (0..192).filter(|&at| bytes[at] == 0).collect();
    assert_eq!(zeroed, (64..128).collect::<Vec<_>>());
}

/// Za64rs: SC to another block than the reserved one fails.
#[test]
fn reservation_sets_have_64_bytes_at_most() {
    let (reserved, other, result, scratch, code) = (5, 6, 7, 8, 10);
    let sc_fails = |distance: i32| {
        let mut words = vec![auipc(reserved, 16), addi(reserved, reserved, 128)];
        words.extend([
            addi(other, reserved, distance),
            atomic(2, scratch, reserved, 0),
            atomic(3, result, other, 0),
            addi(code, result, 1),
        ]);
        words.extend(end_with(code, scratch, other));
        let (_, stop) = run(&words, &Profile::default());
        let Stop::Exit(code) = stop else {
            panic!("the program ended with {stop:?}");
        };
        code != 1
    };
    assert!(!sc_fails(0));
    for distance in [-64, -8, 64, 72, 128] {
        assert!(sc_fails(distance), "{distance}");
    }
}

const LEFT: Register = 11;
const RIGHT: Register = 12;

/// Cycles of a program that works with two values of 64 bits. The values come in no other way than by constants of the same
/// length.
fn cycles(values: [u64; 2], prepare: &[u32], work: &[u32], profile: &Profile) -> u64 {
    let mut words = Vec::new();
    for (register, value) in [(LEFT, values[0]), (RIGHT, values[1])] {
        words.extend(load_constant(register, (value >> 32) as u32));
        words.push(slli(register, register, 32));
        // The lower half, zero-extended.
        words.extend(load_constant(13, value as u32));
        words.extend([slli(13, 13, 32), i_type(32, 13, 5, 13, 0x13)]);
        words.push(or(register, register, 13));
    }
    words.extend(prepare);
    words.extend(work);
    words.extend(power_off(13, 14));
    let (machine, stop) = run(&words, profile);
    assert!(matches!(stop, Stop::PowerOff), "{stop:?}");
    machine.harts()[0].cycles
}

/// Operands that a multiplier, a shifter or a comparison could be quick with, and others.
const OPERANDS: [[u64; 2]; 5] = [
    [0, 0],
    [1, u64::MAX],
    [u64::MAX, 1],
    [1 << 63, 63],
    [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210],
];

fn takes_the_same_time(prepare: &[u32], work: &[u32], profiles: &[Profile]) {
    for (index, profile) in profiles.iter().enumerate() {
        let times = OPERANDS.map(|values| cycles(values, prepare, work, profile));
        assert!(
            times.iter().all(|&time| time == times[0]),
            "{index}: {times:?}"
        );
    }
}

/// Zkt: unprivileged specification, "Zkt": RVI without branches and loads, multiplication, and B's with it.
#[test]
fn scalar_latency_is_independent_of_data() {
    let register = |funct7: u32, funct3: u32, opcode: u32| {
        funct7 << 25 | RIGHT << 20 | LEFT << 15 | funct3 << 12 | 15 << 7 | opcode
    };
    // funct7, funct3 and opcode by table: OP, OP-32, multiplications, ANDN and its like, rotations, PACK, carry-less
    // multiplications, XPERM.
    let mut work: Vec<_> = (0..8).map(|funct3| register(0, funct3, 0x33)).collect();
    for (funct7, funct3, opcode) in [
        (0x20, 0, 0x33),
        (0x20, 5, 0x33),
        (0, 0, 0x3b),
        (0x20, 0, 0x3b),
        (0, 1, 0x3b),
        (0, 5, 0x3b),
        (0x20, 5, 0x3b),
        (1, 0, 0x33),
        (1, 1, 0x33),
        (1, 2, 0x33),
        (1, 3, 0x33),
        (1, 0, 0x3b),
        (0x20, 7, 0x33),
        (0x20, 6, 0x33),
        (0x20, 4, 0x33),
        (0x30, 1, 0x33),
        (0x30, 5, 0x33),
        (4, 4, 0x33),
        (4, 7, 0x33),
        (5, 1, 0x33),
        (5, 3, 0x33),
        (0x14, 2, 0x33),
        (0x14, 4, 0x33),
    ] {
        work.push(register(funct7, funct3, opcode));
    }
    work.extend([andi(15, LEFT, 7), slli(15, LEFT, 3)]);
    let profiles = machine::timing::NAMES.map(|name| Profile::named(name).expect("ships"));
    takes_the_same_time(&[], &work, &profiles);
}

/// Zvkt: unprivileged specification, "Zvkt": arithmetic, logic, shifts, multiplication, permutation and cryptography.
#[test]
fn vector_latency_is_independent_of_data() {
    let (left, right) = (2, 4);
    let vector = |funct6: u32, funct3: u32, rs1: u32, opcode: u32| {
        funct6 << 26 | 1 << 25 | left << 20 | rs1 << 15 | funct3 << 12 | 6 << 7 | opcode
    };
    // VS of mstatus; VSETIVLI with four elements of 64 bits in two registers; VMV.V.X of both values.
    let whole = |rd: u32, rs1: u32| 0x5e00_4057 | rs1 << 15 | rd << 7;
    let prepare = [
        addi(13, 0, 0x600),
        csrrs(0, i32::from(number::MSTATUS), 13),
        3 << 30 | 0xd9 << 20 | 4 << 15 | 7 << 12 | 0x57,
        whole(left, LEFT),
        whole(right, RIGHT),
    ];
    let mut work = Vec::new();
    // VADD, VSUB, VMINU to VMAX, VAND, VOR, VXOR, VSLL, VSRL, VSRA, VMSEQ, VMSLTU, VANDN, VROR, VROL, VWSLL is wider.
    for funct6 in [
        0, 2, 4, 5, 6, 7, 9, 10, 11, 0x25, 0x28, 0x29, 0x18, 0x1a, 1, 0x14, 0x15,
    ] {
        work.push(vector(funct6, 0, right, 0x57));
    }
    // VMULHU, VMUL, VMULHSU, VMULH, VMACC; VCLMUL and VCLMULH.
    for funct6 in [0x24, 0x25, 0x26, 0x27, 0x2d, 0x0c, 0x0d] {
        work.push(vector(funct6, 2, right, 0x57));
    }
    // VBREV8 and VREV8.
    work.extend([vector(0x12, 2, 8, 0x57), vector(0x12, 2, 9, 0x57)]);
    let profile = Profile::named("k3-class").expect("it ships");
    takes_the_same_time(&prepare, &work, &[profile]);
}
