//! The block device: requests, their time, and their faults.

use super::*;

#[test]
fn a_read_fills_the_buffer_and_interrupts() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    request(&mut driver, 0, 5, 1024);
    assert_eq!(driver.used_index(0), 1);
    assert_eq!(driver.used_length(0, 0), 1025);
    assert_eq!(status(&mut driver, 1024), 0);
    assert_eq!(
        driver.load(DATA + 0x1000, 1024),
        [[5; 512], [6; 512]].concat()
    );
    assert!(driver.line());
    assert_eq!(driver.read(0x60), 1);
    driver.write(0x64, 1);
    assert!(!driver.line());
}

#[test]
fn overlays_keep_writes_and_spare_the_disk() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    driver.store(DATA + 0x1000, &[0xab; 512]);
    request(&mut driver, 1, 9, 512);
    assert_eq!((driver.used_length(0, 0), status(&mut driver, 512)), (1, 0));
    // Eight sectors across two clusters of the overlay, one of them untouched.
    request(&mut driver, 0, 6, 4096);
    let expected: Vec<u8> = [6, 7, 8, 0xab, 10, 11, 12, 13]
        .iter()
        .flat_map(|&b| [b; 512])
        .collect();
    assert_eq!(driver.load(DATA + 0x1000, 4096), expected);
}

#[test]
fn requests_that_make_no_sense_fail_alone() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    // Beyond the end, across the end, not whole sectors, an unknown type.
    let requests = [
        (0, 64, 512, 1),
        (0, u64::MAX, 512, 1),
        (0, 63, 1024, 1),
        (0, 0, 100, 1),
        (77, 0, 512, 2),
    ];
    for (index, (kind, sector, data, expected)) in (0..).zip(requests) {
        request(&mut driver, kind, sector, data);
        assert_eq!(driver.used_index(0), index + 1);
        let got = status(&mut driver, data);
        assert_eq!(got, expected, "type {kind}, sector {sector}, {data} bytes");
    }
    request(&mut driver, 0, 0, 512);
    assert_eq!(status(&mut driver, 512), 0, "the device goes on");
}

#[test]
fn the_identity_and_a_flush_are_answered() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    request(&mut driver, 8, 0, 20);
    assert_eq!(
        driver.load(DATA + 0x1000, 20),
        *b"disk-1\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    );
    driver.chain(0, &[(DATA, 16, false), (DATA + 0x800, 1, true)]);
    driver.store(DATA, &4_u32.to_le_bytes());
    driver.store(DATA + 0x800, &[0xff]);
    driver.offer(0, 0);
    assert_eq!(driver.load(DATA + 0x800, 1), [0]);
}

#[test]
fn discarded_sectors_read_as_zeros() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    let range = [&3_u64.to_le_bytes()[..], &2_u32.to_le_bytes(), &[0; 4]].concat();
    driver.store(DATA + 0x1000, &range);
    request(&mut driver, 11, 0, 16);
    assert_eq!(status(&mut driver, 16), 0);
    request(&mut driver, 0, 2, 2048);
    let expected: Vec<u8> = [2, 0, 0, 5].iter().flat_map(|&b| [b; 512]).collect();
    assert_eq!(driver.load(DATA + 0x1000, 2048), expected);
}

/// §5.2.6.2: UNSUPP, and the medium is as it was.
#[test]
fn unknown_flags_erase_nothing() {
    const UNMAP: u32 = 1;
    let mut driver = Driver::new(instant());
    driver.start(0);
    let reserved = (1..32).map(|bit| 1 << bit);
    let discards = (0..32).map(|bit| (11, 1_u32 << bit));
    let zeroes = reserved.map(|flags| (13, flags | UNMAP));
    for (kind, flags) in discards.chain(zeroes) {
        let range = [
            &3_u64.to_le_bytes()[..],
            &2_u32.to_le_bytes(),
            &flags.to_le_bytes(),
        ]
        .concat();
        driver.store(DATA + 0x1000, &range);
        request(&mut driver, kind, 0, 16);
        assert_eq!(status(&mut driver, 16), 2, "type {kind}, flags {flags:#x}");
        request(&mut driver, 0, 3, 512);
        assert_eq!(driver.load(DATA + 0x1000, 512), [3; 512]);
    }
    let range = [
        &3_u64.to_le_bytes()[..],
        &2_u32.to_le_bytes(),
        &[1, 0, 0, 0],
    ]
    .concat();
    driver.store(DATA + 0x1000, &range);
    request(&mut driver, 13, 0, 16);
    assert_eq!(status(&mut driver, 16), 0, "write zeroes may unmap");
}

#[test]
fn an_indirect_table_is_followed() {
    let mut driver = Driver::new(instant());
    driver.start(1 << 28);
    let table = DATA + 0x8000;
    driver.store(DATA, &[0; 16]);
    driver.descriptor(table, DATA, 16, NEXT, 1);
    driver.descriptor(table + 16, DATA + 0x1000, 512, NEXT | WRITE, 2);
    driver.descriptor(table + 32, DATA + 0x1200, 1, WRITE, 0);
    driver.descriptor(areas(0).0, table, 48, INDIRECT, 0);
    driver.offer(0, 0);
    assert_eq!((driver.used_index(0), driver.used_length(0, 0)), (1, 513));
}

#[test]
fn requests_take_their_service_time() {
    let service = Service {
        fixed_nanoseconds: 1000,
        picoseconds_per_byte: 1000,
        ..Service::default()
    };
    let mut driver = Driver::new(block(service, Faults::default()));
    driver.start(0);
    request(&mut driver, 0, 0, 512);
    assert_eq!(
        (driver.used_index(0), driver.slot.next_event()),
        (0, Some(Cycles(1512)))
    );
    driver.now = Cycles(1511);
    driver.with(|slot, context| slot.tick(context));
    assert_eq!(driver.used_index(0), 0);
    assert!(driver.advance());
    assert_eq!((driver.used_index(0), driver.now), (1, Cycles(1512)));
    assert!(!driver.advance());
}

#[test]
fn injected_faults_are_what_they_are_called() {
    let at = |number| Chance {
        per_million: 0,
        at: vec![number],
    };
    let faults = Faults {
        errors: at(0),
        short: at(1),
        lost_interrupts: at(2),
        late_interrupts: at(3),
        late_nanoseconds: 700,
    };
    let mut driver = Driver::new(block(Service::default(), faults));
    driver.start(0);
    request(&mut driver, 0, 1, 1024);
    assert_eq!(
        (status(&mut driver, 1024), driver.used_length(0, 0)),
        (1, 1)
    );
    driver.store(DATA + 0x1000, &[0; 1024]);
    request(&mut driver, 0, 1, 1024);
    assert_eq!(
        (status(&mut driver, 1024), driver.used_length(0, 1)),
        (1, 513)
    );
    assert_eq!(
        driver.load(DATA + 0x1000, 1024),
        [[1; 512], [0; 512]].concat()
    );
    driver.write(0x64, 1);
    request(&mut driver, 0, 1, 512);
    assert_eq!((driver.used_index(0), driver.line()), (3, false));
    assert_eq!(driver.slot.next_event(), None);
    request(&mut driver, 0, 1, 512);
    assert_eq!((driver.used_index(0), driver.line()), (4, false));
    assert_eq!(driver.slot.next_event(), Some(Cycles(700)));
    driver.advance();
    assert!(driver.line());
}

#[test]
fn a_reset_forgets_requests_in_service() {
    let service = Service {
        fixed_nanoseconds: 1000,
        ..Service::default()
    };
    let mut driver = Driver::new(block(service, Faults::default()));
    driver.start(0);
    request(&mut driver, 0, 0, 512);
    driver.start(0);
    assert!(!driver.advance());
    assert_eq!(driver.used_index(0), 0);
}
