//! Demands of RVA23 (RISC-V profiles, "RVA23U64 Mandatory Extensions" and "RVA23S64 Mandatory Extensions"), and what of it
//! the machine has.

mod program;

use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};
use program::write_csr_twice;

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
const MODEL: &str = "by construction of the model";

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
    ("ziccif", Behaviour(MODEL)),
    ("ziccrse", Behaviour("`machine --test order`")),
    ("ziccamoa", Behaviour(LOCKSTEP)),
    ("zicclsm", Behaviour(LOCKSTEP)),
    ("za64rs", Behaviour(MODEL)),
    ("zihintpause", Tree),
    ("zic64b", Behaviour(MODEL)),
    ("zicbom", Tree),
    ("zicbop", Tree),
    ("zicboz", Tree),
    ("zfhmin", Parts(&["zfh"])),
    ("zkt", Behaviour(MODEL)),
    ("v", Tree),
    ("zvfhmin", Tree),
    ("zvbb", Tree),
    ("zvkt", Tree),
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
    machine
        .load_bare(&program::elf(&words))
        .expect("the program loads");
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
