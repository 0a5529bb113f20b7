//! What the hypervisor costs, counted in instructions.
//!
//! QEMU with `-icount shift=0` on one hart executes one instruction a nanosecond of its virtual time, and while it records
//! an execution it knows how many there have been. The same kernel, initial RAM disk and job are run natively
//! and as the only guest of the hypervisor; the count at power-off, from reset and with the firmware in it, does not depend
//! on how fast or how busy the host is.

mod record;

pub use record::{RecordError, Recorded, record};

use crate::cache::Cache;
use crate::image::{self, ImageError, slots::Assignment};
use crate::images::Progress;
use crate::qemu::{self, Boot, QemuError};
use crate::report::Table;
use crate::system::{Bytes, Document, Mistakes, System};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// A job that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Job {
    /// What it is called in the table.
    name: &'static str,
    /// The guest's workload.
    workload: &'static str,
    /// Whether it needs a disk.
    disk: bool,
}

const JOBS: [Job; 3] = [
    Job {
        name: "boot and power-off",
        workload: "boot",
        disk: false,
    },
    Job {
        name: "boot, hackbench and a CPU job",
        workload: "job",
        disk: false,
    },
    Job {
        name: "boot and random reads at depth 1",
        workload: "fio-read",
        disk: true,
    },
];

/// Memory of the guest, native or not.
const GUEST_MEMORY: Bytes = Bytes(512 << 20);
/// Memory of the computer with the hypervisor on it.
const HOST_MEMORY: Bytes = Bytes(2 << 30);

/// Why there is no benchmark.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// QEMU cannot be used.
    #[error(transparent)]
    Qemu(#[from] QemuError),
    /// The system image cannot be made.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The benchmark's own system is refused.
    #[error(transparent)]
    System(#[from] Mistakes),
    /// A run went wrong.
    #[error("{job}, {side}: {error}")]
    Record {
        /// Which.
        job: &'static str,
        /// Native or not.
        side: &'static str,
        /// What went wrong.
        error: RecordError,
    },
    /// The host's system refuses something.
    #[error("a file for this benchmark: {0}")]
    File(#[from] std::io::Error),
}

/// One job's instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The job.
    pub job: &'static str,
    /// Without a hypervisor.
    pub native: u64,
    /// With it.
    pub partita: u64,
}

impl Comparison {
    /// How many times as many instructions with the hypervisor.
    pub fn ratio(&self) -> f64 {
        self.partita as f64 / self.native as f64
    }
}

/// All jobs' instructions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Benchmark {
    /// In the order in which they were measured.
    pub jobs: Vec<Comparison>,
}

impl fmt::Display for Benchmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "instructions from reset to power-off",
            "native",
            "Partita",
            "ratio",
        ]);
        for job in &self.jobs {
            let giga = |count: u64| format!("{:.4} G", count as f64 / 1e9);
            let ratio = format!("{:.4}", job.ratio());
            table.row([
                String::from(job.job),
                giga(job.native),
                giga(job.partita),
                ratio,
            ]);
        }
        table.fmt(f)
    }
}

/// Measures every job natively and under the hypervisor.
///
/// # Errors
/// A run cannot be started, or does not end as it should.
pub fn run(cache: &Cache, hypervisor: &Path, progress: &Progress) -> Result<Benchmark, BenchError> {
    qemu::check()?;
    let bench = Bench {
        cache,
        hypervisor,
        firmware: qemu::firmware()?,
        folder: tempfile::tempdir()?,
    };
    let mut jobs = Vec::new();
    for job in JOBS {
        let measure = |side: &'static str, arguments: Vec<OsString>| {
            progress.step(&format!("{}, {side}", job.name));
            record(&arguments, bench.folder.path())
                .map(|recorded| recorded.instructions)
                .map_err(|error| BenchError::Record {
                    job: job.name,
                    side,
                    error,
                })
        };
        let native = measure("native", bench.native(job))?;
        let partita = measure("under Partita", bench.under_partita(job)?)?;
        jobs.push(Comparison {
            job: job.name,
            native,
            partita,
        });
    }
    Ok(Benchmark { jobs })
}

/// What all runs have in common.
struct Bench<'a> {
    cache: &'a Cache,
    hypervisor: &'a Path,
    firmware: PathBuf,
    folder: tempfile::TempDir,
}

impl Bench<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.cache.folder().join("debian").join(name)
    }

    fn command_line(job: Job) -> String {
        format!("console=ttyS0 quiet partita.workload={}", job.workload)
    }

    /// The job's kernel on the bare board.
    fn native(&self, job: Job) -> Vec<OsString> {
        let mut arguments = qemu::board(0, 1, GUEST_MEMORY);
        let mut add = |option: &str, value: OsString| arguments.extend([option.into(), value]);
        add("-bios", self.firmware.clone().into());
        add("-kernel", self.file("kernel").into());
        add("-initrd", self.file("initrd").into());
        add("-append", Self::command_line(job).into());
        self.add_disk(job, &mut arguments);
        arguments
    }

    /// The same as the only guest of the hypervisor.
    fn under_partita(&self, job: Job) -> Result<Vec<OsString>, BenchError> {
        // The disk has slot 0 in both, and is added below because it must be recorded.
        let text = format!(
            "harts = 1\nmemory = \"{HOST_MEMORY}\"\n[vm.guest]\nvcpus = 1\nmemory = \"{GUEST_MEMORY}\"\nshare = 100\n\
             kernel = \"image:debian/kernel\"\ninitrd = \"image:debian/initrd\"\ncommand-line = \"{}\"\n{}",
            Self::command_line(job),
            if job.disk {
                "disks = [{ file = \"image:debian/disk\", slot = 0 }]\n"
            } else {
                ""
            },
        );
        let mut system = System::read(&Document::new(Path::new("the benchmark"), text, &[])?)?;
        let slots = Assignment::of(&system);
        let image = image::compose(&system, &slots, self.cache, None)?;
        let path = self.folder.path().join("system.image");
        std::fs::write(&path, image)?;
        for vm in &mut system.vms {
            vm.disks.clear();
        }
        let boot = Boot {
            firmware: &self.firmware,
            hypervisor: self.hypervisor,
            image: &path,
        };
        let mut arguments = qemu::arguments(&system, &Assignment::of(&system), boot, self.cache);
        self.add_disk(job, &mut arguments);
        Ok(arguments)
    }

    /// Adds the job's disk in slot 0, behind the filter that makes its timing part of the recording.
    fn add_disk(&self, job: Job, arguments: &mut Vec<OsString>) {
        if !job.disk {
            return;
        }
        let file = self.file("disk").to_string_lossy().replace(',', ",,");
        for (option, value) in [
            (
                "-drive",
                format!("file={file},format=raw,if=none,id=image,snapshot=on"),
            ),
            (
                "-drive",
                String::from("driver=blkreplay,if=none,image=image,id=disk"),
            ),
            (
                "-device",
                String::from("virtio-blk-device,drive=disk,bus=virtio-mmio-bus.0"),
            ),
        ] {
            arguments.extend([option.into(), value.into()]);
        }
    }
}
