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

/// The fences of the hart that runs this, whose hgatp is this VM's.
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

/// The vCPU comes to the hart, whose hgatp is its VM's already: drops what it must not use, and has its fences watched.
#[inline]
pub fn arrive(
    system: &Hypervisor,
    hart: &Hart,
    vmids: &mut VmidTable,
    (vm, vcpu, generation): (&Vm, &Vcpu, u64),
    registers: &mut VcpuState,
    cpu_time: CpuTime<'_>,
) {
    let shadowed = registers.shadow.is_some();
    let method = || method(system, shadowed);
    if (registers.cached).comes_back(vcpu.id, hart.index, vmids, generation, method) {
        // Where the vCPU's fences are to trap, they do so already: hstatus is kept with its other registers.
        return;
    }
    arrive_from_elsewhere(
        system,
        hart,
        vmids,
        (vm, vcpu, generation),
        registers,
        cpu_time,
    );
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
    registers: &mut VcpuState,
    cpu_time: CpuTime<'_>,
) {
    let moved = registers.cached.last_hart() != Some(hart.index);
    let was_watched = registers.cached.watch() == Watch::Trap;
    let trapped = was_watched && registers.cached.has_changed_address_space();
    let method = method(system, registers.shadow.is_some());
    let method = registers.backoff.method(method, moved, trapped);
    let cached = &mut registers.cached;
    let tables = (generation, vcpu.fences.count());
    let mut purge = cached.arrive(method, vcpu.id, hart.index, vmids, tables);
    if purge.stale {
        cpu_time.count(Event::TlbPurged);
    } else if purge.moved {
        cpu_time.count(Event::TlbKept);
        if !trapped {
            registers.backoff.succeeded();
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
    let old = registers.context.hstatus & !hstatus::VTVM;
    registers.context.hstatus = match registers.cached.watch() {
        Watch::Trap => {
            if moved || !was_watched {
                cpu_time.count(Event::FenceTrapArmed);
            }
            old | hstatus::VTVM
        }
        Watch::Nothing | Watch::Mask => old,
    };
}

/// The vCPU leaves the hart.
pub fn leave(hart: &Hart, registers: &mut VcpuState) {
    let mask = match hart.has(Capability::PurgeMask) {
        true => custom::purge_mask(),
        false => 0,
    };
    let own = 1 << hart.board.id;
    let remembered = Remembered {
        fenced: mask & !own != 0,
        due: mask & own != 0,
    };
    registers.cached.leave(hart.index, remembered);
}

/// Carries out the fences that siblings have asked the vCPU for, which is on the hart. No other fence is to trap for that: what the
/// vCPU has left on other harts is fenced when it comes there.
pub fn carry_out_fences(
    system: &Hypervisor,
    hart: &Hart,
    (vm, vcpu): (&Vm, &Vcpu),
    registers: &mut VcpuState,
) {
    let purge = registers.cached.asked(hart.index, vcpu.fences.count());
    if let Some(shadow) = &mut registers.shadow {
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

/// The vCPU, which is on the hart, has fenced or is about to.
pub fn fenced(hart: &Hart, registers: &mut VcpuState) {
    if registers.cached.watch() == Watch::Trap {
        registers.backoff.failed();
    }
    registers.cached.fenced(hart.index);
    registers.context.hstatus &= !hstatus::VTVM;
}

/// The guest has just been left, on the hart that runs this.
pub fn left_guest(system: &Hypervisor) {
    if system.translations() == TlbPurge::Clear {
        fence::guest_virtual_all();
    }
}

/// The guest of a vCPU whose fences trap, which is on the hart, accesses satp. False where it does so again, and nothing traps any
/// more.
#[must_use]
pub fn access_address_space(hart: &Hart, registers: &mut VcpuState, access: CsrAccess) -> bool {
    if access.writes() && !registers.cached.changes_address_space(hart.index) {
        registers.backoff.failed();
        fenced(hart, registers);
        return false;
    }
    let context = &mut registers.context;
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
