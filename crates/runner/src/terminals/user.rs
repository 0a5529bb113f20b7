//! One user at one terminal.

use super::record::Shared;
use super::script::{EDITOR, Line, Prompt, SHELL, Script};
use machine::device::{Clock, Console, Cycles, Random};
use std::collections::VecDeque;
use std::sync::PoisonError;

/// Most of an answer that is kept to look at.
const LONGEST_ANSWER: usize = 16 << 10;
/// How soon to look again whether the guest takes what it has not taken yet, in nanoseconds.
const AGAIN: u64 = 100_000;
/// Wrong answers that are told one by one.
const MAX_WRONG: usize = 5;

/// State of the user.
#[derive(Debug)]
enum State {
    /// Waits for the first prompt, or has left.
    Looks,
    /// Thinks until this time, then sends the line.
    Thinks(Cycles, Line),
    /// Has sent the line at this time, and waits for the answer.
    Waits(Cycles, Line),
}

/// A user: sends lines, and keeps how long the answers took.
#[derive(Debug)]
pub struct User {
    script: Script,
    random: Random,
    think: Cycles,
    /// Lines that are still to be sent before leaving.
    left: u32,
    leaving: bool,
    state: State,
    /// Keys that the guest has not taken yet.
    keys: VecDeque<u8>,
    /// Output since the last line was sent.
    answer: Vec<u8>,
    record: Shared,
}

impl User {
    /// A user who sends so many lines, thinks for about so long before each, and keeps what happens in `record`.
    pub fn new(transactions: u32, think: Cycles, seed: u64, record: Shared) -> Self {
        let mut random = Random::new(seed);
        Self {
            script: Script::new(random.next()),
            random,
            think,
            left: transactions,
            leaving: false,
            state: State::Looks,
            keys: VecDeque::new(),
            answer: Vec::new(),
            record,
        }
    }

    /// Program that waits for a line, if the last that came is a prompt at the beginning of a line.
    fn prompt(&self) -> Option<Prompt> {
        let at_end = |prompt: &str| {
            let before = self.answer.strip_suffix(prompt.as_bytes());
            before.is_some_and(|before| matches!(before.last(), None | Some(b'\n' | b'\r')))
        };
        if at_end(SHELL) {
            Some(Prompt::Shell)
        } else {
            at_end(EDITOR).then_some(Prompt::Editor)
        }
    }

    /// Looks at an answer that took from `sent` to `now`.
    fn judge(&self, line: &Line, sent: Cycles, now: Cycles) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        if self.leaving {
            return;
        }
        record.responses.push(now.0.saturating_sub(sent.0));
        record.first.get_or_insert(sent.0);
        record.last = now.0;
        let Some(expected) = &line.expected else {
            return;
        };
        let answer = String::from_utf8_lossy(&self.answer);
        if !answer.contains(expected) && record.wrong.len() < MAX_WRONG {
            record.wrong.push(format!(
                "{:?} was answered by {answer:?}, without {expected:?}",
                line.keys
            ));
        }
    }

    /// Decides on the next line for a user who waits.
    fn decide(&mut self, prompt: Prompt, now: Cycles) {
        let line = match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                self.script.next(prompt)
            }
            None => {
                self.leaving = true;
                if prompt == Prompt::Shell {
                    let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
                    record.left = true;
                }
                Script::leave(prompt)
            }
        };
        let half = self.think.0 / 2;
        let think = half.saturating_add(self.random.below(self.think.0.saturating_add(1)));
        self.state = State::Thinks(now.after(Cycles(think)), line);
    }
}

impl Console for User {
    fn put(&mut self, byte: u8) {
        self.put_at(byte, Cycles(0));
    }

    fn put_at(&mut self, byte: u8, now: Cycles) {
        if self.answer.len() >= LONGEST_ANSWER {
            self.answer.drain(..LONGEST_ANSWER / 2);
        }
        self.answer.push(byte);
        // The guest may say something before it is asked; only a line that was sent is answered.
        let Some(prompt) = self.prompt() else { return };
        match std::mem::replace(&mut self.state, State::Looks) {
            State::Waits(sent, line) if self.keys.is_empty() => {
                self.judge(&line, sent, now);
                self.decide(prompt, now);
            }
            State::Looks if !self.leaving => self.decide(prompt, now),
            other => self.state = other,
        }
    }

    fn get(&mut self, now: Cycles) -> Option<u8> {
        if let State::Thinks(until, _) = &self.state
            && *until <= now
            && let State::Thinks(until, line) = std::mem::replace(&mut self.state, State::Looks)
        {
            self.keys.extend(line.keys.bytes());
            self.answer.clear();
            let exits = self.leaving && line == Script::leave(Prompt::Shell);
            if !exits {
                self.state = State::Waits(until, line);
            }
        }
        self.keys.pop_front()
    }

    fn next_input(&self, now: Cycles, clock: &Clock) -> Option<Cycles> {
        let again = now.after(clock.cycles_in_nanoseconds(AGAIN));
        match &self.state {
            _ if !self.keys.is_empty() => Some(again),
            State::Thinks(until, _) => Some(if *until > now { *until } else { again }),
            State::Looks | State::Waits(..) => None,
        }
    }
}
