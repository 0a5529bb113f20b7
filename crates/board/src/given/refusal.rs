//! Reasons why a VM cannot have a device.

use alloc::string::String;
use core::fmt;

/// Reason why a VM cannot have a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal<'t> {
    /// Name of the VM.
    pub vm: String,
    /// Path of the device.
    pub path: String,
    /// The fault.
    pub fault: Fault<'t>,
}

/// Fault of a device that cannot be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault<'t> {
    /// Property of the node, or key of the VM.
    pub property: &'t str,
    /// The reason.
    pub cause: Reason,
    /// The other node, VM, number or part of the guest, where there is one.
    pub other: String,
}

/// Reasons why a device cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No node has the path.
    NoNode,
    /// The VM names the device twice, or a node above it.
    Twice,
    /// Another VM has the device.
    OtherVm,
    /// The hypervisor, the firmware or the harts use the device.
    InUse,
    /// They use a node below it.
    InUseBelow,
    /// The device is not enabled.
    Disabled,
    /// A host bridge of PCI whose configuration space is not the standard's.
    Pci,
    /// A window of a host bridge that no hart reaches.
    BadWindow,
    /// No registers, or some that no hart reaches.
    NoRegisters,
    /// A range of registers that cannot be mapped.
    BadRange,
    /// A page has registers of something else that is in use.
    SharedPage,
    /// The registers lie where the guest has something.
    GuestHas,
    /// The interrupt goes to another controller.
    OtherController,
    /// The controller has fewer sources.
    NoSource,
    /// Something else that is in use has the source.
    SharedSource,
    /// The guest's console has the source.
    ConsoleSource,
    /// The device depends on a node that the VM does not have.
    Depends,
    /// The IOMMU cannot tell the device from another VM's.
    SharedId,
    /// An IOMMU is required.
    Unconfined,
    /// An IOMMU is required, and a page has registers of another device that reaches memory.
    UnconfinedPage,
    /// The memory of the VM lies in single pages.
    Pages,
    /// Devices see memory at other addresses.
    DmaRanges,
}

/// The remedy where the device can be given to nobody.
const ANOTHER: &str = "give another device";

impl Reason {
    /// The reason in words, and what to do.
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::NoNode => (
                "the board's device tree has no such node",
                "use a path that `partita board --describe TREE` prints",
            ),
            Self::Twice => ("the VM has it already, by", "name it once"),
            Self::OtherVm => ("another VM has it:", "give the device to one VM"),
            Self::InUse => ("it is in use:", ANOTHER),
            Self::InUseBelow => (
                "a node below it is in use:",
                "name the devices below it that are free",
            ),
            Self::Disabled => ("the device, or a bus above it, is", ANOTHER),
            Self::Pci => (
                "a host bridge of PCI of another kind than pci-host-ecam-generic cannot be given:",
                ANOTHER,
            ),
            Self::BadWindow => ("harts do not reach a window of the bridge", ANOTHER),
            Self::NoRegisters => (
                "it has none that harts reach through the buses above",
                "name a device, not a bus",
            ),
            Self::BadRange => ("a range is empty or too large", ANOTHER),
            Self::SharedPage => (
                "a page of its registers has those of",
                "give another device, or both to one VM if VMs have them",
            ),
            Self::GuestHas => ("the registers lie where the guest has its", ANOTHER),
            Self::OtherController => (
                "it does not lead to the interrupt controller that the hypervisor drives, but to",
                ANOTHER,
            ),
            Self::NoSource => ("no such source, as the controller's are", ANOTHER),
            Self::SharedSource => ("its source is also that of", ANOTHER),
            Self::ConsoleSource => ("its source is that of each guest's console", ANOTHER),
            Self::Depends => (
                "it depends on a node that is neither the VM's nor a fixed clock or regulator:",
                "give that node to the VM too, if nothing else needs it",
            ),
            Self::SharedId => (
                "the IOMMU cannot tell it from a device of another VM",
                "give both to one VM",
            ),
            Self::Unconfined => (
                "no IOMMU that Partita drives stands between the device and memory",
                "leave confined = \"required\" away if the guest is trusted with all memory",
            ),
            Self::UnconfinedPage => (
                "no IOMMU that Partita drives stands between memory and another device with registers in the same page:",
                "leave confined = \"required\" away if the guest is trusted with all memory",
            ),
            Self::Pages => (
                "the device does not find memory in single pages",
                "use placement = \"real\" or \"resident\"",
            ),
            Self::DmaRanges => (
                "devices see other addresses of memory, or a part of it, below",
                ANOTHER,
            ),
        }
    }
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vm, path, fault } = self;
        let Fault {
            property,
            cause,
            other,
        } = fault;
        let (reason, remedy) = cause.words();
        let space = if other.is_empty() { "" } else { " " };
        write!(
            f,
            "{vm} cannot have {path}: {property}: {reason}{space}{other}; {remedy}"
        )
    }
}

/// A fault that concerns `other`.
#[cold]
#[inline(never)]
pub(super) fn fault<'t>(property: &'t str, reason: Reason, other: &str) -> Fault<'t> {
    Fault {
        property,
        cause: reason,
        other: String::from(other),
    }
}
