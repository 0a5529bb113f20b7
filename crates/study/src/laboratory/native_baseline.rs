//! The native run that a run is measured against: a recorded one, else one that is made beside it.

use super::{Entry, Outcome, Point, Runner, Store};
use abi::keys::{self, Scope};
use runner::measures::Figures;
use std::path::Path;
use system::cache::Cache;
use system::fingerprint::Fingerprints;
use system::{System, Vm};

/// Words of a kernel's command line if its workload's ends are counted, so that a native run has something to say.
const COUNTED: [&str; 7] = [
    "exercise=work",
    "partita.workload=batch",
    "partita.workload=heavy-io",
    "partita.workload=locks",
    "partita.workload=sort",
    "partita.workload=system-calls",
    "partita.workload=tss",
];

/// True for a key that concerns the hypervisor alone: a native run is the same whatever its value.
fn is_of_hypervisor(path: &str) -> bool {
    let of_system = [Scope::System, Scope::Experiment, Scope::VmExperiment];
    let is_share = path.starts_with("vm.") && path.ends_with(".share");
    let row = keys::by_path(path);
    let is_property = row.is_some_and(|row| {
        let is_files = row.name == keys::GUEST_INTERRUPT_FILES.name();
        (row.property || is_files) && of_system.iter().any(|scope| row.is_in(*scope))
    });
    is_share || is_property || path.ends_with("experiment.ple")
}

/// Returns whether the first VM, which a native run boots, does work whose ends are counted.
pub fn counts_ends(system: &System) -> bool {
    let words = |vm: &Vm| {
        let mut words = vm.command_line.split_whitespace();
        words.any(|word| COUNTED.contains(&word))
    };
    system.vms.first().is_some_and(words)
}

/// The native run that belongs to a point.
pub fn native_point(point: &Point) -> Point {
    let matters = |change: &&String| {
        let key = change.split('=').next().unwrap_or_default().trim();
        !is_of_hypervisor(key)
    };
    Point {
        changes: point.changes.iter().filter(matters).cloned().collect(),
        native: true,
        kvm: false,
        start: None,
        window: None,
        shares: false,
        shift: None,
        ..point.clone()
    }
}

/// The figures of the native run: those in the file of results at `results` if it has them, else those of a run by
/// `runner`, which are added to the file. `None` if the run was broken off. `say` is told what is not fatal.
///
/// # Errors
/// The run failed, or what makes it cannot be read.
pub fn native_figures(
    point: &Point,
    command: &Path,
    cache: &Cache,
    results: &Path,
    runner: &dyn Runner,
    say: &dyn Fn(&str),
) -> Result<Option<Figures>, String> {
    let made_by = point.made_by(&[("partita", command)], cache, &mut Fingerprints::new());
    let made_by = made_by.map_err(|error| error.to_string())?;
    let id = point.identity(&made_by);
    let known = if results.is_file() {
        Store::read(results).unwrap_or_else(|error| {
            say(&error.to_string());
            Vec::new()
        })
    } else {
        Vec::new()
    };
    let known = known.into_iter().find(|entry| entry.id == id);
    if let Some(figures) = known.and_then(|entry| entry.outcome.figures().cloned()) {
        return Ok(Some(figures));
    }
    let outcome = match runner.run(point) {
        None => return Ok(None),
        Some(Outcome::Failed(why)) => return Err(why),
        Some(outcome) => outcome,
    };
    let figures = outcome.figures().cloned();
    let entry = Entry {
        id,
        point: point.clone(),
        made_by,
        outcome,
    };
    let kept = Store::open(results).and_then(|mut store| store.add(entry));
    if let Err(error) = kept {
        say(&format!("{error}; the native run is not kept"));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::super::Computer;
    use super::*;
    use runner::measures::Measure;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Counting(AtomicU32);

    impl Runner for Counting {
        fn run(&self, point: &Point) -> Option<Outcome> {
            assert!(point.native);
            self.0.fetch_add(1, Ordering::Relaxed);
            Some(Outcome::of_figures(Figures::from([(
                Measure::Throughput,
                4.0,
            )])))
        }
    }

    #[test]
    fn native_run_is_shared_by_policies() {
        let folder = tempfile::tempdir().unwrap();
        let system = folder.path().join("a.toml");
        let kernel = folder.path().join("kernel");
        std::fs::write(&kernel, "k").unwrap();
        let text = "harts = 1\nmemory = \"2 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
                    kernel = \"kernel\"\ncommand-line = \"exercise=work jobs=1\"\n";
        std::fs::write(&system, text).unwrap();
        let cache = Cache::new(folder.path().join("cache"));
        let results = folder.path().join("native.jsonl");
        let runner = Counting(AtomicU32::new(0));
        let figures = |changes: &[&str], seed| {
            let point = Point {
                system: system.clone(),
                changes: changes.iter().copied().map(String::from).collect(),
                computer: Computer::Machine { profile: None },
                seed,
                ..Point::default()
            };
            assert!(counts_ends(&point.read().unwrap()));
            let native = native_point(&point);
            native_figures(&native, &kernel, &cache, &results, &runner, &|what| {
                panic!("{what}")
            })
        };
        let expected = Some(Figures::from([(Measure::Throughput, 4.0)]));
        assert_eq!(figures(&["spin=wapd"], 1), Ok(expected.clone()));
        assert_eq!(
            figures(&["spin=rslp", "vm.a.share=7"], 1),
            Ok(expected.clone())
        );
        let parameters = [
            "experiment.affinity=0",
            "experiment.self-wait-budget=1",
            "reservation-limit=\"20 ms\"",
            "experiment.round=4",
        ];
        assert_eq!(figures(&parameters, 1), Ok(expected));
        assert_eq!(runner.0.load(Ordering::Relaxed), 1);
        // Another seed, or another computer, is another run.
        assert!(figures(&["spin=rslp"], 2).is_ok());
        assert!(figures(&["harts=2"], 1).is_ok());
        assert_eq!(runner.0.load(Ordering::Relaxed), 3);
    }
}
