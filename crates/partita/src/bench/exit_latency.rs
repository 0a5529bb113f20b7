//! Round trips through the hypervisor in several works, side by side.

use super::BenchError;
use guest_images::Progress;
use runner::computer::{Chosen, Setup};
use runner::exit_latency::{ExitLatencies, LatencyKind, Row};
use runner::headless::{Limits, Run};
use runner::table::Table;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use system::cache::Cache;
use system::image::{self, slots::Assignment};
use system::{Document, System};

/// The profile of the machine.
const PROFILE: &str = "k3-class";

/// The disk of the works that have one, among the built files.
const DISK: &str = "debian/disk";

/// A work that brings round trips about.
struct Work {
    name: &'static str,
    vms: Vms,
    arguments: &'static str,
}

/// Which VMs do a work.
enum Vms {
    /// Two of two vCPUs on two harts.
    Two,
    /// The same, each with the disk of the Debian images.
    TwoWithDisks,
    /// One vCPU on one hart under placement `resident`, whose disk is simulated so.
    OneWithDisk(&'static str),
}

/// One reader, which reads 4 KiB at a time.
const READER: &str = "exercise=work duration-ms=0 jobs=2000 reads=1 terminals=1 trigger=edge";

/// The works.
const WORK: [Work; 6] = [
    Work {
        name: "heavy I/O (paper 002, case 4)",
        vms: Vms::TwoWithDisks,
        arguments: "exercise=work lock=swap duration-ms=150 terminals=8 steps=1 compute=7000 reads=1 sectors=8 locks=1 hold=40 lock-count=4",
    },
    Work {
        name: "ticket locks",
        vms: Vms::Two,
        arguments: "exercise=work lock=ticket spin=wrs duration-ms=150 terminals=8 steps=4 compute=2000 locks=4 hold=400 lock-count=1",
    },
    Work {
        name: "batch",
        vms: Vms::Two,
        arguments: "exercise=work duration-ms=150 terminals=4 steps=4 compute=50000",
    },
    Work {
        name: "interrupts and console",
        vms: Vms::Two,
        arguments: "exercise=ipi count=100 console=uart",
    },
    Work {
        name: "one reader, general I/O simulation",
        vms: Vms::OneWithDisk("general"),
        arguments: READER,
    },
    Work {
        name: "one reader, fast I/O simulation",
        vms: Vms::OneWithDisk("fast"),
        arguments: READER,
    },
];

/// The round trips of each work.
#[derive(Debug, Serialize)]
pub struct ExitLatencyReport {
    /// The work's name and its rows.
    pub work: Vec<(&'static str, Vec<Row>)>,
}

/// Measures the exit latency of several works on the machine.
///
/// # Errors
/// A system cannot be built or does not run.
pub fn measure_exit_latency(
    cache: &Cache,
    hypervisor: &Path,
    progress: &Progress,
) -> Result<ExitLatencyReport, BenchError> {
    // The system is taken to stand elsewhere.
    let hypervisor = &std::path::absolute(hypervisor).map_err(|error| BenchError::File {
        path: hypervisor.to_owned(),
        error,
    })?;
    runner::images::ensure(cache, &[DISK], progress)?;
    let exerciser = hypervisor.with_file_name("exerciser");
    let mut work = Vec::new();
    for Work {
        name,
        vms,
        arguments,
    } in WORK
    {
        progress.step(&format!("measuring exit latency: {name}"));
        let text = system_text(&exerciser, &vms, arguments);
        let document = Document::new(&std::env::temp_dir().join("exit-latency.toml"), text, &[])?;
        let system = System::read(&document)?;
        let slots = Assignment::of(&system);
        let image = image::compose(&system, &slots, cache, None)?;
        let setup = Setup {
            system: &system,
            slots: &slots,
            image: &image,
            hypervisor,
            cache,
        };
        let mut run = Run::boot(&setup, &Chosen::named(Some(PROFILE), 0)?)?;
        let exit_latency = ExitLatencies::default();
        run.machine.listen(Box::new(exit_latency.clone()));
        let _ = run.follow(&Limits::default(), &mut |_line| {});
        work.push((name, exit_latency.rows()));
    }
    Ok(ExitLatencyReport { work })
}

fn system_text(exerciser: &Path, vms: &Vms, arguments: &str) -> String {
    let kernel = super::quoted(exerciser);
    let arguments = super::quoted_text(arguments);
    let disk = format!("disks = [{{ file = \"image:{DISK}\" }}]");
    let (names, harts, vcpus, devices): (&[&str], _, _, _) = match vms {
        Vms::Two => (&["one", "two"], 2, 2, String::new()),
        Vms::TwoWithDisks => (&["one", "two"], 2, 2, disk),
        Vms::OneWithDisk(io) => {
            let devices = format!("{disk}\nio = \"{io}\"\nplacement = \"resident\"");
            (&["one"], 1, 1, devices)
        }
    };
    let vm = |name: &&str| {
        format!(
            "[vm.{name}]\nvcpus = {vcpus}\nmemory = \"64 MiB\"\nshare = 50\nkernel = {kernel}\n\
             command-line = {arguments}\n{devices}\n"
        )
    };
    let vms: String = names.iter().map(vm).collect();
    format!(
        "harts = {harts}\nmemory = \"1 GiB\"\nguest-interrupt-files = 7\ntime-slice = \"1 ms\"\ntime-limit = \"1 min\"\n{vms}"
    )
}

impl fmt::Display for ExitLatencyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, rows)) in self.work.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            let mut table = Table::new([
                *name,
                "count",
                "instructions",
                "mean",
                "most",
                "cycles",
                "mean",
                "most",
            ]);
            // Addresses differ from build to build.
            for row in rows.iter().filter(|row| row.kind != LatencyKind::Pauses) {
                let name = match row.kind {
                    LatencyKind::Exit => format!("exit: {}", row.cause),
                    LatencyKind::Dispatch => format!("dispatch after: {}", row.cause),
                    LatencyKind::FromIdle => String::from("dispatch by an idle hart"),
                    LatencyKind::Pauses => format!("pauses at: {}", row.cause),
                };
                let figures = row.instructions.iter().chain(&row.cycles);
                table.row(
                    [name, row.count.to_string()]
                        .into_iter()
                        .chain(figures.map(ToString::to_string)),
                );
            }
            write!(f, "{table}")?;
        }
        Ok(())
    }
}
