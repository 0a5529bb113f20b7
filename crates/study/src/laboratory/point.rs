//! One run that is to be made, and what makes its result.

use runner::checkpoint::Start;
use runner::computer::Shift;
use runner::window::Window;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use system::cache::Cache;
use system::fingerprint::Fingerprint;
use system::fingerprint::Fingerprints;
use system::{Document, Mistakes, System};

/// Where a point runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "on")]
pub enum Computer {
    /// QEMU's virt board: real programs, host time; no two runs are alike.
    Qemu,
    /// The deterministic machine.
    Machine {
        /// The profile by its name or file; without it every instruction takes a cycle.
        profile: Option<String>,
    },
}

impl fmt::Display for Computer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Qemu => f.write_str("QEMU"),
            Self::Machine { profile: None } => f.write_str("the machine, a cycle an instruction"),
            Self::Machine {
                profile: Some(profile),
            } => write!(f, "the machine, {profile}"),
        }
    }
}

/// The machine by itself.
impl Default for Computer {
    fn default() -> Self {
        Self::Machine { profile: None }
    }
}

/// One run that is to be made. The default is of no system yet: all of a run by the hypervisor on the machine, from its boot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The system file.
    pub system: PathBuf,
    /// Changes to it, each a `KEY=VALUE`, in order.
    pub changes: Vec<String>,
    /// The computer.
    pub computer: Computer,
    /// The start phase, and all else that is random.
    pub seed: u64,
    /// Runs the first VM's work alone, on the computer itself, without a hypervisor.
    #[serde(default)]
    pub native: bool,
    /// Runs all guests under KVM on the computer, in the hypervisor's place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kvm: bool,
    /// The hypervisor's ELF file, if it is not the command's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<PathBuf>,
    /// Where the measured part begins; without it, when the computer is switched on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// The part of the run that is measured; without it, all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// Measures what part of its share each VM had all the time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares: bool,
    /// Shifts at the beginning, where nuisance factors are varied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shift: Option<Shift>,
    /// Counts the round trips through the hypervisor in the window.
    #[serde(
        default,
        alias = "passages",
        skip_serializing_if = "std::ops::Not::not"
    )]
    pub exit_latency: bool,
}

/// Makers of a result. Two results with equal makers on the machine are equal to the last digit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeBy {
    /// Version of this command.
    pub partita: String,
    /// The system file's text.
    pub system: String,
    /// The profile's text, if it is a file.
    pub profile: Option<String>,
    /// Fingerprints of the files that took part, by what they are: the command, the hypervisor, kernels and so on.
    /// Where they lie does not matter and is not kept.
    pub files: BTreeMap<String, Fingerprint>,
}

/// Why a point cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PointError {
    /// The system has mistakes.
    #[error("{0}")]
    Mistakes(#[from] Mistakes),
    /// A file cannot be read.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
}

impl Point {
    /// Reads the system with its changes.
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn read(&self) -> Result<System, PointError> {
        let text = read_text(&self.system)?;
        let document = Document::new(&self.system, text, &self.changes)?;
        Ok(System::read(&document)?)
    }

    /// The point whose boot this one goes on from, if it does: the same for all that share a checkpoint.
    pub fn boot(&self) -> Option<Self> {
        let start = self.start.as_ref()?;
        Some(Self {
            seed: 0,
            start: Some(Start {
                text: start.text.clone(),
                commands: Vec::new(),
                span: None,
            }),
            ..self.clone()
        })
    }

    /// The programs that run it, of the command and its hypervisor: there is none below a native run, and KVM in its place.
    pub fn programs<'a>(
        &self,
        command: &'a Path,
        hypervisor: &'a Path,
    ) -> Vec<(&'static str, &'a Path)> {
        let with_hypervisor = !self.native && !self.kvm;
        let hypervisor = with_hypervisor.then_some(("hypervisor", hypervisor));
        [("partita", command)]
            .into_iter()
            .chain(hypervisor)
            .collect()
    }

    /// Finds out what makes this point's result. `programs` are those that run it: the command, the hypervisor,
    /// the firmware.
    ///
    /// # Errors
    /// The system has mistakes, or a file cannot be read.
    pub fn made_by(
        &self,
        programs: &[(&str, &Path)],
        cache: &Cache,
        known: &mut Fingerprints,
    ) -> Result<MadeBy, PointError> {
        let system = self.read()?;
        let mut files = BTreeMap::new();
        let mut add = |what: String, path: &Path| {
            let file = |error| PointError::File {
                path: path.to_owned(),
                error,
            };
            let fingerprint = known.of(path).map_err(file)?;
            files.insert(what, fingerprint);
            Ok::<(), PointError>(())
        };
        for (what, path) in programs {
            add(String::from(*what), path)?;
        }
        if self.kvm {
            for (what, path) in runner::kvm::host_files(cache) {
                add(String::from(what), &path)?;
            }
        }
        let shared = system.disks.iter();
        let shared = shared.map(|disk| (format!("disk.{}", disk.name), disk.disk.path(cache)));
        let mut parts: Vec<(String, PathBuf)> = shared.collect();
        for vm in &system.vms {
            parts.push((
                format!("vm.{}.kernel", vm.name),
                vm.kernel.value.path(cache),
            ));
            if let Some(initrd) = &vm.initrd {
                parts.push((format!("vm.{}.initrd", vm.name), initrd.value.path(cache)));
            }
            for (index, disk) in vm.disks.iter().enumerate() {
                parts.push((format!("vm.{}.disks.{index}", vm.name), disk.path(cache)));
            }
        }
        for (what, path) in parts {
            add(what, &path)?;
        }
        let profile = match &self.computer {
            Computer::Machine {
                profile: Some(profile),
            } if Path::new(profile).is_file() => Some(read_text(Path::new(profile))?),
            _ => None,
        };
        Ok(MadeBy {
            partita: String::from(env!("CARGO_PKG_VERSION")),
            system: read_text(&self.system)?,
            profile,
            files,
        })
    }

    /// The hash by which a result is known: of the point and all that makes it. The folder in which the system file
    /// lies has no part in it.
    pub fn identity(&self, made_by: &MadeBy) -> Fingerprint {
        let name = self.system.file_name().unwrap_or_default();
        let whole = (
            name.to_string_lossy(),
            &self.changes,
            &self.computer,
            self.seed,
            self.native,
            self.kvm,
            &self.start,
            &self.window,
            &self.shift,
            self.exit_latency,
            made_by,
        );
        // Text keys and plain values alone: this cannot fail.
        Fingerprint::of(&serde_json::to_vec(&whole).unwrap_or_default())
    }
}

fn read_text(path: &Path) -> Result<String, PointError> {
    std::fs::read_to_string(path).map_err(|error| PointError::File {
        path: path.to_owned(),
        error,
    })
}
