//! The world that the model checker explores: harts, guests, translations, and every order of their steps.

use std::collections::BTreeSet;
use std::vec::Vec;

use scheduler::{HartId, VcpuNumber};

use super::super::{Backing, Departure, Generation, GuestFile, Interrupts, Owner, Route};
use super::computer::{Computer, HardwareFile};
use super::step::Step;
use crate::interrupts::softfile::{Identity, State};
use crate::interrupts::table::FileTable;

/// Identity that siblings send; every message is counted.
pub(super) const COUNTED: Identity = Identity::new(1).unwrap();
/// Identity that the board's source sends; counted too.
pub(super) const OF_SOURCE: Identity = Identity::new(2).unwrap();
/// Identity that any hart sends at any time; not counted.
pub(super) const NOISE: Identity = Identity::new(3).unwrap();

/// Identities that guests enable.
pub(super) const ENABLED: u64 = COUNTED.bit() | OF_SOURCE.bit();

/// Message in flight from the board's APLIC to a hart, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Message {
    /// To a guest file, from the source.
    ToFile(GuestFile),
    /// The answer to [`super::super::Port::synchronise`].
    Synchronisation,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hart {
    pub(super) files: FileTable,
    pub(super) hardware: Vec<HardwareFile>,
    /// The files of vCPUs that wait here, a bit each.
    pub(super) waiting: u64,
    /// `hgeie`.
    pub(super) watched: u64,
    /// The files that are watched while the hart has another vCPU, a bit each.
    pub(super) watched_waiters: u64,
    pub(super) kicked: bool,
    /// The message of a synchronisation has arrived.
    pub(super) synchronised: bool,
    pub(super) in_flight: Vec<Message>,
    /// vCPU on the hart.
    pub(super) vcpu: Option<VcpuNumber>,
    pub(super) in_guest: bool,
    /// The VM, and the generation of its table, that the hart has declared to use.
    pub(super) declared: Option<(u16, Generation)>,
    /// Pages that a guest on it can send to now: every page that was mapped since it entered.
    pub(super) reach: BTreeSet<(VcpuNumber, Reached)>,
}

/// [`Backing`] with an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Reached(Option<(HartId, GuestFile)>);

impl Reached {
    fn of(backing: Backing) -> Self {
        Self(match backing {
            Backing::Memory => None,
            Backing::File { hart, file } => Some((hart, file)),
        })
    }

    pub(super) fn is(self, place: Backing) -> bool {
        self.backing() == place
    }

    fn backing(self) -> Backing {
        match self.0 {
            None => Backing::Memory,
            Some((hart, file)) => Backing::File { hart, file },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Vcpu {
    pub(super) vm: u16,
    pub(super) interrupts: Interrupts,
    /// Backing of the vCPU's interrupt-file page.
    pub(super) mapped: Backing,
    /// An interrupt that was sent to it and that it has not claimed.
    pub(super) counted: bool,
    pub(super) of_source: bool,
    /// Identities that the guest enabled last.
    pub(super) enabled: u64,
    pub(super) departure: Option<Departure>,
    pub(super) woken: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) harts: Vec<Hart>,
    pub(super) vcpus: Vec<Vcpu>,
    pub(super) generations: Vec<Generation>,
    /// To whom and where the board's source sends.
    pub(super) source: Option<(VcpuNumber, Backing)>,
    /// Set if the first VM has a device.
    pub(super) has_source: bool,
    /// Set if an interrupt in the file of a waiting vCPU interrupts the hypervisor.
    pub(super) watches: bool,
    /// Remaining interruptions of a step by another hart.
    pub(super) interruptions: u8,
    /// Remaining rare steps of guests: meddle, make noise, disable, re-route, restart.
    pub(super) surprises: u8,
    /// The first broken promise that a step found by itself.
    pub(super) broken: Option<&'static str>,
}

impl World {
    /// Computer of so many harts with so many files each, and a VM with so many vCPUs for each number; `has_source` says whether the
    /// first VM has a device.
    pub(super) fn new(
        harts: usize,
        files: u8,
        vms: &[u16],
        has_source: bool,
        watches: bool,
        interruptions: u8,
        surprises: u8,
    ) -> Self {
        let mut vcpus = Vec::new();
        for (vm, count) in vms.iter().enumerate() {
            vcpus.extend((0..*count).map(|_| Vcpu {
                vm: vm as u16,
                // The guest has set its file up, as guests do first.
                interrupts: Interrupts {
                    state: State {
                        enabled: ENABLED,
                        delivery: true,
                        ..State::default()
                    },
                    ..Interrupts::default()
                },
                mapped: Backing::Memory,
                counted: false,
                of_source: false,
                enabled: ENABLED,
                departure: None,
                woken: false,
            }));
        }
        let mut world = Self {
            harts: (0..harts)
                .map(|_| Hart {
                    files: FileTable::new(files),
                    hardware: std::vec![HardwareFile::default(); usize::from(files)],
                    waiting: 0,
                    watched: 0,
                    watched_waiters: 0,
                    kicked: false,
                    synchronised: false,
                    in_flight: Vec::new(),
                    vcpu: None,
                    in_guest: false,
                    declared: None,
                    reach: BTreeSet::new(),
                })
                .collect(),
            vcpus,
            generations: std::vec![Generation(0); vms.len()],
            source: None,
            has_source,
            watches,
            interruptions,
            surprises,
            broken: None,
        };
        if has_source {
            world.route(VcpuNumber::new(0).unwrap());
        }
        world
    }

    pub(super) fn hart_ids(&self) -> impl Iterator<Item = HartId> + use<> {
        (0..self.harts.len() as u16).filter_map(HartId::new)
    }

    pub(super) fn vcpu_ids(&self) -> impl Iterator<Item = VcpuNumber> + use<> {
        (0..self.vcpus.len() as u16).filter_map(VcpuNumber::new)
    }

    pub(super) fn hart(&self, hart: HartId) -> &Hart {
        &self.harts[hart.index()]
    }

    pub(super) fn vcpu(&self, vcpu: VcpuNumber) -> &Vcpu {
        &self.vcpus[vcpu.index()]
    }

    pub(super) fn hardware(&self, hart: HartId, file: GuestFile) -> &HardwareFile {
        &self.hart(hart).hardware[usize::from(file.number()) - 1]
    }

    pub(super) fn hardware_mut(&mut self, hart: HartId, file: GuestFile) -> &mut HardwareFile {
        &mut self.harts[hart.index()].hardware[usize::from(file.number()) - 1]
    }

    /// The files of a hart that `hgeip` shows and `hgeie` lets interrupt.
    pub(super) fn interrupting(&self, hart: HartId) -> u64 {
        let shown = self.hart(hart).hardware.iter().zip(1u8..);
        let shown = shown.filter(|(file, _)| file.shows());
        shown.fold(0, |bits, (_, number)| bits | 1 << number) & self.hart(hart).watched
    }

    fn is_interrupted(&self, hart: HartId) -> bool {
        self.hart(hart).kicked || self.hart(hart).synchronised || self.interrupting(hart) != 0
    }

    /// The vCPU is on no hart.
    fn is_off(&self, vcpu: VcpuNumber) -> bool {
        self.harts.iter().all(|hart| hart.vcpu != Some(vcpu))
    }

    pub(super) fn map_page(&mut self, vcpu: VcpuNumber, to: Backing) -> Generation {
        let vm = self.vcpu(vcpu).vm;
        self.vcpus[vcpu.index()].mapped = to;
        for hart in &mut self.harts {
            // A hart in the guest keeps what it has cached, and may cache what is new.
            if hart.in_guest && hart.declared.is_some_and(|(of, _)| of == vm) {
                hart.reach.insert((vcpu, Reached::of(to)));
            }
        }
        let generation = &mut self.generations[usize::from(vm)];
        generation.0 += 1;
        *generation
    }

    fn route(&mut self, to: VcpuNumber) {
        for vcpu in &mut self.vcpus {
            vcpu.interrupts.remove_route(1);
        }
        let interrupts = &mut self.vcpus[to.index()].interrupts;
        interrupts.add_route(Route {
            source: 1,
            identity: OF_SOURCE,
        });
        self.source = Some((to, interrupts.backing()));
    }

    /// Pending and enabled identities of the hart's vCPU, first array.
    fn claimable(&self, hart: HartId, vcpu: VcpuNumber) -> u64 {
        let interrupts = &self.vcpu(vcpu).interrupts;
        match interrupts.file_on(hart) {
            Some(file) => {
                let file = self.hardware(hart, file);
                file.pending[0] & file.enabled[0]
            }
            None => interrupts.state.pending & interrupts.state.enabled,
        }
    }

    /// Every step that can be taken.
    pub(super) fn steps(&self, steps: &mut Vec<Step>) {
        let all = [COUNTED, OF_SOURCE];
        let mut candidates = std::vec![Step::Fire];
        for hart in self.hart_ids() {
            candidates.extend([
                Step::Enter(hart),
                Step::Exit(hart),
                Step::Attend(hart),
                Step::Poll(hart),
                Step::Leave(hart, Departure::Ready),
                Step::Leave(
                    hart,
                    Departure::Waits {
                        watched: self.watches,
                    },
                ),
                Step::Meddle(hart),
                Step::Disable(hart),
                Step::Arrive(hart),
            ]);
            candidates.extend(self.vcpu_ids().map(|vcpu| Step::Dispatch(hart, vcpu)));
            candidates.extend(self.vcpu_ids().map(|vcpu| Step::Watch(hart, vcpu)));
            candidates.extend(all.map(|identity| Step::Claim(hart, identity)));
            for &(to, through) in &self.hart(hart).reach {
                candidates.extend([COUNTED, NOISE].map(|identity| Step::Send {
                    by: hart,
                    to,
                    through: through.backing(),
                    identity,
                }));
            }
        }
        candidates.extend(self.vcpu_ids().map(Step::Reroute));
        candidates.extend((0..self.generations.len() as u16).map(Step::Reset));
        steps.extend(
            candidates
                .into_iter()
                .filter(|step| self.is_possible(*step)),
        );
    }

    pub(super) fn is_possible(&self, step: Step) -> bool {
        match step {
            Step::Dispatch(hart, vcpu) => self.hart(hart).vcpu.is_none() && self.is_off(vcpu),
            // Only where waits are not watched anyway.
            Step::Watch(hart, vcpu) => {
                let file = self.vcpu(vcpu).interrupts.file_on(hart);
                let waits = matches!(self.vcpu(vcpu).departure, Some(Departure::Waits { .. }));
                !self.watches
                    && self.hart(hart).vcpu.is_some()
                    && !self.hart(hart).in_guest
                    && waits
                    && file.is_some_and(|file| self.hart(hart).watched_waiters & file.bit() == 0)
            }
            Step::Enter(hart) => self.hart(hart).vcpu.is_some() && !self.hart(hart).in_guest,
            Step::Exit(hart) => self.hart(hart).in_guest,
            Step::Attend(hart) => self.is_interrupted(hart),
            // The hart looks only where it forwards; elsewhere nothing happens.
            Step::Poll(hart) => {
                !self.hart(hart).in_guest
                    && self
                        .hart(hart)
                        .files
                        .iter()
                        .any(|(_, owner)| matches!(owner, Owner::Forwarder(_)))
            }
            Step::Leave(hart, departure) => {
                let vcpu = self.hart(hart).vcpu.filter(|_| !self.hart(hart).in_guest);
                // A vCPU that has seen an interrupt does not wait.
                vcpu.is_some_and(|vcpu| {
                    departure == Departure::Ready || self.claimable(hart, vcpu) == 0
                })
            }
            Step::Send {
                by,
                to,
                through,
                identity,
            } => {
                let place = (to, Reached::of(through));
                // Noise may come in any place, once in each.
                let new = match identity {
                    COUNTED => !self.vcpu(to).counted,
                    _ if self.surprises == 0 => false,
                    _ => match through {
                        Backing::Memory => false,
                        Backing::File { hart, file } => {
                            self.hardware(hart, file).pending[0] & NOISE.bit() == 0
                        }
                    },
                };
                self.hart(by).in_guest && self.hart(by).reach.contains(&place) && new
            }
            Step::Claim(hart, identity) => {
                let vcpu = self.hart(hart).vcpu.filter(|_| self.hart(hart).in_guest);
                vcpu.is_some_and(|vcpu| self.claimable(hart, vcpu) & identity.bit() != 0)
            }
            Step::Meddle(hart) => {
                self.surprises > 0 && self.hart(hart).in_guest && self.own_file(hart).is_some()
            }
            Step::Disable(hart) => {
                let vcpu = self.hart(hart).vcpu.filter(|_| self.hart(hart).in_guest);
                self.surprises > 0 && vcpu.is_some_and(|vcpu| self.vcpu(vcpu).enabled != 0)
            }
            Step::Fire => self.source.is_some_and(|(to, _)| !self.vcpu(to).of_source),
            Step::Arrive(hart) => !self.hart(hart).in_flight.is_empty(),
            Step::Reroute(vcpu) => {
                self.surprises > 0
                    && self.vcpu(vcpu).vm == 0
                    && self.has_source
                    && self.source.is_none_or(|(to, _)| to != vcpu)
            }
            Step::Reset(vm) => {
                let runs = |hart: &Hart| hart.vcpu.is_some_and(|vcpu| self.vcpu(vcpu).vm == vm);
                self.surprises > 0 && !self.harts.iter().any(runs)
            }
        }
    }

    pub(super) fn own_file(&self, hart: HartId) -> Option<GuestFile> {
        let vcpu = self.hart(hart).vcpu?;
        self.vcpu(vcpu).interrupts.file_on(hart)
    }

    /// The world after `step`, in the middle of which, after so many accesses, another happens.
    pub(super) fn after(&self, step: Step, interruption: Option<(u32, Step)>) -> (Self, u32) {
        let computer = Computer::new(self);
        if let Some((access, other)) = interruption {
            computer.world.borrow_mut().interruptions -= 1;
            computer.interrupt_at(access, other);
        }
        step.take(&computer);
        let accesses = computer.accesses.get();
        let mut world = computer.into_world();
        world.abstract_numbers();
        (world, accesses)
    }

    /// Only the order of generations counts, and which lives are the same.
    fn abstract_numbers(&mut self) {
        for vm in 0..self.generations.len() {
            let mut known = BTreeSet::from([self.generations[vm]]);
            self.each_generation(vm, &mut |generation| {
                known.insert(*generation);
            });
            let rank = |generation: Generation| {
                Generation(known.iter().take_while(|old| **old < generation).count() as u64)
            };
            self.generations[vm] = rank(self.generations[vm]);
            self.each_generation(vm, &mut |generation| *generation = rank(*generation));
        }
        for index in 0..self.vcpus.len() {
            let mut lives = BTreeSet::from([self.vcpus[index].interrupts.life]);
            let vcpu = VcpuNumber::new(index as u16).unwrap();
            for hart in &mut self.harts {
                hart.files.each_life(vcpu, &mut |life| {
                    lives.insert(*life);
                });
            }
            let rank = |life: super::super::ResetEpoch| {
                super::super::ResetEpoch(lives.iter().take_while(|old| **old < life).count() as u32)
            };
            let life = &mut self.vcpus[index].interrupts.life;
            *life = rank(*life);
            for hart in &mut self.harts {
                hart.files.each_life(vcpu, &mut |life| *life = rank(*life));
            }
        }
    }

    fn each_generation(&mut self, vm: usize, change: &mut dyn FnMut(&mut Generation)) {
        let vcpus: Vec<VcpuNumber> = self
            .vcpu_ids()
            .filter(|vcpu| usize::from(self.vcpu(*vcpu).vm) == vm)
            .collect();
        for hart in &mut self.harts {
            if let Some((of, generation)) = &mut hart.declared
                && usize::from(*of) == vm
            {
                change(generation);
            }
            hart.files.each_generation(&vcpus, change);
        }
    }
}

impl World {
    pub(super) fn enter(&mut self, hart: HartId) {
        let Some(vcpu) = self.hart(hart).vcpu else {
            return;
        };
        let vm = self.vcpu(vcpu).vm;
        let siblings = self.vcpus.iter().zip(self.vcpu_ids());
        let mapped = siblings
            .filter(|(sibling, id)| sibling.vm == vm && *id != vcpu)
            .map(|(sibling, id)| (id, Reached::of(sibling.mapped)))
            .collect();
        let generation = self.generations[usize::from(vm)];
        let entered = &mut self.harts[hart.index()];
        entered.in_guest = true;
        entered.declared = Some((vm, generation));
        entered.reach = mapped;
    }

    /// The vCPU finds the settings that it made last.
    pub(super) fn check_attached(
        &mut self,
        hart: HartId,
        vcpu: VcpuNumber,
        given: Option<GuestFile>,
        kept: &Interrupts,
    ) {
        let wanted = self.vcpu(vcpu).enabled;
        let found = match given {
            Some(file) => {
                let file = self.hardware(hart, file);
                (file.enabled[0], file.delivery == 1)
            }
            None => (kept.state.enabled, kept.state.delivery),
        };
        if kept.file_on(hart) != given || found != (wanted, true) {
            self.broken = Some("a vCPU does not find its settings");
        }
        if given.is_some_and(|file| self.hart(hart).watched & file.bit() != 0) {
            self.broken = Some("the file of a vCPU that runs is watched");
        }
    }
}
