//! Micro-benchmarks: what a core's caches, TLBs, walks, traps, fences and its way to other harts cost.
//!
//! Runs in M-mode on any machine with QEMU's virt map and mcycle. A line is `measure: NAME SIZE CYCLES`, with
//! two decimals; docs/guide/profile-a-board.md says what each is, and `partita profile measure` makes a profile of it.

#![no_std]
#![no_main]

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU64, Ordering};

use conformance::device::{self, print};
use conformance::harts;

const PAGE: usize = 4096;
const LINE: usize = 64;
/// Where data begins: behind the program.
const DATA: usize = 0x8100_0000;
/// Page tables.
const TABLES: usize = 0x8080_0000;
/// The largest data: 16 MiB.
const MOST: usize = 16 << 20;

fn cycle() -> u64 {
    let value;
    // SAFETY: reads a counter.
    unsafe { asm!("csrr {0}, mcycle", out(reg) value) };
    value
}

fn report(name: &str, size: usize, cycles: u64, times: u64) {
    let hundredths = cycles * 100 / times;
    print(format_args!(
        "measure: {name} {size} {}.{:02}\n",
        hundredths / 100,
        hundredths % 100
    ));
}

/// Follows `loads` pointers from `start`; the cycles. With `status` in mstatus: MPRV and the like.
fn chase(start: usize, loads: u64, status: u64) -> u64 {
    let (mut pointer, mut left) = (start, loads / 8);
    let (begin, end): (u64, u64);
    // SAFETY: the pointers lead to each other, in every translation used. MPRV is off again behind it.
    unsafe {
        asm!(
            "csrs mstatus, {status}",
            "csrr {begin}, mcycle",
            ".balign 64",
            "2:",
            "ld {p}, 0({p})", "ld {p}, 0({p})", "ld {p}, 0({p})", "ld {p}, 0({p})",
            "ld {p}, 0({p})", "ld {p}, 0({p})", "ld {p}, 0({p})", "ld {p}, 0({p})",
            "addi {n}, {n}, -1",
            "bnez {n}, 2b",
            "csrr {end}, mcycle",
            "csrc mstatus, {status}",
            status = in(reg) status, begin = out(reg) begin, end = out(reg) end,
            p = inout(reg) pointer, n = inout(reg) left,
        );
    }
    core::hint::black_box((pointer, left));
    end - begin
}

/// Makes a ring of `count` pointers that are `stride` bytes apart, in an order that no prefetcher knows: each place
/// leads to the one that a fixed multiplier gives.
fn make_ring(count: usize, stride: usize) {
    // A full period: multiplier 1 modulo 4, odd increment, count a power of two.
    let next = |index: usize| (index * 0x5d58_8b65 + 0x3c6e_f35f) & (count - 1);
    for index in 0..count {
        let place = |index: usize| {
            // Pages are read at lines that fall into different sets of the caches.
            let line = if stride == PAGE {
                index / 4 % 64 * LINE
            } else {
                0
            };
            DATA + index * stride + line
        };
        // SAFETY: inside the data.
        unsafe { (place(index) as *mut usize).write_volatile(place(next(index))) };
    }
}

fn caches() {
    let mut size = 4096;
    while size <= MOST {
        let count = size / LINE;
        make_ring(count, LINE);
        let loads = (2 * count as u64).max(4096);
        chase(DATA, loads, 0);
        report("chase", size, chase(DATA, loads, 0), loads);
        size *= 2;
    }
}

const VALID: usize = 1;
const LEAF: usize = 0xcf; // V, R, W, X, A, D
const USER: usize = 0x10;
const SV39: usize = 8 << 60;

/// A table of `levels` levels that maps the gigabyte of RAM to itself; its root. `user` for the G-stage.
fn make_tables(at: usize, user: usize) -> usize {
    let entry = |table: usize, index: usize| (table + index * 8) as *mut usize;
    let (root, middle, leaves) = (at, at + 4 * PAGE, at + 5 * PAGE);
    // SAFETY: memory behind the program that nothing else uses.
    unsafe {
        core::ptr::write_bytes(root as *mut u8, 0, 5 * PAGE);
        entry(root, 2).write_volatile(middle >> 12 << 10 | VALID);
        // Large pages but where the data is: 32 MiB from 16 MiB on.
        for index in 0..512 {
            let page = 0x8000_0000 + (index << 21);
            entry(middle, index).write_volatile(page >> 12 << 10 | LEAF | user);
        }
        for table in 0..16 {
            let place = leaves + table * PAGE;
            entry(middle, 8 + table).write_volatile(place >> 12 << 10 | VALID);
            for index in 0..512 {
                let page = DATA + (table << 21) + (index << 12);
                entry(place, index).write_volatile(page >> 12 << 10 | LEAF | user);
            }
        }
    }
    root
}

const MPRV: u64 = 1 << 17;
const SUPERVISOR: u64 = 1 << 11;
const VIRTUAL: u64 = 1 << 39;

fn translations() {
    let first = make_tables(TABLES, 0);
    let second = make_tables(TABLES + 64 * PAGE, USER);
    let (satp, hgatp) = (SV39 | first >> 12, SV39 | second >> 12);
    // SAFETY: M-mode's own accesses are not translated but where MPRV says so.
    unsafe {
        asm!("csrw satp, {0}", "csrw vsatp, {0}", "csrw hgatp, {1}", "sfence.vma",
            ".insn r 0x73, 0, 0x31, x0, x0, x0", in(reg) satp, in(reg) hgatp);
    }
    for (name, status) in [
        ("reach", MPRV | SUPERVISOR),
        ("reach-guest", MPRV | SUPERVISOR | VIRTUAL),
    ] {
        let mut pages = 4;
        while pages <= 4096 {
            make_ring(pages, PAGE);
            let loads = (2 * pages as u64).max(2048);
            chase(DATA, loads, status);
            report(name, pages, chase(DATA, loads, status), loads);
            pages *= 2;
        }
    }
    // SAFETY: as above.
    unsafe {
        asm!(
            "csrw satp, x0",
            "csrw vsatp, x0",
            "csrw hgatp, x0",
            "sfence.vma"
        )
    };
}

macro_rules! repeated {
    ($name:literal, $($line:literal),+) => {{
        let time = |rounds: u64| {
            let begin = cycle();
            // SAFETY: changes the registers named alone.
            unsafe {
                asm!(".balign 64", "2:", $($line,)+ "addi {n}, {n}, -1", "bnez {n}, 2b",
                    n = inout(reg) rounds => _, out("t0") _, out("t1") _);
            }
            cycle() - begin
        };
        time(64);
        // The loop's own two instructions cost two cycles.
        report($name, 1, time(1024).saturating_sub(2 * 1024), 1024);
    }};
}

global_asm!(
    r#"
    .text
    .balign 64
    .globl measured_trap
measured_trap:
    csrr t0, mepc
    addi t0, t0, 4
    csrw mepc, t0
    mret
    "#
);

unsafe extern "C" {
    fn measured_trap();
}

fn instructions() {
    repeated!("addition", "add t0, t0, t1");
    repeated!("multiply", "mul t0, t0, t1");
    repeated!("divide", "div t0, t0, t1");
    repeated!("csr", "csrw mscratch, t1", "csrr t1, mscratch");
    repeated!("fence", "fence rw, rw");
    repeated!("fence-i", "fence.i");
    repeated!("fence-translation", "sfence.vma x0, t0");
    repeated!("atomic", "amoadd.d x0, x0, (sp)");
    repeated!("pause", ".4byte 0x0100000f");
    let handler = measured_trap as *const () as usize;
    let before: usize;
    // SAFETY: the handler comes back behind the instruction that traps.
    unsafe { asm!("csrrw {0}, mtvec, {1}", out(reg) before, in(reg) handler) };
    repeated!("trap", ".4byte 0");
    // SAFETY: the vector that was there before.
    unsafe { asm!("csrw mtvec, {0}", in(reg) before) };
}

#[repr(align(64))]
struct Word(AtomicU64);

static BALL: Word = Word(AtomicU64::new(0));
const ROUNDS: u64 = 512;

fn play(side: u64) -> u64 {
    let begin = cycle();
    for _ in 0..ROUNDS {
        let mut value = BALL.0.load(Ordering::Relaxed);
        while value & 1 != side {
            value = BALL.0.load(Ordering::Relaxed);
        }
        BALL.0.store(value + 1, Ordering::Relaxed);
    }
    cycle() - begin
}

fn other_side() -> u64 {
    play(1)
}

const MSWI: usize = 0x200_0000;

fn sleeper() -> u64 {
    // SAFETY: mstatus.MIE is clear: the interrupt ends WFI alone.
    unsafe { asm!("csrs mie, {0}", in(reg) 8) };
    for _ in 0..ROUNDS {
        // SAFETY: waits.
        unsafe { asm!("wfi") };
        while device::read(MSWI + 4) & 1 == 0 {
            core::hint::spin_loop();
        }
        device::write(MSWI + 4, 0);
        BALL.0.fetch_add(1, Ordering::SeqCst);
    }
    // SAFETY: as above.
    unsafe { asm!("csrc mie, {0}", in(reg) 8) };
    0
}

fn crossings() {
    if !harts::is_present(1) {
        return;
    }
    harts::start_on(1, other_side);
    let cycles = play(0);
    harts::finish(1);
    report("ping-pong", 1, cycles, 2 * ROUNDS);
    BALL.0.store(0, Ordering::SeqCst);
    harts::start_on(1, sleeper);
    let begin = cycle();
    for round in 1..=ROUNDS {
        device::write(MSWI + 4, 1);
        while BALL.0.load(Ordering::SeqCst) != round {
            core::hint::spin_loop();
        }
    }
    report("interrupt", 1, cycle() - begin, ROUNDS);
    harts::finish(1);
}

#[unsafe(no_mangle)]
extern "C" fn run_suite() -> ! {
    instructions();
    caches();
    translations();
    crossings();
    print(format_args!("measure: end 0 0.00\n"));
    device::finish(0)
}
