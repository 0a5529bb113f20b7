//! Disk images: ext4 file systems that are the same bytes whoever builds them, and whenever.
//!
//! mke2fs makes an empty file system with fixed identities, a fixed time and features of our own choice, and debugfs writes
//! the files into it in the order of their names. Copying a folder (`mke2fs -d`) would keep the builder's user, the times
//! and the order in which the host lists the folder.

use crate::error::{ImagesError, at};
use crate::libraries::GuestFile;
use crate::process::run;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders that a guest mounts something on or works in.
const FOLDERS: [&str; 6] = ["dev", "etc", "proc", "sys", "tmp", "work"];
/// When everything in an image was made, in seconds since 1970: the beginning of 2025.
pub(super) const TIME: &str = "1735689600";
/// The seed of hashed folders, and what the identities of file systems end with.
const HASH_SEED: &str = "70617274-6974-4120-8061-736820736565";
/// Settings that mke2fs would else take from the host: the features that Debian's kernel knows.
const CONFIGURATION: &str = "[defaults]
base_features = sparse_super,large_file,filetype,resize_inode,dir_index,ext_attr
default_mntopts = acl,user_xattr
enable_periodic_fsck = 0
blocksize = 1024
inode_size = 256
inode_ratio = 4096
[fs_types]
ext4 = {
features = has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize
}
small = {
}
";

/// Form of an image.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// The file system's label, of at most 16 bytes.
    pub label: &'static str,
    /// Its size, as mke2fs reads it. The image is mostly a hole.
    pub size: &'static str,
}

/// Form of the guests' disk.
pub const GUESTS: Form = Form {
    label: "partita",
    size: "256M",
};

/// Something in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Folder,
    File { source: PathBuf, executable: bool },
    Link(String),
}

/// Entry of an image, by its path without a leading slash: a folder comes before what is in it.
type Entries = BTreeMap<String, Entry>;

/// Makes the image `image` of the guests' disk from programs and their libraries. `work` is a folder that may be written
/// to.
///
/// # Errors
/// A file cannot be read, or mke2fs or debugfs fails.
pub fn make(image: &Path, work: &Path, files: &[GuestFile]) -> Result<(), ImagesError> {
    let mut entries = Entries::new();
    for GuestFile { name, source } in files {
        let source = source.clone();
        let executable = true;
        entries.insert(name.clone(), Entry::File { source, executable });
    }
    write(image, work, GUESTS, entries)
}

/// Makes an image from what is in `folder`. Of its files' permissions only whether their owner may execute them counts.
///
/// # Errors
/// As for [`make`].
pub fn from_folder(
    image: &Path,
    work: &Path,
    folder: &Path,
    form: Form,
) -> Result<(), ImagesError> {
    let mut entries = Entries::new();
    gather(folder, "", &mut entries)?;
    write(image, work, form, entries)
}

/// Adds what is in a folder, whose path in the image is `inside`.
fn gather(folder: &Path, inside: &str, entries: &mut Entries) -> Result<(), ImagesError> {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let entry = entry.map_err(at(folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(at(&path))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = match inside {
            "" => name,
            inside => format!("{inside}/{name}"),
        };
        if kind.is_dir() {
            entries.insert(name.clone(), Entry::Folder);
            gather(&path, &name, entries)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).map_err(at(&path))?;
            entries.insert(name, Entry::Link(target.display().to_string()));
        } else if kind.is_file() {
            let mode = entry.metadata().map_err(at(&path))?.permissions().mode();
            let executable = mode & 0o100 != 0;
            let source = path;
            entries.insert(name, Entry::File { source, executable });
        }
    }
    Ok(())
}

fn write(image: &Path, work: &Path, form: Form, mut entries: Entries) -> Result<(), ImagesError> {
    for folder in FOLDERS {
        entries.entry(String::from(folder)).or_insert(Entry::Folder);
    }
    // Programs name their loader by a path below /lib.
    entries
        .entry(String::from("lib"))
        .or_insert_with(|| Entry::Link(String::from("usr/lib")));
    let folders: Vec<String> = entries.keys().flat_map(|name| above(name)).collect();
    for folder in folders {
        entries.entry(folder).or_insert(Entry::Folder);
    }
    fs::create_dir_all(work).map_err(at(work))?;
    let configuration = work.join("mke2fs.conf");
    fs::write(&configuration, CONFIGURATION).map_err(at(&configuration))?;
    let mut command = tool("mke2fs");
    command.env("MKE2FS_CONFIG", &configuration);
    let fixed = format!(
        "root_owner=0:0,hash_seed={HASH_SEED},lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    );
    command.args(["-q", "-F", "-t", "ext4", "-L", form.label]);
    command.args(["-U", &identity(form.label), "-E", &fixed]);
    command.arg(image).arg(form.size);
    run(&mut command, "mke2fs", "e2fsprogs")?;

    let script = work.join("debugfs.script");
    fs::write(&script, commands(&entries)?).map_err(at(&script))?;
    let mut command = tool("debugfs");
    command.args(["-w", "-f"]).arg(&script).arg(image);
    let output = crate::process::run_whole(&mut command, "debugfs", "e2fsprogs")?;
    // It ends well whatever its commands came to, and says on standard error what went wrong, below its version.
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut wrong = errors.lines().filter(|line| !line.starts_with("debugfs "));
    match wrong.next() {
        None => Ok(()),
        Some(line) => Err(ImagesError::Malformed {
            path: image.to_owned(),
            problem: format!("debugfs: {line}"),
        }),
    }
}

/// A program of e2fsprogs, which stands beside the superuser's own programs, which not everybody's path names.
fn tool(name: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(name);
    command
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .env("LC_ALL", "C")
        .env("E2FSPROGS_FAKE_TIME", TIME)
        .env("SOURCE_DATE_EPOCH", TIME);
    command
}

/// A file system's identity: its label, as a UUID writes it.
pub(super) fn identity(label: &str) -> String {
    let mut bytes = *b"partita's disk..";
    for (to, from) in bytes.iter_mut().zip(label.bytes()) {
        *to = from;
    }
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts
        .map(|part| hex.get(part).unwrap_or_default())
        .join("-")
}

/// The folders that a path lies in, the outermost first.
fn above(name: &str) -> Vec<String> {
    let ends = name.match_indices('/').map(|(at, _)| at);
    ends.filter_map(|at| name.get(..at).map(String::from))
        .collect()
}

/// Commands for debugfs.
fn commands(entries: &Entries) -> Result<String, ImagesError> {
    let mut script = String::new();
    for (name, entry) in entries {
        // Whatever is made is made in the folder in which debugfs is.
        let (folder, own) = name.rsplit_once('/').unwrap_or(("", name));
        let (folder, own) = (quoted(&format!("/{folder}"))?, quoted(own)?);
        script += &format!("cd {folder}\n");
        match entry {
            Entry::Folder => script += &format!("mkdir {own}\nsif {own} mode 040755\n"),
            Entry::Link(target) => script += &format!("symlink {own} {}\n", quoted(target)?),
            Entry::File { source, executable } => {
                let source = source.canonicalize().map_err(at(source))?;
                let source = quoted(&source.display().to_string())?;
                let mode = if *executable { "0100755" } else { "0100644" };
                script += &format!("write {source} {own}\nsif {own} mode {mode}\n");
            }
        }
    }
    Ok(script)
}

/// A word of debugfs's commands.
fn quoted(text: &str) -> Result<String, ImagesError> {
    if text.contains(['"', '\n', '\r']) {
        return Err(ImagesError::Malformed {
            path: PathBuf::from(text),
            problem: String::from(
                "a quotation mark or a line's end cannot be in the name of an image's file",
            ),
        });
    }
    Ok(format!("\"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::time::Duration;

    const FORM: Form = Form {
        label: "test",
        size: "16M",
    };

    /// A folder as some builder has it: files in this order, with these permissions and of this user.
    fn folder(files: &[&str], mode: u32, user: Option<u32>) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, name.repeat(2000)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            if let Some(user) = user {
                std::os::unix::fs::chown(&path, Some(user), Some(user)).unwrap();
            }
        }
        symlink("usr/bin/one", folder.path().join("link with a space")).unwrap();
        folder
    }

    fn image(folder: &Path) -> Vec<u8> {
        let work = tempfile::tempdir().unwrap();
        let image = work.path().join("image");
        from_folder(&image, &work.path().join("work"), folder, FORM).unwrap();
        let check = tool("e2fsck").args(["-fn"]).arg(&image).output().unwrap();
        let said = String::from_utf8_lossy(&check.stdout).into_owned();
        assert!(check.status.success(), "{said}");
        fs::read(&image).unwrap()
    }

    #[test]
    fn image_is_same_for_every_builder() {
        let names = [
            "usr/bin/one",
            "usr/bin/two",
            "etc/three",
            "usr/share/a b/four",
        ];
        let first = image(folder(&names, 0o755, None).path());
        // Later, in another order, with another umask, and as another user where that can be had.
        std::thread::sleep(Duration::from_millis(1100));
        let turned: Vec<&str> = names.into_iter().rev().collect();
        let superuser = rustix::process::geteuid().is_root();
        let second = image(folder(&turned, 0o700, superuser.then_some(1234)).path());
        assert!(first == second, "two builds of the same files differ");
        // What is in it makes a difference.
        let other = image(folder(&names[..3], 0o755, None).path());
        assert!(first != other);
    }

    #[test]
    fn disk_holds_files_owned_by_superuser() {
        let files = folder(&["usr/bin/one", "etc/two"], 0o750, None);
        let work = tempfile::tempdir().unwrap();
        let image = work.path().join("image");
        from_folder(&image, work.path(), files.path(), FORM).unwrap();
        let ask = |request: &str| {
            let output = tool("debugfs")
                .args(["-R", request])
                .arg(&image)
                .output()
                .unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        assert_eq!(ask("cat /usr/bin/one"), "usr/bin/one".repeat(2000));
        let stat = ask("stat /etc/two");
        assert!(
            stat.contains("Mode:  0755") && stat.contains("User:     0   Group:     0"),
            "{stat}"
        );
        assert!(ask("stat \"/link with a space\"").contains("usr/bin/one"));
        assert!(ask("stat /work").contains("directory"));
    }

    #[test]
    fn unwritable_name_is_refused() {
        let files = folder(&["etc/a\"b"], 0o644, None);
        let work = tempfile::tempdir().unwrap();
        let image = work.path().join("image");
        let error = from_folder(&image, work.path(), files.path(), FORM).unwrap_err();
        assert!(error.to_string().contains("quotation mark"), "{error}");
    }
}
