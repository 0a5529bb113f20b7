//! Encodings of instructions without operands, and opcodes (unprivileged architecture, chapter "RV32/64G Instruction Set
//! Listings"; privileged architecture, chapter "Instruction Set Listings").

/// Major opcode LOAD.
pub const LOAD: u32 = 0x03;
/// Major opcode LOAD-FP, of vector loads too.
pub const LOAD_FP: u32 = 0x07;
/// Major opcode MISC-MEM.
pub const MISC_MEM: u32 = 0x0f;
/// Major opcode STORE.
pub const STORE: u32 = 0x23;
/// Major opcode STORE-FP, of vector stores too.
pub const STORE_FP: u32 = 0x27;
/// Major opcode OP-V (V).
pub const OP_V: u32 = 0x57;
/// Major opcode OP-VE (Zvk).
pub const OP_VE: u32 = 0x77;
/// Major opcode SYSTEM.
pub const SYSTEM: u32 = 0x73;

/// ECALL.
pub const ECALL: u32 = 0x0000_0073;
/// EBREAK.
pub const EBREAK: u32 = 0x0010_0073;
/// FENCE.I (Zifencei).
pub const FENCE_I: u32 = 0x0000_100f;
/// PAUSE, a FENCE with predecessor W and no successor (Zihintpause).
pub const PAUSE: u32 = 0x0100_000f;
/// WRS.NTO (Zawrs).
pub const WRS_NTO: u32 = 0x00d0_0073;
/// WRS.STO (Zawrs).
pub const WRS_STO: u32 = 0x01d0_0073;
/// SRET.
pub const SRET: u32 = 0x1020_0073;
/// WFI.
pub const WFI: u32 = 0x1050_0073;
/// SFENCE.W.INVAL (Svinval).
pub const SFENCE_W_INVAL: u32 = 0x1800_0073;
/// SFENCE.INVAL.IR (Svinval).
pub const SFENCE_INVAL_IR: u32 = 0x1810_0073;
/// MRET.
pub const MRET: u32 = 0x3020_0073;
