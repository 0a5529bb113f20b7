//! Fields of mseccfg (section "Machine Security Configuration"), besides PMM.

/// User mode may access the seed CSR (Zkr).
pub const USEED: u64 = 1 << 8;
/// Landing pads of machine mode (Zicfilp).
pub const MLPE: u64 = 1 << 10;
/// Supervisor mode may access the seed CSR (Zkr).
pub const SSEED: u64 = 1 << 9;
