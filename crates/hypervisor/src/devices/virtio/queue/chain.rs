//! A guest's descriptor chains, each word of them read once (virtio 1.2, §2.7.5).

use alloc::vec::Vec;

use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::guest::{HostMemory, Memory};
use crate::memory::owned::OwnedRegion;

pub use riscv::virtio::queue::{DESCRIPTOR_BYTES, INDIRECT, NEXT, WRITE};

/// Violation by a driver, after which the driver's device needs a reset (§2.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// A part of a queue, or a buffer, is not the guest's memory.
    #[error("{0} is not the guest's memory")]
    OutsideMemory(GuestPhysical),
    /// A descriptor's number is not below the size of its table.
    #[error("there is no descriptor {0}")]
    NoDescriptor(u16),
    /// A chain has more descriptors than its table, and so goes round, or more pieces than there is room for.
    #[error("a chain is too long")]
    TooLong,
    /// An indirect table in an indirect table, in the middle of a chain, or not made of descriptors.
    #[error("an indirect table stands where none may be, or is not made of descriptors")]
    BadTable,
    /// An empty buffer.
    #[error("a buffer is empty")]
    EmptyBuffer,
    /// A disk request has no header, no place for its status, or a buffer that goes the wrong way.
    #[error("a request is not made of a header, data and a status")]
    BadRequest,
    /// A buffer to be written where it is to be read, or the other way round.
    #[error("a buffer goes the wrong way")]
    Misdirected,
    /// The available index is further ahead than the queue holds.
    #[error("more chains are available than the queue holds")]
    TooMany,
    /// A queue's size or place is not allowed.
    #[error("a queue cannot be of this size, or lie there")]
    BadQueue,
    /// The device of the board returned what it was not given.
    #[error("the device returned what it was not given")]
    Device,
}

/// A piece of a buffer that lies in one piece in the host's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Memory of the piece.
    pub host: OwnedRegion,
    /// Set if the device writes it.
    pub written: bool,
}

/// The doubleword at a guest's address, which is a multiple of 8.
#[inline]
fn doubleword(memory: Memory<'_>, at: GuestPhysical) -> Result<u64, QueueError> {
    let place = at
        .is_aligned(8)
        .then(|| memory.guest.in_one(at, 8))
        .flatten();
    Ok(memory
        .host
        .doubleword(place.ok_or(QueueError::OutsideMemory(at))?))
}

/// The halfword at a guest's address, a multiple of 2, in one access.
pub fn halfword(memory: Memory<'_>, at: GuestPhysical) -> Result<u16, QueueError> {
    let around = doubleword(memory, at.align_down(8))?;
    Ok((around >> (8 * (at.raw() & 6))) as u16)
}

/// Sets the word at a guest's address, a multiple of 4, in one access.
#[inline]
pub fn set_word(memory: Memory<'_>, at: GuestPhysical, value: u32) -> Result<(), QueueError> {
    let place = at
        .is_aligned(4)
        .then(|| memory.guest.in_one(at, 4))
        .flatten();
    memory
        .host
        .set_word(place.ok_or(QueueError::OutsideMemory(at))?, value.to_le());
    Ok(())
}

/// `base` and so many bytes.
pub fn after(base: GuestPhysical, bytes: u64) -> Result<GuestPhysical, QueueError> {
    base.checked_add(bytes)
        .ok_or(QueueError::OutsideMemory(base))
}

/// Reads the chain that begins at `head` of the table of `size` descriptors at `table` into `pieces`, at most `most` of them.
/// Returns the number of descriptors.
///
/// # Errors
/// [`QueueError`]. Then `pieces` has no meaning.
#[inline(never)]
pub fn read(
    memory: Memory<'_>,
    (table, size): (GuestPhysical, u16),
    head: u16,
    pieces: &mut Vec<Piece>,
    most: usize,
) -> Result<usize, QueueError> {
    pieces.clear();
    each(
        memory,
        (table, size),
        head,
        most,
        |address, length, flags| add(memory, address, length, flags & WRITE != 0, pieces, most),
    )
}

/// Reads the chain that begins at `head` of the table of `size` descriptors at `table`, an indirect one of which may have `most`. Each buffer is
/// shown to `visit`: its address and its length, which are unchecked, and the descriptor's flags. Returns the number of
/// descriptors.
///
/// # Errors
/// [`QueueError`], and errors of `visit`.
#[inline(always)]
pub fn each(
    memory: Memory<'_>,
    (table, size): (GuestPhysical, u16),
    head: u16,
    most: usize,
    mut visit: impl FnMut(GuestPhysical, u32, u16) -> Result<(), QueueError>,
) -> Result<usize, QueueError> {
    let (mut table, mut size, mut number) = (table, size, head);
    let (mut in_this, mut in_all, mut indirect) = (0, 0_usize, false);
    loop {
        if number >= size {
            return Err(QueueError::NoDescriptor(number));
        }
        if in_this == size {
            return Err(QueueError::TooLong);
        }
        in_this += 1;
        in_all += 1;
        let at = after(table, DESCRIPTOR_BYTES * u64::from(number))?;
        let address = GuestPhysical::new(u64::from_le(doubleword(memory, at)?));
        let rest = u64::from_le(doubleword(memory, after(at, 8)?)?);
        let (length, flags, next) = (rest as u32, (rest >> 32) as u16, (rest >> 48) as u16);
        if flags & INDIRECT != 0 {
            let descriptors = u64::from(length) / DESCRIPTOR_BYTES;
            let whole = u64::from(length) % DESCRIPTOR_BYTES == 0;
            if indirect || flags & NEXT != 0 || !whole || !(1..=most as u64).contains(&descriptors)
            {
                return Err(QueueError::BadTable);
            }
            (table, size, number) = (address, descriptors as u16, 0);
            (in_this, indirect) = (0, true);
            continue;
        }
        visit(address, length, flags)?;
        if flags & NEXT == 0 {
            return Ok(in_all);
        }
        number = next;
    }
}

/// The pieces of one buffer.
fn add(
    memory: Memory<'_>,
    address: GuestPhysical,
    length: u32,
    written: bool,
    pieces: &mut Vec<Piece>,
    most: usize,
) -> Result<(), QueueError> {
    if length == 0 {
        return Err(QueueError::EmptyBuffer);
    }
    let outside = QueueError::OutsideMemory(address);
    let region = GuestRegion::new(address, length.into()).ok_or(outside)?;
    for host in memory.guest.ranges(region).ok_or(outside)? {
        if pieces.len() == most {
            return Err(QueueError::TooLong);
        }
        pieces.push(Piece { host, written });
    }
    Ok(())
}
