//! The hypervisor's device: found by sysfs, its regions mapped, its interrupt by UIO.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use abi::serve::{DEVICE, IDENTITY, VENDOR, VERSION, register};

use crate::linux::{self, Error, File, Mode};
use crate::text::Text;

/// UIO devices that are looked at.
const LOOKED_AT: u32 = 16;
/// Offset of the command in configuration space.
const COMMAND: u64 = 4;
/// Command: memory, and wired interrupts.
const WITH_INTERRUPTS: u16 = 1 << 1;

/// A region of the device.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    base: NonNull<u8>,
    size: u64,
}

impl Region {
    /// The word at an offset.
    ///
    /// # Panics
    /// It lies outside of the region.
    pub fn word(&self, offset: u64) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.size);
        // SAFETY: the word lies in the mapping, which stays, and no other object lies there.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(offset as usize).cast()) }
    }

    /// Address of so many bytes at an offset, if they lie in the region.
    pub fn address(&self, offset: u64, bytes: u64) -> Option<u64> {
        let end = offset.checked_add(bytes)?;
        (end <= self.size).then(|| self.base.as_ptr() as u64 + offset)
    }
}

/// The device.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    pub registers: Region,
    pub rings: Region,
    pub window: Region,
    configuration: File,
    interrupts: File,
}

/// Reason why the device cannot be used, for people.
#[derive(Clone, Copy, Debug)]
pub struct Unusable(pub &'static str, pub u32);

impl Device {
    /// Finds the device and maps it.
    ///
    /// # Errors
    /// [`Unusable`]
    pub fn open() -> Result<Self, Unusable> {
        bind();
        let number = (0..LOOKED_AT).find(|number| is_ours(*number));
        let number = number.ok_or(Unusable(
            "no device of Partita is bound to uio_pci_generic; load that module, and let the system file name this VM in served-by",
            0,
        ))?;
        let file = |what: &'static str, name: &str, mode| {
            let path = Text::of(format_args!("/sys/class/uio/uio{number}/device/{name}"));
            linux::open(path.path(), mode).map_err(|Error(error)| Unusable(what, error))
        };
        let region = |name: &str| {
            let file = file("a region of the device cannot be opened", name, Mode::Both)?;
            let map = || {
                let size = file.size()?;
                file.map(size).map(|base| (base, size))
            };
            let (base, size) = map().map_err(|Error(error)| {
                Unusable("a region of the device cannot be mapped", error)
            })?;
            let base = NonNull::new(base).ok_or(Unusable("a region lies at address 0", 0))?;
            Ok(Region { base, size })
        };
        let path = Text::of(format_args!("/dev/uio{number}"));
        let interrupts = linux::open(path.path(), Mode::Read);
        let device = Self {
            registers: region("resource0")?,
            rings: region("resource1")?,
            window: region("resource2")?,
            configuration: file("configuration space cannot be opened", "config", Mode::Both)?,
            interrupts: interrupts.map_err(|Error(error)| {
                Unusable("the file of interrupts cannot be opened", error)
            })?,
        };
        if device.register(register::IDENTITY) != IDENTITY {
            return Err(Unusable("the device has another identity", 0));
        }
        match device.register(register::VERSION) {
            VERSION => Ok(device),
            version => Err(Unusable("the device has another version", version)),
        }
    }

    /// Value of a register.
    pub fn register(&self, offset: u64) -> u32 {
        u32::from_le(self.registers.word(offset).load(Ordering::SeqCst))
    }

    /// Sets a register.
    pub fn set_register(&self, offset: u64, value: u32) {
        let word = self.registers.word(offset);
        word.store(value.to_le(), Ordering::SeqCst);
    }

    /// Sets a word of configuration space.
    pub fn set_configuration(&self, offset: u64, value: u32) {
        let _ = self.configuration.write_at(&value.to_le_bytes(), offset);
    }

    /// Lets the device interrupt once, and waits for that; false after so many seconds, if they are not 0.
    pub fn wait(&self, seconds: u32) -> bool {
        let _ = self
            .configuration
            .write_at(&WITH_INTERRUPTS.to_le_bytes(), COMMAND);
        let came = self.interrupts.wait(seconds);
        if came == Ok(true) {
            let _ = self.interrupts.read(&mut [0; 4]);
        }
        came != Ok(false)
    }
}

/// Has the driver take devices of this kind. It may know them already.
fn bind() {
    if let Ok(file) = linux::open(c"/sys/bus/pci/drivers/uio_pci_generic/new_id", Mode::Write) {
        let mut ids = [b' '; 9];
        let halves = [VENDOR, DEVICE];
        for (at, half) in [0, 5].into_iter().zip(halves) {
            for digit in 0..4 {
                let value = half >> (4 * (3 - digit)) & 0xf;
                let text = char::from_digit(value.into(), 16).unwrap_or('0');
                if let Some(place) = ids.get_mut(at + digit) {
                    *place = text as u8;
                }
            }
        }
        let _ = file.write(&ids);
    }
}

fn is_ours(number: u32) -> bool {
    let is = |name: &str, id: u16| {
        let path = Text::of(format_args!("/sys/class/uio/uio{number}/device/{name}"));
        let mut text = [0; 6];
        let read = linux::open(path.path(), Mode::Read).and_then(|file| file.read(&mut text));
        let digits = text
            .get(2..)
            .and_then(|digits| core::str::from_utf8(digits).ok());
        let found = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        read == Ok(text.len()) && found == Some(id)
    };
    is("vendor", VENDOR) && is("device", DEVICE)
}
