//! A computer made of plain data, on which the interrupt state runs: files, translations, messages in flight.

use std::cell::{Cell, RefCell};
use std::vec::Vec;

use crate::lock::{Mutex, place};
use scheduler::{HartId, HartSet, VcpuNumber};

use super::super::port::{Register, Registers};
use super::super::{Backing, Generation, GuestFile, HartFiles, Interrupts, Port, Route, Sign};
use super::step::Step;
use super::world::{Message, World};
use crate::interrupts::softfile::Identity;

/// The highest identity of the files: two arrays.
pub(super) const LAST_IDENTITY: u32 = 127;

/// A guest interrupt file of the hardware.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct HardwareFile {
    pub(super) pending: [u64; 2],
    pub(super) enabled: [u64; 2],
    pub(super) delivery: u64,
    pub(super) threshold: u64,
}

impl HardwareFile {
    /// Bit of `hgeip`. The model's guests set no threshold.
    pub(super) fn shows(&self) -> bool {
        let both = |array: usize| self.pending[array] & self.enabled[array] != 0;
        self.delivery == 1 && (both(0) || both(1))
    }

    fn register(&mut self, register: Register) -> &mut u64 {
        match register {
            Register::Delivery => &mut self.delivery,
            Register::Threshold => &mut self.threshold,
            Register::Pending(array) => &mut self.pending[usize::from(array.0)],
            Register::Enabled(array) => &mut self.enabled[usize::from(array.0)],
        }
    }
}

/// A world that runs one step, with what the hypervisor shares between harts.
pub(super) struct Computer {
    pub(super) world: RefCell<World>,
    pub(super) files: Vec<HartFiles>,
    pub(super) kept: Vec<Mutex<Interrupts, { place::INTERRUPTS }>>,
    /// Step of another hart in the middle of this one, and the accesses before it.
    interruption: Cell<Option<(u32, Step)>>,
    pub(super) accesses: Cell<u32>,
}

impl Computer {
    pub(super) fn new(world: &World) -> Self {
        Self {
            files: world
                .harts
                .iter()
                .map(|hart| hart.files.thaw(hart.waiting))
                .collect(),
            kept: world
                .vcpus
                .iter()
                .map(|vcpu| Mutex::new(vcpu.interrupts.clone()))
                .collect(),
            world: RefCell::new(world.clone()),
            interruption: Cell::new(None),
            accesses: Cell::new(0),
        }
    }

    /// Lets `step` happen in the middle of the next step, after so many accesses.
    pub(super) fn interrupt_at(&self, access: u32, step: Step) {
        self.interruption.set(Some((access, step)));
    }

    /// The world as it has become.
    pub(super) fn into_world(self) -> World {
        let mut world = self.world.into_inner();
        for (hart, files) in world.harts.iter_mut().zip(&self.files) {
            hart.files = files.frozen();
            hart.waiting = files.waiting();
        }
        for (vcpu, kept) in world.vcpus.iter_mut().zip(self.kept) {
            vcpu.interrupts = kept.into_inner();
        }
        world
    }

    pub(super) fn on(&self, hart: HartId) -> OnHart<'_> {
        OnHart {
            computer: self,
            here: hart,
        }
    }

    /// Marks a point between two accesses of the hypervisor, at which another step may happen.
    fn access(&self) {
        self.accesses.set(self.accesses.get() + 1);
        match self.interruption.take() {
            Some((0, step)) if self.can_happen_now(step) => step.take(self),
            Some((0, _)) => {}
            Some((left, step)) => self.interruption.set(Some((left - 1, step))),
            None => {}
        }
    }

    /// Returns true if the step is possible and waits for no lock. A step that waits happens later, at another access.
    fn can_happen_now(&self, step: Step) -> bool {
        // The world's own copies of these are as old as the step.
        let world = {
            let mut world = self.world.borrow().clone();
            for (vcpu, kept) in world.vcpus.iter_mut().zip(&self.kept) {
                if let Some(kept) = kept.try_lock() {
                    vcpu.interrupts = kept.clone();
                }
            }
            for (hart, files) in world.harts.iter_mut().zip(&self.files) {
                hart.files = files.frozen();
            }
            world
        };
        let locked = |vcpu: VcpuNumber| self.kept[vcpu.index()].is_locked();
        let any_locked = || self.kept.iter().any(Mutex::is_locked);
        world.is_possible(step)
            && match step {
                Step::Send {
                    by, to, through, ..
                } => through != Backing::Memory || !locked(to) && world.harts[by.index()].in_guest,
                Step::Arrive(_) | Step::Enter(_) | Step::Exit(_) | Step::Claim(..) => true,
                Step::Leave(hart, _) => !world.harts[hart.index()].vcpu.is_some_and(locked),
                Step::Fire => world.source.is_some_and(|(to, _)| !locked(to)),
                _ => !any_locked(),
            }
    }
}

/// The hypervisor's code on one hart of the computer.
#[derive(Clone, Copy)]
pub(super) struct OnHart<'a> {
    pub(super) computer: &'a Computer,
    pub(super) here: HartId,
}

pub(super) struct SelectedFile<'a> {
    hart: OnHart<'a>,
    file: GuestFile,
}

impl SelectedFile<'_> {
    fn with(&self, register: Register, change: impl FnOnce(&mut u64)) -> u64 {
        self.hart.computer.access();
        let mut world = self.hart.computer.world.borrow_mut();
        let files = &mut world.harts[self.hart.here.index()].hardware;
        let value = files[usize::from(self.file.number()) - 1].register(register);
        change(value);
        *value
    }
}

impl Registers for SelectedFile<'_> {
    fn read(&self, register: Register) -> u64 {
        self.with(register, |_| {})
    }

    fn write(&self, register: Register, value: u64) {
        self.with(register, |old| *old = value);
    }

    fn set(&self, register: Register, bits: u64) {
        self.with(register, |old| *old |= bits);
    }

    fn clear(&self, register: Register, bits: u64) {
        self.with(register, |old| *old &= !bits);
    }
}

impl<'c> Port for OnHart<'c> {
    type Registers<'a>
        = SelectedFile<'a>
    where
        Self: 'a;

    fn here(&self) -> HartId {
        self.here
    }

    fn last_identity(&self) -> u32 {
        LAST_IDENTITY
    }

    fn select(&self, file: GuestFile) -> SelectedFile<'_> {
        SelectedFile { hart: *self, file }
    }

    fn watch(&self, file: GuestFile, on: bool) {
        self.computer.access();
        let mut world = self.computer.world.borrow_mut();
        let watched = &mut world.harts[self.here.index()].watched;
        *watched = if on {
            *watched | file.bit()
        } else {
            *watched & !file.bit()
        };
    }

    fn files(&self, hart: HartId) -> Option<&HartFiles> {
        self.computer.files.get(hart.index())
    }

    fn interrupts(&self, vcpu: VcpuNumber) -> Option<&Mutex<Interrupts, { place::INTERRUPTS }>> {
        self.computer.kept.get(vcpu.index())
    }

    fn map_page(&self, vcpu: VcpuNumber, to: Backing) -> Generation {
        self.computer.access();
        let generation = self.computer.world.borrow_mut().map_page(vcpu, to);
        self.computer.access();
        generation
    }

    fn send_source(&self, _: Route, vcpu: VcpuNumber, to: Backing) {
        self.computer.access();
        self.computer.world.borrow_mut().source = Some((vcpu, to));
    }

    fn silence_source(&self, _: Route) {
        self.computer.access();
        self.computer.world.borrow_mut().source = None;
    }

    fn users_of_older(&self, vcpu: VcpuNumber, generation: Generation) -> HartSet {
        self.computer.access();
        let world = self.computer.world.borrow();
        let vm = world.vcpus[vcpu.index()].vm;
        let may = |hart: &HartId| {
            let declared = world.harts[hart.index()].declared;
            *hart != self.here && declared.is_some_and(|(of, used)| of == vm && used < generation)
        };
        world.hart_ids().filter(may).collect()
    }

    fn send(&self, hart: HartId, file: GuestFile, identity: Identity) {
        self.computer.access();
        let mut world = self.computer.world.borrow_mut();
        let files = &mut world.harts[hart.index()].hardware;
        files[usize::from(file.number()) - 1].pending[0] |= identity.bit();
    }

    fn kick(&self, hart: HartId) {
        self.computer.access();
        self.computer.world.borrow_mut().harts[hart.index()].kicked = true;
    }

    fn notify(&self, vcpu: VcpuNumber) {
        self.wake(vcpu, Sign::Interrupt);
    }

    fn wake(&self, vcpu: VcpuNumber, _: Sign) {
        self.computer.world.borrow_mut().vcpus[vcpu.index()].woken = true;
    }

    fn synchronise(&self) -> bool {
        self.computer.access();
        let mut world = self.computer.world.borrow_mut();
        let hart = &mut world.harts[self.here.index()];
        hart.in_flight.push(Message::Synchronisation);
        true
    }

    fn between_accesses(&self) {
        self.computer.access();
    }

    fn end_forwarding(&self, _: VcpuNumber, _: u32) {}
}
