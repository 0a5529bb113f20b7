//! Platform-Level Interrupt Controller (RISC-V PLIC specification 1.0.0, chapter "Memory Map"). Registers are words.

/// Priority of source 0, which does not exist. The register of source *i* is at 4 *i*.
pub const PRIORITY: u64 = 0x00_0000;
/// Pending bits of sources 0 to 31.
pub const PENDING: u64 = 0x00_1000;
/// Enable bits of sources 0 to 31 for context 0.
pub const ENABLE: u64 = 0x00_2000;
/// Distance of the enable bits of two contexts.
pub const ENABLE_STRIDE: u64 = 0x80;
/// Priority threshold of context 0.
pub const THRESHOLD: u64 = 0x20_0000;
/// Claim and completion of context 0.
pub const CLAIM: u64 = 0x20_0004;
/// Distance of the thresholds of two contexts, and of their claims.
pub const CONTEXT_STRIDE: u64 = 0x1000;
/// Highest source number.
pub const MAX_SOURCE: u32 = 1023;
/// Number of contexts for which there is room.
pub const CONTEXTS: u32 = 15_872;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_end_where_the_next_begins() {
        let contexts = u64::from(CONTEXTS);
        let last_source = u64::from(MAX_SOURCE);
        assert_eq!(PRIORITY + 4 * last_source, 0x00_0ffc);
        assert_eq!(PENDING + last_source / 32 * 4, 0x00_107c);
        assert_eq!(ENABLE + contexts * ENABLE_STRIDE, 0x1f_2000);
        assert_eq!(THRESHOLD + (contexts - 1) * CONTEXT_STRIDE, 0x3ff_f000);
    }
}
