//! The UART as a driver sees it.

use std::sync::{Arc, Mutex};

use super::*;
use crate::device::{Clock, Effects, FlatMemory, LineChange, Script};

const SOURCE: u32 = 10;

struct Bench {
    uart: Uart,
    memory: FlatMemory,
    effects: Effects,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Bench {
    fn new(input: &[u8]) -> Self {
        let script = Script::new([(Cycles(100), input.to_vec())]);
        let heard = script.output.clone();
        let uart = Uart::new(SOURCE, Box::new(script));
        Self {
            uart,
            memory: FlatMemory::default(),
            effects: Effects::default(),
            heard,
        }
    }

    fn at<T>(&mut self, now: u64, act: impl FnOnce(&mut Uart, &mut Context<'_>) -> T) -> T {
        let clock = Clock::new(1_000_000_000, 10_000_000);
        let Self {
            uart,
            memory,
            effects,
            ..
        } = self;
        act(
            uart,
            &mut Context {
                now: Cycles(now),
                clock,
                memory,
                effects,
            },
        )
    }

    fn read(&mut self, offset: u64) -> u8 {
        self.at(200, |uart, context| uart.read(offset, 1, context))
            .expect("a byte") as u8
    }

    fn write(&mut self, offset: u64, value: u8) {
        self.at(200, |uart, context| {
            uart.write(offset, 1, value.into(), context)
        })
        .expect("a byte");
    }

    fn line(&self) -> bool {
        self.effects
            .lines
            .last()
            .is_some_and(|&LineChange { level, .. }| level)
    }
}

#[test]
fn instant_characters_leave_the_transmitter_empty() {
    let mut bench = Bench::new(b"");
    for &byte in b"hi" {
        let empty = LINE_HOLDING_EMPTY | LINE_TRANSMITTER_EMPTY;
        assert_eq!(bench.read(5) & empty, empty);
        bench.write(0, byte);
    }
    assert_eq!(*bench.heard.lock().expect("one thread"), *b"hi");
}

/// 8.3, 8.4, 8.6: the FIFO fills while a character is on the line, and its emptiness interrupts.
#[test]
fn characters_take_their_configured_time() {
    let mut bench = Bench::new(b"");
    bench.uart.set_character_time(Cycles(100));
    bench.write(2, FIFO_ENABLE);
    bench.write(1, ENABLE_TRANSMITTER_EMPTY);
    assert_eq!(
        bench.read(2),
        IDENTITY_TRANSMITTER_EMPTY | IDENTITY_FIFOS_ENABLED
    );
    // One on the line, sixteen in the FIFO, and one more that is lost.
    for byte in 0..18 {
        bench.write(0, byte);
    }
    assert_eq!(
        bench.read(5) & (LINE_HOLDING_EMPTY | LINE_TRANSMITTER_EMPTY),
        0
    );
    assert!(!bench.line());
    // All of this was at 200.
    assert_eq!(
        bench.uart.next_event(),
        Some(Cycles(0)),
        "input is looked for"
    );
    bench.at(299, |uart, context| uart.tick(context));
    assert!(bench.heard.lock().expect("one thread").is_empty());
    bench.at(300, |uart, context| uart.tick(context));
    assert_eq!(*bench.heard.lock().expect("one thread"), [0]);
    bench.at(200 + 16 * 100, |uart, context| uart.tick(context));
    assert!(bench.line(), "the FIFO is empty");
    let status = bench.at(200 + 16 * 100, |uart, context| uart.read(5, 1, context));
    let status = status.expect("a byte") as u8;
    assert_eq!(
        status & (LINE_HOLDING_EMPTY | LINE_TRANSMITTER_EMPTY),
        LINE_HOLDING_EMPTY
    );
    let status = bench.at(200 + 17 * 100, |uart, context| uart.read(5, 1, context));
    let status = status.expect("a byte") as u8;
    assert_eq!(status & LINE_TRANSMITTER_EMPTY, LINE_TRANSMITTER_EMPTY);
    let all: Vec<u8> = (0..17).collect();
    assert_eq!(*bench.heard.lock().expect("one thread"), all);
}

/// 8.6: the transmitter-empty interrupt is gone once it was identified, and comes back with
/// the next character.
#[test]
fn identification_clears_the_transmitter_interrupt() {
    let mut bench = Bench::new(b"");
    assert_eq!(bench.read(2), IDENTITY_NONE);
    bench.write(1, ENABLE_TRANSMITTER_EMPTY);
    assert!(bench.line());
    assert_eq!(bench.read(2), IDENTITY_TRANSMITTER_EMPTY);
    assert_eq!((bench.read(2), bench.line()), (IDENTITY_NONE, false));
    bench.write(0, b'x');
    assert!(bench.line());
}

/// 8.4, 8.6: received data at the trigger level, a time-out below it, both gone when read.
#[test]
fn received_characters_interrupt() {
    let mut bench = Bench::new(b"abcde");
    bench.write(2, FIFO_ENABLE | 1 << 6);
    bench.write(1, ENABLE_RECEIVED);
    assert_eq!(bench.uart.next_event(), Some(Cycles(0)));
    bench.at(50, |uart, context| uart.tick(context));
    assert!(!bench.line(), "nothing before its time");
    bench.at(2_000_000, |uart, context| uart.tick(context));
    assert_eq!(bench.read(2), IDENTITY_RECEIVED | IDENTITY_FIFOS_ENABLED);
    assert_eq!((bench.read(0), bench.read(0)), (b'a', b'b'));
    assert_eq!(
        bench.read(2),
        IDENTITY_TIME_OUT | IDENTITY_FIFOS_ENABLED,
        "three are below four"
    );
    assert_eq!([bench.read(0), bench.read(0)], *b"cd");
    assert_eq!(bench.read(5) & LINE_DATA_READY, LINE_DATA_READY);
    assert_eq!(bench.read(0), b'e');
    assert_eq!((bench.read(5) & LINE_DATA_READY, bench.line()), (0, false));
}

/// The FIFO holds sixteen characters; the others wait on the line and none is lost.
#[test]
fn the_line_waits_for_room() {
    let long: Vec<u8> = (0..100).collect();
    let mut bench = Bench::new(&long);
    bench.write(2, FIFO_ENABLE);
    bench.at(2_000_000, |uart, context| uart.tick(context));
    let mut got = Vec::new();
    while bench.read(5) & LINE_DATA_READY != 0 {
        got.push(bench.read(0));
    }
    assert_eq!(got, long);
    assert_eq!(bench.read(5) & LINE_OVERRUN, 0);
}

/// 8.7: the loopback that drivers find the chip by.
#[test]
fn loopback_connects_outputs_to_inputs() {
    let mut bench = Bench::new(b"");
    for (control, status) in [
        (0, 0),
        (1, 0x20),
        (2, 0x10),
        (4, 0x40),
        (8, 0x80),
        (15, 0xf0),
    ] {
        bench.write(4, MODEM_LOOP | control);
        assert_eq!(bench.read(6), status, "modem control {control:#x}");
    }
    bench.write(0, 0x5a);
    assert_eq!(bench.read(0), 0x5a);
    assert!(bench.heard.lock().expect("one thread").is_empty());
    bench.write(0, 1);
    bench.write(0, 2);
    assert_eq!(
        bench.read(5) & LINE_OVERRUN,
        LINE_OVERRUN,
        "no FIFO, no room"
    );
}

/// 8.1, 8.2: the divisor latch hides behind two registers; the others keep what they hold.
#[test]
fn registers_hold_what_was_written() {
    let mut bench = Bench::new(b"");
    bench.write(1, 0xff);
    bench.write(7, 0xa5);
    bench.write(3, DIVISOR_ACCESS | 3);
    bench.write(0, 0x34);
    bench.write(1, 0x12);
    assert_eq!(
        [bench.read(0), bench.read(1), bench.read(3)],
        [0x34, 0x12, 0x83]
    );
    bench.write(3, 3);
    assert_eq!([bench.read(1), bench.read(7)], [ENABLE_ALL, 0xa5]);
}
