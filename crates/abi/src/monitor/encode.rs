//! From counters to lines.

use super::{
    Cycles, Event, ExitCause, HartCounters, HartId, Header, PREFIX, VERSION, VmId, VmRecord,
    WorkCounters,
};
use core::fmt::{self, Write};

/// A report that is being written. Each method writes whole lines, each in one call of
/// [`Write::write_fmt`], so that a console that takes a lock per call cannot tear them.
#[derive(Debug)]
pub struct Report<'w, W: Write> {
    console: &'w mut W,
    lines: u64,
}

impl<'w, W: Write> Report<'w, W> {
    /// Writes the first line.
    ///
    /// # Errors
    /// Those of `console`, here and below.
    pub fn begin(console: &'w mut W, header: Header) -> Result<Self, fmt::Error> {
        let mut report = Self { console, lines: 0 };
        let Header { timebase, elapsed } = header;
        report.line(format_args!(
            "begin version={VERSION} timebase={timebase} elapsed={elapsed}"
        ))?;
        Ok(report)
    }

    fn line(&mut self, fields: fmt::Arguments<'_>) -> fmt::Result {
        self.lines += 1;
        self.console.write_fmt(format_args!("{PREFIX}{fields}\n"))
    }

    /// Writes a VM.
    pub fn vm(&mut self, record: &VmRecord) -> fmt::Result {
        let VmRecord {
            vm,
            name,
            state,
            stop_reason: reason,
            restarts,
        } = record;
        self.line(format_args!(
            "vm id={vm} name={name} state={state} reason={reason} restarts={restarts}"
        ))
    }

    /// Writes a hart.
    pub fn hart(&mut self, hart: HartId, counters: &HartCounters) -> fmt::Result {
        let HartCounters {
            elapsed,
            idle,
            scheduling,
        } = counters;
        self.line(format_args!(
            "hart id={hart} elapsed={elapsed} idle={idle} scheduling={scheduling}"
        ))
    }

    /// Writes what a hart did for a VM: nothing if there is nothing, else the totals, the exits
    /// of each cause that occurred, and the other events.
    pub fn work(&mut self, vm: VmId, hart: HartId, counters: &WorkCounters) -> fmt::Result {
        if counters.is_zero() {
            return Ok(());
        }
        let WorkCounters {
            guest,
            scheduling,
            dispatches,
            calls,
            injected,
            ..
        } = counters;
        self.line(format_args!(
            "work vm={vm} hart={hart} guest={guest} scheduling={scheduling} \
             dispatches={dispatches} calls={calls} injected={injected}"
        ))?;
        for cause in ExitCause::ALL {
            let (count, cycles) = (counters.exits(cause), counters.simulation(cause));
            // What is done for a VM while another one's exit is handled is its own, without an exit of its own.
            if count != 0 || cycles != Cycles(0) {
                self.line(format_args!(
                    "exits vm={vm} hart={hart} cause={cause} count={count} cycles={cycles}"
                ))?;
            }
        }
        for event in Event::ALL {
            let count = counters.events(event);
            if count != 0 {
                self.line(format_args!(
                    "events vm={vm} hart={hart} event={event} count={count}"
                ))?;
            }
        }
        Ok(())
    }

    /// Writes the last line.
    pub fn end(mut self) -> fmt::Result {
        let lines = self.lines + 1;
        self.line(format_args!("end lines={lines}"))
    }
}
