//! A recorder that hears a short story.

use super::*;
use machine::device::{Clock, HartId};
use machine::hart::{Cause, Exception, Mode};
use machine::trace::{Event, Happening, Place, Sink, WaitEnd};

/// A cycle is a nanosecond.
fn recorder(most: usize) -> Recorder {
    let window = Window {
        start: 0,
        end: 1_000_000,
        most,
    };
    let clock = Clock::new(1_000_000_000, 10_000_000);
    let vms = [(String::from("web"), 2), (String::from("db"), 1)];
    Recorder::new(window, clock, &vms)
}

fn at(cycles: u64, hart: u32, happening: Happening) -> Event {
    Event {
        place: Place::Hart(HartId(hart)),
        cycles,
        retired: 0,
        happening,
    }
}

fn enter(cycles: u64, hart: u32, vmid: u16) -> Event {
    let happening = Happening::Return {
        from: Mode::HYPERVISOR,
        to: Mode::VIRTUAL_SUPERVISOR,
        pc: 0,
        vmid,
    };
    at(cycles, hart, happening)
}

fn exit(cycles: u64, hart: u32, vmid: u16) -> Event {
    let happening = Happening::Exception {
        exception: Exception::new(Cause::VirtualInstruction, 0),
        from: Mode::VIRTUAL_SUPERVISOR,
        to: Mode::HYPERVISOR,
        pc: 0x8020_0000,
        vmid,
    };
    at(cycles, hart, happening)
}

fn wait(cycles: u64, hart: u32) -> Event {
    let happening = Happening::WaitForStore {
        mode: Mode::VIRTUAL_SUPERVISOR,
        physical: 0x9000_0000,
        deadline: 0,
    };
    at(cycles, hart, happening)
}

fn story(timeline: &Timeline, owner: &Owner) -> Vec<(u64, u64, SliceKind)> {
    let lane = timeline.lanes.iter().find(|lane| lane.owner == *owner);
    let slices = lane.map(|lane| lane.slices.as_slice()).unwrap_or_default();
    slices
        .iter()
        .map(|slice| (slice.start, slice.end, slice.kind))
        .collect()
}

#[test]
fn dispatches_exits_and_spins_are_distinguished() {
    let mut recorder = recorder(1000);
    let wake = Happening::Wake { end: WaitEnd::Time };
    for event in [
        enter(100, 0, 1),
        exit(200, 0, 1),
        enter(250, 0, 1),
        // It spins, gives the hart away, and another vCPU of the same VM gets it.
        wait(300, 0),
        at(400, 0, wake),
        exit(401, 0, 1),
        enter(500, 0, 2),
        exit(700, 0, 2),
        enter(800, 0, 1),
        exit(900, 0, 1),
        at(
            950,
            0,
            Happening::WaitForInterrupt {
                mode: Mode::HYPERVISOR,
            },
        ),
    ] {
        recorder.event(&event);
    }
    recorder.event(&at(
        1200,
        0,
        Happening::Wake {
            end: WaitEnd::Interrupt,
        },
    ));
    let timeline = recorder.timeline();
    let first = story(&timeline, &Owner::Vcpu(String::from("web"), 0));
    let expected = [
        (100, 401, SliceKind::Runs),
        (200, 250, SliceKind::Exit),
        (300, 401, SliceKind::Spins),
        (401, 800, SliceKind::SpinWait),
        (800, 900, SliceKind::Runs),
        (900, 1200, SliceKind::Waits),
    ];
    assert_eq!(first, expected);
    let second = story(&timeline, &Owner::Vcpu(String::from("web"), 1));
    assert_eq!(
        second,
        [(500, 700, SliceKind::Runs), (700, 1200, SliceKind::Waits)]
    );
    let hart = story(&timeline, &Owner::Hart(0));
    let expected = [
        (100, 401, SliceKind::Runs),
        (500, 700, SliceKind::Runs),
        (800, 900, SliceKind::Runs),
        (950, 1200, SliceKind::Idle),
    ];
    assert_eq!(hart, expected);
    assert_eq!(timeline.lengths(SliceKind::SpinWait), [399]);
    assert_eq!(timeline.lost, 0);
}

#[test]
fn a_timeline_has_an_end() {
    let mut recorder = recorder(3);
    for number in 0..100 {
        recorder.event(&enter(number * 100, 0, 1));
        recorder.event(&exit(number * 100 + 10, 0, 1));
        recorder.event(&enter(number * 100 + 50, 0, 3));
        recorder.event(&exit(number * 100 + 60, 0, 3));
    }
    // A VMID of no VM is not drawn, and breaks nothing.
    recorder.event(&enter(20_000, 0, 77));
    let timeline = recorder.timeline();
    let slices: usize = timeline.lanes.iter().map(|lane| lane.slices.len()).sum();
    assert_eq!(slices, 3);
    assert!(timeline.lost > 100);
}

#[test]
fn lock_is_followed_between_holders() {
    const WORD: u64 = 0x9000_0000;
    let mut recorder = recorder(1000);
    let word = |cycles, hart, value, stored| {
        let happening = Happening::Word {
            mode: Mode::VIRTUAL_SUPERVISOR,
            physical: WORD,
            value,
            stored,
        };
        at(cycles, hart, happening)
    };
    let wake = |cycles, hart| {
        let happening = Happening::Wake {
            end: WaitEnd::Store,
        };
        at(cycles, hart, happening)
    };
    for event in [
        enter(100, 0, 1),
        enter(100, 1, 2),
        // web vCPU 1 waits for a lock that web vCPU 0 has had since before the trace began.
        wait(200, 1),
        word(200, 1, 2 << 16, false),
        word(300, 0, 2 << 16 | 1, true),
        wake(301, 1),
        // It has drawn its ticket unheard, too; the next one has not.
        word(400, 0, 3 << 16 | 1, true),
        wait(410, 0),
        word(500, 1, 3 << 16 | 2, true),
        wake(501, 0),
        word(700, 0, 3 << 16 | 3, true),
        exit(800, 0, 1),
    ] {
        recorder.event(&event);
    }
    let timeline = recorder.timeline();
    let lock = story(&timeline, &Owner::Lock(WORD));
    assert_eq!(lock, [(500, 700, SliceKind::Holds)]);
    let lane = timeline
        .lanes
        .iter()
        .find(|lane| lane.owner == Owner::Lock(WORD));
    assert_eq!(lane.unwrap().slices[0].name, "web vCPU 0");
    assert_eq!(timeline.lengths(SliceKind::Holds), [200]);
}

#[test]
fn arrow_leads_from_device_to_handler() {
    let mut recorder = recorder(1000);
    let device = |cycles, happening| Event {
        place: Place::Devices,
        cycles,
        retired: 0,
        happening,
    };
    let source = 9;
    let interrupt = Happening::Interrupt {
        code: 9,
        from: Mode::VIRTUAL_SUPERVISOR,
        to: Mode::VIRTUAL_SUPERVISOR,
        pc: 0x8020_0000,
        vmid: 3,
        guest_file: 2,
    };
    for event in [
        enter(100, 0, 3),
        device(
            200,
            Happening::Line {
                source,
                level: true,
            },
        ),
        device(
            200,
            Happening::Message {
                hart: HartId(0),
                file: machine::device::InterruptFile::Guest(2),
                identity: 4,
            },
        ),
        at(260, 0, interrupt),
        exit(300, 0, 3),
    ] {
        recorder.event(&event);
    }
    let timeline = recorder.timeline();
    let flows = |owner: &Owner| {
        let lane = timeline.lanes.iter().find(|lane| lane.owner == *owner);
        let marks = lane.unwrap().marks.iter();
        marks
            .flat_map(|mark| mark.flows.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(flows(&Owner::Devices), [Flow::From(1)]);
    assert_eq!(flows(&Owner::Vcpu(String::from("db"), 0)), [Flow::To(1)]);
    assert_eq!(timeline.deliveries, [60]);
}

/// Each exit of a pause loop is a mark, and a vCPU that leaves its hart at one waits for the loop's word.
#[test]
fn pause_loop_exits_are_marks_and_spins() {
    let mut recorder = recorder(1000);
    let pause = |cycles| {
        let happening = Happening::PauseLoop {
            mode: Mode::VIRTUAL_SUPERVISOR,
            pc: 0x8020_0000,
            physical: Some(0x9000_0000),
        };
        at(cycles, 0, happening)
    };
    for event in [
        enter(100, 0, 1),
        pause(200),
        exit(201, 0, 1),
        enter(250, 0, 1),
        pause(400),
        exit(401, 0, 1),
        enter(500, 0, 2),
        // Much later it comes back, does something else, and is preempted.
        enter(30_000, 0, 1),
        exit(90_000, 0, 1),
        enter(90_100, 0, 2),
    ] {
        recorder.event(&event);
    }
    let timeline = recorder.timeline();
    let owner = Owner::Vcpu(String::from("web"), 0);
    let spins: Vec<_> = story(&timeline, &owner)
        .into_iter()
        .filter(|(_, _, kind)| matches!(kind, SliceKind::Spins | SliceKind::SpinWait))
        .collect();
    assert_eq!(
        spins,
        [
            (200, 401, SliceKind::Spins),
            (401, 30_000, SliceKind::SpinWait)
        ]
    );
    let lane = timeline.lanes.iter().find(|lane| lane.owner == owner);
    let marks: Vec<u64> = (lane.unwrap().marks.iter()).map(|mark| mark.at).collect();
    assert_eq!(marks, [200, 400]);
}
