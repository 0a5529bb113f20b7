//! The native run beside `partita run`: the same work without the hypervisor, for
//! relative-throughput, elapsed-time-expansion and cpu-time-expansion.

use super::failure::Failure;
use super::input::Computer;
use super::run::RunArguments;
use super::run::point;
use runner::measures::Figures;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use study::laboratory::{ChildRunner, counts_ends, native_figures, native_point};
use system::System;
use system::cache::Cache;

/// A native run that goes on.
pub(super) struct Beside {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Option<Figures>, String>>,
}

impl Beside {
    /// Looks for a recorded native run of the first VM's work, and makes one if there is none. `None` if nobody wants to
    /// know, or if that work is not counted.
    pub(super) fn start(
        arguments: &RunArguments,
        system: &System,
        cache: &Cache,
    ) -> Result<Option<Self>, Failure> {
        let wanted = !arguments.without_native && arguments.console.is_none();
        if !wanted || !matches!(arguments.on, Computer::Machine) || !counts_ends(system) {
            return Ok(None);
        }
        let point = native_point(&point(arguments));
        let (cache, stop) = (cache.clone(), Arc::new(AtomicBool::new(false)));
        let own_stop = stop.clone();
        let hypervisor = arguments.hypervisor.path()?;
        let timeout = arguments.timeout.map(Duration::from_secs);
        let timeout = timeout.or_else(|| system.time_limit().map(Duration::from));
        let thread = std::thread::spawn(move || {
            let command = std::env::current_exe().map_err(|error| error.to_string())?;
            let runner = ChildRunner {
                command: command.clone(),
                hypervisor,
                timeout,
                stop: &own_stop,
                checkpoints: Vec::new(),
            };
            let results = cache.folder().join("results/native.jsonl");
            let say = |what: &str| eprintln!("partita: {what}");
            native_figures(&point, &command, &cache, &results, &runner, &say)
        });
        Ok(Some(Self { stop, thread }))
    }

    /// Waits for the native run's figures, or breaks it off if they are not `wanted` any more.
    pub(super) fn end(self, wanted: bool) -> Option<Figures> {
        if !wanted {
            self.stop.store(true, Ordering::Relaxed);
        } else if !self.thread.is_finished() {
            eprintln!(
                "partita: waiting for the same work without the hypervisor, for relative-throughput, elapsed-time-expansion and cpu-time-expansion"
            );
        }
        match self.thread.join() {
            Ok(Ok(figures)) => figures,
            Ok(Err(why)) => {
                eprintln!(
                    "partita: there is no relative-throughput, elapsed-time-expansion and cpu-time-expansion, because the native run failed: {why}"
                );
                None
            }
            Err(_) => None,
        }
    }
}
