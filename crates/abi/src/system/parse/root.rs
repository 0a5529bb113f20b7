//! From the root's node, and the VMs, to the description of the system.

use super::field::Field;
use super::{served, slices, switches};
use crate::keys::{RESERVATION_LIMIT, Scope, Settings, TIME_SLICE};
use crate::system::error::{Parsed, plain, refused};
use crate::system::{
    Allocation, MAX_SLOTS, MAX_SWITCHES, MAX_VCPUS, MAX_VMS, Problem, ServedDisk, Slot, Subject,
    SwitchDescription, SystemDescription, VmDescription, names,
};
use crate::tree::Property;
use arrayvec::ArrayVec;

/// The root whose node has not ended.
#[derive(Default)]
pub(super) struct SystemParts<'a> {
    compatible: Option<&'a str>,
    settings: Settings,
    console_focus: Option<&'a str>,
    disks: Option<ArrayVec<Slot, MAX_SLOTS>>,
    served: Option<ArrayVec<ServedDisk, MAX_SLOTS>>,
    served_names: Option<&'a str>,
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
            names::CONSOLE_FOCUS => field.keep(&mut self.console_focus, field.text()?),
            names::SHARED_DISKS => field.keep(&mut self.disks, field.slots()?),
            names::SERVED_DISKS => field.keep(&mut self.served, field.served()?),
            names::SERVED_NAMES => field.keep(&mut self.served_names, field.text()?),
            names::SWITCHES => field.keep(&mut self.switches, field.switches()?),
            _ => field.setting(&mut self.settings, [Scope::System, Scope::Experiment]),
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
        if self.compatible != Some(names::COMPATIBLE_VALUE) {
            return Err(plain(subject, Problem::NotASystem));
        }
        if self.vms.is_empty() {
            return Err(plain(subject, Problem::NoVm));
        }
        let mut system = SystemDescription {
            settings: self.settings,
            console_focus: None,
            disks: self.disks.unwrap_or_default(),
            served: self.served.unwrap_or_default(),
            switches: self.switches.unwrap_or_default(),
            vms: self.vms,
        };
        served::check(&mut system, self.served_names.unwrap_or_default())?;
        slices::check(&system)?;
        switches::check(&system)?;
        let limit = system.settings.given(RESERVATION_LIMIT);
        if let (Some(limit), Some(slice)) = (limit, system.get(TIME_SLICE))
            && limit < slice
        {
            let max = u32::try_from(*RESERVATION_LIMIT.limits().end()).unwrap_or(u32::MAX);
            let problem = Problem::OutOfRange { min: slice, max };
            return Err(refused(subject, RESERVATION_LIMIT.name(), limit, problem));
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
