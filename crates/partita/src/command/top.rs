//! `partita top`: a table of who has the harts, again and again while a system runs.

use super::failure::Failure;
use super::trace::{Bench, Watched, boot};
use machine::front::RawTerminal;
use runner::headless::Limits;
use runner::top::{Screen, Top};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{IsTerminal, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const EXAMPLES: &str = "Examples:
  partita top systems/two-debian.toml                    a table in place, on a terminal
  partita top systems/two-debian.toml --interval 1000    each over a second of machine time
  partita top systems/exercises.toml | tee tables.txt    one table below the other, in a pipe

q or Ctrl-C ends it. What a column means:
  of a hart      part of one hart's time that the vCPU had, or that the hart was idle
  exits/s        times that the vCPU left the guest, per second of machine time
  dispatches/s   times that it was given a hart
  spins/s        times that it waited at WRS";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TopArguments {
    #[command(flatten)]
    watched: Watched,
    /// How much machine time lies between two tables. On a terminal, what is there so far is shown every second of this
    /// computer's time too
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    interval: u64,
}

/// How often a terminal is written to at least.
const REFRESH: Duration = Duration::from_secs(1);
/// Parts of the time between two tables, after each of which the clock is looked at.
const PARTS: u64 = 50;

/// Listens to the user's keys: `q` raises both flags, Ctrl-C, which is a key like others then, the first.
fn listen(
    live: bool,
    stop: &Arc<AtomicBool>,
    asked: &Arc<AtomicBool>,
) -> Result<Option<RawTerminal>, Failure> {
    const CONTROL_C: u8 = 3;
    if !live || !std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let terminal = RawTerminal::enter().map_err(|error| Failure::Host("the terminal", error))?;
    let (stop, asked) = (stop.clone(), asked.clone());
    std::thread::spawn(move || {
        for key in std::io::stdin().lock().bytes() {
            match key {
                Ok(b'q') => asked.store(true, Ordering::Relaxed),
                Ok(CONTROL_C) => {}
                Ok(_) => continue,
                Err(_) => return,
            }
            stop.store(true, Ordering::Relaxed);
        }
    });
    Ok(Some(terminal))
}

/// Shows who has the harts while a system runs.
pub(super) fn execute(arguments: &TopArguments) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::Host("signals", error))?;
    }
    let Bench {
        mut run,
        vms,
        limits: most,
        hertz,
    } = boot(&arguments.watched)?;
    let top = Top::default();
    run.machine.listen(Box::new(top.clone()));
    let every = (u128::from(arguments.interval) * u128::from(hertz) / 1000).max(1);
    let every = u64::try_from(every).unwrap_or(u64::MAX);
    let live = std::io::stdout().is_terminal();
    let asked = Arc::new(AtomicBool::new(false));
    let _terminal = listen(live, &stop, &asked)?;
    let (begun, mut shown) = (Instant::now(), Instant::now());
    let mut due = run.machine.now().saturating_add(every);
    let mut last = String::new();
    loop {
        let step = run.machine.now().saturating_add((every / PARTS).max(1));
        let limits = Limits {
            cycles: Some(step.min(due)),
            stop: Some(&stop),
            ..Limits::default()
        };
        let end = run.follow(&limits, &mut |line| last = String::from(line));
        let now = run.machine.now();
        let ended = end != machine::Stop::Limit;
        let broken_off = stop.load(Ordering::Relaxed);
        let refresh = live && shown.elapsed() >= REFRESH;
        if now >= due || refresh || ended || broken_off {
            let table = top.table(now, &vms, hertz);
            let seconds = now as f64 / hertz as f64;
            let text = format!("{seconds:.3} s of machine time\n\n{table}\n{last}\n");
            let screen = Screen::of_terminal();
            let written = {
                let mut out = std::io::stdout().lock();
                let text = if live {
                    screen.fit(&format!("q ends this. {text}"))
                } else {
                    Screen::plain(&text)
                };
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            };
            match written {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    let error =
                        std::io::Error::new(error.kind(), format!("standard output: {error}"));
                    return Err(Failure::Unshown(error));
                }
                Ok(()) if !ended => {}
                // A reader that has gone wants no more.
                _ => return Ok(()),
            }
            due = now.saturating_add(every);
            shown = Instant::now();
        }
        if asked.load(Ordering::Relaxed) {
            return Ok(());
        }
        if broken_off {
            return Err(Failure::Interrupted);
        }
        if most.reached(now, begun) {
            let why = String::from("its time-limit or --timeout was reached");
            return Err(Failure::TimeLimit(why));
        }
    }
}
