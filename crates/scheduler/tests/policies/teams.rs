//! Teams: partners that wait for each other for less than two changes come to run at the same time.

use super::bench::{Bench, FREQUENCY, h, v};
use scheduler::*;

/// Whether the words that are waited for have changed.
struct Words(bool);

impl Probe for Words {
    fn pending(&mut self, _: VcpuId) -> bool {
        false
    }

    fn changed(&mut self, _: VcpuId) -> bool {
        self.0
    }
}

/// One machine of two vCPUs and one of three, on three harts, the last of which searches.
fn bench(affinity: u8) -> Bench {
    let config = Config {
        spin: SpinPolicy::Reservation,
        affinity,
        ..Config::new(FREQUENCY)
    };
    Bench::new(config, 3, &[2, 3])
}

fn dispatch(bench: &mut Bench, hart: u16, changed: bool) -> Option<VcpuId> {
    let now = Ticks::new(bench.now);
    let answer = bench.scheduler.dispatch(h(hart), now, &mut Words(changed));
    bench.scheduler.check().unwrap();
    match answer {
        Dispatch::Run { vcpu, .. } => Some(vcpu),
        Dispatch::Idle { .. } => None,
    }
}

/// The vCPU on the hart waits for its turn, after looks that have paid or not, and another one has the hart.
fn wait_for_turn(bench: &mut Bench, hart: u16, (looks_pay, holder): (bool, Option<u16>)) -> u16 {
    let left = Left {
        looks_pay,
        holder: holder.map(v),
        ..Left::new(Leave::SpinForTurn, Ticks::new(100))
    };
    let _ = bench.scheduler.leave(h(hart), left, Ticks::new(bench.now));
    bench.scheduler.check().unwrap();
    dispatch(bench, hart, false).map_or(u16::MAX, VcpuId::get)
}

/// 1 runs on hart 0, and 0, whose looks have paid or not, on hart 1.
fn both_run(affinity: u8, looks_pay: bool) -> Bench {
    let mut bench = bench(affinity);
    assert_eq!(dispatch(&mut bench, 0, false), Some(v(0)));
    assert_eq!(wait_for_turn(&mut bench, 0, (looks_pay, None)), 1);
    assert_eq!(dispatch(&mut bench, 1, true), Some(v(0)), "its turn");
    bench
}

#[test]
fn who_is_on_a_team_joins_a_partner_that_runs() {
    for (looks_pay, next) in [(true, 0), (false, 2)] {
        let mut bench = both_run(3, looks_pay);
        let _ = bench.leave(1, Leave::Yield);
        assert_eq!(bench.dispatch(2), Some(next), "2, 3 and 4 are before 0");
    }
}

#[test]
fn nobody_joins_where_no_partner_runs() {
    let mut bench = both_run(3, true);
    let _ = bench.leave(0, Leave::SelfWait);
    let _ = bench.leave(1, Leave::Yield);
    assert_eq!(bench.dispatch(2), Some(2));
}

#[test]
fn a_team_is_forgotten_when_looks_do_not_pay_any_more() {
    let mut bench = both_run(3, true);
    assert_eq!(wait_for_turn(&mut bench, 1, (false, None)), 2);
    assert_eq!(dispatch(&mut bench, 2, true), Some(v(0)), "its turn");
    let _ = bench.leave(2, Leave::Yield);
    assert_eq!(
        bench.turn(1, Leave::SelfWait),
        Some(3),
        "1 runs, but 0 does not join it"
    );
}

#[test]
fn nobody_is_passed_over_for_ever() {
    for affinity in 0..4 {
        let mut bench = both_run(affinity, true);
        let _ = bench.leave(1, Leave::Yield);
        // From hart to hart, so that 0 is never preferred for having run there last.
        for turn in 0..affinity {
            let hart = 2 - u16::from(turn % 2);
            assert_eq!(bench.dispatch(hart), Some(0), "{affinity}");
            let _ = bench.leave(hart, Leave::Yield);
        }
        let hart = 2 - u16::from(affinity % 2);
        assert_eq!(bench.dispatch(hart), Some(2), "{affinity}");
    }
}

#[test]
fn a_teams_time_is_over_with_its_slices() {
    let mut bench = both_run(3, true);
    assert_eq!(bench.turn(1, Leave::SliceEnd), Some(2), "not 0 again");
    // 0 holds the lock, but is not favoured.
    assert_eq!(wait_for_turn(&mut bench, 0, (true, Some(0))), 3);
    let mut bench = both_run(3, false);
    assert_eq!(bench.turn(1, Leave::SliceEnd), Some(2));
    let next = wait_for_turn(&mut bench, 0, (false, Some(0)));
    assert_eq!(next, 0, "on no team, the holder is favoured");
}
