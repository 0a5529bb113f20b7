//! Everything in a checkpoint but the bytes of RAM.

use serde::{Deserialize, Serialize};

use super::disk::identities;
use super::error::CheckpointError;
use crate::board::BoardConfig;
use crate::code::BlockLimit;
use crate::device::{Devices, DevicesConfig};
use crate::hart::SavedHart;
use crate::machine::{Config, DiskIdentity, HostInterface, Machine};
use crate::memory::SavedMemory;
use crate::system::Limits;
use crate::timing::{Profile, Timing};
use crate::trace::locks::Holders;

/// The state of a machine.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    board: BoardConfig,
    quantum: u64,
    fast_turns: u64,
    limits: Limits,
    blocks: BlockLimit,
    now: u64,
    first: u32,
    host: HostInterface,
    harts: Vec<SavedHart>,
    memory: SavedMemory,
    devices: Vec<u8>,
    disks: Vec<DiskIdentity>,
    timing: Option<(Profile, Timing)>,
    holders: Holders,
}

impl State {
    pub fn of(machine: &mut Machine) -> Result<Self, CheckpointError> {
        let disks = identities(&mut machine.system.devices)?;
        let (config, system) = (&machine.config, &machine.system);
        let devices = postcard::to_stdvec(&system.devices).map_err(std::io::Error::other)?;
        let timing = system.timing.as_deref().cloned();
        Ok(Self {
            board: config.board.clone(),
            quantum: config.quantum,
            fast_turns: config.fast_turns,
            limits: config.limits,
            blocks: config.blocks,
            now: machine.now,
            first: u32::try_from(machine.first).unwrap_or(0),
            host: machine.host.clone(),
            harts: machine
                .harts
                .iter()
                .map(|hart| hart.save(&system.memory))
                .collect(),
            memory: system.memory.save(),
            devices,
            disks,
            timing: machine.profile.clone().zip(timing),
            holders: system.holders.clone(),
        })
    }

    /// A machine of this make-up, with nothing in memory.
    pub fn machine(&self) -> Result<Machine, CheckpointError> {
        let config = Config {
            board: self.board.clone(),
            quantum: self.quantum,
            fast_turns: self.fast_turns,
            limits: self.limits,
            blocks: self.blocks,
        };
        if self.harts.len() != config.board.harts as usize {
            return Err(CheckpointError::Impossible("the number of harts"));
        }
        Ok(Machine::new(config)?)
    }

    /// Puts everything in place, once RAM holds what it held.
    pub fn finish(self, machine: &mut Machine) -> Result<(), CheckpointError> {
        let impossible = CheckpointError::Impossible;
        machine.now = self.now;
        machine.first = self.first as usize;
        if machine.first >= machine.harts.len() {
            return Err(impossible("the hart whose turn it is"));
        }
        machine.host = self.host;
        let memory = &mut machine.system.memory;
        memory
            .restore(self.memory)
            .ok_or(impossible("decoded instructions that memory does not hold"))?;
        for (hart, saved) in machine.harts.iter_mut().zip(self.harts) {
            hart.restore(saved, memory)
                .ok_or(impossible("a hart's translations or vector registers"))?;
        }
        machine.system.holders = self.holders;
        machine.system.observe_locks();
        let devices: Devices = postcard::from_bytes(&self.devices)
            .map_err(|_| impossible("the devices cannot be read"))?;
        if *devices.config() != DevicesConfig::of(&self.board) {
            return Err(impossible("devices of another board"));
        }
        machine.system.devices = devices;
        machine.missing_disks = self.disks;
        if let Some((profile, timing)) = self.timing {
            profile
                .check()
                .map_err(|_| impossible("the timing models' profile"))?;
            if !timing.belongs_to(&profile, machine.harts.len()) {
                return Err(impossible("timing models of another profile"));
            }
            machine.profile = Some(profile);
            machine.system.timing = Some(Box::new(timing));
        }
        Ok(())
    }
}
