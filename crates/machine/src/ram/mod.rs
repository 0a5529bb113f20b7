//! RAM as host memory.

use std::fs::File;

mod pages;

pub(crate) use pages::Pages;

use crate::base::{PAGE_BYTES, PAGE_SHIFT};

/// Why there is no RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RamError {
    /// The size is zero or not a multiple of 4 KiB.
    #[error("memory size {0:#x} is not a positive multiple of 4 KiB")]
    Size(u64),
    /// The host refuses.
    #[error("the host has no room for {0:#x} bytes of guest memory")]
    NoRoom(u64),
}

/// An integer as loads and stores move it.
///
/// # Safety
/// The type must be valid for every bit pattern and without padding.
pub unsafe trait Scalar: Copy {
    /// Bytes.
    const SIZE: u64 = size_of::<Self>() as u64;
    /// The value, zero-extended.
    fn to_u64(self) -> u64;
    /// The low bytes of a value.
    fn from_u64(value: u64) -> Self;
}

macro_rules! scalar {
    ($($type:ty),*) => {$(
        // SAFETY: a primitive unsigned integer.
        unsafe impl Scalar for $type {
            #[inline(always)]
            fn to_u64(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn from_u64(value: u64) -> Self {
                value as Self
            }
        }
    )*};
}

scalar!(u8, u16, u32, u64);

const _: () = assert!(
    cfg!(target_endian = "little"),
    "guest memory is little-endian"
);

/// RAM: one range of physical addresses, zero at the beginning.
#[derive(Debug)]
pub struct Ram {
    base: u64,
    size: u64,
    bytes: Pages,
    /// Page by page whether anything may have been written; other pages are zero.
    touched: Vec<bool>,
}

/// A page of RAM that may be written without a word to [`Ram`] from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenPage(());

impl Ram {
    /// `size` zero bytes at physical address `base`. Pages cost host memory once touched.
    ///
    /// # Errors
    /// See [`RamError`].
    pub fn new(base: u64, size: u64) -> Result<Self, RamError> {
        if size == 0 || !size.is_multiple_of(PAGE_BYTES) || base.checked_add(size).is_none() {
            return Err(RamError::Size(size));
        }
        let bytes = usize::try_from(size).ok();
        let bytes = bytes.and_then(|size| Pages::zero(size).ok());
        Ok(Self {
            base,
            size,
            bytes: bytes.ok_or(RamError::NoRoom(size))?,
            touched: vec![false; (size >> PAGE_SHIFT) as usize],
        })
    }

    /// The lowest physical address.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The offset of a physical address if `length` bytes from it are all RAM.
    #[inline]
    #[must_use]
    pub const fn offset(&self, physical: u64, length: u64) -> Option<u64> {
        let offset = physical.wrapping_sub(self.base);
        if offset < self.size && length <= self.size - offset {
            Some(offset)
        } else {
            None
        }
    }

    /// The first byte, for code that reads and writes as [`Self::read_unchecked`] and
    /// [`Self::write_unchecked`] do.
    #[must_use]
    pub(crate) const fn start(&self) -> *mut u8 {
        self.bytes.start().as_ptr()
    }

    /// Reads at an offset.
    ///
    /// # Safety
    /// `offset + T::SIZE` must not exceed [`Self::size`].
    #[inline(always)]
    #[must_use]
    pub unsafe fn read_unchecked<T: Scalar>(&self, offset: u64) -> T {
        debug_assert!(offset + T::SIZE <= self.size);
        // SAFETY: inside the allocation by the caller's promise; any bit pattern is a `T`.
        unsafe {
            self.bytes
                .start()
                .as_ptr()
                .add(offset as usize)
                .cast::<T>()
                .read_unaligned()
        }
    }

    /// Writes at an offset of a page that is open.
    ///
    /// # Safety
    /// `offset + T::SIZE` must not exceed [`Self::size`].
    #[inline(always)]
    pub unsafe fn write_unchecked<T: Scalar>(&mut self, offset: u64, value: T) {
        debug_assert!(offset + T::SIZE <= self.size);
        // SAFETY: inside the allocation by the caller's promise.
        unsafe {
            self.bytes
                .start()
                .as_ptr()
                .add(offset as usize)
                .cast::<T>()
                .write_unaligned(value)
        }
    }

    /// Reads at a physical address; `None` unless all of it is RAM.
    #[inline]
    #[must_use]
    pub fn read<T: Scalar>(&self, physical: u64) -> Option<T> {
        let offset = self.offset(physical, T::SIZE)?;
        // SAFETY: `offset` checked the range.
        Some(unsafe { self.read_unchecked(offset) })
    }

    /// Writes at a physical address; `None`, and nothing is written, unless all of it is RAM.
    #[inline]
    pub fn write<T: Scalar>(&mut self, physical: u64, value: T) -> Option<()> {
        let offset = self.offset(physical, T::SIZE)?;
        self.open(offset)?;
        self.open(offset + T::SIZE - 1)?;
        // SAFETY: `offset` checked the range.
        unsafe { self.write_unchecked(offset, value) };
        Some(())
    }

    /// Opens the page at an offset for [`Self::write_unchecked`], for as long as this value lives.
    #[inline]
    pub fn open(&mut self, offset: u64) -> Option<OpenPage> {
        *self.touched.get_mut((offset >> PAGE_SHIFT) as usize)? = true;
        Some(OpenPage(()))
    }

    /// Makes `length` bytes at an offset those of a file from `from` on, as [`Pages::map`] does: nobody may change
    /// the file. `false`, and nothing has happened, if they are not all RAM or the host cannot do it.
    pub fn map(&mut self, offset: u64, length: u64, file: &File, from: u64) -> bool {
        let place = offset.checked_add(length).filter(|&end| end <= self.size);
        let mapped = place.is_some_and(|_| {
            let (offset, length) = (offset as usize, length as usize);
            self.bytes.map(offset, length, file, from).is_ok()
        });
        if mapped {
            for page in offset >> PAGE_SHIFT..(offset + length).div_ceil(PAGE_BYTES) {
                self.open(page << PAGE_SHIFT);
            }
        }
        mapped
    }

    /// The pages that are not zero, with their numbers, lowest first. Looks at those alone that may
    /// have been written.
    pub fn pages(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let pages = self.bytes().chunks(PAGE_BYTES as usize).enumerate();
        pages
            .zip(&self.touched)
            .filter(|&((_, page), &touched)| touched && !is_zero(page))
            .map(|(page, _)| page)
    }

    /// All bytes, lowest address first.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation is `size` initialised bytes and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.bytes.start().as_ptr(), self.size as usize) }
    }

    /// Some bytes from an offset on, to be written; `None` unless all of them are RAM.
    pub fn bytes_mut(&mut self, offset: u64, length: u64) -> Option<&mut [u8]> {
        let end = offset.checked_add(length).filter(|&end| end <= self.size)?;
        for page in offset >> PAGE_SHIFT..end.div_ceil(PAGE_BYTES) {
            self.open(page << PAGE_SHIFT)?;
        }
        // SAFETY: the allocation is `size` initialised bytes and mutably borrowed with `self`.
        let all = unsafe {
            std::slice::from_raw_parts_mut(self.bytes.start().as_ptr(), self.size as usize)
        };
        all.get_mut(offset as usize..end as usize)
    }
}

fn is_zero(page: &[u8]) -> bool {
    let (words, rest) = page.as_chunks::<16>();
    words.iter().all(|word| u128::from_ne_bytes(*word) == 0) && rest.iter().all(|&byte| byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_must_lie_inside_entirely() {
        let mut ram = Ram::new(0x8000_0000, 0x1000).expect("one page");
        assert_eq!(ram.write(0x8000_0ff8, 0x0123_4567_89ab_cdef_u64), Some(()));
        assert_eq!(ram.read::<u32>(0x8000_0ffc), Some(0x0123_4567));
        assert_eq!(ram.read::<u64>(0x8000_0ffc), None);
        assert_eq!(ram.read::<u8>(0x7fff_ffff), None);
        assert_eq!(ram.write(u64::MAX, 1_u8), None);
    }

    #[test]
    fn nonzero_pages_are_found_however_written() {
        let mut ram = Ram::new(0x8000_0000, 0x8000).expect("eight pages");
        ram.write(0x8000_0ffc, u64::MAX).expect("inside");
        ram.write(0x8000_3000, 0_u64).expect("inside");
        ram.bytes_mut(0x5fff, 2).expect("inside").fill(7);
        ram.open(0x7000).expect("inside");
        // SAFETY: the last eight bytes.
        unsafe { ram.write_unchecked(0x7ff8, 1_u64) };
        let numbers: Vec<usize> = ram.pages().map(|(number, _)| number).collect();
        assert_eq!(numbers, [0, 1, 5, 6, 7]);
        assert!(ram.bytes_mut(0x7fff, 2).is_none());
        assert!(ram.bytes_mut(u64::MAX, 2).is_none());
        assert_eq!(ram.open(0x8000), None);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert_eq!(Ram::new(0, 0).err(), Some(RamError::Size(0)));
        assert_eq!(Ram::new(0, 100).err(), Some(RamError::Size(100)));
        // Without the black box the compiler leaves an unused allocation out, and it succeeds.
        let refused = std::hint::black_box(Ram::new(0, 1 << 62));
        assert_eq!(refused.err(), Some(RamError::NoRoom(1 << 62)));
    }
}
