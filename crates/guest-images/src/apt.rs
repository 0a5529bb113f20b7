//! Debian's packages for another architecture and release, without touching the machine's own.
//!
//! A state of apt of our own (sources, lists, status, cache) lives in the cache. The mirror is the one that the
//! machine's own apt uses, and every package is checked against the archive's signature with Debian's keys.

use crate::error::{ImagesError, at, listed};
use crate::mirror;
use crate::pinned::{self, Packages};
use crate::process::run;
use crate::progress::Progress;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The package of the kernel.
pub(crate) const KERNEL: &str = "linux-image-riscv64";
/// The release that guests run.
const RELEASE: &str = "trixie";
/// The other name under which a mirror has it, as long as it is the newest: a mirror changes one folder after the other.
const OTHER_NAME: &str = "stable";
/// How often a mirror is asked for the list of packages, and how long it is left alone between two times.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(10);
/// The guests' architecture.
const ARCHITECTURE: &str = "riscv64";
/// Debian's own keys.
pub const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A private state of apt.
#[derive(Debug)]
pub struct Apt {
    folder: PathBuf,
    archives: PathBuf,
    mirror: String,
    wanted: Packages,
    used: RefCell<Packages>,
}

impl Apt {
    /// Sets one up in `folder`.
    ///
    /// # Errors
    /// There is no mirror, no keyring, or `folder` cannot be written.
    pub fn new(folder: &Path) -> Result<Self, ImagesError> {
        if !Path::new(KEYRING).is_file() {
            return Err(ImagesError::NoKeyring(KEYRING));
        }
        let mirror = mirror::find()?;
        let folder = fs::create_dir_all(folder)
            .and_then(|()| folder.canonicalize())
            .map_err(at(folder))?;
        let archives = folder.join("archives");
        for part in ["lists/partial", "archives/partial", "empty"] {
            let path = folder.join(part);
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        let write = |name: &str, text: String| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(at(&path))
        };
        write("sources.list", source(&mirror, RELEASE))?;
        write("status", String::new())?;
        let wanted = pinned::wanted();
        write("preferences", pinned::preferences(&wanted))?;
        let show = |path: PathBuf| path.display().to_string();
        let empty = show(folder.join("empty"));
        write(
            "apt.conf",
            format!(
                "Dir::State \"{state}\";\n\
                 Dir::State::lists \"{lists}\";\n\
                 Dir::State::status \"{status}\";\n\
                 Dir::Cache \"{state}\";\n\
                 Dir::Cache::archives \"{archives}\";\n\
                 Dir::Etc::sourcelist \"{sources}\";\n\
                 Dir::Etc::sourceparts \"{empty}\";\n\
                 Dir::Etc::preferencesparts \"{empty}\";\n\
                 Dir::Etc::preferences \"{preferences}\";\n\
                 APT::Architecture \"{ARCHITECTURE}\";\n\
                 APT::Architectures \"{ARCHITECTURE}\";\n\
                 APT::Install-Recommends \"false\";\n\
                 APT::Sandbox::User \"\";\n\
                 APT::Get::AllowUnauthenticated \"false\";\n\
                 Acquire::Languages \"none\";\n\
                 Acquire::Retries \"1\";\n\
                 #clear APT::Update::Post-Invoke;\n\
                 #clear APT::Update::Post-Invoke-Success;\n\
                 #clear DPkg::Post-Invoke;\n",
                state = show(folder.clone()),
                lists = show(folder.join("lists")),
                status = show(folder.join("status")),
                archives = show(archives.clone()),
                sources = show(folder.join("sources.list")),
                preferences = show(folder.join("preferences")),
            ),
        )?;
        Ok(Self {
            folder,
            archives,
            mirror,
            wanted,
            used: RefCell::default(),
        })
    }

    /// The packages that were fetched for what is being made.
    pub fn used(&self) -> Packages {
        self.used.borrow().clone()
    }

    fn note(&self, package: &Path) -> Result<(), ImagesError> {
        pinned::note(package, &self.wanted, &mut self.used.borrow_mut())
    }

    /// Sets one up in `folder`, and fetches the archive's list of packages. A mirror that is being changed gives no list that
    /// has the signed hash; then the last one that came whole and was checked stays in use.
    ///
    /// # Errors
    /// As [`Apt::new`]; and as [`Apt::update`], where no list has come before.
    pub fn up_to_date(folder: &Path, progress: &Progress) -> Result<Self, ImagesError> {
        let apt = Self::new(folder)?;
        progress.step("reading the list of Debian's packages");
        let mut fetched = apt.fetch_list();
        for _ in 1..ATTEMPTS {
            // Another program's failure and a missing network do not pass, a mirror's failure often does.
            if !matches!(fetched, Err(ImagesError::Failed { .. })) {
                break;
            }
            progress.step("the mirror gives no whole list of packages: asking again");
            std::thread::sleep(PAUSE);
            fetched = apt.fetch_list();
        }
        if newest_or_last(fetched, || apt.kernel_package(KERNEL).is_ok())? == List::Last {
            progress
                .step("the mirror gives no whole list of packages: using the last that it gave");
        }
        Ok(apt)
    }

    /// Fetches the list of the release's packages, under one of the names that the mirror has it under.
    fn fetch_list(&self) -> Result<(), ImagesError> {
        self.use_name(RELEASE)?;
        let fetched = self.update().map_err(|error| self.unreachable(error));
        if !matches!(fetched, Err(ImagesError::Failed { .. })) {
            return fetched;
        }
        self.use_name(OTHER_NAME)?;
        if self.update().is_ok() && self.is_list_of(RELEASE)? {
            return Ok(());
        }
        self.use_name(RELEASE)?;
        fetched
    }

    /// The failure to reach the mirror, if that is what apt failed of.
    fn unreachable(&self, error: ImagesError) -> ImagesError {
        match &error {
            ImagesError::Failed { output, .. } => match unreachable_line(output) {
                Some(line) => ImagesError::NoNetwork {
                    mirror: self.mirror.clone(),
                    reason: String::from(line),
                },
                None => error,
            },
            _ => error,
        }
    }

    fn use_name(&self, name: &str) -> Result<(), ImagesError> {
        let path = self.folder.join("sources.list");
        fs::write(&path, source(&self.mirror, name)).map_err(at(&path))
    }

    /// Returns whether the signed list that was fetched under the other name says that it is this release's.
    fn is_list_of(&self, release: &str) -> Result<bool, ImagesError> {
        let signed = format!("_dists_{OTHER_NAME}_InRelease");
        for path in listed(&self.folder.join("lists"))? {
            if path.to_string_lossy().ends_with(&signed) {
                let text = fs::read_to_string(&path).map_err(at(&path))?;
                return Ok(is_of(&text, release));
            }
        }
        Ok(false)
    }

    /// Fetches the kernel that `metapackage` stands for, and unpacks it into `root`.
    ///
    /// # Errors
    /// Apt's or dpkg's own, or `metapackage` stands for none.
    pub fn unpack_kernel(
        &self,
        metapackage: &str,
        root: &Path,
        progress: &Progress,
    ) -> Result<(), ImagesError> {
        let kernel = self.kernel_package(metapackage)?;
        progress.step(&format!("fetching {kernel}"));
        unpack(&self.download(&kernel)?, root)
    }

    /// Fetches packages and all that they depend on, and unpacks them into `root`.
    ///
    /// # Errors
    /// Apt's or dpkg's own.
    pub fn unpack_with_dependencies(
        &self,
        packages: &[&str],
        root: &Path,
        progress: &Progress,
    ) -> Result<(), ImagesError> {
        let names = packages.join(", ");
        progress.step(&format!("fetching {names} and what they need"));
        let fetched = self.download_with_dependencies(packages)?;
        progress.step(&format!("unpacking {names}"));
        fetched.iter().try_for_each(|package| unpack(package, root))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.folder.join("apt.conf"));
        command
            .env("LC_ALL", "C")
            .env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// Fetches the archive's list of packages and checks its signature.
    ///
    /// # Errors
    /// Apt's own.
    pub fn update(&self) -> Result<(), ImagesError> {
        let mut command = self.command("apt-get");
        command.args(["update", "--error-on=any"]);
        run(&mut command, "apt-get", "apt").map(drop)
    }

    /// The package that the kernel's metapackage stands for.
    ///
    /// # Errors
    /// It stands for none.
    pub fn kernel_package(&self, metapackage: &str) -> Result<String, ImagesError> {
        let mut command = self.command("apt-cache");
        command.args(["depends", metapackage]);
        let text = run(&mut command, "apt-cache", "apt")?;
        let names = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "));
        let name = names
            .map(str::trim)
            .find(|name| name.starts_with("linux-image-"));
        name.map(String::from).ok_or_else(|| ImagesError::Missing {
            what: format!("what {metapackage} stands for"),
        })
    }

    /// Fetches one package without what it depends on.
    ///
    /// # Errors
    /// Apt's own.
    pub fn download(&self, package: &str) -> Result<PathBuf, ImagesError> {
        let mut command = self.command("apt-get");
        command
            .args(["download", package])
            .current_dir(&self.archives);
        run(&mut command, "apt-get", "apt")?;
        let prefix = format!("{package}_");
        let found = self.fetched()?.into_iter().find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
        });
        let found = found.ok_or_else(|| ImagesError::Missing {
            what: format!("the package {package}"),
        })?;
        self.note(&found)?;
        Ok(found)
    }

    /// Fetches packages and all that they depend on, and returns exactly those.
    ///
    /// # Errors
    /// Apt's own.
    pub fn download_with_dependencies(
        &self,
        packages: &[&str],
    ) -> Result<Vec<PathBuf>, ImagesError> {
        let install = |options: &[&str]| {
            let mut command = self.command("apt-get");
            command
                .args(["install", "--yes"])
                .args(options)
                .args(packages);
            run(&mut command, "apt-get", "apt")
        };
        // Before the download, while everything is still to be fetched, apt lists every file.
        let plan = install(&["--simulate"])?;
        install(&["--download-only"])?;
        let planned: Vec<String> = plan
            .lines()
            .filter_map(|line| line.strip_prefix("Inst "))
            .filter_map(planned_file)
            .collect();
        let mut fetched = self.fetched()?;
        fetched.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            planned.iter().any(|prefix| name.starts_with(prefix))
        });
        if fetched.len() < planned.len() {
            return Err(ImagesError::Missing {
                what: format!(
                    "{} packages of {}",
                    planned.len() - fetched.len(),
                    planned.len()
                ),
            });
        }
        fetched.iter().try_for_each(|package| self.note(package))?;
        Ok(fetched)
    }

    fn fetched(&self) -> Result<Vec<PathBuf>, ImagesError> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.archives).map_err(at(&self.archives))? {
            let path = entry.map_err(at(&self.archives))?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }
}

/// Which list of packages is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum List {
    Newest,
    Last,
}

/// Which list to use after a newer one was `fetched`, where `knows` tells whether an older one is there. Apt keeps the older one
/// when it cannot fetch a whole newer one.
fn newest_or_last(
    fetched: Result<(), ImagesError>,
    knows: impl Fn() -> bool,
) -> Result<List, ImagesError> {
    match fetched {
        Ok(()) => Ok(List::Newest),
        Err(ImagesError::Failed { .. } | ImagesError::NoNetwork { .. }) if knows() => {
            Ok(List::Last)
        }
        Err(error) => Err(error),
    }
}

/// The line of apt's output that says that no connection to the mirror is possible.
fn unreachable_line(output: &str) -> Option<&str> {
    const SIGNS: [&str; 6] = [
        "Temporary failure resolving",
        "Could not resolve",
        "Could not connect",
        "Unable to connect",
        "Network is unreachable",
        "No route to host",
    ];
    let mut lines = output.lines().map(str::trim);
    lines.find(|line| SIGNS.iter().any(|sign| line.contains(sign)))
}

/// Where apt takes packages from.
fn source(mirror: &str, name: &str) -> String {
    format!("deb [arch={ARCHITECTURE} signed-by={KEYRING}] {mirror} {name} main\n")
}

/// Returns whether a Release file is that of the release with this code name.
fn is_of(text: &str, release: &str) -> bool {
    let mut names = text
        .lines()
        .filter_map(|line| line.strip_prefix("Codename:"));
    names.next().is_some_and(|name| name.trim() == release)
}

/// How the file of a package begins that apt plans to install, from what stands behind `Inst`: its name and its version, so
/// that what an older list of packages brought is left alone. A colon stands as %3a in the names of files.
fn planned_file(plan: &str) -> Option<String> {
    let (name, rest) = plan.split_once(" (")?;
    let version = rest.split_whitespace().next()?;
    Some(format!("{name}_{}_", version.replace(':', "%3a")))
}

/// Unpacks a package into `root`.
///
/// # Errors
/// dpkg's own.
pub fn unpack(package: &Path, root: &Path) -> Result<(), ImagesError> {
    let mut command = Command::new("dpkg-deb");
    command.arg("--extract").arg(package).arg(root);
    run(&mut command, "dpkg-deb", "dpkg").map(drop)
}

#[cfg(test)]
mod tests {
    use super::{ImagesError, List, is_of, newest_or_last, planned_file, unreachable_line};
    use std::os::unix::process::ExitStatusExt;

    fn failed() -> ImagesError {
        ImagesError::Failed {
            program: String::from("apt-get"),
            status: std::process::ExitStatus::from_raw(100 << 8),
            output: String::from("File has unexpected size. Mirror sync in progress?"),
        }
    }

    #[test]
    fn changing_mirror_keeps_last_list() {
        assert_eq!(newest_or_last(Ok(()), || false).unwrap(), List::Newest);
        assert_eq!(newest_or_last(Err(failed()), || true).unwrap(), List::Last);
        assert!(newest_or_last(Err(failed()), || false).is_err());
        let missing = ImagesError::NoMirror;
        assert!(newest_or_last(Err(missing), || true).is_err());
    }

    #[test]
    fn missing_network_is_told_from_changing_mirror() {
        let line = "Temporary failure resolving 'mirror.example'";
        let output = format!("Err:1 https://mirror.example/debian trixie InRelease\n  {line}\n");
        assert_eq!(unreachable_line(&output), Some(line));
        assert_eq!(unreachable_line("File has unexpected size."), None);
        let missing = || ImagesError::NoNetwork {
            mirror: String::from("https://mirror.example/debian"),
            reason: String::from(line),
        };
        assert_eq!(newest_or_last(Err(missing()), || true).unwrap(), List::Last);
        let told = newest_or_last(Err(missing()), || false).unwrap_err();
        let told = told.to_string();
        for words in [
            "https://mirror.example/debian",
            line,
            "PARTITA_DEBIAN_MIRROR",
        ] {
            assert!(told.contains(words), "{words}: {told}");
        }
    }

    #[test]
    fn list_is_known_by_code_name() {
        let text = "Origin: Debian\nSuite: stable\nCodename: trixie\nCodename: forky\n";
        assert!(is_of(text, "trixie"));
        assert!(!is_of(text, "forky"));
        assert!(!is_of("Suite: trixie\n", "trixie"));
    }

    #[test]
    fn a_package_is_known_by_its_version() {
        let plan = "busybox-static (1:1.37.0-6+b3 Debian:13.2/stable [riscv64])";
        let file = planned_file(plan);
        assert_eq!(file.as_deref(), Some("busybox-static_1%3a1.37.0-6+b3_"));
        assert_eq!(planned_file("nothing"), None);
    }
}
