//! Handling of a hart's own interrupts: kicks, messages for vCPUs, deadlines, the board's UART.

use core::sync::atomic::Ordering;

use abi::monitor::ExitCause;

use crate::hart::counters::hart_counters;
use crate::hart::csr::{self, number};
use crate::hart::{self, common, interrupt_file};
use crate::interrupts;
use crate::operator;
use crate::run::guest_timer;
use crate::system::harts::{Hart, identity};
use crate::system::interrupt_port::{self, InterruptPort};
use crate::system::sharing;
use crate::system::sources;
use crate::system::{self, Hypervisor};

/// Most interrupts of the hart's own file that are handled at once. The rest interrupts the guest again, after the
/// scheduler has been asked.
const CLAIMS: usize = 64;

/// Interrupts that a hart has handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandledInterrupts {
    /// Cause that they are counted under.
    pub cause: ExitCause,
    /// Set if all interrupts were of devices that the hypervisor serves. They were delivered to their guests; the hart's vCPU and its
    /// slice have not changed, because a woken vCPU makes a hart ask the scheduler.
    pub devices_alone: bool,
}

/// Handles the interrupts of this hart. Unless all of them were devices', the hart asks the scheduler next, which sets
/// its timer anew.
#[inline]
pub fn handle_host_interrupts(system: &Hypervisor, hart: &Hart) -> HandledInterrupts {
    let pending = csr::read::<{ number::SIP }>();
    let mut cause = ExitCause::HostTimer;
    let mut devices_alone = pending & csr::interrupt::LCOFI == 0;
    // SGEI is pending and enabled in hip and hie alone, not in sip and sie.
    if csr::read::<{ number::HIP }>() & csr::interrupt::SGEI != 0 {
        handle_files(system, hart);
        cause = ExitCause::GuestExternal;
        devices_alone = false;
    }
    if pending & csr::interrupt::SSI != 0 && !common::has_interrupt_files() {
        // The interrupt is cleared first, so that a kick that comes now interrupts again.
        // SAFETY: SSIP of sip is a bit that software clears.
        unsafe { csr::clear::<{ number::SIP }>(csr::interrupt::SSI) };
        handle_message(system, hart, identity::KICK);
        cause = ExitCause::HostIpi;
        devices_alone = false;
    }
    if pending & csr::interrupt::SEI != 0 {
        let handled = handle_messages(system, hart);
        cause = handled.cause;
        devices_alone &= handled.devices_alone && cause == ExitCause::HostExternal;
    }
    if pending & csr::interrupt::LCOFI != 0 {
        // The overflow is no guest's: a guest's is noted at its exit, and before its counters leave the hart.
        hart_counters::acknowledge();
    }
    if pending & csr::interrupt::STI != 0 {
        devices_alone &= handle_timer(system, hart);
    }
    HandledInterrupts {
        cause,
        devices_alone: devices_alone && pending & DEVICES != 0,
    }
}

/// Interrupts of the hart's own by which devices are served.
const DEVICES: u64 = csr::interrupt::SEI | csr::interrupt::STI;

/// Handles the hart's timer. Returns true if only polls of devices were due.
#[inline(never)]
fn handle_timer(system: &Hypervisor, hart: &Hart) -> bool {
    let mut served = sharing::serve_due(system, hart, hart::time());
    served |= !common::has_supervisor_timer() && guest_timer::expire(hart, hart::time());
    if served && hart.poll_schedule.next() > hart::time() {
        return true;
    }
    wake_expired(system, hart);
    false
}

/// Handles the messages to this hart.
#[inline(never)]
fn handle_messages(system: &Hypervisor, hart: &Hart) -> HandledInterrupts {
    let mut handled = HandledInterrupts {
        cause: ExitCause::HostIpi,
        devices_alone: true,
    };
    for _ in 0..CLAIMS {
        let Some(identity) = claim(system, hart) else {
            break;
        };
        if sharing::serve(system, identity.wrapping_sub(identity::DEVICE)) {
            handled.cause = ExitCause::HostExternal;
        } else {
            handled.devices_alone = false;
            if let Some(external) = handle_message(system, hart, identity) {
                handled.cause = external;
            }
        }
    }
    handled
}

/// Claims the most urgent external interrupt of this hart. Returns its identity.
#[inline]
fn claim(system: &Hypervisor, hart: &Hart) -> Option<u32> {
    match system.controller.wired() {
        None => interrupt_file::claim(),
        Some(wires) => {
            let source = wires.claim(hart.delivery)?;
            Some(match system.is_uart(source) {
                true => identity::UART,
                false => identity::DEVICE + source,
            })
        }
    }
}

/// Handles the guest files that interrupt this hart. Rare work stays out of line, so that a device's interrupt finds
/// registers free.
#[inline(never)]
fn handle_files(system: &Hypervisor, hart: &Hart) {
    let files = csr::read::<{ number::HGEIP }>() & csr::read::<{ number::HGEIE }>();
    interrupts::handle_guest_file_interrupts(&InterruptPort::new(system, hart), files);
}

/// Handles a message to this hart that is of no device that the hypervisor serves. Returns the exit cause of a board MSI.
#[inline(never)]
fn handle_message(system: &Hypervisor, hart: &Hart, identity: u32) -> Option<ExitCause> {
    match identity {
        identity::KICK => {
            interrupts::serve(&InterruptPort::new(system, hart));
            interrupt_port::watch_as_wanted(system, hart);
            None
        }
        identity::SYNCHRONISED => {
            interrupts::synchronised(&InterruptPort::new(system, hart));
            None
        }
        identity::UART => {
            operator::serve(system);
            Some(ExitCause::HostExternal)
        }
        _ => {
            sources::deliver(system, hart, identity.wrapping_sub(identity::DEVICE));
            Some(ExitCause::HostExternal)
        }
    }
}

/// Wakes the vCPUs that wait here and whose deadline has passed.
#[inline(never)]
fn wake_expired(system: &Hypervisor, hart: &Hart) {
    let time = hart::time();
    if hart.waiting.may_be_due(time) {
        hart.waiting.forget_earliest();
        system.for_each_waiting_on(hart, |vcpu| {
            if vcpu.deadline.load(Ordering::Relaxed) <= time {
                vcpu.deadline.store(u64::MAX, Ordering::Relaxed);
                system::wake(system, vcpu.id);
            }
        });
    }
    if sources::poll_devices(system, time) && system.console_is_polled() {
        operator::serve(system);
    }
    if time >= hart.next_poll.load(Ordering::Relaxed) {
        hart.next_poll
            .store(time + system.poll_interval(), Ordering::Relaxed);
        interrupts::poll_files(&InterruptPort::new(system, hart));
    }
}
