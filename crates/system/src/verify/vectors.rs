//! Checks of the vectors that a VM needs.

use crate::{Document, Problem, System};
use abi::keys;

/// The extension that stands for all of vectors.
const VECTORS: &str = "v";

/// Checks that a demanded length is one that registers can have, and that the guest has vectors.
pub(super) fn check(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    for vm in &system.vms {
        let Some(length) = vm.get(keys::VECTOR_LENGTH) else {
            continue;
        };
        let (message, remedy) = if !length.is_power_of_two() {
            (
                "vector registers have a power of two of bits",
                "use 128, 256, 512 or another power of two",
            )
        } else if vm.hidden.contains(VECTORS) {
            (
                "vectors are hidden from the VM",
                "take v out of hide, or leave vector-length away",
            )
        } else {
            continue;
        };
        let origin = vm.origin_of(keys::VECTOR_LENGTH);
        let key = format!("vm.{}.vector-length", vm.name);
        let problem = Problem::new(document, origin, key, message, remedy);
        problems.push(problem.with_value(length.to_string()));
    }
}
