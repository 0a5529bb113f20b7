//! Memory for code: one object that is mapped twice, to be written and to be executed. No mapping is both.

use std::ffi::c_void;
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A buffer of machine code.
#[derive(Debug)]
pub struct CodeMemory {
    writable: NonNull<u8>,
    executable: NonNull<u8>,
    size: usize,
}

// SAFETY: both mappings belong to this value alone; sharing follows Rust's usual borrows.
unsafe impl Send for CodeMemory {}

impl CodeMemory {
    /// A buffer of `size` bytes, a multiple of a page. `None` where the host does not allow it.
    pub fn new(size: usize) -> Option<Self> {
        let file = memfd_create(c"partita-code", MemfdFlags::CLOEXEC).ok()?;
        ftruncate(&file, size as u64).ok()?;
        let map = |protection| {
            // SAFETY: a new mapping at an address that the host chooses touches no other memory.
            let start = unsafe {
                mmap(
                    std::ptr::null_mut(),
                    size,
                    protection,
                    MapFlags::SHARED,
                    &file,
                    0,
                )
            };
            NonNull::new(start.ok()?.cast::<u8>())
        };
        let writable = map(ProtFlags::READ | ProtFlags::WRITE)?;
        let Some(executable) = map(ProtFlags::READ | ProtFlags::EXEC) else {
            // SAFETY: mapped just now with this size, and nobody has its address.
            let _ = unsafe { munmap(writable.as_ptr().cast::<c_void>(), size) };
            return None;
        };
        Some(Self {
            writable,
            executable,
            size,
        })
    }

    /// The first byte, to be executed.
    pub const fn start(&self) -> *const u8 {
        self.executable.as_ptr()
    }

    /// Copies bytes to an offset; nothing happens unless all of them have room.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        if at
            .checked_add(bytes.len())
            .is_some_and(|end| end <= self.size)
        {
            // SAFETY: inside the mapping, which only this value knows, and borrowed mutably. Nothing of
            // the buffer is being executed while Rust's code runs.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    self.writable.as_ptr().add(at),
                    bytes.len(),
                );
            }
        }
    }
}

impl Drop for CodeMemory {
    fn drop(&mut self) {
        for start in [self.writable, self.executable] {
            // SAFETY: mapped in `new` with this size; nobody holds an address into it any more.
            let _ = unsafe { munmap(start.as_ptr().cast::<c_void>(), self.size) };
        }
    }
}

/// Makes what has been written count for what is executed from here on. Where code was written at another
/// address than it is executed at, the processor manuals ask for a serializing instruction (Intel SDM, volume 3,
/// "Handling Self- and Cross-Modifying Code"); IRET is the only one that neither needs privileges nor, like
/// CPUID, leaves a virtual machine.
pub fn serialize() {
    // SAFETY: IRET to the next instruction with the same stack, segments and flags.
    unsafe {
        std::arch::asm!(
            "mov {t:e}, ss",
            "push {t}",
            "push rsp",
            "add qword ptr [rsp], 8",
            "pushfq",
            "mov {t:e}, cs",
            "push {t}",
            "lea {t}, [rip + 2f]",
            "push {t}",
            "iretq",
            "2:",
            t = out(reg) _,
        );
    }
}
