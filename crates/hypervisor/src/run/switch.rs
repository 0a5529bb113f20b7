//! Context switch: the state of a vCPU comes to a hart and leaves it, and no translation of another vCPU is used.

use crate::hart::counters::hart_counters::HartCounters;
use crate::hart::csr::{self, number};
use crate::interrupts::{self, Departure, GuestFile};
use crate::memory::translations::vmid_table::VmidTable;
use crate::run::debug_triggers;
use crate::run::guest_timer;
use crate::run::registers;
use crate::run::requests::{hide_memory_file, show_interrupts};
use crate::run::shadow::{self, Arrival, OnHart};
use crate::run::software_events;
use crate::run::translations::{self, HartFences};
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::system::interrupt_port::InterruptPort;
use crate::vm::Vm;
use crate::vm::accounts::CpuTime;
use crate::vm::vcpu::{Vcpu, VcpuState};

/// Puts the vCPU's state onto the hart. Returns the guest interrupt file that it uses, 0 for none, and the generation of its VM's
/// table since which nothing older is used here.
#[inline(always)]
pub fn load(
    system: &Hypervisor,
    hart: &Hart,
    vmids: &mut VmidTable,
    (vm, vcpu): (&Vm, &Vcpu),
    state: &mut VcpuState,
    cpu_time: CpuTime<'_>,
) -> (u8, u64) {
    // If no other vCPU has run here since, and this one has run nowhere else, all but two registers are still in place.
    let here = state.cached.last_hart() == Some(hart.index);
    let in_place = here && hart.last_loaded() == Some(vcpu.id);
    let shadowed = state.shadow.is_some();
    // hgatp is Bare where the vCPU left with shadow tables.
    if !in_place || shadowed {
        // vsatp is 0 since the last vCPU left, so nothing is translated while hgatp changes.
        // SAFETY: hgatp confines guests; the table it names maps only what belongs to the VM.
        unsafe {
            csr::write::<{ number::HGATP }>(vm.table_register(vmids.tag(vcpu.id)));
            csr::write::<{ number::HTIMEDELTA }>(vm.time_offset());
        }
    }
    let file = interrupts::attach(&InterruptPort::new(system, hart), vcpu.id);
    // Behind `attach`, which may change the table.
    let generation = declare_table(hart, vm);
    translations::arrive(system, hart, vmids, (vm, vcpu, generation), state, cpu_time);
    if shadowed {
        let at = OnHart {
            system,
            hart,
            vm,
            vcpu,
        };
        let arrival = Arrival {
            here,
            in_place,
            tag: vmids.tag(vcpu.id),
            generation,
        };
        at.arrive(state, arrival);
    }
    if in_place {
        state.supervisor.arm();
    } else {
        state.supervisor.load();
        hart.set_environment(state.features.environment());
        if state.features.has_shadow_stack() {
            state.supervisor.load_shadow_stack();
        }
        hart.set_last_loaded(vcpu.id);
    }
    guest_timer::load(hart, vm, state);
    registers::load(hart, vcpu, state);
    if hart.triggers.concern(state.trigger_place.wanted) {
        debug_triggers::load(hart, vcpu, state);
    }
    state.counters.load(&mut HartCounters);
    let file = file.map_or(0, GuestFile::number);
    if file == 0 {
        show_interrupts(vcpu);
    } else {
        // An interrupt that is raised meanwhile leaves a request, which is carried out before the guest is entered.
        hide_memory_file();
    }
    (file, generation)
}

/// Takes the vCPU's state off the hart.
#[inline(always)]
pub fn unload(
    system: &Hypervisor,
    hart: &Hart,
    (vm, vcpu): (&Vm, &Vcpu),
    state: &mut VcpuState,
    waits: bool,
) {
    if state.counters.unload(&mut HartCounters) {
        software_events::note_overflow(vm, vcpu);
    }
    let departure = match waits {
        true => Departure::Waits {
            watched: system.host_interrupts(),
        },
        false => Departure::Ready,
    };
    interrupts::detach(&InterruptPort::new(system, hart), vcpu.id, departure);
    translations::leave(hart, state);
    state.supervisor.save();
    if state.features.has_shadow_stack() {
        state.supervisor.save_shadow_stack();
    }
    guest_timer::unload(hart, state);
    if state.shadow.is_some() {
        shadow::leave();
    }
    registers::unload(state);
    hart.running.clear();
}

/// Makes sure that no translation older than the VM's present table is used for this vCPU on this hart.
#[inline(never)]
pub fn renew_table(
    system: &Hypervisor,
    hart: &Hart,
    (vm, vcpu): (&Vm, &Vcpu),
    vmids: &VmidTable,
    state: &mut VcpuState,
) -> u64 {
    let generation = declare_table(hart, vm);
    let purge = state.cached.renew(hart.index, generation);
    let what = (&vm.table_changes, &vcpu.fences);
    let purge = || purge.carry_out(vmids.tag(vcpu.id), what, &mut HartFences(vm));
    match &mut state.shadow {
        None => purge(),
        Some(shadow) => {
            let at = OnHart {
                system,
                hart,
                vm,
                vcpu,
            };
            at.renew_with(shadow, generation, purge);
        }
    }
    generation
}

/// Declares that a guest of `vm` is about to run here, and under which generation of its table.
pub fn declare_table(hart: &Hart, vm: &Vm) -> u64 {
    loop {
        let generation = vm.generation();
        hart.running.set(vm.id.get(), generation);
        // A hart that changes the table raises the generation first and reads the declarations then; reading the same generation again
        // after the declaration means that this hart's declaration will be read.
        if vm.generation() == generation {
            return generation;
        }
    }
}
