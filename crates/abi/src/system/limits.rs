//! Every limit of a system, in one list: the laboratory checks a system by it, and the hypervisor is built for it.

/// Most VMs of a system.
pub const MAX_VMS: usize = 64;
/// Most vCPUs of all VMs together. One scheduler serves [`MAX_VCPUS_OF_A_SCHEDULER`].
pub const MAX_VCPUS: usize = 512;
/// Most vCPUs that one scheduler serves: what it keeps sets of. With [`Queue::Single`](super::Queue::Single) there is one for all
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
/// Most switches between VMs.
pub const MAX_SWITCHES: usize = 8;
/// Most devices of all VMs together by which they share something.
pub const MAX_SHARING: usize = 256;
/// A VM's memory is a multiple of this many bytes: the G-stage's megapage.
pub const MEMORY_GRANULE: u64 = 2 << 20;
/// Bounds of the time slice in microseconds.
pub const TIME_SLICE_US: core::ops::RangeInclusive<u32> = 1_000..=10_000;
/// Bounds of a VM's share.
pub const SHARE: core::ops::RangeInclusive<u32> = 1..=10_000;

/// Bytes of the frames that each vCPU of a VM with shadow tables has for them. 512 tables of pages map a gibibyte at most, and the
/// 32 spaces that are kept share them.
pub const SHADOW_BYTES: u64 = 512 << 12;
