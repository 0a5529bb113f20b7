//! System files good and bad.

use super::*;
use abi::system::{Costs, PauseLoops};
use std::path::Path;

mod slices;
mod switches;

const GOOD: &str = r#"
harts = 4
memory = "2 GiB"
guest-files = 3
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

/// What a check lets through must not fail in the hypervisor: both know one list of limits.
#[test]
fn six_vms_of_sixteen_vcpus_are_too_many() {
    let vm = |number: u32| {
        format!(
            "[vm.v{number}]\nvcpus = 16\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"image:debian/kernel\"\n"
        )
    };
    let system = |vms| {
        let tables: String = (0..vms).map(vm).collect();
        format!("harts = 4\nmemory = \"2 GiB\"\n{tables}")
    };
    assert_eq!(read(&system(4), &[]).unwrap().vms.len(), 4);
    mistake(&system(6), &[], &["vm.v4.vcpus", "80 vCPUs", "64 at most"]);
}

#[test]
fn a_system_is_read_whole() {
    let system = read(GOOD, &[]).unwrap();
    assert_eq!(
        (system.harts.value, system.memory.value),
        (4, Bytes(2 << 30))
    );
    assert_eq!(
        (system.guest_files, system.time_slice),
        (Some(3), Some(Duration(2000)))
    );
    assert_eq!(
        (system.spin, system.wait),
        (SpinMethod::Rslp, WaitMethod::HostInterrupt)
    );
    assert_eq!(system.time_limit, Some(Duration(120_000_000)));
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
    assert_eq!((web.autostart, control.autostart), (true, false));
    let Allocation::Dedicated { harts } = control.allocation.value else {
        panic!("shared")
    };
    assert_eq!(harts.mask(), 0b1100);
    assert_eq!(control.on_failure, OnFailure::Restart);
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
    assert_eq!(
        (system.time_slice, system.harts.value),
        (Some(Duration(1000)), 8)
    );
    assert!(!system.vms[0].autostart);
}

#[test]
fn mistakes_name_place_key_value_and_remedy() {
    mistake(
        GOOD,
        &["guest-files=64"],
        &["--set guest-files=64", "guest-files = 64", "0 to 63"],
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
            "vm.web.terminals={ count = 1, transactions = 1, think = \"1 ms\" }",
        ],
        &["vm.web.io", "general", "leave away the terminals"],
    );
    mistake(GOOD, &["vm.web.dedicated-harts=[0, 1]"], &["not both"]);
    mistake(
        GOOD,
        &["migration=often"],
        &["migration", "often", "as-needed, always"],
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
fn parameters_are_read_whatever_the_policies_are() {
    assert_eq!(read(GOOD, &[]).unwrap().parameters, Parameters::default());
    let changes = [
        "affinity=0",
        "self-wait-budget = 1024",
        "reservation-limit=20 ms",
        "round=2",
        "relaxed-terms=0",
        "ple-gap=64",
        "ple-window=0",
        "ple-window-most=4294967295",
        "host-interrupt-cost=1000",
        "futile-pass-cost=200",
        "dispatch-cost=1000000",
        "mode-change-cost=0",
    ];
    for spin in SpinMethod::ALL {
        let spin = format!("spin={}", spin.name());
        let changes = [&changes[..], &[&spin]].concat();
        let expected = Parameters {
            affinity: Some(0),
            self_wait_budget: Some(1024),
            reservation_limit_us: Some(20_000),
            round: Some(2),
            relaxed_terms: Some(0),
            pause_loops: PauseLoops {
                gap: Some(64),
                window: Some(0),
                window_most: Some(u32::MAX),
            },
            costs: Costs {
                host_interrupt: Some(1000),
                futile_pass: Some(200),
                dispatch: Some(1_000_000),
                mode_change: Some(0),
            },
        };
        assert_eq!(read(GOOD, &changes).unwrap().parameters, expected);
    }
    // As long as a slice, and a second.
    for limit in ["2 ms", "1 s"] {
        read(GOOD, &[&format!("reservation-limit={limit}")]).unwrap();
    }
}

#[test]
fn parameters_out_of_their_limits_are_named_with_them() {
    let cases: [(&str, &str, &[&str]); 17] = [
        ("time-slice", "999 us", &["1 ms to 10 ms"]),
        ("time-slice", "11 ms", &["1 ms to 10 ms"]),
        ("affinity", "65", &["0 to 64"]),
        ("affinity", "-1", &["0 to 64"]),
        ("affinity", "true", &["whole number"]),
        ("self-wait-budget", "0", &["1 to 1024"]),
        ("self-wait-budget", "1025", &["1 to 1024"]),
        ("round", "1", &["2 to 1024"]),
        ("round", "4294967298", &["2 to 1024"]),
        ("relaxed-terms", "2", &["0 to 1"]),
        ("dispatch-cost", "1000001", &["0 to 1000000"]),
        ("mode-change-cost", "-1", &["0 to 1000000"]),
        ("reservation-limit", "999 us", &["1 ms to 1 s"]),
        (
            "reservation-limit",
            "1 ms",
            &["below the time slice, 2 ms", "2 ms to 1 s"],
        ),
        ("reservation-limit", "2 s", &["1 ms to 1 s"]),
        ("reservation-limit", "100", &["a text"]),
        ("reservation-limit", "a while", &["unit"]),
    ];
    for (key, value, words) in cases {
        let change = format!("{key}={value}");
        let shown = format!("{key} = {value}");
        let words = [&[&change[..], &shown], words].concat();
        mistake(GOOD, &[&change], &words);
    }
    let text = format!("round = 1\n{GOOD}");
    mistake(&text, &[], &["a.toml:1: round = 1", "use 2 to 1024"]);
    mistake(GOOD, &["afinity=3"], &["did you mean affinity?"]);
    mistake(
        GOOD,
        &["vm.web.affinity=3"],
        &["vm.web.affinity", "no such key"],
    );
}

#[test]
fn what_does_not_fit_is_found() {
    let line = format!(
        "a.toml:{}",
        1 + GOOD[..GOOD.find("dedicated").unwrap()].lines().count()
    );
    let text = GOOD.replace("[2, 3]", "[2, 9]");
    mistake(
        &text,
        &[],
        &[
            &line,
            "vm.control.dedicated-harts = [2, 9]",
            "hart 9",
            "0 to 3",
        ],
    );
    mistake(
        GOOD,
        &["vm.control.dedicated-harts=[3]"],
        &["1 harts for 2 vCPUs"],
    );
    mistake(
        GOOD,
        &["harts=2", "vm.control.dedicated-harts=[0, 1]"],
        &["every hart is dedicated"],
    );
    read(GOOD, &["migration=always"]).unwrap();
    mistake(
        GOOD,
        &["migration=always", "scheduling=fixed"],
        &["migration=always", "scheduling is fixed"],
    );
    mistake(
        GOOD,
        &["translations=keep"],
        &["translations=keep", "go to other harts", "one-shot"],
    );
    read(GOOD, &["translations=keep", "scheduling=fixed"]).unwrap();
    read(GOOD, &["translations=one-shot"]).unwrap();
    read(GOOD, &["purge=rename", "remote-fences=any-vcpu"]).unwrap();
    // A VM says it otherwise than its system.
    let fixed = "vm.web.scheduling=fixed";
    read(GOOD, &["translations=keep", fixed]).unwrap();
    let floats = "vm.web.scheduling=floating";
    mistake(
        GOOD,
        &["translations=keep", "scheduling=fixed", floats],
        &[floats, "go to other harts", "one-shot"],
    );
    mistake(
        GOOD,
        &["migration=always", fixed],
        &["migration=always", "scheduling is fixed"],
    );
    mistake(
        GOOD,
        &["vm.control.scheduling=fixed"],
        &["vm.control.scheduling=fixed", "harts of its own", "leave"],
    );
    mistake(
        GOOD,
        &[
            "harts=3",
            "vm.control.dedicated-harts=[1, 2]",
            "migration=always",
        ],
        &["migration=always", "1 of the harts is shared", "share two"],
    );
    mistake(
        GOOD,
        &["memory=768 MiB"],
        &["memory = 768 MiB", "768 MiB do not fit", "for 512 MiB"],
    );
    let cards = "vm.control.network=[\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]";
    mistake(GOOD, &[cards], &["9 devices", "8 slots"]);
    let twice = "vm.control.disks=[{ file = \"image:debian/disk\", slot = 1 }]";
    let text = GOOD.replace(
        "{ file = \"image:debian/disk\" }",
        "{ file = \"image:debian/disk\", slot = 1 }",
    );
    mistake(
        &text,
        &[twice],
        &["vm.control.disks[0].slot = 1", "vm.web.disks[0]"],
    );
}

#[test]
fn a_disk_that_keeps_belongs_to_one_vm() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let name = file.path().to_str().unwrap();
    let kept = format!("vm.web.disks=[{{ file = {name:?}, keep = true }}]");
    let other = format!("vm.control.disks=[{{ file = {name:?} }}]");
    read(GOOD, &[&kept]).unwrap();
    mistake(
        GOOD,
        &[&kept, &other],
        &["vm.control.disks[0].file", "vm.web.disks[0]"],
    );
    mistake(
        GOOD,
        &["vm.web.disks=[{ file = \"image:debian/disk\", keep = true }]"],
        &["vm.web.disks[0].file", "cache"],
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
        "a.toml:4: vm.partita.kernel: it must be given",
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
fn text_that_is_no_toml_is_reported_with_its_line() {
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
fn a_table_that_is_there_twice_is_one_mistake() {
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
    mistake(
        GOOD,
        &["memory=much"],
        &["\"much\" does not say how much memory", "2 GiB"],
    );
    mistake(GOOD, &["time-slice=5"], &["time-slice"]);
    mistake(
        GOOD,
        &["time-slice=\"5\""],
        &["\"5\" does not say how long", "5 ms"],
    );
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
fn terminals_are_read_with_what_their_users_do() {
    let with = |terminals: &str| vec![format!("vm.web.terminals={terminals}")];
    let change = with(r#"{ count = 3, transactions = 20, think = "200 ms" }"#);
    let system = read(GOOD, &[&change[0]]).unwrap();
    let habits = system.vm("web").and_then(|vm| vm.terminals).unwrap();
    assert_eq!((habits.count, habits.transactions), (3, 20));
    assert_eq!(habits.think, std::time::Duration::from_millis(200));
    let cases = [
        ("4", "a table"),
        (
            r#"{ count = 8, transactions = 20, think = "1 s" }"#,
            "1 to 7",
        ),
        (
            r#"{ count = 1, transactions = 20, think = "0 s" }"#,
            "out of range",
        ),
        (r#"{ count = 1, think = "1 s" }"#, "it must be given"),
        (
            r#"{ count = 1, transactions = 1, think = "1 s", users = 3 }"#,
            "no such key",
        ),
    ];
    for (terminals, word) in cases {
        let change = with(terminals);
        mistake(GOOD, &[&change[0]], &["vm.web.terminals", word]);
    }
}
