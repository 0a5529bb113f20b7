//! Starting, stopping, restarting and pausing VMs, and the end of the system.

use core::sync::atomic::{AtomicBool, Ordering};

use abi::monitor::{StopReason, VmState};
use abi::system::OnFailure;
use scheduler::VcpuState;

use crate::operator::{console, monitor};
use crate::run::harts;
use crate::run::interrupt_port::InterruptPort;
use crate::run::system::{Hypervisor, now};
use crate::vm::Vm;
use crate::vm::loader;
use crate::vm::vcpu::Power;
use crate::{interrupts, say};

/// How a VM's run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It stays stopped, for this reason.
    Stop(StopReason),
    /// It starts anew.
    Restart,
    /// It has failed: the system's description says what follows.
    Fail(StopReason),
}

/// What is known of a VM's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    pub state: VmState,
    pub reason: StopReason,
    pub restarts: u64,
    /// Its vCPUs have been told to stop, and this follows when all have.
    ending: Option<Ending>,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            state: VmState::Defined,
            reason: StopReason::None,
            restarts: 0,
            ending: None,
        }
    }
}

/// How often a VM that fails is started anew before it is left stopped: a guest that fails at once must not
/// keep a hart busy for ever.
const MOST_RESTARTS_AFTER_FAILURE: u64 = 10;

/// Why the operator's wish cannot be met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has not stopped.
    Runs,
    /// It is not running.
    DoesNotRun,
    /// It is not paused.
    Active,
}

impl core::fmt::Display for Refusal {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Runs => "it has not stopped",
            Self::DoesNotRun => "it is not running",
            Self::Active => "it is not paused",
        })
    }
}

/// Starts the VMs that start with the system.
pub fn start_automatic(system: &Hypervisor) {
    let chosen = || system.vms.iter().filter(|vm| vm.settings.autostart);
    // All count as running before the first is loaded, so that one that fails at once does not end the system.
    let started = chosen().filter(|vm| begin(vm).is_ok()).count();
    for vm in chosen() {
        boot(system, vm);
    }
    if started == 0 {
        say!("no VM starts by itself; Ctrl-] m opens the operator's prompt");
    }
}

/// Starts a VM that does not run.
///
/// # Errors
/// [`Refusal::Runs`] where it does.
pub fn start(system: &Hypervisor, vm: &Vm) -> Result<(), Refusal> {
    begin(vm)?;
    boot(system, vm);
    Ok(())
}

fn begin(vm: &Vm) -> Result<(), Refusal> {
    let mut control = vm.control.lock();
    if !matches!(control.state, VmState::Defined | VmState::Stopped) || control.ending.is_some() {
        return Err(Refusal::Runs);
    }
    control.state = VmState::Running;
    control.reason = StopReason::None;
    Ok(())
}

/// Loads the VM's memory and starts its first vCPU; none of its vCPUs runs.
fn boot(system: &Hypervisor, vm: &Vm) {
    vm.reset_chips(system);
    let vcpus = system.vcpus_of(vm.id);
    for vcpu in vcpus {
        interrupts::reset(&InterruptPort::current(system), vcpu.id);
        *vcpu.power.lock() = Power::Stopped;
        let _ = vcpu.take_requests();
        let _ = vcpu.take_software_interrupt();
    }
    for device in &vm.settings.devices {
        loader::reset_device(*device);
    }
    match loader::load(system, vm) {
        Ok(start) => {
            let Some(first) = vcpus.first() else { return };
            *first.power.lock() = Power::StartPending {
                address: start.entry.raw(),
                opaque: start.tree.raw(),
            };
            let kicks = system.scheduler.lock().start(first.id, now());
            system.kick(kicks);
        }
        Err(error) => {
            say!("{}: {error}", vm.settings.name);
            stopped(system, vm, StopReason::BadImage);
        }
    }
}

/// Ends the run of a VM, from whatever hart. Its vCPUs stop; what follows happens when the last one has.
///
/// # Errors
/// [`Refusal::DoesNotRun`] where it does not run, or ends already.
pub fn end(system: &Hypervisor, vm: &Vm, ending: Ending) -> Result<(), Refusal> {
    {
        let mut control = vm.control.lock();
        if control.ending.is_some() || !matches!(control.state, VmState::Running | VmState::Paused)
        {
            return Err(Refusal::DoesNotRun);
        }
        control.state = VmState::Running;
        control.ending = Some(ending);
    }
    for vcpu in system.vcpus_of(vm.id) {
        let kicks = system.scheduler.lock().stop(vcpu.id);
        system.kick(kicks);
    }
    // The hart that runs this may be in one of the VM's vCPUs, which must leave first.
    harts::current().ask.store(true, Ordering::Relaxed);
    vcpu_left(system, vm);
    Ok(())
}

/// Called whenever a vCPU of `vm` has left a hart: if it was the last one of a run that ends, the end follows.
pub fn vcpu_left(system: &Hypervisor, vm: &Vm) {
    let ending = {
        let mut control = vm.control.lock();
        let Some(ending) = control.ending else { return };
        let scheduler = system.scheduler.lock();
        if system
            .vcpus_of(vm.id)
            .iter()
            .any(|vcpu| scheduler.state(vcpu.id) != VcpuState::Stopped)
        {
            return;
        }
        control.ending = None;
        if ending == Ending::Restart {
            control.restarts += 1;
        }
        ending
    };
    for device in &vm.settings.devices {
        loader::reset_device(*device);
    }
    match ending {
        Ending::Restart => {
            say!("{}: starts anew", vm.settings.name);
            boot(system, vm);
        }
        Ending::Fail(reason) => {
            let again = {
                let mut control = vm.control.lock();
                let again = vm.settings.on_failure == OnFailure::Restart
                    && control.restarts < MOST_RESTARTS_AFTER_FAILURE;
                if again {
                    control.restarts += 1;
                }
                again
            };
            if again {
                say!("{}: failed ({reason}), starts anew", vm.settings.name);
                boot(system, vm);
            } else {
                stopped(system, vm, reason);
            }
        }
        Ending::Stop(reason) => stopped(system, vm, reason),
    }
}

fn stopped(system: &Hypervisor, vm: &Vm, reason: StopReason) {
    {
        let mut control = vm.control.lock();
        control.state = VmState::Stopped;
        control.reason = reason;
    }
    console::guest_ended(vm.number());
    say!("{}: stopped ({reason})", vm.settings.name);
    let busy = |vm: &Vm| matches!(vm.control.lock().state, VmState::Running | VmState::Paused);
    if !system.vms.iter().any(busy) {
        power_off(system);
    }
}

/// Set by the hart that ends the system.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Prints the monitor's report and powers the board off. Where two harts come here at the same time, one does it and the
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

/// Pauses a VM: its vCPUs leave their harts and stay ready.
///
/// # Errors
/// [`Refusal::DoesNotRun`].
pub fn pause(system: &Hypervisor, vm: &Vm) -> Result<(), Refusal> {
    change(vm, VmState::Running, VmState::Paused, Refusal::DoesNotRun)?;
    for vcpu in system.vcpus_of(vm.id) {
        let kicks = system.scheduler.lock().pause(vcpu.id);
        system.kick(kicks);
    }
    Ok(())
}

/// Lets a paused VM go on.
///
/// # Errors
/// [`Refusal::Active`].
pub fn resume(system: &Hypervisor, vm: &Vm) -> Result<(), Refusal> {
    change(vm, VmState::Paused, VmState::Running, Refusal::Active)?;
    for vcpu in system.vcpus_of(vm.id) {
        let kicks = system.scheduler.lock().resume(vcpu.id, now());
        system.kick(kicks);
    }
    Ok(())
}

fn change(vm: &Vm, from: VmState, to: VmState, refusal: Refusal) -> Result<(), Refusal> {
    let mut control = vm.control.lock();
    if control.state != from || control.ending.is_some() {
        return Err(refusal);
    }
    control.state = to;
    Ok(())
}
