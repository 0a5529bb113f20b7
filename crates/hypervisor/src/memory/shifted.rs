//! Copies between places that lie differently in their doublewords, as the pieces of a network's frames do: whole doublewords are read, put
//! together anew, and written.

/// Bytes of a doubleword, and bits of a byte.
const BYTES: usize = 8;
const BITS: usize = 8;

/// Copies `length` bytes from `from` to `to`, each read once and written once.
///
/// # Safety
/// Both ranges must be the caller's to read and to write, and must not overlap. A guest or a device may change them meanwhile.
pub unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    let before = to.addr().wrapping_neg() % BYTES;
    let behind = from.addr().wrapping_add(before) % BYTES;
    // As many bytes are in the doubleword in which the first whole one for `to` begins; they are read one by one.
    let first = BYTES - behind;
    if behind == 0 || length < before + first + BYTES {
        // SAFETY: the caller's ranges.
        return unsafe { bytes(from, to, length) };
    }
    let mut kept: u64 = 0;
    // SAFETY: `before` and `first` bytes are less than `length`.
    unsafe {
        bytes(from, to, before);
        for index in 0..first {
            let byte = from.add(before + index).read_volatile();
            kept |= u64::from(byte) << (BITS * index);
        }
    }
    let words = (length - before - first) / BYTES;
    for word in 0..words {
        // SAFETY: what is read begins on a doubleword behind the first bytes, and `words` doublewords are there. What is written begins on a
        // doubleword, and ends no later than what is read.
        unsafe {
            let next = from.add(before + first + BYTES * word).cast::<u64>();
            let next = u64::from_le(next.read_volatile());
            let whole = kept | next << (BITS * first);
            let place = to.add(before + BYTES * word).cast::<u64>();
            place.write_volatile(whole.to_le());
            kept = next >> (BITS * behind);
        }
    }
    let done = before + BYTES * words;
    // SAFETY: the rest of the ranges: `first` bytes that were read, and what is behind them.
    unsafe {
        for index in 0..first {
            let byte = (kept >> (BITS * index)) as u8;
            to.add(done + index).write_volatile(byte);
        }
        let done = done + first;
        bytes(from.add(done), to.add(done), length - done);
    }
}

/// Copies byte by byte.
///
/// # Safety
/// As for [`copy`].
unsafe fn bytes(from: *const u8, to: *mut u8, length: usize) {
    for index in 0..length {
        // SAFETY: the caller's ranges.
        unsafe {
            to.add(index)
                .write_volatile(from.add(index).read_volatile())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way in which the ends can lie, and every length up to some doublewords: nothing but the range is written.
    #[test]
    fn all_ends_and_lengths_are_copied() {
        #[repr(align(8))]
        struct Aligned([u8; 128]);
        let source = Aligned(core::array::from_fn(|index| index as u8 ^ 0x5a));
        for (from, to) in (0..BYTES).flat_map(|from| (0..BYTES).map(move |to| (from, to))) {
            for length in 0..72 {
                let mut target = Aligned([0xee; 128]);
                // SAFETY: both ranges lie in their arrays.
                unsafe {
                    let from = source.0.as_ptr().add(from);
                    copy(from, target.0.as_mut_ptr().add(16 + to), length);
                }
                let mut expected = [0xee; 128];
                expected[16 + to..][..length].copy_from_slice(&source.0[from..][..length]);
                assert_eq!(target.0, expected, "{length} bytes from {from} to {to}");
            }
        }
    }
}
