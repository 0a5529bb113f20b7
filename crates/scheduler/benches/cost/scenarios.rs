//! Scenarios: each repeats one step of a hart on a computer that is set up for it.
//!
//! Nothing here needs an operating system, so that the same code is counted on this computer and on RISC-V.

use scheduler::{
    Allocation, Config, Dispatch, HartId, HartSet, Kicks, Leave, Left, Probe, Scheduler, SpinExit,
    SpinOn, SpinPolicy, Ticks, VcpuId, VcpuSet, VmConfig, WaitPolicy,
};

/// A step with its name.
pub const SCENARIOS: [(&str, Step); 9] = [
    ("nothing (the probe and the loop)", Step::Nothing),
    (
        "WFI: leave and dispatch of another by its interrupt",
        Step::Wait,
    ),
    (
        "WFI: leave and dispatch of another, 4 of 5 waiting",
        Step::WaitBeside,
    ),
    ("WFI in place, and its end", Step::InPlace),
    ("wake, dispatch, WFI: leave, dispatch to idle", Step::Wake),
    ("spin: keeps, leave and dispatch by turn", Step::Spin),
    ("spin: keeps", Step::Keeps),
    ("slice end: leave and dispatch", Step::SliceEnd),
    ("reconsider", Step::Reconsider),
];

/// Harts, VMs, and vCPUs of each. The last is a group of four harts with its part of 512 vCPUs on 64 harts.
pub const SIZES: [(u16, u16, u16); 3] = [(4, 2, 4), (64, 16, 4), (4, 8, 4)];

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Nothing,
    Wait,
    WaitBeside,
    InPlace,
    Wake,
    Spin,
    Keeps,
    SliceEnd,
    Reconsider,
}

/// A computer that repeats a step.
pub struct Bench {
    scheduler: Scheduler,
    step: Step,
    harts: u16,
    round: u32,
    now: u64,
}

/// Interrupts and changed words.
struct Found {
    pending: VcpuSet,
    changed: VcpuSet,
}

impl Probe for Found {
    fn pending(&mut self, vcpu: VcpuId) -> bool {
        self.pending.contains(vcpu)
    }

    fn changed(&mut self, vcpu: VcpuId) -> bool {
        self.changed.contains(vcpu)
    }
}

const FREQUENCY: u64 = 10_000_000;

impl Bench {
    /// A computer of this size, ready for the step; `None` if the size is out of bounds.
    pub fn new(step: Step, (harts, vms, vcpus): (u16, u16, u16)) -> Option<Self> {
        let wait = match step {
            Step::Wake => WaitPolicy::HostInterrupt,
            _ => WaitPolicy::SelfWait,
        };
        let config = Config {
            spin: SpinPolicy::Reservation,
            wait,
            ..Config::new(FREQUENCY)
        };
        let online: HartSet = (0..harts).map_while(HartId::new).collect();
        let mut bench = Self {
            scheduler: Scheduler::new(config, online).ok()?,
            step,
            harts,
            round: 0,
            now: 0,
        };
        // Of `Wait`, two vCPUs share each hart; of `SliceEnd`, all vCPUs are ready.
        for vm in 0..vms {
            let allocation = Allocation::Shared { share: 1 };
            let config = VmConfig { vcpus, allocation };
            let (vm, _) = bench.scheduler.add_vm(config).ok().filter(|_| vm < vms)?;
            for vcpu in bench.scheduler.vcpus(vm).iter() {
                let _ = bench.scheduler.start(vcpu, Ticks::ZERO);
            }
        }
        bench.prepare();
        Some(bench)
    }

    fn prepare(&mut self) {
        let every = VcpuSet::from_bits(u64::MAX);
        match self.step {
            // All vCPUs are ready, and each hart runs one.
            Step::SliceEnd | Step::Reconsider | Step::Nothing => {
                for hart in 0..self.harts {
                    self.dispatch(hart, VcpuSet::EMPTY, every);
                }
            }
            // All vCPUs have run on one of the first harts, and wait.
            _ => {
                let home = match self.step {
                    Step::WaitBeside => 5,
                    _ => 2,
                };
                let mut hart = 0;
                let mut left = 0;
                while self.dispatch(hart, VcpuSet::EMPTY, every).is_some() {
                    let _ = self.leave(hart, Leave::SelfWait);
                    left += 1;
                    if left % home == 0 {
                        hart = (hart + 1) % self.harts;
                    }
                }
                for hart in 0..self.harts {
                    self.dispatch(hart, VcpuSet::EMPTY, every);
                }
                if !matches!(self.step, Step::Wake) {
                    // The first of each hart runs.
                    self.dispatch(0, only(0), every);
                }
            }
        }
    }

    fn dispatch(&mut self, hart: u16, pending: VcpuSet, changed: VcpuSet) -> Option<VcpuId> {
        let hart = HartId::new(hart)?;
        let mut probe = Found { pending, changed };
        match self
            .scheduler
            .dispatch(hart, Ticks::new(self.now), &mut probe)
        {
            Dispatch::Run { vcpu, .. } => Some(vcpu),
            Dispatch::Idle { .. } => None,
        }
    }

    fn leave(&mut self, hart: u16, reason: Leave) -> Kicks {
        self.now += 100;
        let left = Left::new(reason, Ticks::new(100));
        let hart = HartId::new(hart);
        hart.map_or(Kicks::NONE, |hart| {
            self.scheduler.leave(hart, left, Ticks::new(self.now))
        })
    }

    /// The vCPU on `hart` leaves it, and another one is dispatched.
    fn change(
        &mut self,
        hart: u16,
        left: &Left,
        (pending, changed): (VcpuSet, VcpuSet),
    ) -> Option<VcpuId> {
        self.now += left.ran.get();
        let hart = HartId::new(hart)?;
        let mut probe = Found { pending, changed };
        let now = Ticks::new(self.now);
        match self
            .scheduler
            .leave_and_dispatch(hart, left, now, &mut probe)
        {
            (_, Dispatch::Run { vcpu, .. }) => Some(vcpu),
            (_, Dispatch::Idle { .. }) => None,
        }
    }

    /// Takes the step so often. Returns the number of correct ones.
    pub fn run(&mut self, rounds: u32) -> u32 {
        let mut good = 0;
        for _ in 0..rounds {
            self.round = self.round.wrapping_add(1);
            good += u32::from(self.once());
        }
        good
    }

    fn once(&mut self) -> bool {
        // vCPUs 0 and 1 alternate on hart 0.
        let other = u16::from(self.round % 2 == 1);
        match self.step {
            Step::Nothing => true,
            Step::Wait | Step::WaitBeside => {
                let left = Left::new(Leave::SelfWait, Ticks::new(100));
                self.change(0, &left, (only(other), VcpuSet::EMPTY)) == VcpuId::new(other)
            }
            Step::InPlace => {
                self.now += 100;
                let (ran, now) = (Ticks::new(100), Ticks::new(self.now));
                let Some(hart) = HartId::new(0) else {
                    return false;
                };
                let _ = self.scheduler.wait_in_place(hart, ran, now);
                let _ = self.scheduler.end_wait_in_place(hart, ran);
                true
            }
            Step::Wake => {
                self.now += 100;
                let Some(vcpu) = VcpuId::new(0) else {
                    return false;
                };
                let kicks = self.scheduler.wake(vcpu, Ticks::new(self.now));
                let runs = self.dispatch(0, VcpuSet::EMPTY, VcpuSet::EMPTY) == Some(vcpu);
                let _ = self.leave(0, Leave::SelfWait);
                let idle = self.dispatch(0, VcpuSet::EMPTY, VcpuSet::EMPTY).is_none();
                runs && idle && kicks.harts().count() == 1
            }
            Step::Spin => {
                let _ = self.keeps_hart(SpinOn::Turn { next: false });
                let left = Left::new(Leave::SpinForTurn, Ticks::new(100));
                let found = (only_waits(self.round), only(other));
                self.change(0, &left, found) == VcpuId::new(other)
            }
            Step::Keeps => {
                let _ = self.keeps_hart(SpinOn::Word);
                true
            }
            Step::SliceEnd => {
                let left = Left::new(Leave::SliceEnd, Ticks::new(50_000));
                let hart = (self.round % u32::from(self.harts)) as u16;
                self.change(hart, &left, (VcpuSet::EMPTY, VcpuSet::EMPTY))
                    .is_some()
            }
            Step::Reconsider => {
                let hart = HartId::new(0);
                hart.is_some_and(|hart| {
                    let answer = self.scheduler.reconsider(hart, Ticks::new(100));
                    matches!(answer, scheduler::Continue::Stay { .. })
                })
            }
        }
    }

    fn keeps_hart(&mut self, on: SpinOn) -> bool {
        let exit = SpinExit { on, holder: None };
        HartId::new(0).is_some_and(|hart| {
            let keep = self.scheduler.keeps_hart(hart, exit);
            keep == scheduler::Keep::No
        })
    }
}

fn only(vcpu: u16) -> VcpuSet {
    VcpuId::new(vcpu).map_or(VcpuSet::EMPTY, VcpuSet::only)
}

/// At the beginning the other vCPU waits for its interrupts, later for its turn.
fn only_waits(round: u32) -> VcpuSet {
    if round == 1 { only(1) } else { VcpuSet::EMPTY }
}
