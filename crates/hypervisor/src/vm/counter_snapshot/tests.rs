use super::*;
use crate::devices::testing::memory::Host;
use crate::memory::address::GuestRegion;
use crate::memory::owned::OwnedRegion;

const GUEST: u64 = 0x8000_0000;
const AREA: u64 = GUEST + 0x1000;
const HOST: u64 = 0x4000;

/// Three pages of a guest.
fn memory() -> GuestMemory {
    let guest = GuestRegion::new(GuestPhysical::new(GUEST), 0x3000).unwrap();
    GuestMemory::in_one_piece(guest, OwnedRegion::for_test(HOST, 0x3000)).unwrap()
}

fn host() -> Host {
    Host::new(0x8000)
}

#[test]
fn area_is_checked() {
    let memory = memory();
    let mut area = SnapshotArea::default();
    assert!(area.get(&memory, &host()).is_none());
    area.set([AREA, 0, 0], &memory).unwrap();
    let before = area;
    for (arguments, error) in [
        ([AREA, 0, 1], AreaError::InvalidParameter),
        ([u64::MAX, u64::MAX, 1], AreaError::InvalidParameter),
        ([AREA + 8, 0, 0], AreaError::InvalidParameter),
        ([u64::MAX, 0, 0], AreaError::InvalidParameter),
        ([AREA, 1, 0], AreaError::InvalidAddress),
        ([AREA, u64::MAX, 0], AreaError::InvalidAddress),
        ([0, 0, 0], AreaError::InvalidAddress),
        ([GUEST - 0x1000, 0, 0], AreaError::InvalidAddress),
        ([GUEST + 0x3000, 0, 0], AreaError::InvalidAddress),
        ([u64::MAX - 0xfff, 0, 0], AreaError::InvalidAddress),
    ] {
        assert_eq!(area.set(arguments, &memory), Err(error), "{arguments:x?}");
        assert_eq!(area, before);
    }
    area.set([u64::MAX, u64::MAX, 0], &memory).unwrap();
    assert_eq!(area, SnapshotArea::default());
}

#[test]
fn values_have_the_specified_places() {
    let (memory, host) = (memory(), host());
    let mut area = SnapshotArea::default();
    area.set([AREA, 0, 0], &memory).unwrap();
    let snapshot = area.get(&memory, &host).unwrap();
    let unwritten = host.bytes(HOST, 0x3000);
    assert_eq!(snapshot.set_overflows(0x10), Some(()));
    assert_eq!(snapshot.set_value(0, 7), Some(()));
    assert_eq!(snapshot.set_value(63, 9), Some(()));
    assert_eq!(host.get(HOST + 0x1000), 0x10u64.to_ne_bytes());
    assert_eq!(host.get(HOST + 0x1008), 7u64.to_ne_bytes());
    // The last of 512 bytes from 8 on.
    assert_eq!(host.get(HOST + 0x1200), 9u64.to_ne_bytes());
    assert_eq!(snapshot.value(63), Some(9));
    assert_eq!(snapshot.value(1), Some(u64::from_ne_bytes([0x5a; 8])));
    for place in [64, u64::MAX / 8, u64::MAX] {
        assert_eq!(snapshot.set_value(place, 1), None);
        assert_eq!(snapshot.value(place), None);
    }
    let written = [0x1000..0x1010, 0x1200..0x1208];
    let left = |(at, byte): &(usize, u8)| {
        written.iter().any(|range| range.contains(at)) || unwritten[*at] == *byte
    };
    let now = host.bytes(HOST, 0x3000);
    assert!(now.into_iter().enumerate().all(|one| left(&one)));
}
