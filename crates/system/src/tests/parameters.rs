//! The parameters of the policies, within their limits and beyond.

use super::*;
use abi::system::{Costs, PauseLoops};

#[test]
fn parameters_are_read_whatever_the_policies_are() {
    assert_eq!(read(GOOD, &[]).unwrap().parameters, Parameters::default());
    let changes = [
        "affinity=0",
        "self-wait-budget = 1024",
        "reservation-limit=20 ms",
        "round=2",
        "relaxed-terms=0",
        "ple-gap=64",
        "ple-window=0",
        "ple-window-most=4294967295",
        "host-interrupt-cost=1000",
        "futile-pass-cost=200",
        "dispatch-cost=1000000",
        "mode-change-cost=0",
    ];
    for spin in SpinMethod::ALL {
        let spin = format!("spin={}", spin.name());
        let changes = [&changes[..], &[&spin]].concat();
        let expected = Parameters {
            affinity: Some(0),
            self_wait_budget: Some(1024),
            reservation_limit_us: Some(20_000),
            round: Some(2),
            relaxed_terms: Some(0),
            pause_loops: PauseLoops {
                gap: Some(64),
                window: Some(0),
                window_most: Some(u32::MAX),
            },
            costs: Costs {
                host_interrupt: Some(1000),
                futile_pass: Some(200),
                dispatch: Some(1_000_000),
                mode_change: Some(0),
            },
        };
        assert_eq!(read(GOOD, &changes).unwrap().parameters, expected);
    }
    // As long as a slice, and a second.
    for limit in ["2 ms", "1 s"] {
        read(GOOD, &[&format!("reservation-limit={limit}")]).unwrap();
    }
}

#[test]
fn parameters_out_of_their_limits_are_named_with_them() {
    let cases: [(&str, &str, &[&str]); 17] = [
        ("time-slice", "999 us", &["1 ms to 10 ms"]),
        ("time-slice", "11 ms", &["1 ms to 10 ms"]),
        ("affinity", "65", &["0 to 64"]),
        ("affinity", "-1", &["0 to 64"]),
        ("affinity", "true", &["whole number"]),
        ("self-wait-budget", "0", &["1 to 1024"]),
        ("self-wait-budget", "1025", &["1 to 1024"]),
        ("round", "1", &["2 to 1024"]),
        ("round", "4294967298", &["2 to 1024"]),
        ("relaxed-terms", "2", &["0 to 1"]),
        ("dispatch-cost", "1000001", &["0 to 1000000"]),
        ("mode-change-cost", "-1", &["0 to 1000000"]),
        ("reservation-limit", "999 us", &["1 ms to 1 s"]),
        (
            "reservation-limit",
            "1 ms",
            &["below the time slice, 2 ms", "2 ms to 1 s"],
        ),
        ("reservation-limit", "2 s", &["1 ms to 1 s"]),
        ("reservation-limit", "100", &["a text"]),
        ("reservation-limit", "a while", &["unit"]),
    ];
    for (key, value, words) in cases {
        let change = format!("{key}={value}");
        let shown = format!("{key} = {value}");
        let words = [&[&change[..], &shown], words].concat();
        mistake(GOOD, &[&change], &words);
    }
    let text = format!("round = 1\n{GOOD}");
    mistake(&text, &[], &["a.toml:1: round = 1", "use 2 to 1024"]);
    mistake(GOOD, &["afinity=3"], &["did you mean affinity?"]);
    mistake(
        GOOD,
        &["vm.web.affinity=3"],
        &["vm.web.affinity", "no such key"],
    );
}
