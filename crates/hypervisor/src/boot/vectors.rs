//! Vector registers of the board's harts: guests have them where all harts have them, in one length.

use board::{Board, isa};

use crate::hart::world;
use crate::system::Hypervisor;
use crate::system::harts::Hart;

/// Bytes of a vector register of this hart, if the device tree names vectors for every hart.
#[must_use]
pub fn length(board: &Board) -> Option<usize> {
    let every = |hart: &board::BoardHart| hart.extensions.has(isa::VECTORS);
    let every = board.harts.iter().all(every);
    every.then(world::vector_length).flatten()
}

/// Length of this hart's vector registers, if it is another than a VM was promised: that length, and the promised one, in bits.
#[must_use]
pub fn differing(system: &Hypervisor, hart: &Hart) -> Option<(usize, usize)> {
    let promised = system.vms.iter().find_map(|vm| vm.settings.vectors)?;
    let own = match hart.board.extensions.has(isa::VECTORS) {
        true => world::vector_length().unwrap_or(0),
        false => 0,
    };
    (own != promised).then_some((own * 8, promised * 8))
}
