//! Spins at their exits: the word that a spinning vCPU waits for, read from its registers, code and memory ([`spinwait`]).
//!
//! A guest that traps at WRS.NTO tells by the code in front of it which word it watches and what it saw there; one that traps at PAUSE tells
//! the word by the loop around it. While the word is unchanged, a dispatch of the vCPU would be futile.

use spinwait::{
    Conditions, Guest, Iteration, KnownLoop, NextWait, Register, SpinLoop, WatchedWord, Width,
};

use crate::hart::csr::{self, number, status};
use crate::hart::unprivileged::fetch_halfword;
use crate::memory::address::GuestPhysical;
use crate::memory::physical::Physical;
use crate::memory::walk;
use crate::vm::Vm;
use crate::vm::vcpu::{Vcpu, VcpuState};
use crate::vm::word::{GuestWord, Spin, Word};

/// Spin of the vCPU that has just left this hart at a WRS.NTO. Its program counter still points there.
#[must_use]
pub fn at_wrs(vm: &Vm, state: &mut VcpuState) -> Spin {
    at_exit(vm, state, None, around_wrs)
}

/// Spin of the vCPU that has just left this hart at a PAUSE. Its program counter still points there.
#[must_use]
pub fn at_pause(vm: &Vm, state: &mut VcpuState) -> Spin {
    at_exit(vm, state, None, |pause| {
        SpinLoop::around_pause(pause, fetch_halfword)
    })
}

/// Spin by WRS.NTO of the vCPU that was interrupted on this hart. [`Spin::Unknown`] if it does not seem to spin.
#[must_use]
pub fn at_interrupt(vm: &Vm, state: &mut VcpuState) -> Spin {
    let guest = AtExit { vm, state };
    match NextWait::find(&guest, state.context.program_counter) {
        Some(wait) => at_exit(vm, state, Some(&wait), around_wrs),
        None => Spin::Unknown,
    }
}

fn around_wrs(wait: u64) -> Option<SpinLoop> {
    SpinLoop::around_wrs(wait, fetch_halfword)
}

fn at_exit(
    vm: &Vm,
    state: &mut VcpuState,
    wait: Option<&NextWait>,
    decode: impl Fn(u64) -> Option<SpinLoop>,
) -> Spin {
    let word = find_loop(state, wait, decode).and_then(|found| {
        let context = &state.context;
        let operands = found.operands(|register: Register| {
            let written = wait.and_then(|wait| wait.written(register));
            written.unwrap_or_else(|| context.get(register.number() as u8))
        });
        let width = match operands.wide {
            true => Width::Double,
            false => Width::Word,
        };
        let address = find_word(vm, state, operands.address, width)?;
        Some(Word::new(
            address,
            operands.wide,
            operands.seen,
            operands.ticket,
        ))
    });
    Spin::of(word)
}

/// Spin of the vCPU that has just left this hart at a PAUSE whose loop tests several words: follows one iteration.
// Out of line: waits for one word are frequent, these are not.
#[cold]
#[inline(never)]
#[must_use]
pub fn at_pause_of_several(vm: &Vm, vcpu: &Vcpu, state: &VcpuState) -> Spin {
    let iteration = Iteration::follow(&AtExit { vm, state }, state.context.program_counter);
    let first = |address: GuestWord| {
        let wide = address.host().is_aligned(8);
        WatchedWord::first_of_several(address.containing_word(), wide)
    };
    match iteration {
        Some(Iteration::Waits(conditions)) => {
            let [condition, ..] = conditions;
            *vcpu.conditions.lock() = Conditions::new(conditions);
            condition.map_or(Spin::Unknown, |condition| {
                Spin::On(first(condition.address))
            })
        }
        // A guest that comes back at once takes another path than the code seems to show.
        Some(Iteration::Over(address)) if !state.spinning.was_over_at(first(address)) => {
            Spin::Over(first(address))
        }
        _ => Spin::Unknown,
    }
}

/// vCPU that has just left this hart.
struct AtExit<'a> {
    vm: &'a Vm,
    state: &'a VcpuState,
}

impl Guest for AtExit<'_> {
    type Address = GuestWord;

    fn fetch(&self, address: u64) -> Option<u16> {
        fetch_halfword(address)
    }

    fn load(&self, address: u64, width: Width) -> Option<(GuestWord, u64)> {
        let word = find_word(self.vm, self.state, address, width)?;
        Some((word, spinwait::ReadWord::read(word, width)))
    }

    fn register(&self, register: Register) -> u64 {
        self.state.context.get(register.number() as u8)
    }

    fn clock(&self) -> u64 {
        csr::read::<{ number::TIME }>().wrapping_add(csr::read::<{ number::HTIMEDELTA }>())
    }
}

/// Word at a guest-virtual address, if it is aligned and the vCPU that has just left this hart could load it.
fn find_word(vm: &Vm, state: &VcpuState, address: u64, width: Width) -> Option<GuestWord> {
    if !address.is_multiple_of(width.bytes()) {
        return None;
    }
    let vsatp = state.address_space(csr::read::<{ number::VSATP }>);
    let read = |at| vm.memory.doubleword(at, &Physical::default());
    let physical = walk::translate(vsatp, address, reader(state), read)?;
    GuestWord::find(&vm.memory, physical, width)
}

/// Privilege of the load of the wait. A program may have jumped there with any address.
fn reader(state: &VcpuState) -> walk::Reader {
    let fields = csr::read::<{ number::VSSTATUS }>();
    walk::Reader {
        user: state.context.in_user_mode(),
        reads_user_pages: fields & status::SUM != 0,
        reads_code: fields & status::MXR != 0,
    }
}

/// Spin of a vCPU that names its word by the spin call: the guest-physical address of a word of 32 bits, the value that it saw, and its ticket
/// if it has one.
#[must_use]
pub fn by_call(vm: &Vm, address: u64, seen: u64, ticket: u64) -> Spin {
    let word = (address.is_multiple_of(4))
        .then(|| GuestWord::find(&vm.memory, GuestPhysical::new(address), Width::Word))
        .flatten();
    let seen = Width::Word.extend(seen, true);
    let ticket = u16::try_from(ticket).ok();
    Spin::of(word.map(|word| Word::new(word, false, seen, ticket)))
}

/// Decoded loop at the wait, read once while the vCPU spins there.
fn find_loop(
    state: &mut VcpuState,
    wait: Option<&NextWait>,
    decode: impl Fn(u64) -> Option<SpinLoop>,
) -> Option<SpinLoop> {
    let context = &state.context;
    let wait = wait.map_or(context.program_counter, |wait| wait.at);
    // A kernel's code is the same in all of its address spaces.
    let user = context.in_user_mode();
    let space = user.then(|| state.address_space(csr::read::<{ number::VSATP }>));
    let at = (wait, space);
    if let Some(known) = state.known_loop.at(at) {
        return Some(known);
    }
    let found = decode(wait)?;
    state.known_loop = KnownLoop::new(at, found);
    Some(found)
}
