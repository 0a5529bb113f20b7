//! A case: a system, what its guests do, and what its operator says when.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Name of the VM that is judged: it does nothing hostile, and nobody may reach it.
pub const WITNESS: &str = "witness";
/// File of the shared disk, beside the system file.
pub const SHARED_DISK: &str = "shared.img";
/// Bytes of each slice of the shared disk; a VM's own disk is as long.
pub const SLICE_BYTES: u64 = 256 << 10;
/// MiB of the computer beside the VMs: the hypervisor, the firmware and the system image.
const HOST_MIB: u64 = 64;

/// Exercises that come to an end by themselves, whatever seed they have.
const ENDING: [&str; 7] = [
    "descriptors",
    "free-pages",
    "ipi",
    "state",
    "storm",
    "timer",
    "translations",
];

/// Access of a guest to its disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestDisk {
    /// A slice of the disk that all share.
    Slice,
    /// A disk of the VM's own, each request of which the hypervisor checks.
    General,
    /// The same with less work for simple requests.
    Fast,
}

/// Program of a guest: an exercise with its options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name of the exercise.
    pub exercise: String,
    /// Its options.
    pub options: BTreeMap<String, String>,
}

impl Program {
    /// The program of an exercise with these options.
    pub fn new(exercise: &str, options: &[(&str, String)]) -> Self {
        let options = options.iter();
        Self {
            exercise: String::from(exercise),
            options: options
                .map(|(name, value)| (String::from(*name), value.clone()))
                .collect(),
        }
    }

    /// The guest's command line.
    pub fn command_line(&self) -> String {
        let mut line = format!("exercise={}", self.exercise);
        for (name, value) in &self.options {
            let _ = write!(line, " {name}={value}");
        }
        line
    }
}

/// A VM of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guest {
    /// Its name.
    pub name: String,
    /// Virtual CPUs.
    pub vcpus: u64,
    /// Memory in MiB.
    pub memory: u64,
    /// Weight of the VM.
    pub share: u64,
    /// Further keys of the VM, each with its TOML value.
    pub settings: BTreeMap<String, String>,
    /// Its disk.
    pub disk: Option<GuestDisk>,
    /// Its program.
    pub program: Program,
}

impl Guest {
    /// Takes the VM's disk away. What else the VM has is then mediated.
    pub fn drop_disk(&mut self) {
        if self.disk.take().is_none() {
            return;
        }
        self.program.options.remove("disk-key");
        let io = String::from("\"general\"");
        self.settings.entry(String::from("io")).or_insert(io);
    }
}

/// A command of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// When its first key is typed, in microseconds of machine time since power-on.
    pub at_us: u64,
    /// The line.
    pub line: String,
}

/// Faults of the disks that the machine injects: of a million requests each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskFaults {
    /// Requests that fail.
    pub errors: u32,
    /// Reads that break off half way and fail.
    pub short: u32,
    /// Interrupts that never come.
    pub lost: u32,
    /// Interrupts that come late.
    pub late: u32,
    /// How late, in microseconds.
    pub late_us: u64,
}

impl DiskFaults {
    /// Tests whether a guest may get an error from a disk, or wait for an answer without an end. A late answer is right, and comes.
    pub const fn cost_answers(&self) -> bool {
        self.errors > 0 || self.short > 0 || self.lost > 0
    }
}

/// A system with all that happens in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Seed of the farm.
    pub seed: u64,
    /// Number among the systems of the seed.
    pub number: u64,
    /// Harts of the computer.
    pub harts: u64,
    /// Guest interrupt files of each hart.
    pub guest_files: u64,
    /// Profile of the machine; without one every instruction takes a cycle.
    pub profile: Option<String>,
    /// Seed of the machine's devices.
    pub machine_seed: u64,
    /// Checks each translation that a hart uses against the tables.
    pub check_translations: bool,
    /// Faults of the disks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<DiskFaults>,
    /// Further keys of the system, each with its TOML value.
    pub settings: BTreeMap<String, String>,
    /// Keys of the system's table `experiment`.
    pub experiment: BTreeMap<String, String>,
    /// The VMs, the witness first.
    pub vms: Vec<Guest>,
    /// The operator's commands, the earliest first.
    pub commands: Vec<Command>,
    /// Machine time in microseconds after which the operator stops every VM.
    pub end_us: u64,
}

impl Case {
    /// The VMs that are hostile.
    pub fn hostile(&self) -> impl Iterator<Item = &Guest> {
        self.vms.iter().filter(|vm| vm.name != WITNESS)
    }

    /// Hostile VMs whose guests must come to a verdict: their exercise does so much and no more, nothing in it waits for ever by its own doing, no
    /// disk fails, and neither the operator nor a setting starts or stops the VM.
    pub fn must_end(&self) -> impl Iterator<Item = &str> {
        let guests = self.hostile().filter(|_| !self.has_failing_disks());
        let named = |vm: &Guest| {
            let mut commands = self.commands.iter();
            commands.any(|command| command.line.split(' ').any(|word| word == vm.name))
        };
        let is_let_alone = move |vm: &&Guest| {
            let settings = ["on-failure", "fault-limit"];
            !named(vm) && !settings.iter().any(|key| vm.settings.contains_key(*key))
        };
        let ends = |vm: &&Guest| ENDING.contains(&&*vm.program.exercise);
        guests.filter(ends).filter(is_let_alone).map(|vm| &*vm.name)
    }

    /// The same system without the hostile VMs and the operator's commands, which concern them.
    #[must_use]
    pub fn without_neighbours(&self) -> Self {
        let mut case = self.clone();
        case.vms.retain(|vm| vm.name == WITNESS);
        case.commands.clear();
        case
    }

    /// The witness.
    pub fn witness(&self) -> Option<&Guest> {
        self.vms.iter().find(|vm| vm.name == WITNESS)
    }

    /// Tests whether the disks of VMs may answer with errors, or not at all.
    pub fn has_failing_disks(&self) -> bool {
        self.faults.is_some_and(|faults| faults.cost_answers())
    }

    /// Makes the parts fit each other: the witness knows its disk's pattern, and has no disk that fails.
    pub fn settle(&mut self) {
        let (key, fails) = (self.disk_key(0).to_string(), self.has_failing_disks());
        let Some(witness) = self.vms.iter_mut().find(|vm| vm.name == WITNESS) else {
            return;
        };
        if fails {
            witness.drop_disk();
        }
        if witness.disk.is_some() {
            let options = &mut witness.program.options;
            options.insert(String::from("disk-key"), key);
        }
    }

    /// Key of the pattern that a VM's slice is filled with.
    pub fn disk_key(&self, index: usize) -> u64 {
        1 + (self.seed.rotate_left(20) ^ self.number.rotate_left(8) ^ index as u64)
    }

    /// Harts that the witness's share promises while it computes. `None` where no share is promised: vCPUs that stay on one hart
    /// each, a queue a hart, and policies that are there to be compared with.
    pub fn promised_harts(&self) -> Option<f64> {
        let defaults = [
            ("scheduling", "\"floating\""),
            ("run-queue", "\"global\""),
            ("spin", "\"reservation\""),
        ];
        for (key, default) in defaults {
            if self.settings.get(key).is_some_and(|value| value != default) {
                return None;
            }
        }
        if !self.experiment.is_empty() {
            return None;
        }
        let witness = self.witness()?;
        let all: u64 = self.vms.iter().map(|vm| vm.share).sum();
        let part = witness.share as f64 / all.max(1) as f64;
        Some((self.harts as f64 * part).min(witness.vcpus as f64))
    }

    /// The system file.
    pub fn system_file(&self) -> String {
        let memory = HOST_MIB + self.vms.iter().map(|vm| vm.memory).sum::<u64>();
        let mut text = format!(
            "# Drawn by `partita fuzz`: seed {}, system {}.\n\nharts = {}\nmemory = \"{memory} MiB\"\nguest-interrupt-files = {}\n\
             when-idle = \"stay\"\n",
            self.seed, self.number, self.harts, self.guest_files
        );
        lines(&mut text, &self.settings);
        if !self.experiment.is_empty() {
            text += "\n[experiment]\n";
            lines(&mut text, &self.experiment);
        }
        if self.vms.iter().any(|vm| vm.disk == Some(GuestDisk::Slice)) {
            let _ = write!(
                text,
                "\n[disk.shared]\nfile = \"{SHARED_DISK}\"\npersistent = true\nraw = true\n"
            );
        }
        for (index, vm) in self.vms.iter().enumerate() {
            self.vm(&mut text, index, vm);
        }
        text
    }

    fn vm(&self, text: &mut String, index: usize, vm: &Guest) {
        let Guest {
            name,
            vcpus,
            memory,
            share,
            ..
        } = vm;
        let _ = write!(
            text,
            "\n[vm.{name}]\nvcpus = {vcpus}\nmemory = \"{memory} MiB\"\nshare = {share}\nkernel = \"image:exerciser\"\n\
             command-line = \"{}\"\n",
            vm.program.command_line()
        );
        lines(text, &vm.settings);
        let own = own_disk(name);
        let disk = match vm.disk {
            None => return,
            Some(GuestDisk::Slice) => format!(
                "slice-of = \"shared\", offset = \"{} B\", size = \"{SLICE_BYTES} B\"",
                index as u64 * SLICE_BYTES
            ),
            Some(GuestDisk::General) => format!("file = \"{own}\", raw = true, io = \"general\""),
            Some(GuestDisk::Fast) => format!("file = \"{own}\", raw = true, io = \"fast\""),
        };
        let _ = writeln!(text, "disks = [{{ {disk} }}]");
    }
}

/// File of a VM's own disk, beside the system file.
pub fn own_disk(vm: &str) -> String {
    format!("{vm}.img")
}

fn lines(text: &mut String, settings: &BTreeMap<String, String>) {
    for (key, value) in settings {
        let _ = writeln!(text, "{key} = {value}");
    }
}
