//! What happened when: a stream of events, for whoever wants to draw or count them.
//!
//! Events are noted where they happen and handed to a [`Sink`] at the end of each quantum, in the
//! order of their times. Nothing in the machine depends on whether somebody listens: cycle counts,
//! monitor figures and memory are the same with and without. [`Timeline`] is a sink that writes a
//! file for Perfetto's viewer.

mod event;
#[cfg(test)]
mod tests;
mod timeline;

pub use event::{Event, Happening, Place, WaitEnd};
pub use timeline::Timeline;

use std::io;

use crate::base::Clock;
use crate::hart::Hart;
use crate::machine::Machine;

/// Who takes events.
pub trait Sink: std::fmt::Debug + Send {
    /// Takes an event. Times do not decrease from call to call, but for events in one hart's last
    /// instructions of a quantum, which may come up to a block later than other harts' first ones
    /// of the next.
    fn event(&mut self, event: &Event);

    /// The run has ended at this time: nothing comes after this.
    ///
    /// # Errors
    /// Why not everything could be kept.
    fn end(&mut self, _cycles: u64) -> io::Result<()> {
        Ok(())
    }
}

impl Hart {
    /// Notes what happens on this hart now, if somebody listens.
    #[inline]
    pub(crate) fn note(&mut self, happening: impl FnOnce(&Self) -> Happening) {
        if self.events.is_some() {
            let event = Event {
                place: Place::Hart(self.id),
                cycles: self.cycles,
                retired: self.retired,
                happening: happening(self),
            };
            if let Some(events) = &mut self.events {
                events.push(event);
            }
        }
    }
}

impl Machine {
    /// Hands every event from now on to `sink`, beginning with the mode of each hart. Somebody who
    /// listened before is dropped.
    pub fn listen(&mut self, sink: Box<dyn Sink>) {
        self.sink = Some(sink);
        self.system.devices.note_events(true);
        for hart in &mut self.harts {
            hart.events = Some(Vec::new());
            hart.note(|hart| Happening::Mode {
                mode: hart.mode(),
                vmid: hart.vmid(),
            });
        }
        self.hand_over_events();
    }

    /// Ends the stream of events.
    ///
    /// # Errors
    /// What the sink says at its end.
    pub fn stop_listening(&mut self) -> io::Result<()> {
        self.hand_over_events();
        self.system.devices.note_events(false);
        self.system.memory.stop_observing();
        let mut last = self.now;
        for hart in &mut self.harts {
            hart.events = None;
            last = last.max(hart.cycles);
        }
        match self.sink.take() {
            Some(mut sink) => sink.end(last),
            None => Ok(()),
        }
    }

    /// Hands over what has been noted.
    pub(crate) fn hand_over_events(&mut self) {
        let Some(sink) = &mut self.sink else { return };
        let mut events = self.system.devices.take_events();
        for hart in &mut self.harts {
            if let Some(own) = &mut hart.events {
                events.append(own);
            }
        }
        // Stable: events of one place stay in their order.
        events.sort_by_key(|event| event.cycles);
        for event in &events {
            sink.event(event);
        }
    }

    /// The machine's clock, which makes nanoseconds of cycles.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.config.board.clock
    }
}
