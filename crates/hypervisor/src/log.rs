//! The hypervisor's own lines on the board's UART.
//!
//! Until the UART is known lines go to the firmware's debug console.

use core::fmt::{self, Write};

use spin::{Mutex, Once};

use crate::hart::firmware;

/// The registers of the board's 16550: receive/transmit holding register and line status register.
#[derive(Debug)]
pub struct BoardUart {
    base: u64,
}

const TRANSMIT: u64 = 0;
const INTERRUPT_ENABLE: u64 = 1;
const LINE_STATUS: u64 = 5;
const DATA_READY: u8 = 1 << 0;
const TRANSMIT_EMPTY: u8 = 1 << 5;

static UART: Once<BoardUart> = Once::new();
static LINE: Mutex<()> = Mutex::new(());

impl BoardUart {
    fn read(&self, register: u64) -> u8 {
        // SAFETY: the address is that of the UART in the board's device tree, whose registers are bytes.
        unsafe { ((self.base + register) as *const u8).read_volatile() }
    }

    fn write(&self, register: u64, value: u8) {
        // SAFETY: as for `read`.
        unsafe { ((self.base + register) as *mut u8).write_volatile(value) };
    }

    fn send(&self, byte: u8) {
        while self.read(LINE_STATUS) & TRANSMIT_EMPTY == 0 {
            core::hint::spin_loop();
        }
        self.write(TRANSMIT, byte);
    }
}

/// Makes the UART at `base` the console, with its receive interrupt on.
pub fn use_uart(base: u64) {
    UART.call_once(|| BoardUart { base }).write(INTERRUPT_ENABLE, 1);
}

/// Sends one byte, waiting until there is room.
pub fn send(byte: u8) {
    match UART.get() {
        Some(uart) => uart.send(byte),
        None => firmware::debug_byte(byte),
    }
}

/// The next byte that was typed, if there is one.
pub fn receive() -> Option<u8> {
    let uart = UART.get()?;
    (uart.read(LINE_STATUS) & DATA_READY != 0).then(|| uart.read(TRANSMIT))
}

/// Writes text to the console, with carriage returns.
#[derive(Debug)]
pub struct Sender;

impl Write for Sender {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            if byte == b'\n' {
                send(b'\r');
            }
            send(byte);
        }
        Ok(())
    }
}

/// Prints one line of the hypervisor's.
pub fn line(arguments: fmt::Arguments<'_>) {
    let _guard = LINE.lock();
    // Sender never fails.
    let _ = writeln!(Sender, "[partita] {arguments}");
}

/// Lets `write` print lines of its own, undisturbed by others.
pub fn locked(write: impl FnOnce(&mut Sender)) {
    let _guard = LINE.lock();
    write(&mut Sender);
}

/// Prints `[partita] ` and the formatted text.
#[macro_export]
macro_rules! say {
    ($($argument:tt)*) => { $crate::log::line(format_args!($($argument)*)) };
}
