//! Random programs: a state to begin with, page tables, and instructions.
//!
//! A program is a function of its seed and of where its slot lies. Its instructions stand in
//! places of eight bytes, and after a trap it goes on at the next place. Jumps go ahead, or to
//! pages full of returns, or fault; so every program ends.

mod body;
mod setting;
mod state;
mod tables;

pub use body::Item;
pub use setting::{Features, Mode, Slot};

use crate::layout::{self, PLACE, context};
use crate::random::Random;
use tables::Tables;

/// A program.
#[derive(Debug, Clone)]
pub struct Program {
    /// The mode that it starts in.
    pub mode: Mode,
    /// Its instructions, in order.
    pub items: Vec<Item>,
    /// Its memory before it runs.
    pub slot: Slot,
    /// Description of the set-up for people.
    pub setting: String,
    tables: Tables,
    state: state::State,
}

impl Program {
    /// The program of a seed, at the slot with index `index`; only its first `items` items if so
    /// many are given.
    #[must_use]
    pub fn new(seed: u64, index: u64, items: Option<usize>, features: Features) -> Self {
        let mut random = Random::new(seed);
        let mode = random.pick(&[
            Mode::Machine,
            Mode::Supervisor,
            Mode::Supervisor,
            Mode::User,
            Mode::VirtualSupervisor,
            Mode::VirtualSupervisor,
            Mode::VirtualUser,
        ]);
        let mut slot = Slot::new(layout::SLOTS + index * layout::SLOT);
        fill_data(&mut slot, &mut random);
        put_handlers(&mut slot);
        let tables = Tables::new(&mut slot, mode, &mut random);
        let state = state::State::new(&mut slot, mode, &tables, features, &mut random);
        let mut items_made = body::make(mode, &state, &tables.leaves, features, &mut random);
        if let Some(count) = items {
            items_made.truncate(count);
        }
        let end = body::place(&mut slot, &mut items_made);
        slot.put_context(context::END, 0, end);
        Self {
            mode,
            items: items_made,
            setting: format!("{mode:?}, {}, {}", tables.describe(), state.describe()),
            slot,
            tables,
            state,
        }
    }

    /// Tests whether a leaf has a flaw of this name.
    #[must_use]
    pub fn has_flaw(&self, name: &str) -> bool {
        self.tables.has_flaw(name)
    }

    /// Tests whether a supervisor's timer comparison has no effect, by menvcfg.STCE or henvcfg.STCE.
    #[must_use]
    pub const fn has_timers_off(&self) -> bool {
        self.state.timers_off
    }

    /// Tests whether memory protection covers data or page tables.
    #[must_use]
    pub const fn is_protected(&self) -> bool {
        self.state.protected
    }

    /// Tests whether memory protection lets page tables be read but not written.
    #[must_use]
    pub const fn protects_tables(&self) -> bool {
        self.state.protects_tables
    }

    /// The item at an address in the code.
    #[must_use]
    pub fn item_at(&self, address: u64) -> Option<&Item> {
        let offset = address.checked_sub(self.slot.base + layout::CODE)?;
        self.items
            .iter()
            .rev()
            .find(|item| item.offset <= offset && offset < item.offset + item.size())
    }
}

fn fill_data(slot: &mut Slot, random: &mut Random) {
    for page in 0..layout::DATA_PAGES {
        for word in 0..layout::PAGE / 8 {
            let value = random.value();
            slot.put_word(layout::DATA + page * layout::PAGE + 8 * word, value);
        }
    }
    for at in 0..layout::PAGE / 2 {
        let bytes = crate::assembler::C_RET.to_le_bytes();
        slot.put(layout::LANDING + 2 * at, &bytes);
    }
}

/// A vector of ECALLs for each supervisor, and the SRET.
fn put_handlers(slot: &mut Slot) {
    let call = crate::assembler::ECALL.to_le_bytes();
    for mode in [0, layout::VIRTUAL_HANDLERS] {
        for at in (0..layout::HANDLERS_SIZE).step_by(4) {
            slot.put(layout::HANDLERS + mode + at, &call);
        }
    }
    let back = crate::assembler::SRET.to_le_bytes();
    slot.put(layout::HANDLERS + layout::HANDLER_RETURN, &back);
}

const _: () = assert!(PLACE == 8);
