//! The parameters of the policies, within their limits and beyond.

use super::*;
use crate::keys::limits;
use abi::keys::{ROWS, Scope, Takes};

#[test]
fn parameters_are_read_under_every_policy() {
    let changes = [
        "experiment.affinity=0",
        "reservation-limit=20 ms",
        "experiment.trap-waits=true",
        "experiment.ple-window-max=4294967295",
        "experiment.dispatch-cost=1000000",
    ];
    for spin in SpinMethod::ALL {
        let spin = format!("spin={}", spin.name());
        let system = read(GOOD, &[&changes[..], &[&spin]].concat()).unwrap();
        assert_eq!(system.get(keys::AFFINITY), 0);
        assert_eq!(system.get(keys::RESERVATION_LIMIT), 20_000);
        assert!(system.get(keys::TRAP_WAITS));
        assert_eq!(system.get(keys::PLE_WINDOW_MAX), Some(u32::MAX));
        assert_eq!(system.get(keys::DISPATCH_COST), 1_000_000);
        assert_eq!(system.settings.given(keys::ROUND), None);
    }
    // As long as a slice, and a second.
    for limit in ["2 ms", "1 s"] {
        read(GOOD, &[&format!("reservation-limit={limit}")]).unwrap();
    }
}

#[test]
fn numbers_beyond_limits_name_the_limits() {
    let scopes = [Scope::System, Scope::Experiment];
    for row in ROWS
        .iter()
        .filter(|row| scopes.iter().any(|scope| row.is_in(*scope)))
    {
        let path = match row.is_in(Scope::System) {
            true => String::from(row.name),
            false => format!("experiment.{}", row.name),
        };
        let beyond = match row.takes {
            Takes::Number { min, max, .. } => {
                [i64::from(min) - 1, i64::from(max) + 1].map(|number| number.to_string())
            }
            Takes::Time { min, max } => [min - 1, max + 1].map(|time| format!("{time} us")),
            _ => continue,
        };
        for value in beyond {
            let change = format!("{path}={value}");
            let shown = format!("{path} = {value}");
            mistake(GOOD, &[&change], &[&change, &shown, &limits(row)]);
        }
    }
}

#[test]
fn wrong_kinds_are_named() {
    let cases: [(&str, &str, &[&str]); 5] = [
        ("experiment.affinity", "true", &["whole number", "0 to 64"]),
        ("experiment.trap-waits", "0", &["true or false"]),
        (
            "reservation-limit",
            "1 ms",
            &["below the time slice, 2 ms", "2 ms to 1 s"],
        ),
        ("reservation-limit", "100", &["a text"]),
        ("reservation-limit", "a while", &["unit"]),
    ];
    for (key, value, words) in cases {
        let change = format!("{key}={value}");
        let shown = format!("{key} = {value}");
        let words = [&[&change[..], &shown], words].concat();
        mistake(GOOD, &[&change], &words);
    }
    let text = format!("experiment.round = 1\n{GOOD}");
    mistake(
        &text,
        &[],
        &["a.toml:1: experiment.round = 1", "use 2 to 1024"],
    );
    mistake(GOOD, &["experiment.afinity=3"], &["did you mean affinity?"]);
    mistake(
        GOOD,
        &["vm.web.affinity=3"],
        &["vm.web.affinity", "no such key"],
    );
}

#[test]
fn demanded_vectors_are_ones_that_exist() {
    let demand = |bits: u32| format!("vm.web.vector-length={bits}");
    for bits in [128, 256, 65_536] {
        let system = read(GOOD, &[&demand(bits)]).unwrap();
        assert_eq!(system.vms[0].get(keys::VECTOR_LENGTH), Some(bits));
        assert_eq!(system.vms[1].get(keys::VECTOR_LENGTH), None);
    }
    let odd = "vm.web.vector-length = 384: vector registers have a power of two of bits";
    mistake(GOOD, &[&demand(384)], &[odd, "use 128, 256, 512"]);
    mistake(
        GOOD,
        &[&demand(256), "vm.web.hide=[\"v\"]"],
        &[
            "vm.web.vector-length = 256: vectors are hidden",
            "take v out of hide",
        ],
    );
    mistake(
        GOOD,
        &[&demand(64)],
        &["vm.web.vector-length", "128", "65536"],
    );
}
