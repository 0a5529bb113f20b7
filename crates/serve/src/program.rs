//! Work of the program: workers take requests, one after the other, and one of those without work waits for the device.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering, fence};

use abi::serve::{PIECES, SLOT_BYTES, SLOTS, WINDOW_BYTES, register, request, ring};
use serve::arguments::{Arguments, MAX_DISKS, Mistake};
use serve::device::{Device, Unusable};
use serve::linux::{self, Error, File, INTERRUPTED, Mode, Piece};
use serve::request::Request;
use serve::say;
use serve::text::Text;

/// Types and outcomes of requests (virtio 1.2, §5.2.6).
const READ: u32 = 0;
const WRITE: u32 = 1;
const FLUSH: u32 = 4;
const OK: u32 = 0;
const FAILED: u32 = 1;
const UNSUPPORTED: u32 = 2;

/// Bytes of a sector.
const SECTOR: u64 = 512;
/// Requests ahead at which the device would interrupt: never, while somebody looks for requests anyway.
const FAR: u32 = 1 << 30;

/// Memory that the processes have in common. All of it is zero at the beginning.
#[repr(C)]
struct Common {
    /// By disk: requests that were taken, and who writes answers.
    taken: [AtomicU32; MAX_DISKS],
    answering: [AtomicU32; MAX_DISKS],
    /// 1 while a process waits for the device, or is about to look for requests.
    is_watched: AtomicU32,
    /// 1 once the program ends.
    ends: AtomicU32,
}

/// A disk, and what keeps it.
#[derive(Clone, Copy)]
struct Disk {
    number: u32,
    file: File,
    is_block_device: bool,
}

struct Program {
    device: Device,
    disks: [Option<Disk>; MAX_DISKS],
    common: &'static Common,
    idle: u32,
    writes_back: bool,
}

/// Runs the program; its exit status.
pub fn run(arguments: impl Iterator<Item = &'static CStr>) -> u8 {
    let read = Arguments::read(arguments.map(CStr::to_bytes));
    let arguments = match read {
        Ok(arguments) => arguments,
        Err(mistake) => {
            explain(mistake);
            return 2;
        }
    };
    match Program::open(&arguments) {
        Ok(program) => program.work(arguments.workers),
        Err(Unusable(what, 0)) => {
            say!("{what}");
            1
        }
        Err(Unusable(what, number)) => {
            say!("{what} ({number})");
            1
        }
    }
}

fn explain(mistake: Mistake<'_>) {
    let text = |bytes| core::str::from_utf8(bytes).unwrap_or("?");
    match mistake {
        Mistake::Unknown(argument) => say!(
            "{}: this is neither NAME=PATH nor an option",
            text(argument)
        ),
        Mistake::BadNumber(argument) => say!("{}: this number is out of range", text(argument)),
        Mistake::TooMany => say!("a VM serves {MAX_DISKS} disks at most"),
        Mistake::None => say!(
            "say which disks: partita-serve [--workers=N] [--idle=SECONDS] [--write-back] NAME=PATH..."
        ),
    }
}

impl Program {
    fn open(arguments: &Arguments<'_>) -> Result<Self, Unusable> {
        let device = Device::open()?;
        let mut disks = [None; MAX_DISKS];
        let count = device.register(register::DISKS);
        for (number, place) in (0..count).zip(&mut disks) {
            *place = Some(open_disk(&device, number, arguments)?);
        }
        let common = linux::common(size_of::<Common>() as u64);
        let common =
            common.map_err(|Error(error)| Unusable("there is no memory for the workers", error))?;
        Ok(Self {
            device,
            disks,
            // SAFETY: the memory is zeroed, aligned to a page, stays, and holds nothing else.
            common: unsafe { &*common.cast::<Common>() },
            idle: arguments.idle,
            writes_back: arguments.writes_back,
        })
    }

    fn work(&self, workers: u32) -> u8 {
        self.device.set_register(register::START, 1);
        for _ in 1..workers {
            match linux::fork() {
                Ok(true) => break,
                Ok(false) => {}
                Err(Error(error)) => say!("a worker cannot be made ({error})"),
            }
        }
        while self.common.ends.load(Ordering::SeqCst) == 0 {
            self.watch();
        }
        0
    }

    /// Becomes the process that waits for requests, takes one, and carries it out when another process waits.
    fn watch(&self) {
        let watched = &self.common.is_watched;
        if watched.swap(1, Ordering::SeqCst) != 0 {
            linux::wait_while(watched, 1);
            return;
        }
        let mut had_any = false;
        let taken = loop {
            if let Some(taken) = self.take() {
                break taken;
            }
            if !self.wait(&mut had_any) {
                self.common.ends.store(1, Ordering::SeqCst);
                watched.store(0, Ordering::SeqCst);
                linux::wake(watched, u32::MAX >> 1);
                return;
            }
        };
        watched.store(0, Ordering::SeqCst);
        linux::wake(watched, 1);
        self.carry_out(taken);
    }

    /// Takes the next request: its disk and its slot.
    fn take(&self) -> Option<(Disk, u32)> {
        for disk in self.disks.iter().flatten() {
            let taken = &self.common.taken[disk.number as usize];
            let next = taken.load(Ordering::SeqCst);
            if self.ring(disk, ring::ASKED) == next {
                continue;
            }
            // One process alone takes requests.
            let entry = ring::ASKED_SLOTS + 4 * u64::from(next % SLOTS as u32);
            let slot = self.ring(disk, entry);
            taken.store(next.wrapping_add(1), Ordering::SeqCst);
            return Some((*disk, slot));
        }
        None
    }

    /// Waits for a request. Returns false if the program is to end.
    fn wait(&self, had_any: &mut bool) -> bool {
        let mut is_empty = true;
        for disk in self.disks.iter().flatten() {
            let seen = self.common.taken[disk.number as usize].load(Ordering::SeqCst);
            *had_any |= seen != 0;
            self.set_ring(disk, ring::WAKE_AT, seen);
            // The device sees this before it is asked whether there is more.
            fence(Ordering::SeqCst);
            is_empty &= self.ring(disk, ring::ASKED) == seen;
        }
        let limit = if *had_any { self.idle } else { 0 };
        let came = !is_empty || self.device.wait(limit);
        for disk in self.disks.iter().flatten() {
            let seen = self.common.taken[disk.number as usize].load(Ordering::SeqCst);
            self.set_ring(disk, ring::WAKE_AT, seen.wrapping_add(FAR));
        }
        came
    }

    fn carry_out(&self, (disk, slot): (Disk, u32)) {
        let record = u64::from(slot) * ring::REQUEST_BYTES;
        let word = |offset| self.ring(&disk, record + offset);
        let request = Request::read(word);
        let mut pieces = [const { Piece { base: 0, bytes: 0 } }; PIECES];
        let window = u64::from(disk.number) * WINDOW_BYTES + u64::from(slot) * SLOT_BYTES;
        let count = (request.pieces as usize).min(PIECES);
        for (number, piece) in (0..).zip(pieces.iter_mut().take(count)) {
            let (offset, bytes) = Request::piece(number, word);
            let address = self
                .device
                .window
                .address(window + u64::from(offset), bytes.into());
            *piece = Piece {
                base: address.unwrap_or(0),
                bytes: bytes.into(),
            };
        }
        let pieces = pieces.get_mut(..count).unwrap_or_default();
        let place = request.sector.saturating_mul(SECTOR);
        let status = match request.kind {
            READ => self.transfer(&disk, pieces, place, false),
            WRITE => self.transfer(&disk, pieces, place, true),
            FLUSH => disk.file.flush(),
            _ => return self.answer(&disk, slot, &request, UNSUPPORTED),
        };
        let status = if status.is_ok() { OK } else { FAILED };
        self.answer(&disk, slot, &request, status);
    }

    /// Reads or writes everything, in as many calls as Linux makes of it.
    fn transfer(
        &self,
        disk: &Disk,
        mut pieces: &mut [Piece],
        place: u64,
        is_write: bool,
    ) -> Result<(), Error> {
        /// The disk ended before the data.
        const SHORT: Error = Error(5);
        let through = is_write && !self.writes_back;
        let mut at = place;
        while let Some(first) = pieces.first_mut() {
            if first.bytes == 0 {
                pieces = &mut pieces[1..];
                continue;
            }
            let done = match is_write {
                true => disk
                    .file
                    .write_pieces(pieces, at, through && !disk.is_block_device),
                // SAFETY: the pieces lie in the window.
                false => unsafe { disk.file.read_pieces(pieces, at) },
            };
            let mut done = match done {
                Err(INTERRUPTED) => continue,
                done => done? as u64,
            };
            if done == 0 {
                return Err(SHORT);
            }
            at += done;
            for piece in &mut *pieces {
                let taken = done.min(piece.bytes);
                (piece.base, piece.bytes) = (piece.base + taken, piece.bytes - taken);
                done -= taken;
            }
        }
        if through && disk.is_block_device {
            disk.file.write_out(place, at - place)?;
        }
        Ok(())
    }

    fn answer(&self, disk: &Disk, slot: u32, request: &Request, status: u32) {
        let lock = &self.common.answering[disk.number as usize];
        while lock.swap(1, Ordering::Acquire) != 0 {
            linux::wait_while(lock, 1);
        }
        let next = self.ring(disk, ring::ANSWERED);
        let at = ring::ANSWERS + ring::ANSWER_BYTES * u64::from(next % SLOTS as u32);
        for (offset, value) in [(0, slot), (4, request.id), (8, status), (12, request.bytes)] {
            self.set_ring(disk, at + offset, value);
        }
        self.set_ring(disk, ring::ANSWERED, next.wrapping_add(1));
        lock.store(0, Ordering::Release);
        linux::wake(lock, 1);
        self.device.set_register(register::DOORBELL, disk.number);
    }

    fn ring(&self, disk: &Disk, offset: u64) -> u32 {
        let at = u64::from(disk.number) * ring::RING_BYTES + offset;
        u32::from_le(self.device.rings.word(at).load(Ordering::SeqCst))
    }

    fn set_ring(&self, disk: &Disk, offset: u64, value: u32) {
        let at = u64::from(disk.number) * ring::RING_BYTES + offset;
        let word = self.device.rings.word(at);
        word.store(value.to_le(), Ordering::SeqCst);
    }
}

fn open_disk(device: &Device, number: u32, arguments: &Arguments<'_>) -> Result<Disk, Unusable> {
    let properties = register::DISK + u64::from(number) * register::DISK_BYTES;
    let mut name = [0; register::NAME_BYTES as usize];
    for (at, bytes) in (0..).step_by(4).zip(name.chunks_mut(4)) {
        let word = device.register(properties + register::NAME + at);
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let length = name
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(name.len());
    let name = name.get(..length).unwrap_or_default();
    let sectors = u64::from(device.register(properties + register::SECTORS))
        | u64::from(device.register(properties + register::SECTORS + 4)) << 32;
    let text = core::str::from_utf8(name).unwrap_or("?");
    let Some(found) = arguments.disk(name) else {
        say!("the system file wants a disk {text}: add {text}=PATH");
        return Err(Unusable("a disk has nothing that keeps it", 0));
    };
    let path = core::str::from_utf8(found.path).unwrap_or_default();
    let file = linux::open(Text::of(format_args!("{path}")).path(), Mode::Both)
        .map_err(|Error(error)| Unusable("what keeps a disk cannot be opened", error))?;
    let size = file.size().unwrap_or(0);
    if size / SECTOR < sectors {
        say!(
            "{path} has {size} bytes, and the disk {text} has {}",
            sectors * SECTOR
        );
        return Err(Unusable("what keeps a disk is too short", 0));
    }
    say!("serving {text}: {} bytes of {path}", sectors * SECTOR);
    Ok(Disk {
        number,
        file,
        is_block_device: path.starts_with("/dev/"),
    })
}

const _: () = assert!(request::PIECE_BYTES == 8);
