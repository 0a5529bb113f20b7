//! The policies' parameters, from a system's description to the scheduler.

use abi::system::{self, Parameters};
use scheduler::{Config, Ticks};

// The bounds of the description are those of the scheduler.
const _: () = {
    assert!(*system::TIME_SLICE_US.start() as u64 == *Config::SLICE_US.start());
    assert!(*system::TIME_SLICE_US.end() as u64 == *Config::SLICE_US.end());
    assert!(*system::AFFINITY.start() == *Config::AFFINITY.start() as u32);
    assert!(*system::AFFINITY.end() == *Config::AFFINITY.end() as u32);
    assert!(*system::SELF_WAIT_BUDGET.start() == *Config::SELF_WAIT_BUDGET.start() as u32);
    assert!(*system::SELF_WAIT_BUDGET.end() == *Config::SELF_WAIT_BUDGET.end() as u32);
    assert!(*system::RESERVATION_LIMIT_US.end() as u64 == Config::LONGEST_RESERVATION_US);
    assert!(*system::ROUND.start() == *Config::ROUND.start());
    assert!(*system::ROUND.end() == *Config::ROUND.end());
};

/// Sets the slice, which is no longer than a wait for a word may be, and those parameters that are given. `Scheduler::new` checks them: what is too large for its field becomes the largest
/// value there, which is out of bounds as well.
pub fn set(config: &mut Config, slice_us: u32, given: &Parameters) {
    let limit = given.reservation_limit_us.unwrap_or(u32::MAX);
    let slice = ticks(config.frequency, slice_us.min(limit));
    // A thousandth of a second is no whole number of ticks everywhere.
    config.slice = slice.max(Ticks::new(config.frequency.div_ceil(1000)));
    config.round = Config::usual_round(slice_us);
    if let Some(affinity) = given.affinity {
        config.affinity = u8::try_from(affinity).unwrap_or(u8::MAX);
    }
    if let Some(budget) = given.self_wait_budget {
        config.self_wait_budget = u16::try_from(budget).unwrap_or(u16::MAX);
    }
    if let Some(limit) = given.reservation_limit_us {
        config.reservation_limit = ticks(config.frequency, limit);
    }
    if let Some(round) = given.round {
        config.round = round;
    }
    if let Some(relaxed) = given.relaxed_terms {
        config.relaxes = relaxed != 0;
    }
}

/// So many microseconds in ticks of a clock of `frequency` ticks a second, a part of a tick left away.
pub fn ticks(frequency: u64, microseconds: u32) -> Ticks {
    Ticks::new(frequency.saturating_mul(microseconds.into()) / 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use scheduler::{ConfigError, HartId, HartSet, Scheduler};

    const FREQUENCY: u64 = 10_000_000;
    const SLICE_US: u32 = 5_000;

    fn made(given: &Parameters) -> Result<Config, ConfigError> {
        let mut config = Config::new(FREQUENCY);
        set(&mut config, SLICE_US, given);
        let hart = HartId::new(0).map_or(HartSet::EMPTY, HartSet::only);
        Scheduler::new(config, hart).map(|scheduler| *scheduler.config())
    }

    #[test]
    fn what_is_not_given_is_usual() {
        let usual = Config {
            round: 2,
            ..Config::new(FREQUENCY)
        };
        assert_eq!(made(&Parameters::default()), Ok(usual));
        let strict = Parameters {
            affinity: Some(0),
            ..Parameters::default()
        };
        assert_eq!(
            made(&strict),
            Ok(Config {
                affinity: 0,
                ..usual
            })
        );
    }

    #[test]
    fn what_is_given_arrives() {
        let given = Parameters {
            affinity: Some(10),
            self_wait_budget: Some(300),
            reservation_limit_us: Some(20_000),
            round: Some(100),
            relaxed_terms: Some(0),
            ..Parameters::default()
        };
        let expected = Config {
            affinity: 10,
            self_wait_budget: 300,
            reservation_limit: Ticks::new(FREQUENCY / 50),
            round: 100,
            relaxes: false,
            ..Config::new(FREQUENCY)
        };
        assert_eq!(made(&given), Ok(expected));
    }

    #[test]
    fn a_number_that_no_field_holds_is_refused_and_not_cut() {
        // Cut to the fields' 8 and 16 bits, these would be 1.
        let affinity = Parameters {
            affinity: Some(0x101),
            ..Parameters::default()
        };
        assert_eq!(made(&affinity), Err(ConfigError::Affinity));
        let budget = Parameters {
            self_wait_budget: Some(0x1_0001),
            ..Parameters::default()
        };
        assert_eq!(made(&budget), Err(ConfigError::SelfWaitBudget));
    }

    proptest! {
        #[test]
        fn the_scheduler_takes_exactly_what_the_description_may_say(
            affinity in prop_oneof![0u32..=70, any::<u32>()],
            budget in prop_oneof![0u32..=1100, any::<u32>()],
            limit in prop_oneof![0u32..=1_000_100, any::<u32>()],
            round in prop_oneof![0u32..=1100, any::<u32>()],
        ) {
            let given = Parameters {
                affinity: Some(affinity),
                self_wait_budget: Some(budget),
                reservation_limit_us: Some(limit),
                round: Some(round),
                ..Parameters::default()
            };
            let good = system::AFFINITY.contains(&affinity)
                && system::SELF_WAIT_BUDGET.contains(&budget)
                && system::RESERVATION_LIMIT_US.contains(&limit)
                && limit >= *Config::SLICE_US.start() as u32
                && system::ROUND.contains(&round);
            prop_assert_eq!(made(&given).is_ok(), good);
        }
    }
}
