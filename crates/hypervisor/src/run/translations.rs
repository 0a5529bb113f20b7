//! Carries out what `memory::translations` decides about a vCPU that comes to a hart, is there, and leaves it.

use abi::monitor::Event;
use abi::system::TlbPurge;

use crate::hart::capabilities::Capability;
use crate::hart::csr::{self, hstatus, number};
use crate::hart::instruction::{CsrAccess, CsrOperand};
use crate::hart::{custom, fence};
use crate::memory::address::GuestPhysical;
use crate::memory::translations::remote::Operands;
use crate::memory::translations::vmid_table::VmidTable;
use crate::memory::translations::{Fences, Remembered, Tag, Watch};
use crate::run::shadow::OnHart;
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::vm::Vm;
use crate::vm::accounts::CpuTime;
use crate::vm::vcpu::{Vcpu, VcpuState};

/// Fences of the calling hart, whose hgatp is this VM's.
pub struct HartFences<'a>(pub &'a Vm);

impl Fences for HartFences<'_> {
    fn guest_virtual(&mut self) {
        fence::guest_virtual_all();
    }

    fn guest_virtual_of(&mut self, operands: Operands) {
        match (operands.pages, operands.asid) {
            (Some((first, count)), asid) => {
                for page in 0..count {
                    fence::guest_virtual_page(first.wrapping_add(page << 12), asid);
                }
            }
            (None, Some(asid)) => fence::guest_virtual_space(asid),
            (None, None) => fence::guest_virtual_all(),
        }
    }

    fn guest_physical_all(&mut self) {
        fence::guest_physical_all();
    }

    fn guest_physical(&mut self, tag: Tag) {
        fence::guest_physical_of(tag.number().into());
    }

    fn guest_page(&mut self, tag: Tag, page: GuestPhysical) {
        fence::guest_physical_page(page.raw(), tag.number().into());
    }

    fn use_tag(&mut self, tag: Tag) {
        // SAFETY: hgatp confines guests, and goes on to name the table of the same VM; vsatp is 0.
        unsafe { csr::write::<{ number::HGATP }>(self.0.table_register(tag)) };
    }

    fn instructions(&mut self) {
        fence::instructions();
    }
}

/// Prepares the hart, whose hgatp is the VM's already, for the vCPU: drops translations that it must not use, and begins to watch its fences.
#[inline]
pub fn arrive(
    system: &Hypervisor,
    hart: &Hart,
    vmids: &mut VmidTable,
    (vm, vcpu, generation): (&Vm, &Vcpu, u64),
    state: &mut VcpuState,
    cpu_time: CpuTime<'_>,
) {
    let shadowed = state.shadow.is_some();
    let method = || method(system, shadowed);
    if (state.cached).comes_back(vcpu.id, hart.index, vmids, generation, method) {
        // If the vCPU's fences are to trap, they do so already: hstatus is saved with its other registers.
        return;
    }
    arrive_from_elsewhere(system, hart, vmids, (vm, vcpu, generation), state, cpu_time);
}

/// Way in which the hypervisor learns of a vCPU's fences. Those of one with shadow tables trap, and concern nothing that its tag marks.
fn method(system: &Hypervisor, shadowed: bool) -> TlbPurge {
    match shadowed {
        true => TlbPurge::LastHost,
        false => system.translations(),
    }
}

#[inline(never)]
fn arrive_from_elsewhere(
    system: &Hypervisor,
    hart: &Hart,
    vmids: &mut VmidTable,
    (vm, vcpu, generation): (&Vm, &Vcpu, u64),
    state: &mut VcpuState,
    cpu_time: CpuTime<'_>,
) {
    let moved = state.cached.last_hart() != Some(hart.index);
    let was_watched = state.cached.watch() == Watch::Trap;
    let trapped = was_watched && state.cached.has_changed_address_space();
    let method = method(system, state.shadow.is_some());
    let method = state.backoff.method(method, moved, trapped);
    let cached = &mut state.cached;
    let tables = (generation, vcpu.fences.count());
    let mut purge = cached.arrive(method, vcpu.id, hart.index, vmids, tables);
    if purge.stale {
        cpu_time.count(Event::TlbPurged);
    } else if purge.moved {
        cpu_time.count(Event::TlbKept);
        if !trapped {
            state.backoff.succeeded();
        }
    }
    if hart.has(Capability::PurgeMask) {
        let told = method == TlbPurge::PurgeCheck && core::mem::take(&mut purge.stale);
        // SAFETY: the hart has the register, which concerns guests alone.
        unsafe { custom::set_purge_mask(u64::from(told) << hart.board.id) };
    }
    let fences = &mut HartFences(vm);
    let what = (&vm.table_changes, &vcpu.fences);
    if purge.carry_out_at_arrival(vcpu.id, vmids, what, fences) {
        cpu_time.count(Event::VmidRenewed);
    }
    let old = state.context.hstatus & !hstatus::VTVM;
    state.context.hstatus = match state.cached.watch() {
        Watch::Trap => {
            if moved || !was_watched {
                cpu_time.count(Event::FenceTrapArmed);
            }
            old | hstatus::VTVM
        }
        Watch::Nothing | Watch::Mask => old,
    };
}

/// Records the hart's memory of the vCPU's fences, when the vCPU leaves the hart.
pub fn leave(hart: &Hart, state: &mut VcpuState) {
    let mask = match hart.has(Capability::PurgeMask) {
        true => custom::purge_mask(),
        false => 0,
    };
    let own = 1 << hart.board.id;
    let remembered = Remembered {
        fenced: mask & !own != 0,
        due: mask & own != 0,
    };
    state.cached.leave(hart.index, remembered);
}

/// Carries out the fences that siblings have asked for; the vCPU is on the hart. Its own fences need not trap for that: its translations
/// on other harts are fenced when it comes there.
pub fn carry_out_fences(
    system: &Hypervisor,
    hart: &Hart,
    (vm, vcpu): (&Vm, &Vcpu),
    state: &mut VcpuState,
) {
    let purge = state.cached.asked(hart.index, vcpu.fences.count());
    if let Some(shadow) = &mut state.shadow {
        // Under its tag nothing of a VS-stage is cached: where that translates, the shadow tables do.
        let at = OnHart {
            system,
            hart,
            vm,
            vcpu,
        };
        return at.carry_out_fences(shadow);
    }
    // Nothing of the G-stage is dropped, so that no tag matters.
    let what = (&vm.table_changes, &vcpu.fences);
    purge.carry_out(Tag::default(), what, &mut HartFences(vm));
}

/// Notes a fence of the vCPU on the hart, carried out or about to be.
pub fn fenced(hart: &Hart, state: &mut VcpuState) {
    if state.cached.watch() == Watch::Trap {
        state.backoff.failed();
    }
    state.cached.fenced(hart.index);
    state.context.hstatus &= !hstatus::VTVM;
}

/// Drops the guest's translations after an exit from it, if the method is to clear them each time.
pub fn left_guest(system: &Hypervisor) {
    if system.translations() == TlbPurge::Clear {
        fence::guest_virtual_all();
    }
}

/// Emulates an access to satp of a vCPU whose fences trap. Returns false if the guest is to repeat the access, and nothing traps any
/// more.
#[must_use]
pub fn access_address_space(hart: &Hart, state: &mut VcpuState, access: CsrAccess) -> bool {
    if access.writes() && !state.cached.changes_address_space(hart.index) {
        state.backoff.failed();
        fenced(hart, state);
        return false;
    }
    let context = &mut state.context;
    let operand = match access.operand {
        CsrOperand::Register(register) => context.get(register.number() as u8),
        CsrOperand::Immediate(bits) => u64::from(bits),
    };
    let old = csr::read::<{ number::VSATP }>();
    if access.writes() {
        // SAFETY: vsatp translates for the guest alone, whose own value this is; a value that satp would not take it does
        // not take either (privileged architecture, "Virtual Supervisor Address Translation and Protection Register").
        unsafe { csr::write::<{ number::VSATP }>(access.result(old, operand)) };
    }
    context.set(access.destination.number() as u8, old);
    true
}
