//! System files good and bad.

use super::*;
use abi::keys;
use abi::system::{Allocation, OnFailure, SpinMethod, WaitMethod};
use std::path::Path;

mod devices;
mod firmware;
mod fits;
mod parameters;
mod slices;
mod switches;

const GOOD: &str = r#"
harts = 4
memory = "2 GiB"
guest-interrupt-files = 3
time-slice = "2 ms"
spin = "rslp"
wait = "host-interrupt"
time-limit = "2 min"
console = "web"

[vm.web]
vcpus = 4
memory = "512 MiB"
share = 30
kernel = "image:debian/kernel"
initrd = "image:debian/initrd"
command-line = "console=ttyS0"
disks = [{ file = "image:debian/disk" }]
network = ["lan"]

[vm.control]
vcpus = 2
memory = "256 MiB"
dedicated-harts = [2, 3]
kernel = "image:debian/kernel"
network = ["lan"]
rng = true
autostart = false
on-failure = "restart"
"#;

fn read(text: &str, changes: &[&str]) -> Result<System, Mistakes> {
    let changes: Vec<String> = changes.iter().map(|change| String::from(*change)).collect();
    System::read(&Document::new(
        Path::new("a.toml"),
        String::from(text),
        &changes,
    )?)
}

/// The mistakes as text; the test fails if there are none.
fn mistakes(text: &str, changes: &[&str]) -> Vec<String> {
    let mistakes = read(text, changes).expect_err("the system should have mistakes");
    mistakes
        .problems()
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// One mistake, which must name all these words.
fn mistake(text: &str, changes: &[&str], words: &[&str]) {
    let found = mistakes(text, changes);
    let [mistake] = &found[..] else {
        panic!("{changes:?}: {found:#?}")
    };
    for word in words {
        assert!(mistake.contains(word), "{mistake:?} lacks {word:?}");
    }
}

#[test]
fn a_system_is_read_whole() {
    let system = read(GOOD, &[]).unwrap();
    assert_eq!(
        (system.harts.value, system.memory.value),
        (4, Bytes(2 << 30))
    );
    assert_eq!(system.get(keys::GUEST_INTERRUPT_FILES), Some(3));
    assert_eq!(system.get(keys::TIME_SLICE), Some(2000));
    assert_eq!(system.get(keys::SPIN), SpinMethod::Rslp);
    assert_eq!(system.get(keys::WAIT), WaitMethod::HostInterrupt);
    assert_eq!(system.time_limit(), Some(Duration(120_000_000)));
    assert_eq!(system.console.as_deref(), Some("web"));
    assert_eq!(
        read(GOOD, &["console=partita"]).unwrap().console.as_deref(),
        Some("partita")
    );
    mistake(
        GOOD,
        &["console=mail"],
        &["console", "mail", "name one of the VMs"],
    );
    let [web, control] = &system.vms[..] else {
        panic!("{} VMs", system.vms.len())
    };
    assert_eq!(
        (web.name.as_str(), control.name.as_str()),
        ("web", "control")
    );
    assert_eq!(web.allocation.value, Allocation::Shared { share: 30 });
    assert_eq!(
        web.kernel.value,
        FileName::Built(String::from("debian/kernel"))
    );
    assert!(web.get(keys::AUTOSTART) && !control.get(keys::AUTOSTART));
    let Allocation::Dedicated { harts } = control.allocation.value else {
        panic!("shared")
    };
    assert_eq!(harts.mask(), 0b1100);
    assert_eq!(control.get(keys::ON_FAILURE), OnFailure::Restart);
    assert_eq!((verify::devices(web), verify::devices(control)), (2, 2));
}

#[test]
fn changes_of_the_command_line_win() {
    let changes = [
        "vm.web.share=70",
        "time-slice=1 ms",
        "vm.web.autostart=false",
        "harts = 8",
    ];
    let system = read(GOOD, &changes).unwrap();
    assert_eq!(
        system.vms[0].allocation.value,
        Allocation::Shared { share: 70 }
    );
    assert_eq!(system.get(keys::TIME_SLICE), Some(1000));
    assert_eq!(system.harts.value, 8);
    assert!(!system.vms[0].get(keys::AUTOSTART));
}

#[test]
fn mistakes_name_place_key_value_and_remedy() {
    mistake(
        GOOD,
        &["guest-interrupt-files=64"],
        &[
            "--set guest-interrupt-files=64",
            "guest-interrupt-files = 64",
            "0 to 63",
        ],
    );
    mistake(
        GOOD,
        &["vm.web.memory=100 KiB"],
        &["vm.web.memory", "100 KiB", "2 MiB"],
    );
    mistake(
        GOOD,
        &["vm.web.vcpus=true"],
        &["vm.web.vcpus = true", "whole number"],
    );
    mistake(
        GOOD,
        &["vm.web.colour=red"],
        &["vm.web.colour", "no such key", "command-line"],
    );
    mistake(
        GOOD,
        &["vm.web.comand-line=x"],
        &["did you mean command-line?"],
    );
    mistake(
        GOOD,
        &["vm.web.placement=scattered"],
        &["vm.web.placement", "scattered", "real, resident, paged"],
    );
    mistake(
        GOOD,
        &["vm.web.placement=paged"],
        &["vm.web.placement", "single pages", "io = \"general\""],
    );
    mistake(
        GOOD,
        &["vm.web.balloon=true"],
        &["vm.web.balloon", "one piece", "placement = \"paged\""],
    );
    mistake(
        GOOD,
        &["vm.web.network=[{ network = \"lan\", io = \"quick\" }]"],
        &["vm.web.network[0].io", "quick", "direct, general, fast"],
    );
    mistake(
        GOOD,
        &["vm.web.io=quick"],
        &["vm.web.io", "quick", "direct, general, fast"],
    );
    mistake(
        GOOD,
        &[
            "vm.web.io=general",
            "vm.web.terminals={ count = 1, transactions = 1, think-time = \"1 ms\" }",
        ],
        &["vm.web.io", "general", "leave away the terminals"],
    );
    mistake(GOOD, &["vm.web.dedicated-harts=[0, 1]"], &["not both"]);
    mistake(
        GOOD,
        &["experiment.migration=often"],
        &["experiment.migration", "often", "as-needed, always"],
    );
    mistake(
        GOOD,
        &["vm.web.kernel=none/such"],
        &["vm.web.kernel", "there is no file", "image:"],
    );
    mistake(
        GOOD,
        &["vm.web.initrd=image:other"],
        &["image:debian/initrd"],
    );
    mistake(
        GOOD,
        &["vm.web.disks=[{ file = \"image:debian/disk\", path = \"x\" }]"],
        &["vm.web.disks[0].path"],
    );
}

#[test]
fn every_mistake_is_reported_in_order() {
    let text = "harts = 0\nmemory = 5\ncolour = 1\n[vm.partita]\nshare = 5\n[vm.b]\nvcpus = 99\n\
                memory = \"64 MiB\"\ndedicated-harts = [1, 1]\nkernel = \"\"\n";
    let found = mistakes(text, &[]);
    let keys = [
        "a.toml:1: harts = 0",
        "a.toml:2: memory = 5",
        "a.toml:3: colour",
        "a.toml:4: vm.partita: this is no name",
        "a.toml:4: vm.partita.vcpus: it must be given",
        "a.toml:4: vm.partita.memory: it must be given",
        "a.toml:4: vm.partita.kernel: the VM has neither a kernel nor a firmware",
        "a.toml:7: vm.b.vcpus = 99",
        "a.toml:9: vm.b.dedicated-harts = 1: hart 1 is listed twice",
        "a.toml:10: vm.b.kernel = \"\"",
    ];
    assert_eq!(found.len(), keys.len(), "{found:#?}");
    for (found, key) in found.iter().zip(keys) {
        assert!(
            found.starts_with(key),
            "{found:?} does not begin with {key:?}"
        );
    }
}

#[test]
fn huge_numbers_are_told_their_limits() {
    mistake(
        GOOD,
        &["harts=99999999999999999999"],
        &[
            "harts = 99999999999999999999",
            "out of range",
            "use 1 to 64",
        ],
    );
    mistake(
        GOOD,
        &["harts=4.5"],
        &["a whole number, 1 to 64", "harts = 4"],
    );
}

#[test]
fn renamed_keys_are_refused_by_new_name() {
    for (change, words) in [
        (
            "guest-files=3",
            &[
                "guest-interrupt-files now",
                "write it as guest-interrupt-files",
            ][..],
        ),
        ("queue=sharded", &["run-queue now", "sharded is per-hart"]),
        (
            "run-queue=sharded",
            &["write it as run-queue = \"per-hart\""],
        ),
        (
            "scheduling=fixed",
            &["fixed has another name", "scheduling = \"pinned\""],
        ),
        (
            "relaxed-terms=0",
            &[
                "experiment.trap-waits now",
                "below [experiment]",
                "0 is true, 1 is false",
            ],
        ),
        ("round=8", &["round = 8", "--set experiment.round=..."]),
        ("experiment.relaxed-terms=0", &["experiment.trap-waits now"]),
        ("vm.web.ple-window=0", &["vm.web.experiment.ple-window now"]),
        (
            "vm.web.disks=[{ file = \"image:debian/disk\", keep = true }]",
            &["vm.web.disks[0].persistent now"],
        ),
    ] {
        let words = [&["--set ", change.split_once('=').unwrap().0][..], words].concat();
        mistake(GOOD, &[change], &words[1..]);
    }
    let text = format!("affinity = 0\n{GOOD}");
    mistake(&text, &[], &["a.toml:1: affinity", "below [experiment]"]);
}

#[test]
fn invalid_toml_is_reported_with_its_line() {
    let found = mistakes("harts = 4\nmemory = = 5\n", &[]);
    assert!(
        found
            .iter()
            .any(|mistake| mistake.starts_with("a.toml:2: ")),
        "{found:#?}"
    );
    mistake(GOOD, &["harts"], &["--set harts", "KEY=VALUE"]);
    mistake(GOOD, &["harts.x=1"], &["--set harts.x=1", "not a table"]);
}

#[test]
fn duplicate_tables_are_one_mistake() {
    let vm =
        "[vm.web]\nvcpus = 4\nmemory = \"512 MiB\"\nshare = 30\nkernel = \"image:debian/kernel\"\n";
    let text = format!("harts = 4\nmemory = \"2 GiB\"\n{vm}{vm}");
    let found = mistakes(&text, &[]);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("duplicate"), "{found:?}");
    // Two tables that are there twice are two.
    let other = vm.replace("web", "db");
    let found = mistakes(&format!("{text}{other}{other}"), &[]);
    assert_eq!(found.len(), 2, "{found:#?}");
    // Elsewhere each mistake stands.
    let found = mistakes("harts = \nmemory = \n", &[]);
    assert!(found.len() >= 2, "{found:#?}");
}

#[test]
fn messages_name_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let kernel = format!("vm.web.kernel={path}");
    mistake(GOOD, &[&kernel], &["is a folder", "name a file in it"]);
    mistake(
        GOOD,
        &["vm.web.kernel=/dev/null"],
        &["neither a file nor a disk"],
    );
    mistake(
        GOOD,
        &["vm.web.kernel=\"a\\u0000b\""],
        &["vm.web.kernel", "zero byte"],
    );
    mistake(GOOD, &["memory=much"], &["\"much\" is no size", "2 GiB"]);
    mistake(GOOD, &["time-slice=5"], &["time-slice"]);
    mistake(GOOD, &["time-slice=\"5\""], &["\"5\" is no time", "2 ms"]);
    // A control character is shown and not obeyed.
    let found = mistakes(
        &GOOD
            .replace("[vm.web]", "[vm.\"we\\u0000b\"]")
            .replace("console = \"web\"\n", ""),
        &[],
    );
    assert!(
        found.iter().all(|mistake| !mistake.contains('\0')),
        "{found:?}"
    );
    assert!(found[0].contains("\\u{0}"), "{found:?}");
}

#[test]
fn terminals_are_read_with_their_users() {
    let with = |terminals: &str| vec![format!("vm.web.terminals={terminals}")];
    let change = with(r#"{ count = 3, transactions = 20, think-time = "200 ms" }"#);
    let system = read(GOOD, &[&change[0]]).unwrap();
    let habits = system.vm("web").and_then(|vm| vm.terminals).unwrap();
    assert_eq!((habits.count, habits.transactions), (3, 20));
    assert_eq!(habits.think, std::time::Duration::from_millis(200));
    let cases = [
        ("4", "a table"),
        (
            r#"{ count = 8, transactions = 20, think-time = "1 s" }"#,
            "1 to 7",
        ),
        (
            r#"{ count = 1, transactions = 20, think-time = "0 s" }"#,
            "out of range",
        ),
        (r#"{ count = 1, think-time = "1 s" }"#, "it must be given"),
        (
            r#"{ count = 1, transactions = 1, think-time = "1 s", users = 3 }"#,
            "no such key",
        ),
    ];
    for (terminals, word) in cases {
        let change = with(terminals);
        mistake(GOOD, &[&change[0]], &["vm.web.terminals", word]);
    }
}
