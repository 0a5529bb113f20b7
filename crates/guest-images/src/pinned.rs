//! Which packages the images are made of, and which they should be made of: `guests/packages` names versions and hashes, so that
//! two people who measure have the same guests.

use crate::error::{ImagesError, at};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use system::fingerprint::Fingerprint;

/// The packages that published figures were made with.
const LIST: &str = include_str!("../../../guests/packages");
/// The file of a folder of images that names the packages it was made of.
pub const FILE: &str = "packages";
/// How many packages that differ are named.
const NAMED: usize = 8;
/// Above it, apt takes a version even if there is a newer one.
const PRIORITY: u32 = 1001;

/// A package as it was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its version.
    pub version: String,
    /// The SHA-256 of its file.
    pub hash: String,
}

/// Packages by their names.
pub type Packages = BTreeMap<String, Package>;

/// The packages that `guests/packages` names.
pub fn wanted() -> Packages {
    parse(LIST)
}

/// Reads a list: a package in a line, with its name, its version and its hash. Other lines tell nothing.
fn parse(text: &str) -> Packages {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let packages = lines.filter_map(|line| {
        let mut words = line.split_whitespace().map(String::from);
        let (name, version, hash) = (words.next()?, words.next()?, words.next()?);
        Some((name, Package { version, hash }))
    });
    packages.collect()
}

/// The same list as text.
pub fn text(packages: &Packages) -> String {
    let mut text = String::new();
    for (name, Package { version, hash }) in packages {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{name} {version} {hash}");
    }
    text
}

/// Preferences that make apt take these versions wherever the archive has them.
pub fn preferences(packages: &Packages) -> String {
    let mut text = String::new();
    for (name, Package { version, .. }) in packages {
        let _ = write!(
            text,
            "Package: {name}\nPin: version {version}\nPin-Priority: {PRIORITY}\n\n"
        );
    }
    text
}

/// The name and the version of a package, from how its file is called. A colon stands as %3a in the names of files.
fn named(path: &Path) -> Option<(String, String)> {
    let name = path.file_name()?.to_str()?;
    let mut parts = name.split('_');
    let (name, version) = (parts.next()?, parts.next()?);
    Some((name.to_owned(), version.replace("%3a", ":")))
}

/// Notes that a package was used.
///
/// # Errors
/// The file cannot be read, is not called as a package is, or is not what `wanted` has under this version.
pub fn note(path: &Path, wanted: &Packages, used: &mut Packages) -> Result<(), ImagesError> {
    let malformed = |problem: String| ImagesError::Malformed {
        path: path.to_owned(),
        problem,
    };
    let (name, version) =
        named(path).ok_or_else(|| malformed(String::from("it is not called as a package is")))?;
    let hash = Fingerprint::of_file(path).map_err(at(path))?.to_string();
    let differs = wanted
        .get(&name)
        .is_some_and(|wanted| wanted.version == version && wanted.hash != hash);
    if differs {
        return Err(malformed(format!(
            "its SHA-256 is {hash}, and guests/packages has another for {name} {version}; remove the file and try again"
        )));
    }
    used.insert(name, Package { version, hash });
    Ok(())
}

/// The packages that a folder of images was made of, if that is known.
pub fn of_folder(folder: &Path) -> Option<Packages> {
    Some(parse(&fs::read_to_string(folder.join(FILE)).ok()?))
}

/// How the packages that were used differ from those that were wanted, in words for people.
pub fn comparison(used: &Packages, wanted: &Packages) -> String {
    let mut others = Vec::new();
    for (name, package) in used {
        match wanted.get(name) {
            Some(wanted) if wanted == package => {}
            Some(wanted) => {
                others.push(format!("{name} {} for {}", package.version, wanted.version));
            }
            None => others.push(format!("{name} {} for none", package.version)),
        }
    }
    if others.is_empty() {
        return format!("packages: {}, all as in guests/packages", used.len());
    }
    let more = others.len().saturating_sub(NAMED);
    let count = others.len();
    others.truncate(NAMED);
    if more > 0 {
        others.push(format!("and {more} more"));
    }
    format!(
        "packages: {}, of which {count} are not as in guests/packages, so that figures may differ from published ones: {}.\n\
         PARTITA_DEBIAN_MIRROR may name an archive of older versions that still has those; 'partita images --rebuild' then builds \
         with them",
        used.len(),
        others.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(version: &str, hash: &str) -> Package {
        Package {
            version: version.to_owned(),
            hash: hash.to_owned(),
        }
    }

    #[test]
    fn list_is_read_as_written() {
        let packages = Packages::from([
            (
                String::from("busybox-static"),
                package("1:1.37.0-6+b9", "aa"),
            ),
            (String::from("fio"), package("3.39-1", "bb")),
        ]);
        assert_eq!(parse(&text(&packages)), packages);
        assert_eq!(
            parse(&format!("# of a day\n\n{}", text(&packages))),
            packages
        );
        assert!(preferences(&packages).starts_with(
            "Package: busybox-static\nPin: version 1:1.37.0-6+b9\nPin-Priority: 1001\n\n"
        ));
    }

    #[test]
    fn shipped_list_has_guests_packages() {
        let wanted = wanted();
        for name in ["busybox-static", "fio", "stress-ng", "rt-tests", "libc6"] {
            assert!(wanted.contains_key(name), "{name}");
        }
        assert!(wanted.keys().any(|name| name.starts_with("linux-image-")));
        for (name, package) in &wanted {
            let digits = package.hash.chars().filter(char::is_ascii_hexdigit);
            assert!(package.hash.len() == 64 && digits.count() == 64, "{name}");
        }
    }

    #[test]
    fn differences_are_named_and_forgeries_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fio_1%3a3.39-1_riscv64.deb");
        fs::write(&path, "content").unwrap();
        let mut used = Packages::new();
        note(&path, &Packages::new(), &mut used).unwrap();
        let hash = Fingerprint::of(b"content").to_string();
        assert_eq!(used.get("fio"), Some(&package("1:3.39-1", &hash)));
        let wanted = Packages::from([(String::from("fio"), package("1:3.39-1", &hash))]);
        assert_eq!(
            comparison(&used, &wanted),
            "packages: 1, all as in guests/packages"
        );
        let newer = Packages::from([(String::from("fio"), package("1:3.40-1", "00"))]);
        assert!(comparison(&used, &newer).contains("fio 1:3.39-1 for 1:3.40-1."));
        assert!(comparison(&used, &Packages::new()).contains("fio 1:3.39-1 for none."));
        // Another version than the list's is used; the same with another content is not.
        note(&path, &newer, &mut used).unwrap();
        let forged = Packages::from([(String::from("fio"), package("1:3.39-1", "00"))]);
        let refused = note(&path, &forged, &mut used).unwrap_err();
        assert!(refused.to_string().contains("guests/packages has another"));
        let nameless = folder.path().join("fio.deb");
        fs::write(&nameless, "").unwrap();
        assert!(note(&nameless, &wanted, &mut used).is_err());
    }
}
