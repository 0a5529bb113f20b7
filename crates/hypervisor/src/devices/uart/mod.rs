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
pub mod line;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;

/// Most bytes of input that wait for the guest. More than the chip's sixteen, so that pasted text
/// is not lost while the guest's vCPU waits for a hart.
pub const INPUT_CAPACITY: usize = 256;

/// Receiver buffer (read), transmitter holding register (write), low divisor byte (DLAB).
const DATA: u64 = 0;
/// Interrupt enable register, high divisor byte (DLAB).
const IER: u64 = 1;
/// Interrupt identification (read) and FIFO control (write).
const IIR_FCR: u64 = 2;
/// Line control register.
const LCR: u64 = 3;
/// Modem control register.
const MCR: u64 = 4;
/// Line status register.
const LSR: u64 = 5;
/// Modem status register.
const MSR: u64 = 6;
/// Scratch register.
const SCR: u64 = 7;

const IER_RECEIVED: u8 = 1 << 0;
const IER_TRANSMITTER_EMPTY: u8 = 1 << 1;
const IER_LINE_STATUS: u8 = 1 << 2;
const IER_MODEM_STATUS: u8 = 1 << 3;
const IER_ALL: u8 = 0x0f;

const IIR_NONE: u8 = 0x01;
const IIR_MODEM_STATUS: u8 = 0x00;
const IIR_TRANSMITTER_EMPTY: u8 = 0x02;
const IIR_RECEIVED: u8 = 0x04;
const IIR_LINE_STATUS: u8 = 0x06;
const IIR_TIME_OUT: u8 = 0x0c;
const IIR_FIFOS_ENABLED: u8 = 0xc0;

const FCR_ENABLE: u8 = 1 << 0;
const FCR_CLEAR_RECEIVER: u8 = 1 << 1;

const LCR_DIVISOR_ACCESS: u8 = 1 << 7;

const MCR_LOOP: u8 = 1 << 4;
const MCR_ALL: u8 = 0x1f;

const LSR_DATA_READY: u8 = 1 << 0;
const LSR_OVERRUN: u8 = 1 << 1;
const LSR_TRANSMITTER_EMPTY: u8 = 1 << 5 | 1 << 6;

const MSR_CTS: u8 = 1 << 4;
const MSR_DSR: u8 = 1 << 5;
const MSR_RI: u8 = 1 << 6;
const MSR_DCD: u8 = 1 << 7;
/// The bit of MSR that says that RI fell; the other change bits stand four below their line's.
const MSR_RI_FELL: u8 = 1 << 2;

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
            modem_status: MSR_CTS | MSR_DSR | MSR_DCD,
            scratch: 0,
            divisor: 0,
        }
    }

    /// Level of the interrupt line. To be read again after each [`read`](Self::read),
    /// [`write`](Self::write) and [`receive`](Self::receive).
    pub fn interrupt(&self) -> bool {
        self.identification() != IIR_NONE
    }

    /// Bytes of input that still find room.
    pub fn room(&self) -> usize {
        INPUT_CAPACITY.saturating_sub(self.input.len())
    }

    /// Receives a byte from outside. Without room it is lost, and the line status shows an overrun.
    pub fn receive(&mut self, byte: u8) {
        // In loop-back the serial input is disconnected (8.7).
        if self.modem_control & MCR_LOOP == 0 {
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
        let divisor_access = self.line_control & LCR_DIVISOR_ACCESS != 0;
        match offset {
            DATA if divisor_access => self.divisor.to_le_bytes()[0],
            IER if divisor_access => self.divisor.to_le_bytes()[1],
            DATA => self.input.pop_front().unwrap_or(0),
            IER => self.interrupt_enable,
            IIR_FCR => {
                let identification = self.identification();
                if identification == IIR_TRANSMITTER_EMPTY {
                    self.transmitter_interrupt = false;
                }
                let fifos = self.fifo_control & FCR_ENABLE != 0;
                identification | if fifos { IIR_FIFOS_ENABLED } else { 0 }
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
        let divisor_access = self.line_control & LCR_DIVISOR_ACCESS != 0;
        offset == DATA && !divisor_access && self.modem_control & MCR_LOOP == 0
    }

    /// Writes `value` to the register at `offset` for the guest. It leaves on the line if [`sends`](Self::sends) is true.
    pub fn write(&mut self, offset: u64, value: u8) {
        let divisor_access = self.line_control & LCR_DIVISOR_ACCESS != 0;
        let [low, high] = self.divisor.to_le_bytes();
        match offset {
            DATA if divisor_access => self.divisor = u16::from_le_bytes([value, high]),
            IER if divisor_access => self.divisor = u16::from_le_bytes([low, value]),
            DATA => self.transmit(value),
            IER => {
                let enabled = value & !self.interrupt_enable;
                // The transmitter is always empty, so its interrupt comes at once.
                self.transmitter_interrupt |= enabled & IER_TRANSMITTER_EMPTY != 0;
                self.interrupt_enable = value & IER_ALL;
            }
            IIR_FCR => {
                // "Bit 0 must be a 1 when other FCR bits are written to or they will not be
                // programmed", and a change of it empties the FIFOs (8.4).
                let switched = (value ^ self.fifo_control) & FCR_ENABLE != 0;
                let cleared = value & FCR_ENABLE != 0 && value & FCR_CLEAR_RECEIVER != 0;
                if switched || cleared {
                    self.input.clear();
                }
                self.fifo_control = if value & FCR_ENABLE != 0 {
                    value & 0xc9
                } else {
                    0
                };
            }
            LCR => self.line_control = value,
            MCR => {
                self.modem_control = value & MCR_ALL;
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
        if self.modem_control & MCR_LOOP != 0 {
            self.accept(byte);
        }
    }

    /// The modem lines: those of a listener, or in loop-back our own outputs (8.7).
    fn see_modem_lines(&mut self) {
        let control = self.modem_control;
        let lines = if control & MCR_LOOP == 0 {
            MSR_CTS | MSR_DSR | MSR_DCD
        } else {
            // DTR, RTS, OUT1 and OUT2 come back as DSR, CTS, RI and DCD.
            let pairs = [(0, MSR_DSR), (1, MSR_CTS), (2, MSR_RI), (3, MSR_DCD)];
            pairs
                .into_iter()
                .filter(|&(output, _)| control & 1 << output != 0)
                .fold(0, |lines, (_, line)| lines | line)
        };
        let before = self.modem_status;
        let changed = (before ^ lines) & (MSR_CTS | MSR_DSR | MSR_DCD);
        let fell = if before & !lines & MSR_RI != 0 {
            MSR_RI_FELL
        } else {
            0
        };
        self.modem_status = lines | before & 0x0f | changed >> 4 | fell;
    }

    fn line_status(&self) -> u8 {
        let ready = if self.input.is_empty() {
            0
        } else {
            LSR_DATA_READY
        };
        let overrun = if self.overrun { LSR_OVERRUN } else { 0 };
        LSR_TRANSMITTER_EMPTY | ready | overrun
    }

    /// Bytes that raise "received data available" rather than the time-out (8.4, bits 7 and 6).
    fn trigger(&self) -> usize {
        match self.fifo_control >> 6 {
            _ if self.fifo_control & FCR_ENABLE == 0 => 1,
            0 => 1,
            1 => 4,
            2 => 8,
            _ => 14,
        }
    }

    /// The pending and enabled interrupt of the highest priority (8.5, table III).
    fn identification(&self) -> u8 {
        let enabled = |bit| self.interrupt_enable & bit != 0;
        if enabled(IER_LINE_STATUS) && self.overrun {
            IIR_LINE_STATUS
        } else if enabled(IER_RECEIVED) && self.input.len() >= self.trigger() {
            IIR_RECEIVED
        } else if enabled(IER_RECEIVED) && !self.input.is_empty() {
            IIR_TIME_OUT
        } else if enabled(IER_TRANSMITTER_EMPTY) && self.transmitter_interrupt {
            IIR_TRANSMITTER_EMPTY
        } else if enabled(IER_MODEM_STATUS) && self.modem_status & 0x0f != 0 {
            IIR_MODEM_STATUS
        } else {
            IIR_NONE
        }
    }
}
