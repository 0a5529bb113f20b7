//! Reports written and read back.

use super::*;
use proptest::prelude::*;
use std::string::String;
use std::vec::Vec;

prop_compose! {
    fn counters()(
        numbers in prop::array::uniform5(any::<u64>()),
        exits in prop::collection::vec(
            (prop::sample::select(&ExitCause::ALL[..]), 1..u64::MAX >> 8, any::<u32>()),
            0..6,
        ),
        events in prop::collection::vec(
            (prop::sample::select(&Event::ALL[..]), 1..u64::MAX >> 8),
            0..6,
        ),
    ) -> WorkCounters {
        let [guest, scheduling, dispatches, calls, injected] = numbers;
        let mut counters = WorkCounters {
            guest: Cycles(guest),
            scheduling: Cycles(scheduling),
            dispatches,
            calls,
            injected,
            ..WorkCounters::new()
        };
        for (cause, count, cycles) in exits {
            counters.add_exits(cause, count, Cycles(cycles.into()));
        }
        for (event, count) in events {
            counters.add_events(event, count);
        }
        counters
    }
}

prop_compose! {
    fn vm()(
        id in any::<u8>(),
        name in "[a-z][a-z0-9_-]{0,30}".prop_filter("reserved", |name| name != "partita"),
        state in prop::sample::select(&VmState::ALL[..]),
        reason in prop::sample::select(&StopReason::ALL[..]),
        restarts in any::<u64>(),
    ) -> VmRecord {
        VmRecord { vm: VmId(id), name: VmName::new(&name).unwrap(), state, stop_reason: reason, restarts }
    }
}

/// A report as text, and what it should be read as.
fn written(vms: &[VmRecord], work: &[(VmId, HartId, WorkCounters)]) -> (String, Vec<Record>) {
    let header = Header {
        timebase: 10_000_000,
        elapsed: Ticks(u64::MAX),
    };
    let idle = HartCounters {
        elapsed: Cycles(9),
        idle: Cycles(5),
        scheduling: Cycles(1),
    };
    let mut expected = Vec::from([Record::Begin(header)]);
    let mut text = String::new();
    let mut report = Report::default();
    report.begin(&mut text, header).unwrap();
    for vm in vms {
        report.vm(&mut text, vm).unwrap();
        expected.push(Record::Vm(*vm));
    }
    report.hart(&mut text, HartId(3), &idle).unwrap();
    expected.push(Record::Hart(HartRecord {
        hart: HartId(3),
        counters: idle,
    }));
    for (vm, hart, counters) in work {
        let mut line = WorkLine::FIRST;
        let mut lines = text.lines().count();
        while let Some(next) = report
            .work(&mut text, (*vm, *hart), counters, line)
            .unwrap()
        {
            line = next;
            lines += 1;
            assert_eq!(text.lines().count(), lines, "a line at a time");
        }
        if counters.is_zero() {
            continue;
        }
        let WorkCounters {
            guest,
            scheduling,
            dispatches,
            calls,
            injected,
            ..
        } = *counters;
        let (vm, hart) = (*vm, *hart);
        expected.push(Record::Work(WorkRecord {
            vm,
            hart,
            guest,
            scheduling,
            dispatches,
            calls,
            injected,
        }));
        for cause in ExitCause::ALL {
            let (count, cycles) = (counters.exits(cause), counters.simulation(cause));
            if count != 0 || cycles != Cycles(0) {
                expected.push(Record::Exits(ExitsRecord {
                    vm,
                    hart,
                    cause,
                    count,
                    cycles,
                }));
            }
        }
        for event in Event::ALL {
            let count = counters.events(event);
            if count != 0 {
                expected.push(Record::Events(EventsRecord {
                    vm,
                    hart,
                    event,
                    count,
                }));
            }
        }
    }
    report.end(&mut text).unwrap();
    expected.push(Record::End);
    (text, expected)
}

fn read(text: &str) -> Result<Vec<Record>, MonitorError> {
    let mut reader = Reader::new();
    text.lines()
        .filter_map(|line| reader.line(line).transpose())
        .collect()
}

fn work() -> impl Strategy<Value = Vec<(VmId, HartId, WorkCounters)>> {
    prop::collection::vec(
        (
            any::<u8>().prop_map(VmId),
            any::<u32>().prop_map(HartId),
            counters(),
        ),
        0..4,
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(vms in prop::collection::vec(vm(), 0..4), work in work()) {
        let (text, expected) = written(&vms, &work);
        prop_assert_eq!(read(&text), Ok(expected));
    }

    #[test]
    fn other_lines_do_no_harm(
        work in work(),
        others in prop::collection::vec(("[ -~]{0,30}\r?", any::<prop::sample::Index>()), 0..8),
    ) {
        let (text, expected) = written(&[], &work);
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        for (other, position) in others {
            lines.insert(position.index(lines.len() + 1), std::format!("[web] {other}"));
        }
        prop_assert_eq!(read(&lines.join("\r\n")), Ok(expected));
    }

    #[test]
    fn a_lost_line_is_noticed(work in work(), lost in any::<prop::sample::Index>()) {
        let (text, _) = written(&[], &work);
        let mut lines: Vec<&str> = text.lines().collect();
        // Without its last line a report has simply not ended.
        let lost = lost.index(lines.len() - 1);
        lines.remove(lost);
        let problem = read(&lines.join("\n")).unwrap_err().problem;
        let said = lines.len() as u64 + 1;
        let expected = match lost {
            0 => LineProblem::NotBegun,
            _ => LineProblem::Lost { said, seen: said - 1 },
        };
        prop_assert_eq!(problem, expected);
    }

    #[test]
    fn a_changed_byte_never_panics(
        work in work(),
        position in any::<prop::sample::Index>(),
        byte in 0u8..128,
    ) {
        let (text, _) = written(&[], &work);
        let mut bytes = text.into_bytes();
        let position = position.index(bytes.len());
        bytes[position] = byte;
        let _ = read(&String::from_utf8(bytes).unwrap());
    }
}

#[test]
fn mistakes_name_the_line_and_the_field() {
    let cases = [
        (
            "begin version=2 timebase=1 elapsed=1",
            LineProblem::Version(2),
        ),
        (
            "begin version=1 timebase=0 elapsed=1",
            LineProblem::Value("timebase"),
        ),
        ("begin version=1 elapsed=1", LineProblem::Field("timebase")),
        (
            "begin version=1 timebase=1 elapsed=01",
            LineProblem::Value("elapsed"),
        ),
        (
            "begin version=1 timebase=1 elapsed=+1",
            LineProblem::Value("elapsed"),
        ),
        (
            "begin version=1 timebase=1 elapsed=1 x=1",
            LineProblem::Rest,
        ),
        ("begin version=1 timebase=1 elapsed=1 ", LineProblem::Rest),
        (
            "begin version=1 timebase=1 elapsed=99999999999999999999",
            LineProblem::Value("elapsed"),
        ),
        ("start", LineProblem::UnknownKind),
        ("end lines=1", LineProblem::NotBegun),
        (
            "hart id=4294967296 elapsed=1 idle=1 scheduling=1",
            LineProblem::Value("id"),
        ),
        (
            "vm id=0 name=a] state=running reason=none restarts=0",
            LineProblem::Value("name"),
        ),
        (
            "exits vm=0 hart=0 cause=boredom count=1 cycles=1",
            LineProblem::Value("cause"),
        ),
    ];
    for (line, problem) in cases {
        let text = std::format!("hello\n{PREFIX}{line}\n");
        assert_eq!(
            read(&text),
            Err(MonitorError { line: 2, problem }),
            "{line}"
        );
    }
    let begin = std::format!("{PREFIX}begin version=1 timebase=1 elapsed=1\n");
    let twice = std::format!("{begin}{begin}");
    assert_eq!(
        read(&twice),
        Err(MonitorError {
            line: 2,
            problem: LineProblem::NotEnded
        })
    );
}

#[test]
fn words_are_unique_and_read_back() {
    for (index, cause) in ExitCause::ALL.into_iter().enumerate() {
        assert_eq!(cause.index(), index);
        assert_eq!(ExitCause::from_name(cause.name()), Some(cause));
    }
    for reason in StopReason::ALL {
        assert_eq!(StopReason::from_name(reason.name()), Some(reason));
    }
}

#[test]
fn counters_add_up() {
    let mut one = WorkCounters::new();
    one.exit(ExitCause::Wfi, Cycles(10));
    one.exit(ExitCause::Wfi, Cycles(5));
    one.exit(ExitCause::Csr, Cycles(1));
    let mut sum = one;
    sum.add(&one);
    assert_eq!(
        (sum.exits(ExitCause::Wfi), sum.simulation(ExitCause::Wfi)),
        (4, Cycles(30))
    );
    assert_eq!(
        (sum.exits(ExitCause::Csr), sum.simulation(ExitCause::Csr)),
        (2, Cycles(2))
    );
    assert_eq!(sum.exits(ExitCause::Other), 0);
}
