//! Every encoding by class, every compressed one, and every CSR in five modes: beside the specification's tables, and
//! beside QEMU where it is installed.

use std::collections::BTreeMap;

use lockstep::oracle::{Oracle, WHOLE, run_protected, run_vectors, run_within};
use lockstep::sweep::{
    Mode, Outcome, compressed, csr, encoding, image, outcomes, value, vector, vector_image,
};
use machine::board::PmpEntries;

/// Of how many encodings QEMU is asked for one.
const QEMU_STEP: usize = 5;

/// Outcome of each instruction on this machine.
fn here(mode: Mode, words: &[u32]) -> Vec<Outcome> {
    let most = 200 * words.len() as u64;
    let left = run_within(&image(mode, words), 1, WHOLE, most).expect("the sweep ends");
    outcomes(&left, words.len()).expect("every instruction was tried")
}

/// The same on QEMU, if it is installed.
fn there(mode: Mode, words: &[u32]) -> Option<Vec<Outcome>> {
    if !Oracle::Qemu.is_installed() {
        eprintln!("QEMU is not here: nothing to compare with");
        return None;
    }
    let left = Oracle::Qemu.run(&image(mode, words), 1).expect("QEMU runs");
    Some(outcomes(&left, words.len()).expect("every instruction was tried"))
}

/// Fails with the first of the complaints, and how many there are.
fn none(what: &str, complaints: &[String]) {
    let first: Vec<&str> = complaints.iter().take(20).map(String::as_str).collect();
    assert!(
        complaints.is_empty(),
        "{} {what}, among them\n{}",
        complaints.len(),
        first.join("\n")
    );
}

/// The sweep's encodings that a mode is asked for.
fn asked(mode: Mode) -> Vec<u32> {
    // MRET in M-mode returns to itself: the probe itself ends with one.
    let returns = |word: &u32| mode == Mode::Machine && *word == 0x3020_0073;
    encoding::words()
        .into_iter()
        .filter(|word| !returns(word))
        .collect()
}

#[test]
fn encodings_are_what_the_listings_say() {
    let mut tried = 0;
    let mut wrong = Vec::new();
    for mode in Mode::ALL {
        let words = asked(mode);
        tried += words.len();
        for (&word, found) in words.iter().zip(here(mode, &words)) {
            let expected = encoding::expected(word, mode);
            if found != expected {
                let word = encoding::describe(word);
                wrong.push(format!("{mode:?}: {word}: {found:?}, not {expected:?}"));
            }
        }
    }
    println!("{tried} encodings");
    assert!(tried > 300_000);
    none("encodings differ", &wrong);
}

#[test]
fn compressed_encodings_are_what_the_listings_say() {
    let words = compressed::words();
    // C.EBREAK follows.
    let tried: Vec<u32> = words
        .iter()
        .map(|&word| 0x9002_0000 | u32::from(word))
        .collect();
    let mut wrong = Vec::new();
    for (&word, found) in words.iter().zip(here(Mode::Hypervisor, &tried)) {
        let expected = compressed::expected(word);
        if found != expected {
            wrong.push(format!("{word:#06x}: {found:?}, not {expected:?}"));
        }
    }
    println!("{} encodings", words.len());
    none("encodings differ", &wrong);
}

/// Vector encodings of which this machine says something else than the listing, while SEW is 8 << `width` bits.
fn departing(mode: Mode, words: &[u32], width: u32) -> Vec<String> {
    let most = 200 * words.len() as u64;
    let image = vector_image(mode, words, width << 3);
    let left = run_vectors(&image, vector::LENGTH, most).expect("the sweep ends");
    let found = outcomes(&left, words.len()).expect("every instruction was tried");
    let mut wrong = Vec::new();
    for (&word, found) in words.iter().zip(found) {
        let expected = if vector::is_instruction(word, width) {
            Outcome::Legal
        } else {
            Outcome::Illegal
        };
        if found != expected {
            let word = encoding::describe(word);
            wrong.push(format!(
                "{mode:?} e{}: {word}: {found:?}, not {expected:?}",
                8 << width
            ));
        }
    }
    wrong
}

#[test]
fn vector_encodings_are_what_the_listing_says() {
    let (words, configurations) = (vector::words(), vector::configurations());
    let mut wrong = Vec::new();
    for mode in [Mode::Hypervisor, Mode::VirtualUser] {
        for width in 0..4 {
            wrong.extend(departing(mode, &words, width));
        }
        wrong.extend(departing(mode, &configurations, 0));
    }
    let tried = 8 * words.len() + 2 * configurations.len();
    println!("{tried} vector encodings");
    assert!(tried > 200_000, "{tried}");
    none("encodings differ", &wrong);
}

#[test]
fn csrs_are_who_the_tables_say() {
    let accesses: Vec<_> = csr::accesses().collect();
    let words: Vec<u32> = accesses
        .iter()
        .map(|&(n, write)| csr::access(n, write))
        .collect();
    let mut wrong = Vec::new();
    let mut open = 0;
    for mode in Mode::ALL {
        for (&(number, write), found) in accesses.iter().zip(here(mode, &words)) {
            match csr::expected(number, write, mode) {
                None => open += 1,
                Some(expected) if expected == found => {}
                Some(expected) => wrong.push(format!(
                    "{mode:?}: {number:#05x}, write {write}: {found:?}, not {expected:?}"
                )),
            }
        }
    }
    println!(
        "{} accesses, of {open} of which the specification says nothing",
        5 * words.len()
    );
    none("accesses differ", &wrong);
}

#[test]
fn csrs_with_64_pmp_entries_match_tables() {
    let accesses: Vec<_> = csr::accesses().collect();
    let words: Vec<u32> = accesses
        .iter()
        .map(|&(n, write)| csr::access(n, write))
        .collect();
    let many = PmpEntries::new(PmpEntries::MAX).expect("a number of entries");
    let mut wrong = Vec::new();
    let mut open = 0;
    for mode in Mode::ALL {
        let most = 200 * words.len() as u64;
        let left = run_protected(&image(mode, &words), many, most).expect("the sweep ends");
        let found = outcomes(&left, words.len()).expect("every access was tried");
        for (&(number, write), found) in accesses.iter().zip(found) {
            match csr::expected_with_64_pmp_entries(number, write, mode) {
                None => open += 1,
                Some(expected) if expected == found => {}
                Some(expected) => wrong.push(format!(
                    "{mode:?}: {number:#05x}, write {write}: {found:?}, not {expected:?}"
                )),
            }
        }
    }
    println!("{open} accesses of which the specification says nothing");
    none("accesses differ", &wrong);
}

#[test]
fn csrs_keep_what_the_chapters_say() {
    let left = run_within(&value::image(), 1, WHOLE, 100_000).expect("the sweep ends");
    none("values differ", &value::complaints(&left));
}

/// Where QEMU 10.0.2 departs from the tables, or has chosen otherwise.
fn departure(word: u32, mode: Mode) -> Option<&'static str> {
    const SFENCE_W_INVAL: u32 = 0x1800_0073;
    const SFENCE_INVAL_IR: u32 = 0x1810_0073;
    let user = matches!(mode, Mode::User | Mode::VirtualUser);
    if user && matches!(word, SFENCE_W_INVAL | SFENCE_INVAL_IR) {
        return Some("Svinval's ordering fences are legal for users (Svinval: in S- and VS-mode)");
    }
    // All else that is known is about CSR instructions.
    if word & 0x7f != 0x73 || matches!(word >> 12 & 7, 0 | 4) {
        return None;
    }
    let number = (word >> 20) as u16;
    match number {
        0x31c..=0x31f | 0x61c..=0x61f => Some("it has RV32's mstateenh and hstateenh on RV64"),
        0x7a8 => Some("it has mcontext"),
        0xb13..=0xb1f | 0xc13..=0xc1f => Some("it has 16 counters"),
        0xda0 => Some("Sscofpmf is off in it"),
        0x100..=0x1ff if mode == Mode::VirtualUser => {
            Some("supervisor CSRs raise an illegal instruction in VU-mode, RV32's a virtual one")
        }
        0x214 | 0x254 | 0x613 | 0x618 | 0x655..=0x657 if mode == Mode::VirtualUser => {
            Some("the AIA's CSRs of RV32 raise a virtual instruction in VU-mode")
        }
        _ => None,
    }
}

#[test]
fn qemu_says_the_same() {
    let mut known = BTreeMap::<&str, u64>::new();
    let mut wrong = Vec::new();
    let mut tried = 0;
    for mode in Mode::ALL {
        // QEMU takes its time for an instruction that has just been written.
        let mut words: Vec<u32> = asked(mode).into_iter().step_by(QEMU_STEP).collect();
        words.extend(csr::accesses().map(|(number, write)| csr::access(number, write)));
        tried += words.len();
        let Some(theirs) = there(mode, &words) else {
            return;
        };
        for ((&word, ours), theirs) in words.iter().zip(here(mode, &words)).zip(theirs) {
            if ours == theirs {
                continue;
            }
            if let Some(departure) = departure(word, mode) {
                *known.entry(departure).or_default() += 1;
            } else {
                let word = encoding::describe(word);
                wrong.push(format!("{mode:?}: {word}: here {ours:?}, there {theirs:?}"));
            }
        }
    }
    println!("{tried} outcomes beside QEMU's, known departures: {known:#?}");
    none("outcomes differ", &wrong);
}
