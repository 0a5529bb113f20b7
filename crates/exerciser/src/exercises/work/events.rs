//! One kind of event, many times.

use exerciser::event::Event;
use riscv::sbi::{BASE, RFENCE};
use riscv::sbi::{base, remote_fence};

use super::spaces::Spaces;
use crate::arch::{csr, repeated, sbi};
use crate::block::Disk;
use crate::board::board;
use crate::harts::{self, Hart};
use crate::interrupts::{WAKE, has_sstc};

/// How long a wait lasts that the timer ends, in microseconds.
const WAIT: u64 = 200;
/// Why this hart cannot have this event, if it cannot.
pub fn refusal(event: Event, spaces: u64) -> Option<&'static str> {
    match event {
        event if event.needs_space() && spaces == 0 => Some("needs spaces=1"),
        Event::Invalidate if !board().has("svinval") => Some("needs Svinval"),
        _ => None,
    }
}

/// Repeats an event `count` times or a few more, with interrupts closed. Returns how often it was.
pub fn repeat(
    event: Event,
    count: u64,
    hart: &'static Hart,
    spaces: &Spaces,
    disk: Option<&Disk>,
) -> u64 {
    let times = |each: &dyn Fn()| {
        (0..count).for_each(|_| each());
        count
    };
    let sixteen = |each: &dyn Fn()| {
        let turns = count.div_ceil(repeated::AT_A_TIME);
        (0..turns).for_each(|_| each());
        turns * repeated::AT_A_TIME
    };
    let asid = csr::translation() >> 44 & 0xffff;
    match event {
        Event::None => sixteen(&repeated::nothing),
        Event::Mask => sixteen(&repeated::mask),
        Event::Fence => sixteen(&|| repeated::fence(asid)),
        Event::FencePage => sixteen(&|| repeated::fence_page(spaces.window(), asid)),
        Event::Invalidate => sixteen(&|| repeated::invalidate(spaces.window(), asid)),
        Event::Space => sixteen(&repeated::change_space),
        Event::Call => times(&|| {
            sbi::call(BASE, base::SPECIFICATION_VERSION, [0; 6]);
        }),
        Event::RemoteFence => times(&|| {
            let answer = sbi::call(RFENCE, remote_fence::FENCE_I, [1, hart.id(), 0, 0, 0, 0]);
            if answer.error != 0 {
                let error = answer.error;
                crate::start::fail(format_args!("remote fence: SBI error {error}"));
            }
        }),
        Event::Timer if has_sstc() => sixteen(&repeated::set_timer_compare),
        Event::Timer => times(&|| sbi::set_timer(u64::MAX)),
        Event::TimerInterrupt => timer_interrupts(count, hart),
        Event::Message => times(&|| {
            let before = hart.taken(WAKE);
            hart.send(WAKE);
            while hart.taken(WAKE) == before {
                csr::take_interrupts();
            }
        }),
        Event::WaitPending => sixteen(&repeated::wait_with_pending),
        Event::Wait => times(&|| harts::sleep_until(csr::time() + board().ticks(WAIT))),
        Event::Notify => times(&|| {
            if let Some(disk) = disk {
                disk.notify();
            }
        }),
    }
}

/// Interrupts of the timer, each of which has come before the next is asked for.
fn timer_interrupts(count: u64, hart: &Hart) -> u64 {
    use core::sync::atomic::Ordering;
    let enabled = csr::interrupt_enables();
    csr::set_interrupt_enables(enabled | csr::TIMER);
    for _ in 0..count {
        let before = hart.timers.load(Ordering::Acquire);
        harts::set_timer(0);
        while hart.timers.load(Ordering::Acquire) == before {
            csr::take_interrupts();
        }
    }
    csr::set_interrupt_enables(enabled);
    count
}
