//! Traditional memory balloon device (section 5.5).

/// Feature `VIRTIO_BALLOON_F_PAGE_REPORTING`: the driver reports free pages (section 5.5.3).
pub const PAGE_REPORTING: u64 = 1 << 5;
/// Queue of pages that the driver gives away (section 5.5.2).
pub const INFLATE_QUEUE: usize = 0;
/// Queue of pages that the driver takes back.
pub const DEFLATE_QUEUE: usize = 1;
