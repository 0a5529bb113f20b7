//! What a hart does about its own interrupts: kicks, messages for vCPUs, deadlines, the board's UART.

use core::sync::atomic::Ordering;

use abi::monitor::ExitCause;

use crate::hart::counters::hart_counters;
use crate::hart::csr::{self, number};
use crate::hart::{self, interrupt_file};
use crate::interrupts;
use crate::operator;
use crate::system::harts::{Hart, identity};
use crate::system::interrupt_port::{self, InterruptPort};
use crate::system::sharing;
use crate::system::sources;
use crate::system::{self, Hypervisor};

/// So many interrupts of the hart's own file are attended to at once. What is left interrupts the guest again, after the
/// scheduler has been asked.
const CLAIMS: usize = 64;

/// What a hart had to attend to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attended {
    /// As what it is counted: the most telling of it.
    pub cause: ExitCause,
    /// Whether it was interrupts of devices that the hypervisor serves and nothing else. They were shown to their guests, and who has this hart and for how
    /// long is as it was: a vCPU that was woken has its hart asked, this one or another.
    pub devices_alone: bool,
}

/// Attends to whatever interrupts this hart has. Unless they were devices' alone, the hart asks the scheduler next, and what follows sets
/// its timer anew.
pub fn attend(system: &Hypervisor, hart: &Hart) -> Attended {
    let pending = csr::read::<{ number::SIP }>();
    let mut cause = ExitCause::HostTimer;
    let mut devices_alone = pending & csr::interrupt::LCOFI == 0;
    // SGEI is pending and enabled in hip and hie alone, not in sip and sie.
    if csr::read::<{ number::HIP }>() & csr::interrupt::SGEI != 0 {
        attend_files(system, hart);
        cause = ExitCause::GuestExternal;
        devices_alone = false;
    }
    if pending & csr::interrupt::SEI != 0 {
        let attended = attend_messages(system, hart);
        cause = attended.cause;
        devices_alone &= attended.devices_alone && cause == ExitCause::HostExternal;
    }
    if pending & csr::interrupt::LCOFI != 0 {
        // No guest's: those are noted where they are taken, and before their counters leave the hart.
        hart_counters::acknowledge();
    }
    if pending & csr::interrupt::STI != 0 {
        devices_alone &= attend_timer(system, hart);
    }
    Attended {
        cause,
        devices_alone: devices_alone && pending & DEVICES != 0,
    }
}

/// Interrupts of the hart's own by which devices are served.
const DEVICES: u64 = csr::interrupt::SEI | csr::interrupt::STI;

/// Attends to the hart's timer. Says whether it was the time of devices and nothing else.
#[inline(never)]
fn attend_timer(system: &Hypervisor, hart: &Hart) -> bool {
    let served = sharing::serve_due(system, hart, hart::time());
    if served && csr::read::<{ number::STIMECMP }>() > hart::time() {
        return true;
    }
    wake_expired(system, hart);
    false
}

/// Attends to the messages to this hart.
#[inline(never)]
fn attend_messages(system: &Hypervisor, hart: &Hart) -> Attended {
    let mut attended = Attended {
        cause: ExitCause::HostIpi,
        devices_alone: true,
    };
    for _ in 0..CLAIMS {
        let Some(identity) = interrupt_file::claim() else {
            break;
        };
        if sharing::serve(system, identity.wrapping_sub(identity::DEVICE)) {
            attended.cause = ExitCause::HostExternal;
        } else {
            attended.devices_alone = false;
            if let Some(external) = attend_message(system, hart, identity) {
                attended.cause = external;
            }
        }
    }
    attended
}

/// Attends to the guest files that interrupt this hart. What a hart does seldom stays out of line, so that a device's interrupt finds
/// registers free.
#[inline(never)]
fn attend_files(system: &Hypervisor, hart: &Hart) {
    let files = csr::read::<{ number::HGEIP }>() & csr::read::<{ number::HGEIE }>();
    interrupts::attend(&InterruptPort::new(system, hart), files);
}

/// Attends to a message to this hart that is not of a device that the hypervisor serves. Says as what it is counted, if it is the board's.
#[inline(never)]
fn attend_message(system: &Hypervisor, hart: &Hart, identity: u32) -> Option<ExitCause> {
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
            interrupt_port::deliver_source(system, identity.wrapping_sub(identity::DEVICE));
            Some(ExitCause::HostExternal)
        }
    }
}

/// Wakes the vCPUs that wait here and whose deadline has come.
#[inline(never)]
fn wake_expired(system: &Hypervisor, hart: &Hart) {
    let time = hart::time();
    for vcpu in system.waiting_on(hart) {
        if vcpu.deadline.load(Ordering::Relaxed) <= time {
            vcpu.deadline.store(u64::MAX, Ordering::Relaxed);
            system::wake(system, vcpu.id);
        }
    }
    sources::look_after_devices(system, time);
    if time >= hart.next_look.load(Ordering::Relaxed) {
        hart.next_look
            .store(time + system.look_interval(), Ordering::Relaxed);
        interrupts::look(&InterruptPort::new(system, hart));
    }
}
