//! The entropy device (virtio 1.2, §5.4), whose bytes follow from a seed.

use serde::{Deserialize, Serialize};

use super::model::{Io, Model};
use super::queue::{Broken, Chain};
use super::service::{Fate, Faults, Service, Station, Statistics};
use crate::base::Cycles;
use crate::base::Random;

const QUEUE_SIZE: u16 = 8;
/// Most bytes that a request gets: the device may fill a buffer in part.
const MAX_BYTES: u64 = 4096;

/// An entropy device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entropy {
    random: Random,
    station: Station<(Chain, Fate)>,
}

impl Entropy {
    /// A device whose bytes and times follow from `seed`.
    #[must_use]
    pub fn new(service: Service, faults: Faults, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let station = Station::new(service, faults, random.next());
        Self { random, station }
    }

    fn complete(&mut self, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        while let Some((chain, fate)) = self.station.end(io.context.now) {
            let length = chain.writable_length().min(MAX_BYTES);
            // There is no status: a failed request gives nothing.
            let length = match fate {
                Fate { fails: true, .. } => 0,
                Fate { short: true, .. } => length / 2,
                _ => length,
            };
            let words = core::iter::repeat_with(|| self.random.next().to_le_bytes());
            let bytes: Vec<u8> = words.flatten().take(length as usize).collect();
            chain.write(0, &bytes, io.context.memory)?;
            io.push(0, &chain, length, fate.interrupt)?;
        }
        Ok(())
    }
}

impl Model for Entropy {
    fn device_id(&self) -> u32 {
        riscv::virtio::ENTROPY_DEVICE
    }

    fn features(&self) -> u64 {
        0
    }

    fn queue_sizes(&self) -> Vec<u16> {
        vec![QUEUE_SIZE]
    }

    fn configuration(&self) -> Vec<u8> {
        Vec::new()
    }

    fn reset(&mut self) {
        self.station.clear();
    }

    fn notify(&mut self, queue: u16, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        for _ in 0..io.budget(queue) {
            let Some(chain) = io.pop(queue)? else { break };
            let clock = io.context.clock;
            let fate = self.station.fate(&clock);
            let bytes = chain.writable_length().min(MAX_BYTES);
            self.station
                .begin(io.context.now, &clock, bytes, None, (chain, fate));
        }
        self.complete(io)
    }

    fn tick(&mut self, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        self.complete(io)
    }

    fn next_event(&self) -> Option<Cycles> {
        self.station.next_event()
    }

    fn reseed(&mut self, seed: u64) {
        self.random = Random::new(seed);
        self.station.reseed(self.random.next());
    }

    fn statistics(&self) -> Statistics {
        self.station.statistics()
    }
}
