//! The one UART of the board, shared by the operator and the guests' consoles.
//!
//! Guests' output comes line by line with `[name] ` in front, the hypervisor's own lines with
//! `[partita] `. A guest that has the *focus* is on the terminal as it is, byte for byte, and gets
//! what is typed; the lines of the others go between. The escape key Ctrl-] leads out of it:
//! `n` and `1` to `9` move the focus, `m` opens the operator's prompt, `q` powers off, and a second
//! Ctrl-] goes through to the guest.
//!
//! Answers to the operator go before everything else, so that no flood of lines keeps them from him.
//!
//! Nothing here touches a device: [`Console::drain`] hands bytes to a sink, and
//! [`Console::input`] takes what was typed and says what to do.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod ahead;
mod editor;
mod keys;
mod lines;
mod output;
#[cfg(test)]
mod tests;

pub use abi::operator::command::{Command, VmAction};

use alloc::vec::Vec;
use core::fmt;

use abi::operator::command;
use abi::system::{VmId, VmName};
use ahead::{Answering, TypedAhead};
use editor::{Edit, Editor};
use keys::{Key, Keys};
use lines::Lines;
use output::{Guest, LastLine};

/// Bytes that a drain may send beyond its budget: a line, and the unfinished one that the line interrupts.
pub const LONGEST_LINE: usize = lines::MAX_WAITING + output::LONGEST_PARTIAL;

/// Beginning of the hypervisor's own lines.
const PREFIX: &str = "[partita] ";

const LOST_BYTES: &str = "bytes that were typed during the report were lost";
const LOST_LINES: &str = "lines of the hypervisor's were lost";

/// Operator's prompt.
pub const PROMPT: &str = "partita> ";

/// Work that a typed byte leaves to the hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Give this byte to a guest's UART.
    ToVm(VmId, u8),
    /// Carry out a command of the operator's.
    Command(Command),
    /// Shut everything down in good order.
    PowerOff,
}

/// The terminal, shared by guests and operator.
#[derive(Debug)]
pub struct Console {
    guests: Vec<Guest>,
    focus: Option<VmId>,
    keys: Keys,
    /// Answer that comes before the prompt.
    answering: Answering,
    ahead: TypedAhead,
    /// The line that the operator is typing, while the prompt is open.
    editor: Option<Editor>,
    last_line: LastLine,
    /// Answers to the operator.
    answers: Lines,
    /// Lines about events.
    events: Lines,
    /// Next output to drain, round robin: 0 is the hypervisor's, then the guests'.
    turn: usize,
}

impl Console {
    /// A console for these VMs, of which none has the focus.
    pub fn new(names: impl IntoIterator<Item = VmName>) -> Self {
        Self {
            guests: names.into_iter().map(Guest::new).collect(),
            focus: None,
            keys: Keys::default(),
            answering: Answering::Nothing,
            ahead: TypedAhead::new(),
            editor: None,
            last_line: LastLine::new(),
            answers: Lines::new(),
            events: Lines::new(),
            turn: 0,
        }
    }

    /// Gives the focus to a VM, or takes it from all. A VM that does not exist cannot have it.
    pub fn set_focus(&mut self, focus: Option<VmId>) {
        let focus = focus.filter(|vm| vm.index() < self.guests.len());
        if focus != self.focus {
            self.focus = focus;
            if self.editor.is_none() {
                self.last_line.forget_partial_line();
            }
        }
    }

    /// Adds a guest's byte. If its backlog is full the byte is lost, and the loss is reported.
    pub fn push(&mut self, vm: VmId, byte: u8) {
        if let Some(guest) = self.guests.get_mut(vm.index()) {
            guest.push(byte);
        }
    }

    /// Adds a guest's byte. Returns whether this guest has output to drain now; `None` if the byte found no room.
    pub fn push_where_room(&mut self, vm: VmId, byte: u8) -> Option<bool> {
        let raw = self.is_raw(vm.index());
        let Some(guest) = self.guests.get_mut(vm.index()) else {
            return Some(false);
        };
        if guest.room() == 0 {
            return None;
        }
        guest.push_unchecked(byte);
        Some(guest.has_output(raw))
    }

    /// Bytes for which a guest's backlog has room. A guest that is made to wait while there is none
    /// loses nothing.
    pub fn room(&self, vm: VmId) -> usize {
        self.guests.get(vm.index()).map_or(0, Guest::room)
    }

    /// Ends the line that a stopped guest has begun.
    pub fn end_line(&mut self, vm: VmId) {
        if let Some(guest) = self.guests.get_mut(vm.index()) {
            guest.end_line();
            if self.is_raw(vm.index()) {
                self.last_line.forget_partial_line();
            }
        }
    }

    /// Adds a message about an event, each line with `[partita] ` in front.
    pub fn say(&mut self, text: fmt::Arguments<'_>) {
        self.events.push(PREFIX, text);
    }

    /// Adds an answer to the operator, each line with `[partita] ` in front.
    pub fn answer(&mut self, text: fmt::Arguments<'_>) {
        self.answers.push(PREFIX, text);
    }

    /// Bytes of answers that wait.
    pub fn answers_waiting(&self) -> usize {
        self.answers.waiting()
    }

    /// Adds a line of an answer as it is, such as a record of the performance monitor.
    pub fn raw_line(&mut self, line: fmt::Arguments<'_>) {
        self.answers.push("", line);
    }

    /// The report that the operator has asked for has begun: its lines come when there is room for them.
    pub fn begin_report(&mut self) {
        self.answering = Answering::Report;
    }

    /// Returns true if the hypervisor has to be told when there is room: a report goes on then, or what was typed behind it is obeyed.
    pub fn wants_turn(&self) -> bool {
        self.answering == Answering::Report
            || !self.answering.holds_input() && self.ahead.has_bytes()
    }

    /// Returns true if there is output to drain.
    pub fn has_output(&self) -> bool {
        self.answers.has_output()
            || self.events.has_output()
            || self.prompt_is_due()
            || (0..)
                .map(VmId)
                .take(self.guests.len())
                .any(|vm| self.guest_has_output(vm))
    }

    /// Sends up to about `budget` bytes (it finishes a line that it began): first all answers and the
    /// prompt behind them, then lines about events and the guests' in turns, a line each. The next call
    /// goes on where this one stopped, so a flood from one does not silence another. Returns whether
    /// there is more.
    pub fn drain(&mut self, budget: usize, sink: &mut dyn FnMut(u8)) -> bool {
        let participants = self.guests.len().saturating_add(1);
        let mut quiet = 0;
        let mut left = budget;
        while left > 0 && quiet < participants {
            let mut sent = 0usize;
            let mut counted = |byte: u8| {
                sent = sent.saturating_add(1);
                sink(byte);
            };
            if !self.drain_answers(&mut counted) {
                let turn = self.turn % participants;
                self.turn = turn.saturating_add(1);
                match turn.checked_sub(1) {
                    None => self.drain_event(&mut counted),
                    Some(index) => self.drain_guest(index, &mut counted),
                }
            }
            left = left.saturating_sub(sent);
            quiet = if sent == 0 {
                quiet.saturating_add(1)
            } else {
                0
            };
        }
        self.has_output()
    }

    /// Sends all output, begun lines included: before the power goes off.
    pub fn drain_all(&mut self, sink: &mut dyn FnMut(u8)) {
        for guest in &mut self.guests {
            guest.end_line();
        }
        self.editor = None;
        while self.drain(usize::MAX, sink) {}
    }

    /// Sends an answer, or the prompt behind the last one. Returns false if there is neither.
    fn drain_answers(&mut self, sink: &mut dyn FnMut(u8)) -> bool {
        if let Some(lost) = self.answers.take_lost() {
            self.answer(format_args!("{lost} {LOST_LINES}"));
        }
        if let Some(line) = self.answers.take() {
            let line = |sink: &mut dyn FnMut(u8)| line.for_each(sink);
            self.last_line.insert(line, false, sink);
            return true;
        }
        let due = self.prompt_is_due();
        if due {
            self.show_prompt(sink);
        }
        due
    }

    fn drain_event(&mut self, sink: &mut dyn FnMut(u8)) {
        if let Some(lost) = self.events.take_lost() {
            self.say(format_args!("{lost} {LOST_LINES}"));
        }
        if let Some(line) = self.events.take() {
            let line = |sink: &mut dyn FnMut(u8)| line.for_each(sink);
            self.last_line.insert(line, false, sink);
        }
    }

    /// Returns true if this guest owns the terminal without prefixes.
    fn is_raw(&self, index: usize) -> bool {
        self.editor.is_none() && self.focus.is_some_and(|vm| vm.index() == index)
    }

    /// Returns true if this guest has output to drain: a line, or any byte if it owns the terminal.
    #[must_use]
    pub fn guest_has_output(&self, vm: VmId) -> bool {
        let raw = self.is_raw(vm.index());
        self.guests
            .get(vm.index())
            .is_some_and(|guest| guest.has_output(raw))
    }

    fn drain_guest(&mut self, index: usize, sink: &mut dyn FnMut(u8)) {
        let raw = self.is_raw(index);
        let Some(guest) = self.guests.get_mut(index) else {
            return;
        };
        if let Some(lost) = guest.take_lost() {
            let name = guest.name();
            self.say(format_args!(
                "{name}: {lost} bytes of console output were lost"
            ));
            self.drain_event(sink);
            return;
        }
        if raw {
            guest.drain_raw(&mut self.last_line, sink);
        } else if let Some(line) = guest.take_line() {
            let line = |sink: &mut dyn FnMut(u8)| line.send(sink);
            self.last_line.insert(line, self.editor.is_some(), sink);
        }
    }

    /// Handles a byte that the operator typed. The prompt's echo goes to `sink` at once. What is typed while a report is awaited or written waits for
    /// [`input_ahead`](Self::input_ahead).
    pub fn input(&mut self, byte: u8, sink: &mut dyn FnMut(u8)) -> Option<Event> {
        if self.answering.holds_input() {
            self.ahead.push(byte);
            return None;
        }
        self.press(byte, sink)
    }

    /// Handles what was typed during a report that has ended, up to the next event.
    pub fn input_ahead(&mut self, sink: &mut dyn FnMut(u8)) -> Option<Event> {
        while !self.answering.holds_input() {
            if let Some(lost) = self.ahead.take_lost() {
                self.answer(format_args!("{lost} {LOST_BYTES}"));
            }
            let byte = self.ahead.take()?;
            if let Some(event) = self.press(byte, sink) {
                return Some(event);
            }
        }
        None
    }

    fn press(&mut self, byte: u8, sink: &mut dyn FnMut(u8)) -> Option<Event> {
        match self.keys.press(byte) {
            Key::Plain(byte) => self.plain(byte, sink),
            Key::Pending => None,
            Key::Next => {
                let next = self.focus.map_or(0, |vm| vm.index().saturating_add(1));
                let next = if next < self.guests.len() { next } else { 0 };
                self.focus_by_key(next, sink);
                None
            }
            Key::Number(number) => {
                self.focus_by_key(usize::from(number).saturating_sub(1), sink);
                None
            }
            Key::Prompt => {
                self.open_prompt(sink);
                None
            }
            Key::PowerOff => Some(Event::PowerOff),
            Key::Unknown => {
                self.answer(format_args!("{}", abi::operator::KEYS));
                None
            }
        }
    }

    fn plain(&mut self, byte: u8, sink: &mut dyn FnMut(u8)) -> Option<Event> {
        let Some(editor) = &mut self.editor else {
            return self.focus.map(|vm| Event::ToVm(vm, byte));
        };
        let edit = editor.press(byte);
        match edit {
            Edit::Nothing => {}
            Edit::Changed => self.show_prompt(sink),
            Edit::Leave => self.close_prompt(sink),
            Edit::Line => {
                // The prompt comes back when the answer has been sent (see `drain`).
                self.last_line.end_partial_line(sink);
                let names: Vec<VmName> = self.guests.iter().map(Guest::name).collect();
                match command::parse(editor.text(), &names) {
                    Ok(Command::Help) => {
                        let help = abi::operator::HELP;
                        self.answers.push(PREFIX, format_args!("{help}"));
                    }
                    Ok(command) => {
                        editor.clear();
                        self.answering = Answering::to(command);
                        return Some(Event::Command(command));
                    }
                    Err(error) => self.answers.push(PREFIX, format_args!("{error}")),
                }
                editor.clear();
            }
        }
        None
    }

    fn focus_by_key(&mut self, index: usize, sink: &mut dyn FnMut(u8)) {
        let Some(name) = self.guests.get(index).map(Guest::name) else {
            let count = self.guests.len();
            self.answer(format_args!(
                "there is no VM {}; there are {count}",
                index + 1
            ));
            return;
        };
        self.close_prompt(sink);
        self.answer(format_args!("{name} has the focus; Ctrl-] leads back"));
        self.set_focus(u8::try_from(index).ok().map(VmId));
    }

    fn open_prompt(&mut self, sink: &mut dyn FnMut(u8)) {
        if self.editor.is_none() {
            self.editor = Some(Editor::new());
            self.last_line.end_partial_line(sink);
        }
    }

    fn close_prompt(&mut self, sink: &mut dyn FnMut(u8)) {
        if self.editor.take().is_some() {
            self.last_line.end_partial_line(sink);
        }
    }

    /// Ends the answer to the operator's command: the prompt may come back.
    pub fn end_answer(&mut self) {
        self.answering = Answering::Nothing;
    }

    fn prompt_is_due(&self) -> bool {
        let is_answered = self.answering == Answering::Nothing;
        self.editor.is_some() && is_answered && self.last_line.is_at_line_start()
    }

    /// Shows the prompt with what is typed.
    fn show_prompt(&mut self, sink: &mut dyn FnMut(u8)) {
        let typed = self.editor.as_ref().map_or("", Editor::text);
        self.last_line.replace_partial_line([PROMPT, typed], sink);
    }
}
