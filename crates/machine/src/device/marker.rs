//! Software says "here": a text on a console.
//!
//! This works through every layer of software, because a text that a guest prints travels through
//! its hypervisor to a console of the machine sooner or later, whatever path it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::{Clock, Cycles};
use crate::device::Console;

/// Says whether a text has been seen on any of the consoles that watch for it.
#[derive(Debug, Clone, Default)]
pub struct Marker {
    text: Arc<[u8]>,
    seen: Arc<AtomicBool>,
}

impl Marker {
    /// A marker for a text. An empty one is seen with the first byte that is put.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.as_bytes().into(),
            seen: Arc::default(),
        }
    }

    /// Tests whether the text has been seen.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// A console that passes everything on to `console`, and watches for the text.
    #[must_use]
    pub fn watch(&self, console: Box<dyn Console>) -> Watched {
        Watched {
            marker: self.clone(),
            recent: Vec::new(),
            console,
        }
    }
}

/// A console that is watched for a text; see [`Marker::watch`].
#[derive(Debug)]
pub struct Watched {
    marker: Marker,
    /// The last bytes put, at most as many as the text has.
    recent: Vec<u8>,
    console: Box<dyn Console>,
}

impl Watched {
    fn match_byte(&mut self, byte: u8) {
        if self.recent.len() >= self.marker.text.len().max(1) {
            self.recent.remove(0);
        }
        self.recent.push(byte);
        if self.recent.ends_with(&self.marker.text) {
            self.marker.seen.store(true, Ordering::Relaxed);
        }
    }
}

impl Console for Watched {
    fn put(&mut self, byte: u8) {
        self.match_byte(byte);
        self.console.put(byte);
    }

    fn put_at(&mut self, byte: u8, now: Cycles) {
        self.match_byte(byte);
        self.console.put_at(byte, now);
    }

    fn get(&mut self, now: Cycles) -> Option<u8> {
        self.console.get(now)
    }

    fn next_input(&self, now: Cycles, clock: &Clock) -> Option<Cycles> {
        self.console.next_input(now, clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Silent;

    #[test]
    fn a_text_is_seen_wherever_it_stands() {
        let marker = Marker::new("abab!");
        let (mut first, mut second) = (
            marker.watch(Box::new(Silent)),
            marker.watch(Box::new(Silent)),
        );
        for byte in *b"ababab" {
            first.put(byte);
        }
        // Consoles are watched one by one: what two of them say does not make the text.
        second.put(b'!');
        assert!(!marker.is_seen());
        first.put(b'!');
        assert!(marker.is_seen());
    }
}
