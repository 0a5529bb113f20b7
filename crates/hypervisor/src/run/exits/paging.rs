//! Page faults of vCPUs on shadow tables: the guest's own, or a leaf that the shadow tables lack.

use abi::monitor::ExitCause;

use super::exit::{Exit, Next};
use super::{inject, memory};
use crate::devices::bus::Owner;
use crate::hart::csr::{self, environment, exception, number, status};
use crate::hart::{instruction, unprivileged};
use crate::memory::address::GuestPhysical;
use crate::memory::guest::Touch;
use crate::memory::physical::Physical;
use crate::memory::shadow::guest_walk::{self, GuestTables, Place, WalkResult, WalkSettings};
use crate::memory::walk::{Access, Features, Reader};
use crate::run::shadow::OnHart;
use crate::vm::Vm;

/// Memory of a VM's guest, which holds its tables.
struct TablesOf<'a>(&'a Vm);

impl GuestTables for TablesOf<'_> {
    fn read(&self, at: GuestPhysical) -> Option<u64> {
        self.0.memory.doubleword(at, &Physical::default())
    }

    fn exchange(&self, at: GuestPhysical, old: u64, new: u64) -> bool {
        let host = self.0.memory.in_one(at, 8);
        host.is_some_and(|host| Physical::default().exchange(host, old, new))
    }
}

/// Handles a page fault of fetch, load or store.
#[inline(never)]
pub fn page_fault(exit: &mut Exit<'_>, cause: u64) -> (ExitCause, Next) {
    let address = csr::read::<{ number::STVAL }>();
    let mut access = match cause {
        exception::FETCH_PAGE => Access::Fetch,
        exception::LOAD_PAGE => Access::Load,
        _ => Access::Store,
    };
    let reader = reader(exit);
    let mut found = walk_guest_tables(exit, address, (access, reader));
    if found == WalkResult::PageFault && cause == exception::STORE_PAGE && manages_cache_block(exit)
    {
        // A cache-block instruction needs the rights of a load, but its faults are those of stores (CMO, "Memory Protection").
        access = Access::Load;
        found = walk_guest_tables(exit, address, (access, reader));
    }
    let guest = match found {
        WalkResult::Allowed(leaf) => leaf,
        WalkResult::PageFault => {
            inject::exception(exit, cause, address);
            return (ExitCause::PageFault, Next::Resume);
        }
        WalkResult::AccessFault => return memory::refuse(exit, guest_fault(access), address),
        WalkResult::Again => return (ExitCause::ShadowFill, Next::Resume),
    };
    if exit.vm.memory.is_mapped_on_touch() && exit.vm.memory.holds(guest.to) {
        match exit.vm.memory.touch(guest.to) {
            Touch::FaultedIn | Touch::Present => {}
            Touch::Begun => return (ExitCause::ShadowFill, Next::Resume),
            Touch::NoFrame => return memory::refuse(exit, guest_fault(access), address),
        }
    }
    let place = place(exit.vm, guest.to);
    let leaf = place.and_then(|place| guest_walk::leaf(address, (access, reader), &guest, place));
    let Some(leaf) = leaf else {
        return memory::emulate(exit, guest_fault(access), guest.to, address);
    };
    let at = OnHart {
        system: exit.system,
        hart: exit.hart,
        vm: exit.vm,
        vcpu: exit.vcpu,
    };
    if let Some(shadow) = &mut exit.state.shadow {
        at.fill(shadow, &leaf);
    }
    (ExitCause::ShadowFill, Next::Resume)
}

/// Cause of the same access's fault in the G-stage.
const fn guest_fault(access: Access) -> u64 {
    match access {
        Access::Fetch => exception::FETCH_GUEST_PAGE,
        Access::Load => exception::LOAD_GUEST_PAGE,
        Access::Store => exception::STORE_GUEST_PAGE,
    }
}

/// Privilege and rights of the access.
fn reader(exit: &Exit<'_>) -> Reader {
    let fields = csr::read::<{ number::VSSTATUS }>();
    Reader {
        user: exit.state.context.in_user_mode(),
        reads_user_pages: fields & status::SUM != 0,
        reads_code: fields & status::MXR != 0,
    }
}

/// Translates the access by the guest's own tables.
fn walk_guest_tables(exit: &Exit<'_>, address: u64, by: (Access, Reader)) -> WalkResult {
    let Some(shadow) = &exit.state.shadow else {
        return WalkResult::PageFault;
    };
    if !shadow.translates() {
        return WalkResult::PageFault;
    }
    let environment = csr::read::<{ number::HENVCFG }>();
    let settings = WalkSettings {
        satp: shadow.satp,
        features: Features {
            contiguous: exit.hart.board.extensions.has("svnapot"),
            memory_types: environment & environment::PBMTE != 0,
        },
        sets_marks: environment & environment::ADUE != 0,
    };
    guest_walk::walk(settings, address, by, &TablesOf(exit.vm))
}

/// Returns true if the guest executed a cache-block instruction that it may execute.
fn manages_cache_block(exit: &Exit<'_>) -> bool {
    let may = csr::read::<{ number::HENVCFG }>() & (environment::CBIE | environment::CBCFE) != 0;
    let at = exit.state.context.program_counter;
    may && unprivileged::fetch_instruction(at).is_some_and(instruction::manages_cache_block)
}

/// Place of the page by the G-stage, if the page is mapped.
fn place(vm: &Vm, at: GuestPhysical) -> Option<Place> {
    let there = vm.translate(at)?;
    let owner = vm.settings.bus.at(at);
    Some(Place {
        host: there.host,
        size: there.leaf_size,
        rights: there.permissions.bits(),
        moves: matches!(owner, Some((Owner::InterruptFiles, _))),
    })
}
