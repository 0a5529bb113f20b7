//! Every limit of a system, in one list: the laboratory checks a system by it, and the hypervisor is built for it.

/// Most VMs of a system.
pub const MAX_VMS: usize = 64;
/// Most vCPUs of all VMs together. One scheduler serves [`MAX_VCPUS_OF_A_SCHEDULER`].
pub const MAX_VCPUS: usize = 512;
/// Most vCPUs that one scheduler serves: what it keeps sets of. With [`RunQueue::Global`](super::RunQueue::Global) there is one for all
/// harts, else at most one for each hart.
pub const MAX_VCPUS_OF_A_SCHEDULER: usize = 64;
/// Most vCPUs of a VM.
pub const MAX_VCPUS_PER_VM: usize = 64;
/// Longest name of a VM in bytes.
pub const MAX_NAME_LENGTH: usize = 31;
/// Longest command line of a guest in bytes: what Linux on RISC-V takes, less the NUL (`COMMAND_LINE_SIZE`, 1024).
pub const MAX_BOOTARGS_LENGTH: usize = 1023;
/// Harts have numbers below this.
pub const MAX_HARTS: u32 = 64;
/// virtio-mmio slots have numbers below this.
pub const MAX_SLOTS: usize = 32;
/// Most slices of disks of a VM.
pub const MAX_SLICES: usize = 32;
/// Most disks that a VM serves to others.
pub const MAX_SERVED: usize = 4;
/// Most switches between VMs.
pub const MAX_SWITCHES: usize = 8;
/// Most devices of all VMs together by which they share something.
pub const MAX_SHARING: usize = 256;
/// A VM's memory is a multiple of this many bytes: the G-stage's megapage.
pub const MEMORY_GRANULE: u64 = 2 << 20;
/// Limits of a VM's share.
pub const SHARE: core::ops::RangeInclusive<u32> = 1..=10_000;
/// Most guest interrupt files of a hart (AIA, `hgeie`).
pub const MAX_GUEST_FILES: u32 = 63;
/// virtio-mmio slots of QEMU's virt board.
pub const MAX_BOARD_SLOTS: usize = 8;
/// Most terminals of a VM: Linux has eight lines for them (`HVC_ALLOC_TTY_ADAPTERS`), of which the SBI console may take one.
pub const MAX_TERMINALS: u32 = 7;
/// Bytes of a disk's sector, in which slices are measured.
pub const SECTOR: u64 = 512;

/// Bytes of the frames that each vCPU of a VM with shadow tables has for them. 512 tables of pages map a gibibyte at most, and the
/// 32 spaces that are kept share them.
pub const SHADOW_BYTES: u64 = 512 << 12;
