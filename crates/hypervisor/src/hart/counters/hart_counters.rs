//! Counters of this hart, which the firmware configures and starts (SBI, "Performance Monitoring Unit Extension"), and
//! guests read (hcounteren).
//!
//! They are offered only where the hart can tell modes apart (Sscofpmf): they count in VS-mode and VU-mode alone, so
//! that what the hypervisor and others do is not seen in them.

use riscv::sbi::performance;

use super::{HARDWARE_COUNTERS, Hardware, Selection};
use crate::hart::common;
use crate::hart::csr::{self, interrupt, number};
use crate::hart::firmware;

/// The extension without which no counters are offered.
pub const MODES_AND_OVERFLOW: &str = "sscofpmf";

/// hcounteren: guests read `time` always. `cycle` and `instret` are each vCPU's own, and exits.
const TIME: u64 = 1 << 1;

/// Flags of a configuration: modes in which nothing of a guest runs.
const NOT_IN_U_S_M: u64 = performance::INHIBIT_U | performance::INHIBIT_S | performance::INHIBIT_M;

/// Fields of counter_info.
const INFORMATION: u64 = performance::INFORMATION_FIRMWARE
    | performance::INFORMATION_WIDTH
    | performance::INFORMATION_CSR;

/// Counters of the board's harts. All harts are taken to be alike; an event that another hart cannot count does not count there.
#[derive(Clone, Debug)]
pub struct Offer {
    /// counter_info of each counter, 0 where there is none.
    information: [u64; 32],
}

impl Offer {
    /// Asks the firmware; nothing is offered where `modes` is false.
    #[must_use]
    pub fn find(modes: bool) -> Self {
        let mut information = [0; 32];
        if modes && firmware::has_counters() {
            for counter in HARDWARE_COUNTERS {
                let register = u64::from(number::COUNTERS) + u64::from(counter);
                let found = firmware::counter_information(counter).unwrap_or(0) & INFORMATION;
                if let Some(place) = information.get_mut(usize::from(counter))
                    && found & !performance::INFORMATION_WIDTH == register
                {
                    *place = found;
                }
            }
        }
        Self { information }
    }

    /// counter_info of a counter of the harts.
    #[must_use]
    pub fn information(&self, counter: u8) -> Option<u64> {
        let found = self.information.get(usize::from(counter)).copied();
        found.filter(|information| *information != 0)
    }

    /// The counters, a bit each.
    #[must_use]
    pub fn counters(&self) -> u32 {
        HARDWARE_COUNTERS
            .filter(|counter| self.information(*counter).is_some())
            .fold(0, |bits, counter| bits | 1 << counter)
    }
}

/// Closes the hart's counters to guests, and lets those that pass zero interrupt the hypervisor while one runs.
pub fn close() {
    // SAFETY: these registers concern guests; an overflow is taken in guests only.
    unsafe {
        csr::write::<{ number::HCOUNTEREN }>(TIME);
        if common::has_interrupt_files() {
            csr::set::<{ number::HVIEN }>(interrupt::LCOFI);
        }
        csr::set::<{ number::SIE }>(interrupt::LCOFI);
    }
}

/// Gives no guest an interrupt for a counter that has passed zero, until [`give_interrupts`].
pub fn withhold_interrupts() {
    if common::has_interrupt_files() {
        // SAFETY: hvien concerns guests alone.
        unsafe { csr::clear::<{ number::HVIEN }>(interrupt::LCOFI) };
    }
}

/// Ends [`withhold_interrupts`].
pub fn give_interrupts() {
    if common::has_interrupt_files() {
        // SAFETY: hvien concerns guests alone.
        unsafe { csr::set::<{ number::HVIEN }>(interrupt::LCOFI) };
    }
}

/// Tries whether hvien passes overflow interrupts to guests (AIA, "Virtual interrupts for VS level").
#[must_use]
pub fn interrupt_guests() -> bool {
    common::has_interrupt_files() && csr::read::<{ number::HVIEN }>() & interrupt::LCOFI != 0
}

/// Ends the interrupt of counters that have passed zero.
pub fn acknowledge() {
    // SAFETY: LCOFIP is a bit that software clears (Sscofpmf, "Machine-level additions").
    unsafe { csr::clear::<{ number::SIP }>(interrupt::LCOFI) };
}

/// The counters of the hart that runs this.
#[derive(Debug)]
pub struct HartCounters;

impl Hardware for HartCounters {
    fn configure(&mut self, among: u32, selection: &Selection) -> Option<u8> {
        let mut flags = NOT_IN_U_S_M;
        if selection.no_user {
            flags |= performance::INHIBIT_VU;
        }
        if selection.no_supervisor {
            flags |= performance::INHIBIT_VS;
        }
        let found = firmware::configure_counter(among, flags, selection.event, selection.data);
        found.ok().and_then(|found| u8::try_from(found).ok())
    }

    fn start(&mut self, counter: u8, value: u64, overflowed: bool) -> bool {
        if overflowed {
            // A configuration sets the overflow bit, and OpenSBI leaves it at the start while the interrupt is pending.
            // SAFETY: LCOFIP is a bit that software sets and clears; it is cleared again before a guest runs.
            unsafe { csr::set::<{ number::SIP }>(interrupt::LCOFI) };
        } else {
            acknowledge();
        }
        let started = firmware::start_counter(counter, value).is_ok();
        acknowledge();
        started
    }

    fn stop(&mut self, counters: u32) {
        firmware::stop_counters(counters, false);
    }

    fn release(&mut self, counters: u32) {
        firmware::stop_counters(counters, true);
    }

    fn read(&self, counter: u8) -> u64 {
        read(counter)
    }

    fn open(&mut self, counters: u32) {
        // SAFETY: only guests are affected, and only counters are opened whose values are the guest's own.
        unsafe { csr::write::<{ number::HCOUNTEREN }>(TIME | u64::from(counters)) };
    }

    fn take_overflows(&mut self) -> u32 {
        // What passes zero after this makes the interrupt pending again.
        acknowledge();
        csr::read::<{ number::SCOUNTOVF }>() as u32
    }

    fn interrupt(&mut self) {
        // SAFETY: hvip injects interrupts into the guest only.
        unsafe { csr::set::<{ number::HVIP }>(interrupt::LCOFI) };
    }
}

/// `cycle`, `instret` or hpmcounter `counter`; 0 for numbers of none.
fn read(counter: u8) -> u64 {
    macro_rules! each {
        ($($number:literal)+) => {
            match counter {
                $($number => csr::read::<{ number::COUNTERS + $number }>(),)+
                _ => 0,
            }
        };
    }
    each!(0 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
}
