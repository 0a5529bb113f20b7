//! A guest with a port, and its driver.

use std::collections::VecDeque;

use alloc::sync::Arc;

use abi::monitor::Event;

use super::super::frame::HEADER;
use super::super::port::Port;
use super::world::*;
use crate::devices::irq::SourceNumber;
use crate::devices::testing::context::Alone;
use crate::devices::trapped::{Access, TrappedDevice, VirtioContext, WouldBlock};
use crate::devices::virtio::backend::disk::{Disk, DiskNumber};
use crate::devices::virtio::client::Client;
use crate::devices::virtio::driver::Board;
use crate::devices::virtio::register::*;
use crate::devices::virtio::transport::MmioTransport;
use crate::devices::virtio::{EVENT_INDEX, QUEUE_PARTS, VERSION_1, status};
use crate::hart::decode::Width;
use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical};
use crate::memory::guest::{GuestMemory, Memory, Piece, TheHost};
use crate::memory::owned::OwnedRegion;

/// A guest and its driver.
pub struct Guest {
    pub number: usize,
    pub memory: Arc<GuestMemory>,
    pub device: MmioTransport<Port>,
    pub event_indices: bool,
    /// Of each queue: how many chains were made available, and how many were found returned.
    pub made: [u16; 2],
    pub found: [u16; 2],
    /// Descriptors of the receive queue that are not available, each with a buffer of its own.
    pub spare: VecDeque<u16>,
}

/// Environment of a guest's devices.
pub struct View<'a> {
    world: &'a World,
    number: usize,
    memory: Arc<GuestMemory>,
}

impl Guest {
    pub fn new(world: &World, number: usize) -> Self {
        let base = GUESTS + 4 * HALF * number as u64;
        let piece = |guest, host| Piece {
            guest: GuestRegion::new(GuestPhysical::new(guest), HALF).unwrap(),
            host: OwnedRegion::for_test(host, HALF),
        };
        // Memory between and behind the two belongs to no VM.
        let pieces = vec![piece(RAM, base + 2 * HALF), piece(RAM + HALF, base)];
        Self {
            number,
            memory: Arc::new(GuestMemory::new(pieces).unwrap()),
            device: MmioTransport::new(Port::new(Arc::clone(&world.switch), number).unwrap(), None),
            event_indices: false,
            made: [0; 2],
            found: [0; 2],
            spare: VecDeque::new(),
        }
    }

    pub fn view<'a>(&self, world: &'a World) -> View<'a> {
        View {
            world,
            number: self.number,
            memory: Arc::clone(&self.memory),
        }
    }

    fn place(&self, at: u64) -> u64 {
        let piece = self.memory.in_one(GuestPhysical::new(at), 1);
        piece.expect("the guest's memory").base().raw()
    }

    pub fn write(&self, world: &World, at: u64, bytes: &[u8]) {
        for (at, byte) in (at..).zip(bytes) {
            world.host.set(self.place(at), &[*byte]);
        }
    }

    pub fn read(&self, world: &World, at: u64, bytes: usize) -> Vec<u8> {
        let bytes = (at..).take(bytes);
        bytes
            .map(|at| world.host.get::<1>(self.place(at))[0])
            .collect()
    }

    pub fn half(&self, world: &World, at: u64) -> u16 {
        u16::from_le_bytes(self.read(world, at, 2).try_into().unwrap())
    }

    pub fn store(&mut self, world: &World, offset: u64, value: u32) -> Result<(), WouldBlock> {
        let (width, view) = (Width::Word, self.view(world));
        self.device
            .store(Access { offset, width }, value.into(), &Alone(&view))
    }

    /// A store that is done again until it is taken. Says how often.
    pub fn set(&mut self, world: &World, offset: u64, value: u32) -> u32 {
        for again in 0..1000 {
            if self.store(world, offset, value).is_ok() {
                return again;
            }
        }
        panic!("a store is never taken");
    }

    pub fn get(&mut self, world: &World, offset: u64, width: Width) -> u64 {
        let view = self.view(world);
        self.device.load(Access { offset, width }, &Alone(&view))
    }

    pub fn is_broken(&mut self, world: &World) -> bool {
        self.get(world, STATUS, Width::Word) & u64::from(status::NEEDS_RESET) != 0
    }

    /// §3.1.1 until the queues are ready.
    pub fn set_up(&mut self, world: &World, event_indices: bool) {
        self.event_indices = event_indices;
        (self.made, self.found) = ([0; 2], [0; 2]);
        self.spare = (0..ENTRIES).collect();
        self.set(world, STATUS, 0);
        self.set(world, STATUS, 1 | 2);
        let events = if event_indices { EVENT_INDEX } else { 0 };
        let features = VERSION_1 | events | 1 << 28 | 1 << 5;
        for (word, half) in [(0, features as u32), (1, (features >> 32) as u32)] {
            self.set(world, DRIVER_FEATURES_SELECT, word);
            self.set(world, DRIVER_FEATURES, half);
        }
        self.set(world, STATUS, 1 | 2 | status::FEATURES_OK);
        for queue in 0..2_u32 {
            let base = RAM + QUEUE * u64::from(queue);
            self.write(world, base, &[0; 0x3000]);
            self.set(world, QUEUE_SELECT, queue);
            self.set(world, QUEUE_SIZE, ENTRIES.into());
            for (part, register) in (0..).zip(QUEUE_PARTS) {
                self.set(world, register, (base + 0x1000 * part) as u32);
                self.set(world, register + 4, (base >> 32) as u32);
            }
            self.set(world, QUEUE_READY, 1);
        }
    }

    pub fn start(&mut self, world: &World, event_indices: bool) {
        self.set_up(world, event_indices);
        self.go(world);
    }

    pub fn go(&mut self, world: &World) -> u32 {
        let live = 1 | 2 | status::FEATURES_OK | status::DRIVER_OK;
        self.set(world, STATUS, live)
    }

    pub fn describe(
        &self,
        world: &World,
        table: u64,
        number: u16,
        (address, length): (u64, u32),
        (flags, next): (u16, u16),
    ) {
        let bytes = [
            &address.to_le_bytes()[..],
            &length.to_le_bytes(),
            &flags.to_le_bytes(),
            &next.to_le_bytes(),
        ];
        self.write(world, table + 16 * u64::from(number), &bytes.concat());
    }

    /// Makes a chain available, without telling.
    pub fn make(&mut self, world: &World, queue: usize, head: u16) {
        let available = RAM + QUEUE * queue as u64 + 0x1000;
        let entry = u64::from(self.made[queue] % ENTRIES);
        self.write(world, available + 4 + 2 * entry, &head.to_le_bytes());
        self.made[queue] = self.made[queue].wrapping_add(1);
        self.write(world, available + 2, &self.made[queue].to_le_bytes());
    }

    /// Notifies the device of the chains made available since `before`, if it has asked for that.
    pub fn notify(&mut self, world: &World, queue: usize, before: u16) -> bool {
        if self.event_indices {
            let used = RAM + QUEUE * queue as u64 + 0x2000;
            let wanted = self.half(world, used + 4 + 8 * u64::from(ENTRIES));
            let (passed, made) = (self.made[queue].wrapping_sub(wanted), self.made[queue]);
            if passed.wrapping_sub(1) >= made.wrapping_sub(before) {
                return false;
            }
        }
        self.set(world, QUEUE_NOTIFY, queue as u32);
        true
    }

    /// Gives the device so many buffers to receive into, if there are as many, each cut in two behind `cut` bytes.
    pub fn offer(&mut self, world: &World, count: usize, cut: u32) {
        let before = self.made[0];
        for _ in 0..count {
            let Some(number) = self.spare.pop_front() else {
                break;
            };
            let at = BUFFERS[0] + 0x600 * u64::from(number);
            // The two pieces are in a table of their own, behind the buffers.
            let table = RAM + HALF + 0x8000 + 0x40 * u64::from(number);
            self.describe(world, table, 0, (at, cut), (1 | 2, 1));
            self.describe(world, table, 1, (at + u64::from(cut), 1526 - cut), (2, 0));
            self.describe(world, RAM, number, (table, 32), (4, 0));
            self.make(world, 0, number);
        }
        self.notify(world, 0, before);
    }

    /// Frames received since the last call.
    pub fn received(&mut self, world: &World) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let used = RAM + 0x2000;
        while self.found[0] != self.half(world, used + 2) {
            let at = used + 4 + 8 * u64::from(self.found[0] % ENTRIES);
            let number = self.half(world, at);
            let bytes = self.half(world, at + 4).into();
            let data = self.read(world, BUFFERS[0] + 0x600 * u64::from(number), bytes);
            assert_eq!(data[..HEADER], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
            frames.push(data[HEADER..].to_vec());
            self.found[0] = self.found[0].wrapping_add(1);
            self.spare.push_back(number);
        }
        frames
    }

    /// Chains of the transmit queue that the device has.
    pub fn in_flight(&mut self, world: &World) -> u16 {
        self.found[1] = self.half(world, RAM + QUEUE + 0x2002);
        self.made[1].wrapping_sub(self.found[1])
    }

    /// Makes a frame available for sending, in buffers of these lengths and the rest, without telling.
    pub fn put(&mut self, world: &World, frame: &[u8], cuts: &[usize]) {
        let data = [&[0xa5; HEADER][..], frame].concat();
        self.put_raw(world, &data, cuts);
    }

    pub fn put_raw(&mut self, world: &World, data: &[u8], cuts: &[usize]) {
        let head = self.made[1] % ENTRIES;
        let buffer = BUFFERS[1] + 0x800 * u64::from(head);
        self.write(world, buffer, data);
        let table = RAM + HALF + 0x9000 + 0x100 * u64::from(head);
        let ends = cuts.iter().copied().chain([data.len()]);
        let mut pieces = Vec::new();
        let mut from = 0;
        for end in ends {
            if end > from && end <= data.len() {
                pieces.push((from, end - from));
                from = end;
            }
        }
        for (number, (from, length)) in (0..).zip(&pieces) {
            let last = usize::from(number) + 1 == pieces.len();
            let place = (buffer + *from as u64, *length as u32);
            let link = if last { (0, 0) } else { (1, number + 1) };
            self.describe(world, table, number, place, link);
        }
        let bytes = 16 * pieces.len() as u32;
        self.describe(world, RAM + QUEUE, head, (table, bytes), (4, 0));
        self.make(world, 1, head);
    }

    /// Sends a frame.
    pub fn send(&mut self, world: &World, frame: &[u8]) {
        let before = self.made[1];
        self.put(world, frame, &[HEADER]);
        self.notify(world, 1, before);
    }
}

impl VirtioContext for View<'_> {
    fn time(&self) -> u64 {
        0
    }

    fn poll_by(&self, _: SourceNumber, _: u64) {}

    fn memory(&self) -> Memory<'_> {
        Memory {
            guest: &self.memory,
            host: TheHost::new(&self.world.host),
        }
    }

    fn load_register(&self, at: HostPhysical, width: Width) -> Option<u64> {
        (&self.world.host, &self.world.card).load(at, width)
    }

    fn count(&self, event: Event, times: u32) {
        let mut counts = self.world.counts.borrow_mut();
        *counts.entry((self.number, event)).or_default() += times;
    }

    fn resample(&self, _: SourceNumber) {
        panic!("a guest has no source of the board's");
    }

    fn store_register(&self, at: HostPhysical, width: Width, value: u64) {
        (&self.world.host, &self.world.card).store(at, width, value);
    }

    fn with_disk(&self, _: DiskNumber, _: &mut dyn FnMut(&mut Disk, &dyn Board)) {
        panic!("no disk is shared here");
    }

    fn notify_client(&self, client: Client) {
        let mut notified = self.world.notified.get();
        notified.insert(client);
        self.world.notified.set(notified);
    }
}
