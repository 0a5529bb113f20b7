//! Checkpoints: the whole computer in one file, to be continued later, elsewhere, many times.
//!
//! A checkpoint is taken between two quanta. It holds everything that the future of a run depends
//! on: configuration, harts, memory, devices with the requests in flight, the timing models in the
//! timing mode, and what the host keeps to be fast, because when a translation is looked up
//! again shows in the monitor's figures and in accessed bits. So a run through a checkpoint is the
//! run without one, to the last digit. It does not hold the files behind disks (only a hash of
//! their contents, see [`Machine::attach_disk`]) nor the host's ends of consoles.
//!
//! [`container`] is the file around it, [`memory`] the pages of RAM, [`state`] the rest.

mod container;
mod disk;
mod error;
mod memory;
mod point;
mod profile;
mod seed;
mod state;
#[cfg(test)]
mod tests;

pub use crate::device::{Marker, Watched};
pub use disk::DiskMismatch;
pub use error::CheckpointError;
pub use point::{Point, PointError};
pub use profile::ProfileMismatch;
pub use seed::START_PHASE_NANOSECONDS;

use std::fs::File;
use std::io::Write;

use crate::machine::Machine;
use crate::ram::Pages;
use container::{Reader, Writer};
use state::State;

impl Machine {
    /// Writes a checkpoint. The machine is the same after it.
    ///
    /// # Errors
    /// [`CheckpointError::Write`] and [`CheckpointError::Disk`].
    pub fn checkpoint(&mut self, file: impl Write) -> Result<(), CheckpointError> {
        let state = State::of(self)?;
        let mut writer = Writer::new(file)?;
        writer.state(&state)?;
        memory::write(&self.system().memory.ram, &mut writer)?;
        writer.finish()?;
        Ok(())
    }

    /// The machine that a checkpoint holds, in the mode in which it was written. Its consoles are
    /// silent and its disks missing until [`Machine::attach_disk`] and the like give it some.
    ///
    /// # Errors
    /// What is wrong with the file, or why the host cannot have such a machine.
    pub fn restore(file: &[u8]) -> Result<Self, CheckpointError> {
        Self::restore_from(file, None)
    }

    /// As [`Machine::restore`], from a file whose pages the machine's memory shares until it writes them: the machine
    /// begins sooner, and costs the host only what it changes. Nobody may write to the file as long as the machine
    /// exists; to put another file in its place does no harm.
    ///
    /// # Errors
    /// As [`Machine::restore`].
    pub fn restore_file(file: &File) -> Result<Self, CheckpointError> {
        let empty = file.metadata().is_ok_and(|file| file.len() == 0);
        if empty {
            return Err(CheckpointError::Foreign);
        }
        let pages = Pages::of_file(file).map_err(CheckpointError::Read)?;
        Self::restore_from(pages.bytes(), Some(file))
    }

    fn restore_from(bytes: &[u8], file: Option<&File>) -> Result<Self, CheckpointError> {
        let mut reader = Reader::new(bytes)?;
        let state: State = reader.state()?;
        let mut machine = state.machine()?;
        let ram = &mut machine.system_mut().memory.ram;
        memory::read(ram, reader.remaining(), file)?;
        state.finish(&mut machine)?;
        Ok(machine)
    }
}
