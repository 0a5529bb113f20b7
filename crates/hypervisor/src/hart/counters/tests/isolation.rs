//! Random guests on one hart: no guest's events reach another guest's counters.

use proptest::prelude::*;

use super::*;

/// Step of one of two guests that share a hart.
#[derive(Clone, Debug)]
enum Step {
    Switch,
    Work(u64),
    Configure(bool),
    Start(u64, u64, Option<u64>),
    Stop(u64, u64, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let set = || (prop_oneof![0u64..40, any::<u64>()], any::<u64>());
    let step = prop_oneof![
        Just(Step::Switch),
        (0u64..1000).prop_map(Step::Work),
        any::<bool>().prop_map(Step::Configure),
        (set(), any::<Option<u64>>())
            .prop_map(|((base, mask), value)| Step::Start(base, mask, value)),
        (3u64..40, Just(1), any::<Option<u64>>())
            .prop_map(|(base, mask, value)| Step::Start(base, mask, value)),
        (3u64..40, Just(1), any::<bool>()).prop_map(|(base, mask, r)| Step::Stop(base, mask, r)),
        (set(), any::<bool>()).prop_map(|((base, mask), reset)| Step::Stop(base, mask, reset)),
    ];
    proptest::collection::vec(step, 0..80)
}

proptest! {
    /// Any two guests: each counter shows the work of its own guest while it was started.
    #[test]
    fn two_guests_never_see_each_other(steps in steps()) {
        let mut hart = Hart::default();
        let mut guests = [Counters::default(), Counters::default()];
        let mut expected = [[None::<u64>; 32]; 2];
        let mut last = [[0u64; 32]; 2];
        let mut now = 0;
        for step in steps {
            let guest = &mut guests[now];
            let before = hart.calls;
            match step {
                Step::Switch => {
                    assert!(!guest.unload(&mut hart), "no event");
                    prop_assert_eq!((hart.opened, hart.occupied()), (0, 0));
                    now = 1 - now;
                    guests[now].load(&mut hart);
                }
                Step::Work(amount) => {
                    hart.work(amount);
                    for value in expected[now].iter_mut().flatten() {
                        *value = value.wrapping_add(amount);
                    }
                }
                Step::Configure(clear) => {
                    let configuration = Configuration { clear, ..Configuration::default() };
                    let found = guest.configure(all(), cycles(), configuration, &mut hart);
                    if let (Ok(counter @ 3..32), true) = (found, clear) {
                        last[now][usize::from(counter)] = 0;
                    }
                }
                Step::Start(base, mask, value) => {
                    let Some(set) = CounterSet::named(base, mask, all()) else { continue };
                    let old = guest.started;
                    if guest.start(set, value, &mut hart) != Err(CallError::Invalid) {
                        for counter in set.without(old).hardware().iter() {
                            let counter = usize::from(counter);
                            expected[now][counter] = Some(value.unwrap_or(last[now][counter]));
                        }
                    }
                }
                Step::Stop(base, mask, reset) => {
                    let Some(set) = CounterSet::named(base, mask, all()) else { continue };
                    guest.stop(set, reset, &mut hart);
                    for counter in set.hardware().iter() {
                        let counter = usize::from(counter);
                        if let Some(value) = expected[now][counter].take() {
                            last[now][counter] = value;
                        }
                    }
                }
            }
            prop_assert!(hart.calls - before <= 2 * 29 + 1, "{} calls", hart.calls - before);
            for (counter, value) in (0u8..).zip(expected[now]) {
                if let Some(value) = value {
                    prop_assert_eq!(guests[now].read(counter, &hart), Some(value));
                }
            }
        }
    }
}
