//! The tests that a dispatching hart makes of vCPUs that wait: paper 002's pending-interrupt test, by hgeip, and the
//! test of the word that a spinning vCPU watches.

use core::sync::atomic::Ordering;

use scheduler::{Probe, VcpuId, VcpuSet};

use crate::hart::csr::{self, number};
use crate::hart::{self, custom, wait_for_interrupt};
use crate::harts::Hart;
use crate::interrupts::{self, Backing};
use crate::system::Hypervisor;

/// The tests, made on `hart`.
#[derive(Clone, Copy, Debug)]
pub struct Tests<'a> {
    pub system: &'a Hypervisor,
    pub hart: &'a Hart,
}

impl Probe for Tests<'_> {
    fn pending(&mut self, vcpu: VcpuId) -> bool {
        let vcpu = self.system.vcpu(vcpu);
        if vcpu.deadline.load(Ordering::Relaxed) <= hart::time() {
            return true;
        }
        let interrupts = vcpu.interrupts.lock();
        match interrupts.backing {
            Backing::Memory => interrupts.memory_file_asserts(),
            // hgeip is valid on the hart that holds the file, and cannot be read from another (AIA, "hgeip").
            Backing::File { hart, file } => {
                let pending = if hart == self.hart.index {
                    csr::read::<{ number::HGEIP }>()
                } else if self.hart.tests_any_file {
                    // SAFETY: the hart has the extension.
                    unsafe { custom::guest_files_pending(self.system.hart(hart).board.id) }
                } else {
                    0
                };
                pending >> file & 1 != 0
            }
        }
    }

    fn changed(&mut self, vcpu: VcpuId) -> bool {
        self.system
            .vcpu(vcpu)
            .word
            .lock()
            .is_none_or(|word| word.has_come())
    }
}

/// How often an idle hart looks at words before it asks the scheduler again.
const LOOKS: u32 = 512;

/// Waits while a hart must test the vCPUs `watch` itself, until one of them may go on or an interrupt is pending.
///
/// It is one wait for work, interrupts and timers, in which no interrupt is taken: sstatus.SIE is 0, hgeie has the files
/// of those that wait here, and the timer has their earliest deadline. Where some of them wait for words, WRS.NTO stalls on the
/// first of these (at most for the hart's own limit) and the others are looked at in between; else WFI waits.
pub fn wait_with_tests(system: &Hypervisor, hart: &Hart, watch: VcpuSet) {
    let words = || {
        watch
            .iter()
            .filter_map(|vcpu| *system.vcpu(vcpu).word.lock())
    };
    // Under host interrupts hgeie has these files already, and keeps them.
    let arm = !system.host_interrupts();
    for vcpu in watch.iter().filter(|_| arm) {
        watch_file(system, hart, vcpu, true);
    }
    if words().next().is_none() {
        wait_for_interrupt();
    } else {
        for _ in 0..LOOKS {
            if interrupt_is_pending() || words().any(|word| word.has_come()) {
                break;
            }
            if let Some(word) = words().next() {
                word.stall();
            }
        }
    }
    for vcpu in watch.iter().filter(|_| arm) {
        watch_file(system, hart, vcpu, false);
    }
}

fn watch_file(system: &Hypervisor, hart: &Hart, vcpu: VcpuId, on: bool) {
    if let Backing::File { hart: home, file } = system.vcpu(vcpu).interrupts.lock().backing
        && home == hart.index
    {
        interrupts::watch(file, on);
    }
}

fn interrupt_is_pending() -> bool {
    csr::read::<{ number::SIP }>() & csr::read::<{ number::SIE }>() != 0
        || csr::read::<{ number::HIP }>() & csr::interrupt::SGEI != 0
}
