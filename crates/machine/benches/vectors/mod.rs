//! The same work with vector instructions and without them, in one run: `cargo bench --bench speed`.
//!
//! Each program does its work on 64 KiB again and again, and ends with a few bits of the result as its exit code, which both forms must
//! agree in. Times are the host's processor time of the machine's process.

mod assembler;
mod sha256;

use std::path::Path;
use std::process::{Command, Stdio};

use super::program::elf;
use super::{Outcome, PROFILE, children_seconds, path};
use assembler::*;

/// Bytes of a piece of work.
pub(crate) const BYTES: u32 = 64 << 10;

/// Work in both forms.
struct Work {
    name: &'static str,
    scalar: fn() -> Vec<u32>,
    vector: fn() -> Vec<u32>,
    /// Times that it is done by the scalar form and by the vector form.
    rounds: [u32; 2],
}

const WORKS: [Work; 4] = [
    Work {
        name: "memcpy",
        scalar: copy_words,
        vector: copy_vectors,
        rounds: [30_000, 30_000],
    },
    Work {
        name: "strlen",
        scalar: length_by_words,
        vector: length_by_vectors,
        rounds: [30_000, 30_000],
    },
    Work {
        name: "SHA-256",
        scalar: sha256::scalar,
        vector: sha256::vector,
        rounds: [500, 500],
    },
    Work {
        name: "saxpy",
        scalar: saxpy_scalar,
        vector: saxpy_vector,
        rounds: [500, 500],
    },
];

/// Eight doublewords at a time.
fn copy_words() -> Vec<u32> {
    let mut round = begin();
    let offsets = (0..64).step_by(8);
    round.extend(offsets.clone().zip(12..).map(|(at, to)| ld(to, FROM, at)));
    round.extend(
        offsets
            .zip(12..)
            .map(|(at, from)| store(from, TO, at, DOUBLE)),
    );
    round.extend([addi(FROM, FROM, 64), addi(TO, TO, 64)]);
    let back = distance(round.len() - BEGIN);
    round.push(bne(FROM, END, back));
    whole(&round, &[lw(CODE, TO, -8)])
}

fn copy_vectors() -> Vec<u32> {
    let mut round = begin();
    let (left, count) = (12, 13);
    round.push(sub(left, END, FROM));
    round.extend([
        vsetvli(count, left, E8 | M8),
        vle(8, 0, FROM),
        sub(left, left, count),
        add(FROM, FROM, count),
        vse(8, 0, TO),
        add(TO, TO, count),
        bne(left, 0, -24),
    ]);
    whole(&round, &[lw(CODE, TO, -8)])
}

/// A doubleword at a time, by ORC.B.
fn length_by_words() -> Vec<u32> {
    let (word, ones) = (12, 13);
    let mut round = begin();
    round.push(addi(ones, 0, -1));
    round.extend([
        ld(word, FROM, 0),
        addi(FROM, FROM, 8),
        orc_b(word, word),
        beq(word, ones, -12),
    ]);
    // The string ends with its last doubleword.
    whole(&round, &[sub(CODE, FROM, END), addi(CODE, CODE, -8)])
}

fn length_by_vectors() -> Vec<u32> {
    let (count, found) = (12, 13);
    let mut round = begin();
    round.extend([
        vsetvli(count, 0, E8 | M8),
        vle_first_fault(8, 8, FROM),
        csrrs(count, 0xc20, 0), // vl
        vmseq_vi(0, 8, 0),
        vfirst(found, 0),
        add(FROM, FROM, count),
        blt(found, 0, -24),
    ]);
    round.extend([add(FROM, FROM, found), sub(FROM, FROM, count)]);
    whole(&round, &[sub(CODE, FROM, END)])
}

fn saxpy_scalar() -> Vec<u32> {
    let (factor, x, y) = (10, 11, 12);
    let mut round = begin();
    round.push(flw(factor, END, 8));
    round.extend([
        flw(x, FROM, 0),
        flw(y, TO, 0),
        addi(FROM, FROM, 4),
        fmadd_s(y, factor, x, y),
        fsw(y, TO, 0),
        addi(TO, TO, 4),
        bne(FROM, END, -24),
    ]);
    whole(&round, &[lw(CODE, TO, -8)])
}

fn saxpy_vector() -> Vec<u32> {
    let (factor, left, count, bytes) = (10, 12, 13, 14);
    let mut round = begin();
    round.extend([
        flw(factor, END, 8),
        sub(left, END, FROM),
        srli(left, left, 2),
    ]);
    round.extend([
        vsetvli(count, left, E32 | M8),
        vle(32, 0, FROM),
        sub(left, left, count),
        slli(bytes, count, 2),
        add(FROM, FROM, bytes),
        vle(32, 8, TO),
        vfmacc_vf(8, factor, 0),
        vse(32, 8, TO),
        add(TO, TO, bytes),
        bne(left, 0, -36),
    ]);
    whole(&round, &[lw(CODE, TO, -8)])
}

/// Runs a program so many times over; gives the nanoseconds a byte and the exit code.
fn timed(folder: &Path, words: &[u32], rounds: u32, mode: &str) -> Outcome<(f64, i32)> {
    let file = folder.join("vectors");
    std::fs::write(&file, elf(&with_rounds(words, rounds)))?;
    let before = children_seconds()?;
    let status = Command::new(env!("CARGO_BIN_EXE_machine"))
        .args([
            "--bare",
            path(&file)?,
            "--memory",
            "16",
            "--profile",
            PROFILE,
        ])
        .args(["--mode", mode])
        .stdin(Stdio::null())
        .status()?;
    let seconds = children_seconds()? - before;
    let code = status.code().ok_or("ended by a signal")?;
    if !(1..100).contains(&code) {
        return Err(format!("a program ended with {status}").into());
    }
    let bytes = f64::from(BYTES) * f64::from(rounds);
    Ok((seconds * 1e9 / bytes, code))
}

/// Measures all of the work in both modes and shows the table.
pub(crate) fn measure(folder: &Path) -> Outcome<()> {
    println!();
    println!("| work on 64 KiB | mode | scalar, host ns a byte | vector | vector / scalar |");
    println!("|---|---|---|---|---|");
    for work in &WORKS {
        for mode in ["functional", "timing"] {
            let [scalar_rounds, vector_rounds] = work.rounds;
            let (scalar, expected) = timed(folder, &(work.scalar)(), scalar_rounds, mode)?;
            let (vector, code) = timed(folder, &(work.vector)(), vector_rounds, mode)?;
            if code != expected {
                let name = work.name;
                return Err(format!("{name}: {code} with vectors, {expected} without").into());
            }
            println!(
                "| {} | {mode} | {scalar:.3} | {vector:.3} | {:.2} |",
                work.name,
                vector / scalar
            );
        }
    }
    Ok(())
}
