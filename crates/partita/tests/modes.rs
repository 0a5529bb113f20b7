//! Extensions of a machine, and checkpoints from one mode to the other, as the shell sees them.

#[path = "common/program.rs"]
#[allow(dead_code, reason = "another test has use for the rest")]
mod program;

use program::{BASE, LOOP, addi, auipc, elf, sd, slli};
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Where the programs have tohost.
const TO_HOST: u64 = BASE + 0x700;
/// hgeie, whose writable bits are the guest interrupt files that there are.
const HGEIE: u32 = riscv::csr::number::HGEIE as u32;

fn machine(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_partita"))
        .arg("machine")
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The code that it ended with, and what it said.
fn ended(output: &Output) -> (Option<i32>, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

/// Ends with what is in x6 as its code.
fn with_exit(code: &[u32]) -> Vec<u8> {
    let start = [auipc(5, 0), addi(5, 5, (TO_HOST - BASE) as i32)];
    let end = [slli(6, 6, 1), addi(6, 6, 1), sd(6, 5), LOOP];
    elf(&[&start, code, &end].concat(), &[("tohost", TO_HOST)])
}

#[test]
fn harts_have_the_given_guest_interrupt_files() {
    let folder = tempfile::tempdir().unwrap();
    let count = [
        addi(7, 0, -1),
        HGEIE << 20 | 7 << 15 | 1 << 12 | 0x73, // csrw hgeie, x7
        HGEIE << 20 | 2 << 12 | 6 << 7 | 0x73,  // csrr x6, hgeie
        0x602 << 20 | 6 << 15 | 1 << 12 | 6 << 7 | 0x13, // cpop x6, x6
    ];
    fs::write(folder.path().join("program"), with_exit(&count)).unwrap();
    let program = ["--bare", "program", "--memory", "16 MiB"];
    for files in ["0", "7", "63"] {
        let by_option = machine(
            folder.path(),
            &[&program[..], &["--guest-interrupt-files", files]].concat(),
        );
        assert_eq!(
            ended(&by_option).0,
            files.parse().ok(),
            "{}",
            ended(&by_option).1
        );
        let profile = include_str!("../../../profiles/k3-class.toml");
        let (given, wanted) = ("guest_files = 63", format!("guest_files = {files}"));
        assert!(profile.contains(given));
        let path = folder.path().join("profile.toml");
        fs::write(path, profile.replace(given, &wanted)).unwrap();
        let by_profile = machine(
            folder.path(),
            &[&program[..], &["--profile", "profile.toml"]].concat(),
        );
        assert_eq!(
            ended(&by_profile).0,
            files.parse().ok(),
            "{}",
            ended(&by_profile).1
        );
    }
}

#[test]
fn checkpoints_and_disks_continue_across_modes() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    // Counts x8 down while x6 counts to 7.
    let count = [
        addi(8, 0, 2000),
        addi(6, 0, 0),
        addi(9, 0, 7),
        addi(6, 6, 1),
        addi(8, 0, 2000),
        addi(8, 8, -1),
        0xfe04_1ee3, // bne x8, x0, -4
        0xfe93_18e3, // bne x6, x9, -16
    ];
    fs::write(path("program"), with_exit(&count)).unwrap();
    fs::write(path("disk"), [1; 1024]).unwrap();
    fs::write(path("other"), [2; 1024]).unwrap();
    let (fast, measured) = (["--mode", "functional"], ["--profile", "rocket-h"]);
    let profile = ["--profile", "rocket-h"];
    for (before, after, measures) in [
        ([&profile[..], &fast].concat(), measured, true),
        (measured.to_vec(), fast, false),
        (measured.to_vec(), measured, true),
        ([&profile[..], &fast].concat(), fast, false),
    ] {
        let start = ["--bare", "program", "--memory", "16 MiB", "--disk", "disk"];
        let until = [
            "--checkpoint-at",
            "instructions=9000",
            "--checkpoint",
            "point",
        ];
        let written = machine(folder.path(), &[&start[..], &until, &before].concat());
        assert_eq!(ended(&written), (Some(0), String::new()), "{before:?}");
        let again = |more: &[&str]| {
            let restore = ["--restore", "point", "--monitor", "figures"];
            machine(folder.path(), &[&restore[..], &after, more].concat())
        };
        let finished = again(&["--disk", "disk"]);
        assert_eq!(
            ended(&finished),
            (Some(7), String::new()),
            "{before:?} {after:?}"
        );
        let figures = fs::read(path("figures")).unwrap();
        let figures: serde_json::Value = serde_json::from_slice(&figures).unwrap();
        assert_eq!(figures["measured"], measures, "{before:?} {after:?}");
        for (disks, word) in [(&[][..], "0 are given"), (&["--disk", "other"], "disk")] {
            let (code, said) = ended(&again(disks));
            assert_eq!(code, Some(125), "{said}");
            assert!(
                said.contains("cannot go on from point") && said.contains(word),
                "{said}"
            );
        }
    }
}
