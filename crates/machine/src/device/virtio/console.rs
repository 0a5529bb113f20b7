//! The console device with several ports (virtio 1.2, §5.3).

use std::collections::VecDeque;

use riscv::virtio::CONSOLE_DEVICE;
use riscv::virtio::console::feature::{EMERGENCY_WRITE, MULTIPORT};
use riscv::virtio::console::{
    CONTROL_BYTES, CONTROL_RECEIVE_QUEUE, CONTROL_TRANSMIT_QUEUE, EMERGENCY_WRITE_OFFSET, event,
};
use serde::{Deserialize, Serialize};

use super::model::{Io, Model};
use super::queue::{Broken, Chain};
use super::service::{Interrupt, Statistics};
use crate::device::Marker;
use crate::device::{Clock, Console, Cycles, HostConsole};

const QUEUE_SIZE: u16 = 64;
/// Messages that wait for buffers: more than a driver that follows the rules can cause.
const BACKLOG: usize = 256;
/// Most bytes taken from one buffer of output.
const MAX_OUTPUT: u64 = 64 << 10;
/// Most bytes put in one buffer of input.
const MAX_INPUT: u64 = 4096;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Port {
    name: String,
    /// True if it is a console: Linux makes a terminal of it (hvc). Port 0 always is.
    terminal: bool,
    #[serde(skip)]
    console: HostConsole,
    /// The guest has the port open.
    open: bool,
    /// A byte that the console gave and no buffer has taken.
    held: VecDeque<u8>,
    next_input: Option<Cycles>,
}

/// A console device. Its output takes no time.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ports {
    ports: Vec<Port>,
    messages: VecDeque<Vec<u8>>,
    statistics: Statistics,
}

/// The receive queue of a port; its transmit queue is the next one.
const fn receive_queue(port: usize) -> u16 {
    if port == 0 { 0 } else { 2 + 2 * port as u16 }
}

impl Ports {
    /// A device with one port for each name and console; port 0 is the console port.
    #[must_use]
    pub fn new(ports: Vec<(String, Box<dyn Console>)>) -> Self {
        let port = |(name, console)| Port {
            name,
            console: HostConsole(console),
            next_input: Some(Cycles(0)),
            ..Port::default()
        };
        Self {
            ports: ports.into_iter().take(31).map(port).collect(),
            ..Self::default()
        }
    }

    /// A device whose ports are all console ports: a terminal each.
    #[must_use]
    pub fn terminals(consoles: Vec<Box<dyn Console>>) -> Self {
        let named = consoles.into_iter().map(|console| (String::new(), console));
        let mut device = Self::new(named.collect());
        for port in &mut device.ports {
            port.terminal = true;
        }
        device
    }

    /// Gives a port of a restored device its console.
    pub fn attach(&mut self, port: usize, console: Box<dyn Console>) {
        if let Some(port) = self.ports.get_mut(port) {
            (port.console, port.next_input) = (HostConsole(console), Some(Cycles(0)));
        }
    }

    /// Watches what the ports put for a text from now on.
    pub fn watch(&mut self, marker: &Marker) {
        for port in &mut self.ports {
            port.console.watch(marker);
        }
    }

    fn message(&mut self, port: u32, event: u16, value: u16, name: &str) {
        if self.messages.len() >= BACKLOG {
            return;
        }
        let mut bytes = port.to_le_bytes().to_vec();
        bytes.extend(event.to_le_bytes());
        bytes.extend(value.to_le_bytes());
        bytes.extend(name.bytes());
        self.messages.push_back(bytes);
    }

    fn control(&mut self, chain: &Chain, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        let mut message = [0; CONTROL_BYTES];
        if chain.read(0, &mut message, io.context.memory)? != CONTROL_BYTES {
            return Err(Broken);
        }
        let [p0, p1, p2, p3, e0, e1, v0, v1] = message;
        let number = u32::from_le_bytes([p0, p1, p2, p3]);
        let (event, value) = (u16::from_le_bytes([e0, e1]), u16::from_le_bytes([v0, v1]));
        match event {
            event::DEVICE_READY if value != 0 => {
                for port in (0..).take(self.ports.len()) {
                    self.message(port, event::DEVICE_ADD, 1, "");
                }
            }
            event::PORT_READY if value != 0 => {
                let Some((name, terminal)) = self
                    .ports
                    .get(number as usize)
                    .map(|port| (port.name.clone(), port.terminal))
                else {
                    return Ok(());
                };
                if number == 0 || terminal {
                    self.message(number, event::CONSOLE_PORT, 1, "");
                }
                if !name.is_empty() {
                    self.message(number, event::PORT_NAME, 1, &name);
                }
                self.message(number, event::PORT_OPEN, 1, "");
            }
            event::PORT_OPEN => {
                if let Some(port) = self.ports.get_mut(number as usize) {
                    port.open = value != 0;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn output(&mut self, port: usize, chain: &Chain, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        let Some(port) = self.ports.get_mut(port) else {
            return Ok(());
        };
        let mut bytes = vec![0; chain.readable_length().min(MAX_OUTPUT) as usize];
        chain.read(0, &mut bytes, io.context.memory)?;
        self.statistics.requests += 1;
        self.statistics.bytes += bytes.len() as u64;
        let now = io.context.now;
        for byte in bytes {
            port.console.0.put_at(byte, now);
        }
        // What it was told may make it speak sooner, or at all.
        port.next_input = port.console.0.next_input(now, &io.context.clock);
        Ok(())
    }

    /// Hands waiting messages and waiting input to the driver.
    fn hand_over(&mut self, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        while let Some(message) = self.messages.front() {
            let Some(chain) = io.pop(CONTROL_RECEIVE_QUEUE)? else {
                break;
            };
            let written = chain.write(0, message, io.context.memory)?;
            io.push(
                CONTROL_RECEIVE_QUEUE,
                &chain,
                written as u64,
                Interrupt::Prompt,
            )?;
            self.messages.pop_front();
        }
        let multiport = io.features & MULTIPORT != 0;
        for (number, port) in self.ports.iter_mut().enumerate() {
            // Without MULTIPORT there is port 0 alone, and nobody opens it.
            if !(port.open || (number == 0 && !multiport)) {
                continue;
            }
            let now = io.context.now;
            for _ in 0..io.budget(receive_queue(number)) {
                if port.held.is_empty() {
                    match port.console.0.get(now) {
                        Some(byte) => port.held.push_back(byte),
                        None => break,
                    }
                }
                let Some(chain) = io.pop(receive_queue(number))? else {
                    break;
                };
                let room = chain.writable_length().min(MAX_INPUT) as usize;
                while port.held.len() < room
                    && let Some(byte) = port.console.0.get(now)
                {
                    port.held.push_back(byte);
                }
                let bytes: Vec<u8> = port.held.drain(..room.min(port.held.len())).collect();
                chain.write(0, &bytes, io.context.memory)?;
                let written = bytes.len() as u64;
                io.push(receive_queue(number), &chain, written, Interrupt::Prompt)?;
            }
        }
        Ok(())
    }

    fn plan_input(&mut self, now: Cycles, clock: &Clock) {
        for port in &mut self.ports {
            if port.next_input.is_some_and(|at| at <= now) {
                port.next_input = port.console.0.next_input(now, clock);
            }
        }
    }
}

impl Model for Ports {
    fn device_id(&self) -> u32 {
        CONSOLE_DEVICE
    }

    fn features(&self) -> u64 {
        MULTIPORT | EMERGENCY_WRITE
    }

    fn queue_sizes(&self) -> Vec<u16> {
        vec![QUEUE_SIZE; 2 * self.ports.len() + 2]
    }

    /// §5.3.4: columns, rows, most ports, emergency write.
    fn configuration(&self) -> Vec<u8> {
        let mut bytes = vec![0; 12];
        bytes[4..8].copy_from_slice(&(self.ports.len() as u32).to_le_bytes());
        bytes
    }

    fn configure(&mut self, offset: u64, _size: u8, value: u64) {
        if offset == EMERGENCY_WRITE_OFFSET
            && let Some(port) = self.ports.first_mut()
        {
            port.console.0.put(value as u8);
        }
    }

    fn reset(&mut self) {
        self.messages.clear();
        for port in &mut self.ports {
            port.open = false;
            port.held.clear();
        }
    }

    fn notify(&mut self, queue: u16, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        // The transmit queues are the odd ones.
        if queue % 2 == 1 {
            for _ in 0..io.budget(queue) {
                let Some(chain) = io.pop(queue)? else { break };
                if queue == CONTROL_TRANSMIT_QUEUE {
                    self.control(&chain, io)?;
                } else {
                    let port = (0..self.ports.len()).find(|&port| receive_queue(port) + 1 == queue);
                    self.output(port.unwrap_or(usize::MAX), &chain, io)?;
                }
                io.push(queue, &chain, 0, Interrupt::Prompt)?;
            }
        }
        self.hand_over(io)
    }

    fn tick(&mut self, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        self.hand_over(io)?;
        self.plan_input(io.context.now, &io.context.clock);
        Ok(())
    }

    fn next_event(&self) -> Option<Cycles> {
        self.ports.iter().filter_map(|port| port.next_input).min()
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }
}
