//! Functions, state and shared memory of the debug triggers extension (chapter 19).

/// `sbi_debug_num_triggers`.
pub const COUNT: u64 = 0;
/// `sbi_debug_set_shmem`.
pub const SET_SHARED_MEMORY: u64 = 1;
/// `sbi_debug_read_triggers`.
pub const READ: u64 = 2;
/// `sbi_debug_install_triggers`.
pub const INSTALL: u64 = 3;
/// `sbi_debug_update_triggers`.
pub const UPDATE: u64 = 4;
/// `sbi_debug_uninstall_triggers`.
pub const UNINSTALL: u64 = 5;
/// `sbi_debug_enable_triggers`.
pub const ENABLE: u64 = 6;
/// `sbi_debug_disable_triggers`.
pub const DISABLE: u64 = 7;

/// Bytes of a trigger in the shared memory: four words of XLEN bits.
pub const ENTRY_SIZE: u64 = 32;
/// Words of a trigger in the shared memory: its state or its number, tdata1, tdata2 and tdata3.
pub const ENTRY_WORDS: u64 = 4;

/// State: the trigger is installed.
pub const MAPPED: u64 = 1 << 0;
/// State: the saved bit u of tdata1.
pub const STATE_U: u64 = 1 << 1;
/// State: the saved bit s of tdata1.
pub const STATE_S: u64 = 1 << 2;
/// State: the saved bit vu of tdata1.
pub const STATE_VU: u64 = 1 << 3;
/// State: the saved bit vs of tdata1.
pub const STATE_VS: u64 = 1 << 4;
/// State: the number of the hart's trigger is in the bits above.
pub const HAS_HARDWARE_NUMBER: u64 = 1 << 5;
