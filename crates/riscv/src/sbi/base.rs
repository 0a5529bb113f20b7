//! Functions of the Base extension (chapter 4).

/// `sbi_get_spec_version`.
pub const SPECIFICATION_VERSION: u64 = 0;
/// `sbi_get_impl_id`.
pub const IMPLEMENTATION_ID: u64 = 1;
/// `sbi_get_impl_version`.
pub const IMPLEMENTATION_VERSION: u64 = 2;
/// `sbi_probe_extension`.
pub const PROBE_EXTENSION: u64 = 3;
/// `sbi_get_mvendorid`.
pub const MACHINE_VENDOR: u64 = 4;
/// `sbi_get_marchid`.
pub const MACHINE_ARCHITECTURE: u64 = 5;
/// `sbi_get_mimpid`.
pub const MACHINE_IMPLEMENTATION: u64 = 6;

/// Version 3.0 as [`SPECIFICATION_VERSION`] returns it: the major number is in bits 30:24.
pub const VERSION_3_0: u64 = 3 << 24;
/// KVM's number (section "SBI Implementation IDs").
pub const KVM: u64 = 3;
