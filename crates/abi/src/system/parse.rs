//! From a device tree to a description.

mod field;
mod root;
mod vm;

pub(super) use field::Field;

use super::{Problem, Subject, SystemDescription, SystemError, ValueText, names};
use crate::tree::{Token, Tree, TreeError};
use root::SystemParts;
use vm::{VmParts, begin_vm};

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
