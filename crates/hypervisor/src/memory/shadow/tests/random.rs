//! Random guests: the tables and the hart keep only what the hart could have kept without shadow tables.

use super::*;
use proptest::prelude::*;

/// Step of the guest.
#[derive(Clone, Debug)]
enum Step {
    Enter(u8),
    /// A fault at this page of a region, whose guest leaf has this level, in host memory that is in pieces or not; the guest has
    /// changed its leaf so many times.
    Fill {
        region: u8,
        page: u16,
        guest_level: u8,
        whole: bool,
        version: u8,
        moves: bool,
    },
    Fence {
        region: u8,
        page: u16,
        count: u8,
        asid: Option<u8>,
        all: bool,
    },
    Moved(u8),
    Bare,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let place = (0u8..5, prop_oneof![0u16..8, 0u16..512]);
    let fill = (place.clone(), 0u8..4, any::<bool>(), 0u8..3, any::<bool>()).prop_map(
        |((region, page), guest_level, whole, version, moves)| Step::Fill {
            region,
            page,
            guest_level,
            whole,
            version,
            moves,
        },
    );
    let asid = prop_oneof![Just(None), (0u8..3).prop_map(Some)];
    let fence =
        (place, 1u8..9, asid, 0u8..8).prop_map(|((region, page), count, asid, all)| Step::Fence {
            region,
            page,
            count,
            asid,
            all: all == 0,
        });
    let step = prop_oneof![
        2 => (0u8..12).prop_map(Step::Enter),
        8 => fill,
        3 => fence,
        1 => (0u8..3).prop_map(Step::Moved),
        1 => Just(Step::Bare),
    ];
    proptest::collection::vec(step, 1..120)
}

/// A translation that the guest's hart may use: it was in the guest's tables, and no fence has covered it since.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    satp: u64,
    /// The guest's leaf.
    guest: (u64, u64),
    /// Part that the shadow tables map.
    piece: (u64, u64),
    host: u64,
    moves: Option<u64>,
}

fn covers((base, size): (u64, u64), address: u64) -> bool {
    address >= base && address - base < size
}

#[derive(Default)]
struct World {
    satp: u64,
    allowed: Vec<Allowed>,
    /// Translations that the hart keeps: the space's number, the leaf's range, where it leads, and whose space the number was.
    cached: Vec<(usize, (u64, u64), u64, u64)>,
}

fn satp_of(number: u8) -> u64 {
    satp(8, u64::from(number % 3), u64::from(number) + 1)
}

/// Regions of 2 MiB: two beside each other, one in another gibibyte, two in a high one.
fn address_of(region: u8, page: u16) -> u64 {
    let base = match region {
        0 => 0x20_0000,
        1 => 0x40_0000,
        2 => 0x4000_0000,
        3 => 0xffff_ffff_8000_0000,
        _ => 0xffff_ffff_8020_0000,
    };
    base + u64::from(page) * PAGE_SIZE
}

impl World {
    fn drop(&mut self, dropped: Dropped) {
        for space in dropped.spaces() {
            self.cached.retain(|(number, ..)| *number != space);
        }
        for (space, address) in dropped.pages() {
            self.cached
                .retain(|(number, leaf, ..)| *number != space || !covers(*leaf, address));
        }
    }

    fn may(&self, satp: u64, address: u64, host: u64) -> bool {
        self.allowed.iter().any(|allowed| {
            allowed.satp == satp
                && covers(allowed.piece, address)
                && allowed.host + (address - allowed.piece.0) == host
        })
    }

    /// The hart uses an address; what it finds is right.
    fn use_address(&mut self, tables: &ShadowTables, memory: &Memory, address: u64) {
        let Some((number, _)) = tables.present() else {
            return;
        };
        let Some(entry) = tables.find(address, memory) else {
            return;
        };
        let host = host_of(entry, address);
        assert!(
            self.may(self.satp, address, host),
            "{address:#x} leads to {host:#x}"
        );
        let range = (address & !(size(entry.1) - 1), size(entry.1));
        let base = host - (address - range.0);
        self.cached.push((number, range, base, self.satp));
    }

    /// Checks the cached translations that the hart would use for the present space.
    fn check(&self, tables: &ShadowTables) {
        let Some((present, _)) = tables.present() else {
            return;
        };
        for (number, (base, _), host, whose) in &self.cached {
            if *number == present {
                assert_eq!(*whose, self.satp, "the number was another space's");
                assert!(
                    self.may(*whose, *base, *host),
                    "{base:#x} is stale on the hart"
                );
            }
        }
    }

    fn step(&mut self, step: &Step, tables: &mut ShadowTables, memory: &mut Memory) {
        match *step {
            Step::Enter(number) => {
                self.satp = satp_of(number);
                let dropped = tables.enter(self.satp, memory);
                self.drop(dropped);
            }
            Step::Bare => {
                self.satp = 0;
                let dropped = tables.enter(0, memory);
                self.drop(dropped);
            }
            Step::Fill {
                region,
                page,
                guest_level,
                whole,
                version,
                moves,
            } => {
                if self.satp == 0 {
                    return;
                }
                let address = address_of(region, page);
                // 3 is a leaf of Svnapot.
                let (size_of_guest, above) = match guest_level {
                    0 => (size(0), 0),
                    1 => (size(1), 1),
                    2 => (size(2), 2),
                    _ => (size(0) * 16, 1),
                };
                let level = match guest_level {
                    1 | 2 if whole => 1,
                    _ => 0,
                };
                let moves = (moves && level == 0).then(|| u64::from(version) << 12);
                let guest_base = address & !(size_of_guest - 1);
                let host = 0x1_0000_0000 * u64::from(1 + version) + (address & 0x7fff_ffff);
                let leaf = Leaf {
                    address,
                    host: HostPhysical::new(host),
                    level,
                    whole: above,
                    rights: RIGHTS,
                    moves,
                };
                let piece = address & !(size(level) - 1);
                self.allowed.push(Allowed {
                    satp: self.satp,
                    guest: (guest_base, size_of_guest),
                    piece: (piece, size(level)),
                    host: host - (address - piece),
                    moves,
                });
                let dropped = tables.fill(&leaf, memory);
                self.drop(dropped);
                assert_eq!(found(tables, memory, address), Some(host), "just filled");
            }
            Step::Fence {
                region,
                page,
                count,
                asid,
                all,
            } => {
                let first = address_of(region, page);
                let pages = (!all).then_some((first, u64::from(count)));
                let operands = Operands {
                    pages,
                    asid: asid.map(u16::from),
                };
                let dropped = tables.forget(operands, memory);
                self.drop(dropped);
                self.allowed.retain(|allowed| {
                    let named =
                        asid.is_none_or(|asid| allowed.satp >> 44 & 0xffff == u64::from(asid));
                    let mut addresses = (0..u64::from(count)).map(|page| first + page * PAGE_SIZE);
                    let hit = all || addresses.any(|address| covers(allowed.guest, address));
                    !(named && hit)
                });
            }
            Step::Moved(page) => {
                let page = u64::from(page) << 12;
                let moved = [GuestPhysical::new(page)];
                let dropped = tables.forget_moved(Some(moved.into_iter()), memory);
                self.drop(dropped);
                self.allowed.retain(|allowed| allowed.moves != Some(page));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn fenced_entries_are_not_used(steps in steps(), frames in 5u64..40) {
        let (mut tables, mut memory) = (tables(frames), Memory::default());
        let mut world = World::default();
        for step in &steps {
            world.step(step, &mut tables, &mut memory);
            for region in 0..5 {
                for page in [0, 1, 2, 3, 7, 100, 511] {
                    world.use_address(&tables, &memory, address_of(region, page));
                }
            }
            world.check(&tables);
        }
        tables.clear();
        prop_assert_eq!(tables.pool.left() as u64, frames, "each frame came back once");
    }
}
