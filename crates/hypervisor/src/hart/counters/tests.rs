mod events;
mod isolation;

use super::*;

/// A hart whose counters can all count everything, and that counts each event once for each `work`.
#[derive(Debug, Default)]
struct Hart {
    configured: [Option<Selection>; 32],
    running: u32,
    values: [u64; 32],
    overflowed: u32,
    opened: u32,
    pending: bool,
    interrupts: u32,
    calls: u32,
    /// Counters that do not exist.
    missing: u32,
    /// Of both fixed counters.
    retired: u64,
}

impl Hart {
    fn work(&mut self, amount: u64) {
        self.retired = self.retired.wrapping_add(amount);
        for counter in 3..32 {
            if self.running >> counter & 1 != 0 {
                let (value, passed) = self.values[counter].overflowing_add(amount);
                self.values[counter] = value;
                if passed && self.overflowed >> counter & 1 == 0 {
                    self.overflowed |= 1 << counter;
                    self.pending = true;
                }
            }
        }
    }

    fn occupied(&self) -> usize {
        self.configured.iter().flatten().count()
    }
}

impl Hardware for Hart {
    fn configure(&mut self, among: u32, selection: &Selection) -> Option<u8> {
        self.calls += 1;
        let free = |counter: &u8| {
            let number = usize::from(*counter);
            let bit = 1 << number;
            among & bit & !self.missing != 0 && self.configured[number].is_none()
        };
        let counter = (3..32).rev().find(free)?;
        self.configured[usize::from(counter)] = Some(*selection);
        Some(counter)
    }

    fn start(&mut self, counter: u8, value: u64, overflowed: bool) -> bool {
        self.calls += 1;
        assert!(self.configured[usize::from(counter)].is_some());
        self.running |= 1 << counter;
        self.overflowed &= !(1 << counter);
        self.overflowed |= u32::from(overflowed) << counter;
        self.values[usize::from(counter)] = value;
        true
    }

    fn stop(&mut self, counters: u32) {
        self.calls += 1;
        self.running &= !counters;
    }

    fn release(&mut self, counters: u32) {
        self.calls += 1;
        self.running &= !counters;
        for counter in 0..32 {
            if counters >> counter & 1 != 0 {
                self.configured[counter] = None;
            }
        }
    }

    fn read(&self, counter: u8) -> u64 {
        if CounterSet::FIXED.has(counter) {
            return self.retired;
        }
        assert!(self.opened >> counter & 1 != 0, "not this vCPU's value");
        self.values[usize::from(counter)]
    }

    fn open(&mut self, counters: u32) {
        self.opened = counters;
    }

    fn take_overflows(&mut self) -> u32 {
        self.pending = false;
        self.overflowed
    }

    fn interrupt(&mut self) {
        self.interrupts += 1;
    }
}

fn all() -> CounterSet {
    CounterSet::of_hardware(u32::MAX)
        .or(CounterSet::FIXED)
        .or(CounterSet::FIRMWARE)
}

fn cycles() -> Selection {
    Selection::named(1, 0).unwrap()
}

fn one(counters: &mut Counters, hart: &mut Hart) -> u8 {
    counters
        .configure(all(), cycles(), Configuration::default(), hart)
        .unwrap()
}

#[test]
fn sets_of_absent_counters_are_refused() {
    let named = |base, mask| CounterSet::named(base, mask, all());
    assert_eq!(named(3, 1), Some(CounterSet::only(3)));
    assert_eq!(named(u64::MAX, 0), Some(CounterSet::EMPTY));
    assert_eq!(named(0, 5), Some(CounterSet::FIXED));
    // time; numbers beyond the last; numbers that wrap.
    for (base, mask) in [(0, 2), (1, 1), (1, 3), (40, 1), (0, 1 << 40), (32, 1 << 8)] {
        assert_eq!(named(base, mask), None, "{base} {mask:#x}");
    }
    for (base, mask) in [
        (64, 1),
        (u64::MAX, 1),
        (1 << 32 | 3, 1),
        (63, 3),
        (3, u64::MAX),
    ] {
        assert_eq!(named(base, mask), None, "{base} {mask:#x}");
    }
}

#[test]
fn events_with_foreign_bits_are_refused() {
    let kind = |event, data| Selection::named(event, data).map(|selection| selection.kind);
    assert_eq!(kind(1, 0), Some(EventKind::Hardware));
    assert_eq!(kind(0x1_0001, 0), Some(EventKind::Hardware));
    assert_eq!(kind(0x2_0000, (1 << 48) - 1), Some(EventKind::Hardware));
    assert_eq!(kind(0x3_0000, (1 << 56) - 1), Some(EventKind::Hardware));
    let timer = EventKind::Firmware(FirmwareEvent::SetTimer);
    assert_eq!(kind(0xf_0005, 0), Some(timer));
    // A misaligned load, and the platform's own: known, and not counted here.
    assert_eq!(kind(0xf_0000, 0), Some(EventKind::Unknown));
    assert_eq!(kind(0xf_ffff, 7), Some(EventKind::Unknown));
    for (event, data) in [
        (0, 0),
        (1, 1),
        (0x1_0001, 1),
        (0x2_0001, 0),
        (0x2_0000, 1 << 48),
        (0x3_0000, 1 << 56),
        (0x4_0000, 0),
        (0xf_0005, 1),
        (0x10_0001, 0),
        (u64::MAX, 0),
    ] {
        assert_eq!(kind(event, data), None, "{event:#x} {data:#x}");
    }
}

#[test]
fn flags_that_are_reserved_are_refused() {
    assert_eq!(Configuration::from_flags(0x100), None);
    let given = Configuration::from_flags(0x20 | 4).unwrap();
    assert!(given.start && given.no_user && !given.no_supervisor && !given.clear);
}

#[test]
fn vcpu_without_counters_accesses_no_register() {
    let (mut counters, mut hart) = (Counters::default(), Hart::default());
    counters.load(&mut hart);
    assert!(!counters.unload(&mut hart), "no event");
    assert_eq!(hart.calls, 0);
    // What was configured and not started costs nothing either once it has left.
    one(&mut counters, &mut hart);
    assert!(!counters.unload(&mut hart), "no event");
    let calls = hart.calls;
    counters.load(&mut hart);
    assert!(!counters.unload(&mut hart), "no event");
    assert_eq!((hart.calls, hart.occupied()), (calls, 0));
}

#[test]
fn counters_keep_their_value_across_other_vcpus() {
    let mut hart = Hart::default();
    let (mut mine, mut other) = (Counters::default(), Counters::default());
    let counter = one(&mut mine, &mut hart);
    mine.start(CounterSet::only(counter), Some(100), &mut hart)
        .unwrap();
    hart.work(5);
    assert!(!mine.unload(&mut hart), "no event");
    assert_eq!((hart.opened, hart.occupied(), hart.running), (0, 0, 0));
    hart.work(1000);
    // All of them, though the first vCPU has started one.
    for _ in HARDWARE_COUNTERS {
        let counter = one(&mut other, &mut hart);
        other
            .start(CounterSet::only(counter), Some(0), &mut hart)
            .unwrap();
    }
    hart.work(7);
    assert!(!other.unload(&mut hart), "no event");
    mine.load(&mut hart);
    assert_eq!(hart.opened, 1 << counter);
    hart.work(2);
    assert_eq!(mine.read(counter, &hart), Some(107));
    assert_eq!(mine.read(counter - 1, &hart), None);
    mine.stop(CounterSet::only(counter), false, &mut hart);
    hart.work(50);
    assert_eq!(mine.read(counter, &hart), Some(107));
    assert!(!mine.unload(&mut hart), "no event");
    mine.load(&mut hart);
    assert_eq!(hart.opened, 0, "it was stopped");
    assert_eq!(mine.read(counter, &hart), Some(107));
    // It goes on from there.
    mine.start(CounterSet::only(counter), None, &mut hart)
        .unwrap();
    hart.work(1);
    assert_eq!(mine.read(counter, &hart), Some(108));
}

#[test]
fn overflow_is_reported_once_and_survives_switches() {
    let (mut counters, mut hart) = (Counters::default(), Hart::default());
    let counter = one(&mut counters, &mut hart);
    let set = CounterSet::only(counter);
    counters
        .start(set, Some(5u64.wrapping_neg()), &mut hart)
        .unwrap();
    hart.work(6);
    assert!(hart.pending);
    assert!(!counters.unload(&mut hart), "no event");
    assert_eq!((hart.pending, hart.interrupts), (false, 1));
    counters.load(&mut hart);
    assert!(!counters.note_overflows(&mut hart), "no event");
    assert_eq!((hart.interrupts, hart.overflowed), (1, 1 << counter));
    // The guest has stopped it, and has not looked at its overflow bit yet.
    assert!(counters.stop(set, false, &mut hart));
    assert!(!counters.unload(&mut hart), "no event");
    hart.overflowed = 0;
    counters.load(&mut hart);
    assert_eq!((hart.overflowed, hart.opened), (1 << counter, 1 << counter));
    assert_eq!((hart.running, counters.read(counter, &hart)), (0, Some(1)));
    counters
        .start(set, Some(5u64.wrapping_neg()), &mut hart)
        .unwrap();
    assert_eq!(hart.overflowed, 0);
    hart.work(6);
    assert!(!counters.note_overflows(&mut hart), "no event");
    assert_eq!(hart.interrupts, 2);
    assert!(counters.stop(set, true, &mut hart));
    let calls = hart.calls;
    counters.load(&mut hart);
    assert_eq!((hart.calls, hart.occupied()), (calls, 0));
}

#[test]
fn calls_in_the_wrong_order_are_refused() {
    let (mut counters, mut hart) = (Counters::default(), Hart::default());
    let all_started =
        |counters: &mut Counters, hart: &mut Hart| counters.start(CounterSet::only(31), None, hart);
    assert_eq!(
        all_started(&mut counters, &mut hart),
        Err(CallError::Invalid)
    );
    assert_eq!(one(&mut counters, &mut hart), 31);
    assert_eq!(all_started(&mut counters, &mut hart), Ok(()));
    assert_eq!(
        all_started(&mut counters, &mut hart),
        Err(CallError::Started)
    );
    let exactly = Configuration {
        exactly: true,
        ..Configuration::default()
    };
    let only = CounterSet::only(31);
    let again = counters.configure(only, cycles(), exactly, &mut hart);
    assert_eq!(again, Err(CallError::Invalid));
    assert!(counters.stop(only, false, &mut hart));
    assert!(!counters.stop(only, false, &mut hart));
    let again = counters.configure(only, cycles(), exactly, &mut hart);
    assert_eq!(again, Ok(31));
    let none = counters.configure(only, cycles(), Configuration::default(), &mut hart);
    assert_eq!(none, Err(CallError::NoCounter));
    let unknown = Selection::named(0xf_0000, 0).unwrap();
    let none = counters.configure(all(), unknown, Configuration::default(), &mut hart);
    assert_eq!(none, Err(CallError::NoCounter));
}

#[test]
fn counter_missing_on_next_hart_keeps_value() {
    let mut counters = Counters::default();
    let (mut hart, mut next) = (Hart::default(), Hart::default());
    next.missing = 1 << 31;
    let counter = one(&mut counters, &mut hart);
    counters
        .start(CounterSet::only(counter), Some(9), &mut hart)
        .unwrap();
    assert!(!counters.unload(&mut hart), "no event");
    counters.load(&mut next);
    next.work(3);
    assert_eq!(next.opened, 0);
    assert_eq!(counters.read(counter, &next), Some(9));
}

#[test]
fn firmware_counters_count_only_their_own_calls() {
    let (mut counters, mut hart) = (Counters::default(), Hart::default());
    let event = |event| Selection::named(0xf_0000 | event as u64, 0).unwrap();
    let start = Configuration {
        start: true,
        ..Configuration::default()
    };
    let sent = event(FirmwareEvent::IpiSent);
    let counter = counters.configure(all(), sent, start, &mut hart).unwrap();
    for told in [
        FirmwareEvent::IpiSent,
        FirmwareEvent::SetTimer,
        FirmwareEvent::IpiSent,
    ] {
        counters.count(told);
    }
    assert_eq!(counters.read(counter, &hart), Some(2));
    assert_eq!(hart.calls, 0);
    for _ in 1..FIRMWARE_COUNTERS {
        assert!(counters.configure(all(), sent, start, &mut hart).is_ok());
    }
    let more = counters.configure(all(), sent, start, &mut hart);
    assert_eq!(more, Err(CallError::NoCounter));
}

/// A stay in the guest of so many instructions, on a hart that does as many for others meanwhile.
fn stay(counters: &mut Counters, hart: &mut Hart, instructions: u64) {
    hart.work(1_000_000);
    counters.enter_guest(hart);
    hart.work(instructions + fixed::SWITCH_INSTRUCTIONS);
    counters.leave_guest(hart);
    hart.work(1_000_000);
}

#[test]
fn instret_counts_no_neighbour() {
    let mut hart = Hart::default();
    let (mut mine, mut other) = (Counters::default(), Counters::default());
    let first = mine.read(set::INSTRET, &hart).unwrap();
    mine.retire();
    stay(&mut mine, &mut hart, 0);
    assert_eq!(mine.read(set::INSTRET, &hart), Some(first + 1));
    let cycles = mine.read(set::CYCLE, &hart).unwrap();
    stay(&mut other, &mut hart, 5000);
    // Another hart, whose counters stand elsewhere.
    let mut next = Hart::default();
    stay(&mut mine, &mut next, 20);
    assert_eq!(mine.read(set::INSTRET, &next), Some(first + 21));
    let passed = mine.read(set::CYCLE, &next).unwrap() - cycles;
    assert_eq!(passed, 20 + fixed::SWITCH_INSTRUCTIONS);
    assert_eq!(other.read(set::INSTRET, &hart), Some(0), "unused");
}

#[test]
fn calls_start_and_stop_fixed_counters() {
    let (mut counters, mut hart) = (Counters::default(), Hart::default());
    let legacy = Configuration {
        exactly: true,
        ..Configuration::default()
    };
    let named = |event| Selection::named(event, 0).unwrap();
    for (counter, event) in [(set::CYCLE, 1), (set::INSTRET, 2)] {
        let only = CounterSet::only(counter);
        let other = counters.configure(only, named(3 - event), legacy, &mut hart);
        assert_eq!(other, Err(CallError::NoCounter));
        let found = counters.configure(only, named(event), legacy, &mut hart);
        assert_eq!(found, Ok(counter));
        let before = counters.read(counter, &hart);
        stay(&mut counters, &mut hart, 10);
        assert_eq!(counters.read(counter, &hart), before, "not started");
        counters.start(only, Some(7), &mut hart).unwrap();
        stay(&mut counters, &mut hart, 10);
        let value = counters.read(counter, &hart).unwrap();
        assert!((17..=17 + fixed::SWITCH_INSTRUCTIONS).contains(&value));
        assert!(counters.stop(only, false, &mut hart));
        stay(&mut counters, &mut hart, 10);
        assert_eq!(counters.read(counter, &hart), Some(value));
        assert!(!counters.stop(only, true, &mut hart));
        stay(&mut counters, &mut hart, 10);
        assert!(counters.read(counter, &hart) > Some(value), "runs again");
    }
    assert_eq!(hart.calls, 0);
}

#[test]
fn programmable_counters_are_taken_first() {
    let (mut counters, mut hart) = (Counters::default(), Hart::default());
    for _ in HARDWARE_COUNTERS {
        assert!(one(&mut counters, &mut hart) > set::INSTRET);
    }
    assert_eq!(one(&mut counters, &mut hart), set::CYCLE);
    let more = counters.configure(all(), cycles(), Configuration::default(), &mut hart);
    assert_eq!(more, Err(CallError::NoCounter));
}

/// The number of instructions between two labels of the world switch.
fn instructions(from: &str, to: &str) -> usize {
    let source = include_str!("../riscv64/world.rs");
    let (_, rest) = source.split_once(from).unwrap();
    let (body, _) = rest.split_once(to).unwrap();
    let is_instruction = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with('#');
    body.lines().filter(is_instruction).count()
}

#[test]
fn switch_instructions_are_those_of_the_assembly() {
    let enter = instructions("\nhypervisor_enter_guest:\n", "\n\n.balign 64");
    let leave = instructions("\nhypervisor_trap_vector:\n", "\n    # A trap from");
    assert_eq!((enter + leave) as u64, fixed::SWITCH_INSTRUCTIONS);
}

#[test]
fn overflow_is_told_by_event_once() {
    let (mut counters, mut hart) = (Counters::default(), Hart::default());
    let counter = one(&mut counters, &mut hart);
    let set = CounterSet::only(counter);
    let from = Some(5u64.wrapping_neg());
    counters.tell_by_event(true);
    counters.start(set, from, &mut hart).unwrap();
    hart.work(6);
    assert!(counters.note_overflows(&mut hart));
    assert!(!counters.note_overflows(&mut hart), "once");
    assert_eq!((hart.pending, hart.interrupts), (false, 0));
    // The guest reads by the overflow bit which counter it was.
    assert_eq!(hart.overflowed, 1 << counter);
    // The departure finds the next one, and so does a call that stops the counter.
    assert!(counters.stop(set, false, &mut hart));
    counters.start(set, from, &mut hart).unwrap();
    hart.work(6);
    assert!(counters.unload(&mut hart));
    counters.load(&mut hart);
    assert!(counters.stop(set, false, &mut hart));
    counters.start(set, from, &mut hart).unwrap();
    hart.work(6);
    assert!(counters.stop(set, false, &mut hart));
    assert!(counters.take_event() && !counters.take_event());
    counters.tell_by_event(false);
    counters.start(set, from, &mut hart).unwrap();
    hart.work(6);
    assert!(!counters.note_overflows(&mut hart));
    assert_eq!(hart.interrupts, 1);
}
