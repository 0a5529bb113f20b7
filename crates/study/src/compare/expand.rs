//! Keys that stand for several: what a sweep asks for in a word.

use crate::laboratory::{Computer, Point, PointError};
use abi::keys;
use abi::system::WhenIdle;
use machine::timing::Profile;
use std::path::{Path, PathBuf};
use system::fingerprint::Fingerprint;

/// So many of the VMs run, the others are not started.
const VMS: &str = "vms";
/// Each VM has so many vCPUs.
const VCPUS: &str = "vcpus";
/// A word of the exercisers' command lines.
const GUEST: &str = "guest.";
/// A key of the machine's profile.
const PROFILE: &str = "profile.";
/// Value of a profile's key that is left out.
const NONE: &str = "none";

/// Keys that [`expand`] knows, for people.
pub const KEYS: &str = "vms (how many of the VMs run), vcpus (how many each VM has), guest.WORD (a word of the \
exercisers' command lines, such as guest.think-us), profile.KEY (a key of the machine's profile, such as \
profile.costs.trap), or any key of the system file";

/// Why a key cannot be expanded.
#[derive(Debug, thiserror::Error)]
pub enum ExpandError {
    /// The system.
    #[error(transparent)]
    Point(#[from] PointError),
    /// The value.
    #[error("{key}={value}: {message}")]
    Value {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// The problem.
        message: String,
    },
    /// The folder for profiles.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
}

/// The point with these keys written out: as changes to keys of the system file, and as a profile in `profiles`, a
/// folder that is made if it is not there.
///
/// # Errors
/// [`ExpandError`].
pub fn expand(mut point: Point, profiles: &Path) -> Result<Point, ExpandError> {
    let wanted = std::mem::take(&mut point.changes);
    let is_short = |change: &String| {
        let key = change.split_once('=').map_or("", |(key, _)| key);
        key == VMS || key == VCPUS || key.starts_with(GUEST) || key.starts_with(PROFILE)
    };
    let (short, changes): (Vec<String>, Vec<String>) = wanted.into_iter().partition(is_short);
    point.changes = changes;
    for change in short {
        let (key, value) = change.split_once('=').unwrap_or_default();
        let wrong = |message: &str| ExpandError::Value {
            key: String::from(key),
            value: String::from(value),
            message: String::from(message),
        };
        if let Some(path) = key.strip_prefix(PROFILE) {
            point.computer = with_profile(&point.computer, path, value, profiles, &wrong)?;
            continue;
        }
        let system = point.read()?;
        if let Some(word) = key.strip_prefix(GUEST) {
            let number = value
                .parse()
                .map_err(|_| wrong("a whole number is wanted"))?;
            let number = crate::paper::Word::Number(number);
            let parameters = std::collections::BTreeMap::from([(String::from(word), number)]);
            point = crate::paper::with_parameters(point, &parameters, None)?;
            continue;
        }
        let number: usize = value
            .parse()
            .map_err(|_| wrong("a whole number is wanted"))?;
        if key == VMS {
            if number == 0 || number > system.vms.len() {
                return Err(wrong("the system has not so many VMs, or none would run"));
            }
            for vm in system.vms.iter().skip(number) {
                point
                    .changes
                    .push(format!("vm.{}.autostart=false", vm.name));
            }
            // Otherwise the run would wait for the VMs that are not started.
            let waits = system.get(keys::WHEN_IDLE) == WhenIdle::PowerOffAfterAll;
            if waits && number < system.vms.len() {
                let power_off = WhenIdle::PowerOff.name();
                point.changes.push(format!("when-idle=\"{power_off}\""));
            }
        } else {
            for vm in &system.vms {
                point.changes.push(format!("vm.{}.vcpus={number}", vm.name));
            }
        }
    }
    Ok(point)
}

/// A value of a profile's key.
enum ProfileValue {
    /// As TOML has it, or a word without quotes.
    Set(toml::Value),
    /// The key is left out.
    LeftOut,
}

impl ProfileValue {
    fn parse(text: &str) -> Option<Self> {
        if text == NONE {
            return Some(Self::LeftOut);
        }
        let is_word = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_lowercase());
        let read = toml::from_str::<toml::Table>(&format!("value = {text}"));
        let value = read.ok().and_then(|mut table| table.remove("value"));
        let word = || is_word.then(|| toml::Value::String(String::from(text)));
        value.or_else(word).map(Self::Set)
    }
}

/// The machine with one key of its profile changed. The profile lies in a file that is called by its content, so that
/// the same change is the same profile ever after.
fn with_profile(
    computer: &Computer,
    key: &str,
    value: &str,
    folder: &Path,
    wrong: &dyn Fn(&str) -> ExpandError,
) -> Result<Computer, ExpandError> {
    let Computer::Machine {
        profile: Some(profile),
    } = computer
    else {
        return Err(wrong("there is no profile to change; add --profile NAME"));
    };
    let base = Profile::find(profile).map_err(|error| wrong(&error.to_string()))?;
    let mut table = toml::Table::try_from(&base).map_err(|error| wrong(&error.to_string()))?;
    let value = ProfileValue::parse(value).ok_or_else(|| {
        wrong("a whole number, true, false, a word, none or { KEY = VALUE, ... } is wanted")
    })?;
    let mut place = &mut table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            match value {
                ProfileValue::Set(value) => place.insert(String::from(part), value),
                ProfileValue::LeftOut => place.remove(part),
            };
            break;
        }
        let inner = place.get_mut(part).and_then(toml::Value::as_table_mut);
        place = inner.ok_or_else(|| wrong("the profile has no such table"))?;
    }
    let text = toml::to_string(&table).map_err(|error| wrong(&error.to_string()))?;
    Profile::parse(key, &text).map_err(|error| wrong(&error.to_string()))?;
    let path = folder.join(format!("{}.toml", Fingerprint::of(text.as_bytes()).short()));
    let file = |error| ExpandError::File {
        path: path.clone(),
        error,
    };
    std::fs::create_dir_all(folder).map_err(file)?;
    std::fs::write(&path, text).map_err(file)?;
    Ok(Computer::Machine {
        profile: Some(path.display().to_string()),
    })
}
