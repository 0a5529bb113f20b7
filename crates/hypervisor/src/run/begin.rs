//! Beginning of a vCPU on a hart by its VM's life cycle: it starts, loads its VM, resumes, waits on or leaves.

use scheduler::{Leave, Ticks};

use crate::hart::context::GuestContext;
use crate::hart::counters::hart_counters::HartCounters;
use crate::hart::csr::{self, number};
use crate::memory::translations::Cached;
use crate::memory::translations::vmid_table::VmidTable;
use crate::run::requests::carry_out_requests;
use crate::run::{loading, software_events, switch};
use crate::system::features;
use crate::system::harts::Hart;
use crate::system::lifecycle;
use crate::system::{Hypervisor, now};
use crate::vm::Vm;
use crate::vm::accounts::CpuTime;
use crate::vm::firmware_features::FirmwareFeatures;
use crate::vm::lifecycle::life::Begin;
use crate::vm::vcpu::{SupervisorState, Vcpu, VcpuState, request};

/// Asks the life cycle of `vm` about `vcpu`, which was dispatched at `began` for `slice`. Returns why the vCPU leaves; `None` if it enters
/// its guest.
#[cold]
#[inline(never)]
pub fn begin(
    system: &Hypervisor,
    hart: &Hart,
    vmids: &mut VmidTable,
    (vm, vcpu): (&Vm, &Vcpu),
    state: &mut VcpuState,
    (began, slice): (Ticks, Option<Ticks>),
    cpu_time: CpuTime<'_>,
) -> Option<Leave> {
    if lifecycle::is_suspended(vm, vcpu)
        && !resumes(system, hart, vmids, (vm, vcpu), state, cpu_time)
    {
        return Some(Leave::SelfWait);
    }
    match lifecycle::dispatched(system, vm, vcpu) {
        Begin::GoOn => None,
        // State of an earlier run does not count, so cached translations are dropped too.
        Begin::At { address, opaque } => {
            start(vcpu, state, address, opaque);
            state.features = FirmwareFeatures::at_reset(features::offer(system, vm));
            None
        }
        Begin::ResumeAt { address, opaque } => {
            resume(vcpu, state, address, opaque);
            None
        }
        Begin::Load(run) => Some(loading::load(
            system,
            hart,
            vm,
            run,
            (began, slice),
            cpu_time,
        )),
        Begin::WaitUntil(time) => {
            hart.switch_cost.idle();
            let deadline = time.ticks(system.board.timebase_hertz);
            hart.begin_wait(vcpu, state, deadline);
            Some(Leave::SelfWait)
        }
        Begin::Leave => Some(Leave::Stopped),
    }
}

/// Starts the vCPU at `address` with `opaque`, as after power-on.
#[inline(never)]
fn start(vcpu: &Vcpu, state: &mut VcpuState, address: u64, opaque: u64) {
    let mut shadow = state.shadow.take();
    if let Some(shadow) = &mut shadow {
        shadow.reset();
    }
    let mut vector = state.vector.take();
    if let Some(vector) = &mut vector {
        vector.reset();
    }
    *state = VcpuState {
        shadow,
        vector,
        ..VcpuState::starting_at(address, u64::from(vcpu.index), opaque)
    };
    vcpu.word.lock().take();
}

/// Resumes the vCPU at `address` with `opaque` after a suspension that has lost its registers. What it has set by calls of the SBI stays, and so
/// do its timer and pending interrupts: they have ended the suspension. Registers that it may not rely on are its own.
fn resume(vcpu: &Vcpu, state: &mut VcpuState, address: u64, opaque: u64) {
    let SupervisorState {
        deadline, injected, ..
    } = state.supervisor;
    state.supervisor = SupervisorState {
        deadline,
        injected,
        ..SupervisorState::at_reset()
    };
    state.context = GuestContext::starting_at(address, u64::from(vcpu.index), opaque);
    state.cached = Cached::default();
    if let Some(shadow) = &mut state.shadow {
        shadow.reset();
    }
}

/// Tests whether a suspended vCPU (SBI HSM, SUSP) has a pending interrupt that it has enabled. Otherwise the wake-up was for an earlier wait, or for an
/// interrupt that it has not enabled, and it waits on.
fn resumes(
    system: &Hypervisor,
    hart: &Hart,
    vmids: &mut VmidTable,
    (vm, vcpu): (&Vm, &Vcpu),
    state: &mut VcpuState,
    cpu_time: CpuTime<'_>,
) -> bool {
    hart.switch_cost.idle();
    let (file, _) = switch::load(system, hart, vmids, (vm, vcpu), state, cpu_time);
    let requests = vcpu.take_requests();
    // A software event does not end a suspension. It is delivered when the vCPU resumes, which may be at another address.
    let event = requests & request::SOFTWARE_EVENT;
    carry_out_requests(system, hart, (vm, vcpu), state, requests & !event);
    if event != 0 {
        let _ = vcpu.post_request(event);
    }
    if state.counters.note_overflows(&mut HartCounters) {
        software_events::note_overflow(vm, vcpu);
    }
    let resumes = has_enabled_interrupt(file);
    switch::unload(system, hart, (vm, vcpu), state, !resumes);
    if !resumes {
        state.steal_time.wait_on(now().get());
        let deadline = vm.host_deadline(&state.supervisor);
        hart.begin_wait(vcpu, state, deadline);
    }
    resumes
}

/// Tests whether an interrupt that the vCPU on this hart has enabled is pending. hstatus.VGEIN need not name its guest file, `file`, yet.
pub fn has_enabled_interrupt(file: u8) -> bool {
    let enabled = csr::read::<{ number::VSIE }>();
    let pending = csr::read::<{ number::VSIP }>() & enabled;
    let external = file != 0 && csr::read::<{ number::HGEIP }>() >> file & 1 != 0;
    pending != 0 || external && enabled & csr::interrupt::SEI != 0
}
