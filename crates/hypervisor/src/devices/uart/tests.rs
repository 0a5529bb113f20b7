//! The registers as Linux's 8250 driver tries and uses them.

use proptest::prelude::*;

use super::*;

fn ready() -> Uart {
    let mut uart = Uart::new();
    uart.write(IIR_FCR, 0x07);
    uart.write(LCR, 0x03);
    uart
}

/// Sends the byte that the guest writes to the data register; returns the byte that leaves on the line, if any.
fn send(uart: &mut Uart, byte: u8) -> Option<u8> {
    let sends = uart.sends(DATA);
    uart.write(DATA, byte);
    sends.then_some(byte)
}

#[test]
fn an_idle_port_is_quiet_and_empty() {
    let mut uart = Uart::new();
    assert!(!uart.interrupt());
    assert_eq!(uart.read(LSR), 0x60);
    assert_eq!(uart.read(IIR_FCR), 0x01);
    assert_eq!(uart.read(MSR) & 0x0f, 0, "nothing has changed yet");
}

#[test]
fn the_fifo_shows_itself() {
    let mut uart = ready();
    assert_eq!(uart.read(IIR_FCR), 0xc1);
    uart.write(IIR_FCR, 0);
    assert_eq!(uart.read(IIR_FCR), 0x01);
}

#[test]
fn written_bytes_leave_in_order() {
    let mut uart = ready();
    let sent: Vec<u8> = b"hello"
        .iter()
        .filter_map(|&byte| send(&mut uart, byte))
        .collect();
    assert_eq!(sent, b"hello");
}

#[test]
fn the_divisor_hides_data_and_interrupt_enable() {
    let mut uart = ready();
    uart.write(IER, 0x05);
    uart.write(LCR, 0x83);
    assert_eq!(send(&mut uart, 0x34), None, "a divisor is not sent");
    uart.write(IER, 0x12);
    assert_eq!((uart.read(DATA), uart.read(IER)), (0x34, 0x12));
    uart.write(LCR, 0x03);
    assert_eq!(uart.read(IER), 0x05);
}

/// The driver's start-up: it wants the interrupt each time that it enables it on an idle
/// transmitter, or it works around a broken chip with a timer.
#[test]
fn enabling_the_transmit_interrupt_raises_it() {
    let mut uart = ready();
    for _ in 0..2 {
        uart.write(IER, 0x02);
        assert!(uart.interrupt());
        assert_eq!(uart.read(IIR_FCR) & 0x0f, 0x02);
        assert!(!uart.interrupt(), "reading the identification resets it");
        uart.write(IER, 0x00);
    }
    uart.write(IER, 0x02);
    uart.read(IIR_FCR);
    uart.write(DATA, b'x');
    assert!(uart.interrupt(), "the holding register became empty again");
}

#[test]
fn input_interrupts_until_it_is_read() {
    let mut uart = ready();
    uart.write(IER, 0x01);
    uart.write(IIR_FCR, 0x81);
    for count in 1..=8 {
        uart.receive(b'0' + count);
        let want = if count < 8 { 0xcc } else { 0xc4 };
        assert_eq!(
            uart.read(IIR_FCR),
            want,
            "time-out below the trigger of 8, data at it"
        );
    }
    for count in 1..=8 {
        assert!(uart.interrupt());
        assert_eq!(uart.read(LSR) & 1, 1);
        assert_eq!(uart.read(DATA), b'0' + count);
    }
    assert!(!uart.interrupt());
    assert_eq!(uart.read(LSR) & 1, 0);
}

#[test]
fn overruns_lose_the_new_byte() {
    let mut uart = ready();
    uart.write(IER, 0x04);
    for count in 0..INPUT_CAPACITY {
        assert!(uart.room() > 0);
        uart.receive(count as u8);
    }
    assert!(!uart.interrupt());
    uart.receive(0xee);
    assert_eq!(uart.read(IIR_FCR), 0xc6);
    assert_eq!(uart.read(LSR) & 0x02, 0x02);
    assert_eq!(uart.read(LSR) & 0x02, 0, "reading resets it");
    assert!(!uart.interrupt());
    for count in 0..INPUT_CAPACITY {
        assert_eq!(uart.read(DATA), count as u8);
    }
}

#[test]
fn loop_back_joins_outputs_to_inputs() {
    let mut uart = ready();
    uart.read(MSR);
    uart.write(MCR, 0x1a);
    assert_eq!(
        uart.read(MSR) & 0xf0,
        0x90,
        "RTS and OUT2 come back as CTS and DCD"
    );
    assert_eq!(send(&mut uart, b'l'), None);
    uart.receive(b'o');
    assert_eq!(uart.read(DATA), b'l');
    assert_eq!(uart.read(LSR) & 1, 0, "the line was cut");
    uart.write(MCR, 0x14);
    uart.read(MSR);
    uart.write(MCR, 0x10);
    assert_eq!(uart.read(MSR), 0x04, "the trailing edge of RI");
}

#[test]
fn modem_changes_interrupt_until_they_are_read() {
    let mut uart = ready();
    uart.write(IER, 0x08);
    assert!(!uart.interrupt());
    uart.write(MCR, 0x10);
    assert_eq!(uart.read(IIR_FCR), 0xc0);
    assert_eq!(uart.read(MSR), 0x0b);
    assert!(!uart.interrupt());
}

#[test]
fn priorities() {
    let mut uart = ready();
    uart.write(IER, 0x0f);
    uart.write(MCR, 0x10);
    uart.write(MCR, 0x00);
    for count in 0..=INPUT_CAPACITY {
        uart.receive(count as u8);
    }
    assert_eq!(uart.read(IIR_FCR) & 0x0f, 0x06);
    uart.read(LSR);
    assert_eq!(uart.read(IIR_FCR) & 0x0f, 0x04);
    uart.write(IIR_FCR, 0x03);
    assert_eq!(uart.read(IIR_FCR) & 0x0f, 0x02);
    assert_eq!(uart.read(IIR_FCR) & 0x0f, 0x00);
    uart.read(MSR);
    assert_eq!(uart.read(IIR_FCR) & 0x0f, 0x01);
}

proptest! {
    /// Any use by a guest and an operator: input stays bounded, bytes are neither made up nor
    /// reordered, and the line is high exactly while the identification names a cause.
    #[test]
    fn any_use(steps in prop::collection::vec((0u8..3, 0u64..9, any::<u8>()), 0..200)) {
        let mut uart = Uart::new();
        for (kind, offset, value) in steps {
            match kind {
                0 => uart.receive(value),
                1 => {
                    let line = uart.interrupt();
                    let read = uart.read(offset);
                    if offset == IIR_FCR {
                        prop_assert_eq!(line, read & 1 == 0);
                    }
                }
                _ => {
                    let sends = offset == DATA && uart.line_control & 0x80 == 0
                        && uart.modem_control & 0x10 == 0;
                    prop_assert_eq!(uart.sends(offset), sends);
                    uart.write(offset, value);
                }
            }
            prop_assert!(uart.input.len() <= INPUT_CAPACITY);
        }
    }
}
