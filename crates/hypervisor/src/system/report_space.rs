//! A report of the performance monitor that is written line by line, and the room for what it is made of.

use alloc::vec::Vec;
use core::fmt::{self, Write};

use abi::monitor::{HartCounters, HartId, Header, Report, VmRecord, WorkCounters, WorkLine};

/// Records and counters of a report. They are reserved when the system is assembled, so that a report allocates nothing: the last one is printed
/// when a guest powers off.
#[derive(Debug)]
pub struct ReportSpace {
    pub vms: Vec<VmRecord>,
    /// Counters of one hart.
    pub work: Vec<WorkCounters>,
    /// The report that the operator has asked for, while it is being written.
    pub pending: Option<ReportWriter>,
}

impl ReportSpace {
    /// Room for so many VMs.
    #[must_use]
    pub fn new(vms: usize) -> Self {
        Self {
            vms: Vec::with_capacity(vms),
            work: Vec::with_capacity(vms),
            pending: None,
        }
    }

    /// Writes the next line of `writer`'s report, whose counters of a hart `read` reads. Returns false if the report has ended.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn next_line(
        &mut self,
        writer: &mut ReportWriter,
        read: ReadHart<'_>,
        out: &mut dyn Write,
    ) -> Result<bool, fmt::Error> {
        let ReportWriter {
            header,
            report,
            next,
        } = writer;
        loop {
            *next = match *next {
                Next::Begin => {
                    report.begin(out, *header)?;
                    *next = Next::Vm(0);
                    return Ok(true);
                }
                Next::Vm(number) => match self.vms.get(number) {
                    Some(vm) => {
                        report.vm(out, vm)?;
                        *next = Next::Vm(number + 1);
                        return Ok(true);
                    }
                    None => Next::Hart(0),
                },
                Next::Hart(number) => match read(number, &mut self.work) {
                    Some((id, own)) => {
                        report.hart(out, id, &own)?;
                        *next = Next::Work((number, id), 0, WorkLine::FIRST);
                        return Ok(true);
                    }
                    None => Next::End,
                },
                Next::Work(hart, number, line) => {
                    match (self.vms.get(number), self.work.get(number)) {
                        (Some(VmRecord { vm, .. }), Some(counters)) => {
                            match report.work(out, (*vm, hart.1), counters, line)? {
                                Some(line) => {
                                    *next = Next::Work(hart, number, line);
                                    return Ok(true);
                                }
                                None => Next::Work(hart, number + 1, WorkLine::FIRST),
                            }
                        }
                        _ => Next::Hart(hart.0 + 1),
                    }
                }
                Next::End => {
                    report.end(out)?;
                    *next = Next::Nothing;
                    return Ok(true);
                }
                Next::Nothing => return Ok(false),
            };
        }
    }
}

/// Reads the counters of a hart, by its place, into room for those for each VM. `None` behind the last hart.
pub type ReadHart<'a> = &'a dyn Fn(usize, &mut Vec<WorkCounters>) -> Option<(HartId, HartCounters)>;

/// A report and how far it is written.
#[derive(Debug)]
pub struct ReportWriter {
    header: Header,
    report: Report,
    next: Next,
}

/// Line that is to be written next.
#[derive(Clone, Copy, Debug)]
enum Next {
    Begin,
    /// The VM at this place.
    Vm(usize),
    /// The hart at this place.
    Hart(usize),
    /// A line of the hart, by its place and id, about the VM at a place.
    Work((usize, HartId), usize, WorkLine),
    End,
    Nothing,
}

impl ReportWriter {
    /// A report of which nothing is written.
    #[must_use]
    pub fn new(header: Header) -> Self {
        Self {
            header,
            report: Report::default(),
            next: Next::Begin,
        }
    }
}

#[cfg(test)]
mod tests {
    use abi::monitor::{
        Cycles, Event, ExitCause, Reader, Record, StopReason, Ticks, VmId, VmName, VmState,
    };

    use super::*;

    const VMS: u8 = 3;
    const HARTS: usize = 2;

    fn space() -> ReportSpace {
        let mut space = ReportSpace::new(usize::from(VMS));
        space.vms.extend((0..VMS).map(|vm| VmRecord {
            vm: VmId(vm),
            name: VmName::new(["a", "b", "c"][usize::from(vm)]).unwrap(),
            state: VmState::Running,
            stop_reason: StopReason::None,
            restarts: 0,
        }));
        space
    }

    /// The second VM has done nothing.
    fn read(hart: usize, work: &mut Vec<WorkCounters>) -> Option<(HartId, HartCounters)> {
        let own = HartCounters {
            elapsed: Cycles(9),
            idle: Cycles(2),
            scheduling: Cycles(1),
        };
        work.clear();
        work.extend((0..VMS).map(|vm| {
            let mut counters = WorkCounters::new();
            if vm != 1 {
                counters.exit(ExitCause::ALL[0], Cycles(3));
                counters.exit(ExitCause::ALL[ExitCause::COUNT - 1], Cycles(4));
                counters.add_events(Event::ALL[Event::COUNT - 1], 5);
            }
            counters
        }));
        (hart < HARTS).then_some((HartId(hart as u32), own))
    }

    #[test]
    fn each_step_writes_one_line() {
        let mut space = space();
        let header = Header {
            timebase: 1,
            elapsed: Ticks(7),
        };
        let mut writer = ReportWriter::new(header);
        let (mut reader, mut records) = (Reader::new(), Vec::new());
        let mut line = String::with_capacity(1000);
        loop {
            line.clear();
            let mut goes_on = Ok(false);
            let count = crate::heap::allocations(|| {
                goes_on = space.next_line(&mut writer, &read, &mut line);
            });
            assert_eq!(count, 0);
            if goes_on == Ok(false) {
                break;
            }
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            // Lines of others come between.
            assert_eq!(reader.line("[a] partita-monitor end lines=1"), Ok(None));
            records.push(reader.line(&line).unwrap().unwrap());
        }
        assert_eq!(line, "", "nothing is written behind the end");
        let of_hart = 1 + 2 * 4;
        assert_eq!(records.len(), 1 + usize::from(VMS) + HARTS * of_hart + 1);
        assert_eq!(records[0], Record::Begin(header));
        assert_eq!(records.last(), Some(&Record::End));
        let of_second =
            |record: &&Record| matches!(record, Record::Work(work) if work.vm == VmId(1));
        assert_eq!(records.iter().filter(of_second).count(), 0);
    }
}
