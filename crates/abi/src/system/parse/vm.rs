//! From a VM's node to its description.

use super::field::Field;
use crate::keys::{self, Scope, Settings};
use crate::system::error::{Parsed, about, plain, refused};
use crate::system::{
    Allocation, HartSet, Hidden, MAX_BOOTARGS_LENGTH, MAX_SLOTS, MAX_SWITCHES, MEMORY_GRANULE,
    Placement, Problem, Slices, Slot, Subject, VmDescription, VmName, names,
};
use crate::tree::Property;
use arrayvec::ArrayVec;

/// A VM whose node has not ended.
#[derive(Default)]
pub(super) struct VmParts<'a> {
    index: usize,
    name: Option<VmName>,
    vcpus: Option<u32>,
    memory: Option<u64>,
    share: Option<u32>,
    dedicated: Option<HartSet>,
    kernel: Option<&'a str>,
    initrd: Option<&'a str>,
    bootargs: Option<&'a str>,
    devices: Option<ArrayVec<Slot, MAX_SLOTS>>,
    given: Option<&'a str>,
    mediated: Option<ArrayVec<Slot, MAX_SLOTS>>,
    fast: Option<ArrayVec<Slot, MAX_SLOTS>>,
    slices: Option<Slices<'a>>,
    ports: Option<ArrayVec<u8, MAX_SWITCHES>>,
    hidden: Option<Hidden>,
    settings: Settings,
}

impl<'a> VmParts<'a> {
    pub(super) fn subject(&self) -> Subject {
        Subject::Vm {
            index: self.index,
            name: self.name,
        }
    }

    pub(super) fn take(&mut self, property: Property<'a>) -> Parsed<()> {
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
            names::VCPUS => field.keep(&mut self.vcpus, field.number_of(keys::VCPUS)?),
            names::MEMORY => {
                let memory = property
                    .long_number()
                    .ok_or_else(|| field.error(Problem::WrongType))?;
                if memory == 0 || !memory.is_multiple_of(MEMORY_GRANULE) {
                    return Err(field.refuse(memory, Problem::Granule));
                }
                field.keep(&mut self.memory, memory)
            }
            names::SHARE => field.keep(&mut self.share, field.number_of(keys::SHARE)?),
            names::DEDICATED_HARTS => field.keep(&mut self.dedicated, field.harts()?),
            names::KERNEL => field.keep(&mut self.kernel, field.path()?),
            names::INITRD => field.keep(&mut self.initrd, field.path()?),
            names::BOOTARGS => {
                let text = field.text()?;
                if text.len() > MAX_BOOTARGS_LENGTH {
                    return Err(field.refuse(text, Problem::TooLong));
                }
                field.keep(&mut self.bootargs, text)
            }
            names::DEVICES => field.keep(&mut self.devices, field.slots()?),
            names::GIVEN => field.keep(&mut self.given, field.text()?),
            names::MEDIATED => field.keep(&mut self.mediated, field.slots()?),
            names::FAST => field.keep(&mut self.fast, field.slots()?),
            names::SLICES => field.keep(&mut self.slices, field.slices()?),
            names::PORTS => field.keep(&mut self.ports, field.ports()?),
            names::HIDE => field.keep(&mut self.hidden, field.hidden()?),
            _ => field.setting(&mut self.settings, [Scope::Vm, Scope::VmExperiment]),
        }
    }

    pub(super) fn finish(self) -> Parsed<VmDescription<'a>> {
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
        let mediated = self.mediated.unwrap_or_default();
        let fast = self.fast.unwrap_or_default();
        for (name, slots, among) in [
            (names::MEDIATED, &mediated, &devices),
            (names::FAST, &fast, &mediated),
        ] {
            if let Some(slot) = slots.iter().find(|slot| !among.contains(slot)) {
                return Err(refused(subject, name, slot, Problem::NoSuchDevice));
            }
        }
        let placement = self.settings.get(keys::PLACEMENT);
        if self.settings.get(keys::BALLOON) && placement != Placement::Paged {
            let property = keys::PLACEMENT.name();
            return Err(refused(subject, property, placement, Problem::Balloon));
        }
        Ok(VmDescription {
            name: self.name.ok_or_else(missing(names::NAME))?,
            vcpus,
            memory: self.memory.ok_or_else(missing(names::MEMORY))?,
            allocation,
            kernel: self.kernel.ok_or_else(missing(names::KERNEL))?,
            initrd: self.initrd,
            bootargs: self.bootargs.unwrap_or(""),
            devices,
            given: self.given.unwrap_or_default(),
            mediated,
            fast,
            slices: self.slices.unwrap_or_default(),
            ports: self.ports.unwrap_or_default(),
            hidden: self.hidden.unwrap_or_default(),
            settings: self.settings,
        })
    }
}

/// Begins the VM whose node is `node`, which must be called by its place.
pub(super) fn begin_vm<'a>(node: &str, index: usize) -> Parsed<VmParts<'a>> {
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
