//! Keys and words that were called something else, so that a file from before is told the new name.

use super::row::Scope;

/// A key that has another name or another place now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Renamed {
    /// Table in which the old key stood.
    pub scope: Scope,
    /// Its old name.
    pub old: &'static str,
    /// Path of the new key from that table.
    pub new: &'static str,
    /// Advice on the value; empty where the value stays.
    pub value: &'static str,
}

const fn renamed(scope: Scope, old: &'static str, new: &'static str) -> Renamed {
    Renamed {
        scope,
        old,
        new,
        value: "",
    }
}

/// Every key that was renamed or moved.
pub static RENAMED: [Renamed; 29] = [
    renamed(Scope::System, "guest-files", "guest-interrupt-files"),
    Renamed {
        value: "single is global, sharded is per-hart",
        ..renamed(Scope::System, "queue", "run-queue")
    },
    renamed(Scope::System, "translations", "tlb-purge"),
    renamed(Scope::System, "migration", "experiment.migration"),
    Renamed {
        value: "rename is new-vmid",
        ..renamed(Scope::System, "purge", "experiment.purge")
    },
    renamed(Scope::System, "remote-fences", "experiment.remote-fences"),
    renamed(Scope::System, "round", "experiment.round"),
    renamed(Scope::System, "affinity", "experiment.affinity"),
    renamed(
        Scope::System,
        "self-wait-budget",
        "experiment.self-wait-budget",
    ),
    Renamed {
        value: "0 is true, 1 is false",
        ..renamed(Scope::System, "relaxed-terms", "experiment.trap-waits")
    },
    renamed(Scope::System, "ple", "experiment.ple"),
    renamed(Scope::System, "ple-gap", "experiment.ple-gap"),
    renamed(Scope::System, "ple-window", "experiment.ple-window"),
    renamed(
        Scope::System,
        "ple-window-most",
        "experiment.ple-window-max",
    ),
    renamed(
        Scope::System,
        "host-interrupt-cost",
        "experiment.host-interrupt-cost",
    ),
    renamed(
        Scope::System,
        "futile-pass-cost",
        "experiment.futile-pass-cost",
    ),
    renamed(Scope::System, "dispatch-cost", "experiment.dispatch-cost"),
    renamed(
        Scope::System,
        "mode-change-cost",
        "experiment.mode-change-cost",
    ),
    Renamed {
        value: "0 is true, 1 is false",
        ..renamed(Scope::Experiment, "relaxed-terms", "trap-waits")
    },
    renamed(Scope::Experiment, "ple-window-most", "ple-window-max"),
    renamed(Scope::Vm, "ple", "experiment.ple"),
    renamed(Scope::Vm, "ple-gap", "experiment.ple-gap"),
    renamed(Scope::Vm, "ple-window", "experiment.ple-window"),
    renamed(Scope::Vm, "ple-window-most", "experiment.ple-window-max"),
    renamed(Scope::VmExperiment, "ple-window-most", "ple-window-max"),
    renamed(Scope::Disk, "keep", "persistent"),
    renamed(Scope::SharedDisk, "keep", "persistent"),
    renamed(Scope::Slice, "first", "offset"),
    renamed(Scope::Terminals, "think", "think-time"),
];

/// Words of a key's value that were called something else: key, old word, new word.
pub static RENAMED_WORDS: [(&str, &str, &str); 4] = [
    ("run-queue", "single", "global"),
    ("run-queue", "sharded", "per-hart"),
    ("scheduling", "fixed", "pinned"),
    ("purge", "rename", "new-vmid"),
];
