//! Network, entropy and console.

use super::*;

#[test]
fn frames_carry_headers_both_ways() {
    let mut driver = Driver::new(net());
    driver.start(1 << 5);
    assert_eq!(
        driver.read(0x100),
        0x0000_0002,
        "the address in the configuration space"
    );
    let frame: Vec<u8> = (0..60).collect();
    driver.store(DATA, &[&[0; 12][..], &frame].concat());
    driver.chain(1, &[(DATA, 12, false), (DATA + 12, 60, false)]);
    driver.offer(1, 0);
    assert_eq!(
        driver.effects.frames,
        [(crate::device::PortId(1), frame.clone())]
    );
    assert_eq!(driver.used_index(1), 1);

    let Some(VirtioDevice::Net(net)) = driver.slot.device_mut() else {
        panic!("a network device")
    };
    net.arrive(frame.clone());
    driver.with(|slot, context| slot.tick(context));
    assert_eq!(driver.used_index(0), 0, "no buffer, no frame");
    driver.chain(0, &[(DATA + 0x100, 1526, true)]);
    driver.offer(0, 0);
    assert_eq!((driver.used_index(0), driver.used_length(0, 0)), (1, 72));
    // num_buffers is 1, the rest of the header is zero (§5.1.6.4.1).
    let header = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    assert_eq!(
        driver.load(DATA + 0x100, 72),
        [&header[..], &frame].concat()
    );
}

#[test]
fn entropy_follows_from_the_seed() {
    let bytes = |seed| {
        let service = (Service::default(), Faults::default());
        let entropy = Entropy::new(service.0, service.1, seed);
        let mut driver = Driver::new(VirtioDevice::Entropy(Box::new(entropy)));
        driver.start(0);
        driver.chain(0, &[(DATA, 32, true)]);
        driver.offer(0, 0);
        assert_eq!(driver.used_length(0, 0), 32);
        driver.load(DATA, 32)
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn console_ports_are_announced_and_carry_bytes() {
    use crate::device::Script;
    let script = Script::new([(Cycles(0), b"hello".to_vec())]);
    let heard = script.output.clone();
    let ports: Vec<(String, Box<dyn crate::device::Console>)> = vec![
        (String::new(), Box::new(crate::device::Silent)),
        ("second".to_owned(), Box::new(script)),
    ];
    let mut ports = Ports::new(ports);
    let marker = crate::device::Marker::new("out");
    ports.watch(&marker);
    let mut driver = Driver::new(VirtioDevice::Console(Box::new(ports)));
    driver.start(2);
    assert_eq!(driver.read(0x104), 2, "max_nr_ports");

    // DEVICE_READY, then the announcements into eight buffers of the control queue.
    let control = |driver: &mut Driver, port: u32, event: u16, value: u16| {
        let message = [
            &port.to_le_bytes()[..],
            &event.to_le_bytes(),
            &value.to_le_bytes(),
        ];
        driver.store(DATA, &message.concat());
        driver.chain(3, &[(DATA, 8, false)]);
        driver.offer(3, 0);
    };
    let next = |driver: &mut Driver| {
        let before = driver.used_index(2);
        driver.store(DATA + 0x100, &[0; 64]);
        driver.chain(2, &[(DATA + 0x100, 64, true)]);
        driver.offer(2, 0);
        assert_eq!(driver.used_index(2), before + 1, "a message");
        let length = driver.used_length(2, before) as usize;
        driver.load(DATA + 0x100, length)
    };
    control(&mut driver, 0, 0, 1);
    assert_eq!(next(&mut driver), [0, 0, 0, 0, 1, 0, 1, 0]);
    assert_eq!(next(&mut driver), [1, 0, 0, 0, 1, 0, 1, 0]);
    control(&mut driver, 1, 3, 1);
    assert_eq!(
        next(&mut driver),
        [&[1, 0, 0, 0, 7, 0, 1, 0][..], b"second"].concat()
    );
    assert_eq!(next(&mut driver), [1, 0, 0, 0, 6, 0, 1, 0]);
    control(&mut driver, 1, 6, 1);

    // Port 1 has queues 4 and 5, which the driver sets up for itself.
    for queue in [4, 5] {
        driver
            .memory
            .store(areas(queue).0, &[0; 0x3000])
            .expect("RAM");
        driver.set_up_queue(queue, 8);
    }
    driver.chain(4, &[(DATA + 0x200, 64, true)]);
    driver.store(areas(4).1 + 2, &1_u16.to_le_bytes());
    driver.write(0x50, 4);
    assert_eq!(driver.load(DATA + 0x200, 5), *b"hello");
    assert!(!marker.is_seen());
    driver.store(DATA + 0x300, b"out");
    driver.chain(5, &[(DATA + 0x300, 3, false)]);
    driver.store(areas(5).1 + 2, &1_u16.to_le_bytes());
    driver.write(0x50, 5);
    assert_eq!(*heard.lock().expect("one thread"), *b"out");
    assert!(marker.is_seen());
}
