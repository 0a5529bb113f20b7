//! Bare micro-benchmarks of the memory system: bandwidth, latency, and write-backs.

mod program;

use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};
use program::*;

const HART: Register = 10;
const PLACE: Register = 5;
const LEFT: Register = 6;
const VALUE: Register = 7;
const START: Register = 28;
const END: Register = 29;
const SUM: Register = 9;

/// Bytes of a line.
const LINE: u64 = 64;
/// Bytes that each hart goes through.
const BYTES: u64 = 1 << 20;

/// Runs a program on so many harts to its end, which gives a code.
fn run(profile: &Profile, harts: u32, words: &[u32]) -> u64 {
    let mut config = Config::with_profile(profile);
    config.board.harts = harts;
    config.board.memory = 512 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    machine.set_profile(Some(profile));
    machine.load_bare(&elf(words)).expect("loads");
    let limit = Limit {
        instructions: Some(100_000_000),
        cycles: None,
    };
    match machine.run(limit) {
        Stop::Exit(code) => code,
        other => panic!("the program ended with {other:?}"),
    }
}

/// Each hart goes through its own memory, a line by each turn of a loop; hart 0 ends with a 256th of the cycles for its first megabyte.
fn passes(body: &[u32]) -> Vec<u32> {
    let mut words = vec![
        // 16 MiB and a line for each hart, so that the harts do not use the same sets at the same time.
        auipc(PLACE, 4096),
        slli(VALUE, HART, 24),
        add(PLACE, PLACE, VALUE),
        slli(VALUE, HART, 14),
        add(PLACE, PLACE, VALUE),
        lui(LEFT, (BYTES / LINE) as u32 >> 12),
        csrrs(START, 0xb00, 0), // mcycle
    ];
    words.extend(body);
    words.extend([
        addi(PLACE, PLACE, LINE as i32),
        addi(LEFT, LEFT, -1),
        bne(LEFT, 0, -4 * (body.len() as i32 + 2)),
        csrrs(END, 0xb00, 0),
        sub(END, END, START),
        // The others go on reading: hart 0 shares memory with them until its end.
        beq(HART, 0, 8),
        jal(0, -4 * (body.len() as i32 + 8)),
        srli(END, END, 8),
    ]);
    words.extend(end_with(END, 30, 31));
    words
}

/// Sums the eight doublewords of a line.
fn read_line() -> Vec<u32> {
    (0..8)
        .flat_map(|word| [ld(VALUE, PLACE, 8 * word), add(SUM, SUM, VALUE)])
        .collect()
}

/// Megabytes a second of a hart that needs a code's cycles for the whole.
fn bandwidth(profile: &Profile, code: u64) -> f64 {
    let seconds = (code << 8) as f64 / profile.hertz as f64;
    BYTES as f64 / seconds / 1e6
}

/// Megabytes a second of each of so many harts that read.
fn reading(profile: &Profile, harts: u32) -> f64 {
    bandwidth(profile, run(profile, harts, &passes(&read_line())))
}

fn named(name: &str) -> Profile {
    Profile::named(name).expect("ships")
}

#[test]
fn one_hart_reads_cold_memory_quickly() {
    let one = reading(&named("k3-class"), 1);
    println!("k3-class, 1 hart: {one:.0} MB/s");
    assert!(one >= 6000.0, "{one}");
}

#[test]
fn harts_share_what_memory_gives() {
    let profile = named("k3-class");
    let one = reading(&profile, 1);
    let channels = profile.memory.expect("channels").channels;
    let line_seconds = profile.costs.memory_gap as f64 / profile.hertz as f64;
    let most = f64::from(channels) * LINE as f64 / line_seconds / 1e6;
    for harts in [4, 8] {
        let each = reading(&profile, harts);
        let all = each * f64::from(harts);
        println!("k3-class, {harts} harts: {each:.0} MB/s each, {all:.0} together of {most:.0}");
        assert!(all <= most * 1.05 && all > most / 3.0, "{harts}: {all}");
        assert!(harts < 8 || each < one * 0.9, "{each} of {one}");
    }
}

#[test]
fn a_chase_costs_the_full_latency() {
    let (stride, rounds) = (5, 1000);
    for name in ["k3-class", "rocket-h", "xeon-class", "cva6"] {
        let profile = named(name);
        // Hart 0 writes a chain of pointers, each 5 lines and a page further, flushes it and follows it.
        let step = 4096 + stride * 64;
        let chain = |body: &[u32]| {
            let mut words = vec![
                auipc(PLACE, 4096),
                addi(LEFT, 0, rounds),
                lui(END, (step + 2048) as u32 >> 12),
                addi(END, END, step - ((step + 2048) >> 12 << 12)),
            ];
            words.extend(body);
            words.extend([
                addi(LEFT, LEFT, -1),
                bne(LEFT, 0, -4 * (body.len() as i32 + 1)),
            ]);
            words
        };
        let mut words = chain(&[
            add(VALUE, PLACE, END),
            sd(VALUE, PLACE),
            cbo(2, PLACE),
            add(PLACE, VALUE, 0),
        ]);
        words.push(csrrs(START, 0xb00, 0));
        words.extend(chain(&[ld(PLACE, PLACE, 0)]));
        words.extend([csrrs(END, 0xb00, 0), sub(END, END, START)]);
        words.extend([addi(VALUE, 0, rounds), divu(END, END, VALUE)]);
        words.extend(end_with(END, 30, 31));
        // The second chain begins where the first did.
        let begin = words.iter().rposition(|&word| word == auipc(PLACE, 4096));
        if let Some(begin) = begin {
            words.splice(
                begin..=begin,
                [auipc(PLACE, 4096), addi(PLACE, PLACE, -4 * begin as i32)],
            );
        }
        let cycles = run(&profile, 1, &words);
        let memory = profile.costs.memory;
        println!("{name}: {cycles} cycles a step, memory {memory}");
        assert!(
            (memory..memory + memory / 5 + 10).contains(&cycles),
            "{name}: {cycles}"
        );
    }
}

#[test]
fn stores_go_on_while_lines_come() {
    let profile = named("k3-class");
    let mut waiting = profile.clone();
    waiting.store_buffer = 0;
    waiting.prefetcher = None;
    let stores = passes(&[sd(0, PLACE)]);
    let (buffered, waited) = (run(&profile, 1, &stores), run(&waiting, 1, &stores));
    println!("{buffered} with a store buffer, {waited} without");
    assert!(buffered * 4 < waited, "{buffered} of {waited}");
    // Dirty lines go back to memory: a pass of stores is slower than one of loads where memory is what limits both.
    let mut narrow = profile;
    narrow.costs.memory_gap = 400;
    let read = passes(&[ld(VALUE, PLACE, 0)]);
    let (l2, mut small) = (narrow.l2.expect("a second level"), narrow.clone());
    small.l2 = Some(machine::timing::CacheProfile {
        size: l2.size / 64,
        ..l2
    });
    let (loads, stores) = (run(&small, 1, &read), run(&small, 1, &stores));
    println!("memory that is narrow: {loads} for loads, {stores} for stores");
    assert!(stores > loads * 3 / 2, "{stores} of {loads}");
}

#[test]
fn profiles_without_keys_cost_as_before() {
    // A read of cold memory is one miss after the other.
    let plain = Profile {
        prefetcher: None,
        memory: None,
        store_buffer: 0,
        ..named("k3-class")
    };
    let code = run(&plain, 1, &passes(&read_line()));
    let lines = BYTES / LINE;
    let each = (code << 8) / lines;
    assert!(
        (plain.costs.memory..plain.costs.memory + 30).contains(&each),
        "{each}"
    );
}
