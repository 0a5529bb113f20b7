//! Runs the exerciser as QEMU's kernel, on the computer itself: what passes here and fails in a VM is the
//! hypervisor's. Needs `qemu-system-riscv64`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long one run may take: far more than any needs.
const LIMIT: Duration = Duration::from_secs(400);

/// The image that `make build` built.
fn image() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target =
        target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"));
    target.join("riscv64gc-unknown-none-elf/release/exerciser")
}

/// Runs the exerciser and returns what it printed.
fn run(harts: u32, line: &str, more: &[&str]) -> String {
    let mut child = Command::new("qemu-system-riscv64")
        .args([
            "-M",
            "virt,aia=aplic-imsic",
            "-cpu",
            "rv64",
            "-m",
            "128",
            "-nographic",
            "-no-reboot",
        ])
        // One thread for all harts: with one each, QEMU 10.0 can lose a message to an interrupt file that its hart
        // looks at meanwhile, and firmware that waits for an answer to a remote fence then waits for ever.
        .args(["-accel", "tcg,thread=single"])
        .args(["-smp", &harts.to_string(), "-append", line, "-kernel"])
        .arg(image())
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("qemu-system-riscv64 starts");
    let mut output = child.stdout.take().expect("a pipe");
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut output, &mut bytes).expect("QEMU's output");
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let start = Instant::now();
    while child.try_wait().expect("QEMU's state").is_none() {
        if start.elapsed() > LIMIT {
            child.kill().expect("QEMU ends");
        }
        thread::sleep(Duration::from_millis(20));
    }
    reader.join().expect("the reader")
}

/// The last line of a run, which must be `PASS`.
fn passes(harts: u32, line: &str, more: &[&str]) -> String {
    let output = run(harts, line, more);
    assert!(
        output.contains("exerciser: PASS"),
        "{harts} harts, {line}:\n{output}"
    );
    output
}

/// The number that follows `key=` where it occurs first.
fn figure(output: &str, key: &str) -> u64 {
    let (_, rest) = output
        .split_once(&format!("{key}="))
        .unwrap_or_else(|| panic!("no {key} in\n{output}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().expect("a number")
}

/// One shift-0 nanosecond is one instruction: the exerciser is at its first exercise in under two million.
#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn boots_in_under_two_million_instructions() {
    for harts in [1, 4] {
        let output = passes(harts, "exercise=boot", &["-icount", "shift=0"]);
        assert!(figure(&output, "boot-ns") < 2_000_000, "{output}");
        assert_eq!(output.contains("harts-seen=0xf"), harts == 4);
    }
}

#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn hostile_sees_the_specified_exceptions() {
    for harts in [1, 4] {
        let output = passes(harts, "exercise=hostile", &[]);
        // Of all tests together: those of what only VMs have check nothing here.
        assert!(figure(&output, "hostile checks") > 0, "{output}");
    }
}

#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn fuzz_is_a_function_of_its_seed() {
    let digest = |seed: u32| {
        let output = passes(
            1,
            &format!("exercise=fuzz count=3000 seed={seed}"),
            &["-icount", "shift=0"],
        );
        output
            .split_once("digest=")
            .map(|(_, rest)| rest[..16].to_owned())
            .expect("a digest")
    };
    assert_eq!(digest(5), digest(5));
    assert_ne!(digest(5), digest(6));
    passes(4, "exercise=fuzz count=3000 seed=9", &[]);
}

#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn missing_fences_are_found_others_keep_fresh() {
    passes(1, "exercise=translations rounds=1000", &[]);
    passes(2, "exercise=translations rounds=600", &[]);
    let output = run(2, "exercise=translations rounds=5000 method=none", &[]);
    assert!(output.contains("exerciser: FAIL"), "{output}");
}

#[test]
#[ignore = "soak: half a minute of QEMU; make soak runs it"]
fn soak_fences_keep_translations_fresh() {
    passes(1, "exercise=translations rounds=5000", &[]);
    passes(2, "exercise=translations rounds=3000", &[]);
}

#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn interrupts_and_timers_are_counted() {
    interrupts_are_counted(30, 15, 50);
}

#[test]
#[ignore = "soak: a minute of QEMU; make soak runs it"]
fn soak_interrupts_and_timers_are_counted() {
    interrupts_are_counted(100, 30, 200);
}

/// Interrupts of two harts, interrupts of three and four harts, and deadlines.
fn interrupts_are_counted(two: u32, more: u32, deadlines: u32) {
    let output = passes(2, &format!("exercise=ipi count={two}"), &[]);
    assert_eq!(figure(&output, "lost"), 0);
    passes(4, &format!("exercise=ipi count={more}"), &[]);
    passes(3, &format!("exercise=ipi count={more} via=sbi"), &[]);
    let timer = format!("exercise=timer count={deadlines}");
    passes(1, &timer, &["-icount", "shift=0"]);
    passes(4, &format!("exercise=timer count={}", deadlines / 2), &[]);
}

/// A board without the AIA: interrupts go by SBI.
#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn interrupt_files_are_not_needed() {
    for line in [
        "exercise=ipi count=30",
        "exercise=state rounds=30",
        "exercise=translations rounds=500",
    ] {
        passes(2, line, &["-M", "virt,aia=none"]);
    }
}

#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn a_harts_state_stays() {
    passes(1, "exercise=state rounds=100", &["-icount", "shift=0"]);
    let output = passes(4, "exercise=state rounds=50", &[]);
    assert!(figure(&output, "checks") > 0, "{output}");
}

#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn heartbeats_come_and_their_memory_is_theirs() {
    let output = passes(4, "exercise=heartbeat duration-ms=500 period-ms=50", &[]);
    assert_eq!(figure(&output, "disturbed"), 0);
}

#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn work_completes_with_ticket_locks() {
    work_is_done_by_every_spin("ticket");
}

#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn work_completes_with_queue_locks() {
    work_is_done_by_every_spin("queue");
}

fn work_is_done_by_every_spin(lock: &str) {
    for spin in ["wrs", "pause", "call", "busy"] {
        let line = format!(
            "exercise=work duration-ms=0 jobs=150 locks=4 lock={lock} spin={spin} partner-one-in=3 request-one-in=5"
        );
        let output = passes(2, &line, &[]);
        assert!(figure(&output, "completions") >= 150, "{output}");
    }
}

/// A spin whose count expires takes its processor off-line, and never the last.
#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn excessive_spins_put_processors_off_line() {
    let line = "exercise=work duration-ms=1000 locks=5 hold=20000 spin-limit=1 expire=offline spin=busy request-one-in=2";
    let output = passes(3, line, &[]);
    let off_line = figure(&output, "off-line");
    assert!((1..3).contains(&off_line), "{output}");
}

/// Block reads by both interfaces of virtio-mmio.
#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn reads_come_from_a_disk() {
    let disk = Path::new(env!("CARGO_TARGET_TMPDIR")).join("disk.raw");
    std::fs::write(&disk, vec![0u8; 1 << 20]).expect("a disk");
    let drive = format!("file={},format=raw,if=none,id=disk", disk.display());
    for legacy in ["true", "false"] {
        let legacy = format!("virtio-mmio.force-legacy={legacy}");
        let more = [
            "-global",
            &legacy,
            "-drive",
            &drive,
            "-device",
            "virtio-blk-device,drive=disk",
        ];
        let output = passes(
            2,
            "exercise=work duration-ms=0 jobs=100 reads=1 terminals=8",
            &more,
        );
        assert!(figure(&output, "reads") >= 100, "{output}");
    }
}

#[test]
#[ignore = "needs QEMU and the exerciser; make test runs it"]
fn mistakes_on_the_command_line_are_named() {
    assert!(run(1, "exercise=hostil", &[]).contains("there is no exercise `hostil`"));
    assert!(run(1, "exercise=ipi cuont=3", &[]).contains("unknown parameter `cuont`"));
    assert!(
        run(1, "exercise=work terminals=none", &[])
            .contains("terminals=none is not a whole number")
    );
}
