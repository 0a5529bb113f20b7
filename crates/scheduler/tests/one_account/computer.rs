//! Harts, guests, and what happens to them.

use super::account::{Account, mean};
use super::guests::{Random, Vm};
use std::collections::VecDeque;

/// Time slice in ticks. A context switch is a fiftieth.
pub const SLICE: u64 = 1000;
pub const SWITCH: u64 = 20;
/// Longest poll of a word before the vCPU leaves: two switches.
const POLL: u64 = 2 * SWITCH;
/// Bound on a VM's lag, in ticks for each hart.
pub const MAX_LAG: u64 = 2 * SLICE;
/// Lag by which a ready vCPU of another queue must exceed the best of the own one to be pulled, and by which a woken vCPU preempts.
pub(super) const PULL_LAG: i64 = SLICE.cast_signed();
/// Time of a VM's vCPUs after which it is decided whether it is scheduled as a gang.
const WINDOW: u64 = 8 * SLICE;
/// Windows after which a VM is scheduled the other way for one window, to measure again.
const RETRY: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    /// Computes, or holds the lock.
    Running,
    /// On a hart, and in line for the lock since then.
    Spins(u64),
    /// In line for the lock, without a hart.
    Waits,
    Sleeps(u64),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Vcpu {
    pub(super) vm: usize,
    /// Hart whose queue it is in, or that it is on.
    pub(super) hart: usize,
    pub(super) state: State,
    pub(super) holds: bool,
    /// Ticks until the end of what it does.
    pub(super) left: u64,
}

/// Part of its time that a VM lost at locks, one way of scheduling it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    lost: u64,
    used: u64,
}

impl Loss {
    /// Loss in parts of a million.
    fn part(self) -> u64 {
        self.lost * 1_000_000 / self.used.max(1)
    }
}

#[derive(Debug)]
pub(super) struct Guest {
    pub(super) spec: Vm,
    pub(super) account: Account,
    pub(super) holder: Option<usize>,
    pub(super) line: VecDeque<usize>,
    pub(super) ends: u64,
    pub(super) used: u64,
    /// Present window.
    pub(super) window: Loss,
    /// Last windows, vCPU by vCPU and as a gang.
    pub(super) losses: [Option<Loss>; 2],
    pub(super) is_gang: bool,
    pub(super) windows: u32,
    /// End of the slice that it has as a gang.
    pub(super) together_until: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hart {
    pub(super) vcpu: Option<usize>,
    pub(super) last: Option<usize>,
    /// End of the switch to the vCPU.
    pub(super) starts: u64,
    pub(super) slice_end: u64,
    /// VM that pays for the next switch: the one that left or was at the end of its slice, or the one that preempted it.
    pub(super) payer: Option<usize>,
    /// VM that has the hart as a part of its gang's slice.
    pub(super) of_gang: Option<usize>,
}

pub struct Computer {
    pub now: u64,
    pub gangs: bool,
    pub(super) harts: Vec<Hart>,
    pub(super) vcpus: Vec<Vcpu>,
    pub(super) guests: Vec<Guest>,
    pub(super) random: Random,
}

impl Computer {
    pub fn new(harts: usize, vms: &[Vm], gangs: bool, seed: u64) -> Self {
        let mut computer = Self {
            now: 0,
            gangs,
            harts: vec![Hart::default(); harts],
            vcpus: Vec::new(),
            guests: Vec::new(),
            random: Random::new(seed),
        };
        for (vm, spec) in vms.iter().enumerate() {
            computer.guests.push(Guest {
                spec: *spec,
                account: Account::new(spec.share, SLICE),
                holder: None,
                line: VecDeque::new(),
                ends: 0,
                used: 0,
                window: Loss::default(),
                losses: [None; 2],
                is_gang: false,
                windows: 0,
                together_until: 0,
            });
            for _ in 0..spec.vcpus {
                let hart = computer.vcpus.len() % harts;
                let left = computer.about(spec.work.computes);
                computer.vcpus.push(Vcpu {
                    vm,
                    hart,
                    state: State::Ready,
                    holds: false,
                    left,
                });
            }
        }
        computer
    }

    /// Jobs that each VM has ended.
    pub fn ends(&self) -> Vec<u64> {
        self.guests.iter().map(|guest| guest.ends).collect()
    }

    /// Ticks that each VM has had harts.
    pub fn used(&self) -> Vec<u64> {
        self.guests.iter().map(|guest| guest.used).collect()
    }

    /// Lag of each VM that wants a hart.
    pub fn lags(&self) -> Vec<i64> {
        let mean = self.mean();
        let wants = (0..self.guests.len()).filter(|&vm| self.wants(vm));
        wants.map(|vm| self.guests[vm].account.lag(mean)).collect()
    }

    /// VMs that are scheduled as gangs.
    pub fn gangs_now(&self) -> Vec<bool> {
        self.guests.iter().map(|guest| guest.is_gang).collect()
    }

    pub(super) fn about(&mut self, mean: u64) -> u64 {
        1 + self.random.below(2 * mean.max(1))
    }

    fn wants(&self, vm: usize) -> bool {
        let mut own = self.vcpus.iter().filter(|vcpu| vcpu.vm == vm);
        own.any(|vcpu| matches!(vcpu.state, State::Ready | State::Running | State::Spins(_)))
    }

    pub(super) fn mean(&self) -> i64 {
        let wanting = (0..self.guests.len()).filter(|&vm| self.wants(vm));
        mean(wanting.map(|vm| &self.guests[vm].account)).unwrap_or(0)
    }

    /// Lets time pass.
    pub fn run(&mut self, length: u64) {
        let end = self.now + length;
        self.fill_harts();
        while let Some(at) = self.next_event().filter(|&at| at <= end) {
            self.pass(at);
            self.act();
            self.fill_harts();
        }
        self.pass(end);
    }

    fn next_event(&self) -> Option<u64> {
        let harts = self.harts.iter().filter_map(|hart| {
            let vcpu = &self.vcpus[hart.vcpu?];
            let own = match vcpu.state {
                State::Running => hart.starts.max(self.now) + vcpu.left,
                State::Spins(since) if hart.of_gang.is_none() => since + POLL,
                _ => u64::MAX,
            };
            Some(own.min(hart.slice_end).max(self.now))
        });
        let sleepers = self.vcpus.iter().filter_map(|vcpu| match vcpu.state {
            State::Sleeps(until) => Some(until.max(self.now)),
            _ => None,
        });
        harts.chain(sleepers).min()
    }

    /// Charges what has passed until `at`.
    fn pass(&mut self, at: u64) {
        let passed = at - self.now;
        for place in 0..self.harts.len() {
            let hart = self.harts[place];
            let Some(vcpu) = hart.vcpu else { continue };
            let entry = &mut self.vcpus[vcpu];
            let worked = at.saturating_sub(hart.starts.max(self.now));
            let payer = &mut self.guests[hart.payer.unwrap_or(entry.vm)];
            payer.used += passed - worked;
            payer.window.used += passed - worked;
            payer.account.charge((passed - worked).cast_signed(), SLICE);
            let guest = &mut self.guests[entry.vm];
            match entry.state {
                State::Running => entry.left = entry.left.saturating_sub(worked),
                _ => guest.window.lost += worked,
            }
            guest.used += worked;
            guest.window.used += worked;
            guest.account.charge(worked.cast_signed(), SLICE);
        }
        self.now = at;
        let mean = self.mean();
        let most = (MAX_LAG * self.harts.len() as u64).cast_signed();
        for guest in &mut self.guests {
            guest.account.bound(mean, most, SLICE);
        }
    }

    /// Lets happen what is due now.
    fn act(&mut self) {
        for vcpu in 0..self.vcpus.len() {
            if matches!(self.vcpus[vcpu].state, State::Sleeps(until) if until <= self.now) {
                self.wake(vcpu);
            }
        }
        for place in 0..self.harts.len() {
            let hart = self.harts[place];
            let Some(vcpu) = hart.vcpu else { continue };
            match self.vcpus[vcpu].state {
                State::Running if self.vcpus[vcpu].left == 0 && hart.starts <= self.now => {
                    self.end_phase(place, vcpu);
                }
                State::Spins(since) if hart.of_gang.is_none() && since + POLL <= self.now => {
                    // To leave and to come back takes two switches.
                    let vm = self.vcpus[vcpu].vm;
                    self.guests[vm].window.lost += 2 * SWITCH;
                    self.leave(place, State::Waits);
                }
                _ => {}
            }
            if self.harts[place].vcpu.is_some() && self.harts[place].slice_end <= self.now {
                self.end_slice(place);
            }
        }
    }

    /// The vCPU on a hart has computed, or ends its time under the lock.
    fn end_phase(&mut self, place: usize, vcpu: usize) {
        let vm = self.vcpus[vcpu].vm;
        let work = self.guests[vm].spec.work;
        if !self.vcpus[vcpu].holds && work.holds > 0 {
            if self.guests[vm].holder.is_none() {
                self.guests[vm].holder = Some(vcpu);
                self.begin_hold(vcpu, work.holds);
            } else {
                self.guests[vm].line.push_back(vcpu);
                self.vcpus[vcpu].state = State::Spins(self.now);
            }
            return;
        }
        self.guests[vm].ends += 1;
        if std::mem::take(&mut self.vcpus[vcpu].holds) {
            self.pass_lock_on(vm, work.holds);
        }
        self.vcpus[vcpu].left = self.about(work.computes);
        if work.thinks > 0 {
            let until = self.now + self.about(work.thinks);
            self.leave(place, State::Sleeps(until));
        }
    }

    fn begin_hold(&mut self, vcpu: usize, holds: u64) {
        self.vcpus[vcpu].holds = true;
        self.vcpus[vcpu].left = self.about(holds);
    }

    /// Gives the lock to the next in line.
    fn pass_lock_on(&mut self, vm: usize, holds: u64) {
        let next = self.guests[vm].line.pop_front();
        self.guests[vm].holder = next;
        let Some(next) = next else { return };
        self.begin_hold(next, holds);
        match self.vcpus[next].state {
            State::Spins(_) => self.vcpus[next].state = State::Running,
            _ => self.wake(next),
        }
    }

    fn leave(&mut self, place: usize, state: State) {
        if let Some(vcpu) = self.harts[place].vcpu.take() {
            self.harts[place].payer = Some(self.vcpus[vcpu].vm);
            self.vcpus[vcpu].state = state;
        }
    }

    /// Preempts the vCPU on a hart. A spinning one waits without a hart.
    fn put_away(&mut self, place: usize) {
        let Some(vcpu) = self.harts[place].vcpu else {
            return;
        };
        match self.vcpus[vcpu].state {
            State::Spins(_) => self.leave(place, State::Waits),
            _ => self.leave(place, State::Ready),
        }
    }

    /// Preempts the vCPU on a hart for a VM, which pays for the switch.
    pub(super) fn preempt(&mut self, place: usize, by: usize) {
        self.put_away(place);
        self.harts[place].payer = Some(by);
    }

    fn end_slice(&mut self, place: usize) {
        self.harts[place].of_gang = None;
        self.put_away(place);
    }

    /// Decides at the end of a window whether a VM is scheduled as a gang: if it has lost more at locks by itself than as a gang, and more than the
    /// switches of a gang's slice cost.
    pub(super) fn decide(&mut self, vm: usize) {
        let guest = &mut self.guests[vm];
        if !self.gangs || guest.window.used < WINDOW {
            return;
        }
        guest.losses[usize::from(guest.is_gang)] = Some(std::mem::take(&mut guest.window));
        guest.windows += 1;
        let [single, gang] = guest.losses.map(|loss| loss.map(Loss::part));
        let cost = SWITCH * 1_000_000 / SLICE;
        let better = match (single, gang) {
            (Some(single), None) => single > cost,
            (Some(single), Some(gang)) => single > gang + cost,
            (None, _) => false,
        };
        let retries =
            guest.windows.is_multiple_of(RETRY) && single.is_some_and(|single| single > cost);
        guest.is_gang = better != retries;
    }
}
