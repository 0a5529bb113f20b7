//! Request of a guest to a disk, parsed from a chain of buffers (virtio 1.2, §5.2.6).

use super::{HEADER_BYTES, SECTOR};
use crate::devices::virtio::queue::chain::{Piece, QueueError};
use crate::memory::guest::{HostMemory, TheHost};
use crate::memory::owned::OwnedRegion;

pub use riscv::virtio::block::request as kind;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub kind: u32,
    /// First sector, counted from the beginning of the slice.
    pub sector: u64,
    /// Bytes of data.
    pub bytes: u64,
    /// Set if the device writes the data.
    pub written: bool,
    /// Place of the status byte.
    pub status: OwnedRegion,
}

impl Request {
    /// The sectors of its data, if it is made of sectors.
    #[must_use]
    pub const fn sectors(&self) -> Option<u64> {
        match self.bytes.is_multiple_of(SECTOR) {
            true => Some(self.bytes / SECTOR),
            false => None,
        }
    }
}

/// Parses the chain of these pieces; its data is left in `pieces`. A driver may cut its buffers as it likes (§2.7.4): the header
/// is the first 16 bytes that the device reads, the status the last that it writes. The header is read once, here.
///
/// # Errors
/// [`QueueError::BadRequest`].
pub fn parse(
    pieces: &mut alloc::vec::Vec<Piece>,
    host: TheHost<'_>,
) -> Result<Request, QueueError> {
    // Pieces that the device reads stand in front of pieces that it writes (§2.7.4.2).
    let read = pieces.iter().take_while(|piece| !piece.written).count();
    if pieces.iter().skip(read).any(|piece| !piece.written) {
        return Err(QueueError::BadRequest);
    }
    let header = take_header(pieces, host)?;
    let status = take_status(pieces)?;
    let written = pieces.first().is_some_and(|piece| piece.written);
    if pieces.iter().any(|piece| piece.written != written) {
        return Err(QueueError::BadRequest);
    }
    let bytes = pieces.iter().map(|piece| piece.host.size()).sum();
    let [kind, sector] = header.map(u64::from_le);
    Ok(Request {
        kind: kind as u32,
        sector,
        bytes,
        written,
        status,
    })
}

/// Reads the header and takes it away.
fn take_header(
    pieces: &mut alloc::vec::Vec<Piece>,
    host: TheHost<'_>,
) -> Result<[u64; 2], QueueError> {
    let first = pieces.first().copied().filter(|piece| !piece.written);
    let first = first.ok_or(QueueError::BadRequest)?.host;
    // Nearly always.
    if first.size() == HEADER_BYTES && first.base().is_aligned(8) {
        pieces.remove(0);
        return Ok(host.pair(first));
    }
    let mut bytes = [0; HEADER_BYTES as usize];
    let mut places = bytes.iter_mut();
    let mut whole = 0;
    for piece in pieces.iter_mut().filter(|piece| !piece.written) {
        let taken = piece.host.size().min(places.len() as u64);
        for (offset, place) in (0..taken).zip(&mut places) {
            *place = host.byte(piece.host.skip(offset));
        }
        piece.host = piece.host.skip(taken);
        if piece.host.size() == 0 {
            whole += 1;
        }
        if places.len() == 0 {
            break;
        }
    }
    if places.len() != 0 {
        return Err(QueueError::BadRequest);
    }
    pieces.drain(..whole);
    let (kind, sector) = bytes.split_at(8);
    let doubleword = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes);
    match (doubleword(kind), doubleword(sector)) {
        (Ok(kind), Ok(sector)) => Ok([kind, sector]),
        _ => Err(QueueError::BadRequest),
    }
}

/// Finds the place of the status and takes it away.
fn take_status(pieces: &mut alloc::vec::Vec<Piece>) -> Result<OwnedRegion, QueueError> {
    let last = pieces.last_mut().filter(|piece| piece.written);
    let last = last.ok_or(QueueError::BadRequest)?;
    let before = last
        .host
        .size()
        .checked_sub(1)
        .ok_or(QueueError::BadRequest)?;
    let at = last.host.skip(before);
    last.host = last.host.take(before);
    if before == 0 {
        pieces.pop();
    }
    Ok(at)
}
