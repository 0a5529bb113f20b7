//! From the root's node, and the VMs, to the description of the system.

use super::field::Field;
use super::{Parsed, about, plain, refused};
use crate::system::{
    AFFINITY, Allocation, COST, MAX_SLOTS, MAX_SWITCHES, MAX_VCPUS, MAX_VMS, Migration, Parameters,
    Problem, Purging, Queue, RELAXED_TERMS, RESERVATION_LIMIT_US, ROUND, RemoteFences,
    SELF_WAIT_BUDGET, Scheduling, Slot, SpinMethod, Subject, SwitchDescription, SystemDescription,
    TIME_SLICE_US, Translations, VmDescription, WaitMethod, WhenIdle, names, slices, switches,
};
use crate::tree::Property;
use arrayvec::ArrayVec;

/// The root whose node has not ended.
#[derive(Default)]
pub(super) struct SystemParts<'a> {
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
    pub(super) vms: ArrayVec<VmDescription<'a>, { MAX_VMS }>,
}

impl<'a> SystemParts<'a> {
    pub(super) fn take(&mut self, property: Property<'a>) -> Parsed<()> {
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
    pub(super) fn add(&mut self, vm: VmDescription<'a>) -> Parsed<()> {
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

    pub(super) fn finish(self) -> Parsed<SystemDescription<'a>> {
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
