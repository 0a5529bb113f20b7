//! Holders of locks, inferred from the words that vCPUs have waited for.
//!
//! Two kinds of lock can be told from the stores to their word alone:
//!
//! - a *ticket lock* (Linux's `arch_spinlock_t`: next << 16 | owner): who adds one to the upper half has drawn the
//!   ticket that was there; the lock belongs to the ticket in the lower half, to which one is added when it is given back;
//! - a *swap lock*: who makes zero something else has it, until it is zero again.
//!
//! A word that its own setter waits for is neither: another clears it for the waiter, as in a queue lock's node. Nor is one
//! that takes any other value, such as a counter.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A vCPU, by its VMID.
pub type Vmid = u16;

/// Somebody had a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The lock's word, a physical address.
    pub word: u64,
    /// The holder.
    pub holder: Vmid,
    /// From when, in nanoseconds.
    pub start: u64,
    /// To when.
    pub end: u64,
    /// Most who waited for it at a time.
    pub waiters: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Lock {
    value: u64,
    /// It is no lock.
    flag: bool,
    /// It is one: it was seen to be taken and given back, or tickets to be drawn.
    known: bool,
    holder: Option<(Vmid, u64)>,
    /// It is a ticket lock.
    tickets_drawn: bool,
    /// Tickets and the VMs that drew them.
    tickets: BTreeMap<u16, Vmid>,
    /// The waiting hart.
    waiting: BTreeMap<Vmid, ()>,
    most: usize,
}

/// The locks of a timeline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locks {
    locks: BTreeMap<u64, Lock>,
    /// Tickets that were drawn before it was their turn.
    contended: u64,
}

/// Turn at a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The word is no lock, as far as its stores tell.
    NoLock,
    /// It may be a lock; who has it is not known.
    Unknown,
    /// Nobody has the lock.
    Free,
    /// This vCPU's, since then, in nanoseconds: it holds the lock, or will as soon as it looks.
    Of(Vmid, u64),
}

/// Meaning of a store to a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// A ticket was drawn; whose turn it is.
    Drawn { ticket: u16, turn: u16 },
    /// A ticket lock was given back; whose turn it is now, and the next ticket.
    Passed { turn: u16, next: u16 },
    /// A swap lock was taken.
    Taken,
    /// A swap lock was given back.
    Freed,
    /// Anything else.
    Other,
}

/// Increment of a ticket lock's word that draws a ticket.
pub const TICKET: u64 = 1 << 16;

/// Most tickets that can be drawn and not served: there are no more harts or vCPUs.
const MAX_TICKETS: u16 = 1024;

/// The two halves of a ticket lock: the next ticket and whose turn it is.
const fn halves(value: u64) -> (u16, u16) {
    ((value >> 16) as u16, value as u16)
}

fn change(old: u64, new: u64) -> Change {
    let ((next, turn), (next_now, turn_now)) = (halves(old), halves(new));
    let word = old <= u64::from(u32::MAX) && new <= u64::from(u32::MAX);
    // A counter must not be taken for a lock: nobody can be served whose ticket has not been drawn.
    let drawn = next.wrapping_sub(turn);
    if word && drawn < MAX_TICKETS && turn == turn_now && next.wrapping_add(1) == next_now {
        Change::Drawn { ticket: next, turn }
    } else if word
        && (1..=MAX_TICKETS).contains(&drawn)
        && next == next_now
        && turn.wrapping_add(1) == turn_now
    {
        Change::Passed {
            turn: turn_now,
            next,
        }
    } else if old == 0 && new != 0 {
        Change::Taken
    } else if old != 0 && new == 0 {
        Change::Freed
    } else {
        Change::Other
    }
}

impl Locks {
    /// A vCPU waits for a word.
    pub fn wait(&mut self, word: u64, vmid: Vmid) {
        let lock = self.locks.entry(word).or_default();
        // With a ticket lock it has just been passed on to the vCPU, which has not looked yet.
        if !lock.tickets_drawn && lock.holder.is_some_and(|(holder, _)| holder == vmid) {
            lock.flag = true;
            lock.holder = None;
        }
        lock.waiting.insert(vmid, ());
        lock.most = lock.most.max(lock.waiting.len());
    }

    /// A vCPU waits no more for a word.
    pub fn wait_over(&mut self, word: u64, vmid: Vmid) {
        if let Some(lock) = self.locks.get_mut(&word) {
            lock.waiting.remove(&vmid);
        }
    }

    /// Holder of the lock, as far as it is known.
    pub fn holder(&self, word: u64) -> Option<Vmid> {
        Some(self.locks.get(&word)?.holder?.0)
    }

    /// Present turn.
    pub fn turn(&self, word: u64) -> Turn {
        let Some(lock) = self.locks.get(&word) else {
            return Turn::Unknown;
        };
        let (next, turn) = halves(lock.value);
        match lock.holder {
            _ if lock.flag => Turn::NoLock,
            Some((holder, since)) => Turn::Of(holder, since),
            None if !lock.known => Turn::Unknown,
            None if lock.tickets_drawn && next != turn => Turn::Unknown,
            None if !lock.tickets_drawn && lock.value != 0 => Turn::Unknown,
            None => Turn::Free,
        }
    }

    /// How many tickets of ticket locks were drawn before it was their turn.
    pub const fn contended(&self) -> u64 {
        self.contended
    }

    /// How many wait for it now.
    pub fn waiters(&self, word: u64) -> usize {
        self.locks.get(&word).map_or(0, |lock| lock.waiting.len())
    }

    /// The word holds this; `stored` says who has just stored it, if anybody has. Returns the hold that this ended.
    pub fn word(&mut self, word: u64, value: u64, stored: Option<Vmid>, now: u64) -> Option<Hold> {
        let lock = self.locks.entry(word).or_default();
        let change = change(lock.value, value);
        let before = std::mem::replace(&mut lock.value, value);
        let vmid = stored?;
        if lock.flag || before == value {
            return None;
        }
        let mut ended = None;
        let mut end = |lock: &mut Lock| {
            if let Some((holder, start)) = lock.holder.take() {
                ended = Some(Hold {
                    word,
                    holder,
                    start,
                    end: now,
                    waiters: lock.most,
                });
            }
            lock.most = lock.waiting.len();
        };
        if let Change::Drawn { ticket, turn } = change {
            self.contended += u64::from(ticket != turn);
        }
        lock.tickets_drawn |= matches!(change, Change::Drawn { .. });
        lock.known |= lock.tickets_drawn || change == Change::Freed;
        match change {
            Change::Drawn { ticket, turn } if ticket == turn => lock.holder = Some((vmid, now)),
            Change::Drawn { ticket, .. } => {
                lock.tickets.insert(ticket, vmid);
            }
            Change::Passed { turn, next } => {
                end(lock);
                // A ticket that was drawn before anybody listened has no known owner.
                let owner = lock.tickets.remove(&turn).filter(|_| turn != next);
                lock.holder = owner.map(|owner| (owner, now));
            }
            Change::Taken => lock.holder = Some((vmid, now)),
            Change::Freed => end(lock),
            Change::Other => {
                lock.holder = None;
                lock.tickets.clear();
                lock.flag = !lock.known;
            }
        }
        ended
    }

    /// Ends every hold.
    pub fn finish(&mut self, now: u64) -> Vec<Hold> {
        let known = self.locks.iter_mut().filter(|(_, lock)| lock.known);
        known
            .filter_map(|(&word, lock)| {
                let (holder, start) = lock.holder.take()?;
                Some(Hold {
                    word,
                    holder,
                    start,
                    end: now,
                    waiters: lock.most,
                })
            })
            .collect()
    }
}

/// Most locks that are followed: software may ask for as many as it likes.
const MAX_LOCKS: usize = 4096;

/// Holders of the locks that harts have asked for (docs/reference/extensions.md, `xpartitaholder`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holders {
    locks: Locks,
    /// Physical addresses of the words that are followed.
    words: BTreeSet<u64>,
}

impl Holders {
    /// Bytes of a lock's word.
    pub const WORD_BYTES: u64 = 4;

    /// Follows the lock at `physical`, whose word holds `value`, from now on; `false` if it is followed already, or too many are.
    pub(crate) fn watch(&mut self, physical: u64, value: u32) -> bool {
        let new = self.words.len() < MAX_LOCKS && self.words.insert(physical);
        if new {
            self.locks.word(physical, value.into(), None, 0);
        }
        new
    }

    /// This vCPU waits for the word at `physical`.
    pub(crate) fn wait(&mut self, physical: u64, vmid: Vmid) {
        if self.words.contains(&physical) {
            self.locks.wait(physical, vmid);
        }
    }

    /// The words that are followed.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        self.words.iter().copied()
    }

    /// The word at `physical` holds `value`, which this vCPU has stored, if any has.
    pub(crate) fn store(&mut self, physical: u64, value: u32, by: Option<Vmid>) {
        if self.words.contains(&physical) {
            self.locks.word(physical, value.into(), by, 0);
        }
    }

    /// The VMID of the vCPU that holds the lock, or has the next turn there; 0 where that is not known, or nobody.
    pub(crate) fn holder(&self, physical: u64) -> Vmid {
        self.locks.holder(physical).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: u64 = 0x9000_0000;

    fn hold(holder: Vmid, start: u64, end: u64, waiters: usize) -> Hold {
        Hold {
            word: WORD,
            holder,
            start,
            end,
            waiters,
        }
    }

    #[test]
    fn ticket_locks_pass_to_the_next_ticket() {
        let mut locks = Locks::default();
        // Somebody has ticket 5, and vCPU 2 has drawn 6 before anybody listened.
        locks.wait(WORD, 2);
        assert_eq!(locks.word(WORD, 7 << 16 | 5, None, 10), None);
        assert_eq!(locks.holder(WORD), None);
        // vCPU 3 draws 7 and waits.
        assert_eq!(locks.word(WORD, 8 << 16 | 5, Some(3), 20), None);
        locks.wait(WORD, 3);
        // 5 and 6 give it back: who had them is not known.
        assert_eq!(locks.word(WORD, 8 << 16 | 6, Some(1), 30), None);
        locks.wait_over(WORD, 2);
        assert_eq!(locks.word(WORD, 8 << 16 | 7, Some(2), 40), None);
        assert_eq!(locks.holder(WORD), Some(3));
        assert_eq!(locks.waiters(WORD), 1);
        locks.wait_over(WORD, 3);
        let ended = locks.word(WORD, 8 << 16 | 8, Some(3), 70);
        assert_eq!(ended, Some(hold(3, 40, 70, 1)));
        // Taken without a wait, over the end of the halves.
        assert_eq!(locks.word(WORD, 0xffff_ffff, None, 80), None);
        assert_eq!(locks.word(WORD, 0x0000_ffff, Some(4), 90), None);
        assert_eq!(locks.holder(WORD), Some(4));
        assert_eq!(locks.word(WORD, 0, Some(4), 95), Some(hold(4, 90, 95, 0)));
    }

    #[test]
    fn holders_that_wait_keep_their_lock() {
        let mut locks = Locks::default();
        locks.wait(WORD, 2);
        assert_eq!(locks.word(WORD, 1 << 16, None, 0), None);
        assert_eq!(locks.word(WORD, 2 << 16, Some(3), 5), None);
        assert_eq!(locks.word(WORD, 2 << 16 | 1, Some(2), 10), None);
        // It waits a moment more, because it looked just before.
        locks.wait(WORD, 3);
        let ended = locks.word(WORD, 2 << 16 | 2, Some(3), 30);
        assert_eq!(ended.map(|hold| (hold.holder, hold.start)), Some((3, 10)));
    }

    #[test]
    fn swap_locks_belong_to_their_setter() {
        let mut locks = Locks::default();
        assert_eq!(locks.word(WORD, 0, None, 0), None);
        assert_eq!(locks.word(WORD, 1, Some(9), 5), None);
        assert_eq!(locks.holder(WORD), Some(9));
        assert_eq!(locks.word(WORD, 0, Some(9), 7), Some(hold(9, 5, 7, 0)));
        assert_eq!(locks.word(WORD, 1, Some(8), 8), None);
        assert_eq!(locks.finish(9), [hold(8, 8, 9, 0)]);
    }

    #[test]
    fn a_counter_is_no_lock() {
        let mut locks = Locks::default();
        assert_eq!(locks.word(WORD, 0, None, 0), None);
        for value in 1..10 {
            assert_eq!(locks.word(WORD, value, Some(3), value), None);
        }
        assert_eq!(locks.word(WORD, 0, Some(3), 11), None);
        assert!(locks.finish(20).is_empty());
    }

    #[test]
    fn words_their_setters_await_are_no_locks() {
        let mut locks = Locks::default();
        assert_eq!(locks.word(WORD, 0, None, 0), None);
        assert_eq!(locks.word(WORD, 1, Some(4), 5), None);
        locks.wait(WORD, 4);
        assert_eq!(locks.word(WORD, 0, Some(6), 9), None);
        assert_eq!(locks.word(WORD, 1, Some(4), 12), None);
        assert_eq!(locks.holder(WORD), None);
        assert!(locks.finish(20).is_empty());
    }
}
