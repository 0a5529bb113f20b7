//! Parameters of the policies, from a system's description to the scheduler.

use abi::keys::{self, Settings};
use scheduler::{Config, Ticks};

// The limits of the keys are those of the scheduler.
const _: () = {
    const fn same(limits: &core::ops::RangeInclusive<u64>, min: u64, max: u64) -> bool {
        *limits.start() == min && *limits.end() == max
    }
    let (slice, round) = (Config::SLICE_US, Config::ROUND);
    let (affinity, budget) = (Config::AFFINITY, Config::SELF_WAIT_BUDGET);
    assert!(same(
        &keys::TIME_SLICE.limits(),
        *slice.start(),
        *slice.end()
    ));
    assert!(same(
        &keys::ROUND.limits(),
        *round.start() as u64,
        *round.end() as u64
    ));
    assert!(same(
        &keys::AFFINITY.limits(),
        *affinity.start() as u64,
        *affinity.end() as u64
    ));
    assert!(same(
        &keys::SELF_WAIT_BUDGET.limits(),
        *budget.start() as u64,
        *budget.end() as u64
    ));
    assert!(*keys::RESERVATION_LIMIT.limits().end() == Config::LONGEST_RESERVATION_US);
};

/// Sets the slice, which is no longer than the reservation limit, and the parameters of the policies. `Scheduler::new` checks them: a number
/// that is too large for its field becomes the field's largest value, which is out of bounds as well.
pub fn set(config: &mut Config, slice_us: u32, settings: &Settings) {
    let limit = settings.given(keys::RESERVATION_LIMIT);
    let slice = ticks(config.frequency, slice_us.min(limit.unwrap_or(u32::MAX)));
    // A thousandth of a second is no whole number of ticks everywhere.
    config.slice = slice.max(Ticks::new(config.frequency.div_ceil(1000)));
    let round = settings.get(keys::ROUND);
    config.round = round.unwrap_or_else(|| Config::usual_round(slice_us));
    config.affinity = u8::try_from(settings.get(keys::AFFINITY)).unwrap_or(u8::MAX);
    let budget = settings.get(keys::SELF_WAIT_BUDGET);
    config.self_wait_budget = u16::try_from(budget).unwrap_or(u16::MAX);
    config.reservation_limit = ticks(config.frequency, settings.get(keys::RESERVATION_LIMIT));
    config.relaxes = !settings.get(keys::TRAP_WAITS);
}

/// Converts microseconds to ticks of a clock of `frequency` ticks a second, rounded down.
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

    fn made(settings: &Settings) -> Result<Config, ConfigError> {
        let mut config = Config::new(FREQUENCY);
        set(&mut config, SLICE_US, settings);
        let hart = HartId::new(0).map_or(HartSet::EMPTY, HartSet::only);
        Scheduler::new(config, hart).map(|scheduler| *scheduler.config())
    }

    #[test]
    fn defaults_are_the_schedulers() {
        let usual = Config {
            round: 2,
            ..Config::new(FREQUENCY)
        };
        assert_eq!(made(&Settings::default()), Ok(usual));
        let strict = Settings::default().with(keys::AFFINITY, 0);
        assert_eq!(
            made(&strict),
            Ok(Config {
                affinity: 0,
                ..usual
            })
        );
    }

    #[test]
    fn given_values_reach_the_scheduler() {
        let given = Settings::default()
            .with(keys::AFFINITY, 10)
            .with(keys::SELF_WAIT_BUDGET, 300)
            .with(keys::RESERVATION_LIMIT, 20_000)
            .with(keys::ROUND, Some(100))
            .with(keys::TRAP_WAITS, true);
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
    fn too_large_numbers_are_refused_not_cut() {
        // Cut to the fields' 8 and 16 bits, these would be 1.
        let affinity = Settings::default().with(keys::AFFINITY, 0x101);
        assert_eq!(made(&affinity), Err(ConfigError::Affinity));
        let budget = Settings::default().with(keys::SELF_WAIT_BUDGET, 0x1_0001);
        assert_eq!(made(&budget), Err(ConfigError::SelfWaitBudget));
    }

    proptest! {
        #[test]
        fn the_scheduler_takes_what_keys_allow(
            affinity in prop_oneof![0u32..=70, any::<u32>()],
            budget in prop_oneof![0u32..=1100, any::<u32>()],
            limit in prop_oneof![0u32..=1_000_100, any::<u32>()],
            round in prop_oneof![0u32..=1100, any::<u32>()],
        ) {
            let given = Settings::default()
                .with(keys::AFFINITY, affinity)
                .with(keys::SELF_WAIT_BUDGET, budget)
                .with(keys::RESERVATION_LIMIT, limit)
                .with(keys::ROUND, Some(round));
            let good = keys::AFFINITY.limits().contains(&affinity.into())
                && keys::SELF_WAIT_BUDGET.limits().contains(&budget.into())
                && keys::RESERVATION_LIMIT.limits().contains(&limit.into())
                && limit >= *Config::SLICE_US.start() as u32
                && keys::ROUND.limits().contains(&round.into());
            prop_assert_eq!(made(&given).is_ok(), good);
        }
    }
}
