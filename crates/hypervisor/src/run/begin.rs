//! The first thing that a vCPU does on a hart where its VM's life decides it: it starts, loads its VM, resumes, waits on or leaves.

use core::sync::atomic::Ordering;

use scheduler::{Leave, Ticks};

use crate::hart::counters::hart_counters::HartCounters;
use crate::hart::csr::{self, number};
use crate::memory::translations::vmid_table::VmidTable;
use crate::run::requests::carry_out_requests;
use crate::run::{loading, switch};
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::system::lifecycle;
use crate::vm::Vm;
use crate::vm::accounts::CpuTime;
use crate::vm::lifecycle::life::Begin;
use crate::vm::vcpu::{Vcpu, VcpuState};

/// Asks the life of `vm` about `vcpu`, which was dispatched at `began` for `slice`. Returns why the vCPU leaves; `None` where it enters
/// its guest.
#[cold]
#[inline(never)]
pub fn begin(
    system: &Hypervisor,
    hart: &Hart,
    vmids: &mut VmidTable,
    (vm, vcpu): (&Vm, &Vcpu),
    registers: &mut VcpuState,
    (began, slice): (Ticks, Option<Ticks>),
    cpu_time: CpuTime<'_>,
) -> Option<Leave> {
    if lifecycle::is_suspended(vm, vcpu)
        && !resumes(system, hart, vmids, (vm, vcpu), registers, cpu_time)
    {
        return Some(Leave::SelfWait);
    }
    match lifecycle::dispatched(system, vm, vcpu) {
        Begin::GoOn => None,
        // Nothing of its former life counts, so that its cached translations are dropped too.
        Begin::At { address, opaque } => {
            start(vcpu, registers, address, opaque);
            None
        }
        Begin::Load(run) => {
            // It may have waited for this on another hart.
            system.end_every_wait(vcpu);
            Some(loading::load(
                system,
                hart,
                vm,
                run,
                (began, slice),
                cpu_time,
            ))
        }
        Begin::WaitUntil(time) => {
            system.end_every_wait(vcpu);
            hart.switch_cost.rest();
            let deadline = time.ticks(system.board.timebase_hertz);
            vcpu.deadline.store(deadline, Ordering::Relaxed);
            system.begin_wait(hart, vcpu);
            Some(Leave::SelfWait)
        }
        Begin::Leave => Some(Leave::Stopped),
    }
}

/// The vCPU starts at `address` with `opaque`, as after power-on.
fn start(vcpu: &Vcpu, registers: &mut VcpuState, address: u64, opaque: u64) {
    let mut shadow = registers.shadow.take();
    if let Some(shadow) = &mut shadow {
        shadow.begin_anew();
    }
    *registers = VcpuState {
        shadow,
        ..VcpuState::starting_at(address, u64::from(vcpu.index), opaque)
    };
    vcpu.word.lock().take();
}

/// Tests whether a suspended vCPU (SBI HSM) has a pending interrupt that it has enabled. Else the wake-up was for an earlier wait, or for an
/// interrupt that it has not enabled, and it waits on.
fn resumes(
    system: &Hypervisor,
    hart: &Hart,
    vmids: &mut VmidTable,
    (vm, vcpu): (&Vm, &Vcpu),
    registers: &mut VcpuState,
    cpu_time: CpuTime<'_>,
) -> bool {
    hart.switch_cost.rest();
    let (file, _) = switch::load(system, hart, vmids, (vm, vcpu), registers, cpu_time);
    let requests = vcpu.take_requests();
    carry_out_requests(system, hart, (vm, vcpu), registers, requests);
    registers.counters.note_overflows(&mut HartCounters);
    let resumes = has_enabled_interrupt(file);
    switch::unload(system, hart, vcpu, registers, !resumes);
    if !resumes {
        vcpu.deadline
            .store(vm.host_deadline(&registers.supervisor), Ordering::Relaxed);
        system.begin_wait(hart, vcpu);
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
