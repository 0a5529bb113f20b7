//! The one terminal: the guests' consoles, the operator's prompt and the hypervisor's own lines on the board's UART.

pub mod terminal;

use alloc::collections::VecDeque;
use core::fmt::{self, Write};

use crate::lock::{Mutex, place};
use abi::system::{VmId, VmName};
use board::Uart;
use spin::Once;

use crate::console::terminal::{Console, Event, LONGEST_LINE};
use crate::devices::uart::board::{BoardUart, LARGEST_PORTION};
use crate::heap;

/// Bytes that one portion may bring: it ends with a whole line.
const UNSENT: usize = LARGEST_PORTION + LONGEST_LINE;

#[derive(Debug)]
struct Terminal {
    console: Console,
    uart: BoardUart,
    /// Bytes taken from the consoles and not yet sent, with room for [`UNSENT`]. Only the echo of what the operator types may need more.
    unsent: VecDeque<u8>,
}

static TERMINAL: Once<Mutex<Terminal, { place::TERMINAL }>> = Once::new();
/// UART before the consoles exist, and for emergency lines.
static EARLY: Mutex<BoardUart, { place::EARLY }> = Mutex::new(BoardUart::unknown());

/// The hypervisor's own lines go to this UART from now on.
pub fn use_uart(uart: &Uart) {
    *EARLY.lock() = BoardUart::new(uart);
}

/// The consoles of these VMs share the UART, or the firmware's console where there is none.
pub fn open(uart: Option<&Uart>, names: impl IntoIterator<Item = VmName>, focus: Option<VmId>) {
    TERMINAL.call_once(|| {
        let mut console = Console::new(names);
        console.set_focus(focus);
        Mutex::new(Terminal {
            console,
            uart: uart.map_or_else(BoardUart::unknown, BoardUart::new),
            unsent: VecDeque::with_capacity(UNSENT),
        })
    });
}

impl Terminal {
    /// Sends what the UART takes without waiting, a portion at most; its interrupt, or the next poll, brings the rest. The firmware's console takes
    /// all, and keeps the hart for each byte; and what waits is longer than what guests have printed by their names in front of each line.
    fn pump(&mut self) {
        let mut left = self.uart.portion();
        loop {
            let room = self.uart.room().min(left);
            if room == 0 {
                break;
            }
            if self.unsent.is_empty() {
                let unsent = &mut self.unsent;
                self.console.drain(left, &mut |byte| unsent.push_back(byte));
            }
            if self.unsent.is_empty() {
                break;
            }
            let count = room.min(self.unsent.len());
            for byte in self.unsent.drain(..count) {
                self.uart.send(byte);
            }
            left -= count;
        }
        let has_output = !self.unsent.is_empty() || self.console.has_output();
        let more = has_output || self.console.wants_turn();
        self.uart.want_transmit_interrupt(more);
    }

    /// Sends everything, waiting for the UART.
    fn flush(&mut self) {
        for byte in self.unsent.drain(..) {
            self.uart.send_now(byte);
        }
        // A backlog grows by a guest's name for each line: there would be no room for all of it at once.
        let uart = &self.uart;
        self.console.drain_all(&mut |byte| uart.send_now(byte));
    }
}

/// Passes the terminal to `act`, once the consoles exist. All that `act` adds has its room from the start: guests print and end here.
fn with_terminal<T>(act: impl FnOnce(&mut Terminal) -> T) -> Option<T> {
    let terminal = TERMINAL.get()?;
    Some(act(&mut terminal.lock()))
}

/// Bytes of output that VM `vm` may add now without losing any.
#[must_use]
pub fn room(vm: VmId) -> usize {
    TERMINAL
        .get()
        .map_or(0, |terminal| terminal.lock().console.room(vm))
}

/// Prints bytes of a guest. The caller has copied them: reading a guest's memory takes locks that come before the terminal's.
pub fn guest_bytes(vm: VmId, bytes: &[u8]) {
    with_terminal(|terminal| {
        for &byte in bytes {
            terminal.console.push(vm, byte);
        }
        // Other output has begun already, and if the UART is busy its interrupt brings the rest.
        if terminal.console.guest_has_output(vm) && !terminal.uart.wants_transmit_interrupt() {
            terminal.pump();
        }
    });
}

/// Prints a byte of a guest. Returns false if there is no room for it.
#[must_use]
pub fn guest_byte(vm: VmId, byte: u8) -> bool {
    let taken = with_terminal(|terminal| {
        let Some(has_output) = terminal.console.push_where_room(vm, byte) else {
            return false;
        };
        if has_output && !terminal.uart.wants_transmit_interrupt() {
            terminal.pump();
        }
        true
    });
    taken.unwrap_or(true)
}

/// Ends the line that a stopped guest had begun.
pub fn end_guest_line(vm: VmId) {
    if let Some(terminal) = TERMINAL.get() {
        terminal.lock().console.end_line(vm);
    }
}

/// Handles an interrupt of the UART: continues sending, and returns the events of typed bytes.
pub fn serve() -> impl Iterator<Item = Event> {
    core::iter::from_fn(|| with_terminal(next_event)?)
}

/// Reads typed bytes up to the next event.
fn next_event(terminal: &mut Terminal) -> Option<Event> {
    let Terminal {
        console, unsent, ..
    } = &mut *terminal;
    let event = heap::permit(|| console.input_ahead(&mut |byte| unsent.push_back(byte)));
    if event.is_some() {
        return event;
    }
    loop {
        let Some(byte) = terminal.uart.receive() else {
            terminal.pump();
            return None;
        };
        let Terminal {
            console, unsent, ..
        } = &mut *terminal;
        // What the operator types is parsed, and echoed at once.
        let event = heap::permit(|| console.input(byte, &mut |byte| unsent.push_back(byte)));
        if event.is_some() {
            return event;
        }
    }
}

/// Prints a line about an event.
pub fn line(arguments: fmt::Arguments<'_>) {
    print(arguments, Console::say);
}

/// Prints an answer to the operator.
pub fn answer_line(arguments: fmt::Arguments<'_>) {
    print(arguments, Console::answer);
}

/// Adds a line. What formats it takes no lock, as the terminal's is held. One copy of the code serves all lines.
#[inline(never)]
fn print(arguments: fmt::Arguments<'_>, add: fn(&mut Console, fmt::Arguments<'_>)) {
    let said = with_terminal(|terminal| {
        add(&mut terminal.console, arguments);
        terminal.pump();
    });
    if said.is_none() {
        // Sender never fails.
        let _ = writeln!(
            Sender {
                uart: &EARLY.lock()
            },
            "[partita] {arguments}"
        );
    }
}

/// Ends the answer to the operator's command.
pub fn end_answer() {
    with_terminal(|terminal| {
        terminal.console.end_answer();
        terminal.pump();
    });
}

/// The report that the operator has asked for begins: [`serve`] is called when there is room for its lines.
pub fn begin_report() {
    with_terminal(|terminal| {
        terminal.console.begin_report();
        terminal.pump();
    });
}

/// Returns true while less waits for the UART than it is sent at a time. Until then a report goes on with [`raw_line`].
#[must_use]
pub fn has_use_for_lines() -> bool {
    let has_use = with_terminal(|terminal| {
        let waiting = terminal.unsent.len() + terminal.console.answers_waiting();
        waiting < terminal.uart.portion()
    });
    has_use.unwrap_or(false)
}

/// Adds a line without a prefix, between others.
pub fn raw_line(line: fmt::Arguments<'_>) {
    with_terminal(|terminal| terminal.console.raw_line(line));
}

/// Sends all output and lets `write` have the UART, with nothing between its lines.
pub fn final_report(write: impl FnOnce(&mut dyn Write)) {
    match TERMINAL.get() {
        Some(terminal) => {
            let mut terminal = terminal.lock();
            terminal.flush();
            let mut sender = Sender {
                uart: &terminal.uart,
            };
            // The prompt, or a line that a guest has begun, may stand on the last one.
            let _ = sender.write_str("\n");
            write(&mut sender);
        }
        None => write(&mut Sender {
            uart: &EARLY.lock(),
        }),
    }
}

/// Prints a line even if the code that failed holds the terminal's lock.
pub fn emergency_line(arguments: fmt::Arguments<'_>) {
    if let Some(mut terminal) = TERMINAL.get().and_then(|terminal| terminal.try_lock()) {
        terminal.flush();
    }
    // `EARLY` is held only for a line; a hart that failed within one would leave it locked.
    if let Some(uart) = EARLY.try_lock() {
        let _ = writeln!(Sender { uart: &uart }, "[partita] {arguments}");
    }
}

/// Text to a UART, waiting for it, with carriage returns.
struct Sender<'a> {
    uart: &'a BoardUart,
}

impl Write for Sender<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                self.uart.send_now(b'\r');
            }
            self.uart.send_now(byte);
        }
        Ok(())
    }
}

/// Prints `[partita] ` and the formatted text.
macro_rules! say {
    ($($argument:tt)*) => { $crate::console::line(format_args!($($argument)*)) };
}
pub(crate) use say;

/// Prints `[partita] ` and the formatted text as an answer to the operator.
macro_rules! answer {
    ($($argument:tt)*) => { $crate::console::answer_line(format_args!($($argument)*)) };
}
pub(crate) use answer;

#[cfg(test)]
mod tests {
    use super::*;

    /// The firmware's console takes all that it is given.
    #[test]
    fn one_exit_sends_one_portion() {
        let name = VmName::new(&alloc::format!("{:a<31}", "b")).unwrap();
        let mut terminal = Terminal {
            console: Console::new([name]),
            uart: BoardUart::unknown(),
            unsent: VecDeque::with_capacity(UNSENT),
        };
        let (vm, line) = (VmId(0), "x\r");
        for byte in line.bytes().cycle().take(terminal.console.room(VmId(0))) {
            terminal.console.push(vm, byte);
        }
        let mut times = 0;
        while !terminal.unsent.is_empty() || terminal.console.has_output() {
            let before = terminal.unsent.len();
            terminal.pump();
            assert!(before == 0 || terminal.unsent.len() + LARGEST_PORTION >= before);
            times += 1;
        }
        assert!(times > 100, "{times}");
    }

    /// Carriage returns alone make lines that are mostly the guest's name.
    #[test]
    fn last_report_needs_no_room_for_backlogs() {
        let name = |index| {
            VmName::new(&alloc::format!(
                "{:a<31}",
                ["b", "c"][usize::from(index % 2 == 0)]
            ))
            .unwrap()
        };
        let mut terminal = Terminal {
            console: Console::new((0..16).map(name)),
            uart: BoardUart::unknown(),
            unsent: VecDeque::new(),
        };
        for vm in 0..16 {
            while terminal.console.room(VmId(vm)) > 0 {
                terminal.console.push(VmId(vm), b'\r');
            }
        }
        terminal.flush();
        assert!(!terminal.console.has_output());
        assert!(terminal.unsent.capacity() < LARGEST_PORTION);
    }
}
