//! A script that speaks gdb's remote serial protocol.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;

use super::serve;
use crate::base::{Memory, VectorLength};
use crate::machine::{Config, Limit, Machine};

const RAM: u64 = 0x8000_0000;

/// Two harts count in one place for ever.
const PROGRAM: [u32; 6] = [
    0x0000_1297, // auipc x5, 1
    0x0002_8313, // addi x6, x5, 0
    0x0002_b383, // ld x7, 0(x5)
    0x0013_8393, // addi x7, x7, 1
    0x0072_b023, // sd x7, 0(x5)
    0xff5f_f06f, // jal x0, -12
];
const STORE: u64 = RAM + 16;

fn machine() -> Machine {
    machine_with(VectorLength::NONE)
}

fn machine_with(vectors: VectorLength) -> Machine {
    let mut config = Config::default();
    config.board.harts = 2;
    config.board.isa.set_vector_length(vectors);
    config.board.memory = 4 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    for (place, word) in (0..).zip(PROGRAM) {
        let bytes = u32::to_le_bytes(word);
        let stored = machine.system.memory.store(RAM + 4 * place, &bytes);
        stored.expect("RAM");
    }
    for hart in &mut machine.harts {
        hart.pc = RAM;
    }
    machine
}

/// gdb's end.
struct Client(TcpStream);

impl Client {
    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.0.read_exact(&mut byte).expect("an answer");
        byte[0]
    }

    fn send(&mut self, packet: &str) {
        let sum = packet
            .bytes()
            .fold(0_u8, |sum, byte| sum.wrapping_add(byte));
        let framed = format!("${packet}#{sum:02x}");
        self.0.write_all(framed.as_bytes()).expect("sent");
    }

    fn answer(&mut self) -> String {
        while self.byte() != b'$' {}
        let mut text = String::new();
        loop {
            match self.byte() {
                b'#' => break,
                // Run-length encoding: how often the last character comes again, plus 29.
                b'*' => {
                    let again = usize::from(self.byte() - 29);
                    let last = text.chars().last().expect("a character before");
                    text.extend(std::iter::repeat_n(last, again));
                }
                byte => text.push(char::from(byte)),
            }
        }
        let _checksum = [self.byte(), self.byte()];
        self.0.write_all(b"+").expect("sent");
        text
    }

    fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.answer()
    }

    /// A register of the present thread.
    fn register(&mut self, number: u32) -> u64 {
        let text = self.ask(&format!("p{number:x}"));
        let value = u64::from_str_radix(&text, 16).unwrap_or_else(|_| panic!("`{text}`"));
        value.swap_bytes()
    }

    fn doubleword(&mut self, address: u64) -> u64 {
        let text = self.ask(&format!("m{address:x},8"));
        let value = u64::from_str_radix(&text, 16).unwrap_or_else(|_| panic!("`{text}`"));
        value.swap_bytes()
    }
}

const PC: u32 = 32;
const MHARTID: u32 = 65 + 0xf14;

#[test]
fn gdb_sees_and_steers_the_harts() {
    let (sender, receiver) = channel();
    let session = std::thread::spawn(move || {
        let mut machine = machine();
        let ready = |port| sender.send(port).expect("somebody listens");
        let stop = serve(&mut machine, 0, Limit::default(), ready);
        (stop, machine)
    });
    let port = receiver.recv().expect("a port");
    let mut gdb = Client(TcpStream::connect(("127.0.0.1", port)).expect("connected"));
    assert!(
        gdb.ask("qSupported:swbreak+")
            .contains("qXfer:features:read+")
    );
    let description = gdb.ask("qXfer:features:read:target.xml:0,ffb");
    assert!(description.contains("riscv:rv64"), "{description}");
    assert_eq!(gdb.ask("qfThreadInfo").matches(',').count(), 1);
    assert_eq!(gdb.ask("Hg1"), "OK");
    assert_eq!(gdb.register(PC), RAM);

    assert_eq!(gdb.ask(&format!("Z0,{STORE:x},4")), "OK");
    assert!(gdb.ask("vCont;c").starts_with("T05"));
    assert_eq!((gdb.register(PC), gdb.register(7)), (STORE, 1));
    assert_eq!(gdb.doubleword(RAM + 0x1000), 0);
    assert_eq!(gdb.ask(&format!("z0,{STORE:x},4")), "OK");

    assert!(gdb.ask("vCont;s:1").starts_with("T05"));
    assert_eq!(gdb.register(PC), STORE + 4);
    assert_eq!(gdb.doubleword(RAM + 0x1000), 1);
    assert!(gdb.ask("vCont;s:1").starts_with("T05"));
    assert_eq!(gdb.register(PC), RAM + 8);

    assert_eq!(gdb.ask("P7=efcdab0000000000"), "OK");
    assert_eq!(gdb.register(7), 0x00ab_cdef);
    let write = format!("M{:x},8:7700000000000000", RAM + 0x1000);
    assert_eq!(gdb.ask(&write), "OK");
    assert_eq!(gdb.doubleword(RAM + 0x1000), 0x77);
    assert!(gdb.ask("m1000,8").starts_with('E'), "no memory there");

    assert_eq!(gdb.ask("Hg2"), "OK");
    assert_eq!(gdb.register(MHARTID), 1);
    assert_eq!(gdb.register(PC), RAM, "the second hart's turn has not come");

    gdb.send("vCont;c");
    gdb.0.write_all(&[3]).expect("interrupted");
    let answer = gdb.answer();
    assert_eq!(answer.get(1..3), Some("02"), "{answer}");
    assert!((RAM..RAM + 24).contains(&gdb.register(PC)));
    gdb.send("k");
    let (stop, machine) = session.join().expect("the session ends");
    assert!(matches!(stop, Ok(None)), "{stop:?}");
    assert!(machine.retired() >= 6);
}

#[test]
fn vector_registers_have_their_length() {
    let (sender, receiver) = channel();
    let session = std::thread::spawn(move || {
        let mut machine = machine_with(VectorLength::new(128).expect("a length"));
        machine.harts[0].vector.register_mut(31)[0] = 0x5a;
        let ready = |port| sender.send(port).expect("somebody listens");
        serve(&mut machine, 0, Limit::default(), ready).expect("a session");
    });
    let port = receiver.recv().expect("a port");
    let mut gdb = Client(TcpStream::connect(("127.0.0.1", port)).expect("connected"));
    assert!(gdb.ask("qSupported:swbreak+").contains("read+"));
    let mut description = String::new();
    while !description.contains("</target>") {
        let from = description.len();
        let part = gdb.ask(&format!("qXfer:features:read:target.xml:{from:x},800"));
        description.push_str(&part[1..]);
    }
    let last = "name=\"v31\" bitsize=\"128\" type=\"riscv_vector\" regnum=\"4193\"";
    assert!(description.contains(last), "{description}");
    assert_eq!(gdb.ask("Hg1"), "OK");
    assert_eq!(gdb.ask("p1061"), format!("5a{}", "0".repeat(30)));
    assert_eq!(gdb.ask(&format!("P1061={}", "01".repeat(16))), "OK");
    assert_eq!(gdb.ask("p1061"), "01".repeat(16));
    gdb.send("k");
    session.join().expect("the session ends");
}

/// One hart is let go on by name and the other is not: as gdb asks for it after a breakpoint with its scheduler locked.
#[test]
fn named_harts_go_on_alone() {
    let (sender, receiver) = channel();
    let session = std::thread::spawn(move || {
        let mut machine = machine();
        let ready = |port| sender.send(port).expect("somebody listens");
        serve(&mut machine, 0, Limit::default(), ready).expect("a session");
    });
    let port = receiver.recv().expect("a port");
    let mut gdb = Client(TcpStream::connect(("127.0.0.1", port)).expect("connected"));
    let limit = std::time::Duration::from_secs(60);
    gdb.0.set_read_timeout(Some(limit)).expect("a limit");
    assert!(
        gdb.ask("qSupported:multiprocess+;swbreak+")
            .contains("multiprocess+")
    );
    assert_eq!(gdb.ask(&format!("Z0,{STORE:x},4")), "OK");
    assert!(gdb.ask("vCont;c").starts_with("T05"));
    assert_eq!(gdb.ask("Hgp1.2"), "OK");
    let other = gdb.register(PC);
    for turns in 2..5 {
        assert!(gdb.ask("vCont;c:p1.1").starts_with("T05"));
        assert_eq!(gdb.ask("Hgp1.1"), "OK");
        assert_eq!((gdb.register(PC), gdb.register(7)), (STORE, turns));
        assert_eq!(gdb.ask("Hgp1.2"), "OK");
        assert_eq!(gdb.register(PC), other, "the other hart has moved");
    }
    // Without a name both go on again.
    assert_eq!(gdb.ask(&format!("z0,{STORE:x},4")), "OK");
    assert!(gdb.ask("vCont;s:p1.2").starts_with("T05"));
    assert_eq!(gdb.ask("Hgp1.2"), "OK");
    assert_ne!(gdb.register(PC), other);
    gdb.send("k");
    session.join().expect("the session ends");
}

/// With a debugger that only looks, a run is what it is without.
#[test]
fn looking_changes_nothing() {
    let cycles = 1_000_000;
    let mut alone = machine();
    let limit = Limit {
        instructions: None,
        cycles: Some(cycles),
    };
    alone.run(limit);
    let (sender, receiver) = channel();
    let session = std::thread::spawn(move || {
        let mut machine = machine();
        let ready = |port| sender.send(port).expect("somebody listens");
        serve(&mut machine, 0, limit, ready).expect("a session");
        machine
    });
    let port = receiver.recv().expect("a port");
    let mut gdb = Client(TcpStream::connect(("127.0.0.1", port)).expect("connected"));
    assert_eq!(gdb.ask("Hg1"), "OK");
    assert_eq!(gdb.doubleword(RAM + 0x1000), 0);
    assert_eq!(gdb.register(PC), RAM);
    assert_eq!(gdb.ask("D"), "OK");
    let machine = session.join().expect("the session ends");
    assert_eq!(machine.report(), alone.report());
}
