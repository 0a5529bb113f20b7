//! Questions which events can be counted.

use super::*;

fn event(event: u64, data: u64) -> Selection {
    Selection::named(event, data).unwrap()
}

#[test]
fn answers_leave_counters_alone() {
    let mut hart = Hart {
        missing: !0 << 5,
        ..Hart::default()
    };
    let mut counters = Counters::default();
    let present = CounterSet::of_hardware(0b1_1000).or(CounterSet::FIXED);
    let raw = event(2 << 16, 21);
    assert_eq!(counters.can_count(&raw, present, &mut hart), Some(true));
    assert_eq!(hart.occupied(), 0);
    // The fixed counters count these without a question to the firmware, and calls are counted here.
    let calls = hart.calls;
    for known in [event(1, 0), event(2, 0), event(15 << 16 | 10, 0)] {
        assert_eq!(counters.can_count(&known, present, &mut hart), Some(true));
    }
    let unknown = event(15 << 16 | 9, 0);
    assert_eq!(
        counters.can_count(&unknown, present, &mut hart),
        Some(false)
    );
    assert_eq!(hart.calls, calls);
    // A counter in use keeps its event; with all in use there is no answer.
    let only = |counter| CounterSet::only(counter);
    let exactly = Configuration {
        exactly: true,
        start: true,
        ..Configuration::default()
    };
    counters
        .configure(only(3), raw, exactly, &mut hart)
        .unwrap();
    hart.work(5);
    assert_eq!(counters.can_count(&raw, present, &mut hart), Some(true));
    assert_eq!(counters.read(3, &hart), Some(5));
    assert_eq!(hart.occupied(), 1);
    counters
        .configure(only(4), raw, exactly, &mut hart)
        .unwrap();
    assert_eq!(counters.can_count(&raw, present, &mut hart), None);
    assert_eq!(hart.occupied(), 2);
    let none = CounterSet::FIXED;
    assert_eq!(counters.can_count(&raw, none, &mut hart), None);
}

#[test]
fn lists_go_on_at_their_address_alone() {
    let mut list = EventList::default();
    assert_eq!(list.done(0x8000_0000), 0);
    list.note(0x8000_0000, 8);
    assert_eq!(list.done(0x8000_0000), 8);
    assert_eq!(
        list.done(0x8000_0010),
        0,
        "another list begins at its start"
    );
    list.note(0x8000_0000, 0);
    assert_eq!(list.done(0x8000_0000), 0);
}
