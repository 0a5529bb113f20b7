//! Builds guest images, whose own programs are run by a guest on the machine.

use crate::computer::Chosen;
use crate::native::{NativeFailure, native};
use guest_images::{ImagesError, Progress};
use system::System;
use system::cache::Cache;

/// Builds those of these files of [`system::cache::BUILT_FILES`] that are missing or stale; returns whether any was.
///
/// # Errors
/// [`guest_images::ensure`] has them.
pub fn ensure(cache: &Cache, files: &[&str], progress: &Progress) -> Result<bool, ImagesError> {
    guest_images::ensure(cache, files, progress, run_guest)
}

/// Builds all that a system names and that is missing or stale: `files` as [`ensure`], and raw disks of images in other forms.
///
/// # Errors
/// [`guest_images::ensure`] and [`guest_images::convert`] have them.
pub fn ensure_system(
    system: &System,
    files: &[&str],
    cache: &Cache,
    progress: &Progress,
) -> Result<(), ImagesError> {
    ensure(cache, files, progress)?;
    guest_images::convert(system, cache, progress)
}

/// Runs a guest that makes a disk. The machine is deterministic and the guest takes out what it draws at random, so the file
/// system is a function of the packages and of the machine's version.
fn run_guest(system: &System, cache: &Cache, show: &mut dyn FnMut(&str)) -> Result<(), String> {
    let outcome = native(system, cache, &Chosen::default(), None, show);
    match outcome.map_err(|error| error.to_string())?.failure {
        None => Ok(()),
        Some(NativeFailure::TimeLimit) => Err(String::from("it takes too long")),
        Some(NativeFailure::Other(what)) => Err(what),
    }
}
