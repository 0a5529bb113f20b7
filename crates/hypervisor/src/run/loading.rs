//! A VM's first vCPU loads it, on the hart that the scheduler gave it, for as long as a guest might stay there.

use core::sync::atomic::Ordering;

use scheduler::{Continue, Leave, Ticks};

use crate::console::say;
use crate::hart::csr::{self, number};
use crate::run::host_interrupts::handle_host_interrupts;
use crate::run::timer::set_slice;
use crate::system::harts::Hart;
use crate::system::lifecycle;
use crate::system::loader;
use crate::system::monitor;
use crate::system::{Hypervisor, now};
use crate::vm::Vm;
use crate::vm::accounts::CpuTime;
use crate::vm::lifecycle::life::Run;
use crate::vm::loading::Progress;

/// Loads `vm` until it is loaded, or the scheduler wants the hart back. Returns why the vCPU leaves. The time is the VM's
/// own, and does not count as a dispatch of a guest.
#[cold]
#[inline(never)]
pub fn load(
    system: &Hypervisor,
    hart: &Hart,
    vm: &Vm,
    run: Run,
    (began, slice): (Ticks, Option<Ticks>),
    cpu_time: CpuTime<'_>,
) -> Leave {
    // The time of loading is no part of a context switch.
    hart.switch_cost.idle();
    set_slice(system, hart, began, slice);
    cpu_time.charge_scheduling();
    loop {
        if is_wanted(hart) {
            handle_host_interrupts(system, hart);
            monitor::publish(system, hart);
            hart.must_reschedule.store(false, Ordering::Relaxed);
            let decision = system.with_hart(hart.index, |group| {
                group.scheduler_mut().reconsider(hart.index, now() - began)
            });
            cpu_time.charge_scheduling();
            match decision {
                Continue::Stay { slice, .. } => set_slice(system, hart, now(), slice),
                Continue::Leave(reason) => return reason,
            }
        }
        let progress = loader::step(system, vm, run);
        cpu_time.charge_loading();
        match progress {
            Ok(Progress::More) => {}
            Ok(Progress::Done(start)) => {
                return if lifecycle::loaded(system, vm, start) {
                    Leave::Yield
                } else {
                    Leave::Stopped
                };
            }
            Err(error) => {
                say!("{}: {error}", vm.settings.name);
                lifecycle::load_failed(system, vm);
                return Leave::Stopped;
            }
        }
    }
}

/// Returns true if an event is pending for which the hart would have left a guest.
pub fn is_wanted(hart: &Hart) -> bool {
    hart.must_reschedule.load(Ordering::Relaxed)
        || csr::read::<{ number::SIP }>() & csr::read::<{ number::SIE }>() != 0
        || csr::read::<{ number::HIP }>() & csr::interrupt::SGEI != 0
}
