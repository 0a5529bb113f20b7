//! Output, a whole line at a time, by the SBI debug console or the 16550.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::arch::sync::Lock;
use crate::arch::{memory, sbi};

/// The longest line; what is longer is cut.
const LINE: usize = 512;

static DEBUG_CONSOLE: AtomicBool = AtomicBool::new(false);
static UART: AtomicU64 = AtomicU64::new(0);
static OUTPUT: Lock<()> = Lock::new(());

/// Chooses the way out: the debug console where `debug_console` is set, else the UART at `uart` (0: none).
pub fn open(debug_console: bool, uart: u64) {
    DEBUG_CONSOLE.store(debug_console, Ordering::Relaxed);
    UART.store(uart, Ordering::Relaxed);
}

/// A line as it grows.
struct Line {
    bytes: [u8; LINE],
    length: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // One byte is kept for the line feed.
        let room = (LINE - 1).saturating_sub(self.length);
        let taken = text.len().min(room);
        if let (Some(to), Some(from)) = (
            self.bytes.get_mut(self.length..self.length + taken),
            text.as_bytes().get(..taken),
        ) {
            to.copy_from_slice(from);
            self.length += taken;
        }
        Ok(())
    }
}

/// Prints one line with `exerciser: ` before it.
pub fn print(arguments: fmt::Arguments<'_>) {
    let mut line = Line {
        bytes: [0; LINE],
        length: 0,
    };
    // Neither can fail: a line takes what fits.
    let _ = line.write_str("exerciser: ");
    let _ = line.write_fmt(arguments);
    if let Some(end) = line.bytes.get_mut(line.length) {
        *end = b'\n';
    }
    write(line.bytes.get(..=line.length).unwrap_or_default());
}

/// Writes bytes as they are.
pub fn write(bytes: &[u8]) {
    let _guard = OUTPUT.lock();
    if DEBUG_CONSOLE.load(Ordering::Relaxed) {
        let mut rest = bytes;
        while !rest.is_empty() {
            match sbi::console_write(rest) {
                Some(taken) => rest = rest.get(taken..).unwrap_or_default(),
                None => return,
            }
        }
        return;
    }
    let uart = UART.load(Ordering::Relaxed);
    if uart != 0 {
        for &byte in bytes {
            uart_put(uart, byte);
        }
    }
}

/// Sends one byte by the 16550 at `uart`: waits for the transmitter (LSR bit 5), then THR.
pub fn uart_put(uart: u64, byte: u8) {
    while memory::device_load8(uart + 5) & 0x20 == 0 {
        core::hint::spin_loop();
    }
    memory::device_store8(uart, byte);
}

/// One byte of input, if there is any.
pub fn read() -> Option<u8> {
    if DEBUG_CONSOLE.load(Ordering::Relaxed) {
        return sbi::console_read();
    }
    let uart = UART.load(Ordering::Relaxed);
    (uart != 0 && memory::device_load8(uart + 5) & 1 != 0).then(|| memory::device_load8(uart))
}

/// Prints one line of the exerciser.
macro_rules! say {
    ($($part:tt)*) => { $crate::console::print(format_args!($($part)*)) };
}
pub(crate) use say;
