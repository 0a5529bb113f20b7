//! The host's pages: memory that is zero, or what a file holds, until it is written.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// Pages of the host that belong to one value. Each costs the host memory once it is written; what is read
/// before that is shared: with the other pages of zeros, or with everybody who has mapped the same file.
#[derive(Debug)]
pub(crate) struct Pages {
    start: NonNull<u8>,
    size: usize,
}

// SAFETY: the mapping belongs to this value alone; sharing follows Rust's usual borrows.
unsafe impl Send for Pages {}

impl Pages {
    /// `size` zero bytes, more than none.
    ///
    /// # Errors
    /// What the host says.
    pub fn zero(size: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the host chooses touches no other memory.
        let start =
            unsafe { mmap_anonymous(std::ptr::null_mut(), size, protection, MapFlags::PRIVATE)? };
        // Fewer faults: a run of a second takes some five per cent less of the host's time. A host without huge pages refuses, and all is as it was.
        // SAFETY: the advice changes no byte of the mapping, which was made above.
        let _ = unsafe { madvise(start, size, Advice::LinuxHugepage) };
        Self::of(start, size)
    }

    /// All of a file, which is not empty, to be read. Nobody may change the file's bytes as long as this value
    /// lives; to replace the file by another of the same name does no harm.
    ///
    /// # Errors
    /// What the host says.
    pub fn of_file(file: &File) -> io::Result<Self> {
        let size = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        // SAFETY: as in `zero`.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                size,
                ProtFlags::READ,
                MapFlags::SHARED,
                file,
                0,
            )?
        };
        Self::of(start, size)
    }

    fn of(start: *mut c_void, size: usize) -> io::Result<Self> {
        let start = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, size })
    }

    /// The first byte, at the beginning of a page of the host.
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The bytes of [`Self::of_file`].
    pub const fn bytes(&self) -> &[u8] {
        // SAFETY: mapped with this size and readable, and borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.size) }
    }

    /// Replaces `length` bytes at `offset` by those of a file from `from` on, privately: what is written here does
    /// not change the file. Nobody may change the file's bytes as long as this value lives.
    ///
    /// # Errors
    /// What the host says, for instance that its pages are larger than an offset allows. Nothing has changed then.
    pub fn map(&mut self, offset: usize, length: usize, file: &File, from: u64) -> io::Result<()> {
        let inside = offset
            .checked_add(length)
            .is_some_and(|end| end <= self.size);
        // Behind its end a mapped file cannot be accessed.
        let there = from
            .checked_add(length as u64)
            .is_some_and(|end| file.metadata().is_ok_and(|file| end <= file.len()));
        if !inside || !there {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (protection, flags) = (
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE,
        );
        // SAFETY: the range lies inside this value's own mapping, which is mutably borrowed.
        unsafe {
            let at = self.start.as_ptr().add(offset).cast::<c_void>();
            mmap(at, length, protection, flags, file, from)?;
        }
        Ok(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped with this size; nobody holds an address into it any more.
        let _ = unsafe { munmap(self.start.as_ptr().cast::<c_void>(), self.size) };
    }
}
