//! Shadow tables on a hart: hgatp, vsatp and what traps, so that a guest is confined as `memory::shadow` says.
//!
//! hgatp is Bare exactly while the guest's satp is not, from the vCPU's arrival to its departure. Where both registers change, vsatp is 0 in
//! between, and no guest runs.
//!
//! The guest takes no interrupts of counters that have passed zero, and is not told of Sscofpmf. As long as such an interrupt (number 13) is
//! pending by hvip, QEMU 10 gives the guest each page fault of a load too, because that has the same number, whatever hedeleg says.

use crate::hart::counters::hart_counters;
use crate::hart::csr::{self, exception, hstatus, number};
use crate::hart::fence;
use crate::hart::instruction::{CsrAccess, CsrOperand, Fence};
use crate::memory::shadow::Dropped;
use crate::memory::tables::ShadowFrames;
use crate::memory::translations::Tag;
use crate::memory::translations::changes::Changed;
use crate::memory::translations::remote::{Operands, Outstanding};
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::vm::Vm;
use crate::vm::shadow::Shadow;
use crate::vm::vcpu::{Vcpu, VcpuState};

/// The page faults of fetch, load and store, which come to the hypervisor.
const PAGE_FAULTS: u64 =
    1 << exception::FETCH_PAGE | 1 << exception::LOAD_PAGE | 1 << exception::STORE_PAGE;

/// vCPU with shadow tables on its hart.
pub struct OnHart<'a> {
    pub system: &'a Hypervisor,
    pub hart: &'a Hart,
    pub vm: &'a Vm,
    pub vcpu: &'a Vcpu,
}

/// Manner in which a vCPU comes to a hart.
#[derive(Clone, Copy)]
pub struct Arrival {
    /// The vCPU ran here last.
    pub here: bool,
    /// Set if no other vCPU has run here since.
    pub in_place: bool,
    /// Its tag here.
    pub tag: Tag,
    /// Generation of its VM's G-stage table.
    pub generation: u64,
}

/// Sets hgatp to Bare. vsatp is 0, or leads to shadow tables.
fn set_bare() {
    // SAFETY: no guest runs before vsatp names shadow tables or hgatp a G-stage table.
    unsafe { csr::write::<{ number::HGATP }>(0) };
}

/// Sets hgatp to the VM's G-stage table. vsatp is 0.
fn set_own_stage(shadow: &Shadow) {
    // SAFETY: the table maps only what belongs to the VM.
    unsafe { csr::write::<{ number::HGATP }>(shadow.own_stage) };
}

impl OnHart<'_> {
    /// Prepares the tables of a vCPU that comes to the hart; its other state is loaded next. hgatp is its VM's table, vsatp 0.
    #[inline(never)]
    pub fn arrive(&self, state: &mut VcpuState, arrival: Arrival) {
        let Some(shadow) = &mut state.shadow else {
            return;
        };
        // SAFETY: what is delegated concerns guests alone.
        unsafe { csr::clear::<{ number::HEDELEG }>(PAGE_FAULTS) };
        hart_counters::withhold_interrupts();
        state.context.hstatus |= hstatus::VTVM;
        shadow.own_stage = self.vm.table_register(arrival.tag);
        set_bare();
        if !arrival.here || !self.has_asids() && !arrival.in_place {
            self.drop_all(shadow);
        }
        self.catch_up(shadow);
        self.renew(shadow, arrival.generation);
        if shadow.translates() {
            self.has_changed_mode();
        } else {
            set_own_stage(shadow);
        }
        state.supervisor.vsatp = self.space(shadow);
    }

    /// Returns true if the hart has an ASID for each address space of each vCPU.
    fn has_asids(&self) -> bool {
        self.asid(0).is_some()
    }

    fn asid(&self, space: usize) -> Option<u16> {
        self.system.spaces.asid(self.vcpu.id.index(), space)
    }

    /// vsatp for the present space; 0 where the guest's satp is Bare.
    #[inline]
    fn space(&self, shadow: &Shadow) -> u64 {
        let Some((number, root)) = shadow.tables.present() else {
            return 0;
        };
        let asid = u64::from(self.asid(number).unwrap_or(0));
        shadow.satp >> 60 << 60 | asid << 44 | root.raw() >> 12
    }

    /// Fences after a change of hgatp's mode. With one VMID for both modes, translations of the other mode are dropped (privileged
    /// architecture, "Hypervisor Memory-Management Fence Instructions").
    fn has_changed_mode(&self) {
        if !self.system.guest_translation.tags().are_enough_for(2) {
            fence::guest_physical_all();
            fence::guest_virtual_all();
        }
    }

    /// Drops all translations of the vCPU here. hgatp is Bare.
    fn drop_all(&self, shadow: &Shadow) {
        for space in shadow.tables.numbers() {
            match self.asid(space) {
                Some(asid) => fence::guest_virtual_space(asid),
                None => return fence::guest_virtual_all(),
            }
        }
    }

    /// Drops translations that the tables lack now. hgatp is Bare.
    fn drop_entries(&self, dropped: Dropped) {
        if !self.has_asids() && !dropped.is_nothing() {
            return fence::guest_virtual_all();
        }
        for asid in dropped.spaces().filter_map(|space| self.asid(space)) {
            fence::guest_virtual_space(asid);
        }
        for (space, address) in dropped.pages() {
            fence::guest_virtual_page(address, self.asid(space));
        }
    }

    /// Drops translations whatever hgatp is: Bare, or the own table while vsatp is 0.
    pub fn drop_from(&self, shadow: &Shadow, dropped: Dropped) {
        if dropped.is_nothing() {
            return;
        }
        if shadow.translates() {
            self.drop_entries(dropped);
        } else {
            set_bare();
            self.drop_entries(dropped);
            set_own_stage(shadow);
        }
    }

    fn memory(&self) -> ShadowFrames {
        // SAFETY: it is used for the vCPU's own shadow tables.
        unsafe { ShadowFrames::new(self.hart.memory()) }
    }

    /// Carries out siblings' requests on the tables. hgatp is Bare.
    fn catch_up(&self, shadow: &mut Shadow) {
        let dropped = self.asked(shadow);
        self.drop_entries(dropped);
    }

    /// Translations to drop because siblings asked for it.
    fn asked(&self, shadow: &mut Shadow) -> Dropped {
        let mut dropped = Dropped::default();
        let count = self.vcpu.fences.count();
        if count == shadow.fenced {
            return dropped;
        }
        let memory = &mut self.memory();
        match self.vcpu.fences.since(shadow.fenced) {
            Some(asked) => {
                let spaces = self.system.spaces;
                for Operands { pages, asid } in asked {
                    let asid = asid.map(|asid| spaces.named(asid.into()));
                    dropped.add(shadow.tables.forget(Operands { pages, asid }, memory));
                }
            }
            None => dropped = shadow.tables.forget(Operands::default(), memory),
        }
        shadow.fenced = count;
        dropped
    }

    /// Carries out siblings' requests on the tables; the vCPU is on the hart.
    #[inline(never)]
    pub fn carry_out_fences(&self, shadow: &mut Shadow) {
        let dropped = self.asked(shadow);
        self.drop_from(shadow, dropped);
    }

    /// Follows the G-stage table to this generation. hgatp is Bare.
    fn renew(&self, shadow: &mut Shadow, generation: u64) {
        if shadow.generation == generation {
            return;
        }
        let changes = &self.vm.table_changes;
        let memory = &mut self.memory();
        let dropped = match changes.all_since(shadow.generation) {
            true => shadow.tables.forget(Operands::default(), memory),
            false => (shadow.tables).forget_moved(changes.since(shadow.generation), memory),
        };
        shadow.generation = generation;
        self.drop_entries(dropped);
    }

    /// Follows the G-stage table to this generation while the vCPU is on the hart: `purge` drops cached translations of the table itself.
    pub fn renew_with(&self, shadow: &mut Shadow, generation: u64, purge: impl FnOnce()) {
        // SAFETY: vsatp translates for guests alone, and none runs before it has its value again.
        let space = unsafe { csr::swap::<{ number::VSATP }>(0) };
        set_own_stage(shadow);
        purge();
        set_bare();
        self.renew(shadow, generation);
        if shadow.translates() {
            // SAFETY: it leads to shadow tables, as before: leaves have gone, and no root has moved.
            unsafe { csr::write::<{ number::VSATP }>(space) };
        } else {
            set_own_stage(shadow);
        }
    }

    /// Emulates an access of the guest to satp.
    #[inline(never)]
    pub fn access_address_space(&self, state: &mut VcpuState, access: CsrAccess) {
        let VcpuState {
            shadow: Some(shadow),
            context,
            ..
        } = state
        else {
            return;
        };
        let operand = match access.operand {
            CsrOperand::Register(register) => context.get(register.number() as u8),
            CsrOperand::Immediate(bits) => u64::from(bits),
        };
        let old = shadow.satp;
        if access.writes()
            && let Some(new) = self.system.spaces.written(access.result(old, operand))
            && new != old
        {
            self.enter(shadow, new);
        }
        context.set(access.destination.number() as u8, old);
    }

    fn enter(&self, shadow: &mut Shadow, satp: u64) {
        let translated = shadow.translates();
        shadow.satp = satp;
        let dropped = shadow.tables.enter(satp, &mut self.memory());
        let translates = shadow.translates();
        if translates != translated {
            // SAFETY: vsatp translates for guests alone, and none runs before both registers fit each other.
            unsafe { csr::write::<{ number::VSATP }>(0) };
            if translates {
                set_bare();
            } else {
                set_own_stage(shadow);
            }
            self.has_changed_mode();
        }
        // SAFETY: 0, or shadow tables, each leaf of which leads to what is the VM's.
        unsafe { csr::write::<{ number::VSATP }>(self.space(shadow)) };
        if translates && !self.has_asids() {
            fence::guest_virtual_all();
        } else {
            self.drop_from(shadow, dropped);
        }
    }

    /// Carries out a fence of the guest.
    #[inline(never)]
    pub fn fence(&self, state: &mut VcpuState, fence: Fence) {
        let VcpuState {
            shadow: Some(shadow),
            context,
            ..
        } = state
        else {
            return;
        };
        let operand = |register: crate::hart::decode::Register| {
            (!register.is_zero()).then(|| context.get(register.number() as u8))
        };
        let operands = Operands {
            pages: operand(fence.address).map(|address| (address >> 12 << 12, 1)),
            asid: operand(fence.space).map(|asid| self.system.spaces.named(asid)),
        };
        let dropped = shadow.tables.forget(operands, &mut self.memory());
        self.drop_from(shadow, dropped);
    }

    /// Puts a leaf into the present space.
    pub fn fill(&self, shadow: &mut Shadow, leaf: &crate::memory::shadow::Leaf) {
        let dropped = shadow.tables.fill(leaf, &mut self.memory());
        self.drop_from(shadow, dropped);
    }
}

/// Delegates page faults and counters' interrupts again, when a vCPU with shadow tables leaves the hart; vsatp is 0.
pub fn leave() {
    // SAFETY: what is delegated concerns guests alone.
    unsafe { csr::set::<{ number::HEDELEG }>(PAGE_FAULTS) };
    hart_counters::give_interrupts();
}
