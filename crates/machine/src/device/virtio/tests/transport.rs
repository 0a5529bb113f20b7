//! Registers, queues and what breaks their rules.

use super::*;

#[test]
fn an_empty_slot_says_so() {
    let mut driver = Driver::new(instant());
    driver.slot = Slot::new(SOURCE);
    assert_eq!(
        [driver.read(0), driver.read(4), driver.read(8)],
        [0x7472_6976, 2, 0]
    );
    driver.write(0x70, 0xf);
    driver.write(0x50, 0);
    assert_eq!(driver.slot.next_event(), None);
}

#[test]
fn unoffered_features_are_refused() {
    let mut driver = Driver::new(instant());
    for features in [0_u64, VERSION_1 | 1 << 63] {
        driver.write(0x70, 0);
        driver.write(0x70, 3);
        for half in 0..2 {
            driver.write(0x24, half);
            driver.write(0x20, (features >> (32 * half)) & 0xffff_ffff);
        }
        driver.write(0x70, 3 | 8);
        assert_eq!(driver.read(0x70), 3, "{features:#x}");
    }
}

#[test]
fn reserved_status_bits_read_as_zero() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    driver.write(0x70, 0xffff_ffff);
    assert_eq!(driver.read(0x70), 1 | 2 | 4 | 8 | 0x80);
}

/// §3.1.1: a driver whose features were refused is not served.
#[test]
fn refused_features_keep_the_device_still() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    driver.write(0x70, 0);
    driver.write(0x70, 1 | 2);
    driver.set_up_queue(0, QUEUE_SIZE.into());
    driver.write(0x70, 1 | 2 | 8 | 4);
    request(&mut driver, 0, 0, 512);
    assert_eq!((driver.read(0x70), driver.used_index(0)), (1 | 2 | 4, 0));
}

/// Chains that break the rules: the device stops, tells so, and works again after a reset.
#[test]
fn broken_chains_need_a_reset() {
    type Breakage = fn(&mut Driver);
    let breakages: [(&str, Breakage); 10] = [
        ("a chain in a circle", |driver| {
            driver.descriptor(areas(0).0, DATA, 16, NEXT, 1);
            driver.descriptor(areas(0).0 + 16, DATA, 16, NEXT, 0);
        }),
        ("a next descriptor outside the table", |driver| {
            driver.descriptor(areas(0).0, DATA, 16, NEXT, QUEUE_SIZE);
        }),
        ("a buffer outside RAM", |driver| {
            driver.chain(
                0,
                &[(DATA, 16, false), (RAM + RAM_SIZE as u64 - 1, 512, true)],
            );
        }),
        ("a buffer at the end of the address space", |driver| {
            driver.chain(0, &[(u64::MAX - 3, 16, false), (DATA, 513, true)]);
        }),
        ("a readable buffer after a writable one", |driver| {
            driver.chain(0, &[(DATA, 513, true), (DATA, 16, false)]);
        }),
        ("no room for the status", |driver| {
            driver.chain(0, &[(DATA, 16, false)])
        }),
        ("half a header", |driver| {
            driver.chain(0, &[(DATA, 8, false), (DATA, 513, true)])
        }),
        ("an indirect table of no whole descriptors", |driver| {
            driver.descriptor(areas(0).0, DATA + 0x8000, 24, INDIRECT, 0);
        }),
        ("an indirect table within an indirect table", |driver| {
            driver.descriptor(areas(0).0, DATA + 0x8000, 16, INDIRECT, 0);
            driver.descriptor(DATA + 0x8000, DATA + 0x8000, 16, INDIRECT, 0);
        }),
        ("an indirect table outside RAM", |driver| {
            driver.descriptor(areas(0).0, u64::MAX - 15, 16, INDIRECT, 0);
        }),
    ];
    for (what, breakage) in breakages {
        let mut driver = Driver::new(instant());
        driver.start(0);
        breakage(&mut driver);
        driver.offer(0, 0);
        assert_eq!(driver.read(0x70) & NEEDS_RESET, NEEDS_RESET, "{what}");
        assert_eq!(
            driver.read(0x60) & 2,
            2,
            "{what}: a configuration interrupt"
        );
        assert!(driver.line(), "{what}");
        assert_eq!(driver.used_index(0), 0, "{what}");
        driver.write(0x50, 0);
        driver.start(0);
        assert!(!driver.line());
        request(&mut driver, 0, 0, 512);
        assert_eq!(driver.used_index(0), 1, "{what}: after the reset");
    }
}

#[test]
fn available_index_jumps_need_a_reset() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    driver.store(areas(0).1 + 2, &(QUEUE_SIZE + 1).to_le_bytes());
    driver.write(0x50, 0);
    assert_eq!(driver.read(0x70) & NEEDS_RESET, NEEDS_RESET);
}

#[test]
fn queues_that_cannot_be_are_refused() {
    for (size, descriptors) in [
        (0, AREAS),
        (3, AREAS),
        (512, AREAS),
        (8, AREAS + 8),
        (8, 0x1000),
    ] {
        let mut driver = Driver::new(instant());
        driver.write(0x70, 3);
        driver.set_up_queue(0, 8);
        driver.write(0x44, 0);
        driver.write(0x38, size);
        driver.write(0x80, descriptors & 0xffff_ffff);
        driver.write(0x84, descriptors >> 32);
        driver.write(0x44, 1);
        assert_eq!(
            driver.read(0x44),
            0,
            "size {size}, descriptors {descriptors:#x}"
        );
        assert_eq!(driver.read(0x70) & NEEDS_RESET, NEEDS_RESET);
    }
}

/// Whatever is in memory and in the registers: no panic, no hang.
#[test]
fn noise_is_survived() {
    let mut random = crate::base::Random::new(0x5eed);
    for round in 0..200 {
        let device = match round % 4 {
            0 => instant(),
            1 => VirtioDevice::Entropy(Box::new(Entropy::new(
                Service::default(),
                Faults::default(),
                1,
            ))),
            2 => net(),
            _ => VirtioDevice::Console(Box::new(Ports::new(vec![(
                "port".to_owned(),
                Box::new(crate::device::Silent),
            )]))),
        };
        let mut driver = Driver::new(device);
        driver.start(random.next() & (1 << 28 | 1 << 29));
        for _ in 0..50 {
            let at = AREAS + random.below(0xc000);
            let near_ram = RAM + random.below(RAM_SIZE as u64 + 64);
            driver.store(at & !7, &near_ram.to_le_bytes());
            driver.store(
                (AREAS + random.below(0xc000)) & !1,
                &(random.next() as u16 & 15).to_le_bytes(),
            );
            driver.write(0x50, random.below(5));
            let register = random.below(0x42) * 4;
            // Resets and queue set-ups by chance would make most rounds dull.
            if random.below(8) == 0 {
                driver.write(register, random.next() & 0xffff_ffff);
            }
            driver.read(register);
            driver.advance();
        }
    }
}

#[test]
fn drivers_without_interest_get_no_interrupts() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    driver.store(areas(0).1, &1_u16.to_le_bytes());
    request(&mut driver, 0, 0, 512);
    assert_eq!((driver.used_index(0), driver.line()), (1, false));
}

#[test]
fn event_indices_choose_the_completion_that_interrupts() {
    let mut driver = Driver::new(instant());
    driver.start(EVENT_INDEX);
    // used_event = 1: the interrupt comes when the index goes from 1 to 2.
    driver.store(
        areas(0).1 + 4 + 2 * u64::from(QUEUE_SIZE),
        &1_u16.to_le_bytes(),
    );
    request(&mut driver, 0, 0, 512);
    assert!(!driver.line());
    request(&mut driver, 0, 0, 512);
    assert!(driver.line());
    let available_event = areas(0).2 + 4 + 8 * u64::from(QUEUE_SIZE);
    assert_eq!(
        driver.load_u16(available_event),
        2,
        "notify at the next one"
    );
}
