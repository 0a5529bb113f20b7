//! From a VM's node to its description.

use super::field::Field;
use super::{Parsed, about, plain, refused};
use crate::system::{
    Allocation, HartSet, Hidden, MAX_BOOTARGS_LENGTH, MAX_SLOTS, MAX_SWITCHES, MAX_VCPUS_PER_VM,
    MEMORY_GRANULE, OnFailure, PauseLoops, Placement, Problem, SHARE, Scheduling, Slices, Slot,
    Subject, VmDescription, VmName, VmTranslation, names,
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
