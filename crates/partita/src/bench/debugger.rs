//! A client of QEMU's debug server (GDB's remote serial protocol): breakpoints, and reading registers while the
//! machine stands still.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// The part of the description of registers that has the CSRs, and that which has the others.
const DESCRIPTIONS: [&str; 2] = ["riscv-csr.xml", "riscv-64bit-cpu.xml"];
/// Bytes asked for in one piece of a description; the server's packets hold more.
const PIECE: usize = 0x800;

/// Why the debug server could not be used.
#[derive(Debug, thiserror::Error)]
pub enum DebugError {
    /// The connection.
    #[error("QEMU's debug server: {0}")]
    Connection(#[from] io::Error),
    /// The machine ended.
    #[error("the machine ended before it came to the next mark")]
    Ended,
    /// An answer that is none.
    #[error("QEMU's debug server answered '{answer}' to '{request}'")]
    Answer {
        /// Request.
        request: String,
        /// Reply.
        answer: String,
    },
    /// A register that the machine does not have.
    #[error("the machine has no register {0}")]
    NoRegister(&'static str),
}

/// A connection. The machine stands still except within [`Debugger::go`] and [`Debugger::step`].
#[derive(Debug)]
pub struct Debugger {
    stream: UnixStream,
    received: Vec<u8>,
    registers: BTreeMap<String, u64>,
}

impl Debugger {
    /// Connects to the server at `socket`; `patience` is how long the machine may run between two stops.
    ///
    /// # Errors
    /// There is no server, or it does not describe its registers.
    pub fn connect(socket: &Path, patience: Duration) -> Result<Self, DebugError> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(patience))?;
        let mut debugger = Self {
            stream,
            received: Vec::new(),
            registers: BTreeMap::new(),
        };
        debugger.ask("qSupported:xmlRegisters=riscv")?;
        for name in DESCRIPTIONS {
            let text = debugger.description(name)?;
            debugger.registers.extend(register_numbers(&text));
        }
        Ok(debugger)
    }

    /// Makes the machine stop before it executes the instruction at a virtual address, in whatever mode.
    ///
    /// # Errors
    /// The server's.
    pub fn break_at(&mut self, address: u64) -> Result<(), DebugError> {
        self.order(&format!("Z0,{address:x},2"))
    }

    /// Takes a breakpoint away.
    ///
    /// # Errors
    /// The server's.
    pub fn forget(&mut self, address: u64) -> Result<(), DebugError> {
        self.order(&format!("z0,{address:x},2"))
    }

    /// Lets the machine run to the next breakpoint.
    ///
    /// # Errors
    /// The machine ended, or ran for too long.
    pub fn go(&mut self) -> Result<(), DebugError> {
        self.resume("c")
    }

    /// Lets the machine execute one instruction.
    ///
    /// # Errors
    /// The machine ended.
    pub fn step(&mut self) -> Result<(), DebugError> {
        self.resume("s")
    }

    /// A register of the hart, by its name in the specification.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn read(&mut self, name: &'static str) -> Result<u64, DebugError> {
        let number = *self
            .registers
            .get(name)
            .ok_or(DebugError::NoRegister(name))?;
        let request = format!("p{number:x}");
        let answer = self.ask(&request)?;
        parse_little_endian(&answer).ok_or(DebugError::Answer { request, answer })
    }

    /// Sets a register of the hart.
    ///
    /// # Errors
    /// There is none of that name, or it cannot be set.
    pub fn write(&mut self, name: &'static str, value: u64) -> Result<(), DebugError> {
        let number = *self
            .registers
            .get(name)
            .ok_or(DebugError::NoRegister(name))?;
        self.order(&format!("P{number:x}={:016x}", value.swap_bytes()))
    }

    fn order(&mut self, request: &str) -> Result<(), DebugError> {
        let answer = self.ask(request)?;
        match answer.as_str() {
            "OK" => Ok(()),
            _ => Err(DebugError::Answer {
                request: String::from(request),
                answer,
            }),
        }
    }

    fn resume(&mut self, request: &str) -> Result<(), DebugError> {
        let answer = self.ask(request)?;
        match answer.chars().next() {
            Some('T' | 'S') => Ok(()),
            Some('W' | 'X') => Err(DebugError::Ended),
            _ => Err(DebugError::Answer {
                request: String::from(request),
                answer,
            }),
        }
    }

    fn description(&mut self, name: &str) -> Result<String, DebugError> {
        let mut text = String::new();
        loop {
            let request = format!("qXfer:features:read:{name}:{:x},{PIECE:x}", text.len());
            let answer = self.ask(&request)?;
            match (answer.get(..1), answer.get(1..)) {
                (Some("m"), Some(piece)) => text += piece,
                (Some("l"), Some(piece)) => return Ok(text + piece),
                _ => return Err(DebugError::Answer { request, answer }),
            }
        }
    }

    fn ask(&mut self, request: &str) -> Result<String, DebugError> {
        write!(self.stream, "${request}#{:02x}", checksum(request))?;
        loop {
            if let Some((answer, length)) = packet(&self.received) {
                self.received.drain(..length);
                self.stream.write_all(b"+")?;
                return Ok(answer);
            }
            let mut buffer = [0; 4096];
            let length = self.stream.read(&mut buffer)?;
            if length == 0 {
                return Err(DebugError::Ended);
            }
            self.received
                .extend_from_slice(buffer.get(..length).unwrap_or_default());
        }
    }
}

/// The sum of a packet's bytes, modulo 256.
fn checksum(text: &str) -> u8 {
    text.bytes().fold(0, u8::wrapping_add)
}

/// The first whole packet, and how many bytes it and what stands before it take.
fn packet(received: &[u8]) -> Option<(String, usize)> {
    /// The mark `#` and two digits of the checksum.
    const END: usize = 3;
    let start = received.iter().position(|byte| *byte == b'$')? + 1;
    let length = received
        .get(start..)?
        .iter()
        .position(|byte| *byte == b'#')?;
    let text = received.get(start..start + length)?;
    let whole = start + length + END;
    (whole <= received.len()).then(|| (String::from_utf8_lossy(text).into_owned(), whole))
}

/// The registers' numbers by name, out of a description in XML, each of whose registers is one element `reg`. One
/// without a number has that after the register before it (GDB's "Target Description Format").
fn register_numbers(text: &str) -> impl Iterator<Item = (String, u64)> {
    let mut next = 0;
    text.split("<reg ").skip(1).filter_map(move |element| {
        let element = element.split_once('>')?.0;
        let attribute = |name: &str| {
            let rest = element.split_once(&format!("{name}=\""))?.1;
            Some(rest.split_once('"')?.0)
        };
        let given = attribute("regnum").and_then(|number| number.parse().ok());
        let number: u64 = given.unwrap_or(next);
        next = number.wrapping_add(1);
        Some((String::from(attribute("name")?), number))
    })
}

/// A register's value from its bytes, in hexadecimal and in the machine's order.
fn parse_little_endian(text: &str) -> Option<u64> {
    let digits = text.as_bytes().chunks_exact(2);
    if text.is_empty() || text.len() > 16 || !digits.remainder().is_empty() {
        return None;
    }
    digits.rev().try_fold(0, |value: u64, pair| {
        let byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        Some(value << 8 | u64::from(byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_cut_out_of_what_comes() {
        assert_eq!(packet(b"+$OK#9a"), Some((String::from("OK"), 7)));
        assert_eq!(packet(b"+$OK#9"), None);
        assert_eq!(packet(b"+"), None);
        assert_eq!(checksum("OK"), 0x9a);
    }

    #[test]
    fn registers_are_little_endian() {
        assert_eq!(parse_little_endian("0102"), Some(0x0201));
        assert_eq!(parse_little_endian("ffffffffffffffff"), Some(u64::MAX));
        for wrong in ["", "1", "zz", "E01", "000000000000000000"] {
            assert_eq!(parse_little_endian(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn descriptions_name_registers() {
        let text = r#"<feature><reg name="zero"/><reg name="ra" type="x"/><reg regnum="7" name="a"/></feature>"#;
        let found: Vec<_> = register_numbers(text).collect();
        let expected = [("zero", 0), ("ra", 1), ("a", 7)];
        assert_eq!(
            found,
            expected.map(|(name, number)| (String::from(name), number))
        );
    }
}
