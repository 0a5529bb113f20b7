//! Function and shared memory of steal-time accounting (chapter 16).

/// `sbi_steal_time_set_shmem`.
pub const SET_AREA: u64 = 0;

/// Bytes of the shared memory, and its alignment.
pub const AREA_SIZE: u64 = 64;
/// Offset of the 32-bit sequence: odd during a change of the steal time.
pub const SEQUENCE: u64 = 0;
/// Offset of the 64-bit steal time in nanoseconds.
pub const STEAL: u64 = 8;
/// Offset of the byte that is not 0 while the hart is preempted.
pub const PREEMPTED: u64 = 16;
