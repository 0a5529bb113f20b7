//! Reasons why no system can be built.

use abi::cpio::CpioError;
use abi::keys::PapersMethod;
use abi::system::{FILE_NAME, MAX_SHARING, SystemError, VmName};
use scheduler::ConfigError;

use crate::devices::bus::NoRoom;
use crate::devices::iommu::IommuError;
use crate::devices::virtio::driver::DriverError;
use crate::memory::gstage::MapError;
use crate::memory::gstage::offer::NoConfinement;
use crate::memory::guest::BadPieces;
use crate::memory::placement::PlacementError;

/// Reason why no system can be built.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error("there is no system image: the firmware passed no initrd")]
    NoImage,
    #[error("the system image does not lie in the board's memory")]
    ImageOutside,
    #[error("the system image is damaged: {0}")]
    Archive(CpioError),
    #[error("the system image has no file {0}")]
    NoFile(&'static str),
    #[error("{vm}: the system image has no file {file}, which its description names")]
    NoPart { vm: VmName, file: &'static str },
    #[error("the system's description ({FILE_NAME}): {0}")]
    Description(SystemError),
    #[error("{0}")]
    Papers(PapersMethod),
    #[error("{vm}: {method}")]
    VmPapers { vm: VmName, method: PapersMethod },
    #[error("{vm}: the board has no virtio slot {slot}")]
    NoSlot { vm: VmName, slot: u8 },
    #[error("VMs ask for devices that they cannot have")]
    Devices,
    #[error("{vm}: the board has no hart {hart}")]
    NoHart { vm: VmName, hart: u32 },
    #[error(
        "{vm}: the device in virtio slot {slot} takes the guest's addresses for the host's, which they are not: choose placement \
         real, or resident with a device that offers VIRTIO_F_ACCESS_PLATFORM, or have the device simulated"
    )]
    DirectDevice { vm: VmName, slot: u8 },
    #[error(
        "{vm}: confined = \"required\", and no IOMMU confines the device in virtio slot {slot}: have the device simulated"
    )]
    Unconfined { vm: VmName, slot: u8 },
    #[error(
        "{vm}: vector-length = {wanted}, but it would get vector registers of {own} bits (0: none): change vector-length, or leave it away"
    )]
    VectorLength { vm: VmName, wanted: u32, own: usize },
    #[error("{vm}: {error}")]
    Vm { vm: VmName, error: ConfigError },
    #[error("the scheduler refuses its parameters: {0}")]
    Scheduler(ConfigError),
    #[error("{0}")]
    Memory(PlacementError),
    #[error("{vm}: {error}")]
    Pieces { vm: VmName, error: BadPieces },
    #[error("{0}")]
    Confinement(NoConfinement),
    #[error("{vm}: its G-stage table cannot be built: {error}")]
    Table { vm: VmName, error: MapError },
    #[error("{vm}: {error}")]
    Bus { vm: VmName, error: NoRoom },
    #[error("{vm}: there is no memory for the queues of its simulated devices")]
    Areas { vm: VmName },
    #[error("{vm}: there is no memory for its shadow tables")]
    Shadow { vm: VmName },
    #[error(
        "{vm}: its slice does not lie on the disk in virtio slot {slot}, which has {sectors} sectors of 512 bytes"
    )]
    SliceOutside { vm: VmName, slot: u8, sectors: u64 },
    #[error("the board has no virtio slot {slot}, where a device is to be that VMs share")]
    NoSharedSlot { slot: u8 },
    #[error("the disk in virtio slot {slot} cannot be shared by VMs: {error}")]
    SharedDisk { slot: u8, error: DriverError },
    #[error("the device in virtio slot {slot} cannot be the uplink of a switch: {error}")]
    Uplink { slot: u8, error: DriverError },
    #[error("there is no memory for the frames of switches between VMs")]
    Inboxes,
    #[error("the IOMMU at {base:#x} cannot confine devices: {error}")]
    Iommu { base: u64, error: IommuError },
    #[error("the VMs have more than {MAX_SHARING} slices and ports of switches")]
    TooManySharing,
    #[error("there is no memory for the stacks of the harts and the queues of shared disks")]
    Stacks,
    #[error("there is no memory for the heap of a system as large as this one")]
    Heap,
}
