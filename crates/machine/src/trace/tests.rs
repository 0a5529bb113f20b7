//! A program of which every event is known.

use std::sync::{Arc, Mutex};

use super::{Event, Happening, Place, Sink, Timeline, WaitEnd};
use crate::base::Fence;
use crate::base::{Cause, Exception, Mode};
use crate::base::{HartId, Memory};
use crate::machine::{Config, Limit, Machine, Stop};

const RAM: u64 = 0x8000_0000;
const HANDLER: u64 = 0x40;
const CALL: u64 = 0x0c;

const PROGRAM: [(u64, u32); 12] = [
    (0x00, 0x0000_0297),    // auipc x5, 0
    (0x04, 0x0402_8293),    // addi x5, x5, 0x40
    (0x08, 0x3052_9073),    // csrw mtvec, x5
    (CALL, 0x0000_0073),    // ecall
    (0x10, 0x1002_b3af),    // lr.d x7, (x5)
    (0x14, 0x01d0_0073),    // wrs.sto
    (0x18, 0x1200_0073),    // sfence.vma
    (0x1c, 0x1050_0073),    // wfi
    (HANDLER, 0x3410_2373), // csrr x6, mepc
    (0x44, 0x0043_0313),    // addi x6, x6, 4
    (0x48, 0x3413_1073),    // csrw mepc, x6
    (0x4c, 0x3020_0073),    // mret
];

fn machine() -> Machine {
    let mut config = Config::default();
    config.board.memory = 4 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    for (offset, word) in PROGRAM {
        let stored = machine
            .system
            .memory
            .store(RAM + offset, &u32::to_le_bytes(word));
        stored.expect("RAM");
    }
    machine.harts[0].pc = RAM;
    machine
}

fn finish(machine: &mut Machine) {
    let limit = Limit {
        instructions: None,
        cycles: Some(10_000),
    };
    assert_eq!(machine.run(limit), Stop::Idle);
}

#[derive(Debug, Clone, Default)]
struct Keep(Arc<Mutex<Vec<Event>>>);

impl Sink for Keep {
    fn event(&mut self, event: &Event) {
        self.0.lock().expect("one thread").push(*event);
    }
}

#[test]
fn everything_that_happens_is_told_in_order() {
    let kept = Keep::default();
    let mut machine = machine();
    machine.listen(Box::new(kept.clone()));
    finish(&mut machine);
    machine.stop_listening().expect("kept");
    let events = kept.0.lock().expect("one thread");
    let (mode, vmid) = (Mode::MACHINE, 0);
    let happenings: Vec<_> = events.iter().map(|event| event.happening).collect();
    let expected = [
        Happening::Mode { mode, vmid },
        Happening::Exception {
            exception: Exception::new(Cause::CallFromMachine, 0),
            from: mode,
            to: mode,
            pc: RAM + CALL,
            vmid,
        },
        Happening::Return {
            from: mode,
            to: mode,
            pc: RAM + CALL + 4,
            vmid,
        },
        Happening::WaitForStore {
            mode,
            physical: RAM + HANDLER,
            deadline: events[3].cycles + machine.config().limits.wrs_sto,
        },
        Happening::Word {
            mode,
            physical: RAM + HANDLER,
            value: u64::from_le_bytes([0x73, 0x23, 0x10, 0x34, 0x13, 0x03, 0x43, 0x00]),
            stored: false,
        },
        Happening::Wake { end: WaitEnd::Time },
        Happening::Fence {
            fence: Fence::Supervisor {
                address: None,
                asid: None,
            },
            mode,
        },
        Happening::WaitForInterrupt { mode },
    ];
    assert_eq!(happenings, expected);
    assert!(events.iter().all(|e| e.place == Place::Hart(HartId(0))));
    assert!(events.is_sorted_by_key(|event| event.cycles));
    // Three instructions come before the call.
    assert_eq!(events[1].cycles, 3);
}

/// Output of a timeline, shared with the test.
#[derive(Debug, Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Page {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("one thread").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn timelines_are_json_with_nested_slices() {
    let page = Page::default();
    let mut machine = machine();
    let timeline = Timeline::new(page.clone(), machine.clock());
    machine.listen(Box::new(timeline));
    finish(&mut machine);
    machine.stop_listening().expect("written");
    let text = page.0.lock().expect("one thread");
    let file: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let events = file["traceEvents"].as_array().expect("a list");
    let of_kind = |kind: &str| events.iter().filter(|e| e["ph"] == kind).count();
    // The mode three times, and two waits.
    assert_eq!((of_kind("B"), of_kind("E")), (5, 5));
    let mut depth = 0_i32;
    for event in events {
        depth += i32::from(event["ph"] == "B") - i32::from(event["ph"] == "E");
        assert!((0..=2).contains(&depth), "{event}");
    }
    let call = events.iter().find(|e| e["name"] == "call-from-machine");
    let call = call.expect("the call");
    // Three cycles at 1 GHz are three nanoseconds.
    assert_eq!(
        (call["ts"].as_f64(), call["args"]["cycles"].as_u64()),
        (Some(0.003), Some(3))
    );
    assert_eq!(call["args"]["pc"], "0x8000000c");
}
