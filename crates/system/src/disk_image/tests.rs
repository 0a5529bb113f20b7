//! Images whole, broken and hostile.

use super::qcow2::Header;
use super::*;
use std::fs;

/// A qcow2 header of this version with this backing file and these snapshots.
fn qcow2(version: u32, backing: &str, snapshots: &[&str]) -> Vec<u8> {
    const NAME_AT: usize = 128;
    const SNAPSHOTS_AT: usize = 2048;
    let mut file = vec![0; SNAPSHOTS_AT];
    let mut put = |place: usize, bytes: &[u8]| {
        file[place..place + bytes.len()].copy_from_slice(bytes);
    };
    put(0, b"QFI\xfb");
    put(4, &version.to_be_bytes());
    if !backing.is_empty() {
        put(8, &(NAME_AT as u64).to_be_bytes());
        put(16, &(backing.len() as u32).to_be_bytes());
        put(NAME_AT, backing.as_bytes());
    }
    put(60, &(snapshots.len() as u32).to_be_bytes());
    put(64, &(SNAPSHOTS_AT as u64).to_be_bytes());
    for name in snapshots {
        let mut entry = vec![0; 40];
        entry[12..14].copy_from_slice(&1_u16.to_be_bytes());
        entry[14..16].copy_from_slice(&(name.len() as u16).to_be_bytes());
        entry[36..40].copy_from_slice(&16_u32.to_be_bytes());
        entry.extend([0; 16]);
        entry.push(b'1');
        entry.extend(name.as_bytes());
        entry.resize(entry.len().next_multiple_of(8), 0);
        file.extend(entry);
    }
    file
}

/// A folder with these files, and the mistake of the first.
fn mistake(files: &[(&str, Vec<u8>)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let found = of(&folder.path().join(files[0].0));
    found.unwrap_err().to_string()
}

#[test]
fn chains_are_followed_from_each_files_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("base")).unwrap();
    fs::write(
        path("top"),
        qcow2(3, "base/middle", &["a", "before update"]),
    )
    .unwrap();
    fs::write(path("base/middle"), qcow2(2, "raw", &[])).unwrap();
    fs::write(path("base/raw"), [0; 512]).unwrap();
    let image = of(&path("top")).unwrap().unwrap();
    assert_eq!(image.form, Form::Qcow2);
    assert_eq!(image.files, ["top", "base/middle", "base/raw"].map(path));
    let header = Header::read(&path("top")).unwrap();
    assert_eq!(header.snapshots, ["a", "before update"]);
    assert_eq!(of(&path("base/raw")).unwrap(), None);
}

#[test]
fn raw_disks_follow_every_backing_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let cache = Cache::new(path("cache"));
    fs::write(path("top"), qcow2(3, "raw", &["a"])).unwrap();
    fs::write(path("raw"), [0; 512]).unwrap();
    let raw = |snapshot| {
        let image = of(&path("top")).unwrap().unwrap();
        image.raw(snapshot, &cache).unwrap()
    };
    let first = raw(None);
    assert_eq!(first, raw(None));
    assert_ne!(first, raw(Some("a")));
    fs::write(path("raw"), [0; 1024]).unwrap();
    assert_ne!(first, raw(None));
    assert_eq!(first.parent(), raw(None).parent());
}

#[test]
fn circular_chains_name_the_file() {
    let circle = mistake(&[("a", qcow2(3, "b", &[])), ("b", qcow2(3, "a", &[]))]);
    assert!(
        circle.contains("/a: it is its own backing file"),
        "{circle}"
    );
    let own = mistake(&[("a", qcow2(3, "./a", &[]))]);
    assert!(own.contains("its own backing file"), "{own}");
    let names: Vec<String> = (0..=MAX_DEPTH).map(|number| number.to_string()).collect();
    let mut files: Vec<(&str, Vec<u8>)> = Vec::new();
    for (number, name) in names.iter().enumerate() {
        files.push((name, qcow2(3, &(number + 1).to_string(), &[])));
    }
    let deep = mistake(&files);
    assert!(deep.contains("more than 16"), "{deep}");
}

#[test]
fn backing_files_are_plain_files() {
    for (name, told) in [
        ("nbd://server/disk", "no plain file"),
        ("json:{\"driver\":\"ssh\"}", "no plain file"),
        ("/dev/null", "/dev/null: this is no plain file"),
        ("missing", "missing: No such file"),
    ] {
        let found = mistake(&[("top", qcow2(3, name, &[]))]);
        assert!(found.contains(told), "{name}: {found}");
    }
}

#[test]
fn broken_headers_are_refused() {
    let whole = qcow2(3, "raw", &["a", "b"]);
    for cut in 4..whole.len() - 8 {
        let read = |place: u64, length: usize| {
            let bytes = whole.get(..cut).unwrap_or_default();
            let begin = usize::try_from(place).unwrap();
            let end = begin.saturating_add(length);
            let there = bytes.get(begin..end).map(<[u8]>::to_vec);
            there.ok_or_else(|| std::io::ErrorKind::UnexpectedEof.into())
        };
        assert!(Header::of(&read).is_err(), "{cut}");
    }
    let version = mistake(&[("a", qcow2(4, "", &[]))]);
    assert!(version.contains("version 4"), "{version}");
    let mut external = qcow2(3, "", &[]);
    external[79] = 4;
    assert!(mistake(&[("a", external)]).contains("another file"));
    let mut long = qcow2(3, "raw", &[]);
    long[16..20].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(mistake(&[("a", long)]).contains("too long"));
    let mut many = qcow2(3, "", &[]);
    many[60..64].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(mistake(&[("a", many)]).contains("too many"));
    let mut far = qcow2(3, "", &["a"]);
    far[64..72].copy_from_slice(&u64::MAX.to_be_bytes());
    assert!(!mistake(&[("a", far)]).is_empty());
}
