//! The emulated 16550A UART of a guest: eight byte-wide registers.
//!
//! After the data sheet of the PC16550D (sections 8.1 to 8.10 name the registers). There is no
//! wire, so no time passes: a byte that is written leaves at once, the transmitter is always empty,
//! and the character time-out is over as soon as a byte is there.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub mod board;
pub mod driver;
pub mod line;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;

use riscv::uart::register::{
    DATA, INTERRUPT_ENABLE as IER, INTERRUPT_IDENTITY as IIR_FCR, LINE_CONTROL as LCR,
    LINE_STATUS as LSR, MODEM_CONTROL as MCR, MODEM_STATUS as MSR, SCRATCH as SCR,
};
use riscv::uart::{
    DIVISOR_ACCESS, ENABLE_ALL, ENABLE_LINE_STATUS, ENABLE_MODEM_STATUS, ENABLE_RECEIVED,
    ENABLE_TRANSMITTER_EMPTY, FIFO_CLEAR_RECEIVER, FIFO_ENABLE, IDENTITY_FIFOS_ENABLED,
    IDENTITY_LINE_STATUS, IDENTITY_MODEM_STATUS, IDENTITY_NONE, IDENTITY_RECEIVED,
    IDENTITY_TIME_OUT, IDENTITY_TRANSMITTER_EMPTY, LINE_DATA_READY, LINE_HOLDING_EMPTY,
    LINE_OVERRUN, LINE_TRANSMITTER_EMPTY, MODEM_ALL, MODEM_CTS, MODEM_DCD, MODEM_DSR, MODEM_LOOP,
    MODEM_RI, MODEM_RI_FELL,
};

/// Most bytes of input that wait for the guest. More than the chip's sixteen, so that pasted text
/// is not lost while the guest's vCPU waits for a hart.
pub const INPUT_CAPACITY: usize = 256;

/// Line status of a transmitter that has nothing to do.
const LSR_TRANSMITTER_EMPTY: u8 = LINE_HOLDING_EMPTY | LINE_TRANSMITTER_EMPTY;

/// An emulated 16550A.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uart {
    input: VecDeque<u8>,
    overrun: bool,
    /// Set when the holding register becomes empty or its interrupt is enabled; the identification
    /// register's reader takes it away (8.5: "reading the IIR ... resets the interrupt").
    transmitter_interrupt: bool,
    interrupt_enable: u8,
    fifo_control: u8,
    line_control: u8,
    modem_control: u8,
    /// State of the four lines, and their changes since the guest's last read.
    modem_status: u8,
    scratch: u8,
    divisor: u16,
}

impl Default for Uart {
    fn default() -> Self {
        Self::new()
    }
}

impl Uart {
    /// UART in the state of reset, with a listener at the other end of the line.
    pub fn new() -> Self {
        Self::with_input(VecDeque::with_capacity(INPUT_CAPACITY))
    }

    /// Resets the UART. Its buffer stays: a guest may reset as often as it likes, and nothing is allocated.
    pub fn reset(&mut self) {
        let mut input = core::mem::take(&mut self.input);
        input.clear();
        *self = Self::with_input(input);
    }

    const fn with_input(input: VecDeque<u8>) -> Self {
        Self {
            input,
            overrun: false,
            transmitter_interrupt: false,
            interrupt_enable: 0,
            fifo_control: 0,
            line_control: 0,
            modem_control: 0,
            modem_status: MODEM_CTS | MODEM_DSR | MODEM_DCD,
            scratch: 0,
            divisor: 0,
        }
    }

    /// Level of the interrupt line. To be read again after each [`read`](Self::read),
    /// [`write`](Self::write) and [`receive`](Self::receive).
    pub fn interrupt(&self) -> bool {
        self.identification() != IDENTITY_NONE
    }

    /// Bytes of input that still find room.
    pub fn room(&self) -> usize {
        INPUT_CAPACITY.saturating_sub(self.input.len())
    }

    /// Receives a byte from outside. Without room it is lost, and the line status shows an overrun.
    pub fn receive(&mut self, byte: u8) {
        // In loop-back the serial input is disconnected (8.7).
        if self.modem_control & MODEM_LOOP == 0 {
            self.accept(byte);
        }
    }

    fn accept(&mut self, byte: u8) {
        if self.room() == 0 {
            self.overrun = true;
        } else {
            self.input.push_back(byte);
        }
    }

    /// Reads the register at `offset` for the guest; zeros behind the eight registers.
    pub fn read(&mut self, offset: u64) -> u8 {
        let divisor_access = self.line_control & DIVISOR_ACCESS != 0;
        match offset {
            DATA if divisor_access => self.divisor.to_le_bytes()[0],
            IER if divisor_access => self.divisor.to_le_bytes()[1],
            DATA => self.input.pop_front().unwrap_or(0),
            IER => self.interrupt_enable,
            IIR_FCR => {
                let identification = self.identification();
                if identification == IDENTITY_TRANSMITTER_EMPTY {
                    self.transmitter_interrupt = false;
                }
                let fifos = self.fifo_control & FIFO_ENABLE != 0;
                identification | if fifos { IDENTITY_FIFOS_ENABLED } else { 0 }
            }
            LCR => self.line_control,
            MCR => self.modem_control,
            LSR => {
                let status = self.line_status();
                self.overrun = false;
                status
            }
            MSR => {
                let status = self.modem_status;
                self.modem_status &= 0xf0;
                status
            }
            SCR => self.scratch,
            _ => 0,
        }
    }

    /// Returns true if a byte that the guest writes to the register at `offset` leaves on the line.
    pub fn sends(&self, offset: u64) -> bool {
        let divisor_access = self.line_control & DIVISOR_ACCESS != 0;
        offset == DATA && !divisor_access && self.modem_control & MODEM_LOOP == 0
    }

    /// Writes `value` to the register at `offset` for the guest. It leaves on the line if [`sends`](Self::sends) is true.
    pub fn write(&mut self, offset: u64, value: u8) {
        let divisor_access = self.line_control & DIVISOR_ACCESS != 0;
        let [low, high] = self.divisor.to_le_bytes();
        match offset {
            DATA if divisor_access => self.divisor = u16::from_le_bytes([value, high]),
            IER if divisor_access => self.divisor = u16::from_le_bytes([low, value]),
            DATA => self.transmit(value),
            IER => {
                let enabled = value & !self.interrupt_enable;
                // The transmitter is always empty, so its interrupt comes at once.
                self.transmitter_interrupt |= enabled & ENABLE_TRANSMITTER_EMPTY != 0;
                self.interrupt_enable = value & ENABLE_ALL;
            }
            IIR_FCR => {
                // "Bit 0 must be a 1 when other FCR bits are written to or they will not be
                // programmed", and a change of it empties the FIFOs (8.4).
                let switched = (value ^ self.fifo_control) & FIFO_ENABLE != 0;
                let cleared = value & FIFO_ENABLE != 0 && value & FIFO_CLEAR_RECEIVER != 0;
                if switched || cleared {
                    self.input.clear();
                }
                self.fifo_control = if value & FIFO_ENABLE != 0 {
                    value & 0xc9
                } else {
                    0
                };
            }
            LCR => self.line_control = value,
            MCR => {
                self.modem_control = value & MODEM_ALL;
                self.see_modem_lines();
            }
            SCR => self.scratch = value,
            // LSR and MSR are "intended for read operations only" (8.6).
            _ => {}
        }
    }

    fn transmit(&mut self, byte: u8) {
        // It leaves at once, and the holding register is empty again.
        self.transmitter_interrupt = true;
        if self.modem_control & MODEM_LOOP != 0 {
            self.accept(byte);
        }
    }

    /// The modem lines: those of a listener, or in loop-back our own outputs (8.7).
    fn see_modem_lines(&mut self) {
        let control = self.modem_control;
        let lines = if control & MODEM_LOOP == 0 {
            MODEM_CTS | MODEM_DSR | MODEM_DCD
        } else {
            // DTR, RTS, OUT1 and OUT2 come back as DSR, CTS, RI and DCD.
            let pairs = [
                (0, MODEM_DSR),
                (1, MODEM_CTS),
                (2, MODEM_RI),
                (3, MODEM_DCD),
            ];
            pairs
                .into_iter()
                .filter(|&(output, _)| control & 1 << output != 0)
                .fold(0, |lines, (_, line)| lines | line)
        };
        let before = self.modem_status;
        let changed = (before ^ lines) & (MODEM_CTS | MODEM_DSR | MODEM_DCD);
        let fell = if before & !lines & MODEM_RI != 0 {
            MODEM_RI_FELL
        } else {
            0
        };
        self.modem_status = lines | before & 0x0f | changed >> 4 | fell;
    }

    fn line_status(&self) -> u8 {
        let ready = if self.input.is_empty() {
            0
        } else {
            LINE_DATA_READY
        };
        let overrun = if self.overrun { LINE_OVERRUN } else { 0 };
        LSR_TRANSMITTER_EMPTY | ready | overrun
    }

    /// Bytes that raise "received data available" rather than the time-out (8.4, bits 7 and 6).
    fn trigger(&self) -> usize {
        match self.fifo_control >> 6 {
            _ if self.fifo_control & FIFO_ENABLE == 0 => 1,
            0 => 1,
            1 => 4,
            2 => 8,
            _ => 14,
        }
    }

    /// The pending and enabled interrupt of the highest priority (8.5, table III).
    fn identification(&self) -> u8 {
        let enabled = |bit| self.interrupt_enable & bit != 0;
        if enabled(ENABLE_LINE_STATUS) && self.overrun {
            IDENTITY_LINE_STATUS
        } else if enabled(ENABLE_RECEIVED) && self.input.len() >= self.trigger() {
            IDENTITY_RECEIVED
        } else if enabled(ENABLE_RECEIVED) && !self.input.is_empty() {
            IDENTITY_TIME_OUT
        } else if enabled(ENABLE_TRANSMITTER_EMPTY) && self.transmitter_interrupt {
            IDENTITY_TRANSMITTER_EMPTY
        } else if enabled(ENABLE_MODEM_STATUS) && self.modem_status & 0x0f != 0 {
            IDENTITY_MODEM_STATUS
        } else {
            IDENTITY_NONE
        }
    }
}
