//! Stores as one hart sees them, its own and others': changed instructions, reservations, waits.

mod program;

use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};
use program::*;
use riscv::csr::number;

/// Runs a program of 16-bit results to its end and gives its code; blocks are `instructions` long at most.
fn run(words: &[u32], harts: u32, instructions: u8, profile: Option<&Profile>) -> u64 {
    let mut config = profile.map_or_else(Config::default, Config::with_profile);
    config.board.harts = harts;
    config.board.memory = 16 << 20;
    config.blocks.instructions = instructions;
    let mut machine = Machine::new(config).expect("a machine");
    machine.set_profile(profile);
    machine.load_bare(&elf(words)).expect("the program loads");
    let limit = Limit {
        instructions: Some(20_000_000),
        cycles: None,
    };
    match machine.run(limit) {
        Stop::Exit(code) => code,
        other => panic!("the program ended with {other:?}"),
    }
}

/// Both modes, and every profile that ships.
fn modes() -> Vec<Option<Profile>> {
    let named = machine::timing::NAMES.map(|name| Some(Profile::named(name).expect("ships")));
    [None].into_iter().chain(named).collect()
}

const RA: Register = 1;
const A0: Register = 10;

#[test]
fn fence_i_shows_each_change() {
    // Writes "addi a0, x0, 1; ret" to a page that nothing has touched, calls it, then writes
    // "addi a0, x0, 2" over it, and calls it again. The sum is 3.
    let (page, word, sum) = (5, 6, 7);
    let store_and_call = |instruction: u32| {
        let constant = load_constant(word, instruction);
        [
            constant[0],
            constant[1],
            sw(word, page),
            FENCE_I,
            jalr(RA, page),
            add(sum, sum, A0),
        ]
    };
    let ret = load_constant(word, jalr(0, RA));
    let mut words = vec![
        auipc(page, 16),
        addi(page, page, 4),
        ret[0],
        ret[1],
        sw(word, page),
    ];
    words.extend([addi(page, page, -4), addi(sum, 0, 0)]);
    words.extend(store_and_call(addi(A0, 0, 1)));
    words.extend(store_and_call(addi(A0, 0, 2)));
    words.extend(end_with(sum, 30, 31));
    for profile in modes() {
        assert_eq!(run(&words, 1, 64, profile.as_ref()), 3, "{profile:?}");
    }
}

/// Two harts that add one to a word by LR and SC, 100 times in each of `rounds` rounds; hart 1 sleeps until
/// a timer wakes it before each round. The code is the sum.
fn counting(rounds: i32) -> Vec<u32> {
    let (word, left, value, failed, time, done, one, bit) = (5, 6, 7, 28, 29, 30, 31, 9);
    let inner = 8;
    let addition = [
        addi(inner, 0, 100),
        atomic(0x02, value, word, 0), // lr.d
        addi(value, value, 1),
        atomic(0x03, failed, word, value), // sc.d
        bne(failed, 0, -12),
        addi(inner, inner, -1),
        bne(inner, 0, -20),
    ];
    let sleep = [
        csrrs(time, 0xc01, 0), // time
        addi(time, time, 1),
        csrrw(0, 0x14d, time), // stimecmp
        WFI,
    ];
    let mut words = vec![auipc(word, 1), addi(left, 0, rounds), addi(bit, 0, 1)];
    words.extend([slli(bit, bit, 63), csrrs(0, 0x30a, bit)]); // menvcfg.STCE
    words.extend([addi(bit, 0, 0x20), csrrs(0, 0x304, bit)]); // mie.STIE
    // mhartid is in a0.
    words.push(beq(A0, 0, 4 * (sleep.len() as i32 + 1)));
    words.extend(sleep);
    words.extend(addition);
    words.push(addi(left, left, -1));
    let back = sleep.len() + addition.len() + 2;
    words.push(bne(left, 0, -4 * back as i32));
    words.extend([
        addi(done, word, 64),
        addi(one, 0, 1),
        atomic(0, 0, done, one),
    ]);
    words.push(bne(A0, 0, 0)); // hart 1 is done
    words.extend([
        addi(value, 0, 2),
        ld(one, done, 0),
        bne(one, value, -4),
        ld(value, word, 0),
    ]);
    words.extend(end_with(value, 30, 31));
    words
}

#[test]
fn sleeping_harts_lose_no_addition() {
    for instructions in [1, 2, 64] {
        for profile in [None, Some(Profile::named("k3-class").expect("ships"))] {
            let sum = run(&counting(100), 2, instructions, profile.as_ref());
            assert_eq!(sum, 20_000, "blocks of {instructions}");
        }
    }
}

#[test]
fn sc_fails_after_a_store_ends_wrs() {
    for wait in [WRS_NTO, WRS_STO] {
        let (word, value, failed, flag) = (5, 6, 7, 28);
        let mut words = vec![auipc(word, 1), addi(flag, word, 256), bne(A0, 0, 4 * 19)];
        words.extend([
            addi(value, 0, 1),
            atomic(0x02, 0, word, 0),
            sd(value, flag),
            wait,
        ]);
        words.extend([atomic(0x03, failed, word, value), addi(failed, failed, 1)]);
        words.extend(end_with(failed, 30, 31));
        while words.len() < 21 {
            words.push(addi(0, 0, 0));
        }
        // Hart 1 waits for the flag, and stores.
        words.extend([
            ld(value, flag, 0),
            beq(value, 0, -4),
            sd(value, word),
            jal(0, 0),
        ]);
        // rd of a failed SC is 1.
        assert_eq!(run(&words, 2, 64, None), 2);
    }
}

/// Value left by a write of `value` in a CSR that held `before`, shifted right by `shift`: 16 bits.
fn left_in_csr(number: i32, before: u64, value: u64, shift: i32) -> u64 {
    run(&write_csr_twice(number, before, value, shift), 1, 64, None) - 1
}

#[test]
fn hgatp_keeps_its_mode_if_unsupported() {
    const HGATP: i32 = number::HGATP as i32;
    let before = 8 << 60 | 5 << 44 | 0x1234;
    let unsupported = 2 << 60 | 7 << 44 | 0x5678;
    assert_eq!(left_in_csr(HGATP, before, unsupported, 0), 0x5678);
    assert_eq!(left_in_csr(HGATP, before, unsupported, 44), 7);
    assert_eq!(left_in_csr(HGATP, before, unsupported, 60), 8);
    // satp is left alone.
    assert_eq!(left_in_csr(0x180, before, unsupported, 0), 0x1234);
}

#[test]
fn hedeleg_delegates_software_checks_and_hardware_errors() {
    assert_eq!(left_in_csr(0x602, 0, u64::MAX, 16), 0xc);
    assert_eq!(left_in_csr(0x602, 0, u64::MAX, 0), 0xb1ff);
}

#[test]
fn illegal_float_instructions_are_always_noted() {
    // Calls routines of which each is in a new place, 256 pages away from here, so that this page's
    // translation makes room, and comes back to an instruction that is illegal: FS is off.
    let (far, left, got, all, handler) = (5, 6, 7, 28, 29);
    const FADD: u32 = 0x0020_f053; // fadd.s f0, f1, f2
    let mut words = vec![
        auipc(far, 0x100),
        auipc(handler, 0),
        addi(handler, handler, 4 * 16),
        csrrw(0, 0x305, handler), // mtvec
        addi(left, 0, 8),
        addi(all, 0, 1),
        jalr(RA, far),
        FADD,
        addi(far, far, 64),
        addi(left, left, -1),
        bne(left, 0, -16),
        jal(0, 4 * 16), // to the end
    ];
    words.resize(17, addi(0, 0, 0));
    // The handler, at word 17: counts the traps whose value is not the instruction.
    let constant = load_constant(30, FADD);
    words.extend([
        csrrs(got, 0x343, 0),
        constant[0],
        constant[1],
        beq(got, 30, 8),
        addi(all, all, 1),
    ]);
    words.extend([
        csrrs(got, 0x341, 0),
        addi(got, got, 4),
        csrrw(0, 0x341, got),
        0x3020_0073,
    ]);
    words.push(addi(0, 0, 0));
    assert_eq!(words.len(), 27);
    words.extend(end_with(all, 30, 31));
    words.resize(0x101 * 1024, jalr(0, RA));
    assert_eq!(
        run(&words, 1, 64, None),
        1,
        "traps with another value, plus one"
    );
}

/// A hart waits for a store to a line that another zeroes by CBO.ZERO, and answers; the other ends with the cycles until the answer
/// has come.
#[test]
fn zeroed_lines_end_wrs_at_once() {
    let (word, answer, value, start, one) = (5, 6, 7, 28, 29);
    let waiting = [
        atomic(0x02, value, word, 0), // lr.d
        WRS_NTO,
        sd(one, answer),
        jal(0, 0),
    ];
    let zeroing = [
        lui(value, 16),
        addi(value, value, -1),
        bne(value, 0, -4),
        csrrs(start, 0xb00, 0), // mcycle
        cbo(4, word),
        ld(value, answer, 0),
        beq(value, 0, -4),
        csrrs(value, 0xb00, 0),
        sub(value, value, start),
    ];
    let zeroing = [&zeroing[..], &end_with(value, 30, 31)].concat();
    let mut words = vec![
        auipc(word, 4),
        addi(answer, word, 1024),
        addi(one, 0, 1),
        csrrs(value, 0xf14, 0), // mhartid
        bne(value, 0, 4 + 4 * zeroing.len() as i32),
    ];
    words.extend(zeroing);
    words.extend(waiting);
    // With turns of 1,000 cycles, of which a hart that is alone has 20.
    for profile in [None, Some(Profile::default())] {
        let cycles = run(&words, 2, 64, profile.as_ref());
        assert!(cycles < 3000, "{cycles}");
    }
}

/// Guest time is past zero, and vstimecmp lies in the future again: WFI ends there.
#[test]
fn vstimecmp_comes_after_guest_time_wraps() {
    let (a, b) = (5, 6);
    let [vsti, hvti] = [1 << 6, 0x444];
    let mut words = vec![
        addi(a, 0, 1),
        slli(a, a, 63),
        csrrs(0, 0x30a, a), // menvcfg.STCE
        csrrs(0, 0x60a, a), // henvcfg.STCE
        addi(a, 0, hvti),
        csrrw(0, 0x603, a), // hideleg
        addi(a, 0, vsti),
        csrrw(0, 0x304, a), // mie
        addi(a, 0, 500),
        csrrw(0, 0x24d, a), // vstimecmp
        // htimedelta = -(time + 1000): guest time is -1000.
        csrrs(a, 0xc01, 0),
        addi(a, a, 1000),
        sub(a, 0, a),
        csrrw(0, 0x605, a),
        // Until guest time is not negative.
        csrrs(b, 0xc01, 0),
        add(b, b, a),
        srli(b, b, 63),
        bne(b, 0, -12),
        csrrs(b, 0x344, 0), // mip: VSTIP is clear
        andi(b, b, vsti),
        WFI,
        csrrs(a, 0x344, 0),
        andi(a, a, vsti),
        // 1, and VSTIP after the wait, and 128 times that before it.
        slli(b, b, 1),
        add(a, a, b),
        addi(a, a, 1),
    ];
    words.extend(end_with(a, 30, 31));
    for mode in modes() {
        assert_eq!(run(&words, 1, 64, mode.as_ref()), 1 + 64, "{mode:?}");
    }
}

/// stimecmp of a hart that sleeps, and of one that computes, while another hart moves mtime past it.
#[test]
fn mtime_set_forward_wakes_other_harts() {
    const STIMECMP: i32 = number::STIMECMP as i32;
    let (page, a, b, ready, code) = (5, 6, 7, 8, 9);
    for sleeps in [true, false] {
        let [delay_high, delay_low] = load_constant(a, 1_000_000_000);
        let other = [
            addi(b, 0, 1),
            slli(b, b, 63),
            csrrs(0, 0x30a, b), // menvcfg.STCE
            delay_high,
            delay_low,
            csrrs(b, 0xc01, 0), // time
            add(a, a, b),
            csrrw(0, STIMECMP, a),
            addi(a, 0, 32),
            csrrs(0, 0x304, a), // mie.STIE
            addi(b, 0, 1),
            sd(b, page),
            if sleeps { WFI } else { addi(0, 0, 0) },
            csrrs(a, 0x344, 0), // mip
            andi(a, a, 32),
            beq(a, 0, -8),
            addi(code, 0, 3),
        ];
        let other = [&other[..], &end_with(code, 30, 31)].concat();
        let [move_high, move_low] = load_constant(a, 2_000_000_000);
        let [mtime_high, mtime_low] = load_constant(b, 0x200_bff8);
        let setter = [
            ld(ready, page, 0),
            beq(ready, 0, -4),
            move_high,
            move_low,
            mtime_high,
            mtime_low,
            ld(ready, b, 0),
            add(ready, ready, a),
            sd(ready, b),
            lui(a, 8),
            addi(a, a, -1),
            bne(a, 0, -4),
            addi(code, 0, 1),
        ];
        let setter = [&setter[..], &end_with(code, 30, 31)].concat();
        let mut words = vec![
            auipc(page, 4),
            csrrs(a, 0xf14, 0),
            bne(a, 0, 4 + 4 * setter.len() as i32),
        ];
        words.extend(setter);
        words.extend(other);
        for mode in modes() {
            let ended = run(&words, 2, 64, mode.as_ref());
            assert_eq!(ended, 3, "sleeps {sleeps}, {mode:?}");
        }
    }
}
