//! A system as it was checked: harts, memory, policies, and the VMs with their devices.

use crate::cache::Cache;
use crate::disk_image::{self, Image, ImageMistake};
use crate::document::{Located, Origin};
use crate::host::{Date, HostNetwork};
use crate::settings::Settings;
use abi::keys::{self, Key, Value};
use abi::system::{Allocation, Hidden, Io, Placement, VmName};
use quantity::{Bytes, Duration};
use std::path::PathBuf;

/// virtio-mmio slots of QEMU's virt board.
pub const BOARD_SLOTS: usize = abi::system::MAX_BOARD_SLOTS;
/// Harts of QEMU's virt board that one hart set can name.
pub const BOARD_HARTS: u32 = abi::system::MAX_HARTS;

/// A file that a system names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileName {
    /// One of those that `partita images` builds, by its path in the cache.
    Built(String),
    /// Any other, relative paths taken from the system file's folder.
    Path(PathBuf),
}

impl FileName {
    /// Prefix of the names of files that `partita images` builds.
    pub const BUILT: &str = "image:";

    /// The file's path, where `cache` holds the built ones.
    pub fn path(&self, cache: &Cache) -> PathBuf {
        match self {
            Self::Built(name) => cache.folder().join(name),
            Self::Path(path) => path.clone(),
        }
    }
}

/// A disk of a VM.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    /// The image.
    pub file: Located<FileName>,
    /// Name of the snapshot in the image that the disk begins with.
    pub snapshot: Option<Located<String>>,
    /// The virtio-mmio slot, if the system file names one.
    pub slot: Option<Located<u8>>,
    /// How it is reached, where that is not as the VM says.
    pub io: Option<Io>,
    /// The values of its other keys.
    pub settings: Settings,
}

impl Disk {
    /// Value of a key of the disk's own.
    pub fn get<T: Value>(&self, key: Key<T>) -> T {
        self.settings.get(key)
    }

    /// The image, if it is in another form than raw.
    ///
    /// # Errors
    /// [`ImageMistake`].
    pub fn image(&self) -> Result<Option<Image>, ImageMistake> {
        match &self.file.value {
            FileName::Path(path) if !self.get(keys::RAW) && path.exists() => disk_image::of(path),
            _ => Ok(None),
        }
    }

    /// Name of its snapshot, if it has one.
    #[must_use]
    pub fn snapshot(&self) -> Option<&str> {
        self.snapshot.as_ref().map(|name| name.value.as_str())
    }

    /// Path of the raw disk: of the file, or of the disk in the cache that is made of it. A file that cannot be read is refused where
    /// it is opened.
    #[must_use]
    pub fn path(&self, cache: &Cache) -> PathBuf {
        let image = self.image().ok().flatten();
        let raw = image.and_then(|image| image.raw(self.snapshot(), cache).ok());
        raw.unwrap_or_else(|| self.file.value.path(cache))
    }
}

/// A disk that VMs share.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedDisk {
    /// Name by which the VMs' slices refer to it.
    pub name: String,
    /// Where its table begins.
    pub origin: Origin,
    /// The disk. It is the hypervisor's, whatever `io` says.
    pub disk: Disk,
}

/// A disk that a VM serves to others.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedDisk {
    /// Name by which the VMs' slices refer to it, and the serving program finds it.
    pub name: String,
    /// Where its table begins.
    pub origin: Origin,
    /// The VM that serves it.
    pub by: Located<String>,
    /// How long it is, a multiple of 512 bytes.
    pub size: Located<Bytes>,
}

/// A slice of a shared disk, which a VM has as a disk of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// The disk's name.
    pub of: Located<String>,
    /// Where on it the slice begins, a multiple of 512 bytes.
    pub offset: Located<Bytes>,
    /// How long it is, a multiple of 512 bytes; to the disk's end without it.
    pub size: Option<Located<Bytes>>,
    /// Refuses the guest's writes.
    pub read_only: bool,
}

/// A switch between VMs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// Its name, which is the network's.
    pub name: String,
    /// Where its table begins.
    pub origin: Origin,
    /// Has a card of the board, on the network of this name, as its uplink.
    pub uplink: bool,
}

/// A network card of a VM: the name of the network inside this run that it is on. Networks reach
/// neither the host nor the world.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// VMs whose cards name the same network see each other.
    pub network: Located<String>,
    /// How it is reached, where that is not as the VM says, and where that is written.
    pub io: Option<Located<Io>>,
}

/// Form of what a VM boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootForm {
    /// A kernel: a RISC-V Linux `Image` or an ELF file.
    Kernel,
    /// A firmware, which reads the guest's disks. It may be a flat program without a header.
    Firmware,
}

impl BootForm {
    /// Name of the key.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Kernel => keys::KERNEL.name(),
            Self::Firmware => keys::FIRMWARE.name(),
        }
    }
}

/// One virtual machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Vm {
    /// Its name.
    pub name: VmName,
    /// Where its table begins.
    pub origin: Origin,
    /// Number of vCPUs.
    pub vcpus: Located<u32>,
    /// Size of its memory.
    pub memory: Located<Bytes>,
    /// How it gets its harts.
    pub allocation: Located<Allocation>,
    /// Kernel or firmware that it boots.
    pub kernel: Located<FileName>,
    /// Form of that.
    pub boot: BootForm,
    /// The initial RAM disk.
    pub initrd: Option<Located<FileName>>,
    /// The kernel's command line.
    pub command_line: String,
    /// Its disks, in the guest's order.
    pub disks: Vec<Disk>,
    /// Its slices of shared disks, in the guest's order, behind its disks.
    pub slices: Vec<Slice>,
    /// Its network cards.
    pub network: Vec<Card>,
    /// The switches of which it has a port.
    pub ports: Vec<Located<String>>,
    /// Its terminals, with what the users at them do.
    pub terminals: Option<Habits>,
    /// Paths in the board's device tree of the devices that it is given.
    pub devices: Vec<Located<String>>,
    /// Extensions that its guest is not told of.
    pub hidden: Hidden,
    /// The values of its other keys.
    pub settings: Settings,
}

impl Vm {
    /// Value of a key of the VM's own.
    pub fn get<T: Value>(&self, key: Key<T>) -> T {
        self.settings.get(key)
    }

    /// Place of a key's value in the text, or of the VM's table where it is not given.
    pub fn origin_of<T>(&self, key: Key<T>) -> &Origin {
        self.settings.origin(key).unwrap_or(&self.origin)
    }

    /// Returns true if its guest drives a device of the computer directly: such a device reaches memory without the hypervisor.
    #[must_use]
    pub fn drives_devices(&self) -> bool {
        let others = self.get(keys::RNG) || self.terminals.is_some();
        let disks = (0..self.disks.len()).map(|number| self.io_of_disk(number));
        let cards = (0..self.network.len()).map(|number| self.io_of_card(number));
        others && self.get(keys::IO) == Io::Direct || disks.chain(cards).any(|io| io == Io::Direct)
    }

    /// How its network card with this number is reached.
    #[must_use]
    pub fn io_of_card(&self, number: usize) -> Io {
        let io = self.network.get(number).and_then(|card| card.io.as_ref());
        io.map_or_else(|| self.get(keys::IO), |io| io.value)
    }

    /// How its disk with this number is reached.
    #[must_use]
    pub fn io_of_disk(&self, number: usize) -> Io {
        let disk = self.disks.get(number);
        let io = disk.and_then(|disk| disk.io);
        io.unwrap_or_else(|| self.get(keys::IO))
    }

    /// Returns true if a device reached by `io` uses other addresses than the guest, and so offers `VIRTIO_F_ACCESS_PLATFORM`.
    #[must_use]
    pub fn tells_addresses(&self, io: Io) -> bool {
        self.get(keys::PLACEMENT) != Placement::Real && io == Io::Direct
    }
}

/// Behaviour of a VM's users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Habits {
    /// How many there are, each at a terminal of their own.
    pub count: u32,
    /// How many lines each of them sends and waits for.
    pub transactions: u32,
    /// How long they think before a line, on average: evenly drawn from half of it to one and a half times it.
    pub think: std::time::Duration,
}

/// A system.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// Number of harts.
    pub harts: Located<u32>,
    /// Size of the host's memory.
    pub memory: Located<Bytes>,
    /// The values of its other keys, those of `[experiment]` among them.
    pub settings: Settings,
    /// Console that a terminal is connected with unless `--console` names another: a VM's name, or `partita`.
    pub console: Option<String>,
    /// The hour of the day when the computer is switched on.
    pub date: Date,
    /// The network that reaches the host's, if one does.
    pub host: Option<HostNetwork>,
    /// The disks that VMs share, in the order of the file.
    pub disks: Vec<SharedDisk>,
    /// The disks that VMs serve to others, in the order of the file.
    pub served: Vec<ServedDisk>,
    /// The switches between VMs, in the order of the file.
    pub switches: Vec<Switch>,
    /// The VMs in the order of the file.
    pub vms: Vec<Vm>,
}

impl System {
    /// Value of a key of the system's.
    pub fn get<T: Value>(&self, key: Key<T>) -> T {
        self.settings.get(key)
    }

    /// Time after which a run is given up.
    pub fn time_limit(&self) -> Option<Duration> {
        self.get(keys::TIME_LIMIT).map(Duration)
    }

    /// Names, for people, of all that a run takes from the host, which makes it impossible to repeat.
    pub fn from_host(&self) -> Vec<String> {
        let date = (self.date == Date::Host).then(|| String::from("the hour of the day"));
        let network = self.host.as_ref();
        let network = network.map(|host| format!("the other end of the network {}", host.network));
        date.into_iter().chain(network).collect()
    }

    /// Every disk with the key of its table: those that VMs share, then the VMs' own.
    pub fn all_disks(&self) -> impl Iterator<Item = (String, &Disk)> {
        let shared = self.disks.iter();
        let shared = shared.map(|shared| (format!("disk.{}", shared.name), &shared.disk));
        let own = self.vms.iter().flat_map(|vm| {
            let disks = vm.disks.iter().enumerate();
            disks.map(|(number, disk)| (format!("vm.{}.disks[{number}]", vm.name), disk))
        });
        shared.chain(own)
    }

    /// The switches that have an uplink, each with its number among all.
    pub fn uplinks(&self) -> impl Iterator<Item = (usize, &Switch)> {
        let all = self.switches.iter().enumerate();
        all.filter(|(_, switch)| switch.uplink)
    }

    /// The VM with this name.
    pub fn vm(&self, name: &str) -> Option<&Vm> {
        self.vms.iter().find(|vm| vm.name.as_str() == name)
    }
}
