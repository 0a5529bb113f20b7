use super::*;
use crate::memory::address::GuestRegion;
use crate::memory::guest::Piece;
use std::cell::RefCell;
use std::vec::Vec;

const HERTZ: u32 = 10_000_000;
const AREA: u64 = 0x8000_0040;
const NEVER: WaitEnds = WaitEnds {
    ready_since: 0,
    timer: u64::MAX,
};

/// Host memory of the guest's only page, and the bytes of the area after each write of the sequence.
#[derive(Debug)]
struct Host {
    page: RefCell<[u8; 4096]>,
    seen: RefCell<Vec<(u32, u64)>>,
}

impl Host {
    fn new() -> Self {
        Self {
            page: RefCell::new([0xa5; 4096]),
            seen: RefCell::default(),
        }
    }

    fn write(&self, at: OwnedRegion, bytes: &[u8]) {
        let from = (at.base().raw() - HOST) as usize;
        self.page.borrow_mut()[from..from + bytes.len()].copy_from_slice(bytes);
    }

    fn area<const N: usize>(&self, offset: u64) -> [u8; N] {
        let from = (AREA - GUEST + offset) as usize;
        self.page.borrow()[from..from + N].try_into().unwrap()
    }

    fn steal(&self) -> u64 {
        u64::from_le_bytes(self.area(STEAL))
    }

    fn preempted(&self) -> u8 {
        self.area::<1>(PREEMPTED)[0]
    }
}

impl HostMemory for Host {
    fn byte(&self, _: OwnedRegion) -> u8 {
        unreachable!("the area is not read")
    }

    fn set_byte(&self, at: OwnedRegion, value: u8) {
        self.write(at, &[value]);
    }

    fn set_word(&self, at: OwnedRegion, value: u32) {
        self.write(at, &value.to_ne_bytes());
        self.seen.borrow_mut().push((value, self.steal()));
    }

    fn doubleword(&self, _: OwnedRegion) -> u64 {
        unreachable!("the area is not read")
    }

    fn half(&self, _: OwnedRegion) -> u16 {
        unreachable!("the area is not read")
    }

    fn set_half(&self, _: OwnedRegion, _: u16) {
        unreachable!("the area has no halfwords")
    }

    fn set_doubleword(&self, at: OwnedRegion, value: u64) {
        self.write(at, &value.to_ne_bytes());
    }

    fn copy(&self, at: OwnedRegion, data: &[u8]) {
        self.write(at, data);
    }

    fn zero(&self, _: OwnedRegion) {
        unreachable!("the area is shared")
    }
}

const GUEST: u64 = 0x8000_0000;
const HOST: u64 = 0x9_0000_0000;

fn memory() -> GuestMemory {
    let guest = GuestRegion::new(GuestPhysical::new(GUEST), 4096).unwrap();
    let host = OwnedRegion::for_test(HOST, 4096);
    GuestMemory::new(Vec::from([Piece { guest, host }])).unwrap()
}

/// Steal time with an area that was set at tick 100.
fn set(memory: &GuestMemory, host: &Host) -> StealTime {
    let mut steal = StealTime::default();
    steal.set_area([AREA, 0, 0], 100, (memory, host)).unwrap();
    steal
}

#[test]
fn area_is_checked_and_zeroed() {
    let (memory, host) = (memory(), Host::new());
    let mut steal = StealTime::default();
    for (arguments, error) in [
        ([AREA, 0, 1], AreaError::InvalidParameter),
        ([u64::MAX, u64::MAX, 1 << 63], AreaError::InvalidParameter),
        ([AREA + 8, 0, 0], AreaError::InvalidParameter),
        ([u64::MAX, 0, 0], AreaError::InvalidParameter),
        ([AREA, 1, 0], AreaError::InvalidAddress),
        ([AREA, u64::MAX, 0], AreaError::InvalidAddress),
        ([GUEST - 64, 0, 0], AreaError::InvalidAddress),
        ([GUEST + 4096, 0, 0], AreaError::InvalidAddress),
        ([0, 0, 0], AreaError::InvalidAddress),
        ([u64::MAX - 63, 0, 0], AreaError::InvalidAddress),
    ] {
        assert_eq!(steal.set_area(arguments, 0, (&memory, &host)), Err(error));
        assert!(!steal.is_on());
    }
    assert_eq!(host.area(0), [0xa5; 64], "nothing was written");
    steal.set_area([AREA, 0, 0], 0, (&memory, &host)).unwrap();
    assert!(steal.is_on());
    assert_eq!(host.area(0), [0; 64]);
    let next: [u8; 8] = host.area(64);
    assert_eq!(next, [0xa5; 8], "nothing beyond the area");
    // A refused call leaves the area; all ones take it away.
    assert!(steal.set_area([1, 0, 0], 0, (&memory, &host)).is_err());
    assert!(steal.is_on());
    let none = [NO_SHARED_MEMORY, NO_SHARED_MEMORY, 0];
    steal.set_area(none, 0, (&memory, &host)).unwrap();
    assert!(!steal.is_on());
}

#[test]
fn preempted_time_is_stolen() {
    let (memory, host) = (memory(), Host::new());
    let mut steal = set(&memory, &host);
    steal.leave(true, 1_000, (&memory, &host));
    assert_eq!(host.preempted(), 1);
    let ends = || unreachable!("it did not wait");
    steal.enter((1_250, HERTZ), ends, (&memory, &host));
    assert_eq!((host.steal(), host.preempted()), (25_000, 0));
    steal.leave(true, 2_000, (&memory, &host));
    steal.enter((2_001, HERTZ), ends, (&memory, &host));
    assert_eq!(host.steal(), 25_100);
    let seen = host.seen.borrow().clone();
    assert_eq!(seen, [(1, 0), (2, 25_000), (3, 25_000), (4, 25_100)]);
}

#[test]
fn waits_are_stolen_from_their_end() {
    let (memory, host) = (memory(), Host::new());
    let mut steal = set(&memory, &host);
    let mut stolen = 0;
    for (ready_since, timer, by) in [
        // Nothing is known but the dispatch itself.
        (0, u64::MAX, 0),
        // Made ready 40 ticks before, its timer later.
        (960, u64::MAX, 40),
        (960, 990, 40),
        // A timer that expired while no hart looked.
        (960, 700, 300),
        // Both of earlier stays.
        (500, 400, 0),
        (1, u64::MAX, 0),
    ] {
        steal.enter((500, HERTZ), || NEVER, (&memory, &host));
        steal.leave(false, 600, (&memory, &host));
        assert_eq!(host.preempted(), 0, "idle is not preempted");
        let ends = || WaitEnds { ready_since, timer };
        steal.enter((1_000, HERTZ), ends, (&memory, &host));
        stolen += by;
        assert_eq!(host.steal(), stolen * 100, "{ready_since} {timer}");
    }
}

#[test]
fn spurious_wakeups_of_suspended_vcpus_are_idle() {
    let (memory, host) = (memory(), Host::new());
    let mut steal = set(&memory, &host);
    steal.leave(false, 600, (&memory, &host));
    // Made ready at 700 and dispatched at 720 without an interrupt that it has enabled.
    steal.wait_on(720);
    let ends = || WaitEnds {
        ready_since: 700,
        timer: u64::MAX,
    };
    steal.enter((9_000, HERTZ), ends, (&memory, &host));
    assert_eq!(host.steal(), 0);
}

#[test]
fn guest_writes_do_not_change_the_sequence() {
    let (memory, host) = (memory(), Host::new());
    let mut steal = set(&memory, &host);
    for round in 1..=3u32 {
        host.page.borrow_mut().fill(0xff);
        steal.enter((500, HERTZ), || NEVER, (&memory, &host));
        assert_eq!(u32::from_le_bytes(host.area(SEQUENCE)), 2 * round);
        assert_eq!(host.steal(), 0);
    }
}

#[test]
fn ticks_of_any_number_have_nanoseconds() {
    assert_eq!(
        nanoseconds(u64::MAX, 0),
        u64::MAX.wrapping_mul(1_000_000_000)
    );
    assert_eq!(nanoseconds(1, 10_000_000), 100);
    // A hundred years of a tick of a nanosecond's third.
    let years = 3_156_000_000_u64;
    assert_eq!(
        nanoseconds(years * 3_000_000_000, 3_000_000_000),
        years * 1_000_000_000
    );
    assert_eq!(nanoseconds(10_000_001, 10_000_000), 1_000_000_100);
}
