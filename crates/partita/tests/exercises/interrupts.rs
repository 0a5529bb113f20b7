//! Interrupts are neither lost nor doubled, and come to nobody else.

use super::common::hypervisor;
use super::told::{dispatches, measure, migrations};
use super::{COMPUTERS, GUEST_FILES, MAX_GUEST_FILES, SPINS, exercise, together};

const WAITS: [&str; 5] = [
    "host-interrupt",
    "host-interrupt-all",
    "active-wait-all",
    "self-wait",
    "self-wait-all",
];

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn interrupts_are_neither_lost_nor_doubled() {
    interrupts_are_counted("machine", MAX_GUEST_FILES, "host-interrupt");
    interrupts_are_counted("machine", 0, "self-wait");
    interrupts_are_counted("qemu", 3, "self-wait");
}

#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_interrupts_arrive_exactly_once() {
    for files in [MAX_GUEST_FILES, 3, 0] {
        for wait in ["host-interrupt", "self-wait"] {
            interrupts_are_counted("machine", files, wait);
        }
    }
    for files in GUEST_FILES {
        for wait in ["host-interrupt", "self-wait"] {
            interrupts_are_counted("qemu", files, wait);
        }
    }
    for wait in ["host-interrupt", "self-wait"] {
        interrupts_on_the_move("qemu", wait, "wapd", GUEST_FILES[0], 20);
    }
}

fn interrupts_are_counted(on: &str, files: u32, wait: &str) {
    let files = format!("guest-interrupt-files={files}");
    let wait = format!("wait=\"{wait}\"");
    together(on, "ipi", &[&files, &wait]);
    // On the machine each vCPU's deadlines are the same every time, and so many that several fall together.
    let timer = match on {
        "machine" => "timer count=150",
        _ => "timer",
    };
    together(on, timer, &[&files, &wait]);
}

/// Seven vCPUs on three harts, each dispatch on another hart than the one before, with enough interrupt files for all and
/// with too few. Each rule for waits meets one for spins; in the soak each meets all.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn interrupts_arrive_once_under_any_policy() {
    for (index, wait) in WAITS.into_iter().enumerate() {
        let spin = SPINS[index % SPINS.len()];
        interrupts_on_the_move("machine", wait, spin, GUEST_FILES[index % 2], 20);
    }
    interrupts_on_the_move("qemu", "self-wait", "wapd", GUEST_FILES[0], 20);
}

#[test]
#[ignore = "soak: each policy for waits with each for spins; make soak runs it"]
fn soak_interrupts_arrive_once_while_vcpus_move() {
    for wait in WAITS {
        for (index, spin) in SPINS.into_iter().enumerate() {
            interrupts_on_the_move("machine", wait, spin, GUEST_FILES[index % 2], 40);
        }
    }
}

/// Counts interrupts between all pairs of vCPUs while every dispatch is on another hart.
fn interrupts_on_the_move(on: &str, wait: &str, spin: &str, files: u32, count: u32) {
    const VCPUS: u64 = 7;
    let changes = [
        "harts=3",
        "vm.one.vcpus=3",
        "vm.two.vcpus=4",
        "experiment.migration=\"always\"",
        &format!("wait=\"{wait}\""),
        &format!("spin=\"{spin}\""),
        &format!("guest-interrupt-files={files}"),
    ];
    let told = together(on, &format!("ipi count={count}"), &changes);
    let (dispatches, migrations) = (dispatches(&told), migrations(&told));
    assert!(dispatches > 100, "{on}, {wait}, {spin}\n{told}");
    // The first dispatch after a start is no move: the VM starts its first vCPU, and this one the others.
    assert!(
        migrations + VCPUS >= dispatches,
        "{on}, {wait}, {spin}: {migrations} of {dispatches} dispatches moved\n{told}"
    );
}

/// Guests make every identity above those they were told of pending and enabled in their interrupt files, and take none, while
/// every dispatch is on another hart. A file that its vCPU has left must not go on interrupting the hart for them. Without that
/// there were 250 exits for each move.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn stale_interrupt_files_fall_silent() {
    for (wait, for_waits) in [("self-wait", 0), ("host-interrupt", 1)] {
        let changes = [
            "harts=3",
            "vm.one.vcpus=3",
            "vm.two.vcpus=4",
            "experiment.migration=\"always\"",
            "guest-interrupt-files=7",
            &format!("wait=\"{wait}\""),
        ];
        let told = together("machine", "hostile test=files storm-ms=100", &changes);
        let exits = measure(&told, "exits-per-second.guest-external") * measure(&told, "uptime");
        // Under host interrupts, the end of each wait is one more.
        let most = (migrations(&told) + for_waits * dispatches(&told)) as f64;
        assert!(most > 1000.0 && exits <= most, "{exits} of {most}\n{told}");
    }
}

/// A vCPU that suspends itself or waits while an enabled interrupt is pending goes on at once, whichever interrupt it is.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn nobody_sleeps_over_a_pending_interrupt() {
    for on in COMPUTERS {
        for files in [7, 0] {
            let files = format!("guest-interrupt-files={files}");
            together(on, "hostile test=suspend", &[&files]);
        }
    }
}

/// A VM has a hart of its own, the first, beside one whose disk interrupts go through the hypervisor: these come to the other
/// hart alone.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn dedicated_harts_take_no_foreign_interrupts() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let exerciser = hypervisor().with_file_name("exerciser");
    std::fs::write(folder.join("blocks"), vec![0; 4 << 20]).unwrap();
    let vm = |name: &str, harts: &str, exercise: &str, disks: &str| {
        format!(
            "[vm.{name}]\nvcpus = 1\nmemory = \"64 MiB\"\n{harts}\nkernel = {exerciser:?}\n\
             command-line = \"exercise={exercise}\"\n{disks}\n"
        )
    };
    let system = [
        "harts = 2\nmemory = \"2 GiB\"\nguest-interrupt-files = 0\ntime-limit = \"5 min\"\n",
        &vm(
            "own",
            "dedicated-harts = [0]",
            "heartbeat duration-ms=400",
            "",
        ),
        &vm(
            "shares",
            "share = 50",
            "work terminals=4 steps=1 reads=1 sectors=8 compute=1000 duration-ms=200",
            "disks = [{ file = \"blocks\" }]",
        ),
    ];
    let file = folder.join("own-and-shared.toml");
    std::fs::write(&file, system.concat()).unwrap();
    let told = exercise("machine", file.to_str().unwrap(), 2, &[]);
    let mut rows = told.lines().map(str::split_whitespace);
    let mut row = rows
        .find(|row| row.clone().next() == Some("host-external"))
        .unwrap_or_else(|| panic!("no interrupt of the disk\n{told}"));
    let [own, shares] = [1, 0].map(|skip| row.nth(skip).unwrap().parse::<f64>().unwrap());
    assert!(own == 0.0 && shares > 1000.0, "{own}, {shares}\n{told}");
}
