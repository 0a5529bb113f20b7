//! Guest page faults: accesses to emulated devices, and to addresses that are not the guest's.

use abi::monitor::{ExitCause, StopReason};
use riscv::csr::address_translation;
use scheduler::Leave;

use super::exit::{Exit, Next};
use super::inject;
use crate::console::say;
use crate::devices::bus::{self, Owner};
use crate::devices::trapped::{self, WouldBlock};
use crate::devices::trapped_devices::DeviceNumber;
use crate::hart;
use crate::hart::csr::{self, exception, number};
use crate::hart::decode::{Access, MemoryOperation, TrapInstruction, Trapped, Width};
use crate::hart::fence;
use crate::hart::unprivileged;
use crate::interrupts::softfile;
use crate::memory::address::GuestPhysical;
use crate::memory::gstage::Permissions;
use crate::memory::guest::Touch;
use crate::run::loading;
use crate::system::devices::VmContext;
use crate::system::interrupt_port;
use crate::system::lifecycle;
use crate::system::reclaim;
use crate::system::sharing;
use crate::vm::fault_streak::{FaultPlace, Verdict};
use crate::vm::lifecycle::life::{Ending, Originator};

/// Handles a fault of the G-stage.
#[inline(never)]
pub fn guest_page_fault(exit: &mut Exit<'_>, cause: u64) -> (ExitCause, Next) {
    let value = csr::read::<{ number::STVAL }>();
    // htval holds the guest-physical address shifted right by 2; stval has the two lowest bits.
    let address = GuestPhysical::new(csr::read::<{ number::HTVAL }>() << 2 | value & 3);
    if exit.vm.memory.is_mapped_on_touch() && exit.vm.memory.holds(address) {
        return touch(exit, address, cause, value);
    }
    if exit.vm.settings.serving.is_some() && is_in_window(exit, address, cause) {
        // The hart has cached that the page was not mapped.
        let vmid = csr::read::<{ number::HGATP }>() >> address_translation::VMID_SHIFT
            & address_translation::VMID_MAX;
        fence::guest_physical_page(address.raw(), vmid);
        return (ExitCause::GuestPageFault, Next::Resume);
    }
    emulate(exit, cause, address, value)
}

/// Tests whether the address lies in the window of a VM that serves others, and is mapped there with the right that the access needs.
#[inline(never)]
fn is_in_window(exit: &Exit<'_>, address: GuestPhysical, cause: u64) -> bool {
    let owner = exit.vm.settings.bus.at(address);
    let needed = match cause {
        exception::LOAD_GUEST_PAGE => Permissions::READ_ONLY,
        exception::STORE_GUEST_PAGE => Permissions::DEVICE,
        _ => return false,
    };
    matches!(owner, Some((Owner::Window, _)))
        && exit
            .vm
            .translate(address)
            .is_some_and(|there| there.permissions.bits() & needed.bits() == needed.bits())
}

/// Emulates an access to an address without memory, or without the right: `cause` is that of the G-stage's fault, `value` the
/// guest-virtual address.
pub fn emulate(
    exit: &mut Exit<'_>,
    cause: u64,
    address: GuestPhysical,
    value: u64,
) -> (ExitCause, Next) {
    if cause == exception::FETCH_GUEST_PAGE {
        return refuse(exit, cause, value);
    }
    let at = exit.state.context.program_counter;
    let known = TrapInstruction::from_htinst(csr::read::<{ number::HTINST }>());
    let operation = match known.trapped(|| unprivileged::fetch_instruction(at)) {
        Trapped::Operation(operation) => operation,
        Trapped::Gone => return (ExitCause::GuestPageFault, Next::Resume),
        Trapped::Other => return refuse(exit, cause, value),
    };
    let name = match exit.vm.settings.bus.at(address) {
        Some((Owner::Trapped(device), offset)) => {
            let (name, taken) = device_access(exit, device, operation, offset);
            if taken == Err(WouldBlock) {
                return (name, Next::Leave(Leave::Yield));
            }
            name
        }
        Some((Owner::InterruptFiles, offset)) => {
            let (vcpu, offset) = bus::interrupt_file(offset);
            interrupt_file(exit, operation, vcpu, offset);
            ExitCause::MmioImsic
        }
        Some((Owner::Direct | Owner::Window, _)) | None => return refuse(exit, cause, value),
    };
    let context = &mut exit.state.context;
    context.program_counter = context.program_counter.wrapping_add(operation.length);
    (name, Next::Resume)
}

/// Maps a page of the guest's memory that was not mapped at the fault; the guest repeats the access.
#[inline(never)]
fn touch(exit: &mut Exit<'_>, address: GuestPhysical, cause: u64, value: u64) -> (ExitCause, Next) {
    let mut touched = exit.vm.memory.touch(address);
    while touched == Touch::Begun && !loading::is_wanted(exit.hart) {
        touched = exit.vm.memory.touch(address);
    }
    match touched {
        Touch::Begun => {}
        Touch::FaultedIn if !exit.vm.reclaims_pages() => {}
        // Another vCPU was faster, or the hart has cached that the page was not mapped, or the frame from before a sibling gave the page back.
        Touch::FaultedIn | Touch::Present => {
            let vmid = csr::read::<{ number::HGATP }>() >> address_translation::VMID_SHIFT
                & address_translation::VMID_MAX;
            fence::guest_physical_page(address.raw(), vmid);
        }
        Touch::NoFrame => return refuse(exit, cause, value),
    }
    (ExitCause::GuestPageFault, Next::Resume)
}

/// Injects the access fault of an empty bus: the address is not the guest's.
pub fn refuse(exit: &mut Exit<'_>, cause: u64, value: u64) -> (ExitCause, Next) {
    let fault = match cause {
        exception::FETCH_GUEST_PAGE => exception::FETCH_ACCESS,
        exception::LOAD_GUEST_PAGE => exception::LOAD_ACCESS,
        _ => exception::STORE_ACCESS,
    };
    let next = note_fault(exit, fault, value);
    inject::exception(exit, fault, value);
    (ExitCause::GuestPageFault, next)
}

/// Counts a fault with those of a guest that gets nowhere: tells the operator of such a guest once, and ends its VM at the limit.
fn note_fault(exit: &mut Exit<'_>, fault: u64, address: u64) -> Next {
    let place = FaultPlace {
        instruction: exit.state.context.program_counter,
        address,
    };
    let frequency = u64::from(exit.system.board.timebase_hertz);
    let limit = exit.vm.settings.fault_limit;
    let streak = &mut exit.state.faults;
    match streak.note(place, hart::time(), frequency, limit) {
        Verdict::GoesOn => Next::Resume,
        Verdict::Tell => {
            tell_of_faults(exit, fault, place);
            Next::Resume
        }
        Verdict::Fail { told } => {
            if !told {
                tell_of_faults(exit, fault, place);
            }
            // If the VM ends already, that stands.
            let ending = Ending::Fail(StopReason::Fault);
            let _ = lifecycle::end(exit.system, exit.vm, ending, Originator::Guest);
            Next::Reconsider
        }
    }
}

#[cold]
#[inline(never)]
fn tell_of_faults(exit: &Exit<'_>, fault: u64, place: FaultPlace) {
    let access = match fault {
        exception::FETCH_ACCESS => "fetches",
        exception::LOAD_ACCESS => "loads",
        _ => "stores",
    };
    let FaultPlace {
        instruction,
        address,
    } = place;
    say!(
        "{}: vCPU {} does nothing but fault: the instruction at {instruction:#x} {access} at {address:#x}, where the VM has neither memory nor a device",
        exit.vm.settings.name,
        exit.vcpu.index
    );
}

/// Emulates an access to a trapped device. Returns the cause that it is counted under, and whether the device has taken it.
fn device_access(
    exit: &mut Exit<'_>,
    device: DeviceNumber,
    operation: MemoryOperation,
    offset: u64,
) -> (ExitCause, Result<(), WouldBlock>) {
    let width = operation.width;
    let at = trapped::Access { offset, width };
    let devices = VmContext::new(exit.system, exit.vm);
    let mut trapped = exit.vm.trapped_devices.lock();
    let context = &mut exit.state.context;
    match operation.access {
        Access::Load { register, .. } => {
            let (name, value) = trapped.load(device, at, &devices);
            context.set(register.number() as u8, operation.loaded(value));
            (name, Ok(()))
        }
        Access::Store { register } => {
            let value = width.truncate(context.get(register.number() as u8));
            let answer = trapped.store(device, at, value, &devices);
            if answer.1 == Err(WouldBlock) && exit.vm.memory.is_demand_paged() {
                // The device may wait for pages to be unmapped.
                reclaim::step(exit.system, exit.vm, &trapped);
            }
            drop(trapped);
            if let Some(notified) = devices.notified() {
                sharing::poll_clients(exit.system, notified);
            }
            answer
        }
    }
}

/// Emulates an access to the page of a vCPU's interrupt file in memory. The page reads as zero (AIA, "Memory region for an
/// interrupt file").
fn interrupt_file(exit: &mut Exit<'_>, operation: MemoryOperation, vcpu: usize, offset: u64) {
    let context = &mut exit.state.context;
    match operation.access {
        Access::Load { register, .. } => context.set(register.number() as u8, 0),
        Access::Store { register } => {
            let value = context.get(register.number() as u8) as u32;
            if operation.width == Width::Word
                && let Some(identity) = softfile::message(offset, value)
                && let Some(target) = exit.system.vcpus_of(exit.vm.id).get(vcpu)
            {
                interrupt_port::deliver(exit.system, target, identity);
            }
        }
    }
}
