//! `partita doctor`: what this computer has and lacks for what the command does.

use super::failure::Failure;
use super::output::{self, write_json};
use guest_images::KEYRING;
use machine::front::firmware;
use runner::qemu;
use runner::run::default_hypervisor;
use runner::table::Table;
use serde::Serialize;
use std::path::{Path, PathBuf};
use system::cache::Cache;
use system::installed::{self, EXERCISER};

const EXAMPLES: &str = "Examples:
  partita doctor                  what is there, what is not, and what to do about it
  partita doctor --json -         the same for programs

Nothing is installed or built, and no network is used. The exit code is 0 if systems can be run on the machine, and 5 if they cannot.";

/// Free bytes of the cache's file system with which the images can be built: three times what packages and images take (346 MiB).
const ROOM_FOR_IMAGES: u64 = 1 << 30;
/// Programs that build the images, each with its package.
const BUILDERS: [(&str, &str); 4] = [
    ("apt-get", "apt"),
    ("dpkg-deb", "dpkg"),
    ("mke2fs", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
];

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DoctorArguments {
    /// Writes the findings as JSON, to standard output if it is `-`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Purpose of a need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Purpose {
    /// `partita run` on the machine.
    Run,
    /// Debian guests.
    Debian,
    /// `--on qemu`, and the tests.
    Qemu,
    /// Disks in other forms than raw.
    Disks,
}

impl Purpose {
    const fn text(self) -> &'static str {
        match self {
            Self::Run => "every run",
            Self::Debian => "Debian guests",
            Self::Qemu => "--on qemu",
            Self::Disks => "qcow2 and such",
        }
    }
}

/// A thing that the command needs of this computer.
#[derive(Debug, Serialize)]
struct Finding {
    name: &'static str,
    purpose: Purpose,
    found: bool,
    /// Place, version or size of what was found; the remedy for what was not.
    detail: String,
}

impl Finding {
    fn new(name: &'static str, purpose: Purpose, found: Result<String, String>) -> Self {
        let (found, detail) = match found {
            Ok(detail) => (true, detail),
            Err(remedy) => (false, remedy),
        };
        Self {
            name,
            purpose,
            found,
            detail,
        }
    }
}

pub(super) fn execute(arguments: &DoctorArguments) -> Result<(), Failure> {
    output::check([arguments.json.as_ref()])?;
    let findings = findings();
    output::say(format_args!("{}", text(&findings)));
    if let Some(path) = &arguments.json {
        write_json(path, &findings)?;
    }
    let lacking: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.purpose == Purpose::Run && !finding.found)
        .map(|finding| finding.name)
        .collect();
    match lacking.is_empty() {
        true => Ok(()),
        false => Err(Failure::Lacking(lacking.join(", "))),
    }
}

/// A table of the findings, and a line for each that is lacking.
fn text(findings: &[Finding]) -> String {
    let mut table = Table::new(["what", "is there", "needed for"]);
    for finding in findings {
        let found = if finding.found { "yes" } else { "no" };
        table.row([finding.name, found, finding.purpose.text()]);
    }
    let mut text = format!("{table}\n");
    for finding in findings {
        text += &format!("{}: {}\n", finding.name, finding.detail);
    }
    text
}

fn findings() -> Vec<Finding> {
    let command = installed::command();
    let cache = Cache::made();
    let folder = cache.as_ref().map(Cache::folder).ok();
    let built = folder.is_some_and(|folder| folder.join("debian/kernel").is_file());
    let mut findings = vec![
        Finding::new(
            "hypervisor",
            Purpose::Run,
            program(default_hypervisor(&command)),
        ),
        Finding::new(
            "exerciser",
            Purpose::Run,
            program(installed::program(&command, EXERCISER)),
        ),
        Finding::new("firmware", Purpose::Run, opensbi()),
        Finding::new(
            "cache",
            Purpose::Run,
            cache
                .as_ref()
                .map_err(ToString::to_string)
                .and_then(|cache| writable(cache.folder())),
        ),
        // How much a run needs is the system's to say.
        Finding::new("memory", Purpose::Run, Ok(memory())),
    ];
    let images = match folder {
        Some(folder) if built => Ok(folder.join("debian").display().to_string()),
        _ => Err(String::from(
            "not built yet: the first run of a Debian guest builds them, or `partita images` does",
        )),
    };
    findings.push(Finding::new("images", Purpose::Debian, images));
    // What builds the images is of no use once they are there.
    if !built {
        findings
            .extend(BUILDERS.map(|(name, package)| {
                Finding::new(name, Purpose::Debian, in_path(name, package))
            }));
        findings.push(Finding::new("keyring", Purpose::Debian, keyring()));
        let room = folder.map_or(Err(String::from("there is no cache")), room);
        findings.push(Finding::new("room in the cache", Purpose::Debian, room));
    }
    let version = qemu::version().map_err(|error| error.to_string());
    findings.push(Finding::new("QEMU", Purpose::Qemu, version));
    let converter = in_path("qemu-img", "qemu-utils");
    findings.push(Finding::new("qemu-img", Purpose::Disks, converter));
    findings
}

/// A bare program that `make build` builds.
fn program(path: PathBuf) -> Result<String, String> {
    let shown = path.display();
    match path.is_file() {
        true => Ok(shown.to_string()),
        false => Err(format!("{shown} is not there: `make build` builds it")),
    }
}

fn opensbi() -> Result<String, String> {
    let path = firmware::find().map_err(|error| error.to_string())?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    firmware::check(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.display().to_string())
}

/// Tries to make a file.
fn writable(folder: &Path) -> Result<String, String> {
    match tempfile::tempfile_in(folder) {
        Ok(_) => Ok(folder.display().to_string()),
        Err(error) => Err(format!(
            "{}: {error}; let this user write to it, or name another folder by PARTITA_CACHE",
            folder.display()
        )),
    }
}

/// Memory that processes can have. The machine takes pages as guests touch them.
fn memory() -> String {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    match available(&text) {
        Some(bytes) => format!("{} MiB available", bytes >> 20),
        None => String::from("not told by this system"),
    }
}

/// `MemAvailable` of /proc/meminfo, in bytes.
fn available(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    kibibytes.checked_mul(1 << 10)
}

/// A program in one of the folders of PATH, or beside the superuser's own.
fn in_path(name: &str, package: &str) -> Result<String, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    let found = folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file());
    match found {
        Some(path) => Ok(path.display().to_string()),
        None => Err(format!("install the package {package}")),
    }
}

fn keyring() -> Result<String, String> {
    match Path::new(KEYRING).is_file() {
        true => Ok(String::from(KEYRING)),
        false => Err(String::from("install the package debian-archive-keyring")),
    }
}

/// Free bytes where the images will be.
fn room(folder: &Path) -> Result<String, String> {
    let found =
        rustix::fs::statvfs(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let bytes = found.f_bavail.saturating_mul(found.f_frsize);
    let told = format!("{} MiB free", bytes >> 20);
    match bytes >= ROOM_FOR_IMAGES {
        true => Ok(told),
        false => Err(format!(
            "{told}, and the images need up to {} MiB: make room, or name another folder by PARTITA_CACHE",
            ROOM_FOR_IMAGES >> 20
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn available_memory_is_read() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   12345 kB\n";
        assert_eq!(available(text), Some(12345 << 10));
        assert_eq!(available("MemTotal: 1 kB\n"), None);
        assert_eq!(available("MemAvailable: much\n"), None);
        assert_eq!(available("MemAvailable: 18446744073709551615 kB\n"), None);
    }

    #[test]
    fn lacking_things_have_their_remedy() {
        let findings = [
            Finding::new("firmware", Purpose::Run, Err(String::from("install it"))),
            Finding::new("QEMU", Purpose::Qemu, Ok(String::from("10.0.2"))),
        ];
        let text = text(&findings);
        assert!(text.contains("firmware: install it"), "{text}");
        assert!(text.contains("QEMU: 10.0.2"), "{text}");
    }
}
