//! Handing over what happens to whoever listens.

use std::io;

use super::Machine;
use crate::base::Clock;
use crate::trace::{Happening, Sink};

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
        self.system.observe_locks();
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
