//! System images that are cut short or hold rubbish: the hypervisor says what is wrong and boots nothing.

mod common;

use common::{hypervisor, room, root};
use runner::computer::firmware;
use runner::qemu::{self, Boot};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;
use system::cache::Cache;
use system::image::slots::Assignment;
use system::image::{archive, compose};
use system::{Document, System};

/// Longest time in which the hypervisor must have said what is wrong and powered off.
const PATIENCE: Duration = Duration::from_secs(60);

fn system() -> System {
    let path = root().join("systems/one-debian.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    System::read(&Document::new(&path, text, &[]).unwrap()).unwrap()
}

/// The good image of an example.
fn good() -> Vec<u8> {
    let system = system();
    let cache = Cache::from_environment().unwrap();
    compose(&system, &Assignment::of(&system), &cache, None).unwrap()
}

/// Console output of a boot of this image. QEMU must end by itself.
fn console(image: &[u8]) -> String {
    let system = system();
    let cache = Cache::from_environment().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("image");
    std::fs::write(&path, image).unwrap();
    let firmware = firmware::find().unwrap();
    let hypervisor = hypervisor();
    let boot = Boot {
        firmware: &firmware,
        hypervisor: &hypervisor,
        image: &path,
    };
    let mut child = Command::new(qemu::PROGRAM)
        .args(qemu::arguments(
            &system,
            &Assignment::of(&system),
            boot,
            &cache,
        ))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        // What came before an error is judged.
        let _ = output.read_to_end(&mut text);
        let _ = sender.send(text);
    });
    let text = receiver.recv_timeout(PATIENCE);
    child.kill().unwrap();
    child.wait().unwrap();
    let text = text.expect("the hypervisor neither booted nor gave up");
    String::from_utf8_lossy(&text).into_owned()
}

/// The hypervisor must say `words` (one of its own lines has them all), and no guest may start.
fn refused(what: &str, image: &[u8], words: &[&str]) {
    let text = console(image);
    let said = text.lines().filter(|line| line.starts_with("[partita] "));
    let found = said
        .clone()
        .any(|line| words.iter().all(|word| line.contains(word)));
    assert!(
        found,
        "{what}: no line of the hypervisor has {words:?}:\n{text}"
    );
    assert!(
        !text.contains("defect"),
        "{what}: the hypervisor failed:\n{text}"
    );
    assert!(
        !text.contains("Linux version"),
        "{what}: a guest was started:\n{text}"
    );
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn images_that_are_cut_short_are_refused() {
    let _room = room("qemu");
    let image = good();
    for length in [1, 109, 111, 300, 4096, image.len() / 2, image.len() - 200] {
        refused(&format!("{length} bytes"), &image[..length], &["image"]);
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn images_with_wild_sizes_are_refused() {
    let _room = room("qemu");
    let mut image = good();
    // The size of the first file: the seventh number after the magic.
    for size in ["ffffffff", "80000000", "7fffffff", "gggggggg"] {
        image[6 + 6 * 8..][..8].copy_from_slice(size.as_bytes());
        refused(size, &image, &["image"]);
    }
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn descriptions_that_are_none_are_refused() {
    let _room = room("qemu");
    for (what, tree) in [
        ("no tree", &b"no device tree"[..]),
        ("nothing", b""),
        ("magic", b"\xd0\x0d\xfe\xed"),
    ] {
        let mut writer = archive::Writer::new();
        writer.file(abi::system::FILE_NAME, 0o644, tree).unwrap();
        refused(what, &writer.finish(), &[abi::system::FILE_NAME]);
    }
    let empty = archive::Writer::new().finish();
    refused("an empty image", &empty, &[abi::system::FILE_NAME]);
}

#[test]
#[ignore = "needs QEMU, the hypervisor and the images; make test runs it"]
fn a_kernel_that_is_none_is_refused() {
    let _room = room("qemu");
    let system = system();
    let cache = tempfile::tempdir().unwrap();
    std::fs::create_dir(cache.path().join("debian")).unwrap();
    for (what, kernel) in [
        ("text", &b"this is no kernel"[..]),
        ("nothing", b""),
        ("zeroes", &[0; 8192]),
    ] {
        std::fs::write(cache.path().join("debian/kernel"), kernel).unwrap();
        std::fs::write(cache.path().join("debian/initrd"), b"initrd").unwrap();
        let cache = Cache::new(cache.path());
        let image = compose(&system, &Assignment::of(&system), &cache, None).unwrap();
        refused(what, &image, &["kernel"]);
    }
}
