//! Drivers of UARTs: registers of the 16550's family and of SiFive's UART, over a port.

use board::UartKind;
use riscv::uart::register::{DATA, FIFO_CONTROL, INTERRUPT_ENABLE, LINE_STATUS};
use riscv::uart::{
    ENABLE_RECEIVED, ENABLE_TRANSMITTER_EMPTY, FIFO_BYTES, FIFO_ENABLE, LINE_DATA_READY,
    LINE_HOLDING_EMPTY,
};

/// Interrupt enable of XScale's UART: receiver time-out, for bytes below the FIFO_BYTES's threshold, and the unit's enable (UUE).
const XSCALE_ENABLE: u32 = 1 << 4 | 1 << 6;

/// Registers of SiFive's UART by number (FU540-C000 manual, "UART").
mod sifive {
    pub const TRANSMIT_DATA: u64 = 0;
    pub const RECEIVE_DATA: u64 = 1;
    pub const TRANSMIT_CONTROL: u64 = 2;
    pub const RECEIVE_CONTROL: u64 = 3;
    pub const INTERRUPT_ENABLE: u64 = 4;

    /// Transmit data: the FIFO_BYTES is full. Receive data: the FIFO_BYTES is empty.
    pub const FULL_OR_EMPTY: u32 = 1 << 31;
    pub const ENABLE: u32 = 1 << 0;
    /// Transmit control: interrupts when fewer entries than this wait.
    pub const ONE_WAITS: u32 = 1 << 16;
    pub const TRANSMIT_WATERMARK: u32 = 1 << 0;
    pub const RECEIVE_WATERMARK: u32 = 1 << 1;
}

/// Registers of a UART, by number.
pub trait RegisterPort {
    /// Reads a register.
    fn read(&self, register: u64) -> u32;

    /// Writes a register.
    fn write(&self, register: u64, value: u32);
}

/// A UART, driven.
#[derive(Debug)]
pub struct UartDriver<P> {
    port: P,
    kind: UartKind,
}

impl<P: RegisterPort> UartDriver<P> {
    /// Switches first-in-first-out queue and receive interrupt on. The line's speed stays as the firmware has set it.
    pub fn new(kind: UartKind, port: P) -> Self {
        let uart = Self { port, kind };
        match kind {
            UartKind::SiFive => {
                let transmit = sifive::ENABLE | sifive::ONE_WAITS;
                uart.port.write(sifive::TRANSMIT_CONTROL, transmit);
                uart.port.write(sifive::RECEIVE_CONTROL, sifive::ENABLE);
            }
            _ => uart.port.write(FIFO_CONTROL, FIFO_ENABLE.into()),
        }
        uart.enable_interrupts(false);
        uart
    }

    /// Enables the receive interrupt, and the transmit interrupt if wanted.
    pub fn enable_interrupts(&self, transmit: bool) {
        match self.kind {
            UartKind::SiFive => {
                let more = if transmit {
                    sifive::TRANSMIT_WATERMARK
                } else {
                    0
                };
                let enabled = sifive::RECEIVE_WATERMARK | more;
                self.port.write(sifive::INTERRUPT_ENABLE, enabled);
            }
            UartKind::Ns16550 | UartKind::DesignWare | UartKind::XScale => {
                let more = if transmit {
                    u32::from(ENABLE_TRANSMITTER_EMPTY)
                } else {
                    0
                };
                let unit = if self.kind == UartKind::XScale {
                    XSCALE_ENABLE
                } else {
                    0
                };
                let enabled = u32::from(ENABLE_RECEIVED) | more | unit;
                self.port.write(INTERRUPT_ENABLE, enabled);
            }
        }
    }

    /// Bytes that can be sent now without waiting.
    #[must_use]
    pub fn room(&self) -> usize {
        match self.kind {
            UartKind::SiFive => {
                let full = self.port.read(sifive::TRANSMIT_DATA) & sifive::FULL_OR_EMPTY != 0;
                usize::from(!full)
            }
            _ if self.port.read(LINE_STATUS) & u32::from(LINE_HOLDING_EMPTY) != 0 => FIFO_BYTES,
            _ => 0,
        }
    }

    /// Sends a byte for which there is room.
    pub fn send(&self, byte: u8) {
        let register = match self.kind {
            UartKind::SiFive => sifive::TRANSMIT_DATA,
            _ => DATA,
        };
        self.port.write(register, byte.into());
    }

    /// The next byte that was received.
    #[must_use]
    pub fn receive(&self) -> Option<u8> {
        match self.kind {
            UartKind::SiFive => {
                let data = self.port.read(sifive::RECEIVE_DATA);
                (data & sifive::FULL_OR_EMPTY == 0).then_some(data as u8)
            }
            _ => {
                let status = self.port.read(LINE_STATUS);
                let ready = status & u32::from(LINE_DATA_READY) != 0;
                ready.then(|| self.port.read(DATA) as u8)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::RefCell;
    use std::collections::VecDeque;
    use std::vec::Vec;

    /// Registers that note what is written, and give what is queued.
    #[derive(Default)]
    struct Registers {
        written: RefCell<Vec<(u64, u32)>>,
        given: RefCell<VecDeque<(u64, u32)>>,
    }

    impl RegisterPort for &Registers {
        fn read(&self, register: u64) -> u32 {
            let given = self.given.borrow_mut().pop_front();
            let (expected, value) = given.expect("a read that the test expects");
            assert_eq!(register, expected);
            value
        }

        fn write(&self, register: u64, value: u32) {
            self.written.borrow_mut().push((register, value));
        }
    }

    impl Registers {
        fn gives(&self, reads: &[(u64, u32)]) {
            self.given.borrow_mut().extend(reads);
        }
    }

    #[test]
    fn xscale_keeps_its_unit_enabled() {
        let registers = Registers::default();
        let uart = UartDriver::new(UartKind::XScale, &registers);
        uart.enable_interrupts(true);
        uart.enable_interrupts(false);
        // Intel PXA manual: IER.UUE is bit 6, IER.RTOIE bit 4, TIE bit 1, RAVIE bit 0.
        assert_eq!(
            *registers.written.borrow(),
            [(2, 1), (1, 0x51), (1, 0x53), (1, 0x51)]
        );
    }

    #[test]
    fn sifive_sends_where_its_queue_has_room() {
        let registers = Registers::default();
        let uart = UartDriver::new(UartKind::SiFive, &registers);
        assert_eq!(*registers.written.borrow(), [(2, 0x1_0001), (3, 1), (4, 2)]);
        registers.gives(&[(0, 1 << 31), (0, 0), (1, 1 << 31), (1, 0x41)]);
        assert_eq!((uart.room(), uart.room()), (0, 1));
        assert_eq!((uart.receive(), uart.receive()), (None, Some(b'A')));
        uart.send(b'B');
        assert_eq!(registers.written.borrow().last(), Some(&(0, 0x42)));
    }

    #[test]
    fn ns16550_sends_a_whole_queue_when_empty() {
        let registers = Registers::default();
        let uart = UartDriver::new(UartKind::Ns16550, &registers);
        registers.gives(&[(5, 0), (5, 0x60), (5, 0), (5, 1), (0, 0x61)]);
        assert_eq!((uart.room(), uart.room()), (0, 16));
        assert_eq!((uart.receive(), uart.receive()), (None, Some(b'a')));
    }
}
