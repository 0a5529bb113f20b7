//! The pages of RAM in a checkpoint: those that are not zero, as they are, in runs.
//!
//! The number of runs (u32), then of each its first page and its number of pages (u32 each); zeros up to a multiple of
//! 4 KiB in the file; then the pages, one behind the other. So the host can map them where they belong: a machine
//! that goes on from a file costs only the pages that it writes, and many share the others.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;

use super::container::Writer;
use super::error::CheckpointError;
use crate::base::PAGE_BYTES;
use crate::memory::Ram;

const PAGE: usize = PAGE_BYTES as usize;
/// A run of fewer pages than this is copied: to map it takes the host longer.
const MAPPED: usize = 16;
/// How many runs are mapped at most: hosts limit the number (on Linux 65,530, if nobody has changed it).
const MAPPINGS: usize = 16_000;

/// Writes the pages of `ram`.
pub(super) fn write<W: Write>(ram: &Ram, writer: &mut Writer<W>) -> io::Result<()> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (number, _) in ram.pages() {
        match runs.last_mut() {
            Some(run) if run.end == number => run.end += 1,
            _ => runs.push(number..number + 1),
        }
    }
    let field = |field: usize| u32::try_from(field).map_err(io::Error::other);
    writer.put(&field(runs.len())?.to_le_bytes())?;
    for run in &runs {
        writer.put(&field(run.start)?.to_le_bytes())?;
        writer.put(&field(run.len())?.to_le_bytes())?;
    }
    let gap = writer.length().next_multiple_of(PAGE_BYTES) - writer.length();
    writer.put(&[0; PAGE][..gap as usize])?;
    for run in runs {
        let pages = ram.bytes().get(run.start * PAGE..run.end * PAGE);
        writer.put(pages.unwrap_or_default())?;
    }
    Ok(())
}

/// Fills `ram`, all of it zero, from what was written: `bytes` from `start` on to the end. With the file that they
/// are, its pages are mapped where that pays.
pub(super) fn read(
    ram: &mut Ram,
    (bytes, start): (&[u8], usize),
    file: Option<&File>,
) -> Result<(), CheckpointError> {
    let impossible = CheckpointError::Impossible;
    let too_short = || impossible("the list of pages ends too early");
    let mut rest = bytes.get(start..).ok_or_else(too_short)?;
    let mut field = || {
        let (field, after) = rest.split_first_chunk()?;
        rest = after;
        Some(u32::from_le_bytes(*field) as usize)
    };
    let count = field().ok_or_else(too_short)?;
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(field().zip(field()).ok_or_else(too_short)?);
    }
    let mut at = (bytes.len() - rest.len()).next_multiple_of(PAGE);
    let mut mapped = 0;
    for (first, pages) in runs {
        let outside = || impossible("a page lies outside memory");
        let offset = first.checked_mul(PAGE).ok_or_else(outside)?;
        let length = pages.checked_mul(PAGE).ok_or_else(outside)?;
        let contents = at.checked_add(length).and_then(|end| bytes.get(at..end));
        let contents = contents.ok_or(impossible("a page ends too early"))?;
        let maps = file.filter(|_| pages >= MAPPED && mapped < MAPPINGS);
        if maps.is_some_and(|file| ram.map(offset as u64, length as u64, file, at as u64)) {
            mapped += 1;
        } else {
            ram.bytes_mut(offset as u64, length as u64)
                .ok_or_else(outside)?
                .copy_from_slice(contents);
        }
        at += length;
    }
    if at == bytes.len() {
        Ok(())
    } else {
        Err(impossible("something follows the pages"))
    }
}
