//! Files for a board, started by U-Boot from a disk on QEMU's board: as a kernel image, and as a program of EFI.

mod common;

use common::{hypervisor, room, root};
use runner::board;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use system::Bytes;

/// Debian's U-Boot for a firmware of SBI below it (package u-boot-qemu).
const U_BOOT: &str = "/usr/lib/u-boot/qemu-riscv64_smode/u-boot.bin";

/// Starts U-Boot with a disk, and returns what the console showed until the board powered off or a line held `last`.
fn boot(firmware: &Path, disk: &Path, last: &str) -> String {
    let mut arguments = runner::qemu::board(7, 2, Bytes(2 << 30));
    for (option, value) in [
        ("-bios", firmware.display().to_string()),
        ("-kernel", String::from(U_BOOT)),
        (
            "-drive",
            format!("file={},format=raw,if=none,id=boot", disk.display()),
        ),
        (
            "-device",
            String::from("virtio-blk-device,drive=boot,bus=virtio-mmio-bus.7"),
        ),
    ] {
        arguments.extend([option.into(), value.into()]);
    }
    let mut child = Command::new("timeout")
        .args(["120", "qemu-system-riscv64"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut text = String::new();
    let mut console = BufReader::new(child.stdout.take().unwrap());
    let mut line = Vec::new();
    while console.read_until(b'\n', &mut line).unwrap() > 0 {
        let shown = String::from_utf8_lossy(&line).into_owned();
        text += &shown;
        line.clear();
        if shown.contains(last) {
            // `timeout` ends its QEMU with itself, unless both have ended already.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            break;
        }
    }
    child.wait().unwrap();
    text
}

#[test]
#[ignore = "needs U-Boot, QEMU and the hypervisor; make test runs it"]
fn u_boot_starts_kernel_and_efi_program() {
    let _room = room("qemu");
    let folder = tempfile::tempdir().unwrap();
    let (files, disk) = (folder.path().join("boot"), folder.path().join("boot.raw"));
    let output = Command::new(env!("CARGO_BIN_EXE_partita"))
        .arg("board")
        .arg(root().join("systems/exercises.toml"))
        .arg("--output")
        .arg(&files)
        .arg("--disk")
        .arg(&disk)
        .arg("--hypervisor")
        .arg(hypervisor())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let firmware = machine::front::firmware::find().unwrap();

    let kernel = boot(&firmware, &disk, "partita-monitor end");
    // U-Boot says what it found before it starts it.
    assert!(kernel.contains(board::MENU), "{kernel}");

    // Without its menu U-Boot looks for EFI's program.
    let read = |name: &str| fs::read(files.join(name)).unwrap();
    let [program, system] = [board::PROGRAM, board::SYSTEM].map(read);
    let only = [
        (board::PROGRAM, program.as_slice()),
        (board::SYSTEM, system.as_slice()),
    ];
    fs::write(&disk, board::disk(&only).unwrap()).unwrap();
    let efi = boot(&firmware, &disk, "partita-monitor end");
    assert!(efi.contains("efi/boot/bootriscv64.efi"), "{efi}");

    for text in [kernel, efi] {
        for vm in ["one", "two"] {
            let end = format!("[partita] {vm}: stopped (power-off)");
            assert!(text.contains(&end), "no {end:?} in\n{text}");
        }
        assert!(!text.contains("FAIL"), "{text}");
    }

    // A program without its system says what is missing, and leaves the firmware as it was.
    fs::write(&disk, board::disk(&only[..1]).unwrap()).unwrap();
    let alone = boot(&firmware, &disk, "Partita cannot start");
    let reason = r"Partita cannot start: \partita\system cannot be read from the file system";
    assert!(alone.contains(reason), "{alone}");
}

/// Bytes of the laboratory's hypervisor's code at most. `make dist` holds the product's, which has fewer methods, to its own bound.
const LABORATORY_CODE: u64 = 432 << 10;

#[test]
#[ignore = "needs the hypervisor; make test runs it"]
fn the_laboratorys_code_keeps_its_bound() {
    let output = Command::new(env!("CARGO_BIN_EXE_partita"))
        .args(["footprint", "--json", "-"])
        .arg(hypervisor())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // The table comes first.
    let json = &text[text.find('{').unwrap_or(0)..];
    let size: serde_json::Value = serde_json::from_str(json).unwrap();
    let code = size["text"].as_u64().unwrap();
    assert!(
        (1 << 10..LABORATORY_CODE).contains(&code),
        "{code} bytes of code"
    );
}
