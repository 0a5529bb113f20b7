//! `partita machine` and `partita profile` as the shell sees them.

#[path = "common/program.rs"]
#[allow(dead_code, reason = "another test has use for the rest")]
mod program;

use program::{BASE, LOOP, WFI, addi, auipc, elf, lui, sd, slli, sw};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the programs have tohost.
const TO_HOST: u64 = BASE + 0x700;

struct Ended {
    code: Option<i32>,
    out: String,
    err: String,
}

fn partita(folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_partita"));
    command.args(arguments);
    ended(command, folder)
}

/// The same in a process that has 2 GiB of addresses.
fn partita_with_little_room(folder: &Path, arguments: &[&str]) -> Ended {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 2097152; exec \"$0\" \"$@\""]);
    command.arg(env!("CARGO_BIN_EXE_partita")).args(arguments);
    ended(command, folder)
}

fn ended(mut command: Command, folder: &Path) -> Ended {
    let output = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ended {
        code: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// Runs a bare program with these further arguments; without any it must end soon.
fn bare(program: &[u8], arguments: &[&str]) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("program"), program).unwrap();
    let all = ["machine", "--bare", "program", "--memory", "16 MiB"];
    let limit = ["--max-instructions", "10000000"];
    let more = if arguments.is_empty() {
        &limit
    } else {
        arguments
    };
    partita(folder.path(), &[&all, more].concat())
}

/// x5 = the address of tohost.
fn to_host_in_x5() -> [u32; 2] {
    [auipc(5, 0), addi(5, 5, (TO_HOST - BASE) as i32)]
}

/// Ends with a code by tohost.
fn exit(code: i32) -> Vec<u8> {
    let code = [addi(6, 0, code << 1 | 1), sd(6, 5), LOOP];
    elf(
        &[&to_host_in_x5()[..], &code].concat(),
        &[("tohost", TO_HOST)],
    )
}

/// Must not start, and must say these words.
fn refused(ended: &Ended, words: &[&str]) {
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(125), ""),
        "{}",
        ended.err
    );
    for word in words {
        assert!(
            ended.err.contains(word),
            "{word:?} is not in:\n{}",
            ended.err
        );
    }
}

#[test]
fn a_bare_program_ends_with_its_code() {
    for code in [0, 1, 7, 255, 256] {
        let expected = code.min(255);
        assert_eq!(bare(&exit(code), &[]).code, Some(expected), "tohost {code}");
        // The finisher takes a code in its upper half.
        let value = if code == 0 {
            0x5555
        } else {
            code << 16 | 0x3333
        };
        let high = (value + 0x800).cast_unsigned() & 0xffff_f000;
        let low = value - high.cast_signed();
        let words = [
            lui(5, 0x10_0000),
            lui(6, high),
            addi(6, 6, low),
            sw(6, 5),
            LOOP,
        ];
        assert_eq!(
            bare(&elf(&words, &[]), &[]).code,
            Some(expected),
            "finisher {code}"
        );
    }
}

#[test]
fn a_bare_program_writes_by_tohost() {
    // Device 1, command 1 in the upper half, the character below.
    let mut code = to_host_in_x5().to_vec();
    code.extend([addi(7, 0, 0x101), slli(7, 7, 48)]);
    for character in b"hi\n" {
        code.extend([addi(6, 7, i32::from(*character)), sd(6, 5)]);
        // The host looks at tohost when the hart's turn ends; this waits long enough.
        code.extend([addi(8, 0, 2000), addi(8, 8, -1), 0xfe04_1ee3]); // bne x8, x0, -4
    }
    code.extend([addi(6, 0, 1), sd(6, 5), LOOP]);
    let ended = bare(&elf(&code, &[("tohost", TO_HOST)]), &[]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(0), "hi\n"),
        "{}",
        ended.err
    );
}

#[test]
fn the_write_call_is_honoured() {
    // A block at x9: number 64, file 1, address, length; its address goes to tohost.
    let block = 0x400;
    let mut code = to_host_in_x5().to_vec();
    code.extend([auipc(9, 0), addi(9, 9, block - 8)]);
    let fields = [64, 1, 0, 3];
    for (index, field) in fields.into_iter().enumerate() {
        let at = 8 * index as i32;
        code.push(match index {
            2 => addi(6, 9, 64),
            _ => addi(6, 0, field),
        });
        code.extend([addi(10, 9, at), sd(6, 10)]);
    }
    let text = i32::from_le_bytes(*b"ok\n\0");
    let high = (text + 0x800).cast_unsigned() & 0xffff_f000;
    code.extend([
        lui(6, high),
        addi(6, 6, text - high.cast_signed()),
        addi(10, 9, 64),
        sd(6, 10),
    ]);
    code.push(sd(9, 5));
    code.extend([addi(8, 0, 2000), addi(8, 8, -1), 0xfe04_1ee3]);
    code.extend([addi(6, 0, 1), sd(6, 5), LOOP]);
    let ended = bare(&elf(&code, &[("tohost", TO_HOST)]), &[]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (Some(0), "ok\n"),
        "{}",
        ended.err
    );
}

#[test]
fn the_signature_is_written_as_words() {
    let folder = tempfile::tempdir().unwrap();
    let symbols = [
        ("tohost", TO_HOST),
        ("begin_signature", BASE),
        ("end_signature", BASE + 8),
    ];
    let end = [addi(6, 0, 1), sd(6, 5), LOOP];
    let code = [&to_host_in_x5()[..], &end].concat();
    fs::write(folder.path().join("program"), elf(&code, &symbols)).unwrap();
    let arguments = ["machine", "--bare", "program", "--signature", "signature"];
    assert_eq!(partita(folder.path(), &arguments).code, Some(0));
    let written = fs::read_to_string(folder.path().join("signature")).unwrap();
    assert_eq!(written, format!("{:08x}\n{:08x}\n", code[0], code[1]));
}

#[test]
fn endless_programs_end_at_limits_with_state() {
    let program = elf(&[LOOP], &[]);
    for limit in [
        ["--max-instructions", "10000"],
        ["--max-cycles", "10000"],
        ["--max-time", "1 ms"],
        ["--timeout", "1"],
    ] {
        let ended = bare(&program, &limit);
        assert_eq!(ended.code, Some(124), "{limit:?}: {}", ended.err);
        let state = format!("hart 0: M pc {BASE:#x}");
        assert!(ended.err.contains(&state), "{limit:?}: {}", ended.err);
    }
    // A trap handler that traps retires nothing, and ends all the same.
    let ended = bare(&elf(&[0], &[]), &["--max-instructions", "10000"]);
    assert_eq!(ended.code, Some(124), "{}", ended.err);
    let ended = bare(&elf(&[WFI, LOOP], &[]), &[]);
    assert_eq!(ended.code, Some(126), "{}", ended.err);
    assert!(
        ended.err.contains("nothing will ever wake"),
        "{}",
        ended.err
    );
}

#[test]
fn foreign_and_damaged_programs_are_refused() {
    let good = exit(0);
    let with = |at: usize, bytes: &[u8]| {
        let mut program = good.clone();
        program[at..at + bytes.len()].copy_from_slice(bytes);
        program
    };
    refused(&bare(&with(5, &[2]), &[]), &["big-endian"]);
    refused(&bare(&with(18, &[62]), &[]), &["another processor"]);
    refused(&bare(&with(4, &[1]), &[]), &["32-bit"]);
    refused(&bare(&good[..100], &[]), &["damaged"]);
    // Without a table of sections, only the segment is missed.
    let mut bare_segment = with(40, &[0; 8]);
    bare_segment[60..64].fill(0);
    refused(&bare(&bare_segment[..125], &[]), &["truncated"]);
    refused(&bare(&good[..30], &[]), &["damaged"]);
    refused(
        &bare(b"#!/bin/sh\n", &[]),
        &["the program is not an ELF file"],
    );
    refused(&bare(b"", &[]), &["not an ELF file"]);
    // The segment's physical address.
    refused(
        &bare(&with(64 + 24, &[0, 0, 0, 0]), &[]),
        &["does not fit in memory"],
    );
}

#[test]
fn foreign_and_damaged_kernels_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("firmware"), LOOP.to_le_bytes()).unwrap();
    let mut image = vec![0; 4096];
    image[56..60].copy_from_slice(b"RSC\x05");
    image[..2].copy_from_slice(b"MZ");
    image[0x3c] = 0x40;
    // One section of a MiB.
    image[0x46] = 1;
    image[0x40 + 24 + 18] = 0x10;
    let mut arm = vec![0; 64];
    arm[56..60].copy_from_slice(b"ARM\x64");
    let mut x86 = vec![0; 1024];
    x86[0x202..0x206].copy_from_slice(b"HdrS");
    let elf = exit(0);
    let mut foreign = elf.clone();
    foreign[18] = 62;
    for (kernel, word) in [
        (image, "truncated"),
        (elf[..100].to_vec(), "damaged"),
        (foreign, "another processor"),
        (arm, "for Arm"),
        (x86, "for x86"),
        (vec![0x1f, 0x8b, 8, 0], "gzip"),
        (Vec::new(), "truncated"),
    ] {
        fs::write(folder.path().join("kernel"), kernel).unwrap();
        let arguments = ["machine", "--firmware", "firmware", "--kernel", "kernel"];
        refused(&partita(folder.path(), &arguments), &["the kernel", word]);
    }
    let none = ["machine", "--firmware", "firmware", "--kernel", "none"];
    refused(&partita(folder.path(), &none), &["none"]);
}

#[test]
fn a_machine_that_cannot_be_is_refused() {
    let program = exit(0);
    refused(&bare(&program, &["--harts", "0"]), &["0 harts"]);
    refused(&bare(&program, &["--harts", "513"]), &["513 harts"]);
    refused(
        &bare(&program, &["--guest-interrupt-files", "64"]),
        &["guest interrupt files"],
    );
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("program"), &program).unwrap();
    let with = |size| ["machine", "--bare", "program", "--memory", size];
    let too_large = partita(folder.path(), &with("1048576 GiB"));
    refused(&too_large, &["at most 256 GiB"]);
    let no_room = partita_with_little_room(folder.path(), &with("4 GiB"));
    refused(&no_room, &["no room"]);
    let bad = ["machine", "--bare", "program", "--memory", "much"];
    assert_eq!(partita(folder.path(), &bad).code, Some(2));
}

#[test]
fn disks_that_cannot_be_used_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("program"), exit(0)).unwrap();
    fs::write(path("endless"), elf(&[LOOP], &[])).unwrap();
    fs::write(path("odd"), [0; 700]).unwrap();
    fs::write(path("good"), [0; 1024]).unwrap();
    fs::write(path("protected"), [0; 1024]).unwrap();
    let mut permissions = fs::metadata(path("protected")).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path("protected"), permissions).unwrap();
    let run = |disk: &str, more: &[&str]| {
        let arguments = ["machine", "--bare", "program", "--disk", disk];
        partita(folder.path(), &[&arguments, more].concat())
    };
    refused(&run("none", &[]), &["none"]);
    refused(&run("odd", &[]), &["700 bytes", "whole sectors"]);
    refused(&run("protected", &[]), &["write-protected", "--snapshot"]);
    assert_eq!(run("protected", &["--snapshot"]).code, Some(0));
    assert_eq!(run("good", &[]).code, Some(0));

    // Another process has it; an interrupt ends that one in order, and the disk is free again.
    let start = || {
        Command::new(env!("CARGO_BIN_EXE_partita"))
            .args(["machine", "--bare", "endless", "--disk", "good"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let mut other = start();
    let mut taken = run("good", &[]);
    while taken.code == Some(0) {
        // It has not come that far yet, or came while this one had the disk and was refused itself.
        if other.try_wait().unwrap().is_some() {
            other = start();
        }
        taken = run("good", &[]);
    }
    refused(&taken, &["good", "in use"]);
    let interrupt = Command::new("kill")
        .args(["-INT", &other.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupt.success());
    let mut err = String::new();
    other
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .unwrap();
    assert_eq!(other.wait().unwrap().code(), Some(130), "{err}");
    assert!(err.contains("broken off"), "{err}");
    assert_eq!(run("good", &[]).code, Some(0));
}

#[test]
fn profiles_are_shown_checked_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let good = include_str!("../../../profiles/rocket-h.toml");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("same.toml"), good).unwrap();
    fs::write(
        path("other.toml"),
        good.replace("divide = 32", "divide = 33"),
    )
    .unwrap();
    let bad = good
        .replace("divide = 32", "divide = 32\ndivided = 1")
        .replace("ways = 8", "ways = 0");
    fs::write(path("bad.toml"), &bad).unwrap();

    let shown = partita(folder.path(), &["profile", "show", "rocket-h"]);
    assert_eq!(shown.code, Some(0));
    let row = shown
        .out
        .lines()
        .find(|line| line.starts_with("costs.divide "));
    let words: Vec<&str> = row.unwrap().split_whitespace().collect();
    assert_eq!(words, ["costs.divide", "32", "cycles"]);

    let same = partita(folder.path(), &["profile", "diff", "rocket-h", "same.toml"]);
    assert_eq!(
        (same.code, same.out.as_str()),
        (Some(0), "they are the same\n")
    );
    let diff = partita(
        folder.path(),
        &["profile", "diff", "--json", "rocket-h", "other.toml"],
    );
    let diff: serde_json::Value = serde_json::from_str(&diff.out).unwrap();
    assert_eq!(diff[0]["key"], "costs.divide");
    assert_eq!(diff[0]["values"], serde_json::json!([32, 33]));
    assert_eq!(diff.as_array().unwrap().len(), 1);

    let check = partita(
        folder.path(),
        &["profile", "check", "same.toml", "rocket-h"],
    );
    assert_eq!(check.code, Some(0), "{}", check.err);
    let check = partita(folder.path(), &["profile", "check", "bad.toml"]);
    assert_eq!(check.code, Some(1));
    let unknown = bad.lines().position(|line| line.starts_with("divided = 1"));
    let place = format!("bad.toml:{}:", unknown.unwrap() + 1);
    for words in [
        place.as_str(),
        "l2.ways = 0: ",
        "costs.divided: ",
        "did you mean costs.divide?",
    ] {
        assert!(
            check.out.contains(words),
            "{words:?} is not in:\n{}",
            check.out
        );
    }
    assert_eq!(
        partita(folder.path(), &["profile", "show", "none"]).code,
        Some(1)
    );

    // No machine is made of it.
    fs::write(path("program"), exit(0)).unwrap();
    let run = ["machine", "--bare", "program", "--profile", "bad.toml"];
    refused(&partita(folder.path(), &run), &["bad.toml:", "l2.ways = 0"]);
    let run = ["machine", "--bare", "program", "--profile", "other.toml"];
    assert_eq!(partita(folder.path(), &run).code, Some(0));
}
