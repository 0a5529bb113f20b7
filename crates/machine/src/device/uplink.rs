//! A line from the machine's switch to something outside of the machine.
//!
//! What comes from there comes when it comes: a machine with such a line is not deterministic. It is listened to once in a
//! millisecond of machine time, and may make machine time wait for that of the world.

use core::fmt::Debug;

use super::network::{PortId, Switch};
use super::{Clock, Cycles};

/// The port of the switch that the line is on.
pub const UPLINK: PortId = PortId(u8::MAX - 1);
/// How often it is listened to, in nanoseconds of machine time.
const INTERVAL: u64 = 1_000_000;
/// Frames that are taken at a time, so that a flood from outside does not stop the machine.
const MAX_AT_ONCE: usize = 64;

/// The other end.
pub trait Uplink: Debug + Send {
    /// Takes a frame, or loses it.
    fn send(&mut self, frame: &[u8]);

    /// The next frame that has come, if one has. Does not wait.
    fn receive(&mut self) -> Option<Vec<u8>>;

    /// An interval of machine time has passed; may wait until as much of the world's time has.
    fn pace(&mut self);
}

/// The machine's end of the line.
#[derive(Debug)]
pub(super) struct Line {
    uplink: Box<dyn Uplink>,
    due: Cycles,
}

impl Line {
    pub(super) fn new(uplink: Box<dyn Uplink>) -> Self {
        Self {
            uplink,
            due: Cycles(0),
        }
    }

    pub(super) fn send(&mut self, frame: &[u8]) {
        self.uplink.send(frame);
    }

    /// Lets what has come onto the switch, if it is time to listen.
    pub(super) fn tick(&mut self, now: Cycles, clock: Clock, switch: &mut Switch) {
        if now < self.due {
            return;
        }
        self.due = now.after(clock.cycles_in_nanoseconds(INTERVAL));
        self.uplink.pace();
        for _ in 0..MAX_AT_ONCE {
            let Some(frame) = self.uplink.receive() else {
                return;
            };
            switch.send(now, UPLINK, frame);
        }
    }

    pub(super) const fn next_event(&self) -> Cycles {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct World {
        waiting: usize,
        paced: usize,
    }

    impl Uplink for World {
        fn send(&mut self, _frame: &[u8]) {}

        fn receive(&mut self) -> Option<Vec<u8>> {
            self.waiting = self.waiting.checked_sub(1)?;
            Some([&[0xff; 6][..], &[2; 6], &[0; 50]].concat())
        }

        fn pace(&mut self) {
            self.paced += 1;
        }
    }

    #[test]
    fn outside_floods_come_in_portions() {
        let clock = Clock::new(1_000_000_000, 10_000_000);
        let mut switch = Switch::new(Cycles(0), None);
        (0..2).for_each(|port| switch.connect(PortId(port)));
        switch.assign(PortId(1), 1);
        switch.connect(UPLINK);
        switch.assign(UPLINK, 1);
        let waiting = MAX_AT_ONCE + 3;
        let mut line = Line::new(Box::new(World { waiting, paced: 0 }));
        let mut come = |now| {
            line.tick(Cycles(now), clock, &mut switch);
            let ports = core::iter::from_fn(|| switch.receive(Cycles(now)));
            let ports: Vec<u8> = ports.map(|(port, _)| port.0).collect();
            assert!(ports.iter().all(|port| *port == 1), "{ports:?}");
            (ports.len(), line.next_event().0)
        };
        assert_eq!(come(5), (MAX_AT_ONCE, INTERVAL + 5));
        // It is not listened to before its time.
        assert_eq!(come(6), (0, INTERVAL + 5));
        assert_eq!(come(INTERVAL + 5), (3, 2 * INTERVAL + 5));
        assert_eq!(come(3 * INTERVAL), (0, 4 * INTERVAL));
        assert!(format!("{line:?}").contains("paced: 3"));
    }
}
