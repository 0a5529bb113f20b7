//! The board's UART (16550), which carries all consoles.

use riscv::uart::register::{DATA, FIFO_CONTROL, INTERRUPT_ENABLE, LINE_STATUS};
use riscv::uart::{
    ENABLE_RECEIVED, ENABLE_TRANSMITTER_EMPTY, FIFO_BYTES, FIFO_ENABLE, LINE_DATA_READY,
    LINE_HOLDING_EMPTY,
};

use crate::hart::decode::Width;
use crate::hart::{device, firmware};

/// Bytes that an empty transmitter takes.
pub const FIFO: usize = FIFO_BYTES;

/// The UART, or the firmware's console while there is none.
#[derive(Debug, Default)]
pub struct BoardUart {
    base: Option<u64>,
    transmit_interrupt: bool,
}

impl BoardUart {
    /// No UART: bytes go to the firmware.
    #[must_use]
    pub const fn unknown() -> Self {
        Self {
            base: None,
            transmit_interrupt: false,
        }
    }

    /// The UART at `base`, with its FIFO and its receive interrupt on.
    #[must_use]
    pub fn at(base: u64) -> Self {
        let uart = Self {
            base: Some(base),
            transmit_interrupt: false,
        };
        uart.write(FIFO_CONTROL, FIFO_ENABLE);
        uart.write(INTERRUPT_ENABLE, ENABLE_RECEIVED);
        uart
    }

    fn read(&self, register: u64) -> u8 {
        // SAFETY: the address is that of the UART in the board's device tree, whose registers are bytes.
        let byte = |base| unsafe { device::load(base + register, Width::Byte) };
        self.base.and_then(byte).unwrap_or(0) as u8
    }

    fn write(&self, register: u64, value: u8) {
        if let Some(base) = self.base {
            // SAFETY: as for `read`.
            let _ = unsafe { device::store(base + register, Width::Byte, value.into()) };
        }
    }

    /// Returns true if [`FIFO`] bytes can be sent at once.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.base.is_none() || self.read(LINE_STATUS) & LINE_HOLDING_EMPTY != 0
    }

    /// Sends a byte for which there is room.
    pub fn send(&self, byte: u8) {
        match self.base {
            Some(_) => self.write(DATA, byte),
            None => firmware::debug_byte(byte),
        }
    }

    /// Sends a byte, waiting for room.
    pub fn send_now(&self, byte: u8) {
        while !self.is_empty() {
            core::hint::spin_loop();
        }
        self.send(byte);
    }

    /// Asks for an interrupt when the transmitter is empty, or for none.
    pub fn want_transmit_interrupt(&mut self, on: bool) {
        if self.transmit_interrupt != on {
            self.transmit_interrupt = on;
            self.write(
                INTERRUPT_ENABLE,
                ENABLE_RECEIVED | if on { ENABLE_TRANSMITTER_EMPTY } else { 0 },
            );
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
        (self.base.is_some() && self.read(LINE_STATUS) & LINE_DATA_READY != 0)
            .then(|| self.read(DATA))
    }
}
