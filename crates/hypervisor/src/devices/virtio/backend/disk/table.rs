//! The page of an operation: the table of its buffers, its header and its status.

use riscv::virtio::block::HEADER_BYTES;

use crate::devices::virtio::queue::chain::{DESCRIPTOR_BYTES, NEXT, Piece, WRITE};
use crate::memory::address::HostPhysical;
use crate::memory::guest::{HostMemory, TheHost};
use crate::memory::owned::OwnedRegion;

pub use riscv::virtio::block::status as outcome;

/// Pieces of data that an operation can have.
pub const MAX_PIECES: usize = 252;

/// Operation on the whole disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The type of the request (§5.2.6).
    pub kind: u32,
    /// The first sector.
    pub sector: u64,
    /// Sectors that are read or written.
    pub sectors: u64,
}

/// Offset of the header in an operation's page, followed by the status; in front of them is the table.
const HEADER_AT: u64 = DESCRIPTOR_BYTES * 254;
pub const STATUS_AT: u64 = HEADER_AT + HEADER_BYTES;

/// Descriptors in the table of a page: kept behind the status, where neither guest nor device writes.
pub fn descriptors(page: OwnedRegion, host: TheHost<'_>) -> u32 {
    (host.doubleword(page.skip(STATUS_AT)) >> 32) as u32
}

/// An operation as its page describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Described {
    /// The type of the request.
    pub kind: u32,
    pub sector: u64,
    descriptors: u32,
}

impl Described {
    /// Reads the page of an operation.
    pub fn read(page: OwnedRegion, host: TheHost<'_>) -> Self {
        let [kind, sector] = host.pair(page.skip(HEADER_AT)).map(u64::from_le);
        Self {
            kind: kind as u32,
            sector,
            descriptors: descriptors(page, host),
        }
    }

    /// Pieces of the data: address, bytes, and whether the disk writes them.
    pub fn data<'a>(
        self,
        page: OwnedRegion,
        host: TheHost<'a>,
    ) -> impl Iterator<Item = (HostPhysical, u64, bool)> + use<'a> {
        // Between the header and the status.
        (1..u64::from(self.descriptors).saturating_sub(1)).map(move |number| {
            let at = page.skip(DESCRIPTOR_BYTES * number);
            let [address, rest] = host.pair(at).map(u64::from_le);
            let is_written = (rest >> 32) as u16 & WRITE != 0;
            (HostPhysical::new(address), rest & 0xffff_ffff, is_written)
        })
    }
}

/// Writes an operation into its page.
pub fn write_out(page: OwnedRegion, operation: Operation, data: &[Piece], host: TheHost<'_>) {
    let header = [u64::from(operation.kind).to_le(), operation.sector.to_le()];
    host.set_pair(page.skip(HEADER_AT), header);
    let table = |number: usize, place: OwnedRegion, bytes: u64, flags: u16| {
        let next = u64::from(flags) << 32 | (number as u64 + 1) << 48;
        let next = if flags & NEXT == 0 {
            u64::from(flags) << 32
        } else {
            next
        };
        let pair = [place.base().raw().to_le(), (bytes | next).to_le()];
        host.set_pair(page.skip(DESCRIPTOR_BYTES * number as u64), pair);
    };
    table(0, page.skip(HEADER_AT), HEADER_BYTES, NEXT);
    for (number, piece) in (1..).zip(data) {
        let flags = if piece.written { NEXT | WRITE } else { NEXT };
        table(number, piece.host, piece.host.size(), flags);
    }
    let last = data.len() + 1;
    table(last, page.skip(STATUS_AT), 1, WRITE);
    // A status that the device has not written is an error.
    let behind = (last as u64 + 1) << 32 | u64::from(outcome::ERROR);
    host.set_doubleword(page.skip(STATUS_AT), behind);
}
