//! Functions of the remote fence extension (chapter 8).

/// `sbi_remote_fence_i`.
pub const FENCE_I: u64 = 0;
/// `sbi_remote_sfence_vma`.
pub const SFENCE_VMA: u64 = 1;
/// `sbi_remote_sfence_vma_asid`.
pub const SFENCE_VMA_ASID: u64 = 2;
