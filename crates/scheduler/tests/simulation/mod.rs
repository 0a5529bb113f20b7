//! A computer in miniature: harts that act only when something happens to them.
//!
//! An idle hart sleeps until a kick, or an interrupt for a vCPU whose interrupt file it holds; a hart in a guest is interrupted only by kicks and by
//! its own slice timer. A kick that the scheduler forgets does not happen. The [`reference`] model keeps the expected state of each vCPU and knows
//! nothing of queues and bit masks.
#![allow(dead_code, reason = "each test program uses a part")]

mod check;
mod guest;
mod harts;
pub mod reference;

pub use guest::{Act, Habit, Random};
use reference::Reference;
use scheduler::*;

pub const FREQUENCY: u64 = 1_000_000;
/// Delay of a kick.
const KICK_DELAY: u64 = 3;
/// Interval of a polling hart.
const POLL_PERIOD: u64 = 20;

#[derive(Clone, Copy, Debug)]
enum Mode {
    Asleep,
    Polling {
        next: u64,
    },
    Guest(Guest),
    /// The vCPU waits in place.
    InPlace(Guest),
}

#[derive(Clone, Copy, Debug)]
struct Guest {
    vcpu: VcpuId,
    entered: u64,
    slice_end: Option<u64>,
    trap_waits: bool,
    /// End of its burst; `None` while it waits in a WFI that does not trap.
    burst_end: Option<u64>,
}

#[derive(Clone, Debug)]
struct Hart {
    id: HartId,
    mode: Mode,
    kick: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Vcpu {
    pub id: VcpuId,
    pub habit: Habit,
    pub pending: bool,
    pub changed: bool,
    pub ran: u64,
    /// Longest time that it was ready, or had an interrupt pending, without running.
    pub longest_wait: u64,
    ready_since: Option<u64>,
}

pub struct Simulation {
    pub scheduler: Scheduler,
    pub now: u64,
    pub vcpus: Vec<Vcpu>,
    pub random: Random,
    pub reference: Reference,
    pub idle_time: u64,
    harts: Vec<Hart>,
    /// Check everything after each step. Long runs for shares do without.
    pub checked: bool,
    /// Harts leave and dispatch in one step.
    together: bool,
}

impl Simulation {
    pub fn new(config: Config, harts: u16, seed: u64) -> Self {
        let ids = (0..harts).map(|index| HartId::new(index).unwrap());
        let mut simulation = Self {
            scheduler: Scheduler::new(config, ids.clone().collect()).unwrap(),
            now: 0,
            vcpus: Vec::new(),
            random: Random::new(seed),
            reference: Reference::default(),
            idle_time: 0,
            harts: ids
                .map(|id| Hart {
                    id,
                    mode: Mode::Asleep,
                    kick: None,
                })
                .collect(),
            checked: true,
            together: seed % 2 == 1,
        };
        for place in 0..simulation.harts.len() {
            simulation.dispatch(place);
        }
        simulation
    }

    fn ticks(&self) -> Ticks {
        Ticks::new(self.now)
    }

    pub fn add_vm(&mut self, vcpus: u16, allocation: Allocation, habit: Habit) -> VmId {
        let placement = self.scheduler.config().placement;
        self.add_placed_vm(placement, vcpus, allocation, habit)
    }

    pub fn add_placed_vm(
        &mut self,
        placement: Placement,
        vcpus: u16,
        allocation: Allocation,
        habit: Habit,
    ) -> VmId {
        let config = VmConfig { vcpus, allocation };
        let (vm, kicks) = self.scheduler.add_placed_vm(config, placement).unwrap();
        for id in self.scheduler.vcpus(vm).iter() {
            self.vcpus.push(Vcpu {
                id,
                habit,
                pending: false,
                changed: false,
                ran: 0,
                longest_wait: 0,
                ready_since: None,
            });
            self.reference.add(id, vm);
        }
        self.deliver(kicks);
        vm
    }

    pub fn start_all(&mut self) {
        for place in 0..self.vcpus.len() {
            self.start(self.vcpus[place].id);
        }
    }

    // Events of a vCPU. Each informs scheduler and reference, and delivers the kicks.

    pub fn start(&mut self, vcpu: VcpuId) {
        let kicks = self.scheduler.start(vcpu, self.ticks());
        self.reference.start(vcpu);
        self.deliver(kicks);
    }

    pub fn stop(&mut self, vcpu: VcpuId) {
        let kicks = self.scheduler.stop(vcpu);
        self.reference.stop(vcpu);
        self.deliver(kicks);
    }

    pub fn pause(&mut self, vcpu: VcpuId) {
        let kicks = self.scheduler.pause(vcpu);
        self.reference.pause(vcpu);
        self.deliver(kicks);
    }

    pub fn resume(&mut self, vcpu: VcpuId) {
        let kicks = self.scheduler.resume(vcpu, self.ticks());
        self.reference.resume(vcpu);
        self.deliver(kicks);
    }

    pub fn set_allocation(&mut self, vm: VmId, to: Allocation) {
        if let Ok(kicks) = self.scheduler.set_allocation(vm, to) {
            self.reference.release_all(Some(vm));
            self.deliver(kicks);
        }
    }

    pub fn set_spin(&mut self, policy: SpinPolicy) {
        let kicks = self.scheduler.set_spin(policy, self.ticks());
        self.reference.release_all(None);
        self.deliver(kicks);
    }

    pub fn set_wait(&mut self, policy: WaitPolicy) {
        let kicks = self.scheduler.set_wait(policy);
        self.deliver(kicks);
        // Interrupts that were not reported before are reported from now on.
        if !self.tests_files() {
            for place in 0..self.vcpus.len() {
                if self.vcpus[place].pending {
                    self.report(place);
                }
            }
        }
    }

    fn tests_files(&self) -> bool {
        self.scheduler.config().wait.tests()
    }

    /// A device's interrupt arrives in the interrupt file of a vCPU.
    pub fn interrupt(&mut self, place: usize) {
        self.vcpus[place].pending = true;
        let id = self.vcpus[place].id;
        for hart in &mut self.harts {
            if let Mode::Guest(guest) = &mut hart.mode
                && guest.vcpu == id
            {
                // The guest takes it without the hypervisor, even out of a WFI.
                self.vcpus[place].pending = false;
                if guest.burst_end.is_none() {
                    guest.burst_end = Some(self.now + 1);
                }
                return;
            }
        }
        let waits = |hart: &Hart| matches!(hart.mode, Mode::InPlace(guest) if guest.vcpu == id);
        if let Some(hart) = self.harts.iter().position(waits) {
            return self.end_wait_in_place(hart);
        }
        let holds = |hart: &Hart| {
            let here = self.scheduler.last_hart(id) == Some(hart.id);
            here && matches!(hart.mode, Mode::InPlace(_))
        };
        if self.scheduler.state(id) == VcpuState::SelfWait
            && let Some(hart) = self.harts.iter().position(holds)
            && let Mode::InPlace(guest) = self.harts[hart].mode
        {
            return match self.scheduler.spread(self.harts[hart].id, id, self.ticks()) {
                Some(kicks) => {
                    self.reference.wake(id);
                    self.deliver(kicks);
                }
                None => self.leave(hart, guest, Leave::SelfWait),
            };
        }
        if !self.tests_files() {
            self.report(place);
        }
    }

    /// The interrupt that a vCPU waits for in place has come.
    fn end_wait_in_place(&mut self, place: usize) {
        let Mode::InPlace(guest) = self.harts[place].mode else {
            return;
        };
        let ran = Ticks::new(self.now - guest.entered);
        let answer = self.scheduler.end_wait_in_place(self.harts[place].id, ran);
        self.follow(place, guest, answer);
    }

    /// The hypervisor learns of an interrupt and wakes the vCPU.
    pub fn report(&mut self, place: usize) {
        let id = self.vcpus[place].id;
        let kicks = self.scheduler.wake(id, self.ticks());
        self.reference.wake(id);
        self.deliver(kicks);
        let waits = |hart: &&Hart| matches!(hart.mode, Mode::InPlace(guest) if guest.vcpu == id);
        let hart = self.harts.iter().filter(waits).map(|hart| hart.id);
        self.deliver(Kicks(hart.collect()));
    }

    pub fn change_word(&mut self, place: usize) {
        self.vcpus[place].changed = true;
    }

    fn deliver(&mut self, kicks: Kicks) {
        for hart in &mut self.harts {
            if kicks.harts().contains(hart.id) && hart.kick.is_none() {
                hart.kick = Some(self.now + KICK_DELAY);
            }
        }
    }

    /// Lets `length` ticks pass.
    pub fn run(&mut self, length: u64) {
        let end = self.now + length;
        while let Some((place, at)) = self.next_event().filter(|&(_, at)| at <= end) {
            self.now = self.now.max(at);
            self.act(place);
            if self.checked {
                self.check();
            }
        }
        self.now = end;
    }

    fn next_event(&self) -> Option<(usize, u64)> {
        let events = self.harts.iter().enumerate().filter_map(|(place, hart)| {
            let own = match hart.mode {
                Mode::Asleep => None,
                Mode::Polling { next } => Some(next),
                Mode::InPlace(_) => None,
                Mode::Guest(guest) => guest.slice_end.into_iter().chain(guest.burst_end).min(),
            };
            Some((place, own.into_iter().chain(hart.kick).min()?))
        });
        events.min_by_key(|&(_, at)| at)
    }

    fn act(&mut self, place: usize) {
        let id = self.harts[place].id;
        let kicked = self.harts[place].kick.is_some_and(|at| at <= self.now);
        if kicked {
            self.harts[place].kick = None;
        }
        let (Mode::Guest(guest) | Mode::InPlace(guest)) = self.harts[place].mode else {
            return self.dispatch(place);
        };
        let ran = self.now - guest.entered;
        if kicked || guest.slice_end.is_some_and(|at| at <= self.now) {
            let answer = self.scheduler.reconsider(id, Ticks::new(ran));
            self.follow(place, guest, answer);
            return;
        }
        self.end_burst(place, guest);
    }

    fn place_of(&self, vcpu: VcpuId) -> Option<usize> {
        self.vcpus.iter().position(|entry| entry.id == vcpu)
    }
}
