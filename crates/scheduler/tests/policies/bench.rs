//! A bench for a scheduler: the harts do exactly what a test says.

use scheduler::*;

pub const FREQUENCY: u64 = 1_000_000;

pub struct Bench {
    pub scheduler: Scheduler,
    pub now: u64,
}

/// A vCPU by VM and number, from the vCPUs in the order in which they were added.
pub fn v(index: u16) -> VcpuId {
    VcpuId::new(index).unwrap()
}

pub fn h(index: u16) -> HartId {
    HartId::new(index).unwrap()
}

pub fn harts(indices: &[u16]) -> HartSet {
    indices.iter().map(|&index| h(index)).collect()
}

impl Bench {
    /// VMs with these numbers of vCPUs and equal shares, all of them started.
    pub fn new(config: Config, harts: u64, vms: &[u16]) -> Self {
        let online = HartSet::from_bits((1 << harts) - 1);
        let mut scheduler = Scheduler::new(config, online).unwrap();
        for &vcpus in vms {
            let allocation = Allocation::Shared { share: 1 };
            let (vm, _) = scheduler.add_vm(VmConfig { vcpus, allocation }).unwrap();
            for vcpu in scheduler.vcpus(vm).iter() {
                let _ = scheduler.start(vcpu, Ticks::ZERO);
            }
        }
        Self { scheduler, now: 0 }
    }

    pub fn with(spin: SpinPolicy, harts: u64, vms: &[u16]) -> Self {
        Self::new(
            Config {
                spin,
                affinity: 0,
                ..Config::new(FREQUENCY)
            },
            harts,
            vms,
        )
    }

    /// Asks whether the vCPU on `hart` keeps it at the first exit of a spin without a known holder.
    pub fn keeps_hart(&mut self, hart: u16, on: SpinOn) -> Keep {
        let holder = None;
        self.scheduler.keeps_hart(h(hart), SpinExit { on, holder })
    }

    /// Dispatches, with interrupts pending for these vCPUs.
    pub fn dispatch_with(&mut self, hart: u16, pending: &[u16]) -> Dispatch {
        let now = Ticks::new(self.now);
        let mut probe = |vcpu: VcpuId| pending.contains(&vcpu.get());
        let answer = self.scheduler.dispatch(h(hart), now, &mut probe);
        self.scheduler.check().unwrap();
        answer
    }

    /// Next vCPU of the hart.
    pub fn dispatch(&mut self, hart: u16) -> Option<u16> {
        match self.dispatch_with(hart, &[]) {
            Dispatch::Run { vcpu, .. } => Some(vcpu.get()),
            Dispatch::Idle { .. } => None,
        }
    }

    /// The vCPU on the hart leaves after 100 ticks.
    pub fn leave(&mut self, hart: u16, reason: Leave) -> Kicks {
        self.leave_after(hart, reason, 100)
    }

    pub fn leave_after(&mut self, hart: u16, reason: Leave, ran: u64) -> Kicks {
        self.now += ran;
        let left = Left::new(reason, Ticks::new(ran));
        let kicks = self.scheduler.leave(h(hart), left, Ticks::new(self.now));
        self.scheduler.check().unwrap();
        kicks
    }

    /// Leaves and dispatches.
    pub fn turn(&mut self, hart: u16, reason: Leave) -> Option<u16> {
        let _ = self.leave(hart, reason);
        self.dispatch(hart)
    }

    pub fn state(&self, vcpu: u16) -> VcpuState {
        self.scheduler.state(v(vcpu))
    }

    pub fn queue(&self, vcpu: u16) -> Option<Queue> {
        self.scheduler.queue_of(v(vcpu))
    }
}
