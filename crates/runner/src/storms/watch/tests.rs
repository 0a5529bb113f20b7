//! Short stories of two harts and three vCPUs at one lock.

use super::*;
use machine::hart::{Cause, Exception};

const WORD: u64 = 0x9000_0000;
const GUEST: Mode = Mode::VIRTUAL_SUPERVISOR;

/// A cycle is a nanosecond.
fn watcher() -> Watcher {
    Watcher::new(Clock::new(1_000_000_000, 10_000_000), Runs::Hypervisor)
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
        to: GUEST,
        pc: 0,
        vmid,
    };
    at(cycles, hart, happening)
}

fn exit(cycles: u64, hart: u32, vmid: u16) -> Event {
    let happening = Happening::Exception {
        exception: Exception::new(Cause::VirtualInstruction, 0),
        from: GUEST,
        to: Mode::HYPERVISOR,
        pc: 0x8020_0000,
        vmid,
    };
    at(cycles, hart, happening)
}

/// The vCPU's pause loop exits, and it gets its hart back.
fn pause(cycles: u64, hart: u32, vmid: u16) -> [Event; 3] {
    let happening = Happening::PauseLoop {
        mode: GUEST,
        pc: 0x8020_0000,
        physical: Some(WORD),
    };
    [
        at(cycles, hart, happening),
        exit(cycles, hart, vmid),
        enter(cycles + 1, hart, vmid),
    ]
}

/// A ticket lock's word.
fn lock(cycles: u64, hart: u32, next: u64, turn: u64, stored: bool) -> Event {
    let happening = Happening::Word {
        mode: GUEST,
        physical: WORD,
        value: next << 16 | turn,
        stored,
    };
    at(cycles, hart, happening)
}

fn hear(events: impl IntoIterator<Item = Event>) -> Storms {
    let mut watcher = watcher();
    for event in events {
        watcher.event(&event);
    }
    watcher.storms()
}

fn exits(storms: &Storms, class: PauseExitClass) -> u64 {
    let all = PauseExitClass::ALL.iter().zip(storms.exits);
    all.filter(|(known, _)| **known == class)
        .map(|(_, exits)| exits)
        .sum()
}

/// vCPU 1 waits on hart 0 for the lock that vCPU 2 took on hart 1: what is heard until then.
fn taken() -> Vec<Event> {
    vec![
        enter(0, 0, 1),
        enter(0, 1, 2),
        lock(10, 0, 0, 0, false),
        // vCPU 2 takes the lock, and vCPU 1 draws the next ticket.
        lock(20, 1, 1, 0, true),
        lock(30, 0, 2, 0, true),
    ]
}

#[test]
fn exit_is_false_while_holder_runs() {
    let mut events = taken();
    events.extend(pause(40, 0, 1));
    let storms = hear(events);
    assert_eq!(exits(&storms, PauseExitClass::FalseExit), 1);
    assert_eq!(storms.contended, 1);
}

#[test]
fn preempted_holder_differs_from_preempted_waiter() {
    let mut events = taken();
    // vCPU 3 gets hart 1: the holder is off.
    events.extend([exit(50, 1, 2), enter(60, 1, 3)]);
    events.extend(pause(70, 0, 1));
    // vCPU 3 draws a ticket, spins, and gives its hart back to the holder.
    events.push(lock(80, 1, 3, 0, true));
    events.extend([exit(90, 1, 3), enter(95, 1, 2)]);
    // The holder passes the lock on to vCPU 1, which passes it on to vCPU 3, which has no hart.
    events.extend([lock(100, 1, 3, 1, true), lock(110, 0, 3, 2, true)]);
    // vCPU 1 wants it again.
    events.push(lock(120, 0, 4, 2, true));
    events.extend(pause(130, 0, 1));
    let storms = hear(events);
    assert_eq!(exits(&storms, PauseExitClass::HolderPreempted), 1);
    assert_eq!(exits(&storms, PauseExitClass::WaiterPreempted), 1);
    // vCPU 2 held it from 20 to 100, vCPU 1 from 100 to 110.
    assert_eq!(storms.holds, [80, 10]);
}

#[test]
fn wait_ends_at_own_turn() {
    let mut events = taken();
    events.extend(pause(40, 0, 1));
    events.extend(pause(50, 0, 1));
    events.push(lock(60, 1, 2, 1, true));
    let storms = hear(events);
    assert_eq!(storms.exits_of_waits, [2]);
    let worst = storms.worst.unwrap();
    assert_eq!(
        (worst.vmid, worst.word, worst.start, worst.end, worst.exits),
        (1, WORD, 40, 60, 2)
    );
    assert_eq!(storms.waits, [20]);
}

#[test]
fn unfinished_wait_counts_with_its_exits() {
    let mut events = taken();
    events.extend(pause(40, 0, 1));
    assert_eq!(hear(events).exits_of_waits, [1]);
}

#[test]
fn lock_state_survives_new_count() {
    let mut watcher = watcher();
    let mut tell = |events: Vec<Event>| {
        for event in &events {
            watcher.event(event);
        }
        watcher.clone()
    };
    let mut events = taken();
    events.extend(pause(40, 0, 1));
    tell(events).begin();
    let mut events = pause(50, 0, 1).to_vec();
    events.extend([lock(60, 1, 3, 0, true), lock(70, 1, 3, 1, true)]);
    let storms = tell(events).storms();
    // One exit since, of a wait that has had two, and one ticket, at a lock whose holder had it before.
    assert_eq!(exits(&storms, PauseExitClass::FalseExit), 1);
    assert_eq!((storms.exits_of_waits, storms.contended), (vec![2], 1));
    assert_eq!(storms.holds, [50]);
}

#[test]
fn lock_taken_earlier_has_unknown_holder() {
    let mut events = vec![enter(0, 0, 1), enter(0, 1, 2)];
    events.extend(pause(10, 0, 1));
    // vCPU 2 has it, and passes it on.
    events.extend([lock(10, 0, 2, 0, false), lock(20, 1, 2, 1, true)]);
    let storms = hear(events);
    assert_eq!(exits(&storms, PauseExitClass::HolderUnknown), 1);
    assert_eq!(storms.exits.iter().sum::<u64>(), 1);
}

#[test]
fn unreadable_loop_counts_without_wait() {
    let happening = Happening::PauseLoop {
        mode: GUEST,
        pc: 0x1000,
        physical: None,
    };
    let storms = hear([enter(0, 0, 1), at(5, 0, happening)]);
    assert_eq!(exits(&storms, PauseExitClass::Undecoded), 1);
    assert_eq!(storms.loops.get(&0x1000), Some(&1));
    assert!(storms.exits_of_waits.is_empty() && storms.worst.is_none());
}

#[test]
fn flag_store_ends_all_waits() {
    let word = |cycles, value| {
        let happening = Happening::Word {
            mode: GUEST,
            physical: WORD,
            value,
            stored: true,
        };
        at(cycles, 1, happening)
    };
    let mut events = vec![enter(0, 0, 1), enter(0, 1, 2), word(5, 7), word(6, 9)];
    events.extend(pause(10, 0, 1));
    events.push(word(30, 11));
    let storms = hear(events);
    assert_eq!(exits(&storms, PauseExitClass::NotALock), 1);
    assert_eq!(storms.waits, [20]);
}

#[test]
fn time_after_exit_belongs_to_class() {
    let mut events = taken();
    events.extend(pause(40, 0, 1));
    // vCPU 3 gets hart 1: the holder is off.
    events.extend([exit(50, 1, 2), enter(60, 1, 3)]);
    events.extend(pause(70, 0, 1));
    events.extend([exit(80, 1, 3), enter(85, 1, 2)]);
    // The holder passes the lock on to vCPU 1.
    events.push(lock(100, 1, 2, 1, true));
    let storms = hear(events);
    let lost = |class| {
        let mut all = PauseExitClass::ALL.iter().zip(storms.lost);
        all.find(|(known, _)| **known == class).unwrap().1
    };
    assert_eq!(
        (
            lost(PauseExitClass::FalseExit),
            lost(PauseExitClass::HolderPreempted)
        ),
        (30, 30)
    );
    assert_eq!(storms.lost.iter().sum::<u64>(), storms.waits[0]);
}

#[test]
fn exits_in_one_period_count_together() {
    let mut events = taken();
    events.push(enter(35, 1, 3));
    // vCPUs 1 and 3 exit at the same time, and vCPU 1 once more, long afterwards.
    events.extend(pause(40, 0, 1));
    events.extend(pause(50, 1, 3));
    events.extend(pause(51 + TOGETHER, 0, 1));
    let storms = hear(events);
    assert_eq!((storms.together, storms.max_together), (1 + 2 + 1, 2));
}

#[test]
fn native_wait_lasts_until_own_turn() {
    const KERNEL: Mode = Mode::HYPERVISOR;
    let turn = |cycles, hart| {
        let happening = Happening::PauseLoop {
            mode: KERNEL,
            pc: 0x8020_0000,
            physical: Some(WORD),
        };
        at(cycles, hart, happening)
    };
    let word = |cycles, hart, next: u64, turn: u64, stored| {
        let happening = Happening::Word {
            mode: KERNEL,
            physical: WORD,
            value: next << 16 | turn,
            stored,
        };
        at(cycles, hart, happening)
    };
    let mut watcher = Watcher::new(Clock::new(1_000_000_000, 10_000_000), Runs::Kernel);
    for event in [
        // Hart 0 has the lock and hart 1 a ticket when hart 1's first turn is heard.
        turn(100, 1),
        word(100, 1, 2, 0, false),
        turn(110, 1),
        // Hart 0 draws another ticket and waits by WRS; hart 1 gets the lock, and takes a last turn before it looks.
        word(120, 0, 3, 0, true),
        word(130, 0, 3, 1, true),
        turn(131, 1),
        at(
            140,
            0,
            Happening::WaitForStore {
                mode: KERNEL,
                physical: WORD,
                deadline: u64::MAX,
            },
        ),
        word(190, 1, 3, 2, true),
        word(250, 0, 3, 3, true),
    ] {
        watcher.event(&event);
    }
    let storms = watcher.storms();
    assert_eq!(storms.all_exits(), 0);
    assert_eq!(storms.holds, [60]);
    // Hart 1's turn came unseen, as it had drawn its ticket before the watch began.
    assert_eq!(storms.waits, [50]);
}
