//! Builds what guests boot: the kernel, the initial RAM disk and the disk of a Debian guest.
//!
//! Packages are fetched by a private state of apt ([`apt`]), unpacked, and the parts that are needed are
//! picked out of them: the kernel and the modules ([`modules`]), programs and the libraries that they link
//! ([`libraries`]). Everything happens in a folder beside the place where the files are to be, and that
//! folder takes its name only when it is whole.

pub mod apt;
mod board;
pub mod compiler;
mod database;
pub mod disk;
pub mod initrd;
pub mod libraries;
pub mod modules;
mod perf;
pub mod pinned;
mod progress;
pub(crate) mod site;
pub mod system;

pub use progress::Progress;

use crate::cache::{BUILT_FILES, Cache};
use std::cell::OnceCell;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The guests' first process.
pub const INIT: &str = include_str!("../../../guests/init");

/// The package of the kernel.
pub(crate) const KERNEL: &str = "linux-image-riscv64";
/// The packages of the programs.
const PACKAGES: [&str; 5] = [
    "busybox-static",
    "coreutils",
    "rt-tests",
    "fio",
    "stress-ng",
];
/// The programs that the disk holds.
const PROGRAMS: [&str; 4] = [
    "usr/bin/hackbench",
    "usr/bin/fio",
    "usr/bin/sort",
    "usr/bin/stress-ng",
];
/// Those of them that the initial RAM disk holds too, for guests without a disk.
const SMALL_PROGRAMS: [&str; 1] = ["usr/bin/hackbench"];
/// The modules that a guest may load.
const MODULES: [&str; 7] = [
    "virtio_mmio",
    "virtio_blk",
    "virtio_net",
    "virtio_rng",
    "virtio_balloon",
    "crc32c_generic",
    "ext4",
];
/// Counts the ways in which files were made of packages: images of an earlier one are built again.
const RECIPE: u32 = 2;
/// The file that tells what the folder was built from.
const STAMP: &str = "stamp";

/// Why the images could not be built.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    /// A file or folder.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is the matter.
        error: std::io::Error,
    },
    /// A program could not be started.
    #[error("{program} cannot be started ({error}); on Debian the package {package} has it")]
    Program {
        /// Which.
        program: &'static str,
        /// What is the matter.
        error: std::io::Error,
        /// The package that has it.
        package: &'static str,
    },
    /// A program failed.
    #[error("{program} failed ({status}):\n{output}")]
    Failed {
        /// Which.
        program: String,
        /// How.
        status: std::process::ExitStatus,
        /// The end of what it said.
        output: String,
    },
    /// Apt knows no source of Debian packages.
    #[error(
        "apt on this machine knows no source of Debian packages; add Debian's archive to /etc/apt/sources.list.d, \
         or set PARTITA_DEBIAN_MIRROR to the URI of a mirror"
    )]
    NoMirror,
    /// Debian's keys are not there.
    #[error(
        "{0} is missing, with which signatures are checked; install the package debian-archive-keyring"
    )]
    NoKeyring(&'static str),
    /// A package lacks what it should have.
    #[error("{what} is not in the packages that were fetched")]
    Missing {
        /// What.
        what: String,
    },
    /// A file of a package cannot be understood.
    #[error("{path}: {problem}", path = path.display())]
    Malformed {
        /// Which.
        path: PathBuf,
        /// What is the matter with it.
        problem: String,
    },
    /// The guest that installs packages has not come to its end.
    #[error("the guest that makes a disk failed: {reason}")]
    Install {
        /// What it said last.
        reason: String,
    },
    /// The initial RAM disk.
    #[error(transparent)]
    Archive(#[from] crate::image::archive::TooLarge),
}

/// Turns an error of the file system into one that names the file.
pub(crate) fn at(path: &Path) -> impl FnOnce(std::io::Error) -> ImagesError + '_ {
    move |error| ImagesError::File {
        path: path.to_owned(),
        error,
    }
}

/// A folder of the cache that is built as a whole.
trait Folder: Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// What it is built from, apart from the packages: whoever changes it wants a new folder.
    fn hash(&self, hasher: &mut DefaultHasher);

    /// The folders whose files it is made of.
    fn needs(&self) -> &'static [&'static dyn Folder] {
        &[]
    }

    /// Builds everything.
    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError>;
}

/// Where a folder is built.
#[derive(Debug)]
struct Site<'a> {
    /// The folders that are built.
    folders: &'a Path,
    /// What was fetched is kept here.
    packages: &'a Path,
    /// Takes what is needed on the way.
    work: &'a Path,
    /// Takes the files; it is there and empty.
    built: &'a Path,
    progress: &'a Progress,
    apt: OnceCell<apt::Apt>,
}

impl Site<'_> {
    /// Apt with a list of packages that is up to date.
    fn apt(&self) -> Result<&apt::Apt, ImagesError> {
        if let Some(apt) = self.apt.get() {
            return Ok(apt);
        }
        let apt = apt::Apt::up_to_date(self.packages, self.progress)?;
        Ok(self.apt.get_or_init(|| apt))
    }

    /// Unpacks packages with all that they depend on; the folder in which their files lie then.
    fn unpack(&self, names: &[&str]) -> Result<PathBuf, ImagesError> {
        let root = self.work.join("root");
        let progress = self.progress;
        self.apt()?
            .unpack_with_dependencies(names, &root, progress)?;
        Ok(root)
    }
}

/// The folder `debian`: what every guest boots.
#[derive(Debug)]
struct Guests;

/// The folders, of which the first is what a newcomer needs.
const FOLDERS: [&dyn Folder; 6] = [
    &Guests,
    &board::Board,
    &compiler::Compiler,
    &perf::Perf,
    &system::Root,
    &database::Database,
];

fn folder_of(file: &str) -> Option<&'static dyn Folder> {
    let (folder, _) = file.split_once('/')?;
    FOLDERS.into_iter().find(|known| known.name() == folder)
}

fn stamp(folder: &dyn Folder) -> String {
    let mut hasher = DefaultHasher::new();
    RECIPE.hash(&mut hasher);
    folder.hash(&mut hasher);
    format!("{:016x}\n", hasher.finish())
}

fn is_built(cache: &Cache, folder: &dyn Folder) -> bool {
    let place = cache.folder().join(folder.name());
    let Ok(text) = fs::read_to_string(place.join(STAMP)) else {
        return false;
    };
    // Whoever cuts a file short, or a host that lost its power, wants it built again.
    sizes(&place, folder).is_ok_and(|sizes| text == stamp(folder) + &sizes)
}

/// The names and sizes of a folder's files, as they are in `place`, line by line.
fn sizes(place: &Path, folder: &dyn Folder) -> Result<String, ImagesError> {
    let names = BUILT_FILES.iter().filter_map(|name| name.split_once('/'));
    let mut text = String::new();
    for (_, name) in names.filter(|(other, _)| *other == folder.name()) {
        let path = place.join(name);
        let size = fs::metadata(&path).map_err(at(&path))?.len();
        text += &format!("{name} {size}\n");
    }
    Ok(text)
}

/// Makes the next [`ensure`] build the images again. Packages that were fetched are kept.
///
/// # Errors
/// The cache cannot be changed.
pub fn forget(cache: &Cache) -> Result<(), ImagesError> {
    for folder in FOLDERS {
        let stamp = cache.folder().join(folder.name()).join(STAMP);
        match fs::remove_file(&stamp) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(at(&stamp)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Builds those of these files of [`BUILT_FILES`] that are not there, with all that belongs to them; returns whether it
/// had to. Only one process at a time does; the others wait for it.
///
/// # Errors
/// What went wrong and, where that helps, what to do about it.
pub fn ensure(cache: &Cache, files: &[&str], progress: &Progress) -> Result<bool, ImagesError> {
    let mut built = false;
    for folder in FOLDERS {
        let wanted = files
            .iter()
            .filter_map(|file| folder_of(file))
            .any(|other| other.name() == folder.name());
        if wanted {
            for needed in folder.needs() {
                built |= ensure_folder(cache, *needed, progress)?;
            }
            built |= ensure_folder(cache, folder, progress)?;
        }
    }
    Ok(built)
}

fn ensure_folder(
    cache: &Cache,
    folder: &dyn Folder,
    progress: &Progress,
) -> Result<bool, ImagesError> {
    if is_built(cache, folder) {
        return Ok(false);
    }
    let root = cache.folder();
    let _alone = alone(cache, progress)?;
    if is_built(cache, folder) {
        return Ok(false);
    }
    let work = site::WorkFolder::new(root)?;
    let built = work.path().join("built");
    fs::create_dir(&built).map_err(at(&built))?;
    let site = Site {
        folders: root,
        packages: &root.join("packages"),
        work: work.path(),
        built: &built,
        progress,
        apt: OnceCell::new(),
    };
    folder.build(&site)?;
    if let Some(apt) = site.apt.get() {
        let target = built.join(pinned::FILE);
        fs::write(&target, pinned::text(&apt.used())).map_err(at(&target))?;
    }
    let target = built.join(STAMP);
    let text = stamp(folder) + &sizes(&built, folder)?;
    fs::write(&target, text).map_err(at(&target))?;
    replace(&root.join(folder.name()), &built, &work.path().join("old"))?;
    Ok(true)
}

/// The packages of all folders that these files of [`BUILT_FILES`] are in, and the folders of which it is not known what they were
/// made of.
pub fn packages(cache: &Cache, files: &[&str]) -> (pinned::Packages, Vec<&'static str>) {
    let (mut all, mut unknown) = (pinned::Packages::new(), Vec::new());
    for folder in FOLDERS {
        let own = |file: &&str| folder_of(file).is_some_and(|other| other.name() == folder.name());
        // What is made of others' files has no packages of its own.
        if !files.iter().any(own) || !folder.needs().is_empty() {
            continue;
        }
        match pinned::of_folder(&cache.folder().join(folder.name())) {
            Some(packages) => all.extend(packages),
            None => unknown.push(folder.name()),
        }
    }
    // The host that KVM needs is made when it is needed.
    all.extend(
        pinned::of_folder(&cache.folder().join("kvm"))
            .into_iter()
            .flatten(),
    );
    (all, unknown)
}

/// Waits, and says so, until no other process builds into the cache. None does while the file is kept open.
pub(crate) fn alone(cache: &Cache, progress: &Progress) -> Result<File, ImagesError> {
    let root = cache.folder();
    fs::create_dir_all(root).map_err(at(root))?;
    let path = root.join("lock");
    let lock = File::create(&path).map_err(at(&path))?;
    if lock.try_lock().is_err() {
        progress.step("waiting for another partita that builds images");
        lock.lock().map_err(at(&path))?;
    }
    Ok(lock)
}

/// Puts `new` in the place of `old`, whose files go to `aside`.
fn replace(old: &Path, new: &Path, aside: &Path) -> Result<(), ImagesError> {
    if old.exists() {
        fs::rename(old, aside).map_err(at(old))?;
    }
    fs::rename(new, old).map_err(at(new))
}

impl Folder for Guests {
    fn name(&self) -> &'static str {
        "debian"
    }

    fn hash(&self, hasher: &mut DefaultHasher) {
        (INIT, PACKAGES, PROGRAMS, SMALL_PROGRAMS, MODULES).hash(hasher);
    }

    fn build(&self, site: &Site<'_>) -> Result<(), ImagesError> {
        let Site {
            work,
            built,
            progress,
            ..
        } = site;
        let apt = site.apt()?;
        let kernel_root = work.join("kernel");
        apt.unpack_kernel(KERNEL, &kernel_root, progress)?;
        let program_root = work.join("programs");
        apt.unpack_with_dependencies(&PACKAGES, &program_root, progress)?;

        progress.step("picking the kernel and its modules");
        let kernel_image = modules::kernel_image(&kernel_root)?;
        let target = built.join("kernel");
        fs::copy(&kernel_image, &target).map_err(at(&target))?;
        let modules = modules::collect(&kernel_root, &MODULES)?;

        progress.step("making the initial RAM disk");
        let small = libraries::closure(&program_root, &SMALL_PROGRAMS)?;
        let archive = initrd::compose(&program_root, INIT, &modules, &small)?;
        let target = built.join("initrd");
        fs::write(&target, archive).map_err(at(&target))?;

        progress.step("making the disk image");
        let programs = libraries::closure(&program_root, &PROGRAMS)?;
        disk::make(&built.join("disk"), &work.join("disk"), &programs)
    }
}

/// What is in a folder, in the order of the names: the host lists it in any.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, ImagesError> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let paths = entries.map(|entry| Ok(entry.map_err(at(folder))?.path()));
    let mut paths = paths.collect::<Result<Vec<_>, ImagesError>>()?;
    paths.sort();
    Ok(paths)
}

/// Runs a program to its end, and shows what it said if it fails.
pub(crate) fn run(
    command: &mut std::process::Command,
    program: &'static str,
    package: &'static str,
) -> Result<String, ImagesError> {
    let output = run_whole(command, program, package)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The same with all that it said.
fn run_whole(
    command: &mut std::process::Command,
    program: &'static str,
    package: &'static str,
) -> Result<std::process::Output, ImagesError> {
    /// How many lines of a failing program's output are shown.
    const SHOWN: usize = 15;
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| ImagesError::Program {
            program,
            error,
            package,
        })?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        let all = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = all.lines().collect();
        let tail = lines
            .get(lines.len().saturating_sub(SHOWN)..)
            .unwrap_or_default();
        return Err(ImagesError::Failed {
            program: String::from(program),
            status: output.status,
            output: tail.join("\n"),
        });
    }
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_cut_is_not_there_already() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::new(root.path());
        let place = root.path().join("debian");
        fs::create_dir(&place).unwrap();
        for name in ["kernel", "initrd", "disk"] {
            fs::write(place.join(name), name.repeat(100)).unwrap();
        }
        let text = stamp(&Guests) + &sizes(&place, &Guests).unwrap();
        fs::write(place.join(STAMP), text).unwrap();
        assert!(is_built(&cache, &Guests));
        fs::write(place.join("kernel"), "kern").unwrap();
        assert!(!is_built(&cache, &Guests));
        fs::remove_file(place.join("kernel")).unwrap();
        assert!(!is_built(&cache, &Guests));
    }

    #[test]
    fn one_builds_while_others_wait() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::new(root.path());
        let first = alone(&cache, &Progress::new()).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _second = alone(&cache, &Progress::new()).unwrap();
                tell.send(()).unwrap();
            });
            let early = told.recv_timeout(std::time::Duration::from_millis(50));
            assert!(early.is_err(), "two build at once");
            drop(first);
            told.recv().unwrap();
        });
    }
}
