//! The board's console: its UART, or the firmware's console.

use board::Uart;
use riscv::uart::FIFO_BYTES;

use super::driver::{RegisterPort, UartDriver};
use crate::hart::decode::Width;
use crate::hart::{device, firmware};

/// The largest [portion](BoardUart::portion).
pub const LARGEST_PORTION: usize = 512;

/// Registers of the board's UART.
#[derive(Debug)]
struct DevicePort {
    base: u64,
    shift: u32,
    width: Width,
}

impl DevicePort {
    const fn address(&self, register: u64) -> u64 {
        self.base + (register << self.shift)
    }
}

impl RegisterPort for DevicePort {
    fn read(&self, register: u64) -> u32 {
        // SAFETY: the address is that of a register of the UART in the board's device tree, and the width is the one that the tree names.
        let value = unsafe { device::load(self.address(register), self.width) };
        value.unwrap_or(0) as u32
    }

    fn write(&self, register: u64, value: u32) {
        // SAFETY: as for `read`.
        let _ = unsafe { device::store(self.address(register), self.width, value.into()) };
    }
}

/// The UART, or the firmware's console where none is known.
#[derive(Debug, Default)]
pub struct BoardUart {
    driver: Option<UartDriver<DevicePort>>,
    transmit_interrupt: bool,
}

impl BoardUart {
    /// No UART: bytes go to the firmware, and come from it.
    #[must_use]
    pub const fn unknown() -> Self {
        Self {
            driver: None,
            transmit_interrupt: false,
        }
    }

    /// A UART of the board, with its FIFO and its receive interrupt on. Without an interrupt of its own the UART is polled.
    #[must_use]
    pub fn new(uart: &Uart) -> Self {
        let width = match uart.access_bytes {
            4 => Width::Word,
            2 => Width::Half,
            _ => Width::Byte,
        };
        let port = DevicePort {
            base: uart.base,
            shift: uart.register_shift,
            width,
        };
        Self {
            driver: Some(UartDriver::new(uart.kind, port)),
            transmit_interrupt: false,
        }
    }

    /// Bytes that can be sent without waiting.
    #[must_use]
    pub fn room(&self) -> usize {
        self.driver.as_ref().map_or(FIFO_BYTES, UartDriver::room)
    }

    /// Bytes that are sent in one go at most, so that the hart looks at its interrupts soon. The firmware's console is served by a timer, a portion at
    /// a time, and how long it keeps the hart is the firmware's.
    #[must_use]
    pub const fn portion(&self) -> usize {
        match self.driver {
            Some(_) => 8 * FIFO_BYTES,
            None => LARGEST_PORTION,
        }
    }

    /// Sends a byte for which there is room.
    pub fn send(&self, byte: u8) {
        match &self.driver {
            Some(driver) => driver.send(byte),
            None => firmware::debug_byte(byte),
        }
    }

    /// Sends a byte, waiting for room.
    pub fn send_now(&self, byte: u8) {
        while self.room() == 0 {
            core::hint::spin_loop();
        }
        self.send(byte);
    }

    /// Asks for an interrupt when the transmitter is empty, or for none.
    pub fn want_transmit_interrupt(&mut self, on: bool) {
        if self.transmit_interrupt != on {
            self.transmit_interrupt = on;
            if let Some(driver) = &self.driver {
                driver.enable_interrupts(on);
            }
        }
    }

    /// Returns true if the UART interrupts when it can take more.
    #[must_use]
    pub fn wants_transmit_interrupt(&self) -> bool {
        self.transmit_interrupt
    }

    /// The next byte that was received.
    #[must_use]
    pub fn receive(&self) -> Option<u8> {
        match &self.driver {
            Some(driver) => driver.receive(),
            None => firmware::debug_receive(),
        }
    }
}
