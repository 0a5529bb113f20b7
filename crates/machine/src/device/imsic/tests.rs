//! The interrupt files, as harts and devices see them.

use super::*;

const HART: HartId = HartId(1);
const GUEST: InterruptFile = InterruptFile::Guest(3);

/// Two harts with seven guest files of 127 identities.
fn bench(direct: bool) -> (Imsic, IrqLevels) {
    (Imsic::new(2, 7, 127, direct), IrqLevels::new(2))
}

/// Enables delivery and every identity of a file.
fn open(imsic: &mut Imsic, file: InterruptFile, irq_levels: &mut IrqLevels) {
    for (select, value) in [(EIDELIVERY, 1), (0xc0, u64::MAX), (0xc2, u64::MAX)] {
        imsic
            .write_register(HART, file, select, value, irq_levels)
            .expect("a register");
    }
}

fn identity(imsic: &Imsic, file: InterruptFile) -> u64 {
    let top = imsic.top(HART, file).expect("a file");
    assert_eq!(top >> 16, top & 0x7ff, "both fields hold the identity");
    top >> 16
}

/// §3.5: the page's words set pending bits of implemented identities, in their byte order.
#[test]
fn messages_set_pending_bits() {
    let (mut imsic, mut irq_levels) = bench(false);
    let guest = (1 << 15) + 3 * IMSIC_PAGE;
    for (offset, value) in [(0, 64), (4, 127_u32.swap_bytes()), (8, 5), (0, 0), (0, 128)] {
        imsic
            .write_page(
                Level::Supervisor,
                guest + offset,
                4,
                value.into(),
                &mut irq_levels,
            )
            .expect("a word");
    }
    let pending = |select| imsic.read_register(HART, GUEST, select);
    assert_eq!((pending(0x80), pending(0x82)), (Ok(0), Ok(1 | 1 << 63)));
    assert_eq!(imsic.read_page(Level::Supervisor, guest, 4), Ok(0));
    for (offset, size) in [(guest, 8), (guest, 2), (guest + 2, 4)] {
        let odd = imsic.write_page(Level::Supervisor, offset, size, 1, &mut irq_levels);
        assert_eq!(odd, Err(AccessFault));
    }
}

/// §3.6: S, G1, G2, ... contiguous, each hart's at a power of two of pages.
#[test]
fn pages_belong_to_files() {
    let (imsic, _) = bench(false);
    for hart in 0..2 {
        let base = u64::from(hart) << 15;
        let at = |offset| imsic.file_at(Level::Supervisor, offset);
        assert_eq!(at(base), Some((HartId(hart), InterruptFile::Supervisor)));
        for guest in 1..=7 {
            let page = base + u64::from(guest) * IMSIC_PAGE;
            assert_eq!(at(page), Some((HartId(hart), InterruptFile::Guest(guest))));
        }
        let machine = u64::from(hart) * IMSIC_PAGE;
        let file = (HartId(hart), InterruptFile::Machine);
        assert_eq!(imsic.file_at(Level::Machine, machine), Some(file));
    }
    assert_eq!(imsic.file_at(Level::Supervisor, 2 << 15), None);
    // Two guest files leave the fourth page of a hart empty.
    let sparse = Imsic::new(1, 2, 63, false);
    assert!(sparse.file_at(Level::Supervisor, 2 * IMSIC_PAGE).is_some());
    assert_eq!(sparse.file_at(Level::Supervisor, 3 * IMSIC_PAGE), None);
}

/// §3.9: lowest number first, claims clear, the threshold keeps out what is not below it.
#[test]
fn the_lowest_identity_below_threshold_is_top() {
    let (mut imsic, mut irq_levels) = bench(false);
    open(&mut imsic, GUEST, &mut irq_levels);
    for number in [100, 7, 63] {
        imsic.set_pending(HART, GUEST, number, &mut irq_levels);
    }
    for expected in [7, 63, 100, 0] {
        assert_eq!(identity(&imsic, GUEST), expected);
        assert_eq!(
            irq_levels.hart(HART).guest_external,
            if expected == 0 { 0 } else { 1 << 3 }
        );
        imsic.claim(HART, GUEST, &mut irq_levels).expect("a file");
    }
    imsic.set_pending(HART, GUEST, 20, &mut irq_levels);
    for (threshold, expected) in [(20, 0), (21, 20), (0, 20), (1, 0)] {
        imsic
            .write_register(HART, GUEST, EITHRESHOLD, threshold, &mut irq_levels)
            .expect("wlrl");
        assert_eq!(identity(&imsic, GUEST), expected, "threshold {threshold}");
        assert_eq!(irq_levels.hart(HART).guest_external != 0, expected != 0);
    }
}

/// §3.8.1: eidelivery affects the wire, and not *topei.
#[test]
fn delivery_can_be_turned_off() {
    let (mut imsic, mut irq_levels) = bench(false);
    open(&mut imsic, InterruptFile::Machine, &mut irq_levels);
    imsic.set_pending(HART, InterruptFile::Machine, 9, &mut irq_levels);
    assert!(irq_levels.hart(HART).machine_external);
    imsic
        .write_register(HART, InterruptFile::Machine, EIDELIVERY, 0, &mut irq_levels)
        .expect("warl");
    assert!(!irq_levels.hart(HART).machine_external);
    assert_eq!(identity(&imsic, InterruptFile::Machine), 9);
    for unsupported in [2, 0x4000_0000, 0x1_0000_0001] {
        let file = InterruptFile::Machine;
        imsic
            .write_register(HART, file, EIDELIVERY, unsupported, &mut irq_levels)
            .expect("warl");
        assert_eq!(
            imsic.read_register(HART, file, EIDELIVERY),
            Ok(0),
            "{unsupported:#x}"
        );
    }
}

/// §3.8.1: where supported, reset hands over to the APLIC; guest files never do.
#[test]
fn direct_delivery_excludes_guest_files() {
    let (mut imsic, mut irq_levels) = bench(true);
    for file in [InterruptFile::Machine, InterruptFile::Supervisor] {
        assert!(imsic.is_direct(HART, file));
    }
    imsic
        .write_register(HART, GUEST, EIDELIVERY, 0x4000_0000, &mut irq_levels)
        .expect("warl");
    assert_eq!(imsic.read_register(HART, GUEST, EIDELIVERY), Ok(0));
}

/// §3.8.3: with XLEN = 64 the odd registers do not exist; identity 0 is read-only zero; what
/// lies beyond the implemented identities reads as zero.
#[test]
fn registers_that_do_not_exist_are_refused() {
    let (mut imsic, mut irq_levels) = bench(false);
    for select in [0x81, 0xbf, 0xc1, 0xff, 0x6f, 0x100, u64::MAX] {
        assert_eq!(
            imsic.read_register(HART, GUEST, select),
            Err(NoSuchRegister)
        );
        let write = imsic.write_register(HART, GUEST, select, 1, &mut irq_levels);
        assert_eq!(write, Err(NoSuchRegister), "{select:#x}");
    }
    for (select, expected) in [
        (0x80, !1),
        (0xc2, u64::MAX),
        (0xc4, 0),
        (0x71, 0),
        (0x7f, 0),
    ] {
        imsic
            .write_register(HART, GUEST, select, u64::MAX, &mut irq_levels)
            .expect("a register");
        assert_eq!(
            imsic.read_register(HART, GUEST, select),
            Ok(expected),
            "{select:#x}"
        );
    }
    for file in [
        InterruptFile::Guest(0),
        InterruptFile::Guest(8),
        InterruptFile::Guest(255),
    ] {
        assert_eq!(imsic.top(HART, file), Err(NoSuchRegister));
    }
    assert_eq!(
        imsic.top(HartId(2), InterruptFile::Machine),
        Err(NoSuchRegister)
    );
}

#[test]
fn all_numbers_of_guest_files_work() {
    for guest_files in [0, 1, 7, 63] {
        let mut imsic = Imsic::new(2, guest_files, 2047, false);
        let mut irq_levels = IrqLevels::new(2);
        for guest in 1..=guest_files {
            let file = InterruptFile::Guest(guest);
            open(&mut imsic, file, &mut irq_levels);
            imsic.set_pending(HART, file, 1, &mut irq_levels);
            assert_eq!(irq_levels.hart(HART).guest_external >> guest, 1);
        }
        assert!(
            imsic
                .top(HART, InterruptFile::Guest(guest_files + 1))
                .is_err()
        );
    }
}
