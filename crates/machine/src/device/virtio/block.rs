//! The block device (virtio 1.2, §5.2).

use std::collections::BTreeMap;
use std::io;

use riscv::virtio::BLOCK_DEVICE;
use riscv::virtio::block::feature::{BLOCK_SIZE, DISCARD, FLUSH, READ_ONLY, SEG_MAX, WRITE_ZEROES};
use riscv::virtio::block::status::{ERROR, OK, UNSUPPORTED};
use riscv::virtio::block::{HEADER_BYTES, IDENTITY_BYTES, RANGE_BYTES, UNMAP, request};
use serde::{Deserialize, Serialize};

use super::disk::{Disk, MemoryDisk, SECTOR};
use super::model::{Io, Model};
use super::queue::{Broken, Chain};
use super::service::{Fate, Faults, Service, Station, Statistics};
use crate::device::{Context, Cycles};

/// Bytes of the request header: type, reserved, sector.
const HEADER: usize = HEADER_BYTES as usize;

const QUEUE_SIZE: u16 = 256;
/// Most data buffers of a request that the driver is told to make.
const SEGMENTS: u32 = 126;
/// A request with more data fails: descriptors may name the same memory again and again.
const MAX_DATA: u64 = 64 << 20;
/// Data is moved in pieces of this many bytes.
const PIECE: usize = 64 << 10;
/// Bytes of a piece of the overlay.
const CLUSTER: u64 = 4096;

/// A request in service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Request {
    chain: Chain,
    kind: u32,
    sector: u64,
    data: u64,
    fate: Fate,
}

/// A block device.
#[derive(Debug, Serialize, Deserialize)]
pub struct Block {
    #[serde(skip, default = "no_disk")]
    disk: Box<dyn Disk>,
    sectors: u64,
    read_only: bool,
    /// Data that the guest wrote, by cluster, when the medium is to stay as it is.
    overlay: Option<BTreeMap<u64, Vec<u8>>>,
    identity: String,
    station: Station<Request>,
}

fn no_disk() -> Box<dyn Disk> {
    Box::new(MemoryDisk::default())
}

impl Block {
    /// A device on `disk`. With `overlay`, what the guest writes is kept in memory (and in
    /// checkpoints) and the disk stays as it is.
    #[must_use]
    pub fn new(
        disk: Box<dyn Disk>,
        overlay: bool,
        identity: &str,
        service: Service,
        faults: Faults,
        seed: u64,
    ) -> Self {
        Self {
            sectors: disk.sectors(),
            read_only: disk.is_read_only() && !overlay,
            overlay: overlay.then(BTreeMap::new),
            identity: identity.to_owned(),
            station: Station::new(service, faults, seed),
            disk,
        }
    }

    /// Gives a restored device its disk.
    ///
    /// # Errors
    /// The disk, if it has not the size of the one that the device had.
    pub fn attach(&mut self, disk: Box<dyn Disk>) -> Result<(), Box<dyn Disk>> {
        if disk.sectors() != self.sectors {
            return Err(disk);
        }
        self.disk = disk;
        Ok(())
    }

    /// The disk, to look at all of it.
    pub fn disk_mut(&mut self) -> &mut dyn Disk {
        &mut *self.disk
    }

    /// Tests whether what the guest writes is kept in memory.
    #[must_use]
    pub const fn has_overlay(&self) -> bool {
        self.overlay.is_some()
    }

    /// Sectors of the disk.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    fn take(&mut self, chain: Chain, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        let mut header = [0; HEADER];
        let got = chain.read(0, &mut header, io.context.memory)?;
        let room = chain.writable_length().checked_sub(1);
        // Without a header or a place for the status there is nothing to say and nowhere to say it.
        let (HEADER, Some(room)) = (got, room) else {
            return Err(Broken);
        };
        let [t0, t1, t2, t3, _, _, _, _, s0, s1, s2, s3, s4, s5, s6, s7] = header;
        let kind = u32::from_le_bytes([t0, t1, t2, t3]);
        let sector = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        let data = match kind {
            request::READ => room,
            request::IDENTITY => room.min(IDENTITY_BYTES as u64),
            _ => chain.readable_length() - HEADER as u64,
        };
        let clock = io.context.clock;
        let fate = self.station.fate(&clock);
        let moves = matches!(kind, request::READ | request::WRITE);
        let place = moves.then(|| (sector, sector.saturating_add(data / SECTOR)));
        let bytes = if moves { data.min(MAX_DATA) } else { 0 };
        let translation = io.translate(&chain);
        let request = Request {
            chain,
            kind,
            sector,
            data,
            fate,
        };
        self.station.delay(translation);
        self.station
            .begin(io.context.now, &clock, bytes, place, request);
        Ok(())
    }

    /// Completes what is due.
    fn complete(&mut self, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        while let Some(request) = self.station.end(io.context.now) {
            let (status, written) = if request.fate.fails {
                (ERROR, 0)
            } else {
                match self.perform(&request, io.context) {
                    Ok(done) => done,
                    Err(Failure::Memory) => return Err(Broken),
                    Err(Failure::Medium) => (ERROR, 0),
                }
            };
            if status != OK {
                self.station.count_error();
            }
            // The status is the last byte that the device may write.
            let last = request.chain.writable_length() - 1;
            request.chain.write(last, &[status], io.context.memory)?;
            io.push(0, &request.chain, written + 1, request.fate.interrupt)?;
        }
        Ok(())
    }

    /// The extent of a request in bytes, if it lies on the disk.
    fn extent(&self, sector: u64, bytes: u64) -> Option<u64> {
        let last = sector.checked_add(bytes.div_ceil(SECTOR))?;
        (last <= self.sectors).then(|| sector * SECTOR)
    }

    fn perform(
        &mut self,
        request: &Request,
        context: &mut Context<'_>,
    ) -> Result<(u8, u64), Failure> {
        match request.kind {
            request::READ | request::WRITE => self.transfer(request, context),
            request::FLUSH => {
                self.disk.flush()?;
                Ok((OK, 0))
            }
            request::IDENTITY => {
                let mut identity = [0; IDENTITY_BYTES];
                for (to, from) in identity.iter_mut().zip(self.identity.bytes()) {
                    *to = from;
                }
                let length = (request.data as usize).min(IDENTITY_BYTES);
                request
                    .chain
                    .write(0, &identity[..length], context.memory)?;
                Ok((OK, length as u64))
            }
            request::DISCARD | request::WRITE_ZEROES => self.erase(request, context),
            _ => Ok((UNSUPPORTED, 0)),
        }
    }

    fn transfer(
        &mut self,
        request: &Request,
        context: &mut Context<'_>,
    ) -> Result<(u8, u64), Failure> {
        let reads = request.kind == request::READ;
        let whole = request.data.is_multiple_of(SECTOR) && request.data <= MAX_DATA;
        let start = self.extent(request.sector, request.data).filter(|_| whole);
        let Some(start) = start.filter(|_| reads || !self.read_only) else {
            return Ok((ERROR, 0));
        };
        let cut = reads && request.fate.short;
        let length = if cut { request.data / 2 } else { request.data };
        let mut bytes = vec![0; PIECE.min(length as usize)];
        let mut done = 0;
        while done < length {
            let piece = bytes.len().min((length - done) as usize);
            let bytes = &mut bytes[..piece];
            if reads {
                self.read_medium(start + done, bytes)?;
                request.chain.write(done, bytes, context.memory)?;
            } else {
                request
                    .chain
                    .read(HEADER as u64 + done, bytes, context.memory)?;
                self.write_medium(start + done, bytes)?;
            }
            done += piece as u64;
        }
        Ok((if cut { ERROR } else { OK }, if reads { length } else { 0 }))
    }

    /// Discards or zeroes one range: both leave zeros. A request with a flag that is unknown, or not for its type, leaves the
    /// medium as it is (§5.2.6.2).
    fn erase(
        &mut self,
        request: &Request,
        context: &mut Context<'_>,
    ) -> Result<(u8, u64), Failure> {
        let mut range = [0; RANGE_BYTES];
        if request.data != RANGE_BYTES as u64 {
            return Ok((ERROR, 0));
        }
        request
            .chain
            .read(HEADER as u64, &mut range, context.memory)?;
        let [s0, s1, s2, s3, s4, s5, s6, s7, n0, n1, n2, n3, flags @ ..] = range;
        let known = match request.kind {
            request::WRITE_ZEROES => UNMAP,
            _ => 0,
        };
        if u32::from_le_bytes(flags) & !known != 0 {
            return Ok((UNSUPPORTED, 0));
        }
        let sector = u64::from_le_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        let length = u64::from(u32::from_le_bytes([n0, n1, n2, n3])) * SECTOR;
        let start = self
            .extent(sector, length)
            .filter(|_| length <= MAX_DATA && !self.read_only);
        let Some(start) = start else {
            return Ok((ERROR, 0));
        };
        let zeros = vec![0; PIECE];
        let mut done = 0;
        while done < length {
            let piece = zeros.len().min((length - done) as usize);
            self.write_medium(start + done, &zeros[..piece])?;
            done += piece as u64;
        }
        Ok((OK, 0))
    }

    fn read_medium(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.disk.read(offset, bytes)?;
        let Some(overlay) = &self.overlay else {
            return Ok(());
        };
        let end = offset + bytes.len() as u64;
        for (&cluster, contents) in overlay.range(offset / CLUSTER..end.div_ceil(CLUSTER)) {
            let base = cluster * CLUSTER;
            let (from, to) = (base.max(offset), (base + contents.len() as u64).min(end));
            if from < to {
                let source = &contents[(from - base) as usize..(to - base) as usize];
                bytes[(from - offset) as usize..(to - offset) as usize].copy_from_slice(source);
            }
        }
        Ok(())
    }

    fn write_medium(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let Some(overlay) = &mut self.overlay else {
            return self.disk.write(offset, bytes);
        };
        let end = offset + bytes.len() as u64;
        for cluster in offset / CLUSTER..end.div_ceil(CLUSTER) {
            let base = cluster * CLUSTER;
            if let std::collections::btree_map::Entry::Vacant(vacant) = overlay.entry(cluster) {
                // The last cluster of a disk may be shorter.
                let size = CLUSTER.min(self.sectors * SECTOR - base);
                let mut contents = vec![0; size as usize];
                self.disk.read(base, &mut contents)?;
                vacant.insert(contents);
            }
            let Some(contents) = overlay.get_mut(&cluster) else {
                continue;
            };
            let (from, to) = (base.max(offset), (base + contents.len() as u64).min(end));
            let source = &bytes[(from - offset) as usize..(to - offset) as usize];
            contents[(from - base) as usize..(to - base) as usize].copy_from_slice(source);
        }
        Ok(())
    }
}

/// Why a request was not performed.
enum Failure {
    /// Its buffers are not RAM any more.
    Memory,
    /// The host could not read or write the medium.
    Medium,
}

impl From<crate::base::AccessFault> for Failure {
    fn from(_: crate::base::AccessFault) -> Self {
        Self::Memory
    }
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Self {
        Self::Medium
    }
}

impl Model for Block {
    fn device_id(&self) -> u32 {
        BLOCK_DEVICE
    }

    fn features(&self) -> u64 {
        let writes = if self.read_only {
            READ_ONLY
        } else {
            DISCARD | WRITE_ZEROES
        };
        SEG_MAX | BLOCK_SIZE | FLUSH | writes
    }

    fn queue_sizes(&self) -> Vec<u16> {
        vec![QUEUE_SIZE]
    }

    /// §5.2.4, up to write_zeroes_may_unmap.
    fn configuration(&self) -> Vec<u8> {
        let mut bytes = vec![0; 60];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        let most_sectors = (MAX_DATA / SECTOR) as u32;
        put(0, &self.sectors.to_le_bytes());
        put(12, &SEGMENTS.to_le_bytes());
        put(20, &(SECTOR as u32).to_le_bytes());
        // One range at a time, discards aligned to the overlay's clusters.
        put(36, &most_sectors.to_le_bytes());
        put(40, &1_u32.to_le_bytes());
        put(44, &((CLUSTER / SECTOR) as u32).to_le_bytes());
        put(48, &most_sectors.to_le_bytes());
        put(52, &1_u32.to_le_bytes());
        bytes
    }

    fn reset(&mut self) {
        self.station.clear();
    }

    fn notify(&mut self, queue: u16, io: &mut Io<'_, '_>) -> Result<(), Broken> {
        for _ in 0..io.budget(queue) {
            match io.pop(queue)? {
                Some(chain) => self.take(chain, io)?,
                None => break,
            }
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
        self.station.reseed(seed);
    }

    fn statistics(&self) -> Statistics {
        self.station.statistics()
    }
}
