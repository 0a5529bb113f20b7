//! Calls of Linux on RISC-V (`include/uapi/asm-generic/unistd.h`), and the program's entry.

use core::arch::asm;
use core::ffi::CStr;

/// Makes a function of the arguments behind the program's name the program's entry. It returns the exit status.
#[macro_export]
macro_rules! entry {
    ($run:path) => {
        core::arch::global_asm!(
            ".globl _start",
            "_start:",
            "mv a0, sp",
            "andi sp, sp, -16",
            "call {entry}",
            "unimp",
            entry = sym enter,
        );

        unsafe extern "C" fn enter(stack: *const usize) -> ! {
            // SAFETY: Linux passes the program this stack.
            let arguments = unsafe { $crate::linux::arguments(stack) };
            $crate::linux::exit($run(arguments))
        }
    };
}

/// A call that failed, by the number of the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub u32);

/// A call that a signal interrupted, and what ended in the middle.
pub const INTERRUPTED: Error = Error(4);

/// An open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File(u32);

/// A piece of memory for a call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Piece {
    pub base: u64,
    pub bytes: u64,
}

mod number {
    pub const FUTEX: usize = 98;
    pub const OPENAT: usize = 56;
    pub const LSEEK: usize = 62;
    pub const READ: usize = 63;
    pub const WRITE: usize = 64;
    pub const PWRITE: usize = 68;
    pub const PREADV: usize = 69;
    pub const PWRITEV2: usize = 287;
    pub const PPOLL: usize = 73;
    pub const FDATASYNC: usize = 83;
    pub const SYNC_FILE_RANGE: usize = 84;
    pub const EXIT_GROUP: usize = 94;
    pub const CLONE: usize = 220;
    pub const MMAP: usize = 222;
    pub const PRCTL: usize = 167;
    pub const WAIT4: usize = 260;
}

/// Makes a call.
///
/// # Safety
/// The call reads and writes no memory but what the caller has for it.
unsafe fn call(number: usize, arguments: [usize; 6]) -> Result<usize, Error> {
    let [first, second, third, fourth, fifth, sixth] = arguments;
    let result: isize;
    // SAFETY: Linux keeps all registers but a0; what it does with memory is the caller's.
    unsafe {
        asm!(
            "ecall",
            in("a7") number,
            inlateout("a0") first as isize => result,
            in("a1") second,
            in("a2") third,
            in("a3") fourth,
            in("a4") fifth,
            in("a5") sixth,
            options(nostack),
        );
    }
    match result {
        -4095..0 => Err(Error(result.unsigned_abs() as u32)),
        _ => Ok(result as usize),
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Read = 0,
    Write = 1,
    Both = 2,
}

/// Opens a file.
///
/// # Errors
/// [`Error`]
pub fn open(path: &CStr, mode: Mode) -> Result<File, Error> {
    const CURRENT_FOLDER: usize = -100_isize as usize;
    let arguments = [
        CURRENT_FOLDER,
        path.as_ptr() as usize,
        mode as usize,
        0,
        0,
        0,
    ];
    // SAFETY: the path is read.
    let file = unsafe { call(number::OPENAT, arguments) }?;
    Ok(File(file as u32))
}

impl File {
    /// Standard output.
    pub const OUTPUT: Self = Self(1);

    /// Reads at the file's own place.
    ///
    /// # Errors
    /// [`Error`]
    pub fn read(self, to: &mut [u8]) -> Result<usize, Error> {
        let arguments = [self.0 as usize, to.as_mut_ptr() as usize, to.len(), 0, 0, 0];
        // SAFETY: the bytes are the caller's.
        unsafe { call(number::READ, arguments) }
    }

    /// Writes at the file's own place.
    ///
    /// # Errors
    /// [`Error`]
    pub fn write(self, from: &[u8]) -> Result<usize, Error> {
        let arguments = [self.0 as usize, from.as_ptr() as usize, from.len(), 0, 0, 0];
        // SAFETY: the bytes are read.
        unsafe { call(number::WRITE, arguments) }
    }

    /// Writes at an offset.
    ///
    /// # Errors
    /// [`Error`]
    pub fn write_at(self, from: &[u8], offset: u64) -> Result<usize, Error> {
        let arguments = [
            self.0 as usize,
            from.as_ptr() as usize,
            from.len(),
            offset as usize,
            0,
            0,
        ];
        // SAFETY: the bytes are read.
        unsafe { call(number::PWRITE, arguments) }
    }

    /// Bytes of a file or a block device.
    ///
    /// # Errors
    /// [`Error`]
    pub fn size(self) -> Result<u64, Error> {
        const END: usize = 2;
        // SAFETY: the call touches no memory.
        unsafe { call(number::LSEEK, [self.0 as usize, 0, END, 0, 0, 0]) }.map(|size| size as u64)
    }

    /// Reads at an offset into memory in pieces, which is not the program's own.
    ///
    /// # Safety
    /// The pieces are memory that no object of the program lies in.
    ///
    /// # Errors
    /// [`Error`]
    pub unsafe fn read_pieces(self, to: &[Piece], offset: u64) -> Result<usize, Error> {
        let arguments = [
            self.0 as usize,
            to.as_ptr() as usize,
            to.len(),
            offset as usize,
            0,
            0,
        ];
        // SAFETY: as above.
        unsafe { call(number::PREADV, arguments) }
    }

    /// Writes from memory in pieces at an offset; with `through` the data is on the device afterwards.
    ///
    /// # Errors
    /// [`Error`]
    pub fn write_pieces(self, from: &[Piece], offset: u64, through: bool) -> Result<usize, Error> {
        const THROUGH: usize = 2;
        let flags = if through { THROUGH } else { 0 };
        let arguments = [
            self.0 as usize,
            from.as_ptr() as usize,
            from.len(),
            offset as usize,
            0,
            flags,
        ];
        // SAFETY: the pieces are read.
        unsafe { call(number::PWRITEV2, arguments) }
    }

    /// Waits until the device of a block device has what was written there. The device may keep it in a cache of its own.
    ///
    /// # Errors
    /// [`Error`]
    pub fn write_out(self, offset: u64, bytes: u64) -> Result<(), Error> {
        const BEGIN_AND_WAIT: usize = 7;
        let arguments = [
            self.0 as usize,
            offset as usize,
            bytes as usize,
            BEGIN_AND_WAIT,
            0,
            0,
        ];
        // SAFETY: the call touches no memory.
        unsafe { call(number::SYNC_FILE_RANGE, arguments) }.map(drop)
    }

    /// Waits until all that was written is kept for good.
    ///
    /// # Errors
    /// [`Error`]
    pub fn flush(self) -> Result<(), Error> {
        // SAFETY: the call touches no memory.
        unsafe { call(number::FDATASYNC, [self.0 as usize, 0, 0, 0, 0, 0]) }.map(drop)
    }

    /// Maps the file's first bytes, for all processes.
    ///
    /// # Errors
    /// [`Error`]
    pub fn map(self, bytes: u64) -> Result<*mut u8, Error> {
        // SAFETY: the address is Linux's choice, so that nothing else lies there.
        unsafe { map(bytes, SHARED, self.0 as usize) }
    }

    /// Waits until the file can be read; false after so many seconds, if that is not 0.
    ///
    /// # Errors
    /// [`Error`]
    pub fn wait(self, seconds: u32) -> Result<bool, Error> {
        const READABLE: u64 = 1;
        let mut wanted = u64::from(self.0) | READABLE << 32;
        let limit = [u64::from(seconds), 0];
        let limit = if seconds == 0 {
            0
        } else {
            limit.as_ptr() as usize
        };
        let arguments = [&raw mut wanted as usize, 1, limit, 0, 8, 0];
        // SAFETY: the call reads and writes the two values above.
        let ready = unsafe { call(number::PPOLL, arguments) }?;
        Ok(ready > 0)
    }
}

const SHARED: usize = 1;
const ANONYMOUS: usize = 0x20;

unsafe fn map(bytes: u64, flags: usize, file: usize) -> Result<*mut u8, Error> {
    const READ_AND_WRITE: usize = 3;
    let arguments = [0, bytes as usize, READ_AND_WRITE, flags, file, 0];
    // SAFETY: the caller's.
    let at = unsafe { call(number::MMAP, arguments) }?;
    Ok(core::ptr::with_exposed_provenance_mut(at))
}

/// Zeroed memory that all processes have in common.
///
/// # Errors
/// [`Error`]
pub fn common(bytes: u64) -> Result<*mut u8, Error> {
    // SAFETY: the address is Linux's choice, so that nothing else lies there.
    unsafe { map(bytes, SHARED | ANONYMOUS, usize::MAX) }
}

/// Makes a process like this one. Returns true in the new one, which ends with its parent.
///
/// # Errors
/// [`Error`]
pub fn fork() -> Result<bool, Error> {
    const CHILD_ENDED: usize = 17;
    const END_WITH_PARENT: usize = 1;
    const KILL: usize = 9;
    // SAFETY: the new process has a copy of the stack, and what else it has in common is atomic.
    let child = unsafe { call(number::CLONE, [CHILD_ENDED, 0, 0, 0, 0, 0]) }?;
    if child == 0 {
        // SAFETY: the call touches no memory.
        let _ = unsafe { call(number::PRCTL, [END_WITH_PARENT, KILL, 0, 0, 0, 0]) };
    }
    Ok(child == 0)
}

/// Waits for the end of a process that [`fork`] has made.
pub fn reap() {
    const ANY: usize = usize::MAX;
    // SAFETY: the call writes nothing.
    let _ = unsafe { call(number::WAIT4, [ANY, 0, 0, 0, 0, 0]) };
}

/// Waits for a millisecond.
pub fn sleep_millisecond() {
    let limit = [0_u64, 1_000_000];
    // SAFETY: the call reads the limit.
    let _ = unsafe { call(number::PPOLL, [0, 0, limit.as_ptr() as usize, 0, 8, 0]) };
}

/// Waits while the word is `value`, until somebody wakes.
pub fn wait_while(word: &core::sync::atomic::AtomicU32, value: u32) {
    const WAIT: usize = 0;
    let arguments = [word.as_ptr() as usize, WAIT, value as usize, 0, 0, 0];
    // SAFETY: the call reads the word.
    let _ = unsafe { call(number::FUTEX, arguments) };
}

/// Wakes so many processes that wait for the word.
pub fn wake(word: &core::sync::atomic::AtomicU32, count: u32) {
    const WAKE: usize = 1;
    let arguments = [word.as_ptr() as usize, WAKE, count as usize, 0, 0, 0];
    // SAFETY: the call touches no memory.
    let _ = unsafe { call(number::FUTEX, arguments) };
}

/// Ends the process.
pub fn exit(status: u8) -> ! {
    loop {
        // SAFETY: nothing happens after it.
        let _ = unsafe { call(number::EXIT_GROUP, [status.into(), 0, 0, 0, 0, 0]) };
    }
}

/// The arguments behind the program's name.
///
/// # Safety
/// `stack` is the stack pointer that Linux has passed to the program: there is the number of arguments, then their addresses.
pub unsafe fn arguments(stack: *const usize) -> impl Iterator<Item = &'static CStr> {
    // SAFETY: Linux puts them there (`create_elf_tables`), and they stay.
    let count = unsafe { stack.read() };
    (1..count).map(move |index| {
        // SAFETY: as above; each is a text that ends with a zero byte.
        unsafe {
            CStr::from_ptr(
                stack
                    .add(1 + index)
                    .cast::<*const core::ffi::c_char>()
                    .read(),
            )
        }
    })
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    let _ = File::OUTPUT.write(b"partita-serve: stopped by a mistake of its own\n");
    exit(3)
}
