//! Mistakes in a system's description.

use super::{MAX_BOOTARGS_LENGTH, MAX_VCPUS, MAX_VMS, MEMORY_GRANULE, VmName};
use crate::tree::TreeError;
use arrayvec::ArrayString;
use core::fmt::{self, Write};

/// Bytes of a value that an error shows.
const MAX_SHOWN: usize = 20;

/// The beginning of a value that was refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ValueText(ArrayString<MAX_SHOWN>);

impl ValueText {
    /// Prints the value, cut to the room that there is.
    #[cold]
    #[inline(never)]
    pub fn new(value: &dyn fmt::Display) -> Self {
        let mut text = Bounded(ArrayString::new());
        // A value that is too long is shown by its beginning.
        let _ = write!(text, "{value}");
        Self(text.0)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Debug for ValueText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Takes what fits, with control characters made visible.
struct Bounded(ArrayString<MAX_SHOWN>);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let shown = if character.is_control() {
                '?'
            } else {
                character
            };
            self.0.try_push(shown).map_err(|_| fmt::Error)?;
        }
        Ok(())
    }
}

/// Subject of a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The whole system.
    System,
    /// One VM.
    Vm {
        /// Its place in the description.
        index: usize,
        /// Its name, if that is known.
        name: Option<VmName>,
    },
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => write!(f, "the system"),
            Self::Vm {
                name: Some(name), ..
            } => write!(f, "VM {name}"),
            Self::Vm { index, name: None } => write!(f, "VM number {index}"),
        }
    }
}

/// Kind of a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The blob is no device tree.
    Tree(TreeError),
    /// The root's `compatible` does not say that this is a system.
    NotASystem,
    /// A node that has no place here.
    UnknownNode,
    /// A property that has no place here.
    UnknownProperty,
    /// A property that stands twice.
    Repeated,
    /// A property that must be there.
    Missing,
    /// The value does not have the property's type (number, row of numbers, string, empty).
    WrongType,
    /// The word is none that the property knows.
    UnknownWord,
    /// Malformed name: see [`VmName`].
    BadName,
    /// Another VM has the same name.
    NameTaken,
    /// No VM has this name.
    NoSuchVm,
    /// A number outside of the property's limits.
    OutOfRange {
        /// Least.
        min: u32,
        /// Greatest.
        max: u32,
    },
    /// An amount of memory that is no multiple of [`MEMORY_GRANULE`], or zero.
    Granule,
    /// A command line with too many bytes.
    TooLong,
    /// A slice whose numbers are none.
    BadSlice,
    /// A VM that serves a disk has a slice of it.
    ServesItself,
    /// A VM that serves disks has shadow tables, which keep what a page was.
    ServesBehindShadow,
    /// More than there is room for.
    TooMany,
    /// More vCPUs in all than there is room for.
    TooManyVcpus,
    /// A hart or a slot that another VM has, or that is listed twice.
    Taken,
    /// A slot that is none of the VM's devices.
    NoSuchDevice,
    /// Both or neither of `share` and `dedicated-harts`.
    Allocation,
    /// The number of dedicated harts is not that of vCPUs.
    HartCount,
    /// A balloon in a VM whose memory is not in single pages.
    Balloon,
    /// The system has no VM.
    NoVm,
}

/// A mistake in a system's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemError {
    /// The subject.
    pub subject: Subject,
    /// The property or node, if it is about one.
    pub property: Option<ValueText>,
    /// The value, if it is about one.
    pub value: Option<ValueText>,
    /// The mistake.
    pub problem: Problem,
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Problem::Tree(error) = self.problem {
            return error.fmt(f);
        }
        write!(f, "{}", self.subject)?;
        if let Some(property) = &self.property {
            write!(f, ": {}", property.as_str())?;
        }
        if let Some(value) = &self.value {
            write!(f, " = {}", value.as_str())?;
        }
        write!(f, ": ")?;
        match self.problem {
            Problem::Tree(_) => Ok(()),
            Problem::NotASystem => write!(f, "this device tree does not describe a system"),
            Problem::UnknownNode => write!(f, "no such node is known here"),
            Problem::UnknownProperty => write!(f, "no such property is known here"),
            Problem::Repeated => write!(f, "it stands twice"),
            Problem::Missing => write!(f, "it must be given"),
            Problem::WrongType => write!(f, "its value has the wrong type"),
            Problem::UnknownWord => write!(f, "no such word is known here"),
            Problem::BadName => write!(
                f,
                "a name is a letter, then letters, digits, - and _, at most 31 in all, and not partita"
            ),
            Problem::NameTaken => write!(f, "another VM has this name"),
            Problem::NoSuchVm => write!(f, "no VM has this name"),
            Problem::OutOfRange { min, max } => write!(f, "out of range, use {min} to {max}"),
            Problem::Granule => write!(f, "use a multiple of {} MiB", MEMORY_GRANULE >> 20),
            Problem::BadSlice => write!(f, "the numbers of this disk's slice are out of range"),
            Problem::ServesItself => write!(f, "the VM serves this disk itself"),
            Problem::ServesBehindShadow => {
                write!(
                    f,
                    "a VM that serves disks cannot have translation = \"shadow\""
                )
            }
            Problem::TooLong => write!(f, "too long, use at most {MAX_BOOTARGS_LENGTH} bytes"),
            Problem::TooMany => write!(f, "too many; there is room for {MAX_VMS} VMs"),
            Problem::TooManyVcpus => {
                write!(f, "too many; the VMs may have {MAX_VCPUS} vCPUs together")
            }
            Problem::Taken => write!(f, "it is in use already, or listed twice"),
            Problem::NoSuchDevice => write!(f, "it is none of the VM's devices"),
            Problem::Allocation => {
                write!(
                    f,
                    "a VM has either a share of the shared harts or dedicated harts"
                )
            }
            Problem::HartCount => write!(f, "a VM needs as many dedicated harts as it has vCPUs"),
            Problem::Balloon => {
                write!(f, "only a VM with placement = \"paged\" can have a balloon")
            }
            Problem::NoVm => write!(f, "there is no VM in it"),
        }
    }
}

impl core::error::Error for SystemError {}

pub(super) type Parsed<T> = Result<T, SystemError>;

/// A mistake that is about neither a property nor a value.
#[cold]
#[inline(never)]
pub(super) fn plain(subject: Subject, problem: Problem) -> SystemError {
    SystemError {
        subject,
        property: None,
        value: None,
        problem,
    }
}

/// A mistake in a named property or node.
#[cold]
#[inline(never)]
pub(super) fn about(subject: Subject, property: &str, problem: Problem) -> SystemError {
    SystemError {
        property: Some(ValueText::new(&property)),
        ..plain(subject, problem)
    }
}

/// A mistake in a property's value.
#[inline]
pub(super) fn refused(
    subject: Subject,
    property: &str,
    value: impl fmt::Display,
    problem: Problem,
) -> SystemError {
    with_value(about(subject, property, problem), &value)
}

/// Adds the value, in code that all types share.
#[cold]
#[inline(never)]
fn with_value(error: SystemError, value: &dyn fmt::Display) -> SystemError {
    SystemError {
        value: Some(ValueText::new(value)),
        ..error
    }
}

impl From<TreeError> for SystemError {
    fn from(error: TreeError) -> Self {
        plain(Subject::System, Problem::Tree(error))
    }
}
