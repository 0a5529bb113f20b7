//! From counters to lines.

use super::{
    Cycles, Event, ExitCause, HartCounters, HartId, Header, PREFIX, VERSION, VmId, VmRecord,
    WorkCounters,
};
use core::fmt::{self, Write};

/// A report that is being written, a line at a time: the writer may do other work between any two lines. Each line is one call of
/// [`Write::write_fmt`], so that a console that takes a lock per call cannot tear it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    lines: u64,
}

/// Line about what a hart did for a VM: the totals, the exits of a cause, or an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkLine(usize);

impl WorkLine {
    /// The totals, which stand before all others.
    pub const FIRST: Self = Self(0);
}

impl Report {
    /// Writes the first line.
    ///
    /// # Errors
    /// Those of `console`, here and below.
    pub fn begin(&mut self, console: &mut dyn Write, header: Header) -> fmt::Result {
        let Header { timebase, elapsed } = header;
        self.line(
            console,
            format_args!("begin version={VERSION} timebase={timebase} elapsed={elapsed}"),
        )
    }

    fn line(&mut self, console: &mut dyn Write, fields: fmt::Arguments<'_>) -> fmt::Result {
        self.lines += 1;
        console.write_fmt(format_args!("{PREFIX}{fields}\n"))
    }

    /// Writes a VM.
    pub fn vm(&mut self, console: &mut dyn Write, record: &VmRecord) -> fmt::Result {
        let VmRecord {
            vm,
            name,
            state,
            stop_reason: reason,
            restarts,
        } = record;
        self.line(
            console,
            format_args!(
                "vm id={vm} name={name} state={state} reason={reason} restarts={restarts}"
            ),
        )
    }

    /// Writes a hart.
    pub fn hart(
        &mut self,
        console: &mut dyn Write,
        hart: HartId,
        counters: &HartCounters,
    ) -> fmt::Result {
        let HartCounters {
            elapsed,
            idle,
            scheduling,
        } = counters;
        self.line(
            console,
            format_args!("hart id={hart} elapsed={elapsed} idle={idle} scheduling={scheduling}"),
        )
    }

    /// Writes a line about what a hart did for a VM: the first one, from `from` on, that there is something to say in. Returns the line behind it;
    /// `None` if nothing was left to write.
    pub fn work(
        &mut self,
        console: &mut dyn Write,
        (vm, hart): (VmId, HartId),
        counters: &WorkCounters,
        from: WorkLine,
    ) -> Result<Option<WorkLine>, fmt::Error> {
        let WorkLine(mut place) = from;
        loop {
            let next = Ok(Some(WorkLine(place + 1)));
            let of_event = place.checked_sub(1 + ExitCause::COUNT);
            if let Some(number) = of_event {
                let Some(event) = Event::ALL.get(number).copied() else {
                    return Ok(None);
                };
                let count = counters.events(event);
                if count != 0 {
                    self.line(
                        console,
                        format_args!("events vm={vm} hart={hart} event={event} count={count}"),
                    )?;
                    return next;
                }
            } else if let Some(cause) = place
                .checked_sub(1)
                .and_then(|number| ExitCause::ALL.get(number).copied())
            {
                let (count, cycles) = (counters.exits(cause), counters.simulation(cause));
                // What is done for a VM while another one's exit is handled is its own, without an exit of its own.
                if count != 0 || cycles != Cycles(0) {
                    self.line(
                        console,
                        format_args!(
                            "exits vm={vm} hart={hart} cause={cause} count={count} cycles={cycles}"
                        ),
                    )?;
                    return next;
                }
            } else if counters.is_zero() {
                return Ok(None);
            } else {
                self.totals(console, (vm, hart), counters)?;
                return next;
            }
            place += 1;
        }
    }

    fn totals(
        &mut self,
        console: &mut dyn Write,
        (vm, hart): (VmId, HartId),
        counters: &WorkCounters,
    ) -> fmt::Result {
        let WorkCounters {
            guest,
            scheduling,
            dispatches,
            calls,
            injected,
            ..
        } = counters;
        self.line(
            console,
            format_args!(
                "work vm={vm} hart={hart} guest={guest} scheduling={scheduling} \
                 dispatches={dispatches} calls={calls} injected={injected}"
            ),
        )
    }

    /// Writes the last line.
    pub fn end(mut self, console: &mut dyn Write) -> fmt::Result {
        let lines = self.lines + 1;
        self.line(console, format_args!("end lines={lines}"))
    }
}
