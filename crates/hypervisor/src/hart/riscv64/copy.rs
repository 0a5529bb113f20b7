//! Copies of whole kernels, eight words at a time: loading guests is most of the hypervisor's own start.

/// Bytes that one turn of the loop copies.
const TURN: usize = 64;

/// Copies `length` bytes from `from` to `to`.
///
/// # Safety
/// Both ranges must be the caller's to read and to write, and must not overlap.
pub unsafe fn forward(from: *const u8, to: *mut u8, length: usize) {
    // Words are copied only where both ends are words; the pages of kernels and of their images are, most of the time. Frames of a network
    // are behind a few bytes.
    let alike = (from.addr() ^ to.addr()).is_multiple_of(8);
    let before = if alike {
        from.align_offset(8).min(length)
    } else {
        0
    };
    // SAFETY: the first bytes of the same ranges, and their rest.
    let (from, to) = unsafe {
        core::ptr::copy_nonoverlapping(from, to, before);
        (from.add(before), to.add(before))
    };
    let length = length - before;
    let turns = if alike { length / TURN } else { 0 };
    let done = turns * TURN;
    if turns > 0 {
        // SAFETY: the loop reads and writes `done` bytes of the two ranges, which the caller vouches for.
        unsafe {
            core::arch::asm!(
                "1:",
                "ld {a}, 0({from})", "ld {b}, 8({from})", "ld {c}, 16({from})", "ld {d}, 24({from})",
                "sd {a}, 0({to})", "sd {b}, 8({to})", "sd {c}, 16({to})", "sd {d}, 24({to})",
                "ld {a}, 32({from})", "ld {b}, 40({from})", "ld {c}, 48({from})", "ld {d}, 56({from})",
                "sd {a}, 32({to})", "sd {b}, 40({to})", "sd {c}, 48({to})", "sd {d}, 56({to})",
                "addi {from}, {from}, 64", "addi {to}, {to}, 64",
                "bltu {from}, {end}, 1b",
                from = inout(reg) from => _, to = inout(reg) to => _, end = in(reg) from.addr() + done,
                a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
                options(nostack)
            );
        }
    }
    // SAFETY: the rest of the same ranges.
    unsafe { core::ptr::copy_nonoverlapping(from.add(done), to.add(done), length - done) };
}

/// Makes `length` bytes from `to` zero.
///
/// # Safety
/// The range must be the caller's to write.
pub unsafe fn zero(to: *mut u8, length: usize) {
    let turns = if to.addr().is_multiple_of(8) {
        length / TURN
    } else {
        0
    };
    let done = turns * TURN;
    if turns > 0 {
        // SAFETY: the loop writes `done` bytes of the range, which the caller vouches for.
        unsafe {
            core::arch::asm!(
                "1:",
                "sd zero, 0({to})", "sd zero, 8({to})", "sd zero, 16({to})", "sd zero, 24({to})",
                "sd zero, 32({to})", "sd zero, 40({to})", "sd zero, 48({to})", "sd zero, 56({to})",
                "addi {to}, {to}, 64",
                "bltu {to}, {end}, 1b",
                to = inout(reg) to => _, end = in(reg) to.addr() + done, options(nostack)
            );
        }
    }
    // SAFETY: the rest of the same range.
    unsafe { core::ptr::write_bytes(to.add(done), 0, length - done) };
}

/// Makes `length` bytes from `to` zero, a block of `block` bytes at a time.
///
/// # Safety
/// The range must be the caller's to write, whole blocks of it; the hart must have CBO.ZERO, whose blocks have that size.
pub unsafe fn zero_blocks(to: *mut u8, length: usize, block: usize) {
    let fours = length / (4 * block) * (4 * block);
    let mut at = to;
    if fours > 0 {
        // SAFETY: the loop writes the first `fours` bytes of the range, which the caller vouches for.
        unsafe {
            core::arch::asm!(
                ".option push", ".option arch, +zicboz",
                "1:",
                "cbo.zero ({to})", "add {to}, {to}, {block}",
                "cbo.zero ({to})", "add {to}, {to}, {block}",
                "cbo.zero ({to})", "add {to}, {to}, {block}",
                "cbo.zero ({to})", "add {to}, {to}, {block}",
                "bltu {to}, {end}, 1b",
                ".option pop",
                to = inout(reg) at, end = in(reg) to.addr() + fours, block = in(reg) block, options(nostack)
            );
        }
    }
    for _ in 0..(length - fours) / block {
        // SAFETY: a block of the rest.
        unsafe {
            core::arch::asm!(
                ".option push", ".option arch, +zicboz", "cbo.zero ({to})", ".option pop",
                to = in(reg) at, options(nostack)
            );
        }
        at = at.wrapping_add(block);
    }
}
