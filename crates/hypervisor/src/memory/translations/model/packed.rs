//! A world in few bits, so that all of them have room in memory.

use super::super::{Tags, Watch};
use super::world::{HARTS, VCPUS, World, hart_id, id};
use scheduler::HartSet;

impl World {
    /// The world in few bits, from which [`World::unpacked`] makes it again.
    pub(super) fn packed(&self, tags: Tags) -> u128 {
        let mut packer = Packer::default();
        for hart in &self.harts {
            packer.put(hart.entries.into(), 12);
            packer.put(hart.vcpu.map_or(0, |vcpu| vcpu as u128 + 1), 2);
            packer.put(hart.in_guest.into(), 1);
            packer.put(hart.declared.into(), 2);
            packer.put(hart.mask.into(), 2);
            for vcpu in 0..VCPUS {
                let holder = hart.vmids.last(tags.of(id(vcpu)));
                packer.put(holder.into(), 2);
            }
        }
        for vcpu in &self.vcpus {
            let last = vcpu.cached.last;
            packer.put(last.map_or(0, |last| u128::from(last.get()) + 1), 2);
            packer.put(vcpu.cached.good.bits().into(), 2);
            let watch = match vcpu.cached.watch {
                Watch::Nothing => 0,
                Watch::Mask => 1,
                Watch::Trap => 2,
            };
            packer.put(watch, 2);
            packer.put(vcpu.cached.changes_left.into(), 2);
            for hart in 0..HARTS {
                packer.put(vcpu.cached.on[hart].seen.into(), 2);
            }
        }
        packer.put(self.generations[0].into(), 2);
        packer.bits
    }

    /// `first` is where all began.
    pub(super) fn unpacked(bits: u128, tags: Tags, first: &Self) -> Self {
        let mut world = first.clone();
        let mut packer = Packer { bits, at: 0 };
        for hart in &mut world.harts {
            hart.entries = packer.take(12) as u16;
            hart.vcpu = (packer.take(2) as usize).checked_sub(1);
            hart.in_guest = packer.take(1) != 0;
            hart.declared = packer.take(2);
            hart.mask = packer.take(2) as u8;
            for vcpu in 0..VCPUS {
                let tag = tags.of(id(vcpu));
                hart.vmids.set_last(tag, packer.take(2) as u16);
            }
        }
        for vcpu in &mut world.vcpus {
            vcpu.cached.last = (packer.take(2) as usize).checked_sub(1).map(hart_id);
            vcpu.cached.good = HartSet::from_bits(packer.take(2));
            vcpu.cached.watch = match packer.take(2) {
                0 => Watch::Nothing,
                1 => Watch::Mask,
                _ => Watch::Trap,
            };
            vcpu.cached.changes_left = packer.take(2) as u8;
            for hart in 0..HARTS {
                vcpu.cached.on[hart].seen = packer.take(2);
            }
        }
        world.generations[0] = packer.take(2);
        world
    }
}

/// Small numbers in a large one.
#[derive(Default)]
struct Packer {
    bits: u128,
    at: u32,
}

impl Packer {
    fn put(&mut self, value: u128, bits: u32) {
        assert!(value < 1 << bits && self.at + bits <= u128::BITS);
        self.bits |= value << self.at;
        self.at += bits;
    }

    fn take(&mut self, bits: u32) -> u64 {
        let value = self.bits >> self.at & ((1 << bits) - 1);
        self.at += bits;
        value as u64
    }
}
