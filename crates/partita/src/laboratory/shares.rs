//! Whether each VM has its share all the time: the guests' time in windows of 20 ms and of 200 ms.
//!
//! The hardware monitor is read every 20 ms of machine time, which changes nothing.

use super::Figures;
use super::checkpoint::{Boot, CheckpointFailure};
use super::window::{Window, begin, boot_and};
use crate::computer::headless::Limits;
use crate::run::Outcome;
use crate::system::{System, Vm};
use abi::system::Allocation;
use exerciser::arguments::Arguments;
use exerciser::workload::Workload;
use machine::Stop;
use machine::monitor::{Event, Snapshot};

/// The short window in milliseconds of machine time, and how many of them make a long one.
const SHORT: u64 = 20;
const SHORTS_IN_A_LONG: usize = 10;

/// A VM's part of the shared harts.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Claim {
    /// Its share out of all shares.
    part: f64,
    /// Whether it can use that much at any time.
    always: bool,
}

/// Runs a system whose VMs work for the time of `window`, and measures what part of its share each had that always wanted it:
/// `least-of-share-20ms` and `least-of-share-200ms` in per cent.
///
/// # Errors
/// [`CheckpointFailure`].
pub fn measure(
    boot: &Boot<'_>,
    window: &Window,
    show: &mut dyn FnMut(&str),
) -> Result<(Outcome, Figures), CheckpointFailure> {
    boot_and(boot, |_, mut run| {
        let begun = begin(&mut run, boot, window, show)?;
        let to_end = Limits {
            stop: Some(boot.stop),
            ..Limits::of(boot.system, boot.limit, run.machine.clock())
        };
        let a_millisecond = run.machine.clock().cycles_per_second() / 1000;
        let end = begun.saturating_add(a_millisecond.saturating_mul(window.milliseconds));
        let mut before = run.machine.snapshot();
        let mut windows = Vec::new();
        let mut stop = Stop::Limit;
        while stop == Stop::Limit {
            let next = run.machine.now() + a_millisecond * SHORT;
            if next > end {
                break;
            }
            let limits = Limits {
                cycles: Some(next),
                ..to_end
            };
            stop = run.follow(&limits, show);
            let now = run.machine.snapshot();
            if stop == Stop::Limit {
                windows.push(of_vms(boot.system, &now.since(&before)));
            }
            before = now;
        }
        if stop == Stop::Limit {
            stop = run.follow(&to_end, show);
        }
        let figures = figures(&claims(boot.system), &windows);
        Ok((run.finish(stop).outcome, figures))
    })
}

/// The cycles of each VM's guest.
fn of_vms(system: &System, counted: &Snapshot) -> Vec<u64> {
    let mut first = 1;
    let cycles = |vmid: u16| -> u64 {
        let harts = counted.harts.iter();
        let counts = harts.filter_map(|hart| hart.counts.virtual_machines.get(&vmid));
        counts
            .map(|counts| counts.supervisor.get(Event::Cycles) + counts.user.get(Event::Cycles))
            .sum()
    };
    let vms = system.vms.iter().map(|vm| {
        // Each vCPU has a VMID, VM by VM, from 1.
        let vmids = first..first + vm.vcpus.value as u16;
        first = vmids.end;
        vmids.map(cycles).sum()
    });
    vms.collect()
}

/// What each VM may claim.
fn claims(system: &System) -> Vec<Claim> {
    let share = |vm: &Vm| match vm.allocation.value {
        Allocation::Shared { share } => f64::from(share),
        Allocation::Dedicated { .. } => 0.0,
    };
    let all: f64 = system.vms.iter().map(share).sum();
    let claim = |vm: &Vm| {
        let part = share(vm) / all;
        let harts = f64::from(system.harts.value) * part;
        Claim {
            part,
            always: part > 0.0 && harts <= f64::from(wants(&vm.command_line, vm.vcpus.value)),
        }
    };
    system.vms.iter().map(claim).collect()
}

/// How many harts a guest can use at any time: each vCPU's where it only computes; one where its vCPUs wait for each other, because
/// the holder of a lock can go on; none where it thinks or reads.
fn wants(command_line: &str, vcpus: u32) -> u32 {
    let parsed = Arguments::parse(command_line).ok();
    let work = parsed.and_then(|words| Workload::parse(&words).ok());
    match work {
        Some(work) if work.think_us == 0 && work.reads == 0 => {
            let waits = work.locks + work.calls + work.partner_one_in + work.request_one_in;
            if waits == 0 { vcpus } else { 1 }
        }
        _ => 0,
    }
}

/// The least part of a share in short and in long windows.
fn figures(claims: &[Claim], windows: &[Vec<u64>]) -> Figures {
    let least = |length: usize| {
        let sums = windows.windows(length).map(|some| {
            let of_vm = |vm| some.iter().filter_map(|window| window.get(vm)).sum::<u64>();
            (0..claims.len()).map(of_vm).collect::<Vec<u64>>()
        });
        let parts = sums.flat_map(|sums| {
            let all = sums.iter().sum::<u64>() as f64;
            let each = claims.iter().zip(sums);
            let always = each.filter(|(claim, _)| claim.always);
            let parts = always.map(move |(claim, own)| own as f64 / all / claim.part);
            parts.collect::<Vec<f64>>()
        });
        parts.min_by(f64::total_cmp)
    };
    let names = [
        ("least-of-share-20ms", 1),
        ("least-of-share-200ms", SHORTS_IN_A_LONG),
    ];
    let known = names.into_iter().filter_map(|(name, length)| {
        let least = least(length).filter(|least| least.is_finite())?;
        Some((String::from(name), least * 100.0))
    });
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_always_wants_its_share_is_looked_at() {
        let claim = |part, always| Claim { part, always };
        let claims = [claim(0.5, true), claim(0.5, false)];
        let mut windows = vec![vec![50, 50]; 10];
        windows[3] = vec![20, 80];
        let figures = figures(&claims, &windows);
        assert!((figures["least-of-share-20ms"] - 40.0).abs() < 1e-9);
        assert!((figures["least-of-share-200ms"] - 94.0).abs() < 1e-9);
        windows.pop();
        let figures = super::figures(&claims, &windows);
        assert!(!figures.contains_key("least-of-share-200ms"), "too short");
    }

    #[test]
    fn what_a_guest_can_use_follows_from_its_work() {
        let work = "exercise=work duration-ms=100";
        assert_eq!(wants(work, 3), 3);
        assert_eq!(wants(&format!("{work} locks=2"), 3), 1);
        assert_eq!(wants(&format!("{work} think-us=100"), 3), 0);
        assert_eq!(wants("init=/bin/sh quiet", 3), 0);
    }
}
