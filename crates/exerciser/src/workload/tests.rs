//! Parameters are taken as the reference says them, and the experiments' files are of them.

use super::*;
use crate::random::Random;

#[test]
fn what_is_not_given_is_nothing() {
    let arguments = Arguments::parse("exercise=work").unwrap();
    let workload = Workload::parse(&arguments).unwrap();
    assert_eq!(
        (
            workload.locks,
            workload.reads,
            workload.partner_one_in,
            workload.spin_limit
        ),
        (0, 0, 0, 0)
    );
    assert_eq!(workload.spin, SpinMethod::WaitOnReservation);
}

#[test]
fn the_reference_says_what_is_taken() {
    for parameter in REFERENCE {
        let name = parameter.name;
        let takes = |value: &str| {
            let line = format!("exercise=work {name}={value}");
            Workload::parse(&Arguments::parse(&line).unwrap()).is_ok()
        };
        match parameter.takes {
            Takes::Word(words) => {
                assert!(words.iter().all(|word| takes(word)), "{name}");
                assert!(!takes("none-of-these"), "{name}");
            }
            // The exercise itself reads how many harts there are.
            Takes::Number { .. } if name == "harts" => {}
            Takes::Number { low, high, .. } => {
                assert!(
                    takes(&low.to_string()) && takes(&high.to_string()),
                    "{name}"
                );
                assert!(
                    high == u64::MAX || !takes(&(high + 1).to_string()),
                    "{name}"
                );
                assert!(low == 0 || !takes(&(low - 1).to_string()), "{name}");
            }
        }
    }
}

#[test]
fn wrong_values_are_named() {
    for line in [
        "spin=wfi",
        "lock=fair",
        "terminals=0",
        "expire=now",
        "sectors=9",
        "lock-count=65",
    ] {
        let arguments = Arguments::parse(line).unwrap();
        assert!(Workload::parse(&arguments).is_err(), "{line}");
    }
}

#[test]
fn think_times_are_exponential() {
    let mut random = Random::new(3);
    let times: Vec<u64> = (0..100_000)
        .map(|_| think_time(1000, random.next()))
        .collect();
    let mean = times.iter().sum::<u64>() / 100_000;
    assert!((920..=1080).contains(&mean), "{mean}");
    // A share 1/e of an exponential's values exceed its mean.
    let above = times.iter().filter(|&&time| time > 1000).count();
    assert!((34_000..40_000).contains(&above), "{above}");
    assert!(times.iter().all(|&time| time <= 12_000));
}

/// Every parameter file of the experiments is one that the exerciser takes, and every system's command line
/// is one of these files.
#[test]
fn the_experiments_files_are_right() {
    let experiments = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    for paper in ["paper-000", "paper-002"] {
        let paper = experiments.join(paper);
        let files = |kind: &str| -> Vec<(std::path::PathBuf, String)> {
            let folders = [paper.clone(), paper.join("workloads")];
            let entries = folders.iter().filter_map(|folder| folder.read_dir().ok());
            let paths = entries.flatten().map(|entry| entry.unwrap().path());
            let of_kind = paths.filter(|path| path.extension().is_some_and(|name| name == kind));
            of_kind
                .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
                .collect()
        };
        let mut lines = Vec::new();
        for (path, text) in files("args") {
            let words = text
                .lines()
                .map(|line| line.split('#').next().unwrap_or(""));
            let line: Vec<&str> = words.flat_map(str::split_whitespace).collect();
            let line = line.join(" ");
            let arguments = Arguments::parse(&line).unwrap();
            assert_eq!(arguments.get("exercise"), Some("work"), "{path:?}");
            let known: Vec<&str> = PARAMETERS.iter().copied().chain(["exercise"]).collect();
            arguments.only(&known).unwrap();
            Workload::parse(&arguments).unwrap();
            lines.push(line);
        }
        let systems = files("toml");
        assert!(!lines.is_empty() && !systems.is_empty(), "{paper:?}");
        for (path, text) in systems {
            let command_lines = text
                .lines()
                .filter_map(|line| line.strip_prefix("command-line = \"")?.strip_suffix('"'));
            for line in command_lines.filter(|line| line.starts_with("exercise=")) {
                assert!(lines.iter().any(|known| known == line), "{path:?}: {line}");
            }
        }
    }
}
