//! The pages of RAM in a checkpoint: those that are not zero, in runs, compressed (LZ4).
//!
//! A run is its first page (u32), its number of pages (u32), the bytes that follow (u32), and
//! these. A run of no pages ends the list.

use std::io::{self, Write};
use std::ops::Range;

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

use super::CheckpointError;
use super::container::Writer;
use crate::base::PAGE_BYTES;
use crate::memory::Ram;

const PAGE: usize = PAGE_BYTES as usize;
/// Most pages of a run: what is compressed at a time.
const RUN: usize = 64;
/// First page, pages, bytes.
const HEADER: usize = 12;

/// Writes the pages of `ram`.
pub(super) fn write<W: Write>(ram: &Ram, writer: &mut Writer<W>) -> io::Result<()> {
    let mut packed = vec![0; get_maximum_output_size(RUN * PAGE)];
    let mut put = |writer: &mut Writer<W>, run: &Range<usize>| -> io::Result<()> {
        let pages = ram.bytes().get(run.start * PAGE..run.end * PAGE);
        let length =
            compress_into(pages.unwrap_or_default(), &mut packed).map_err(io::Error::other)?;
        for field in [run.start, run.len(), length] {
            let field = u32::try_from(field).map_err(io::Error::other)?;
            writer.put(&field.to_le_bytes())?;
        }
        writer.put(packed.get(..length).unwrap_or_default())
    };
    let mut run = 0..0;
    for (number, _) in ram.pages() {
        if number != run.end || run.len() == RUN {
            if !run.is_empty() {
                put(writer, &run)?;
            }
            run.start = number;
        }
        run.end = number + 1;
    }
    if !run.is_empty() {
        put(writer, &run)?;
    }
    writer.put(&[0; HEADER])
}

/// Fills `ram`, all of it zero, from what was written.
pub(super) fn read(ram: &mut Ram, mut bytes: &[u8]) -> Result<(), CheckpointError> {
    let impossible = CheckpointError::Impossible;
    let field = |bytes: &mut &[u8]| {
        let (field, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u32::from_le_bytes(*field) as usize)
    };
    loop {
        let (Some(first), Some(pages), Some(length)) =
            (field(&mut bytes), field(&mut bytes), field(&mut bytes))
        else {
            return Err(impossible("the list of pages ends too early"));
        };
        if pages == 0 {
            break;
        }
        let place = first
            .checked_mul(PAGE)
            .zip(pages.checked_mul(PAGE))
            .and_then(|(start, size)| ram.bytes_mut(start as u64, size as u64))
            .ok_or(impossible("a page lies outside memory"))?;
        let (packed, rest) = bytes
            .split_at_checked(length)
            .ok_or(impossible("a page ends too early"))?;
        bytes = rest;
        if decompress_into(packed, place).ok() != Some(place.len()) {
            return Err(impossible("a page cannot be unpacked"));
        }
    }
    if bytes.is_empty() {
        Ok(())
    } else {
        Err(impossible("something follows the pages"))
    }
}
