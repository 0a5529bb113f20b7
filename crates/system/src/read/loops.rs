//! When pause loops exit, and which extensions a guest is not told of.

use crate::section::Section;
use abi::system::{HIDEABLE, Hidden, PAUSE_LOOP, PauseLoops};

/// The terms of pause loops that others have, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PausePreset {
    /// Xen's: `ple_gap` 128, `ple_window` 4096 (paper 004 §3).
    Xen,
    /// KVM's on Intel's processors: the same, and the window doubles at each exit (`ple_window_grow` 2) without a bound of its own
    /// (`ple_window_max` `UINT_MAX`), and is small again when the vCPU comes back to a hart (`ple_window_shrink` 0).
    Kvm,
}

impl PausePreset {
    /// Both.
    pub const ALL: &[Self] = &[Self::Xen, Self::Kvm];

    /// Its name in a system file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Xen => "xen",
            Self::Kvm => "kvm",
        }
    }

    /// Those that are given, and its own for the others.
    fn complete(self, given: PauseLoops) -> PauseLoops {
        let window = given.window.unwrap_or(4096);
        let most = match self {
            Self::Xen => window,
            Self::Kvm => u32::MAX,
        };
        PauseLoops {
            gap: Some(given.gap.unwrap_or(128)),
            window: Some(window),
            window_most: Some(given.window_most.unwrap_or(most)),
        }
    }
}

/// Reads the parameters of pause loops, of the system or of a VM: a preset's, but for those that are given themselves. That no hart may have pause-loop exiting is no mistake, as the same
/// system runs on many computers.
pub(super) fn read_pause_loops(section: &mut Section<'_>) -> PauseLoops {
    let mut integer = |key| {
        let node = section.optional(key)?;
        section.integer(node, key, PAUSE_LOOP)
    };
    let loops = PauseLoops {
        gap: integer("ple-gap"),
        window: integer("ple-window"),
        window_most: integer("ple-window-most"),
    };
    if let (Some(window), Some(most)) = (loops.window, loops.window_most)
        && most < window
        && let Some(node) = section.table.get("ple-window-most")
    {
        let message = format!("it is below ple-window, {window}");
        let remedy = format!("use {window} or more, or leave it out");
        section.report(node, "ple-window-most", message, remedy);
    }
    let presets: Vec<_> = (PausePreset::ALL.iter().copied()).map(Some).collect();
    let name = |preset: Option<PausePreset>| preset.map_or("xen", PausePreset::name);
    let preset = section.word("ple", &presets, name, None);
    preset.map_or(loops, |preset| preset.complete(loops))
}

/// Reads which extensions a VM's guest is not told of.
pub(super) fn read_hidden(section: &mut Section<'_>) -> Hidden {
    let mut hidden = Hidden::default();
    for node in section.list("hide", "[\"zawrs\"]") {
        let Some(name) = section.text(node, "hide", "zawrs") else {
            continue;
        };
        if !hidden.insert(name) {
            let message = format!("{name} cannot be hidden");
            let remedy = format!("use some of {}", HIDEABLE.join(", "));
            section.report(node, "hide", message, remedy);
        }
    }
    hidden
}

#[cfg(test)]
mod tests {
    use crate::{Document, Mistakes, System};
    use std::path::Path;

    fn read(more: &str) -> Result<System, Mistakes> {
        let text = format!(
            "harts = 1\nmemory = \"2 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
             kernel = \"image:debian/kernel\"\n{more}\n"
        );
        System::read(&Document::new(Path::new("a.toml"), text, &[]).unwrap())
    }

    #[test]
    fn a_vm_hides_what_it_names_and_has_terms_of_its_own() {
        let system = read("hide = [\"zawrs\", \"sstc\"]\nple-window = 0").unwrap();
        let vm = &system.vms[0];
        assert!(vm.hidden.names().eq(["sstc", "zawrs"]));
        assert_eq!((vm.pause_loops.gap, vm.pause_loops.window), (None, Some(0)));
    }

    #[test]
    fn a_preset_gives_what_is_not_given() {
        let terms = |more: &str| {
            let loops = read(more).unwrap().vms[0].pause_loops;
            (loops.gap, loops.window, loops.window_most)
        };
        assert_eq!(terms(""), (None, None, None));
        assert_eq!(terms("ple = \"xen\""), (Some(128), Some(4096), Some(4096)));
        assert_eq!(
            terms("ple = \"kvm\""),
            (Some(128), Some(4096), Some(u32::MAX))
        );
        assert_eq!(
            terms("ple = \"kvm\"\nple-gap = 32\nple-window-most = 65536"),
            (Some(32), Some(4096), Some(65536))
        );
        assert_eq!(
            terms("ple = \"xen\"\nple-window = 512"),
            (Some(128), Some(512), Some(512))
        );
    }

    #[test]
    fn mistakes_are_named_with_what_would_do() {
        for (line, words) in [
            (
                "hide = [\"i\"]",
                &["a.toml:8", "vm.a.hide", "i cannot be hidden", "zawrs"][..],
            ),
            ("hide = \"zawrs\"", &["a list"]),
            ("ple-gap = -1", &["0 to 4294967295"]),
            (
                "ple = \"vmware\"",
                &["a.toml:8", "vm.a.ple", "use one of xen, kvm"],
            ),
            (
                "ple-window = 4096\nple-window-most = 4095",
                &["a.toml:9", "below ple-window, 4096", "use 4096 or more"],
            ),
        ] {
            let told = read(line).unwrap_err().to_string();
            for word in words {
                assert!(told.contains(word), "{line}: {word} is not in\n{told}");
            }
        }
    }
}
