//! The network device (virtio 1.2, §5.1).

use std::collections::VecDeque;

use riscv::virtio::NETWORK_DEVICE;
use riscv::virtio::network::feature::{MAC, STATUS};
use riscv::virtio::network::{HEADER_BYTES, LINK_UP, RECEIVE_QUEUE, TRANSMIT_QUEUE};
use serde::{Deserialize, Serialize};

use super::model::{Io, Model};
use super::queue::{Broken, Chain};
use super::service::{Fate, Faults, Service, Station, Statistics};
use crate::base::Cycles;
use crate::device::network::{MacAddress, PortId};

const QUEUE_SIZE: u16 = 256;

/// Where num_buffers is.
const BUFFERS: usize = 10;
/// The longest frame, without its check sequence: 1500 bytes, addresses, type and a VLAN tag.
const LONGEST_FRAME: u64 = 1518;
/// Frames that wait for receive buffers; more are dropped.
const BACKLOG: usize = 256;

/// A network device.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Net {
    port: PortId,
    mac: MacAddress,
    waiting: VecDeque<Vec<u8>>,
    dropped: u64,
    station: Station<(Chain, Fate)>,
}

impl Net {
    /// A device on `port` of the machine's switch. The service time is the line's.
    #[must_use]
    pub fn new(port: PortId, mac: MacAddress, service: Service, faults: Faults, seed: u64) -> Self {
        Self {
            port,
            mac,
            waiting: VecDeque::new(),
            dropped: 0,
            station: Station::new(service, faults, seed),
        }
    }

    /// The port of the switch.
    #[must_use]
    pub const fn port(&self) -> PortId {
        self.port
    }

    /// Frames that found no room.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// A frame arrives from the switch; it is handed over at the next tick.
    pub fn arrive(&mut self, frame: Vec<u8>) {
        if self.waiting.len() < BACKLOG {
            self.waiting.push_back(frame);
        } else {
            self.dropped += 1;
        }
    }

    fn hand_over(&mut self, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        while let Some(frame) = self.waiting.front() {
            let Some(chain) = io.pop(RECEIVE_QUEUE)? else {
                break;
            };
            let mut packet = vec![0; HEADER_BYTES];
            packet[BUFFERS] = 1;
            packet.extend_from_slice(frame);
            // A buffer that is too small for the frame gets nothing: the frame is lost.
            let fits = chain.writable_length() >= packet.len() as u64;
            if fits {
                chain.write(0, &packet, io.context.memory)?;
            } else {
                self.dropped += 1;
            }
            self.waiting.pop_front();
            let written = if fits { packet.len() as u64 } else { 0 };
            io.push(
                RECEIVE_QUEUE,
                &chain,
                written,
                super::service::Interrupt::Prompt,
            )?;
        }
        Ok(())
    }

    fn complete(&mut self, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        while let Some((chain, fate)) = self.station.end(io.context.now) {
            let length = chain.readable_length().saturating_sub(HEADER_BYTES as u64);
            if (1..=LONGEST_FRAME).contains(&length) && !fate.fails {
                let length = if fate.short { length / 2 } else { length };
                let mut frame = vec![0; length as usize];
                chain.read(HEADER_BYTES as u64, &mut frame, io.context.memory)?;
                io.context.effects.frames.push((self.port, frame));
            } else {
                self.station.count_error();
            }
            io.push(TRANSMIT_QUEUE, &chain, 0, fate.interrupt)?;
        }
        Ok(())
    }
}

impl Model for Net {
    fn device_id(&self) -> u32 {
        NETWORK_DEVICE
    }

    fn features(&self) -> u64 {
        MAC | STATUS
    }

    fn queue_sizes(&self) -> Vec<u16> {
        vec![QUEUE_SIZE; 2]
    }

    fn configuration(&self) -> Vec<u8> {
        let mut bytes = self.mac.0.to_vec();
        bytes.extend_from_slice(&LINK_UP.to_le_bytes());
        bytes
    }

    fn reset(&mut self) {
        self.station.clear();
        self.waiting.clear();
    }

    fn notify(&mut self, queue: u16, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        if queue == TRANSMIT_QUEUE {
            for _ in 0..io.budget(queue) {
                let Some(chain) = io.pop(queue)? else { break };
                let clock = io.context.clock;
                let fate = self.station.fate(&clock);
                let bytes = chain.readable_length().min(LONGEST_FRAME);
                let translation = io.translate(&chain);
                self.station.delay(translation);
                self.station
                    .begin(io.context.now, &clock, bytes, None, (chain, fate));
            }
        }
        self.tick(io)
    }

    fn tick(&mut self, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        self.hand_over(io)?;
        self.complete(io)
    }

    fn next_event(&self) -> Option<Cycles> {
        self.station.next_event()
    }

    fn reseed(&mut self, seed: u64) {
        self.station.reseed(seed);
    }

    fn statistics(&self) -> Statistics {
        self.station.statistics()
    }
}
