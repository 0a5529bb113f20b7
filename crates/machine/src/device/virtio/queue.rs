//! Split virtqueues (virtio 1.2, §2.7), read with suspicion.
//!
//! Everything in a virtqueue is the guest's allegation. Whatever breaks the format, points
//! outside RAM or goes round in circles is a [`Broken`] queue, and work is bounded by the queue's
//! size and by [`MAX_DESCRIPTORS`].

use riscv::virtio::queue::{
    DESCRIPTOR_BYTES, INDIRECT, NEXT, NO_INTERRUPT, RING_HEADER_BYTES, USED_ENTRY_BYTES, WRITE,
};
use serde::{Deserialize, Serialize};

use crate::device::{AccessFault, Memory};

/// Most descriptors in one chain, those of an indirect table included.
const MAX_DESCRIPTORS: usize = 1024;

/// The driver broke the rules of the virtqueue: the device needs a reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the driver broke the rules of a virtqueue")]
pub struct Broken;

impl From<AccessFault> for Broken {
    fn from(_: AccessFault) -> Self {
        Self
    }
}

/// A piece of guest memory, all of it RAM when the chain was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Physical address.
    pub address: u64,
    /// Length in bytes.
    pub length: u32,
}

/// A descriptor chain that the device has taken and not yet given back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    head: u16,
    /// Buffers that the device may read, in order.
    pub readable: Vec<Buffer>,
    /// Buffers that the device may write, in order.
    pub writable: Vec<Buffer>,
}

fn total(buffers: &[Buffer]) -> u64 {
    buffers.iter().map(|buffer| u64::from(buffer.length)).sum()
}

/// Calls `each` with the guest address, the position and the length of each piece of
/// `length` bytes from `offset` on in `buffers`; gives the bytes that there were.
fn pieces(
    buffers: &[Buffer],
    mut offset: u64,
    length: usize,
    mut each: impl FnMut(u64, usize, usize) -> Result<(), AccessFault>,
) -> Result<usize, AccessFault> {
    let mut done = 0;
    for buffer in buffers {
        let size = u64::from(buffer.length);
        if offset >= size {
            offset -= size;
            continue;
        }
        let left = usize::try_from(size - offset).unwrap_or(usize::MAX);
        let piece = left.min(length - done);
        if piece == 0 {
            break;
        }
        each(buffer.address + offset, done, piece)?;
        done += piece;
        offset = 0;
    }
    Ok(done)
}

impl Chain {
    /// Bytes that the device may read.
    #[must_use]
    pub fn readable_length(&self) -> u64 {
        total(&self.readable)
    }

    /// Bytes that the device may write.
    #[must_use]
    pub fn writable_length(&self) -> u64 {
        total(&self.writable)
    }

    /// Reads from `offset` of the readable part; gives the bytes that there were.
    ///
    /// # Errors
    /// [`AccessFault`] if the buffers are not RAM.
    pub fn read(
        &self,
        offset: u64,
        bytes: &mut [u8],
        memory: &mut dyn Memory,
    ) -> Result<usize, AccessFault> {
        pieces(
            &self.readable,
            offset,
            bytes.len(),
            |address, at, length| {
                let piece = bytes.get_mut(at..at + length).ok_or(AccessFault)?;
                memory.load(address, piece)
            },
        )
    }

    /// Writes at `offset` of the writable part; gives the bytes that there was room for.
    ///
    /// # Errors
    /// [`AccessFault`] if the buffers are not RAM.
    pub fn write(
        &self,
        offset: u64,
        bytes: &[u8],
        memory: &mut dyn Memory,
    ) -> Result<usize, AccessFault> {
        pieces(
            &self.writable,
            offset,
            bytes.len(),
            |address, at, length| {
                memory.store(address, bytes.get(at..at + length).ok_or(AccessFault)?)
            },
        )
    }
}

/// One virtqueue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    largest: u16,
    size: u16,
    ready: bool,
    /// Physical addresses of the descriptor, driver (available) and device (used) areas.
    pub descriptor_area: u64,
    /// See above.
    pub driver_area: u64,
    /// See above.
    pub device_area: u64,
    event_index: bool,
    next_available: u16,
    next_used: u16,
}

struct Descriptor {
    buffer: Buffer,
    flags: u16,
    next: u16,
}

impl Queue {
    /// A queue after reset, of at most `largest` elements.
    #[must_use]
    pub fn new(largest: u16) -> Self {
        Self {
            largest,
            ..Self::default()
        }
    }

    /// The largest size: QueueNumMax.
    #[must_use]
    pub const fn largest(&self) -> u16 {
        self.largest
    }

    /// The size that the driver has chosen, or the largest before it has.
    #[must_use]
    pub const fn size(&self) -> u16 {
        match self.size {
            0 => self.largest,
            size => size,
        }
    }

    /// Tests whether the driver has made the queue ready.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        self.ready
    }

    /// Sets the size; ignored once the queue is ready.
    pub fn set_size(&mut self, size: u32) {
        if !self.ready {
            self.size = u16::try_from(size).unwrap_or(0);
        }
    }

    /// Makes the queue ready.
    ///
    /// # Errors
    /// [`Broken`] unless the size is a power of two within the largest and all three areas are
    /// aligned (§2.7) and in RAM.
    pub fn make_ready(&mut self, event_index: bool, memory: &dyn Memory) -> Result<(), Broken> {
        let size = u64::from(self.size);
        let areas = [
            (self.descriptor_area, DESCRIPTOR_BYTES * size, 16),
            (self.driver_area, RING_HEADER_BYTES + 2 * size + 2, 2),
            (
                self.device_area,
                RING_HEADER_BYTES + USED_ENTRY_BYTES * size + 2,
                4,
            ),
        ];
        let sound = self.size.is_power_of_two()
            && self.size <= self.largest
            && areas.iter().all(|&(address, length, align)| {
                address.is_multiple_of(align) && memory.contains(address, length)
            });
        if !sound {
            return Err(Broken);
        }
        (self.next_available, self.next_used) = (0, 0);
        (self.event_index, self.ready) = (event_index, true);
        Ok(())
    }

    /// Takes the queue out of use.
    pub fn retire(&mut self) {
        self.ready = false;
    }

    /// Takes the next available chain, if there is one.
    ///
    /// # Errors
    /// [`Broken`] when the rings or the chain break the rules.
    pub fn pop(&mut self, memory: &mut dyn Memory) -> Result<Option<Chain>, Broken> {
        if !self.ready {
            return Ok(None);
        }
        let available = load_u16(memory, self.driver_area + 2)?;
        let waiting = available.wrapping_sub(self.next_available);
        if waiting == 0 {
            if self.event_index {
                // avail_event: notify at the next chain (§2.7.10).
                let at =
                    self.device_area + RING_HEADER_BYTES + USED_ENTRY_BYTES * u64::from(self.size);
                memory.store(at, &self.next_available.to_le_bytes())?;
            }
            return Ok(None);
        }
        if waiting > self.size {
            return Err(Broken);
        }
        let slot = u64::from(self.next_available % self.size);
        let head = load_u16(memory, self.driver_area + RING_HEADER_BYTES + 2 * slot)?;
        let chain = self.chain(head, memory)?;
        self.next_available = self.next_available.wrapping_add(1);
        Ok(Some(chain))
    }

    fn chain(&self, head: u16, memory: &mut dyn Memory) -> Result<Chain, Broken> {
        let mut chain = Chain {
            head,
            ..Chain::default()
        };
        let (mut table, mut entries, mut index) = (self.descriptor_area, self.size, head);
        let mut indirect = false;
        let mut left = usize::from(self.size);
        loop {
            // A chain longer than its table goes round in a circle.
            left = left.checked_sub(1).ok_or(Broken)?;
            if index >= entries {
                return Err(Broken);
            }
            let descriptor = load_descriptor(memory, table, index)?;
            if descriptor.flags & INDIRECT != 0 {
                // §2.7.5.3.1: not within a table, and no next.
                let Buffer { address, length } = descriptor.buffer;
                let length = u64::from(length);
                let valid = length.is_multiple_of(DESCRIPTOR_BYTES)
                    && (DESCRIPTOR_BYTES..=DESCRIPTOR_BYTES * MAX_DESCRIPTORS as u64)
                        .contains(&length);
                if indirect || descriptor.flags & NEXT != 0 || !valid {
                    return Err(Broken);
                }
                indirect = true;
                entries = (length / DESCRIPTOR_BYTES) as u16;
                (table, index, left) = (address, 0, usize::from(entries));
                continue;
            }
            let Buffer { address, length } = descriptor.buffer;
            if !memory.contains(address, u64::from(length)) {
                return Err(Broken);
            }
            if descriptor.flags & WRITE != 0 {
                chain.writable.push(descriptor.buffer);
            } else if chain.writable.is_empty() {
                chain.readable.push(descriptor.buffer);
            } else {
                // §2.7.4.2: what the device reads comes before what it writes.
                return Err(Broken);
            }
            if descriptor.flags & NEXT == 0 {
                return Ok(chain);
            }
            index = descriptor.next;
        }
    }

    /// Gives a chain back with the number of bytes written to it. Whether the driver wants an
    /// interrupt for it is the answer.
    ///
    /// # Errors
    /// [`Broken`] if the rings are no longer RAM.
    pub fn push(
        &mut self,
        chain: &Chain,
        written: u32,
        memory: &mut dyn Memory,
    ) -> Result<bool, Broken> {
        if !self.ready {
            // The driver took the queue away while the request was in service.
            return Ok(false);
        }
        let slot = u64::from(self.next_used % self.size);
        let mut element = [0; 8];
        element[..4].copy_from_slice(&u32::from(chain.head).to_le_bytes());
        element[4..].copy_from_slice(&written.to_le_bytes());
        memory.store(
            self.device_area + RING_HEADER_BYTES + USED_ENTRY_BYTES * slot,
            &element,
        )?;
        let before = self.next_used;
        self.next_used = before.wrapping_add(1);
        memory.store(self.device_area + 2, &self.next_used.to_le_bytes())?;
        if self.event_index {
            // used_event (§2.7.7.2): an interrupt when the index passes it.
            let at = self.driver_area + RING_HEADER_BYTES + 2 * u64::from(self.size);
            Ok(load_u16(memory, at)? == before)
        } else {
            Ok(load_u16(memory, self.driver_area)? & NO_INTERRUPT == 0)
        }
    }
}

fn load_u16(memory: &mut dyn Memory, address: u64) -> Result<u16, Broken> {
    let mut bytes = [0; 2];
    memory.load(address, &mut bytes)?;
    Ok(u16::from_le_bytes(bytes))
}

fn load_descriptor(memory: &mut dyn Memory, table: u64, index: u16) -> Result<Descriptor, Broken> {
    let address = table
        .checked_add(DESCRIPTOR_BYTES * u64::from(index))
        .ok_or(Broken)?;
    let mut bytes = [0; DESCRIPTOR_BYTES as usize];
    memory.load(address, &mut bytes)?;
    let [
        a0,
        a1,
        a2,
        a3,
        a4,
        a5,
        a6,
        a7,
        l0,
        l1,
        l2,
        l3,
        f0,
        f1,
        n0,
        n1,
    ] = bytes;
    Ok(Descriptor {
        buffer: Buffer {
            address: u64::from_le_bytes([a0, a1, a2, a3, a4, a5, a6, a7]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
        },
        flags: u16::from_le_bytes([f0, f1]),
        next: u16::from_le_bytes([n0, n1]),
    })
}
