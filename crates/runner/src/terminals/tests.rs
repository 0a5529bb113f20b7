//! Users at terminals whose guest is a short story.

use super::*;
use std::time::Duration;

const CLOCK: u64 = 1_000_000_000;

fn habits(count: u32, transactions: u32) -> Habits {
    Habits {
        count,
        transactions,
        think: Duration::from_millis(100),
    }
}

fn say(user: &mut dyn Console, text: &str, now: u64) {
    for byte in text.bytes() {
        user.put_at(byte, Cycles(now));
    }
}

/// Lets the user think to the end, and returns when that was and what was typed.
fn typed(user: &mut dyn Console, now: u64) -> (u64, String) {
    let clock = Clock::new(CLOCK, 10_000_000);
    let at = user.next_input(Cycles(now), &clock).unwrap();
    assert_eq!(user.get(Cycles(at.0 - 1)), None);
    let keys: Vec<u8> = std::iter::from_fn(|| user.get(at)).collect();
    (at.0, String::from_utf8(keys).unwrap())
}

#[test]
fn response_lasts_from_line_to_prompt() {
    let mut users = Users::new(Clock::new(CLOCK, 10_000_000));
    let mut consoles = users.sit_down("one", habits(1, 2), 5);
    let user = consoles[0].as_mut();
    let clock = Clock::new(CLOCK, 10_000_000);
    assert_eq!(user.next_input(Cycles(0), &clock), None);
    say(user, "ready> ", 1000);
    let (first, keys) = typed(user, 1000);
    let think = (first - 1000) / 1_000_000;
    assert!((50..=150).contains(&think), "{think}");
    // There is nothing to count in a file that is not there.
    assert_eq!(keys, "edit notes\n");
    say(user, "edit notes\r\nedit> ", first + 7_000_000);
    let (second, keys) = typed(user, first + 7_000_000);
    assert!(keys.starts_with("$a\nline 1 "), "{keys}");
    // What is said in between is no answer, and neither is a prompt in the middle of a line.
    say(user, "not yet edit> ", second + 1_000_000);
    say(user, "\r\nedit> ", second + 9_000_000);
    // Both lines are sent: the user leaves the editor, and then the shell.
    let (third, keys) = typed(user, second + 9_000_000);
    assert_eq!(keys, "Q\n");
    assert_eq!(users.failures().len(), 1);
    say(user, "Q\r\nready> ", third + 5);
    let (_, keys) = typed(user, third + 5);
    assert_eq!(keys, "exit\n");
    assert_eq!(users.failures(), Vec::<String>::new());

    let mut guests = Guests::default();
    users.figures(&mut guests);
    let one = guests.vm("one").unwrap();
    assert_eq!(one.get("completions"), Some(2.0));
    assert_eq!(one.get("response-ns.p50"), Some(7e6));
    assert_eq!(one.get("response-ns.p99"), Some(9e6));
    let elapsed = (second + 9_000_000 - first) as f64 / 1e3;
    assert_eq!(one.get("elapsed-us"), Some(elapsed));
}

#[test]
fn an_answer_that_is_wrong_is_told() {
    let mut users = Users::new(Clock::new(CLOCK, 10_000_000));
    let mut consoles = users.sit_down("one", habits(1, 9), 1);
    let user = consoles[0].as_mut();
    say(user, "ready> ", 0);
    let mut now = 0;
    // The editor answers every line by a prompt alone: it never shows the last line when it is asked to.
    for _ in 0..6 {
        now = typed(user, now).0 + 10;
        say(user, "\r\nedit> ", now);
    }
    let failures = users.failures();
    assert!(
        failures[0].contains("\"$p\\n\" was answered by"),
        "{failures:?}"
    );
}

#[test]
fn users_differ_by_the_seed_alone() {
    let clock = Clock::new(CLOCK, 10_000_000);
    let first = |seed| {
        let mut users = Users::new(clock);
        let mut consoles = users.sit_down("one", habits(3, 5), seed);
        let times = consoles.iter_mut().map(|user| {
            say(user.as_mut(), "ready> ", 0);
            typed(user.as_mut(), 0).0
        });
        times.collect::<Vec<u64>>()
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1), first(2));
    let mut times = first(1);
    times.dedup();
    assert_eq!(times.len(), 3);
}
