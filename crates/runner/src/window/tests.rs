//! Tests of windows: what closes one, and that its accounts do.

use super::*;
use crate::report::{HartReport, VmReport};
use std::path::Path;
use system::Document;

/// A report of one VM on two harts: the time and the VM's, the idle and the scheduler's part of it, hart by hart.
fn report(harts: [(u64, u64, u64, u64); 2]) -> Report {
    let of_hart =
        |(number, (elapsed, _, idle, scheduling)): (usize, &(u64, u64, u64, u64))| HartReport {
            hart: number as u32,
            elapsed: *elapsed,
            idle: *idle,
            scheduling: *scheduling,
        };
    let work = |(number, (_, guest, ..)): (usize, &(u64, u64, u64, u64))| Work {
        hart: number as u32,
        guest: *guest,
        scheduling: 0,
        simulation: 0,
        dispatches: 0,
        calls: 0,
        injected: 0,
        exits: BTreeMap::new(),
        events: BTreeMap::new(),
    };
    let vm = VmReport {
        name: String::from("a"),
        state: "running".into(),
        stop_reason: "none".into(),
        restarts: 0,
        guest_interrupts: None,
        work: harts.iter().enumerate().map(work).collect(),
    };
    Report {
        seconds: 1.0,
        vms: vec![vm],
        harts: harts.iter().enumerate().map(of_hart).collect(),
        own_memory: None,
    }
}

#[test]
fn accounts_close_with_prompt_on_other_hart() {
    // The first copy's prompt took 30 cycles of hart 1, which its guest missed, and the scheduler took 15 there since.
    let from = report([(100, 80, 10, 10), (100, 60, 5, 35)]);
    let to = report([(300, 245, 10, 45), (300, 275, 5, 20)]);
    let window = between(&from, &to);
    for (hart, expected) in window.harts.iter().zip([(165, 0, 35), (200, 0, 0)]) {
        let own = window.vms[0]
            .work
            .iter()
            .find(|work| work.hart == hart.hart);
        let guest = own.unwrap().guest;
        assert_eq!((guest, hart.idle, hart.scheduling), expected, "{hart:?}");
        assert_eq!(guest + hart.idle + hart.scheduling, hart.elapsed);
    }
}

#[test]
fn work_before_window_is_left_out() {
    // Hart 0 worked all the time. Hart 1 idled before and booked it within; below, it was with its guest.
    let from = report([(100_000, 90_000, 0, 10_000), (10, 0, 0, 10)]);
    let to = report([
        (300_000, 280_000, 0, 20_000),
        (300_010, 150_000, 130_000, 20_010),
    ]);
    let passed = BTreeMap::from([(0, 200_000), (1, 200_000)]);
    let mut window = between(&from, &to);
    leave_out_what_was_before(&mut window, &passed);
    let [first, second] = &window.harts[..] else {
        panic!("{window:?}")
    };
    assert_eq!(first.elapsed, 200_000);
    // Its 2 % are the prompt's.
    assert_eq!((second.elapsed, second.idle), (204_000, 34_000));
    let from = report([(100, 90, 0, 10), (10, 0, 0, 10)]);
    let to = report([(300, 280, 0, 20), (400, 380, 0, 20)]);
    let mut window = between(&from, &to);
    leave_out_what_was_before(&mut window, &BTreeMap::from([(1, 200)]));
    let guests: Vec<u64> = window.vms[0].work.iter().map(|work| work.guest).collect();
    assert_eq!(guests, [190, 194]);
    assert_eq!(window.harts[1].elapsed, 204);
}

#[test]
fn window_close_is_retried_towards_end() {
    assert_eq!(margins(8000).collect::<Vec<_>>(), [200, 100, 50, 25]);
    assert_eq!(margins(300).collect::<Vec<_>>(), [100, 50, 25]);
    assert_eq!(margins(101).collect::<Vec<_>>(), [50, 25]);
}

#[test]
fn report_after_vms_end_closes_nothing() {
    let accounts = [(100, 80, 10, 10), (100, 60, 5, 35)];
    let (before, mut after) = (report(accounts), report(accounts));
    assert!(same_vms_run(&before, &after));
    after.vms[0].state = "stopped".into();
    assert!(!same_vms_run(&before, &after));
}

#[test]
fn last_end_with_all_working_closes() {
    let accounts = [(100, 80, 10, 10), (100, 60, 5, 35)];
    let from = report(accounts);
    let counted = || Machine::new(machine::Config::default()).unwrap().report();
    let ends = || -> Vec<End> {
        let each = [b"1", b"2", b"3", b"4"].into_iter();
        each.map(|name| End {
            copy: name.to_vec(),
            exit_latency: Vec::new(),
        })
        .collect()
    };
    // The third is refused, and in the last a VM has stopped; the first is never asked.
    let asked = std::cell::RefCell::new(Vec::new());
    let closed = last_that_closes(ends(), &from, |copy| {
        asked.borrow_mut().push(copy.to_vec());
        let mut answer = report(accounts);
        match copy {
            b"4" => answer.vms[0].state = "stopped".into(),
            b"3" => {
                return Err(CheckpointFailure::Refused {
                    command: String::from("stats"),
                    said: String::new(),
                });
            }
            _ => answer.seconds = 2.0,
        }
        Ok((answer, counted()))
    });
    assert_eq!(closed.unwrap().unwrap().to.seconds, 2.0);
    assert_eq!(asked.take(), [b"4", b"3", b"2"]);
    let never = last_that_closes(ends(), &from, |_| Err(CheckpointFailure::TimeLimit));
    assert!(never.is_err());
    let none = last_that_closes(Vec::new(), &from, |_| Ok((report(accounts), counted())));
    assert!(none.unwrap().is_none());
}

fn window(lines: &[&str]) -> Option<Window> {
    let mut text = String::from("harts = 1\nmemory = \"2 GiB\"\n");
    for (line, name) in lines.iter().zip(["a", "b", "c"]) {
        text += &format!(
            "[vm.{name}]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\nkernel = \"image:debian/kernel\"\n\
             command-line = \"{line}\"\n"
        );
    }
    let document = Document::new(Path::new("a.toml"), text, &[]).unwrap();
    Window::of(&System::read(&document).unwrap())
}

#[test]
fn window_fits_shortest_work() {
    let long = "exercise=work duration-ms=2000 jobs=1";
    let found = window(&[long, "exercise=work duration-ms=500"]).unwrap();
    assert_eq!(found.milliseconds, 500);
    assert_eq!(window(&[long, "exercise=boot duration-ms=500"]), None);
    assert_eq!(window(&[long, "exercise=work"]), None);
    // Nothing is left of it beside its margin.
    assert_eq!(window(&[long, "exercise=work duration-ms=80"]), None);
}
