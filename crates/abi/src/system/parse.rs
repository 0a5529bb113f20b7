//! From a device tree to a description.

mod field;
mod root;
mod served;
mod slices;
mod switches;
mod vm;

use super::error::{Parsed, about};
use super::{Problem, Subject, SystemDescription, SystemError, names};
use crate::tree::{Token, Tree};
use root::SystemParts;
use vm::{VmParts, begin_vm};

impl<'a> SystemDescription<'a> {
    /// Reads a description. Strings borrow from `dtb`.
    ///
    /// # Errors
    /// The first mistake found, by VM, property and value.
    pub fn parse(dtb: &'a [u8]) -> Result<Self, SystemError> {
        parse(dtb)
    }
}

/// Reads a whole description.
fn parse(dtb: &[u8]) -> Parsed<SystemDescription<'_>> {
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
