//! The registers as the specification's tables give them, and the driver's way through them.

use proptest::prelude::*;

use super::*;

const UART: SourceNumber = SourceNumber(10);
const DISK: SourceNumber = SourceNumber(3);
const SOURCES: u32 = 96;
const HARTS: u32 = 4;

/// A board on which nothing, or everything, is pending and high.
struct Wires(bool);

impl Sources for Wires {
    fn pending(&self, _: SourceNumber) -> bool {
        self.0
    }

    fn rectified_input(&self, _: SourceNumber) -> bool {
        self.0
    }
}

const QUIET: Wires = Wires(false);

fn sourcecfg(source: SourceNumber) -> u64 {
    u64::from(source.0) * 4
}

fn target(source: SourceNumber) -> u64 {
    0x3000 + u64::from(source.0) * 4
}

fn aplic() -> Aplic {
    let mut aplic = Aplic::new(SOURCES, HARTS);
    aplic.add_virtual(UART);
    aplic.add_physical(DISK);
    aplic
}

fn write(aplic: &mut Aplic, offset: u64, value: u32) -> Vec<Effect> {
    let mut effects = Vec::new();
    aplic.write(offset, value, &mut |effect| effects.push(effect));
    effects
}

/// Whatever a store makes the APLIC go through, it goes through these: 16 words and the wired sources, of 1,023.
#[test]
fn wired_sources_alone_are_visited() {
    let mut aplic = Aplic::new(SOURCES_LIMIT, HARTS);
    assert_eq!(aplic.wired().count(), 0);
    let wired = [1, 63, 64, 127, 1000, 1023].map(SourceNumber);
    for number in wired {
        aplic.add_physical(number);
    }
    for none in [0, SOURCES_LIMIT + 1, u32::MAX] {
        aplic.add_virtual(SourceNumber(none));
    }
    assert_eq!(aplic.wired().collect::<Vec<_>>(), wired);
    let configured = wired.map(|number| write(&mut aplic, sourcecfg(number), 4).len());
    assert_eq!(configured, [1; 6]);
    assert_eq!(write(&mut aplic, 0, DOMAINCFG_IE).len(), wired.len());
    assert_eq!(
        aplic.routes().map(|route| route.source).collect::<Vec<_>>(),
        wired
    );
}

fn set_input(aplic: &mut Aplic, high: bool) -> Vec<Effect> {
    let mut effects = Vec::new();
    aplic.set_input(UART, high, &mut |effect| effects.push(effect));
    effects
}

fn destination(hart: u32, identity: u32) -> Destination {
    Destination {
        hart: HartIndex(hart),
        identity: Identity::new(identity).unwrap(),
    }
}

/// Sets a source up in Linux's order: domain, mode, target, enable.
fn enabled(source: SourceNumber, mode: u32) -> Aplic {
    let mut aplic = aplic();
    write(&mut aplic, 0, 0x104);
    write(&mut aplic, sourcecfg(source), mode);
    write(&mut aplic, target(source), 2 << 18 | 17);
    write(&mut aplic, 0x1edc, source.0);
    aplic
}

#[test]
fn the_domain_delivers_messages() {
    let mut aplic = aplic();
    assert_eq!(aplic.read(0, &QUIET), 0x8000_0004);
    write(&mut aplic, 0, u32::MAX);
    assert_eq!(aplic.read(0, &QUIET), 0x8000_0104);
    write(&mut aplic, 0, 0);
    assert_eq!(aplic.read(0, &QUIET), 0x8000_0004);
}

#[test]
fn modes_are_those_of_the_table() {
    let mut aplic = aplic();
    for (written, read) in [
        (0, 0),
        (1, 1),
        (2, 0),
        (3, 0),
        (4, 4),
        (5, 5),
        (6, 6),
        (7, 7),
        (0x406, 0),
        (!0x407, 0),
    ] {
        for source in [UART, DISK] {
            write(&mut aplic, sourcecfg(source), written);
            assert_eq!(
                aplic.read(sourcecfg(source), &QUIET),
                read,
                "sourcecfg {written:#x}"
            );
        }
    }
}

#[test]
fn unwired_sources_stay_zero() {
    let mut aplic = aplic();
    for number in [1, 11, SOURCES, SOURCES + 1, 1023] {
        let source = SourceNumber(number);
        assert_eq!(write(&mut aplic, sourcecfg(source), 6), []);
        assert_eq!(write(&mut aplic, target(source), !0), []);
        for by_number in [0x1cdc, 0x1ddc, 0x1edc, 0x1fdc, 0x2000] {
            assert_eq!(write(&mut aplic, by_number, number), []);
        }
        assert_eq!(aplic.read(sourcecfg(source), &Wires(true)), 0);
        assert_eq!(aplic.read(target(source), &Wires(true)), 0);
    }
    for word in 0..32 {
        for base in [0x1c00, 0x1d00, 0x1e00] {
            assert_eq!(aplic.read(base + 4 * word, &Wires(true)), 0);
        }
    }
}

#[test]
fn an_inactive_source_keeps_nothing() {
    let mut aplic = enabled(UART, 1);
    write(&mut aplic, 0, 0);
    write(&mut aplic, 0x1cdc, UART.0);
    assert_eq!(aplic.read(0x1c00, &QUIET), 1 << UART.0);
    write(&mut aplic, sourcecfg(UART), 0);
    for offset in [0x1c00, 0x1e00, target(UART)] {
        assert_eq!(aplic.read(offset, &QUIET), 0);
    }
    write(&mut aplic, target(UART), !0);
    assert_eq!(aplic.read(target(UART), &QUIET), 0);
}

#[test]
fn levels_are_forwarded_once() {
    let mut aplic = enabled(UART, 6);
    let message = [Effect::Message(destination(2, 17))];
    assert_eq!(set_input(&mut aplic, true), message);
    assert_eq!(set_input(&mut aplic, true), []);
    assert_eq!(
        aplic.read(0x1c00, &QUIET),
        0,
        "forwarding clears the pending bit"
    );
    assert_eq!(aplic.read(0x1d00, &QUIET), 1 << UART.0);
    // The driver's end of interrupt: set it pending if it is still high.
    assert_eq!(write(&mut aplic, 0x2000, UART.0), message);
    assert_eq!(set_input(&mut aplic, false), []);
    assert_eq!(
        write(&mut aplic, 0x2000, UART.0),
        [],
        "not when the input is low"
    );
    assert_eq!(set_input(&mut aplic, true), message);
}

#[test]
fn levels_fallen_unseen_are_not_pending() {
    let mut aplic = enabled(UART, 6);
    write(&mut aplic, 0x1fdc, UART.0);
    set_input(&mut aplic, true);
    assert_eq!(aplic.read(0x1c00, &QUIET), 1 << UART.0);
    set_input(&mut aplic, false);
    assert_eq!(write(&mut aplic, 0x1edc, UART.0), []);
}

#[test]
fn an_edge_waits_until_it_is_enabled() {
    let mut aplic = enabled(UART, 4);
    write(&mut aplic, 0x1fdc, UART.0);
    assert_eq!(set_input(&mut aplic, true), []);
    set_input(&mut aplic, false);
    assert_eq!(
        write(&mut aplic, 0x1e00, 1 << UART.0),
        [Effect::Message(destination(2, 17))]
    );
    assert_eq!(
        set_input(&mut aplic, true),
        [Effect::Message(destination(2, 17))]
    );
}

#[test]
fn falling_edges_and_low_levels_are_inverted() {
    let mut aplic = enabled(UART, 5);
    set_input(&mut aplic, true);
    assert_eq!(
        set_input(&mut aplic, false),
        [Effect::Message(destination(2, 17))]
    );
    let mut aplic = enabled(UART, 7);
    set_input(&mut aplic, true);
    assert_eq!(aplic.read(0x1d00, &QUIET), 0);
    assert_eq!(
        set_input(&mut aplic, false),
        [Effect::Message(destination(2, 17))]
    );
}

#[test]
fn messages_to_nobody_are_lost() {
    for lost in [HARTS << 18 | 17, 0x3fff << 18 | 17, 2 << 18] {
        let mut aplic = enabled(UART, 4);
        write(&mut aplic, target(UART), lost);
        assert_eq!(set_input(&mut aplic, true), []);
        assert_eq!(aplic.read(0x1c00, &QUIET), 0);
        assert_eq!(write(&mut aplic, 0x3000, lost), []);
        let mut aplic = enabled(DISK, 4);
        let route = SourceSetting {
            source: DISK,
            mode: SourceMode::EdgeRising,
            destination: None,
        };
        assert_eq!(write(&mut aplic, target(DISK), lost), [Effect::Set(route)]);
    }
}

#[test]
fn an_extempore_message_leaves_at_once() {
    let mut aplic = aplic();
    let effects = write(&mut aplic, 0x3000, 3 << 18 | 63);
    assert_eq!(
        effects,
        [Effect::Message(destination(3, 63))],
        "even with IE = 0"
    );
    assert_eq!(aplic.read(0x3000, &QUIET), 3 << 18 | 63);
}

#[test]
fn changes_to_physical_sources_reach_the_board() {
    let mut aplic = aplic();
    let route = |mode, destination| {
        [Effect::Set(SourceSetting {
            source: DISK,
            mode,
            destination,
        })]
    };
    let there = Some(destination(1, 5));
    assert_eq!(write(&mut aplic, 0, 0x100), [], "nothing is active");
    assert_eq!(
        write(&mut aplic, sourcecfg(DISK), 4),
        route(SourceMode::EdgeRising, None)
    );
    assert_eq!(
        write(&mut aplic, target(DISK), 1 << 18 | 5),
        route(SourceMode::EdgeRising, None)
    );
    assert_eq!(
        write(&mut aplic, 0x1edc, DISK.0),
        route(SourceMode::EdgeRising, there)
    );
    assert_eq!(write(&mut aplic, 0x1edc, DISK.0), [], "nothing changed");
    assert_eq!(
        write(&mut aplic, sourcecfg(DISK), 6),
        route(SourceMode::LevelHigh, there)
    );
    assert_eq!(
        write(&mut aplic, 0x1c00, 1 << DISK.0),
        [Effect::SetPending(DISK)]
    );
    assert_eq!(
        write(&mut aplic, 0x2004, DISK.0.swap_bytes()),
        [Effect::SetPending(DISK)]
    );
    assert_eq!(
        write(&mut aplic, 0x1ddc, DISK.0),
        [Effect::ClearPending(DISK)]
    );
    assert_eq!(write(&mut aplic, 0, 0), route(SourceMode::LevelHigh, None));
    assert_eq!(
        write(&mut aplic, 0, 0x100),
        route(SourceMode::LevelHigh, there)
    );
    let [Effect::Set(expected)] = route(SourceMode::LevelHigh, there) else {
        unreachable!()
    };
    assert_eq!(aplic.routes().collect::<Vec<_>>(), [expected]);
    assert_eq!(
        write(&mut aplic, 0x1f00, !0),
        route(SourceMode::LevelHigh, None)
    );
    let mut effects = Vec::new();
    aplic.reset(&mut |effect| effects.push(effect));
    assert_eq!(effects, route(SourceMode::Inactive, None));
}

/// A board whose wires are high, and on which nothing is pending.
struct Stuck;

impl Sources for Stuck {
    fn pending(&self, _: SourceNumber) -> bool {
        false
    }

    fn rectified_input(&self, _: SourceNumber) -> bool {
        true
    }
}

#[test]
fn lines_that_stay_high_return() {
    let recover = |aplic: &mut Aplic, board: &dyn Sources| {
        let mut effects = Vec::new();
        aplic.recover_missed_edges(board, &mut |effect| effects.push(effect));
        effects
    };
    let mut edge = enabled(DISK, 4);
    assert_eq!(recover(&mut edge, &Stuck), [], "it may have risen just now");
    assert_eq!(recover(&mut edge, &Stuck), [Effect::SetPending(DISK)]);
    assert_eq!(recover(&mut edge, &Stuck), [], "the guest gets time again");
    assert_eq!(recover(&mut edge, &QUIET), [], "it fell");
    assert_eq!(recover(&mut edge, &Stuck), []);
    assert_eq!(
        recover(&mut edge, &Wires(true)),
        [],
        "it is pending, so it will be delivered"
    );
    write(&mut edge, 0x1fdc, DISK.0);
    for mut untouched in [edge, enabled(DISK, 6), enabled(UART, 4)] {
        assert_eq!(recover(&mut untouched, &Stuck), []);
        assert_eq!(recover(&mut untouched, &Stuck), []);
    }
}

#[test]
fn reading_a_physical_source_asks_the_board() {
    let aplic = enabled(DISK, 4);
    assert_eq!(aplic.read(0x1c00, &Wires(true)), 1 << DISK.0);
    assert_eq!(aplic.read(0x1d00, &Wires(true)), 1 << DISK.0);
    assert_eq!(aplic.read(0x1c00, &QUIET), 0);
}

proptest! {
    /// Any guest at any offset: nothing breaks, and every effect names what the guest has.
    #[test]
    fn any_writes(
        steps in prop::collection::vec((0u64..0x9000, any::<u32>(), any::<bool>()), 0..300),
        shape in 0u32..7,
    ) {
        let mut aplic = aplic();
        for (offset, value, high) in steps {
            // Most random words hit nothing: bring numbers and fields into their small ranges.
            let value = match shape {
                0 => value,
                1 => value % 12,
                2 => ((value % 8) << 18) | (value % 70),
                _ => value & 0x107,
            };
            let offset = if high { offset & !3 } else { offset };
            let mut effects = write(&mut aplic, offset, value);
            effects.extend(set_input(&mut aplic, high));
            for effect in effects {
                match effect {
                    Effect::Set(route) => {
                        prop_assert_eq!(route.source, DISK);
                        prop_assert!(route.destination.is_none_or(|to| to.hart.0 < HARTS));
                        prop_assert!(route.mode.is_active() || route.destination.is_none());
                    }
                    Effect::SetPending(source) | Effect::ClearPending(source) => {
                        prop_assert_eq!(source, DISK);
                    }
                    Effect::Message(to) => prop_assert!(to.hart.0 < HARTS),
                    Effect::External { .. } | Effect::Complete(_) => {
                        prop_assert!(false, "an APLIC sends messages");
                    }
                }
            }
            aplic.read(offset, &Wires(high));
        }
    }

    /// Reserved registers read as zero and ignore writes.
    #[test]
    fn reserved_bytes(offset in 0u64..0x9000, value in any::<u32>()) {
        let defined = matches!(offset,
            0..=0xffc | 0x1c00..=0x1c7c | 0x1cdc | 0x1d00..=0x1d7c | 0x1ddc | 0x1e00..=0x1e7c
            | 0x1edc | 0x1f00..=0x1f7c | 0x1fdc | 0x2000 | 0x2004 | 0x3000..=0x3ffc);
        if !defined || offset % 4 != 0 {
            let mut written = enabled(UART, 1);
            let before = written.clone();
            prop_assert_eq!(write(&mut written, offset, value), []);
            prop_assert_eq!(&written, &before);
            prop_assert_eq!(written.read(offset, &Wires(true)), 0);
        }
    }
}
