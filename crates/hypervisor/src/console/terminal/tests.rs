//! Tests of the terminal's output and of its events.

mod allocations;

use abi::operator::command::Resource;
use abi::system::{HartId, HartSet, SpinMethod, TlbPurge, WaitMethod};
use proptest::prelude::*;

use super::output::BACKLOG;
use super::*;
use crate::heap::allocations;
use alloc::collections::VecDeque;

const NORTH: VmId = VmId(0);
const SOUTH: VmId = VmId(1);
const ESCAPE: u8 = 0x1d;

fn two_harts() -> HartSet {
    let mut harts = HartSet::EMPTY;
    assert!(harts.insert(HartId(0)) && harts.insert(HartId(1)));
    harts
}

fn console() -> Console {
    Console::new(["north", "south"].map(|name| VmName::new(name).unwrap()))
}

fn send(console: &mut Console, vm: VmId, text: &str) {
    text.bytes().for_each(|byte| console.push(vm, byte));
}

/// Everything that the terminal gets from one drain.
fn drain(console: &mut Console, budget: usize) -> String {
    let mut bytes = Vec::new();
    console.drain(budget, &mut |byte| bytes.push(byte));
    String::from_utf8(bytes).unwrap()
}

/// Types `text`; gives the events, and what was shown at once.
fn type_in(console: &mut Console, text: &[u8]) -> (Vec<Event>, String) {
    let mut shown = Vec::new();
    let events = text
        .iter()
        .filter_map(|&byte| console.input(byte, &mut |byte| shown.push(byte)))
        .collect();
    (events, String::from_utf8(shown).unwrap())
}

#[test]
fn lines_carry_their_guests_name() {
    let mut console = console();
    send(&mut console, NORTH, "one\r\ntw");
    send(&mut console, SOUTH, "eins\r\n");
    console.say(format_args!("both run\nwell"));
    assert_eq!(
        drain(&mut console, usize::MAX),
        "[partita] both run\r\n[north] one\r\n[south] eins\r\n[partita] well\r\n"
    );
    assert!(!console.has_output(), "a begun line waits for its end");
    send(&mut console, NORTH, "o\n");
    assert_eq!(drain(&mut console, usize::MAX), "[north] two\r\n");
}

#[test]
fn deceptive_bytes_are_removed_from_prefixed_lines() {
    let mut console = console();
    send(
        &mut console,
        NORTH,
        "a\x1b[2Jb\x07\tc\x1b[1;31md\x08\rpartita-monitor x\r\n",
    );
    assert_eq!(
        drain(&mut console, usize::MAX),
        "[north] ab\tcd\r\n[north] partita-monitor x\r\n"
    );
}

#[test]
fn carriage_returns_make_no_long_turn() {
    let mut console = console();
    send(&mut console, NORTH, &"\rx".repeat(300));
    send(&mut console, NORTH, "\n");
    let mut turns = 0;
    while console.has_output() {
        let shown = drain(&mut console, 1);
        assert!(shown.len() < 20, "{} bytes in one turn", shown.len());
        turns += 1;
    }
    assert_eq!(turns, 301, "an empty line, and one for each letter");
    send(&mut console, NORTH, "10 %\r\r20 %\r\r\n\r\nend\n");
    assert_eq!(
        drain(&mut console, usize::MAX),
        "[north] 10 %\r\n[north] 20 %\r\n[north] \r\n[north] end\r\n"
    );
}

#[test]
fn the_guest_in_focus_is_raw() {
    let mut console = console();
    console.set_focus(Some(NORTH));
    send(&mut console, NORTH, "\x1b[1m# ");
    assert_eq!(drain(&mut console, usize::MAX), "\x1b[1m# ");
    send(&mut console, SOUTH, "eins\n");
    assert_eq!(
        drain(&mut console, usize::MAX),
        "\r\n[south] eins\r\n\x1b[1m# ",
        "the other's line stands on its own, and the prompt is shown again"
    );
    send(&mut console, NORTH, "ls\r\n");
    assert_eq!(drain(&mut console, usize::MAX), "ls\r\n");
    console.raw_line(format_args!("partita-monitor end"));
    assert_eq!(drain(&mut console, usize::MAX), "partita-monitor end\r\n");
}

#[test]
fn raw_guest_cannot_forge_the_hypervisors_lines() {
    let mut console = console();
    console.set_focus(Some(NORTH));
    for forged in [
        "partita-monitor end\r\n",
        "\rpartita-monitor end\r\n",
        "[partita] all is well\n",
    ] {
        send(&mut console, NORTH, forged);
        let shown = drain(&mut console, usize::MAX);
        assert!(shown.contains("[north]"), "{shown:?}");
        for line in shown.split(['\r', '\n']) {
            assert!(!line.starts_with("partita-monitor ") && !line.starts_with("[partita] "));
        }
    }
    send(&mut console, NORTH, "partita-monitor");
    console.say(format_args!("in between"));
    drain(&mut console, usize::MAX);
    send(&mut console, NORTH, " end\n");
    assert!(drain(&mut console, usize::MAX).starts_with("[north] end"));
}

#[test]
fn a_flood_does_not_silence_another() {
    let mut console = console();
    for _ in 0..200 {
        send(&mut console, NORTH, "flood flood flood\n");
    }
    send(&mut console, SOUTH, "help\n");
    let mut before = 0;
    loop {
        // The flood goes on.
        send(&mut console, NORTH, "flood flood flood\n");
        let shown = drain(&mut console, 1);
        assert!(!shown.is_empty());
        if shown.contains("[south] help") {
            break;
        }
        before += shown.len();
        assert!(
            before < 100,
            "south waits for more than a line or two of north's"
        );
    }
}

#[test]
fn what_finds_no_room_is_counted() {
    let mut console = console();
    let line = "0123456789abcde\n";
    for _ in 0..BACKLOG / line.len() {
        send(&mut console, NORTH, line);
    }
    assert_eq!(console.room(NORTH), 0);
    send(&mut console, NORTH, "lost");
    let shown = drain(&mut console, usize::MAX);
    assert_eq!(
        shown.matches("[north] 0123456789abcde\r\n").count(),
        BACKLOG / line.len()
    );
    assert!(
        shown.ends_with("[partita] north: 4 bytes of console output were lost\r\n"),
        "{shown}"
    );
    assert_eq!(console.room(NORTH), BACKLOG);
}

#[test]
fn a_line_without_end_is_broken() {
    let mut console = console();
    send(&mut console, NORTH, &"x".repeat(1200));
    let shown = drain(&mut console, usize::MAX);
    assert_eq!(shown.matches("[north] ").count(), 2);
    console.end_line(NORTH);
    let rest = drain(&mut console, usize::MAX);
    assert_eq!(shown.matches('x').count() + rest.matches('x').count(), 1200);
}

#[test]
fn typed_bytes_go_to_the_focus() {
    let mut console = console();
    assert_eq!(type_in(&mut console, b"x").0, [], "nobody has the focus");
    console.set_focus(Some(SOUTH));
    let (events, shown) = type_in(&mut console, &[b'a', ESCAPE, ESCAPE, b'b']);
    let want = [b'a', ESCAPE, b'b'].map(|byte| Event::ToVm(SOUTH, byte));
    assert_eq!(events, want);
    assert_eq!(shown, "", "echo is the guest's business");
}

#[test]
fn keys_move_the_focus() {
    let mut console = console();
    for want in [NORTH, SOUTH, NORTH] {
        type_in(&mut console, &[ESCAPE, b'n']);
        assert_eq!(console.focus, Some(want));
    }
    type_in(&mut console, &[ESCAPE, b'2']);
    assert_eq!(console.focus, Some(SOUTH));
    type_in(&mut console, &[ESCAPE, b'9']);
    assert_eq!(console.focus, Some(SOUTH), "there is no VM 9");
    assert!(drain(&mut console, usize::MAX).contains("no VM 9"));
    assert_eq!(type_in(&mut console, &[ESCAPE, b'q']).0, [Event::PowerOff]);
    assert_eq!(
        type_in(&mut console, &[ESCAPE, b'?', b'x']).0,
        [Event::ToVm(SOUTH, b'x')]
    );
}

#[test]
fn prompt_returns_after_the_requested_report() {
    let mut console = console();
    let (events, _) = type_in(&mut console, b"\x1dmstats\r");
    assert_eq!(events, [Event::Command(Command::Stats)]);
    assert!(!console.has_output(), "the report is still to come");
    assert!(!console.wants_turn(), "nobody can go on with it");
    console.begin_report();
    assert!(console.wants_turn() && !console.has_output());
    console.raw_line(format_args!("partita-monitor line"));
    assert_eq!(drain(&mut console, usize::MAX), "partita-monitor line\r\n");
    console.end_answer();
    let shown = drain(&mut console, usize::MAX);
    assert!(shown.contains(PROMPT), "{shown:?}");
    let (events, _) = type_in(&mut console, b"vm list\r");
    assert_eq!(events, [Event::Command(Command::List)]);
    console.end_answer();
    assert!(drain(&mut console, usize::MAX).contains(PROMPT));
}

#[test]
fn typed_bytes_wait_for_the_report() {
    let mut console = console();
    console.set_focus(Some(NORTH));
    type_in(&mut console, b"\x1dmstats\r");
    let allocated = allocations(|| {
        for _ in 0..2 {
            let typed = b"vm list\rstats\r\x1d1xy";
            for &byte in typed {
                let event = console.input(byte, &mut |byte| assert_eq!(byte, 0, "no echo"));
                assert_eq!(event, None);
            }
            console.begin_report();
        }
    });
    assert_eq!(allocated, 0);
    assert_eq!(console.input_ahead(&mut |_| {}), None, "it is not over yet");
    console.end_answer();
    assert!(
        console.wants_turn()
            && console.input_ahead(&mut |_| {}) == Some(Event::Command(Command::List))
    );
    console.end_answer();
    assert_eq!(
        console.input_ahead(&mut |_| {}),
        Some(Event::Command(Command::Stats))
    );
    assert_eq!(
        console.input_ahead(&mut |_| {}),
        None,
        "the next report comes first"
    );
    assert!(!console.wants_turn());
    console.end_answer();
    let rest = core::iter::from_fn(|| console.input_ahead(&mut |_| {}));
    let to_north = |byte: &u8| Event::ToVm(NORTH, *byte);
    assert_eq!(
        rest.collect::<Vec<_>>(),
        b"xyvm list\rstats\rxy"
            .iter()
            .map(to_north)
            .collect::<Vec<_>>()
    );
    assert!(!console.wants_turn());
}

#[test]
fn bytes_typed_ahead_are_bounded() {
    let mut console = console();
    console.set_focus(Some(NORTH));
    type_in(&mut console, b"\x1dmstats\r");
    type_in(&mut console, b"\r");
    let (events, _) = type_in(&mut console, &[b'x'; ahead::MAX_AHEAD + 2]);
    assert_eq!(events, []);
    console.end_answer();
    let taken = core::iter::from_fn(|| console.input_ahead(&mut |_| {})).count();
    assert_eq!(
        taken,
        ahead::MAX_AHEAD - 1,
        "the first one leaves the prompt"
    );
    let shown = drain(&mut console, usize::MAX);
    assert!(
        shown.contains("[partita] 3 bytes that were typed during the report were lost"),
        "{shown:?}"
    );
}

#[test]
fn the_prompt_edits_and_obeys() {
    let mut console = console();
    type_in(&mut console, &[ESCAPE, b'm']);
    assert!(drain(&mut console, usize::MAX).ends_with("partita> \x1b[K"));
    let (events, shown) = type_in(&mut console, b"nonsense\x15vm stopx\x7f north\r");
    assert_eq!(events, [Event::Command(Command::Vm(VmAction::Stop, NORTH))]);
    assert!(
        shown.ends_with("\rpartita> vm stop north\x1b[K\r\n"),
        "{shown:?}"
    );
    console.raw_line(format_args!("partita-monitor answer"));
    console.end_answer();
    let shown = drain(&mut console, usize::MAX);
    assert!(
        shown.starts_with("partita-monitor answer\r\n"),
        "on a line of its own: {shown:?}"
    );
    assert!(
        shown.ends_with("\rpartita> \x1b[K"),
        "the prompt comes back: {shown:?}"
    );
    send(&mut console, SOUTH, "eins\n");
    let shown = drain(&mut console, usize::MAX);
    assert_eq!(shown, "\r\x1b[K[south] eins\r\npartita> ");
    type_in(&mut console, b"\r");
    console.set_focus(Some(SOUTH));
    assert_eq!(
        type_in(&mut console, b"y").0,
        [Event::ToVm(SOUTH, b'y')],
        "the prompt is left"
    );
}

#[test]
fn commands() {
    let names = ["north", "south"].map(|name| VmName::new(name).unwrap());
    for (line, want) in [
        ("vm list", Command::List),
        (
            "  vm   restart south ",
            Command::Vm(VmAction::Restart, SOUTH),
        ),
        ("vm pause north", Command::Vm(VmAction::Pause, NORTH)),
        ("vm resume north", Command::Vm(VmAction::Resume, NORTH)),
        ("vm start north", Command::Vm(VmAction::Start, NORTH)),
        (
            "vm resize north vcpus 2",
            Command::Resize(NORTH, Resource::Vcpus(2)),
        ),
        (
            "vm resize south memory 256",
            Command::Resize(SOUTH, Resource::Memory(256)),
        ),
        ("stats", Command::Stats),
        ("share north 30", Command::Share(NORTH, 30)),
        ("harts north shared", Command::Harts(NORTH, None)),
        ("harts north 1,0", Command::Harts(NORTH, Some(two_harts()))),
        ("spin wopd", Command::Spin(SpinMethod::Wopd)),
        ("wait self-wait", Command::Wait(WaitMethod::SelfWait)),
        ("tlb-purge one-shot", Command::TlbPurge(TlbPurge::OneShot)),
        ("ple south 64 0", Command::PauseLoops(SOUTH, 64, 0)),
        ("help", Command::Help),
    ] {
        assert_eq!(command::parse(line, &names), Ok(want), "{line}");
    }
    for (line, part) in [
        ("frobnicate", "no command 'frobnicate'"),
        (
            "vm",
            "'vm' wants list, stop, start, restart, pause, resume or resize",
        ),
        ("vm dance", "'dance' is not list, stop"),
        ("vm stop", "'stop' wants the name of a VM: north or south"),
        (
            "vm stop east",
            "'east' is not the name of a VM: north or south",
        ),
        ("vm resize north", "'resize' wants vcpus or memory"),
        ("vm resize north vcpus", "'resize' wants a number of vCPUs"),
        ("vm resize north vcpus 0", "'0' is not a number of vCPUs"),
        ("vm resize north memory -1", "'-1' is not a number of MiB"),
        ("vm resize north memory 1 MiB", "'MiB' is too much"),
        ("share north", "'share' wants a number from 1 to 10000"),
        ("share north 0", "'0' is not a number from 1 to 10000"),
        ("share north 99999999999", "is not a number"),
        ("harts north", "'harts' wants 'shared' or different harts"),
        (
            "harts north 1,1",
            "'1,1' is not 'shared' or different harts",
        ),
        ("harts north 64", "'64' is not"),
        ("harts north 1,", "'1,' is not"),
        ("spin", "'spin' wants none, wopd"),
        ("wait long", "'long' is not host-interrupt"),
        ("stats now", "'now' is too much"),
    ] {
        let error = command::parse(line, &names).unwrap_err();
        assert!(format!("{error}").contains(part), "{line}: {error}");
    }
}

proptest! {
    /// Any input of guests and operators: the console goes on and comes to an end.
    #[test]
    fn any_use(steps in prop::collection::vec((0u8..5, any::<u8>(), 0usize..100), 0..400)) {
        let mut console = console();
        let mut shown = Vec::new();
        for (kind, byte, budget) in steps {
            match kind {
                0 => console.push(NORTH, byte),
                1 => console.push(SOUTH, byte),
                2 => { console.drain(budget, &mut |byte| shown.push(byte)); }
                3 => {
                    let byte = [byte, ESCAPE, b'n', b'm', b'\r', b'1'][budget % 6];
                    console.input(byte, &mut |byte| shown.push(byte));
                }
                _ => console.push(VmId(byte), byte),
            }
        }
        console.drain_all(&mut |byte| shown.push(byte));
        prop_assert!(!console.has_output());
    }

    #[test]
    fn any_line(line in ".{0,60}") {
        let _ = command::parse(&line, &[VmName::new("north").unwrap()]);
    }

    /// Without focus and losses every printable byte arrives, in order, behind its name.
    #[test]
    fn nothing_is_lost(lines in prop::collection::vec("[a-z ]{0,30}", 0..20), budget in 1usize..50) {
        let mut console = console();
        let mut shown = Vec::new();
        for line in &lines {
            send(&mut console, SOUTH, line);
            send(&mut console, SOUTH, "\r\n");
        }
        while console.drain(budget, &mut |byte| shown.push(byte)) {}
        let want: String = lines.iter().map(|line| format!("[south] {line}\r\n")).collect();
        prop_assert_eq!(String::from_utf8(shown).unwrap(), want);
    }
}

/// A VM that starts anew as fast as it can, on a UART that takes little of it.
#[test]
fn answers_overtake_floods_of_events() {
    let mut console = console();
    type_in(&mut console, b"\x1dm");
    drain(&mut console, usize::MAX);
    for _ in 0..10_000 {
        console.say(format_args!("south: starts anew"));
        send(&mut console, SOUTH, "boot\n");
    }
    let (events, _) = type_in(&mut console, b"vm stop south\r");
    assert_eq!(events, [Event::Command(Command::Vm(VmAction::Stop, SOUTH))]);
    assert!(!drain(&mut console, 100).contains(PROMPT), "no answer yet");
    console.answer(format_args!("south: ending"));
    console.end_answer();
    let shown = drain(&mut console, 100);
    assert!(
        shown.starts_with("[partita] south: ending\r\n\rpartita> "),
        "{shown:?}"
    );
    let (events, _) = type_in(&mut console, b"what\r");
    assert_eq!(events, []);
    let shown = drain(&mut console, 100);
    assert!(
        shown.starts_with("[partita] there is no command 'what'"),
        "{shown:?}"
    );
}

#[test]
fn lines_without_room_are_left_out_whole() {
    let mut console = console();
    let long = "x".repeat(60_000);
    console.say(format_args!("{long}"));
    console.say(format_args!("one\n{long}\n\ntwo {}", 3));
    let shown = drain(&mut console, usize::MAX);
    let rest = shown.strip_prefix(&format!("[partita] {long}\r\n"));
    let lost = "[partita] 1 lines of the hypervisor's were lost\r\n";
    let whole = "[partita] one\r\n[partita] \r\n[partita] two 3\r\n";
    assert_eq!(rest, Some(format!("{whole}{lost}").as_str()));
}
