//! Functions, flags and events of the performance monitoring unit extension (chapter 11).

/// `sbi_pmu_num_counters`.
pub const COUNTERS: u64 = 0;
/// `sbi_pmu_counter_get_info`.
pub const INFORMATION: u64 = 1;
/// `sbi_pmu_counter_config_matching`.
pub const CONFIGURE: u64 = 2;
/// `sbi_pmu_counter_start`.
pub const START: u64 = 3;
/// `sbi_pmu_counter_stop`.
pub const STOP: u64 = 4;
/// `sbi_pmu_counter_fw_read`.
pub const READ_FIRMWARE: u64 = 5;
/// `sbi_pmu_counter_fw_read_hi`.
pub const READ_FIRMWARE_HIGH: u64 = 6;
/// `sbi_pmu_snapshot_set_shmem`.
pub const SET_SNAPSHOT_AREA: u64 = 7;

/// Bytes of the shared memory of a snapshot, and its alignment.
pub const SNAPSHOT_SIZE: u64 = 4096;
/// Offset of the counters that have overflowed, a bit each.
pub const SNAPSHOT_OVERFLOWS: u64 = 0;
/// Offset of the counters' values, of 64 bits each.
pub const SNAPSHOT_VALUES: u64 = 8;

/// `sbi_pmu_event_get_info`.
pub const EVENT_INFORMATION: u64 = 8;

/// Bytes of an entry of a list of events, and the list's alignment.
pub const EVENT_ENTRY_SIZE: u64 = 16;
/// Offset of the 32-bit answer in an entry, behind the event's index.
pub const EVENT_ENTRY_OUTPUT: u64 = 4;
/// Offset of the event's data in an entry.
pub const EVENT_ENTRY_DATA: u64 = 8;
/// Bits of an index of an event.
pub const EVENT_INDEX: u32 = 0xf_ffff;

/// counter_info: the counter is the firmware's.
pub const INFORMATION_FIRMWARE: u64 = 1 << 63;
/// counter_info: number of the counter's CSR.
pub const INFORMATION_CSR: u64 = 0xfff;
/// counter_info: place of the lowest bit of the width less one, which has six bits.
pub const INFORMATION_WIDTH_SHIFT: u32 = 12;
/// counter_info: width less one.
pub const INFORMATION_WIDTH: u64 = 0x3f << INFORMATION_WIDTH_SHIFT;

/// Flag of a configuration: the counter is named, not looked for.
pub const SKIP_MATCH: u64 = 1 << 0;
/// Flag of a configuration: the counter becomes zero.
pub const CLEAR_VALUE: u64 = 1 << 1;
/// Flag of a configuration: the counter starts.
pub const AUTO_START: u64 = 1 << 2;
/// Flag of a configuration: nothing is counted in VU-mode.
pub const INHIBIT_VU: u64 = 1 << 3;
/// Flag of a configuration: nothing is counted in VS-mode.
pub const INHIBIT_VS: u64 = 1 << 4;
/// Flag of a configuration: nothing is counted in U-mode.
pub const INHIBIT_U: u64 = 1 << 5;
/// Flag of a configuration: nothing is counted in S-mode.
pub const INHIBIT_S: u64 = 1 << 6;
/// Flag of a configuration: nothing is counted in M-mode.
pub const INHIBIT_M: u64 = 1 << 7;

/// Flag of a start: the counters get a value.
pub const SET_VALUE: u64 = 1 << 0;
/// Flag of a start: the counters get what the shared memory holds.
pub const INITIAL_SNAPSHOT: u64 = 1 << 1;
/// Flag of a stop: the counters lose their events.
pub const RESET: u64 = 1 << 0;
/// Flag of a stop: the counters are written to the shared memory.
pub const TAKE_SNAPSHOT: u64 = 1 << 1;

/// Place of the lowest bit of an event's type in its index.
pub const EVENT_TYPE_SHIFT: u32 = 16;
/// Hardware general event: cycles.
pub const CYCLES: u64 = 1;
/// Hardware general event: instructions.
pub const INSTRUCTIONS: u64 = 2;
/// Index of the raw hardware events, whose number is in the event's data.
pub const RAW: u64 = 2 << EVENT_TYPE_SHIFT;
/// Index of the first firmware event.
pub const FIRMWARE: u64 = 0xf << EVENT_TYPE_SHIFT;
/// Firmware event: remote SFENCE.VMA that were sent.
pub const SFENCE_VMA_SENT: u64 = FIRMWARE | 10;
