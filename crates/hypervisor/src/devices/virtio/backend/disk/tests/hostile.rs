//! Driver that breaks the rules at random.

use super::guest::*;
use super::world::*;

impl Guest {
    /// Asks for something, and changes some descriptors and headers to whatever.
    pub fn scribble(&mut self, world: &World, random: &mut impl FnMut(u64) -> u64) {
        for request in 0..4 {
            let kind = [0, 0, 1, 1, 4, 8, random(1 << 32) as u32][random(7) as usize];
            let asked = BlockRequest {
                kind,
                sector: random(SECTORS + 4),
                bytes: [0, 512, 512, 1024, 700][random(5) as usize],
                written: kind == 0 || random(8) == 0,
            };
            self.ask(world, request, asked);
        }
        for _ in 0..random(3) {
            let at = random(20);
            let place = match random(4) {
                0 => random(u64::MAX),
                1 => RAM - 8 + random(2 * HALF + 16),
                _ => BUFFERS + random(0x8000),
            };
            let bytes = match random(4) {
                0 => random(1 << 32) as u32,
                _ => [0, 1, 16, 32, 512, 513, 1024][random(7) as usize],
            };
            let flags = random(8) as u16;
            let at = if random(2) == 0 {
                TABLE + 16 * at
            } else {
                BUFFERS + 16 * random(0x100)
            };
            self.describe(world, at, place, bytes, flags, random(70) as u16);
        }
        if random(4) == 0 {
            self.offer(world, random(300) as u16);
        }
    }
}
