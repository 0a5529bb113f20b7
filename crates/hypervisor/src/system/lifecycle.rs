//! Starting, stopping, restarting and pausing VMs, and the end of the system.
//!
//! [`LifeCycle`] decides, without hardware; this module asks it under its lock, and changes the scheduler. The lock of a VM's
//! life cycle is taken before the scheduler's, and nothing is printed under it.

use core::convert::Infallible;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use scheduler::groups::Access;
use scheduler::{Kicks, Scheduler, Ticks, VcpuId, VcpuState};

use crate::console;
use crate::console::say;
use crate::hart;
use crate::interrupts;
use crate::system::confinement;
use crate::system::interrupt_port::InterruptPort;
use crate::system::monitor;
use crate::system::pages;
use crate::system::slots;
use crate::system::{Hypervisor, now};
use crate::vm::Vm;
use crate::vm::lifecycle::backoff::Milliseconds;
use crate::vm::lifecycle::idle::powers_off;
use crate::vm::lifecycle::life::{
    Begin, Ending, LifeCycle, Originator, Outcome, Port, Power, Refusal, SiblingRuns, StartError,
};
use crate::vm::loading::Start;
use crate::vm::vcpu::Vcpu;

/// Parts of the system that a VM's life cycle changes.
struct LifeCyclePort<'a> {
    system: &'a Hypervisor,
    vm: &'a Vm,
}

impl LifeCyclePort<'_> {
    fn vcpu(&self, vcpu: usize) -> Option<&Vcpu> {
        self.system.vcpus_of(self.vm.id).get(vcpu)
    }

    /// Changes the state of a vCPU at the scheduler. One copy of the code serves all changes, which are rare.
    #[cold]
    #[inline(never)]
    fn change(&self, vcpu: usize, change: fn(&mut Scheduler, VcpuId, Ticks) -> Kicks) {
        if let Some(vcpu) = self.vcpu(vcpu) {
            let now = now();
            let change = |scheduler: &mut Scheduler, vcpu| change(scheduler, vcpu, now);
            self.system.notify_scheduler(vcpu.id, change);
        }
    }
}

impl Port for LifeCyclePort<'_> {
    fn start(&mut self, vcpu: usize) {
        self.change(vcpu, |scheduler, vcpu, now| scheduler.start(vcpu, now));
    }

    fn stop(&mut self, vcpu: usize) {
        self.change(vcpu, |scheduler, vcpu, _| scheduler.stop(vcpu));
    }

    fn pause(&mut self, vcpu: usize) {
        self.change(vcpu, |scheduler, vcpu, _| scheduler.pause(vcpu));
    }

    fn resume(&mut self, vcpu: usize) {
        self.change(vcpu, |scheduler, vcpu, now| scheduler.resume(vcpu, now));
    }

    fn is_stopped(&self, vcpu: usize) -> bool {
        let Some(vcpu) = self.vcpu(vcpu) else {
            return true;
        };
        let state = self
            .system
            .with_vcpu(vcpu.id, |group, vcpu| group.scheduler().state(vcpu));
        state.is_none_or(|state| state == VcpuState::Stopped)
    }

    fn set_dispatch_check(&mut self, vcpu: usize, ask: bool) {
        if let Some(vcpu) = self.vcpu(vcpu) {
            vcpu.has_dispatch_check.store(ask, Ordering::Relaxed);
        }
    }

    fn now(&self) -> Milliseconds {
        Milliseconds::from_ticks(hart::time(), self.system.board.timebase_hertz)
    }

    fn quiesce(&mut self) {
        self.vm.admit_devices(false);
        for device in &self.vm.settings.devices {
            // Its memory is not given away before the loader, or `pages::end`, has found the reset complete.
            let _ = slots::reset_device(device.device);
        }
        // A VM that has ended keeps no interrupt file.
        let port = InterruptPort::current(self.system);
        for vcpu in self.system.vcpus_of(self.vm.id) {
            interrupts::reset(&port, vcpu.id);
        }
    }
}

/// Passes a VM's life cycle to `change`, under its lock.
fn with_life_cycle<T>(
    system: &Hypervisor,
    vm: &Vm,
    change: impl FnOnce(&mut LifeCycle, &mut LifeCyclePort<'_>) -> T,
) -> T {
    let mut life = vm.life_cycle.lock();
    change(&mut life, &mut LifeCyclePort { system, vm })
}

/// Starts the VMs that start with the system. A VM that ends before the next is started does not power the board off.
pub fn start_automatic(system: &Hypervisor) {
    let started = with_idle_check(system, || {
        let chosen = system.vms.iter().filter(|vm| vm.settings.autostart);
        chosen.filter(|vm| start(system, vm).is_ok()).count()
    });
    if started == 0 {
        say!("no VM starts by itself; Ctrl-] m opens the operator's prompt");
    }
}

/// Starts a VM that does not run.
///
/// # Errors
/// [`Refusal::Runs`] if it runs.
pub fn start(system: &Hypervisor, vm: &Vm) -> Result<(), Refusal> {
    vm.keeps_memory.store(false, Ordering::Relaxed);
    with_life_cycle(system, vm, |life, port| life.start(port))
}

/// Ends the run of a VM, from any hart. Its vCPUs stop; the rest follows when the last one has stopped.
///
/// # Errors
/// [`Refusal::DoesNotRun`] if it does not run.
pub fn end(system: &Hypervisor, vm: &Vm, ending: Ending, who: Originator) -> Result<(), Refusal> {
    conclude_with(system, vm, |life, port| life.end(ending, who, port))
}

/// Restarts a VM for the operator, or starts it for the first time.
///
/// # Errors
/// Never fails.
pub fn restart(system: &Hypervisor, vm: &Vm) -> Result<(), Refusal> {
    vm.keeps_memory.store(false, Ordering::Relaxed);
    conclude_with(system, vm, |life, port| {
        life.end(Ending::Restart, Originator::Operator, port)
            .or_else(|_| life.start(port).map(|()| Outcome::Continues))
    })
}

/// Pauses a VM: its vCPUs leave their harts and stay ready.
///
/// # Errors
/// [`Refusal::DoesNotRun`].
pub fn pause(system: &Hypervisor, vm: &Vm) -> Result<(), Refusal> {
    with_life_cycle(system, vm, |life, port| life.pause(port))
}

/// Resumes a paused VM.
///
/// # Errors
/// [`Refusal::Active`].
pub fn resume(system: &Hypervisor, vm: &Vm) -> Result<(), Refusal> {
    with_life_cycle(system, vm, |life, port| life.resume(port))
}

/// Starts the vCPU `vcpu` for its guest.
///
/// # Errors
/// [`StartError`].
pub fn start_vcpu(
    system: &Hypervisor,
    vm: &Vm,
    vcpu: usize,
    address: u64,
    opaque: u64,
) -> Result<(), StartError> {
    with_life_cycle(system, vm, |life, port| {
        life.start_vcpu(vcpu, address, opaque, port)
    })
}

/// Stops a running vCPU for its guest: it has to leave its hart.
pub fn stop_vcpu(system: &Hypervisor, vm: &Vm, vcpu: &Vcpu) {
    with_life_cycle(system, vm, |life, port| {
        life.stop_vcpu(usize::from(vcpu.index), port);
    });
}

/// Suspends a running vCPU for its guest: it has to leave its hart.
pub fn suspend_vcpu(system: &Hypervisor, vm: &Vm, vcpu: &Vcpu, resume: Option<(u64, u64)>) {
    with_life_cycle(system, vm, |life, port| {
        life.suspend_vcpu(usize::from(vcpu.index), resume, port);
    });
}

/// Suspends a VM by the call of its running vCPU, which has to leave its hart.
///
/// # Errors
/// [`SiblingRuns`].
pub fn suspend_vm(
    system: &Hypervisor,
    vm: &Vm,
    vcpu: &Vcpu,
    resume: (u64, u64),
) -> Result<(), SiblingRuns> {
    with_life_cycle(system, vm, |life, port| {
        life.suspend_vm(usize::from(vcpu.index), resume, port)
    })
}

/// Returns true if the VM's life cycle decides what `vcpu`, which has just been given a hart, does there: [`dispatched`].
#[inline]
pub fn has_dispatch_check(vcpu: &Vcpu) -> bool {
    // The flag is changed before the scheduler, whose lock this hart has held since, gives the vCPU a hart.
    vcpu.has_dispatch_check.load(Ordering::Relaxed)
}

/// Returns true if `vcpu` has suspended itself.
pub fn is_suspended(vm: &Vm, vcpu: &Vcpu) -> bool {
    let power = vm.life_cycle.lock().power(usize::from(vcpu.index));
    matches!(power, Power::Suspended { .. })
}

/// Decides how `vcpu`, which has just been given a hart, begins there.
pub fn dispatched(system: &Hypervisor, vm: &Vm, vcpu: &Vcpu) -> Begin {
    with_life_cycle(system, vm, |life, port| {
        life.dispatched(usize::from(vcpu.index), port)
    })
}

/// Ends the loading of a VM by its first vCPU, on this hart. Returns false if the run's end was requested meanwhile.
#[must_use]
pub fn loaded(system: &Hypervisor, vm: &Vm, start: Start) -> bool {
    with_life_cycle(system, vm, |life, port| {
        life.loaded(start.entry.raw(), start.tree.raw(), port)
    })
}

/// Ends the run of a VM whose first vCPU, on this hart, cannot load it.
pub fn load_failed(system: &Hypervisor, vm: &Vm) {
    with_life_cycle(system, vm, |life, port| life.load_failed(port));
}

/// Notes that a vCPU of `vm` has left its hart for good. If it was the last one of a run that ends, the end follows.
#[cold]
#[inline(never)]
pub fn vcpu_left(system: &Hypervisor, vm: &Vm) {
    let _ = conclude_with(system, vm, |life, port| {
        Ok::<_, Infallible>(life.left(port))
    });
}

/// Number of harts that start VMs or end a run now, and a bit that is set if one of these runs was a VM's last.
static CHANGING: AtomicUsize = AtomicUsize::new(0);
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Makes `change`. If several harts change VMs' life cycles at the same time, the last one checks whether the board is idle: before that,
/// the line of a stopped VM may still be unprinted, and a VM that starts with the system may not have been started.
fn with_idle_check<T>(system: &Hypervisor, change: impl FnOnce() -> T) -> T {
    CHANGING.fetch_add(1, Ordering::SeqCst);
    let result = change();
    if CHANGING.fetch_sub(1, Ordering::SeqCst) == 1 && STOPPED.swap(false, Ordering::SeqCst) {
        power_off_if_idle(system);
    }
    result
}

/// Passes a VM's life cycle to `change`, and carries out the outcome.
fn conclude_with<E>(
    system: &Hypervisor,
    vm: &Vm,
    change: impl FnOnce(&mut LifeCycle, &mut LifeCyclePort<'_>) -> Result<Outcome, E>,
) -> Result<(), E> {
    with_idle_check(system, || {
        with_life_cycle(system, vm, change).map(|outcome| conclude(system, vm, outcome))
    })
}

fn conclude(system: &Hypervisor, vm: &Vm, outcome: Outcome) {
    let name = vm.settings.name;
    match outcome {
        Outcome::Continues => {}
        Outcome::Restarts(plan) => say!("{name}: {plan}"),
        Outcome::Stopped(reason) => {
            pages::end(system, vm);
            console::end_guest_line(vm.number());
            vm.print_suppressed_reports();
            confinement::report(system);
            say!("{name}: stopped ({reason})");
            STOPPED.store(true, Ordering::SeqCst);
        }
    }
}

/// Powers the board off after a VM's end, if no other VM runs and the system's description wants that.
fn power_off_if_idle(system: &Hypervisor) {
    let states = system.vms.iter().map(|vm| vm.life_cycle.lock().state());
    if powers_off(system.when_idle, states) {
        power_off(system);
    }
}

/// Set by the hart that ends the system.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Prints the monitor's report and powers the board off. If two harts come here at the same time, one does it and the
/// other waits for the end.
pub fn power_off(system: &Hypervisor) -> ! {
    if ENDS.swap(true, Ordering::SeqCst) {
        loop {
            crate::hart::wait_for_interrupt();
        }
    }
    monitor::last_report(system);
    crate::hart::firmware::reset(crate::hart::firmware::Reset::PowerOff)
}
