//! The 16550A UART.
//!
//! Register behaviour as in National Semiconductor's PC16550D data sheet (section numbers below).
//! Characters leave at once, or take the time that the machine is told; what arrives waits in a
//! 16-byte FIFO. There are no line errors. An access of any width is to the one byte-wide register
//! at its address, as on QEMU's board.

use std::collections::VecDeque;

use riscv::uart::{
    DIVISOR_ACCESS, ENABLE_ALL, ENABLE_RECEIVED, ENABLE_TRANSMITTER_EMPTY, FIFO_BYTES,
    FIFO_CLEAR_RECEIVER, FIFO_CLEAR_TRANSMITTER, FIFO_ENABLE, IDENTITY_FIFOS_ENABLED,
    IDENTITY_NONE, IDENTITY_RECEIVED, IDENTITY_TIME_OUT, IDENTITY_TRANSMITTER_EMPTY,
    LINE_DATA_READY, LINE_HOLDING_EMPTY, LINE_OVERRUN, LINE_TRANSMITTER_EMPTY, MODEM_ALL,
    MODEM_CTS, MODEM_DCD, MODEM_DSR, MODEM_LOOP, register,
};
use serde::{Deserialize, Serialize};

use super::{AccessFault, Console, Context, Cycles, Device, HostConsole};
use crate::device::Marker;

/// Modem status register (8.8): CTS, DSR and DCD asserted, as on a line that is connected.
const CONNECTED: u8 = MODEM_CTS | MODEM_DSR | MODEM_DCD;

/// The UART.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Uart {
    source: u32,
    received: VecDeque<u8>,
    interrupt_enable: u8,
    fifo_control: u8,
    line_control: u8,
    modem_control: u8,
    scratch: u8,
    divisor: u16,
    overrun: bool,
    /// The transmitter-empty interrupt is waiting to be identified.
    transmit_pending: bool,
    next_input: Option<Cycles>,
    /// How long a character takes.
    character: Cycles,
    /// Bytes that have not left yet: the first in the shift register, the others in the FIFO or the holding
    /// register.
    sending: VecDeque<u8>,
    /// When the first of them has left.
    sent: Cycles,
    #[serde(skip)]
    console: HostConsole,
}

impl Uart {
    /// A UART on APLIC source `source`, with `console` at the other end of the line.
    #[must_use]
    pub fn new(source: u32, console: Box<dyn Console>) -> Self {
        Self {
            source,
            console: HostConsole(console),
            next_input: Some(Cycles(0)),
            ..Self::default()
        }
    }

    /// Watches what is put on the line for a text from now on.
    pub fn watch(&mut self, marker: &Marker) {
        self.console.watch(marker);
    }

    /// Puts another console at the end of the line: after a checkpoint was restored.
    pub fn attach(&mut self, console: Box<dyn Console>) {
        self.console = HostConsole(console);
        self.next_input = Some(Cycles(0));
    }

    /// From now on a character takes this long to leave; zero for no time.
    pub const fn set_character_time(&mut self, character: Cycles) {
        self.character = character;
    }

    const fn has_fifo(&self) -> bool {
        self.fifo_control & FIFO_ENABLE != 0
    }

    fn trigger_level(&self) -> usize {
        match (self.has_fifo(), self.fifo_control >> 6) {
            (false, _) | (_, 0) => 1,
            (_, 1) => 4,
            (_, 2) => 8,
            _ => 14,
        }
    }

    const fn divisor_access(&self) -> bool {
        self.line_control & DIVISOR_ACCESS != 0
    }

    fn capacity(&self) -> usize {
        if self.has_fifo() { FIFO_BYTES } else { 1 }
    }

    fn receive(&mut self, byte: u8) {
        if self.received.len() < self.capacity() {
            self.received.push_back(byte);
        } else {
            self.overrun = true;
        }
    }

    /// The highest-priority interrupt that is pending and enabled.
    fn interrupt(&self) -> u8 {
        if self.interrupt_enable & ENABLE_RECEIVED != 0 && !self.received.is_empty() {
            // The time-out interrupt stands for four character times without a read: here no time
            // at all, as the line is infinitely fast.
            let enough = self.received.len() >= self.trigger_level();
            if enough {
                IDENTITY_RECEIVED
            } else {
                IDENTITY_TIME_OUT
            }
        } else if self.interrupt_enable & ENABLE_TRANSMITTER_EMPTY != 0 && self.transmit_pending {
            IDENTITY_TRANSMITTER_EMPTY
        } else {
            IDENTITY_NONE
        }
    }

    fn drive(&self, context: &mut Context<'_>) {
        context.set_line(self.source, self.interrupt() != IDENTITY_NONE);
    }

    /// Nothing is behind the shift register (8.3, bit 5).
    fn holding_is_empty(&self) -> bool {
        self.sending.len() <= 1
    }

    fn transmit(&mut self, byte: u8, now: Cycles) {
        if self.modem_control & MODEM_LOOP != 0 {
            self.receive(byte);
        } else if self.character == Cycles(0) {
            self.console.0.put_at(byte, now);
        } else if self.sending.len() <= self.capacity() {
            if self.sending.is_empty() {
                self.sent = now.after(self.character);
            }
            self.sending.push_back(byte);
        }
        // What finds no room is lost.
        self.transmit_pending = self.holding_is_empty();
    }

    /// Lets leave what has had its time by `now`.
    fn send(&mut self, now: Cycles) {
        while self.sent <= now
            && let Some(byte) = self.sending.pop_front()
        {
            self.console.0.put_at(byte, self.sent);
            self.sent = self.sent.after(self.character);
            if self.sending.len() == 1 {
                self.transmit_pending = true;
            }
        }
    }

    fn modem_status(&self) -> u8 {
        if self.modem_control & MODEM_LOOP == 0 {
            return CONNECTED;
        }
        // Loopback connects DTR to DSR, RTS to CTS, OUT 1 to RI and OUT 2 to DCD.
        let bit = |from: u8, to: u8| {
            if self.modem_control & from != 0 {
                to
            } else {
                0
            }
        };
        bit(1, 0x20) | bit(2, 0x10) | bit(4, 0x40) | bit(8, 0x80)
    }

    fn read_register(&mut self, register: u64) -> u8 {
        match register {
            register::DATA if self.divisor_access() => self.divisor as u8,
            register::DATA => self.received.pop_front().unwrap_or(0),
            register::INTERRUPT_ENABLE if self.divisor_access() => (self.divisor >> 8) as u8,
            register::INTERRUPT_ENABLE => self.interrupt_enable,
            register::INTERRUPT_IDENTITY => {
                let identity = self.interrupt();
                if identity == IDENTITY_TRANSMITTER_EMPTY {
                    self.transmit_pending = false;
                }
                identity
                    | if self.has_fifo() {
                        IDENTITY_FIFOS_ENABLED
                    } else {
                        0
                    }
            }
            register::LINE_CONTROL => self.line_control,
            register::MODEM_CONTROL => self.modem_control,
            register::LINE_STATUS => {
                let ready = if self.received.is_empty() {
                    0
                } else {
                    LINE_DATA_READY
                };
                let overrun = if core::mem::take(&mut self.overrun) {
                    LINE_OVERRUN
                } else {
                    0
                };
                let holding = if self.holding_is_empty() {
                    LINE_HOLDING_EMPTY
                } else {
                    0
                };
                let transmitter = if self.sending.is_empty() {
                    LINE_TRANSMITTER_EMPTY
                } else {
                    0
                };
                holding | transmitter | ready | overrun
            }
            register::MODEM_STATUS => self.modem_status(),
            register::SCRATCH => self.scratch,
            _ => 0,
        }
    }

    fn write_register(&mut self, register: u64, value: u8, now: Cycles) {
        match register {
            register::DATA if self.divisor_access() => {
                self.divisor = self.divisor & 0xff00 | u16::from(value);
            }
            register::DATA => {
                self.transmit_pending = false;
                self.transmit(value, now);
            }
            register::INTERRUPT_ENABLE if self.divisor_access() => {
                self.divisor = self.divisor & 0x00ff | u16::from(value) << 8;
            }
            register::INTERRUPT_ENABLE => {
                let enabled = value & !self.interrupt_enable;
                self.interrupt_enable = value & ENABLE_ALL;
                if enabled & ENABLE_TRANSMITTER_EMPTY != 0 {
                    self.transmit_pending = self.holding_is_empty();
                }
            }
            register::INTERRUPT_IDENTITY => {
                if (value ^ self.fifo_control) & FIFO_ENABLE != 0
                    || value & FIFO_CLEAR_RECEIVER != 0
                {
                    self.received.clear();
                }
                if value & FIFO_CLEAR_TRANSMITTER != 0 {
                    // The shift register keeps what it has.
                    self.sending.truncate(1);
                }
                self.fifo_control = if value & FIFO_ENABLE != 0 {
                    value & 0xc9
                } else {
                    0
                };
            }
            register::LINE_CONTROL => self.line_control = value,
            register::MODEM_CONTROL => self.modem_control = value & MODEM_ALL,
            register::SCRATCH => self.scratch = value,
            _ => {}
        }
    }

    /// Takes what the console has, as far as there is room.
    fn take_input(&mut self, now: Cycles) {
        while self.modem_control & MODEM_LOOP == 0 && self.received.len() < self.capacity() {
            match self.console.0.get(now) {
                Some(byte) => self.receive(byte),
                None => break,
            }
        }
    }
}

impl Device for Uart {
    fn read(
        &mut self,
        offset: u64,
        _size: u8,
        context: &mut Context<'_>,
    ) -> Result<u64, AccessFault> {
        self.send(context.now);
        let value = self.read_register(offset);
        if offset == 0 {
            // There may be room now for what has arrived already.
            self.take_input(context.now);
        }
        self.drive(context);
        Ok(u64::from(value))
    }

    fn write(
        &mut self,
        offset: u64,
        _size: u8,
        value: u64,
        context: &mut Context<'_>,
    ) -> Result<(), AccessFault> {
        self.send(context.now);
        self.write_register(offset, value as u8, context.now);
        self.drive(context);
        Ok(())
    }

    fn tick(&mut self, context: &mut Context<'_>) {
        if !self.sending.is_empty() {
            self.send(context.now);
            self.drive(context);
        }
        if self.next_input.is_some_and(|at| context.now >= at) {
            self.take_input(context.now);
            self.next_input = self.console.0.next_input(context.now, &context.clock);
            self.drive(context);
        }
    }

    fn next_event(&self) -> Option<Cycles> {
        let sent = (!self.sending.is_empty()).then_some(self.sent);
        [self.next_input, sent].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
