//! Limits of the segments of a block device whose guest's memory lies in pages (virtio 1.2, §5.2.4).
//!
//! Each page that a buffer touches becomes a descriptor of its own for the device, and the device's queue bounds the number of descriptors of a
//! chain. A driver that is told these limits sends no request that does not fit.

use riscv::virtio::block::feature::{SEG_MAX, SIZE_MAX};

use crate::memory::address::PAGE_SIZE;

/// Places of the two limits in the configuration space.
const SIZE_AT: usize = 8;
const COUNT_AT: usize = 12;
/// Descriptors of a chain that are no segment's: the request's header, which may lie in two pages, and its status.
const OTHERS: u16 = 3;

/// Limits of a request's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segments {
    /// Bytes of the longest.
    size: u32,
    /// Greatest number.
    count: u32,
}

impl Segments {
    /// Features that tell a driver of the limits.
    pub const FEATURES: u64 = SIZE_MAX | SEG_MAX;

    /// Limits for a device whose queues have `entries` descriptors. A segment of a page's length may lie in two pages.
    pub fn for_queue(entries: u16) -> Self {
        Self {
            size: PAGE_SIZE as u32,
            count: (entries.saturating_sub(OTHERS) / 2).max(1).into(),
        }
    }

    /// Puts the limits into a copy of the configuration. Of the limits that a device with these features has the smaller ones hold.
    pub fn put(self, configuration: &mut [u8], features: u64) {
        let limits = [
            (SIZE_AT, SIZE_MAX, self.size),
            (COUNT_AT, SEG_MAX, self.count),
        ];
        for (at, feature, limit) in limits {
            let Some(field) = configuration
                .get_mut(at..)
                .and_then(<[u8]>::first_chunk_mut::<4>)
            else {
                continue;
            };
            let limit = match features & feature {
                0 => limit,
                _ => limit.min(u32::from_le_bytes(*field)),
            };
            *field = limit.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_within_the_limits_fit() {
        for entries in [8, 64, 128, 256] {
            let Segments { size, count } = Segments::for_queue(entries);
            assert!(u64::from(size) <= PAGE_SIZE);
            let pieces = 2 * count + u32::from(OTHERS);
            assert!(pieces <= u32::from(entries), "{entries}");
            assert!(pieces + 2 > u32::from(entries), "{entries}");
        }
        assert_eq!(Segments::for_queue(2).count, 1);
    }

    #[test]
    fn smaller_limits_of_the_device_hold() {
        let limits = Segments {
            size: 4096,
            count: 126,
        };
        let put = |size: u32, count: u32, features| {
            let mut bytes = [0xaa; 16];
            bytes[SIZE_AT..COUNT_AT].copy_from_slice(&size.to_le_bytes());
            bytes[COUNT_AT..].copy_from_slice(&count.to_le_bytes());
            limits.put(&mut bytes, features);
            assert_eq!(bytes[..SIZE_AT], [0xaa; SIZE_AT]);
            let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
            (word(SIZE_AT), word(COUNT_AT))
        };
        assert_eq!(put(512, 7, Segments::FEATURES), (512, 7));
        assert_eq!(put(512, 7, SEG_MAX), (4096, 7));
        assert_eq!(put(0, 0, 0), (4096, 126));
        assert_eq!(put(1 << 20, 254, Segments::FEATURES), (4096, 126));
        // A space that ends sooner has no place for the limits.
        limits.put(&mut [0; 14], 0);
    }
}
