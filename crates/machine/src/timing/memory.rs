//! Memory behind the caches: channels, each with a queue and banks.

use serde::{Deserialize, Serialize};

use crate::profile::MemoryProfile;

/// The channels of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MemoryChannels {
    profile: MemoryProfile,
    channels: Vec<Channel>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Channel {
    transfers: Transfers,
    /// When each bank can begin with another line.
    banks: Vec<u64>,
}

impl MemoryChannels {
    /// Idle channels, each of which takes `gap` cycles for a line.
    pub fn new(profile: MemoryProfile, gap: u64) -> Self {
        let channel = Channel {
            transfers: Transfers::new(gap),
            banks: vec![0; profile.banks.max(1).into()],
        };
        Self {
            profile,
            channels: vec![channel; profile.channels.max(1).into()],
        }
    }

    /// Tests whether they are what a profile describes, and whole.
    pub fn is_of(&self, profile: MemoryProfile, gap: u64) -> bool {
        self.profile == profile
            && self.channels.len() == usize::from(profile.channels)
            && (self.channels.iter()).all(|channel| {
                channel.transfers.gap == gap && channel.banks.len() == usize::from(profile.banks)
            })
    }

    /// Takes a line's turn, at `now` at the earliest; gives the cycles until it begins. Lines are interleaved over the channels, and
    /// a channel's lines over its banks by the exclusive or of higher address bits, as memory controllers do.
    pub fn turn(&mut self, line: u64, now: u64) -> u64 {
        let channels = self.channels.len() as u64;
        let inside = line / channels;
        let Some(channel) = self.channels.get_mut((line % channels) as usize) else {
            return 0;
        };
        let mixed = inside ^ inside >> 7 ^ inside >> 13;
        let place = (mixed % channel.banks.len() as u64) as usize;
        let Some(bank) = channel.banks.get_mut(place) else {
            return 0;
        };
        let ready = if self.profile.bank_busy == 0 {
            now
        } else {
            now.max(*bank)
        };
        let begins = channel.transfers.reserve(ready);
        *bank = begins + self.profile.bank_busy;
        begins - now
    }
}

/// Slots of which a channel's book tells.
const SLOTS: u64 = u64::BITS as u64;
/// Slots that are kept before the one that was asked for last: a hart whose turn comes later may be earlier in time.
const KEPT: u64 = 16;

/// Lines that a channel transfers, as slots of time, one for each line. A line takes the first free slot, so that harts that are a
/// quantum apart do not wait for each other's future.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Transfers {
    /// Cycles of a slot.
    gap: u64,
    /// Number of the first slot.
    first: u64,
    /// A bit for each slot from the first on that is taken.
    taken: u64,
}

impl Transfers {
    const fn new(gap: u64) -> Self {
        Self {
            gap,
            first: 0,
            taken: 0,
        }
    }

    const fn advance(&mut self, to: u64) {
        let by = to - self.first;
        self.taken = if by >= SLOTS { 0 } else { self.taken >> by };
        self.first = to;
    }

    /// Takes the slot of `ready`, or a later one; gives when the transfer begins.
    fn reserve(&mut self, ready: u64) -> u64 {
        if self.gap == 0 {
            return ready;
        }
        let wanted = ready / self.gap;
        if wanted > self.first + KEPT {
            self.advance(wanted - KEPT);
        }
        let from = wanted.saturating_sub(self.first);
        // The first free slot from there on; behind all of them if there is none.
        let busy = !(!self.taken >> from << from);
        let slot = match u64::from(busy.trailing_ones()) {
            SLOTS => {
                self.advance(self.first + 1);
                SLOTS - 1
            }
            slot => slot,
        };
        self.taken |= 1 << slot;
        ready.max((self.first + slot) * self.gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(channels: u16, banks: u16, bank_busy: u64, gap: u64) -> MemoryChannels {
        let profile = MemoryProfile {
            channels,
            banks,
            bank_busy,
        };
        MemoryChannels::new(profile, gap)
    }

    #[test]
    fn channels_transfer_side_by_side() {
        let mut memory = memory(2, 1, 0, 10);
        let turns: Vec<u64> = (0..6).map(|line| memory.turn(line, 0)).collect();
        assert_eq!(turns, [0, 0, 10, 10, 20, 20]);
    }

    #[test]
    fn banks_make_their_next_line_wait() {
        let mut memory = memory(1, 2, 100, 10);
        assert_eq!(memory.turn(0, 0), 0);
        assert_eq!(memory.turn(1, 0), 10);
        assert_eq!(memory.turn(2, 0), 100);
        assert_eq!(memory.turn(2, 500), 0);
    }

    #[test]
    fn earlier_lines_take_earlier_slots() {
        let mut memory = memory(1, 1, 0, 10);
        assert_eq!(memory.turn(0, 40), 0);
        assert_eq!(memory.turn(0, 0), 0);
        assert_eq!(memory.turn(0, 0), 10);
        // 40 is taken.
        assert_eq!(memory.turn(0, 45), 5);
    }

    #[test]
    fn long_queues_lose_no_line() {
        let mut memory = memory(1, 1, 0, 10);
        for line in 0..1000 {
            assert_eq!(memory.turn(line, 0), line * 10);
        }
        assert_eq!(memory.turn(0, 100_000), 0);
    }
}
