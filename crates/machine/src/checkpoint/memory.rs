//! The pages of RAM in a checkpoint: those that are not zero, in runs, compressed (LZ4).
//!
//! A run is its first page (u32), its number of pages (u32), the bytes that follow (u32), and
//! these. A run of no pages ends the list.

use std::io::{self, Write};

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

use super::CheckpointError;
use super::container::Writer;
use crate::memory::PAGE_BYTES;

const PAGE: usize = PAGE_BYTES as usize;
/// Most pages of a run: what is compressed at a time.
const RUN: usize = 64;
/// First page, pages, bytes.
const HEADER: usize = 12;

fn is_zero(page: &[u8]) -> bool {
    let (words, rest) = page.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|&byte| byte == 0)
}

/// Writes the pages of `ram`.
pub(super) fn write<W: Write>(ram: &[u8], writer: &mut Writer<W>) -> io::Result<()> {
    let mut packed = vec![0; get_maximum_output_size(RUN * PAGE)];
    let mut put = |writer: &mut Writer<W>, first: usize, pages: &[u8]| -> io::Result<()> {
        let length = compress_into(pages, &mut packed).map_err(io::Error::other)?;
        for field in [first, pages.len() / PAGE, length] {
            let field = u32::try_from(field).map_err(io::Error::other)?;
            writer.put(&field.to_le_bytes())?;
        }
        writer.put(packed.get(..length).unwrap_or_default())
    };
    let mut start = None;
    for (number, page) in ram.chunks(PAGE).enumerate() {
        let zero = is_zero(page);
        if let Some(first) = start
            && (zero || number - first == RUN)
        {
            put(writer, first, &ram[first * PAGE..number * PAGE])?;
            start = None;
        }
        if !zero && start.is_none() {
            start = Some(number);
        }
    }
    if let Some(first) = start {
        put(writer, first, &ram[first * PAGE..])?;
    }
    writer.put(&[0; HEADER])
}

/// Fills `ram`, all of it zero, from what was written.
pub(super) fn read(ram: &mut [u8], mut bytes: &[u8]) -> Result<(), CheckpointError> {
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
            .and_then(|(start, size)| Some(start..start.checked_add(size)?))
            .and_then(|range| ram.get_mut(range))
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
