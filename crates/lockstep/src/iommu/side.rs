//! The two that are compared: our IOMMU, and the reference model in a process of its own.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use machine::device::iommu::{Access, Iommu, Place, Request};
use machine::device::{Cycles, FlatMemory, Memory};

/// Bytes of memory, from address 0 on; nothing is above.
pub const MEMORY: usize = 4 << 20;

/// Outcome of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is refused.
    Refused,
    /// It goes to this physical address.
    Physical(u64),
    /// It goes to an interrupt file in memory: file, address of the notice, identity of the notice.
    File(u64, u64, u32),
}

impl Outcome {
    /// Without the bits that the model cuts off. Where neither stage translates, those are what an address has above 56 bits; such an access
    /// of ours reaches nothing. Of a file's address in an MSI page table they are the upper nine, which C's rules for shifts of bit-fields
    /// lose.
    #[must_use]
    pub fn without_high_bits(self) -> Self {
        match self {
            Self::Physical(physical) => Self::Physical(physical & ((1 << 56) - 1)),
            Self::File(file, notice, identity) => {
                Self::File(file & ((1 << 47) - 1), notice, identity)
            }
            other @ Self::Refused => other,
        }
    }
}

/// Our IOMMU.
#[derive(Debug)]
pub struct Ours {
    iommu: Iommu,
    memory: FlatMemory,
}

impl Ours {
    /// With these capabilities, and nothing in memory.
    #[must_use]
    pub fn new(capabilities: u64, contexts: usize, entries: usize) -> Self {
        Self {
            iommu: Iommu::with(capabilities, contexts, entries),
            memory: FlatMemory::new(0, MEMORY),
        }
    }

    /// Writes memory.
    ///
    /// # Panics
    /// If there is none.
    pub fn store(&mut self, address: u64, bytes: &[u8]) {
        self.memory.store(address, bytes).expect("memory");
    }

    /// All of memory.
    #[must_use]
    pub fn memory(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// Writes a register.
    ///
    /// # Panics
    /// If there is none.
    pub fn write(&mut self, offset: u16, size: u8, value: u64) {
        self.iommu
            .write_register(offset.into(), size, value, Cycles(0), &mut self.memory)
            .expect("a register");
    }

    /// Reads a register.
    ///
    /// # Panics
    /// If there is none.
    pub fn read(&mut self, offset: u16, size: u8) -> u64 {
        self.iommu
            .read_register(offset.into(), size, Cycles(0), &mut self.memory)
            .expect("a register")
    }

    /// Makes an access.
    pub fn translate(&mut self, request: &Request) -> Outcome {
        match self.iommu.translate(request, &mut self.memory) {
            Err(_) => Outcome::Refused,
            Ok(found) => match found.place {
                Place::Physical(physical) => Outcome::Physical(physical),
                Place::File {
                    file,
                    notice,
                    identity,
                } => Outcome::File(file, notice, identity),
            },
        }
    }
}

/// The reference model. `conformance/iommu/harness.c` says what goes through the pipes.
#[derive(Debug)]
pub struct Model {
    process: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Model {
    /// Starts the program.
    ///
    /// # Errors
    /// The host's.
    pub fn start(program: &Path) -> io::Result<Self> {
        let mut process = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        Ok(Self {
            process,
            input,
            output,
        })
    }

    fn give(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.input.write_all(&parts.concat())
    }

    fn number<const N: usize>(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.output.read_exact(&mut bytes[..N])?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Resets it, with nothing in memory.
    ///
    /// # Errors
    /// The process has ended.
    pub fn reset(&mut self, capabilities: u64) -> io::Result<()> {
        self.give(&[b"R", &capabilities.to_le_bytes()])
    }

    /// Writes memory.
    ///
    /// # Errors
    /// As for [`Model::reset`].
    pub fn store(&mut self, address: u64, bytes: &[u8]) -> io::Result<()> {
        let length = bytes.len() as u32;
        self.give(&[b"M", &address.to_le_bytes(), &length.to_le_bytes(), bytes])
    }

    /// All of memory.
    ///
    /// # Errors
    /// As for [`Model::reset`].
    pub fn memory(&mut self) -> io::Result<Vec<u8>> {
        let length = MEMORY as u32;
        self.give(&[b"L", &0_u64.to_le_bytes(), &length.to_le_bytes()])?;
        let mut bytes = vec![0; MEMORY];
        self.output.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a register.
    ///
    /// # Errors
    /// As for [`Model::reset`].
    pub fn write(&mut self, offset: u16, size: u8, value: u64) -> io::Result<()> {
        self.give(&[
            b"W",
            &offset.to_le_bytes(),
            &[size],
            &value.to_le_bytes(),
            b"C",
        ])
    }

    /// Reads a register.
    ///
    /// # Errors
    /// As for [`Model::reset`].
    pub fn read(&mut self, offset: u16, size: u8) -> io::Result<u64> {
        self.give(&[b"r", &offset.to_le_bytes(), &[size]])?;
        self.number::<8>()
    }

    /// Makes an access.
    ///
    /// # Errors
    /// As for [`Model::reset`].
    pub fn translate(&mut self, request: &Request) -> io::Result<Outcome> {
        let kind = match request.access {
            Access::Execute => 0,
            Access::Read => 1,
            Access::Write => 2,
        };
        let process = request.process;
        let id = process.map_or(0, |process| process.id);
        let privileged = process.is_some_and(|process| process.privileged);
        self.give(&[
            b"T",
            &request.device.to_le_bytes(),
            &[process.is_some().into()],
            &id.to_le_bytes(),
            &[privileged.into(), kind],
            &request.address.to_le_bytes(),
        ])?;
        let refused = self.number::<1>()? != 0;
        let physical = self.number::<8>()?;
        let is_file = self.number::<1>()? != 0;
        let file = self.number::<8>()?;
        let identity = self.number::<4>()? as u32;
        Ok(match (refused, is_file) {
            (true, _) => Outcome::Refused,
            (_, true) => Outcome::File(file, physical & !0xfff, identity),
            _ => Outcome::Physical(physical),
        })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
