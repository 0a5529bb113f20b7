//! Settings that can be changed while a point runs, so that many points go on from one boot.

use crate::laboratory::{Computer, Point, PointError};
use abi::keys;
use runner::checkpoint::Span;
use runner::checkpoint::Start;
use system::{FileName, System};

/// Line of Debian's first process when its work begins (guests/init), and its file.
const DEBIAN_SAYS: &str = "partita-guest start";
const DEBIAN: &str = "debian/initrd";

/// The text at which a system's checkpoint is taken unless another is asked for: if all of its VMs boot Debian, for which
/// booting is most of a run. An exerciser boots in milliseconds and gets its start phase by its command line, and a user
/// at a terminal is not in a checkpoint: such systems boot each time.
pub fn usual_start(system: &System) -> Option<&'static str> {
    let debian = |file: &FileName| matches!(file, FileName::Built(name) if name == DEBIAN);
    let all = system
        .vms
        .iter()
        .filter(|vm| vm.get(keys::AUTOSTART))
        .all(|vm| {
            vm.initrd.as_ref().is_some_and(|file| debian(&file.value)) && vm.terminals.is_none()
        });
    (all && !system.vms.is_empty()).then_some(DEBIAN_SAYS)
}

/// The point as one that goes on from a checkpoint, taken when all VMs have said `text`: what the operator can set while
/// the system runs (`spin`, `wait`, shares) is set there, and all else when it boots.
///
/// # Errors
/// The system has mistakes.
pub fn from_checkpoint(mut point: Point, text: &str) -> Result<Point, PointError> {
    // Names and values are checked as for a boot.
    point.read()?;
    if point.native || point.kvm || point.computer == Computer::Qemu {
        return Ok(point);
    }
    let mut commands = Vec::new();
    let mut rest = Vec::new();
    for change in point.changes {
        match command(&change) {
            Some(command) => commands.push(command),
            None => rest.push(change),
        }
    }
    point.changes = rest;
    point.start = Some(Start {
        text: String::from(text),
        commands,
        span: None,
    });
    Ok(point)
}

/// The point as one that goes on from a checkpoint taken in the midst of the work, when all VMs have said `text`, and ends with a part
/// of it. Natively and under KVM as well: there is nothing that an operator would have to set.
///
/// # Errors
/// The system has mistakes.
pub fn within(point: Point, text: &str, span: Span) -> Result<Point, PointError> {
    let mut point = from_checkpoint(point, text)?;
    if matches!(point.computer, Computer::Machine { .. }) {
        let start = point.start.get_or_insert_with(|| Start {
            text: String::from(text),
            commands: Vec::new(),
            span: None,
        });
        start.span = Some(span);
    }
    Ok(point)
}

/// The command at the operator's prompt that does what a change of the system file does.
fn command(change: &str) -> Option<String> {
    let (key, value) = change.split_once('=')?;
    let (key, value) = (key.trim(), value.trim().trim_matches('"'));
    let parts: Vec<&str> = key.split('.').collect();
    match &parts[..] {
        [method @ ("spin" | "wait")] => Some(format!("{method} {value}")),
        ["vm", name, "share"] => Some(format!("share {name} {value}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn point(folder: &std::path::Path, changes: &[&str]) -> Point {
        let vm = "vcpus = 1\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"kernel\"\n";
        let system = format!("harts = 1\nmemory = \"1 GiB\"\n[vm.a]\n{vm}[vm.b]\n{vm}");
        std::fs::write(folder.join("kernel"), "").unwrap();
        std::fs::write(folder.join("system.toml"), system).unwrap();
        Point {
            system: folder.join("system.toml"),
            changes: changes.iter().map(|change| String::from(*change)).collect(),
            computer: Computer::Machine { profile: None },
            seed: 3,
            ..Point::default()
        }
    }

    #[test]
    fn operator_settings_share_one_boot() {
        let folder = tempfile::tempdir().unwrap();
        let made = |changes: &[&str]| from_checkpoint(point(folder.path(), changes), "up").unwrap();
        let first = made(&["spin=wapd", "vm.a.share=30", "time-slice=\"2 ms\""]);
        assert_eq!(first.changes, ["time-slice=\"2 ms\""]);
        let start = first.start.clone().unwrap();
        assert_eq!(start.commands, ["spin wapd", "share a 30"]);
        let second = made(&["spin=\"rslp\"", "time-slice=\"2 ms\""]);
        assert_eq!(first.boot(), second.boot());
        let third = made(&["spin=rslp", "time-slice=\"3 ms\""]);
        assert_ne!(first.boot(), third.boot());
        assert_eq!(point(folder.path(), &[]).boot(), None);
        // Natively and on QEMU there is no operator's prompt on the machine to ask.
        let mut native = point(folder.path(), &["spin=wapd"]);
        native.native = true;
        assert_eq!(from_checkpoint(native.clone(), "up").unwrap(), native);
        let mut qemu = point(folder.path(), &["spin=wapd"]);
        qemu.computer = Computer::Qemu;
        assert_eq!(from_checkpoint(qemu.clone(), "up").unwrap(), qemu);
    }

    #[test]
    fn spans_start_from_checkpoints_everywhere() {
        let folder = tempfile::tempdir().unwrap();
        let span = Span {
            settle_us: 1,
            count_us: 2,
        };
        let made = |point: Point| within(point, "half", span).unwrap();
        let ours = made(point(folder.path(), &["spin=wapd"]));
        assert_eq!(ours.start.as_ref().unwrap().commands, ["spin wapd"]);
        let mut native = point(folder.path(), &["spin=wapd"]);
        native.native = true;
        let native = made(native);
        for point in [&ours, &native] {
            assert_eq!(point.start.as_ref().unwrap().span, Some(span));
            assert_eq!(point.boot().unwrap().start.unwrap().span, None);
        }
        assert_ne!(ours.boot(), native.boot());
        // QEMU has no checkpoints.
        let mut qemu = point(folder.path(), &[]);
        qemu.computer = Computer::Qemu;
        assert_eq!(made(qemu).start, None);
    }

    #[test]
    fn unknown_method_is_named_before_boot() {
        let folder = tempfile::tempdir().unwrap();
        let error = from_checkpoint(point(folder.path(), &["spin=wadp"]), "up").unwrap_err();
        assert!(error.to_string().contains("wadp"), "{error}");
        let mut elsewhere = point(folder.path(), &[]);
        elsewhere.system = PathBuf::from("/nowhere/system.toml");
        assert!(from_checkpoint(elsewhere, "up").is_err());
    }

    #[test]
    fn only_debian_starts_from_checkpoint() {
        let tree = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let usual = |name: &str| {
            let path = tree.join("systems").join(name);
            let text = std::fs::read_to_string(&path).unwrap();
            let document = system::Document::new(&path, text, &[]).unwrap();
            usual_start(&System::read(&document).unwrap())
        };
        assert_eq!(usual("two-debian.toml"), Some("partita-guest start"));
        assert_eq!(usual("terminals.toml"), None);
    }
}
