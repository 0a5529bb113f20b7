//! Functions, events and attributes of the supervisor software events extension (chapter 17).

/// `sbi_sse_read_attrs`.
pub const READ: u64 = 0;
/// `sbi_sse_write_attrs`.
pub const WRITE: u64 = 1;
/// `sbi_sse_register`.
pub const REGISTER: u64 = 2;
/// `sbi_sse_unregister`.
pub const UNREGISTER: u64 = 3;
/// `sbi_sse_enable`.
pub const ENABLE: u64 = 4;
/// `sbi_sse_disable`.
pub const DISABLE: u64 = 5;
/// `sbi_sse_complete`.
pub const COMPLETE: u64 = 6;
/// `sbi_sse_inject`.
pub const INJECT: u64 = 7;
/// `sbi_sse_hart_unmask`.
pub const UNMASK: u64 = 8;
/// `sbi_sse_hart_mask`.
pub const MASK: u64 = 9;

/// Event: error of a memory or device that is urgent, for a hart.
pub const LOCAL_HIGH_PRIORITY_ERROR: u32 = 0;
/// Event: double trap of a hart.
pub const DOUBLE_TRAP: u32 = 1;
/// Event: error of a memory or device that is urgent, for the system.
pub const GLOBAL_HIGH_PRIORITY_ERROR: u32 = 0x8000;
/// Event: overflow of a counter of a hart.
pub const COUNTER_OVERFLOW: u32 = 0x1_0000;
/// Event: error of a memory or device that is not urgent, for a hart.
pub const LOCAL_LOW_PRIORITY_ERROR: u32 = 0x10_0000;
/// Event: error of a memory or device that is not urgent, for the system.
pub const GLOBAL_LOW_PRIORITY_ERROR: u32 = 0x10_8000;
/// Event that software injects, of a hart.
pub const LOCAL_SOFTWARE: u32 = 0xffff_0000;
/// Event that software injects, of the system.
pub const GLOBAL_SOFTWARE: u32 = 0xffff_8000;

/// Attribute: [`STATUS_STATE`], [`STATUS_PENDING`] and [`STATUS_INJECTABLE`].
pub const STATUS: u32 = 0;
/// Attribute: priority, the lowest first.
pub const PRIORITY: u32 = 1;
/// Attribute: [`ONE_SHOT`].
pub const CONFIG: u32 = 2;
/// Attribute: hart that should handle the event.
pub const PREFERRED_HART: u32 = 3;
/// Attribute: address of the handler.
pub const ENTRY_PC: u32 = 4;
/// Attribute: value of a7 for the handler.
pub const ENTRY_ARGUMENT: u32 = 5;
/// Attribute: interrupted sepc.
pub const INTERRUPTED_SEPC: u32 = 6;
/// Attribute: interrupted fields of sstatus and hstatus.
pub const INTERRUPTED_FLAGS: u32 = 7;
/// Attribute: interrupted a6.
pub const INTERRUPTED_A6: u32 = 8;
/// Attribute: interrupted a7.
pub const INTERRUPTED_A7: u32 = 9;
/// Number of attributes.
pub const ATTRIBUTES: u32 = 10;

/// Status: the state, 0 unused, 1 registered, 2 enabled, 3 running.
pub const STATUS_STATE: u64 = 3;
/// Status: the event is pending.
pub const STATUS_PENDING: u64 = 1 << 2;
/// Status: software may inject the event.
pub const STATUS_INJECTABLE: u64 = 1 << 3;

/// Configuration: the completion disables the event.
pub const ONE_SHOT: u64 = 1 << 0;

/// Flag: sstatus.SPP.
pub const FLAG_SPP: u64 = 1 << 0;
/// Flag: sstatus.SPIE.
pub const FLAG_SPIE: u64 = 1 << 1;
/// Flag: hstatus.SPV.
pub const FLAG_SPV: u64 = 1 << 2;
/// Flag: hstatus.SPVP.
pub const FLAG_SPVP: u64 = 1 << 3;
/// Flag: sstatus.SPELP (Zicfilp).
pub const FLAG_SPELP: u64 = 1 << 4;
/// Flag: sstatus.SDT (Ssdbltrp).
pub const FLAG_SDT: u64 = 1 << 5;
/// All flags.
pub const FLAGS: u64 = 0x3f;
