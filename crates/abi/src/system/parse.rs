//! From a device tree to a description.

use super::names;
use super::slices;
use super::switches;
use super::{
    AFFINITY, Allocation, COST, HartId, HartSet, Hidden, MAX_BOOTARGS_LENGTH, MAX_SLOTS,
    MAX_SWITCHES, MAX_VCPUS, MAX_VCPUS_PER_VM, MEMORY_GRANULE, Migration, OnFailure, PAUSE_LOOP,
    Parameters, PauseLoops, Placement, Problem, Purging, Queue, RELAXED_TERMS,
    RESERVATION_LIMIT_US, ROUND, RemoteFences, SELF_WAIT_BUDGET, SHARE, Scheduling, Slices, Slot,
    SpinMethod, Subject, SwitchDescription, SystemDescription, SystemError, TIME_SLICE_US,
    Translations, ValueText, VmDescription, VmName, VmTranslation, WaitMethod, WhenIdle,
};
use crate::tree::{Property, Token, Tree, TreeError};
use arrayvec::ArrayVec;

pub(super) type Parsed<T> = Result<T, SystemError>;

/// A mistake that is about neither a property nor a value.
fn plain(subject: Subject, problem: Problem) -> SystemError {
    SystemError {
        subject,
        property: None,
        value: None,
        problem,
    }
}

/// A mistake in a named property or node.
fn about(subject: Subject, property: &str, problem: Problem) -> SystemError {
    SystemError {
        property: Some(ValueText::new(property)),
        ..plain(subject, problem)
    }
}

/// A mistake in a property's value.
pub(super) fn refused(
    subject: Subject,
    property: &str,
    value: impl core::fmt::Display,
    problem: Problem,
) -> SystemError {
    SystemError {
        value: Some(ValueText::new(value)),
        ..about(subject, property, problem)
    }
}

impl From<TreeError> for SystemError {
    fn from(error: TreeError) -> Self {
        plain(Subject::System, Problem::Tree(error))
    }
}

/// A property as it is read: whose it is, and the typed views of its value.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    subject: Subject,
    pub(super) property: Property<'a>,
}

impl<'a> Field<'a> {
    pub(super) fn error(&self, problem: Problem) -> SystemError {
        about(self.subject, self.property.name, problem)
    }

    pub(super) fn refuse(&self, value: impl core::fmt::Display, problem: Problem) -> SystemError {
        refused(self.subject, self.property.name, value, problem)
    }

    fn text(&self) -> Parsed<&'a str> {
        self.property
            .text()
            .ok_or_else(|| self.error(Problem::WrongType))
    }

    fn path(&self) -> Parsed<&'a str> {
        match self.text()? {
            "" => Err(self.error(Problem::Missing)),
            path => Ok(path),
        }
    }

    fn word<T>(&self, from_name: impl Fn(&str) -> Option<T>) -> Parsed<T> {
        let text = self.text()?;
        from_name(text).ok_or_else(|| self.refuse(text, Problem::UnknownWord))
    }

    fn number(&self, range: core::ops::RangeInclusive<u32>) -> Parsed<u32> {
        let number = self
            .property
            .number()
            .ok_or_else(|| self.error(Problem::WrongType))?;
        if !range.contains(&number) {
            return Err(self.refuse(number, Problem::OutOfRange));
        }
        Ok(number)
    }

    fn harts(&self) -> Parsed<HartSet> {
        let mut harts = HartSet::EMPTY;
        for hart in self
            .property
            .numbers()
            .ok_or_else(|| self.error(Problem::WrongType))?
        {
            if hart >= super::MAX_HARTS {
                return Err(self.refuse(hart, Problem::OutOfRange));
            }
            if !harts.insert(HartId(hart)) {
                return Err(self.refuse(hart, Problem::Taken));
            }
        }
        Ok(harts)
    }

    fn slots(&self) -> Parsed<ArrayVec<Slot, MAX_SLOTS>> {
        let mut slots = ArrayVec::new();
        for number in self
            .property
            .numbers()
            .ok_or_else(|| self.error(Problem::WrongType))?
        {
            let slot = u8::try_from(number)
                .ok()
                .filter(|slot| usize::from(*slot) < MAX_SLOTS);
            let slot = Slot(slot.ok_or_else(|| self.refuse(number, Problem::OutOfRange))?);
            if slots.contains(&slot) {
                return Err(self.refuse(number, Problem::Taken));
            }
            slots
                .try_push(slot)
                .map_err(|_| self.error(Problem::TooMany))?;
        }
        slots.sort_unstable();
        Ok(slots)
    }

    fn hidden(&self) -> Parsed<Hidden> {
        Hidden::from_names(self.text()?).map_err(|name| self.refuse(name, Problem::UnknownWord))
    }

    /// Keeps one of the parameters of pause loops, if it is one.
    fn pause_loop(&self, loops: &mut PauseLoops) -> Parsed<()> {
        let place = match self.property.name {
            names::PLE_GAP => &mut loops.gap,
            names::PLE_WINDOW => &mut loops.window,
            names::PLE_WINDOW_MOST => &mut loops.window_most,
            _ => return Err(self.error(Problem::UnknownProperty)),
        };
        self.keep(place, self.number(PAUSE_LOOP)?)
    }

    /// Keeps that a property without a value is there.
    fn mark(&self, place: &mut Option<()>) -> Parsed<()> {
        if !self.property.value.is_empty() {
            return Err(self.error(Problem::WrongType));
        }
        self.keep(place, ())
    }

    /// Keeps a value for a property that may stand once.
    fn keep<T>(&self, place: &mut Option<T>, value: T) -> Parsed<()> {
        if place.is_some() {
            return Err(self.error(Problem::Repeated));
        }
        *place = Some(value);
        Ok(())
    }
}

/// A VM whose node has not ended.
#[derive(Default)]
struct VmParts<'a> {
    index: usize,
    name: Option<VmName>,
    vcpus: Option<u32>,
    memory: Option<u64>,
    placement: Option<Placement>,
    translation: Option<VmTranslation>,
    share: Option<u32>,
    dedicated: Option<HartSet>,
    kernel: Option<&'a str>,
    initrd: Option<&'a str>,
    bootargs: Option<&'a str>,
    devices: Option<ArrayVec<Slot, MAX_SLOTS>>,
    simulated: Option<ArrayVec<Slot, MAX_SLOTS>>,
    fast: Option<ArrayVec<Slot, MAX_SLOTS>>,
    slices: Option<Slices<'a>>,
    ports: Option<ArrayVec<u8, MAX_SWITCHES>>,
    hidden: Option<Hidden>,
    pause_loops: PauseLoops,
    scheduling: Option<Scheduling>,
    autostart: Option<()>,
    balloon: Option<()>,
    on_failure: Option<OnFailure>,
}

impl<'a> VmParts<'a> {
    fn subject(&self) -> Subject {
        Subject::Vm {
            index: self.index,
            name: self.name,
        }
    }

    fn take(&mut self, property: Property<'a>) -> Parsed<()> {
        let field = Field {
            subject: self.subject(),
            property,
        };
        match property.name {
            names::NAME => {
                let text = field.text()?;
                let name = VmName::new(text).ok_or_else(|| field.refuse(text, Problem::BadName))?;
                field.keep(&mut self.name, name)
            }
            names::VCPUS => field.keep(&mut self.vcpus, field.number(1..=MAX_VCPUS_PER_VM as u32)?),
            names::MEMORY => {
                let memory = property
                    .long_number()
                    .ok_or_else(|| field.error(Problem::WrongType))?;
                if memory == 0 || !memory.is_multiple_of(MEMORY_GRANULE) {
                    return Err(field.refuse(memory, Problem::OutOfRange));
                }
                field.keep(&mut self.memory, memory)
            }
            names::PLACEMENT => field.keep(&mut self.placement, field.word(Placement::from_name)?),
            names::TRANSLATION => {
                let translation = field.word(VmTranslation::from_name)?;
                field.keep(&mut self.translation, translation)
            }
            names::SHARE => field.keep(&mut self.share, field.number(SHARE)?),
            names::DEDICATED_HARTS => field.keep(&mut self.dedicated, field.harts()?),
            names::KERNEL => field.keep(&mut self.kernel, field.path()?),
            names::INITRD => field.keep(&mut self.initrd, field.path()?),
            names::BOOTARGS => {
                let text = field.text()?;
                if text.len() > MAX_BOOTARGS_LENGTH {
                    return Err(field.refuse(text, Problem::OutOfRange));
                }
                field.keep(&mut self.bootargs, text)
            }
            names::DEVICES => field.keep(&mut self.devices, field.slots()?),
            names::SIMULATED => field.keep(&mut self.simulated, field.slots()?),
            names::FAST => field.keep(&mut self.fast, field.slots()?),
            names::SLICES => field.keep(&mut self.slices, field.slices()?),
            names::PORTS => field.keep(&mut self.ports, field.ports()?),
            names::AUTOSTART => field.mark(&mut self.autostart),
            names::BALLOON => field.mark(&mut self.balloon),
            names::ON_FAILURE => {
                field.keep(&mut self.on_failure, field.word(OnFailure::from_name)?)
            }
            names::VM_SCHEDULING => {
                field.keep(&mut self.scheduling, field.word(Scheduling::from_name)?)
            }
            names::HIDE => field.keep(&mut self.hidden, field.hidden()?),
            _ => field.pause_loop(&mut self.pause_loops),
        }
    }

    fn finish(self) -> Parsed<VmDescription<'a>> {
        let subject = self.subject();
        let missing = |property| move || about(subject, property, Problem::Missing);
        let vcpus = self.vcpus.ok_or_else(missing(names::VCPUS))?;
        let allocation = match (self.share, self.dedicated) {
            (Some(share), None) => Allocation::Shared { share },
            (None, Some(harts)) => {
                if harts.len() != vcpus as usize {
                    let count = harts.len();
                    return Err(refused(
                        subject,
                        names::DEDICATED_HARTS,
                        format_args!("{count} harts"),
                        Problem::HartCount,
                    ));
                }
                Allocation::Dedicated { harts }
            }
            _ => return Err(plain(subject, Problem::Allocation)),
        };
        let devices = self.devices.unwrap_or_default();
        let simulated = self.simulated.unwrap_or_default();
        let fast = self.fast.unwrap_or_default();
        for (name, slots, among) in [
            (names::SIMULATED, &simulated, &devices),
            (names::FAST, &fast, &simulated),
        ] {
            if let Some(slot) = slots.iter().find(|slot| !among.contains(slot)) {
                return Err(refused(subject, name, slot, Problem::NoSuchDevice));
            }
        }
        let placement = self.placement.ok_or_else(missing(names::PLACEMENT))?;
        if self.balloon.is_some() && placement != Placement::Paged {
            return Err(refused(
                subject,
                names::PLACEMENT,
                placement.name(),
                Problem::Balloon,
            ));
        }
        Ok(VmDescription {
            name: self.name.ok_or_else(missing(names::NAME))?,
            vcpus,
            memory: self.memory.ok_or_else(missing(names::MEMORY))?,
            placement,
            translation: self.translation.unwrap_or(VmTranslation::TwoStage),
            allocation,
            kernel: self.kernel.ok_or_else(missing(names::KERNEL))?,
            initrd: self.initrd,
            bootargs: self.bootargs.unwrap_or(""),
            devices,
            simulated,
            fast,
            slices: self.slices.unwrap_or_default(),
            ports: self.ports.unwrap_or_default(),
            hidden: self.hidden.unwrap_or_default(),
            pause_loops: self.pause_loops,
            scheduling: self.scheduling,
            autostart: self.autostart.is_some(),
            balloon: self.balloon.is_some(),
            on_failure: self.on_failure.unwrap_or(OnFailure::Stop),
        })
    }
}

/// The root whose node has not ended.
#[derive(Default)]
struct SystemParts<'a> {
    compatible: Option<&'a str>,
    time_slice_us: Option<u32>,
    spin: Option<SpinMethod>,
    wait: Option<WaitMethod>,
    migration: Option<Migration>,
    queue: Option<Queue>,
    scheduling: Option<Scheduling>,
    translations: Option<Translations>,
    purge: Option<Purging>,
    remote_fences: Option<RemoteFences>,
    parameters: Parameters,
    console_focus: Option<&'a str>,
    when_idle: Option<WhenIdle>,
    disks: Option<ArrayVec<Slot, MAX_SLOTS>>,
    switches: Option<ArrayVec<SwitchDescription, MAX_SWITCHES>>,
    vms: ArrayVec<VmDescription<'a>, { super::MAX_VMS }>,
}

impl<'a> SystemParts<'a> {
    fn take(&mut self, property: Property<'a>) -> Parsed<()> {
        let field = Field {
            subject: Subject::System,
            property,
        };
        match property.name {
            names::COMPATIBLE => field.keep(&mut self.compatible, field.text()?),
            names::TIME_SLICE_US => {
                field.keep(&mut self.time_slice_us, field.number(TIME_SLICE_US)?)
            }
            names::SPIN => field.keep(&mut self.spin, field.word(SpinMethod::from_name)?),
            names::WAIT => field.keep(&mut self.wait, field.word(WaitMethod::from_name)?),
            names::MIGRATION => field.keep(&mut self.migration, field.word(Migration::from_name)?),
            names::QUEUE => field.keep(&mut self.queue, field.word(Queue::from_name)?),
            names::SCHEDULING => {
                field.keep(&mut self.scheduling, field.word(Scheduling::from_name)?)
            }
            names::TRANSLATIONS => {
                field.keep(&mut self.translations, field.word(Translations::from_name)?)
            }
            names::REMOTE_FENCES => field.keep(
                &mut self.remote_fences,
                field.word(RemoteFences::from_name)?,
            ),
            names::PURGE => field.keep(&mut self.purge, field.word(Purging::from_name)?),
            names::AFFINITY => field.keep(&mut self.parameters.affinity, field.number(AFFINITY)?),
            names::SELF_WAIT_BUDGET => field.keep(
                &mut self.parameters.self_wait_budget,
                field.number(SELF_WAIT_BUDGET)?,
            ),
            names::RESERVATION_LIMIT_US => field.keep(
                &mut self.parameters.reservation_limit_us,
                field.number(RESERVATION_LIMIT_US)?,
            ),
            names::ROUND => field.keep(&mut self.parameters.round, field.number(ROUND)?),
            names::RELAXED_TERMS => field.keep(
                &mut self.parameters.relaxed_terms,
                field.number(RELAXED_TERMS)?,
            ),
            names::HOST_INTERRUPT_COST => field.keep(
                &mut self.parameters.costs.host_interrupt,
                field.number(COST)?,
            ),
            names::FUTILE_PASS_COST => {
                field.keep(&mut self.parameters.costs.futile_pass, field.number(COST)?)
            }
            names::DISPATCH_COST => {
                field.keep(&mut self.parameters.costs.dispatch, field.number(COST)?)
            }
            names::MODE_CHANGE_COST => {
                field.keep(&mut self.parameters.costs.mode_change, field.number(COST)?)
            }
            names::CONSOLE_FOCUS => field.keep(&mut self.console_focus, field.text()?),
            names::WHEN_IDLE => field.keep(&mut self.when_idle, field.word(WhenIdle::from_name)?),
            names::SHARED_DISKS => field.keep(&mut self.disks, field.slots()?),
            names::SWITCHES => field.keep(&mut self.switches, field.switches()?),
            _ => field.pause_loop(&mut self.parameters.pause_loops),
        }
    }

    /// Adds a VM if it does not claim what another has.
    fn add(&mut self, vm: VmDescription<'a>) -> Parsed<()> {
        let subject = Subject::Vm {
            index: self.vms.len(),
            name: Some(vm.name),
        };
        for other in &self.vms {
            if other.name == vm.name {
                return Err(refused(subject, names::NAME, vm.name, Problem::NameTaken));
            }
            if let Some(slot) = vm.devices.iter().find(|slot| other.devices.contains(slot)) {
                return Err(refused(subject, names::DEVICES, slot, Problem::Taken));
            }
            if let (Allocation::Dedicated { harts: ours }, Allocation::Dedicated { harts: theirs }) =
                (vm.allocation, other.allocation)
                && let Some(hart) = ours.intersection(theirs).iter().next()
            {
                return Err(refused(
                    subject,
                    names::DEDICATED_HARTS,
                    hart,
                    Problem::Taken,
                ));
            }
        }
        let before: u32 = self.vms.iter().map(|other| other.vcpus).sum();
        if before + vm.vcpus > MAX_VCPUS as u32 {
            let problem = Problem::TooManyVcpus;
            return Err(refused(subject, names::VCPUS, vm.vcpus, problem));
        }
        self.vms
            .try_push(vm)
            .map_err(|_| plain(Subject::System, Problem::TooMany))
    }

    fn finish(self) -> Parsed<SystemDescription<'a>> {
        let subject = Subject::System;
        let missing = |property| move || about(subject, property, Problem::Missing);
        if self.compatible != Some(names::COMPATIBLE_VALUE) {
            return Err(plain(subject, Problem::NotASystem));
        }
        if self.vms.is_empty() {
            return Err(plain(subject, Problem::NoVm));
        }
        let mut system = SystemDescription {
            time_slice_us: self.time_slice_us,
            spin: self.spin.ok_or_else(missing(names::SPIN))?,
            wait: self.wait.ok_or_else(missing(names::WAIT))?,
            migration: self.migration.unwrap_or(Migration::AsNeeded),
            queue: self.queue.unwrap_or(Queue::Single),
            scheduling: self.scheduling.unwrap_or(Scheduling::Floating),
            translations: self.translations.unwrap_or(Translations::LastHost),
            purge: self.purge.unwrap_or(Purging::Fence),
            remote_fences: self.remote_fences.unwrap_or(RemoteFences::Precise),
            parameters: self.parameters,
            console_focus: None,
            when_idle: self.when_idle.unwrap_or(WhenIdle::PowerOffAfterAll),
            disks: self.disks.unwrap_or_default(),
            switches: self.switches.unwrap_or_default(),
            vms: self.vms,
        };
        slices::check(&system)?;
        switches::check(&system)?;
        for vm in &mut system.vms {
            vm.pause_loops = vm.pause_loops.or(system.parameters.pause_loops);
        }
        if let Some(limit) = system.parameters.reservation_limit_us
            && system.time_slice_us.is_some_and(|slice| limit < slice)
        {
            let property = names::RESERVATION_LIMIT_US;
            return Err(refused(subject, property, limit, Problem::OutOfRange));
        }
        if let Some(name) = self.console_focus {
            let vm = system.find(name);
            system.console_focus =
                Some(vm.ok_or_else(|| {
                    refused(subject, names::CONSOLE_FOCUS, name, Problem::NoSuchVm)
                })?);
        }
        Ok(system)
    }
}

/// Reads a whole description.
pub(super) fn parse(dtb: &[u8]) -> Parsed<SystemDescription<'_>> {
    let mut system = SystemParts::default();
    let mut vm: Option<VmParts> = None;
    let mut depth = 0;
    for token in Tree::new(dtb)?.tokens() {
        match token? {
            Token::Begin(name) => {
                depth += 1;
                match depth {
                    1 => {}
                    2 if name == names::VMS_NODE => {}
                    3 => vm = Some(begin_vm(name, system.vms.len())?),
                    _ => {
                        let subject = vm.as_ref().map_or(Subject::System, VmParts::subject);
                        return Err(about(subject, name, Problem::UnknownNode));
                    }
                }
            }
            Token::Property(property) => match (depth, &mut vm) {
                (1, _) => system.take(property)?,
                (3, Some(vm)) => vm.take(property)?,
                _ => {
                    return Err(about(
                        Subject::System,
                        property.name,
                        Problem::UnknownProperty,
                    ));
                }
            },
            Token::End => {
                if let (3, Some(vm)) = (depth, vm.take()) {
                    system.add(vm.finish()?)?;
                }
                depth -= 1;
            }
        }
    }
    system.finish()
}

/// Begins the VM whose node is `node`, which must be called by its place.
fn begin_vm<'a>(node: &str, index: usize) -> Parsed<VmParts<'a>> {
    let unit = node
        .split_once('@')
        .filter(|(name, _)| *name == names::VM_NODE);
    let unit = unit.and_then(|(_, unit)| usize::from_str_radix(unit, 16).ok());
    if unit != Some(index) {
        return Err(about(Subject::System, node, Problem::UnknownNode));
    }
    Ok(VmParts {
        index,
        ..VmParts::default()
    })
}
