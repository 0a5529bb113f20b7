//! Each test is made with each way.

mod receive;
mod stop;
mod watch;
mod ways;
pub mod world;

use abi::monitor::Event;

use self::world::*;
use super::*;
use crate::devices::testing::context::Alone;
use crate::devices::trapped::TrappedDevice;
use crate::devices::virtio::register::*;

#[test]
fn operations_reach_the_device_and_return() {
    for way in Way::ALL {
        let mut guest = Guest::started(way);
        let world = &guest.world;
        world.describe(TABLE, 3, BUFFERS, 16, 1, 5);
        world.describe(TABLE, 5, BUFFERS + 0x100, 512, 1 | 2, 0);
        world.describe(TABLE, 0, BUFFERS + 0x800, 1, 2, 0);
        world.offer(0, &[3]);
        guest.set(QUEUE_NOTIFY, 0);
        let (head, buffers) = guest.world.device_takes().unwrap();
        let place = |at| guest.world.place(at);
        assert_eq!(
            buffers,
            [
                (place(BUFFERS), 16, false),
                (place(BUFFERS + 0x100), 512, true),
                (place(BUFFERS + 0x800), 1, true)
            ]
        );
        assert!(!guest.device.irq_level());
        guest.world.device_returns(head.into(), 513);
        guest.device.poll(&Alone(&guest.world));
        assert!(guest.device.irq_level());
        assert_eq!(guest.get(INTERRUPT_STATUS), 1);
        // The guest's used ring: no flags, one entry, the head of its own chain.
        assert_eq!(guest.world.guest_gets::<4>(USED), [0, 0, 1, 0]);
        assert_eq!(
            guest.world.guest_gets::<8>(USED + 4),
            [3, 0, 0, 0, 1, 2, 0, 0]
        );
        guest.set(INTERRUPT_ACKNOWLEDGE, 1);
        assert!(!guest.device.irq_level());
        assert_eq!(guest.world.board.interrupts.get(), 0, "the device's too");
    }
}

#[test]
fn buffers_across_pieces_are_split() {
    for way in Way::ALL {
        let mut guest = Guest::started(way);
        let table = RAM + 0x3000;
        let across = RAM + HALF - 0x80;
        guest.world.describe(TABLE, 0, BUFFERS, 8, 1, 1);
        guest.world.describe(TABLE, 1, table, 32, 4, 0);
        guest.world.describe(table, 0, across, 0x100, 1 | 2, 1);
        guest.world.describe(table, 1, BUFFERS + 8, 1, 2, 0);
        guest.world.offer(0, &[0]);
        guest.set(QUEUE_NOTIFY, 0);
        let (_, buffers) = guest.world.device_takes().unwrap();
        let crossing = match way {
            Way::Fast => vec![(FIRST + HALF - 0x80, 0x100, true)],
            _ => vec![(FIRST + HALF - 0x80, 0x80, true), (SECOND, 0x80, true)],
        };
        let first = [(FIRST + 0x4000, 8, false)];
        let last = [(FIRST + 0x4008, 1, true)];
        assert_eq!(buffers, [&first[..], &crossing, &last].concat());
    }
}

/// Foreign memory in a hostile driver's chains: the device is given nothing, the guest is asked for a reset, and works after one.
#[test]
fn foreign_memory_reaches_no_device() {
    for way in Way::ALL {
        type Write = fn(&World);
        let chains: [(&str, Write); 12] = [
            ("in front", |world| {
                world.describe(TABLE, 0, RAM - 8, 16, 0, 0)
            }),
            ("behind", |world| {
                world.describe(TABLE, 0, RAM + 2 * HALF - 8, 16, 0, 0);
            }),
            ("the hypervisor's", |world| {
                world.describe(TABLE, 0, AREAS, 16, 2, 0);
            }),
            ("round the end of the addresses", |world| {
                world.describe(TABLE, 0, u64::MAX - 7, 16, 2, 0);
            }),
            ("nothing", |world| {
                world.describe(TABLE, 0, BUFFERS, 0, 0, 0)
            }),
            ("a ring", |world| world.describe(TABLE, 0, BUFFERS, 8, 1, 0)),
            ("no such descriptor", |world| {
                world.describe(TABLE, 0, BUFFERS, 8, 1, ENTRIES as u16);
            }),
            ("a table of no descriptor", |world| {
                world.describe(TABLE, 0, BUFFERS, 0, 4, 0);
            }),
            ("a table of a part", |world| {
                world.describe(TABLE, 0, BUFFERS, 24, 4, 0);
            }),
            ("a table that goes on", |world| {
                world.describe(TABLE, 0, BUFFERS, 16, 4 | 1, 1);
            }),
            ("a table in a table", |world| {
                world.describe(TABLE, 0, BUFFERS, 16, 4, 0);
                world.describe(BUFFERS, 0, BUFFERS + 64, 16, 4, 0);
            }),
            ("a table elsewhere", |world| {
                world.describe(TABLE, 0, AREAS, 16, 4, 0);
            }),
        ];
        for (name, write) in chains {
            let mut guest = Guest::started(way);
            write(&guest.world);
            guest.world.offer(0, &[0]);
            guest.set(QUEUE_NOTIFY, 0);
            assert_eq!(guest.world.device_takes(), None, "{name}");
            assert!(guest.is_broken(), "{name}");
            assert_eq!(guest.get(INTERRUPT_STATUS), 2, "{name}");
            // It does nothing until it is reset.
            guest.world.describe(TABLE, 0, BUFFERS, 8, 0, 0);
            guest.set(QUEUE_NOTIFY, 0);
            assert_eq!(guest.world.device_takes(), None, "{name}");
            guest.world.guest_sets(AVAILABLE, &[0; 4]);
            guest.start(VERSION_1, ENTRIES, [TABLE, AVAILABLE, USED]);
            guest.world.offer(0, &[0]);
            guest.set(QUEUE_NOTIFY, 0);
            assert!(guest.world.device_takes().is_some(), "{name}");
            assert!(!guest.is_broken(), "{name}");
        }
    }
}

#[test]
fn queues_have_valid_places_and_sizes() {
    for way in Way::ALL {
        let good = [TABLE, AVAILABLE, USED];
        for (name, size, parts) in [
            ("no power of two", 6, good),
            ("nothing", 0, good),
            ("more than there can be", 2 * ENTRIES, good),
            ("far more", 1 << 16 | ENTRIES, good),
            (
                "a table that is not aligned",
                8,
                [TABLE + 8, AVAILABLE, USED],
            ),
            ("a ring that is not", 8, [TABLE, AVAILABLE + 1, USED]),
            ("the other", 8, [TABLE, AVAILABLE, USED + 2]),
            ("in the hypervisor", 8, [AREAS, AVAILABLE, USED]),
            ("registers", 8, [TABLE, REGISTERS, USED]),
            ("over the end", 8, [TABLE, AVAILABLE, RAM + 2 * HALF - 64]),
            ("round the end", 8, [u64::MAX - 15, AVAILABLE, USED]),
        ] {
            let mut guest = Guest::new(way, 0);
            guest.start(VERSION_1, size, parts);
            assert!(guest.is_broken(), "{name}");
            assert_eq!(guest.get(QUEUE_READY), 0, "{name}");
            assert_eq!(guest.world.board.parts.borrow()[0], [0; 3], "{name}");
        }
    }
}

#[test]
fn an_index_that_jumps_is_no_work() {
    for way in Way::ALL {
        let mut guest = Guest::started(way);
        guest.world.describe(TABLE, 0, BUFFERS, 8, 0, 0);
        let jump = ENTRIES as u16 + 1;
        guest.world.guest_sets(AVAILABLE + 2, &jump.to_le_bytes());
        guest.set(QUEUE_NOTIFY, 0);
        assert!(guest.is_broken());
        assert_eq!(guest.world.device_takes(), None);
    }
}

#[test]
fn chains_without_room_wait() {
    for way in Way::ALL {
        let mut guest = Guest::started(way);
        // Three pieces each, by indirect tables, where there is room for eight.
        for chain in 0..4 {
            let table = BUFFERS + 0x100 * chain;
            guest.world.describe(TABLE, chain, table, 48, 4, 0);
            for (number, (flags, next)) in (0..).zip([(1, 1), (1, 2), (2, 0)]) {
                let buffer = BUFFERS + 0x1000 + 0x100 * chain + 0x10 * number;
                guest.world.describe(table, number, buffer, 16, flags, next);
            }
        }
        guest.world.offer(0, &[0, 1, 2, 3]);
        guest.set(QUEUE_NOTIFY, 0);
        let mut heads = Vec::new();
        while let Some((head, buffers)) = guest.world.device_takes() {
            assert_eq!(buffers.len(), 3);
            heads.push(head);
        }
        assert_eq!(heads.len(), 2);
        let mut ended = 0;
        while let Some(head) = heads.pop() {
            guest.world.device_returns(head.into(), 1);
            guest.device.poll(&Alone(&guest.world));
            ended += 1;
            let index = guest.world.guest_gets::<2>(USED + 2);
            assert_eq!(u16::from_le_bytes(index), ended);
            while let Some((head, _)) = guest.world.device_takes() {
                heads.push(head);
            }
        }
        assert_eq!(ended, 4);
    }
}

#[test]
fn queue_features_are_neither_offered_nor_taken() {
    for way in Way::ALL {
        let asked = 1 << 6 | 1 << 12 | 1 << 28 | 1 << 29 | ACCESS_PLATFORM | 1 << 34 | 1 << 40;
        let mut guest = Guest::new(way, asked);
        guest.set(DEVICE_FEATURES_SELECT, 0);
        assert_eq!(guest.get(DEVICE_FEATURES), 1 << 6 | 1 << 28 | 1 << 29);
        guest.set(DEVICE_FEATURES_SELECT, 1);
        assert_eq!(guest.get(DEVICE_FEATURES), 1);
        for refused in [0, VERSION_1 | 1 << 27, VERSION_1 | 1 << 34, 1 << 6] {
            guest.start(refused, ENTRIES, [TABLE, AVAILABLE, USED]);
            assert_eq!(guest.get(STATUS) & status::FEATURES_OK, 0, "{refused:#x}");
        }
        guest.world.guest_sets(AVAILABLE, &[0; 6]);
        guest.start(
            VERSION_1 | 1 << 28 | 1 << 29 | 1 << 6,
            ENTRIES,
            [TABLE, AVAILABLE, USED],
        );
        assert_eq!(guest.get(STATUS), 15);
        // The device's addresses are the host's, which it is told where it asks; it sees no indirect table.
        assert_eq!(
            guest.world.board.accepted.get(),
            VERSION_1 | ACCESS_PLATFORM | 1 << 6
        );
    }
}

#[test]
fn unwanted_interrupts_are_not_sent() {
    for way in Way::ALL {
        let mut guest = Guest::started(way);
        guest.world.guest_sets(AVAILABLE, &[1, 0]);
        guest.world.describe(TABLE, 0, BUFFERS, 8, 2, 0);
        guest.world.offer(0, &[0]);
        guest.set(QUEUE_NOTIFY, 0);
        let (head, _) = guest.world.device_takes().unwrap();
        guest.world.device_returns(head.into(), 8);
        guest.device.poll(&Alone(&guest.world));
        assert!(!guest.device.irq_level());
        assert_eq!(guest.world.guest_gets::<4>(USED), [0, 0, 1, 0]);
    }
}

#[test]
fn devices_returning_unknown_chains_are_stopped() {
    for way in Way::ALL {
        for head in [0, 7, 8, u32::MAX] {
            let mut guest = Guest::started(way);
            guest.world.device_returns(head, 0);
            guest.device.poll(&Alone(&guest.world));
            assert!(guest.is_broken());
            assert_eq!(guest.world.guest_gets::<2>(USED + 2), [0x5a; 2]);
        }
    }
}

/// A device of QEMU's that has found an operation wrong leaves its wire high until it is reset, and shows no interrupt.
#[test]
fn a_wire_that_stays_high_interrupts_once() {
    for way in Way::ALL {
        let guest = &mut Guest::started(way);
        guest.world.board.status.set(15 | status::NEEDS_RESET);
        guest.world.board.interrupts.set(2);
        guest.device.poll(&Alone(&guest.world));
        assert_eq!(guest.world.board.served.get(), 1);
        assert_eq!(guest.get(INTERRUPT_STATUS), 2);
        for _ in 0..10 {
            guest.device.poll(&Alone(&guest.world));
        }
        assert_eq!(guest.world.board.served.get(), 1);
        assert!(guest.is_broken());
    }
}

/// Pending work beside completed operations keeps the irq level high, and the next poll finds that work.
#[test]
fn changes_beside_completions_are_found_next() {
    for way in Way::ALL {
        let guest = &mut Guest::started(way);
        guest.world.describe(TABLE, 0, BUFFERS, 8, 2, 0);
        guest.world.offer(0, &[0]);
        guest.set(QUEUE_NOTIFY, 0);
        let (head, _) = guest.world.device_takes().unwrap();
        guest.world.device_returns(head.into(), 8);
        guest.world.board.interrupts.set(3);
        guest.device.poll(&Alone(&guest.world));
        assert_eq!(guest.get(INTERRUPT_STATUS), 1);
        assert_eq!(guest.world.board.interrupts.get(), 2);
        assert_eq!(guest.world.board.served.get(), 1, "the wire is high");
        guest.device.poll(&Alone(&guest.world));
        assert_eq!(guest.get(INTERRUPT_STATUS), 3);
        assert_eq!(guest.world.board.interrupts.get(), 0);
    }
}

#[test]
fn configuration_ends_with_the_structure() {
    for way in Way::ALL {
        let mut guest = Guest::new(way, 0);
        let mut load = |offset, width| {
            guest
                .device
                .load(Access { offset, width }, &Alone(&guest.world))
        };
        assert_eq!(load(0x100, Width::Double), 0x1122_3344_5566_7788);
        assert_eq!(load(0x100, Width::Half), 0x7788);
        for (offset, width) in [
            (0x1fc, Width::Double),
            (0x200, Width::Byte),
            (0x101, Width::Half),
            (u64::MAX, Width::Byte),
            (u64::MAX - 6, Width::Double),
            (STATUS, Width::Byte),
        ] {
            assert_eq!(load(offset, width), 0, "{offset:#x}");
        }
    }
}

/// A hostile driver makes its queues ready, stops them and resets the device again and again.
#[test]
fn no_driver_allocates_or_frees() {
    for way in Way::ALL {
        let guest = &mut Guest::started(way);
        let round = |guest: &mut Guest| {
            guest.world.guest_sets(AVAILABLE, &[0; 6]);
            guest.start(VERSION_1, ENTRIES, [TABLE, AVAILABLE, USED]);
            for queue in 0..MAX_QUEUES as u32 {
                guest.set(QUEUE_SELECT, queue);
                guest.set(QUEUE_SIZE, ENTRIES);
                for (register, part) in QUEUE_PARTS.into_iter().zip([TABLE, AVAILABLE, USED]) {
                    guest.set(register, part as u32);
                    guest.set(register + 4, (part >> 32) as u32);
                }
                for ready in [1, 0, 1] {
                    guest.set(QUEUE_READY, ready);
                }
            }
            guest.world.describe(TABLE, 0, BUFFERS, 16, 2, 0);
            guest.world.offer(0, &[0]);
            guest.set(QUEUE_NOTIFY, 0);
            guest.device.reset(&Alone(&guest.world));
        };
        // The test's own device notes each kind of access once.
        round(guest);
        assert_eq!(crate::heap::allocations(|| round(guest)), 0, "{way:?}");
    }
}

/// Accesses of any width: the device is accessed in its registers, by words, and in the configuration that its kind
/// has (virtio 1.2, §4.2.2 and §5.2.4).
#[test]
fn guest_accesses_are_not_repeated_at_devices() {
    for way in Way::ALL {
        let mut guest = Guest::new(way, 0);
        let offsets = (0..0x1100).chain([u64::MAX, u64::MAX - 7, 1 << 40]);
        for offset in offsets.filter(|offset| *offset != QUEUE_NOTIFY) {
            for width in [Width::Byte, Width::Half, Width::Word, Width::Double] {
                let access = Access { offset, width };
                let outside = Alone(&guest.world);
                let _ = guest.device.load(access, &outside);
                let _ = guest.device.store(access, u64::MAX, &outside);
            }
        }
        let end = CONFIGURATION + 96;
        for (offset, bytes) in guest.world.board.accesses.borrow().iter() {
            let allowed = match *offset {
                ..CONFIGURATION => *bytes == 4,
                _ => offset + bytes <= end,
            };
            assert!(allowed, "{way:?}: {bytes} bytes at {offset:#x}");
        }
    }
}
