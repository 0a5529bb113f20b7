//! No translation is stale.

use super::common::root;
use super::told::event_of_vms;
use super::{COMPUTERS, GUEST_FILES, both, exercise, exercise_with, together};
use abi::system::TlbPurge;
use std::path::Path;

/// The same on the machine with the papers' hardware, every use of a translation checked.
fn checked(exercise_and_parameters: &str, changes: &[&str]) -> String {
    checked_with_vmids(14, exercise_and_parameters, changes)
}

/// The same where VMIDs have so many bits.
fn checked_with_vmids(bits: u32, exercise_and_parameters: &str, changes: &[&str]) -> String {
    let usual = std::fs::read_to_string(root().join("profiles/k3-class.toml")).unwrap();
    let profile = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("purge-mask-{bits}.toml"));
    let usual = format!("vmid_bits = {bits}\n{usual}");
    let more = "\n[extensions]\npurge_mask = true\npurge_check = true\n";
    std::fs::write(&profile, usual + more).unwrap();
    let more = [
        "--check-translations",
        "--profile",
        profile.to_str().expect("a path that is text"),
    ];
    let changes = both(exercise_and_parameters, changes);
    exercise_with("machine", "exercises.toml", 2, &changes, &more)
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn no_translation_is_stale() {
    no_translation_is_stale_with(0);
}

#[test]
#[ignore = "soak: minutes of QEMU; make soak runs it"]
fn soak_no_translation_is_stale() {
    for files in GUEST_FILES {
        no_translation_is_stale_with(files);
    }
}

fn no_translation_is_stale_with(files: u32) {
    let files = format!("guest-interrupt-files={files}");
    together("qemu", "translations", &[&files]);
}

/// Guests on shadow tables change their tables all the time, one of them in single pages, while their vCPUs move; and a hostile one tries
/// everything.
#[test]
#[ignore = "needs QEMU, the hypervisor and the exerciser; make test runs it"]
fn shadow_tables_are_right_and_confine() {
    shadow_tables_are_right(500);
}

#[test]
#[ignore = "soak: a minute of QEMU; make soak runs it"]
fn soak_shadow_tables_are_right_and_confine() {
    shadow_tables_are_right(2000);
}

fn shadow_tables_are_right(rounds: u32) {
    let shadow = [
        "vm.one.translation=\"shadow\"",
        "vm.two.translation=\"shadow\"",
        "vm.two.placement=\"paged\"",
    ];
    checked("translations rounds=200", &shadow);
    for on in COMPUTERS {
        together(on, &format!("translations rounds={rounds}"), &shadow);
        let hostile = [
            "vm.hostile.translation=\"shadow\"",
            "vm.victim.translation=\"shadow\"",
            "vm.victim.command-line=\"exercise=heartbeat duration-ms=3000\"",
        ];
        exercise(on, "hostile.toml", 2, &hostile.map(String::from));
    }
}

/// Guests that change their tables all the time, with more vCPUs than the harts have VMIDs, on a machine that holds each
/// translation that it uses against the tables. What differs is the number of VMID bits (none, few, as many as there can be) and
/// whether a purge is a fence or a new VMID.
/// Both guests have the same addresses. With a hypervisor that takes the bits for granted there were 2,503 stale uses, and 759.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn translations_stay_fresh_with_few_vmids() {
    translations_stay_fresh_with(&[(0, "fence"), (3, "new-vmid")]);
}

#[test]
#[ignore = "soak: a minute of checked translations; make soak runs it"]
fn soak_translations_with_any_vmids() {
    translations_stay_fresh_with(
        &[0, 3, 14]
            .map(|bits| [(bits, "fence"), (bits, "new-vmid")])
            .concat(),
    );
}

fn translations_stay_fresh_with(forms: &[(u32, &str)]) {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("profile.toml");
    let ideal = std::fs::read_to_string(root().join("profiles/ideal.toml")).unwrap();
    for (bits, purge) in forms {
        std::fs::write(&profile, format!("vmid_bits = {bits}\n{ideal}")).unwrap();
        let mut all: Vec<String> = ["harts=1", "time-slice=\"1 ms\""].map(String::from).into();
        all.push(format!("experiment.purge=\"{purge}\""));
        for (vm, placement) in [("one", "resident"), ("two", "paged")] {
            all.push(format!("vm.{vm}.vcpus=5"));
            all.push(format!("vm.{vm}.placement={placement:?}"));
            all.push(format!(
                "vm.{vm}.command-line=\"exercise=translations rounds=40\""
            ));
        }
        let more = [
            "--check-translations",
            "--profile",
            profile.to_str().unwrap(),
        ];
        exercise_with("machine", "exercises.toml", 2, &all, &more);
    }
}

/// The machine looks at every use of a translation itself; only private pages are remapped, since a guest that uses a shared one
/// before it has been told is wrong by itself. The methods that need the papers' hardware have it.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn no_method_keeps_a_stale_translation() {
    every_method_is_fresh(30);
}

#[test]
#[ignore = "soak: every method for minutes; make soak runs it"]
fn soak_no_method_keeps_a_stale_translation() {
    every_method_is_fresh(200);
}

fn every_method_is_fresh(rounds: u32) {
    for method in TlbPurge::ALL {
        let scheduling = match method {
            TlbPurge::Keep => [
                "scheduling=\"pinned\"",
                "experiment.migration=\"as-needed\"",
            ],
            _ => ["scheduling=\"floating\"", "experiment.migration=\"always\""],
        };
        let method = format!("tlb-purge=\"{}\"", method.name());
        let told = checked(
            &format!("translations rounds={rounds} remap=private sleep-one-in=20"),
            &[scheduling[0], scheduling[1], &method],
        );
        assert!(!told.contains("may be stale"), "{method}\n{told}");
    }
}

/// The same where a purge is a new VMID, with seven of them: each hart begins many rounds.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn renewed_vmids_revive_no_stale_translation() {
    for method in ["last-host", "one-shot"] {
        let told = checked_with_vmids(
            3,
            "translations rounds=200 remap=private sleep-one-in=20",
            &[
                "experiment.migration=\"always\"",
                "experiment.purge=\"new-vmid\"",
                &format!("tlb-purge=\"{method}\""),
            ],
        );
        assert!(!told.contains("may be stale"), "{method}\n{told}");
        // On both harts, beyond the vCPUs' first VMIDs and the first round.
        let renamed: u64 = event_of_vms(&told, "vmid-renewed").iter().sum();
        assert!(renamed > 2 * (7 + 4), "{method}: {renamed}\n{told}");
    }
}

/// Pages that all share are remapped, and the others are told by SBI RFENCE, while every vCPU changes its hart at each dispatch.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn sibling_fences_reach_left_translations() {
    for (form, method) in [
        ("precise", "one-shot"),
        ("precise", "last-host"),
        ("any-address", "one-shot"),
        ("any-vcpu", "one-shot"),
    ] {
        together(
            "machine",
            "translations rounds=400 method=sbi sleep-one-in=20",
            &[
                "experiment.migration=\"always\"",
                &format!("experiment.remote-fences=\"{form}\""),
                &format!("tlb-purge=\"{method}\""),
            ],
        );
    }
}
