use super::attributes::range;
use super::*;
use riscv::csr::status::{SIE, SPIE, SPP};
use riscv::sbi::software_events::{
    ATTRIBUTES, CONFIG, ENTRY_ARGUMENT, ENTRY_PC, FLAG_SPIE, FLAG_SPP, INTERRUPTED_A6,
    INTERRUPTED_FLAGS, INTERRUPTED_SEPC, PREFERRED_HART, PRIORITY, STATUS,
};

const ENTRY: u64 = 0x8000_4000;

/// A vCPU in user mode, that a trap has interrupted before.
fn user() -> Interruptible {
    Interruptible {
        program_counter: 0x1_0000,
        status: SPIE | SIE,
        exception_counter: 0x8020_0000,
        a6: 6,
        a7: 7,
        ..Interruptible::default()
    }
}

/// Two vCPUs that take events, the first of which has enabled both.
fn enabled() -> SoftwareEvents {
    let mut events = SoftwareEvents::new(2);
    for (number, event) in [Event::Local, Event::Global].into_iter().enumerate() {
        let entry = ENTRY + 0x1000 * number as u64;
        assert_eq!(events.register((0, event), entry, number as u64), Ok(()));
        assert_eq!(events.enable(0, event), Ok(None));
    }
    assert_eq!(events.unmask(0), Ok(()));
    assert_eq!(events.unmask(1), Ok(()));
    events
}

#[test]
fn numbers_are_those_of_the_specification() {
    let named = |event| Event::named(event, Offered::default());
    assert_eq!(named(0xffff_0000), Ok(Event::Local));
    assert_eq!(named(0xffff_8000), Ok(Event::Global));
    // The event is a 32-bit parameter.
    assert_eq!(named(1 << 32 | 0xffff_8000), Ok(Event::Global));
    for known in [0, 1, 0x8000, 0x1_0000, 0x10_0000, 0x10_8000] {
        assert_eq!(named(known), Err(EventError::NotSupported));
    }
    let all = Offered {
        double_traps: true,
        counter_overflows: true,
    };
    assert_eq!(Event::named(1, all), Ok(Event::DoubleTrap));
    assert_eq!(Event::named(0x1_0000, all), Ok(Event::CounterOverflow));
    // Events of errors need hardware that no VM has.
    for error in [0, 0x8000, 0x10_0000, 0x10_8000] {
        assert_eq!(Event::named(error, all), Err(EventError::NotSupported));
    }
    for unknown in [2, 0x4000, 0x8001, 0x1_0001, 0xffff_0001, 0xffff_c000] {
        assert_eq!(named(unknown), Err(EventError::InvalidParameter));
    }
}

#[test]
fn handler_resumes_what_it_interrupted() {
    let mut events = enabled();
    let mut vcpu = user();
    assert_eq!(events.inject(Event::Local, 0), Ok(Some(0)));
    assert!(events.deliver(0, &mut vcpu));
    let handler = Interruptible {
        program_counter: ENTRY,
        in_supervisor_mode: true,
        expects_landing_pad: false,
        // SPP: user mode. SPIE: the former SIE.
        status: SPIE | 1 << 24,
        exception_counter: 0x1_0000,
        a6: 0,
        a7: 0,
    };
    assert_eq!(vcpu, handler);
    let attributes = [
        (STATUS, 0b1011),
        (ENTRY_PC, ENTRY),
        (ENTRY_ARGUMENT, 0),
        (INTERRUPTED_SEPC, 0x8020_0000),
        (INTERRUPTED_FLAGS, FLAG_SPIE),
        (INTERRUPTED_A6, 6),
    ];
    for (attribute, value) in attributes {
        assert_eq!(events.read((0, Event::Local), attribute), Ok(value));
    }
    assert_eq!(events.complete(0, &mut vcpu), Some(None));
    assert_eq!(vcpu, user());
    assert_eq!(events.read((0, Event::Local), STATUS), Ok(0b1010));
    assert_eq!(events.complete(0, &mut vcpu), None);
}

#[test]
fn handler_may_change_what_is_resumed() {
    let mut events = enabled();
    let mut vcpu = user();
    assert_eq!(events.inject(Event::Local, 0), Ok(Some(0)));
    assert!(events.deliver(0, &mut vcpu));
    let values = [0x8030_0000, FLAG_SPP, 16, 17];
    let own = (0, Event::Local);
    assert_eq!(events.write(own, INTERRUPTED_SEPC, &values), Ok(()));
    vcpu.exception_counter = 0x8040_0000;
    vcpu.status |= SPP;
    assert_eq!(events.complete(0, &mut vcpu), Some(None));
    let resumed = Interruptible {
        program_counter: 0x8040_0000,
        in_supervisor_mode: true,
        expects_landing_pad: false,
        status: SPP | SIE,
        exception_counter: 0x8030_0000,
        a6: 16,
        a7: 17,
    };
    assert_eq!(vcpu, resumed);
}

/// An expected landing pad, and a handler of traps that is not yet ready for another one.
#[test]
fn landing_pad_and_double_trap_state_survive() {
    let mut events = enabled();
    let before = Interruptible {
        in_supervisor_mode: true,
        expects_landing_pad: true,
        status: SPP | 1 << 24,
        ..user()
    };
    let mut vcpu = before;
    assert_eq!(events.inject(Event::Local, 0), Ok(Some(0)));
    assert!(events.deliver(0, &mut vcpu));
    assert!(!vcpu.expects_landing_pad);
    assert_eq!(vcpu.status, SPP | 1 << 23 | 1 << 24);
    let flags = events.read((0, Event::Local), INTERRUPTED_FLAGS);
    // SPP and SDT (SBI, INTERRUPTED_FLAGS).
    assert_eq!(flags, Ok(1 | 1 << 5));
    assert_eq!(events.complete(0, &mut vcpu), Some(None));
    assert_eq!(vcpu, before);
}

#[test]
fn higher_priority_preempts_a_handler() {
    let mut events = enabled();
    let (mut vcpu, global) = (user(), (0, Event::Global));
    // By their numbers the local event comes first.
    assert_eq!(events.inject(Event::Global, 0), Ok(Some(0)));
    assert!(events.deliver(0, &mut vcpu));
    let in_global = vcpu;
    assert_eq!(events.inject(Event::Local, 0), Ok(Some(0)));
    assert!(events.deliver(0, &mut vcpu));
    assert_eq!(vcpu.program_counter, ENTRY);
    assert_eq!(events.read(global, STATUS), Ok(0b1011));
    assert_eq!(events.inject(Event::Global, 0), Ok(None));
    assert!(!events.deliver(0, &mut vcpu));
    assert_eq!(events.complete(0, &mut vcpu), Some(None));
    assert_eq!(vcpu, in_global);
    // The second one waits for the end of the first.
    assert!(!events.deliver(0, &mut vcpu));
    assert_eq!(events.complete(0, &mut vcpu), Some(Some(0)));
    assert_eq!(vcpu, user());
    assert!(events.deliver(0, &mut vcpu));
    assert_eq!(vcpu, in_global);
}

#[test]
fn lower_priority_waits_for_the_handler() {
    let mut events = enabled();
    let mut vcpu = user();
    let local = (0, Event::Local);
    assert_eq!(events.disable(0, Event::Local), Ok(()));
    assert_eq!(events.write(local, PRIORITY, &[1]), Ok(()));
    assert_eq!(events.enable(0, Event::Local), Ok(None));
    assert_eq!(events.inject(Event::Local, 0), Ok(Some(0)));
    assert_eq!(events.inject(Event::Global, 0), Ok(Some(0)));
    assert!(events.deliver(0, &mut vcpu));
    assert_eq!(vcpu.program_counter, ENTRY + 0x1000);
    assert!(!events.deliver(0, &mut vcpu));
    assert_eq!(events.complete(0, &mut vcpu), Some(None));
    assert!(events.deliver(0, &mut vcpu));
    assert_eq!(vcpu.program_counter, ENTRY);
}

#[test]
fn masked_vcpu_is_not_interrupted() {
    let mut events = enabled();
    let mut vcpu = user();
    assert_eq!(events.mask(0), Ok(None));
    assert_eq!(events.mask(0), Err(EventError::AlreadyStopped));
    assert_eq!(events.inject(Event::Local, 0), Ok(None));
    assert!(!events.deliver(0, &mut vcpu));
    assert_eq!(events.read((0, Event::Local), STATUS), Ok(0b1110));
    assert_eq!(events.unmask(0), Ok(()));
    assert_eq!(events.unmask(0), Err(EventError::AlreadyStarted));
    assert!(events.deliver(0, &mut vcpu));
}

#[test]
fn one_shot_event_runs_once() {
    let mut events = enabled();
    let (mut vcpu, local) = (user(), (0, Event::Local));
    assert_eq!(events.disable(0, Event::Local), Ok(()));
    assert_eq!(events.write(local, CONFIG, &[1]), Ok(()));
    assert_eq!(events.enable(0, Event::Local), Ok(None));
    assert_eq!(events.inject(Event::Local, 0), Ok(Some(0)));
    assert!(events.deliver(0, &mut vcpu));
    assert_eq!(events.inject(Event::Local, 0), Ok(None));
    assert_eq!(events.complete(0, &mut vcpu), Some(None));
    assert!(!events.deliver(0, &mut vcpu));
    // Registered, pending and injectable.
    assert_eq!(events.read(local, STATUS), Ok(0b1101));
    assert_eq!(events.unregister(0, Event::Local), Ok(()));
}

#[test]
fn global_event_waits_for_preferred_vcpu() {
    let mut events = enabled();
    let mut vcpu = user();
    let global = (0, Event::Global);
    assert_eq!(events.disable(0, Event::Global), Ok(()));
    assert_eq!(events.write(global, PREFERRED_HART, &[1]), Ok(()));
    assert_eq!(events.enable(0, Event::Global), Ok(None));
    assert_eq!(events.inject(Event::Global, u64::MAX), Ok(Some(1)));
    assert!(!events.deliver(0, &mut vcpu));
    // The event waits while the preferred vCPU takes no events, and goes to the other one when that vCPU stops.
    assert_eq!(events.mask(1), Ok(None));
    assert!(!events.deliver(0, &mut vcpu));
    assert_eq!(events.stop(1), Some(0));
    assert!(events.deliver(0, &mut vcpu));
    assert_eq!(vcpu.a6, 0);
    // Only the vCPU that handles it may change the interrupted state.
    let answer = events.write((1, Event::Global), INTERRUPTED_A6, &[0]);
    assert_eq!(answer, Err(EventError::InvalidState));
    assert_eq!(events.complete(1, &mut vcpu), None);
    assert_eq!(events.complete(0, &mut vcpu), Some(None));
}

#[test]
fn stopped_vcpu_leaves_nothing_behind() {
    let mut events = enabled();
    let mut vcpu = user();
    assert_eq!(events.inject(Event::Global, 0), Ok(Some(0)));
    assert!(events.deliver(0, &mut vcpu));
    assert_eq!(events.stop(0), None);
    assert_eq!(events.read((0, Event::Global), STATUS), Ok(0b1001));
    assert_eq!(events.read((0, Event::Local), STATUS), Ok(0b1000));
    assert_eq!(events.mask(0), Err(EventError::AlreadyStopped));
    // An event that nobody has begun to handle goes to the other vCPU.
    assert_eq!(events.enable(1, Event::Global), Ok(None));
    assert_eq!(events.inject(Event::Global, 0), Ok(Some(1)));
    events.reset();
    assert_eq!(events, SoftwareEvents::new(2));
}

#[test]
fn double_trap_goes_to_its_handler() {
    let mut events = enabled();
    // A trap in a handler of traps, in supervisor mode.
    let before = Interruptible {
        in_supervisor_mode: true,
        status: SPP | 1 << 24,
        ..user()
    };
    let mut vcpu = before;
    let own = (0, Event::DoubleTrap);
    assert!(!events.double_trap(0, &mut vcpu), "no handler");
    assert_eq!(events.register(own, ENTRY + 0x2000, 0), Ok(()));
    assert!(!events.double_trap(0, &mut vcpu), "not enabled");
    assert_eq!(vcpu, before);
    // The event stays pending.
    assert_eq!(events.enable(0, Event::DoubleTrap), Ok(Some(0)));
    assert_eq!(events.mask(0), Ok(None));
    assert!(!events.double_trap(0, &mut vcpu), "masked");
    assert_eq!(events.unmask(0), Ok(()));
    assert_eq!(events.inject(Event::Local, 0), Ok(Some(0)));
    assert!(events.double_trap(0, &mut vcpu));
    assert_eq!(vcpu.program_counter, ENTRY + 0x2000, "first by its number");
    assert_eq!(vcpu.status, SPP | 1 << 24);
    let handler = vcpu;
    assert!(!events.double_trap(0, &mut vcpu), "in its own handler");
    assert_eq!(vcpu, handler);
    assert_eq!(events.complete(0, &mut vcpu), Some(None));
    assert_eq!(vcpu, before);
}

#[test]
fn overflow_comes_before_software_events() {
    let mut events = enabled();
    let mut vcpu = user();
    let own = (1, Event::CounterOverflow);
    assert_eq!(events.register(own, ENTRY, 5), Ok(()));
    assert_eq!(events.enable(1, Event::CounterOverflow), Ok(None));
    // The event of vCPU 0 is another one.
    assert_eq!(events.inject(Event::CounterOverflow, 0), Ok(None));
    assert_eq!(events.inject(Event::CounterOverflow, 1), Ok(Some(1)));
    assert_eq!(events.inject(Event::Global, 0), Ok(Some(0)));
    assert!(events.deliver(1, &mut vcpu));
    assert_eq!((vcpu.a6, vcpu.a7), (1, 5));
    assert!(!events.deliver(1, &mut vcpu));
    assert_eq!(events.complete(1, &mut vcpu), Some(Some(0)));
    assert_eq!(vcpu, user());
}

#[test]
fn calls_in_wrong_states_change_nothing() {
    use EventError::{Denied, InvalidParameter, InvalidState};
    let mut events = SoftwareEvents::new(2);
    let new = events.clone();
    for event in [Event::Local, Event::Global] {
        assert_eq!(events.enable(0, event), Err(InvalidState));
        assert_eq!(events.disable(0, event), Err(InvalidState));
        assert_eq!(events.unregister(0, event), Err(InvalidState));
        let at = (0, event);
        assert_eq!(events.register(at, ENTRY + 1, 0), Err(InvalidParameter));
        let denied = [STATUS, ENTRY_PC, ENTRY_ARGUMENT];
        let interrupted = INTERRUPTED_SEPC..ATTRIBUTES;
        let invalid = [(PRIORITY, 1 << 32), (CONFIG, 2)];
        let calls = denied.map(|attribute| (attribute, 0, Denied)).into_iter();
        let calls = calls.chain(interrupted.map(|attribute| (attribute, 0, InvalidState)));
        let calls =
            calls.chain(invalid.map(|(attribute, value)| (attribute, value, InvalidParameter)));
        for (attribute, value, error) in calls {
            assert_eq!(events.write(at, attribute, &[value]), Err(error));
        }
        // The first is written only if the second can be.
        assert_eq!(events.write(at, PRIORITY, &[5, 2]), Err(InvalidParameter));
    }
    let hart = [
        (Event::Local, 0, Denied),
        (Event::Global, 2, InvalidParameter),
    ];
    for (event, value, error) in hart {
        let answer = events.write((0, event), PREFERRED_HART, &[value]);
        assert_eq!(answer, Err(error));
    }
    for vcpu in [2, u64::MAX] {
        assert_eq!(events.inject(Event::Local, vcpu), Err(InvalidParameter));
    }
    assert_eq!(events, new);
}

#[test]
fn attributes_are_named_in_range() {
    assert_eq!(range(0, 10), Ok(0..10));
    assert_eq!(range(1 << 32 | 9, 1 << 32 | 1), Ok(9..10));
    assert_eq!(range(0, 0), Err(EventError::InvalidParameter));
    assert_eq!(range(10, 1 << 32), Err(EventError::InvalidParameter));
    for (first, count) in [(10, 1), (0, 11), (9, 2), (0xffff_ffff, 1), (1, 0xffff_ffff)] {
        assert_eq!(range(first, count), Err(EventError::BadRange));
    }
}
