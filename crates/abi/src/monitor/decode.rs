//! From lines to records.

use super::{
    Cycles, Event, EventsRecord, ExitCause, ExitsRecord, HartCounters, HartId, HartRecord, Header,
    PREFIX, StopReason, Ticks, VERSION, VmId, VmName, VmRecord, VmState, WorkRecord,
};
use core::fmt;

/// One line of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The report begins.
    Begin(Header),
    /// A VM.
    Vm(VmRecord),
    /// A hart.
    Hart(HartRecord),
    /// Work of a hart for a VM.
    Work(WorkRecord),
    /// Exits of one cause on one hart by one VM's vCPUs.
    Exits(ExitsRecord),
    /// Count of an event on one hart, for one VM's vCPUs.
    Events(EventsRecord),
    /// The report has ended and is whole.
    End,
}

/// Mistake in a line of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineProblem {
    /// A kind of line that is not known.
    UnknownKind,
    /// This field should come next and does not.
    Field(&'static str),
    /// Malformed value of this field.
    Value(&'static str),
    /// Text after the last field.
    Rest,
    /// The report is of another version.
    Version(u64),
    /// The line stands outside of a report.
    NotBegun,
    /// A report begins before the last one has ended.
    NotEnded,
    /// Lines have been lost.
    Lost {
        /// Lines by the report's own count.
        said: u64,
        /// Lines that were read.
        seen: u64,
    },
}

impl fmt::Display for LineProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind => write!(f, "no such kind of line is known"),
            Self::Field(name) => write!(f, "the field {name} should come next"),
            Self::Value(name) => write!(f, "the value of the field {name} is not one"),
            Self::Rest => write!(f, "there is more after the last field"),
            Self::Version(found) => {
                write!(
                    f,
                    "the report is of version {found}, and version {VERSION} is understood"
                )
            }
            Self::NotBegun => write!(f, "no report has begun"),
            Self::NotEnded => write!(f, "a report begins before the last one has ended"),
            Self::Lost { said, seen } => {
                write!(
                    f,
                    "the report should have {said} lines, and {seen} were seen"
                )
            }
        }
    }
}

/// A bad line in what the console carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorError {
    /// The line's number, from 1, among all lines that the reader was given.
    pub line: u64,
    /// The mistake.
    pub problem: LineProblem,
}

impl fmt::Display for MonitorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: monitor's report: {}", self.line, self.problem)
    }
}

impl core::error::Error for MonitorError {}

/// Reads reports out of the lines of a console.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    /// Lines given so far.
    line: u64,
    /// Lines of the report that has begun, zero outside of one.
    seen: u64,
}

impl Reader {
    /// A reader that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the console's next line, with or without its line end. `None` if it is not a report's.
    ///
    /// # Errors
    /// The line is a report's and is bad. The report that has begun is then given up; the next `begin` is
    /// taken again.
    pub fn line(&mut self, line: &str) -> Result<Option<Record>, MonitorError> {
        self.line += 1;
        let Some(fields) = line.strip_prefix(PREFIX) else {
            return Ok(None);
        };
        let result = parse(fields.trim_end_matches(['\r', '\n'])).and_then(|line| self.step(line));
        if result.is_err() {
            self.seen = 0;
        }
        result.map(Some).map_err(|problem| MonitorError {
            line: self.line,
            problem,
        })
    }

    /// Returns true while a report has begun and not ended.
    pub fn is_inside(&self) -> bool {
        self.seen != 0
    }

    fn step(&mut self, line: Line) -> Result<Record, LineProblem> {
        match line {
            Line::Record(Record::Begin(_)) if self.seen != 0 => Err(LineProblem::NotEnded),
            Line::Record(record @ Record::Begin(_)) => {
                self.seen = 1;
                Ok(record)
            }
            _ if self.seen == 0 => Err(LineProblem::NotBegun),
            Line::Record(record) => {
                self.seen += 1;
                Ok(record)
            }
            Line::End { lines } => {
                let seen = self.seen + 1;
                self.seen = 0;
                if lines != seen {
                    return Err(LineProblem::Lost { said: lines, seen });
                }
                Ok(Record::End)
            }
        }
    }
}

/// A line by itself.
enum Line {
    Record(Record),
    End { lines: u64 },
}

/// The fields of a line that have not been read.
struct Fields<'a> {
    rest: core::str::Split<'a, char>,
}

impl<'a> Fields<'a> {
    fn value<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&'a str) -> Option<T>,
    ) -> Result<T, LineProblem> {
        let field = self.rest.next().ok_or(LineProblem::Field(name))?;
        let value = field
            .strip_prefix(name)
            .and_then(|value| value.strip_prefix('='));
        read(value.ok_or(LineProblem::Field(name))?).ok_or(LineProblem::Value(name))
    }

    fn number(&mut self, name: &'static str) -> Result<u64, LineProblem> {
        self.value(name, number)
    }

    fn cycles(&mut self, name: &'static str) -> Result<Cycles, LineProblem> {
        self.number(name).map(Cycles)
    }

    fn vm(&mut self, name: &'static str) -> Result<VmId, LineProblem> {
        self.value(name, |text| Some(VmId(u8::try_from(number(text)?).ok()?)))
    }

    fn hart(&mut self, name: &'static str) -> Result<HartId, LineProblem> {
        self.value(name, |text| {
            Some(HartId(u32::try_from(number(text)?).ok()?))
        })
    }
}

/// A decimal number as the encoder writes it: digits alone, no leading zero.
fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if !digits || leading_zero {
        return None;
    }
    text.parse().ok()
}

fn parse(line: &str) -> Result<Line, LineProblem> {
    let mut fields = Fields {
        rest: line.split(' '),
    };
    let record = match fields.rest.next() {
        Some("begin") => {
            let version = fields.number("version")?;
            if version != VERSION {
                return Err(LineProblem::Version(version));
            }
            Record::Begin(Header {
                timebase: fields.value("timebase", |text| number(text).filter(|hz| *hz != 0))?,
                elapsed: Ticks(fields.number("elapsed")?),
            })
        }
        Some("vm") => Record::Vm(VmRecord {
            vm: fields.vm("id")?,
            name: fields.value("name", VmName::new)?,
            state: fields.value("state", VmState::from_name)?,
            stop_reason: fields.value("reason", StopReason::from_name)?,
            restarts: fields.number("restarts")?,
        }),
        Some("hart") => Record::Hart(HartRecord {
            hart: fields.hart("id")?,
            counters: HartCounters {
                elapsed: fields.cycles("elapsed")?,
                idle: fields.cycles("idle")?,
                scheduling: fields.cycles("scheduling")?,
            },
        }),
        Some("work") => Record::Work(WorkRecord {
            vm: fields.vm("vm")?,
            hart: fields.hart("hart")?,
            guest: fields.cycles("guest")?,
            scheduling: fields.cycles("scheduling")?,
            dispatches: fields.number("dispatches")?,
            calls: fields.number("calls")?,
            injected: fields.number("injected")?,
        }),
        Some("exits") => Record::Exits(ExitsRecord {
            vm: fields.vm("vm")?,
            hart: fields.hart("hart")?,
            cause: fields.value("cause", ExitCause::from_name)?,
            count: fields.number("count")?,
            cycles: fields.cycles("cycles")?,
        }),
        Some("events") => Record::Events(EventsRecord {
            vm: fields.vm("vm")?,
            hart: fields.hart("hart")?,
            event: fields.value("event", Event::from_name)?,
            count: fields.value("count", |text| number(text).filter(|count| *count != 0))?,
        }),
        Some("end") => {
            let lines = fields.number("lines")?;
            return match fields.rest.next() {
                None => Ok(Line::End { lines }),
                Some(_) => Err(LineProblem::Rest),
            };
        }
        _ => return Err(LineProblem::UnknownKind),
    };
    match fields.rest.next() {
        None => Ok(Line::Record(record)),
        Some(_) => Err(LineProblem::Rest),
    }
}
