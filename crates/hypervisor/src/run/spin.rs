//! Reservation wait: what a spinning vCPU waits for, and whether it has come.
//!
//! A guest that leaves at WRS.NTO has told by the code in front of it which word it watches and what it last saw there; one that
//! leaves at a PAUSE has told the same by the loop around it.
//! While the word is unchanged, giving it the hart again would be futile. All of this is a hint: a wrong guess costs
//! time, never correctness, because WRS.NTO may end for any reason (Zawrs) and a PAUSE may take any time.

use crate::hart::csr::{self, number, status};
use crate::hart::decode::{Register, Width};
use crate::hart::instruction::{Ahead, Guest, Place, Turn};
use crate::hart::unprivileged;
use crate::memory::address::{GuestPhysical, HostPhysical};
use crate::memory::owned::OwnedRegion;
use crate::memory::physical::Physical;
use crate::memory::walk;
use crate::vm::Vm;
use crate::vm::conditions::{self, Conditions};
use crate::vm::spin_code::{Code, KnownCode};
use crate::vm::vcpu::{Registers, Vcpu};
use crate::vm::word::{Spin, Word};

/// Looks at what the vCPU that has just left this hart at a WRS.NTO or a PAUSE waits for. Its program counter still points there, and
/// `read` understands the code around such an instruction.
#[must_use]
pub fn look(vm: &Vm, registers: &mut Registers, read: impl Fn(u64) -> Option<Code>) -> Spin {
    look_from(vm, registers, None, read)
}

/// Looks at what the vCPU that has just left this hart, by no act of its own, is about to wait for by a WRS.NTO. [`Spin::Unknown`] where it is at work, as far as can be told.
#[must_use]
pub fn look_ahead(vm: &Vm, registers: &mut Registers) -> Spin {
    let guest = AtExit { vm, registers };
    match Ahead::of(&guest, registers.context.program_counter) {
        Some(ahead) => look_from(vm, registers, Some(&ahead), Code::of_reservation),
        None => Spin::Unknown,
    }
}

fn look_from(
    vm: &Vm,
    registers: &mut Registers,
    ahead: Option<&Ahead>,
    read: impl Fn(u64) -> Option<Code>,
) -> Spin {
    let known = watched(registers, ahead, read).and_then(|watched| {
        let size = if watched.wide { 8 } else { 4 };
        let host = place(vm, registers, watched.address, size)?.base();
        Some(Word::new(host, watched.wide, watched.seen, watched.ticket))
    });
    judge(known)
}

/// Looks at what the vCPU that has just left this hart at a PAUSE waits for, where its loop looks at several words: goes through one
/// turn of the loop.
// Not in the way of the waits for one word.
#[cold]
#[inline(never)]
#[must_use]
pub fn look_at_several(vm: &Vm, vcpu: &Vcpu, registers: &Registers) -> Spin {
    let turn = Turn::of(&AtExit { vm, registers }, registers.context.program_counter);
    let first = |place: u64| {
        let wide = place.is_multiple_of(8);
        Word::first_of_several(HostPhysical::new(place).align_down(4), wide)
    };
    match turn {
        Some(Turn::Waits(conditions)) => {
            let [condition, ..] = conditions;
            // SAFETY: the places are those that `AtExit` told.
            *vcpu.beside.lock() = unsafe { Conditions::new(conditions) };
            condition.map_or(Spin::Unknown, |condition| Spin::On(first(condition.place)))
        }
        // A guest that comes back at once does not go the way that the code seems to show.
        Some(Turn::Over(place)) if !registers.spinning.was_over_at(first(place)) => {
            Spin::Over(first(place))
        }
        _ => Spin::Unknown,
    }
}

/// The vCPU that has just left this hart.
struct AtExit<'a> {
    vm: &'a Vm,
    registers: &'a Registers,
}

impl Guest for AtExit<'_> {
    fn fetch(&self, address: u64) -> Option<u16> {
        unprivileged::fetch_halfword(address)
    }

    fn load(&self, address: u64, width: Width) -> Option<(u64, u64)> {
        let host = place(self.vm, self.registers, address, width.bytes())?.base();
        // SAFETY: it was just found in the VM's memory, aligned.
        Some((host.raw(), unsafe { conditions::read(host, width) }))
    }

    fn register(&self, register: Register) -> u64 {
        self.registers.context.get(register.number() as u8)
    }

    fn clock(&self) -> u64 {
        csr::read::<{ number::TIME }>().wrapping_add(csr::read::<{ number::HTIMEDELTA }>())
    }
}

/// Where the word at a guest-virtual address lies, if it is aligned to its size and the vCPU that has just left this hart could load it.
fn place(vm: &Vm, registers: &Registers, address: u64, size: u64) -> Option<OwnedRegion> {
    if !address.is_multiple_of(size) {
        return None;
    }
    let vsatp = registers.address_space(csr::read::<{ number::VSATP }>);
    let read = |at| vm.memory.doubleword(at, &Physical::default());
    let physical = walk::translate(vsatp, address, reader(registers), read)?;
    vm.memory.in_one(physical, size)
}

/// On whose behalf the word of a wait is read: as the load of the wait was, if there was one. A program may have
/// jumped there with any address.
fn reader(registers: &Registers) -> walk::Reader {
    let fields = csr::read::<{ number::VSSTATUS }>();
    walk::Reader {
        user: registers.context.in_user_mode(),
        reads_user_pages: fields & status::SUM != 0,
        reads_code: fields & status::MXR != 0,
    }
}

/// What a vCPU waits for that says so itself, by the spin call: the guest-physical address of a word of 32 bits, the
/// value that it saw there, and its ticket if it has one.
#[must_use]
pub fn told(vm: &Vm, address: u64, seen: u64, ticket: u64) -> Spin {
    let host = (address.is_multiple_of(4))
        .then(|| vm.memory.in_one(GuestPhysical::new(address), 4))
        .flatten();
    let seen = i64::from(seen as i32) as u64;
    let ticket = u16::try_from(ticket).ok();
    judge(host.map(|host| Word::new(host.base(), false, seen, ticket)))
}

fn judge(word: Option<Word>) -> Spin {
    match word {
        Some(word) if word.has_changed() => Spin::Over(word),
        Some(word) => Spin::On(word),
        None => Spin::Unknown,
    }
}

/// What the code of a wait tells.
struct Watched {
    address: u64,
    seen: u64,
    /// The word is a doubleword.
    wide: bool,
    ticket: Option<u16>,
}

fn watched(
    registers: &mut Registers,
    ahead: Option<&Ahead>,
    read: impl Fn(u64) -> Option<Code>,
) -> Option<Watched> {
    let context = &registers.context;
    let wait = ahead.map_or(context.program_counter, |ahead| ahead.at);
    // A kernel's code is the same in all of its address spaces.
    let user = context.in_user_mode();
    let space = user.then(|| registers.address_space(csr::read::<{ number::VSATP }>));
    let at = (wait, space);
    let code = match registers.code.at(at) {
        Some(code) => code,
        None => {
            let code = read(wait)?;
            registers.code = KnownCode::new(at, code);
            code
        }
    };
    let register = |register: Register| {
        ahead
            .and_then(|ahead| ahead.written(register))
            .unwrap_or_else(|| context.get(register.number() as u8))
    };
    let wide = code.width == Width::Double;
    let seen = register(code.seen);
    Some(Watched {
        address: match code.place {
            Place::Register(base, offset) => register(base).wrapping_add_signed(offset),
            Place::Fixed(address) => address,
        },
        seen: if wide {
            seen
        } else {
            i64::from(seen as i32) as u64
        },
        wide,
        ticket: code.ticket.map(|ticket| register(ticket) as u16),
    })
}
