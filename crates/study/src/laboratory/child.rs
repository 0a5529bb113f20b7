//! Points as child processes of this command: a child that crashes ends no other run.

use super::{Computer, Outcome, Point, Runner};
use runner::document::RunDocument;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a child is asked whether it has ended.
const GLANCE: Duration = Duration::from_millis(5);
/// How long a child may take to end in order once it is asked to.
const GRACE: Duration = Duration::from_secs(15);
/// How much of the end of a child's output is looked at, and how many of its lines are shown, if it fails.
const TAIL_BYTES: u64 = 8 << 10;
const TAIL_LINES: usize = 12;
/// Beginnings of the summary after a run, and of a complaint of this command's own.
const SUMMARY: &str = "ended:";
const COMPLAINT: &str = "partita: ";
/// The exit code of a run that was broken off.
const BROKEN_OFF: i32 = 130;

/// Runs points by `partita run`.
#[derive(Debug)]
pub struct ChildRunner<'a> {
    /// This command's own file.
    pub command: PathBuf,
    /// The hypervisor's ELF file.
    pub hypervisor: PathBuf,
    /// Longest time that one run may take on this computer.
    pub timeout: Option<Duration>,
    /// Set when no more is wanted.
    pub stop: &'a AtomicBool,
    /// The checkpoints of points that go on from one, by [`Point::boot`].
    pub checkpoints: Vec<(Point, PathBuf)>,
}

impl ChildRunner<'_> {
    /// The command line that runs a point, without the report's file.
    pub fn arguments(&self, point: &Point) -> Vec<std::ffi::OsString> {
        let mut words: Vec<std::ffi::OsString> = vec!["run".into(), point.system.clone().into()];
        for change in &point.changes {
            words.extend(["--set".into(), change.into()]);
        }
        match &point.computer {
            Computer::Qemu => words.extend(["--on".into(), "qemu".into()]),
            Computer::Machine { profile } => {
                words.extend(["--on".into(), "machine".into()]);
                words.extend(["--seed".into(), point.seed.to_string().into()]);
                if let Some(profile) = profile {
                    words.extend(["--profile".into(), profile.into()]);
                }
            }
        }
        if point.native {
            words.push("--native".into());
        }
        if point.kvm {
            words.push("--kvm".into());
        }
        if let (Some(start), Some(boot)) = (&point.start, point.boot()) {
            let mut known = self.checkpoints.iter();
            if let Some((_, file)) = known.find(|(known, _)| *known == boot) {
                words.extend(["--checkpoint".into(), file.clone().into()]);
            }
            for command in &start.commands {
                words.extend(["--command".into(), command.into()]);
            }
            if let Some(span) = &start.span {
                // Plain values alone: this cannot fail.
                let text = serde_json::to_string(span).unwrap_or_default();
                words.extend(["--span".into(), text.into()]);
            }
        }
        if point.window.is_some() {
            words.push("--steady-state".into());
        }
        if point.exit_latency {
            words.push("--exit-latency".into());
        }
        if point.shares {
            words.push("--shares".into());
        }
        if let Some(shift) = &point.shift {
            // Plain values alone: this cannot fail.
            let text = serde_json::to_string(shift).unwrap_or_default();
            words.extend(["--shift".into(), text.into()]);
        }
        let hypervisor = point.hypervisor.as_ref().unwrap_or(&self.hypervisor);
        words.extend(["--hypervisor".into(), hypervisor.clone().into()]);
        if let Some(timeout) = self.timeout {
            let seconds = timeout.as_secs().max(1);
            words.extend(["--timeout".into(), seconds.to_string().into()]);
        }
        words
    }

    fn start(&self, point: &Point) -> std::io::Result<Option<Outcome>> {
        let folder = tempfile::tempdir()?;
        let report = folder.path().join("report.json");
        let mut output = tempfile::tempfile()?;
        let mut child = Command::new(&self.command)
            .args(self.arguments(point))
            .args([
                "--without-makers",
                "--without-native",
                "--parent",
                &std::process::id().to_string(),
            ])
            .arg("--json")
            .arg(&report)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output.try_clone()?)
            .spawn()?;
        let Some(status) = self.wait(&mut child)? else {
            return Ok(None);
        };
        if status.code() == Some(BROKEN_OFF) {
            return Ok(None);
        }
        let failed = |why: String, output: &mut std::fs::File| {
            let tail = tail(output).unwrap_or_default();
            Some(Outcome::Failed(format!("{why}\n{tail}")))
        };
        if !status.success() {
            return Ok(failed(describe(status), &mut output));
        }
        let report = std::fs::read(&report)?;
        Ok(match read_report(&report) {
            Ok(outcome) => Some(outcome),
            Err(why) => failed(why, &mut output),
        })
    }

    /// Waits for a child; `None` if it was ended because no more is wanted.
    fn wait(&self, child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
        let mut asked: Option<Instant> = None;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(asked.is_none().then_some(status));
            }
            match asked {
                None if self.stop.load(Ordering::Relaxed) => {
                    let id = i32::try_from(child.id()).ok();
                    if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
                        // A child that is gone is noticed above.
                        let _ = rustix::process::kill_process(id, rustix::process::Signal::TERM);
                    }
                    asked = Some(Instant::now());
                }
                Some(since) if since.elapsed() > GRACE => child.kill()?,
                _ => {}
            }
            std::thread::sleep(GLANCE);
        }
    }
}

impl Runner for ChildRunner<'_> {
    fn run(&self, point: &Point) -> Option<Outcome> {
        match self.start(point) {
            Ok(outcome) => outcome,
            Err(error) => Some(Outcome::Failed(format!("it could not be run: {error}"))),
        }
    }
}

/// Reads a child's report.
fn read_report(bytes: &[u8]) -> Result<Outcome, String> {
    let report = RunDocument::read(bytes).map_err(|error| format!("its report: {error}"))?;
    let report = Box::new(report);
    Ok(Outcome::Finished { report })
}

fn describe(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(3), _) => String::from("a VM failed or did not power off"),
        (Some(4), _) => String::from("it took longer than it may"),
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => format!("it ended with {status}"),
    }
}

/// The lines of a child's output that tell why it failed: what it said last before its summary and tables, and its own
/// complaints.
fn tail(output: &mut std::fs::File) -> std::io::Result<String> {
    let length = output.metadata()?.len();
    output.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let summary = lines.iter().position(|line| line.starts_with(SUMMARY));
    let (before, after) = lines.split_at(summary.unwrap_or(lines.len()));
    let last = before.get(before.len().saturating_sub(TAIL_LINES)..);
    let complaints = after.iter().filter(|line| line.starts_with(COMPLAINT));
    let shown = last.unwrap_or_default().iter().chain(complaints);
    let shown = shown.filter(|line| !line.trim().is_empty());
    Ok(shown.copied().collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn point() -> Point {
        Point {
            system: PathBuf::from("a.toml"),
            changes: vec![String::from("spin=wapd")],
            computer: Computer::Machine {
                profile: Some(String::from("ideal")),
            },
            seed: 7,
            ..Point::default()
        }
    }

    /// Outcome of a point whose command is this shell script.
    fn outcome(script: &str, stop: &AtomicBool) -> Option<Outcome> {
        let folder = tempfile::tempdir().unwrap();
        let command = folder.path().join("command");
        std::fs::write(&command, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&command, std::fs::Permissions::from_mode(0o755)).unwrap();
        let runner = ChildRunner {
            command,
            hypervisor: PathBuf::from("hypervisor"),
            timeout: None,
            stop,
            checkpoints: Vec::new(),
        };
        runner.run(&point())
    }

    fn failure(script: &str) -> String {
        match outcome(script, &AtomicBool::new(false)) {
            Some(Outcome::Failed(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    /// Shell: puts the last argument, the report's path, into $json.
    const LAST: &str = "for json; do :; done;";

    #[test]
    fn a_report_becomes_figures() {
        let script = format!("{LAST} echo '{{\"measures\": {{\"throughput\": 2.5}}}}' > $json");
        let outcome = outcome(&script, &AtomicBool::new(false)).unwrap();
        assert_eq!(outcome.figures().unwrap().named("throughput"), Some(2.5));
    }

    #[test]
    fn failures_show_reason_and_last_lines() {
        assert!(failure("echo much; echo the reason; exit 3").contains("the reason"));
        let told = failure(
            "echo last words; echo ended: one; echo a table; echo partita: one failed; exit 3",
        );
        assert!(told.ends_with("last words\npartita: one failed"), "{told}");
        assert!(failure("exit 4").contains("longer than it may"));
        assert!(failure("kill -SEGV $$").contains("signal 11"));
        assert!(failure(&format!("{LAST} echo nonsense > $json")).contains("its report"));
        assert!(failure(&format!("{LAST} echo '{{}}' > $json")).contains("`measures`"));
        assert!(failure("true").contains("could not be run"));
    }

    #[test]
    fn cancelled_run_ends_without_result() {
        assert_eq!(outcome("exec sleep 1000", &AtomicBool::new(true)), None);
        assert_eq!(outcome("exit 130", &AtomicBool::new(false)), None);
    }

    #[test]
    fn command_line_names_whole_point() {
        let stop = AtomicBool::new(false);
        let runner = ChildRunner {
            command: PathBuf::from("partita"),
            hypervisor: PathBuf::from("h"),
            timeout: Some(Duration::from_secs(9)),
            stop: &stop,
            checkpoints: Vec::new(),
        };
        let words = runner.arguments(&point());
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let text = words.join(" ");
        let expected = "run a.toml --set spin=wapd --on machine --seed 7 --profile ideal --hypervisor h --timeout 9";
        assert_eq!(text, expected);
        let kvm = Point {
            kvm: true,
            ..point()
        };
        assert!(runner.arguments(&kvm).contains(&"--kvm".into()));
    }
}
