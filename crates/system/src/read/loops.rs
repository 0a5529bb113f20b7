//! Pause-loop exiting, and the extensions that a guest's device tree does not name.

use crate::Settings;
use crate::section::Section;
use abi::keys;
use abi::system::{HIDEABLE, Hidden, PausePreset};

/// Reads `[experiment]`, of the system or of a VM.
pub(super) fn read_experiment(section: &mut Section<'_>) -> Settings {
    let mut settings = section.settings();
    complete(section, &mut settings);
    settings
}

/// Gives the numbers of a preset of pause-loop exiting to the keys that are not given themselves. That no hart may have pause-loop exiting is
/// no mistake, as the same system runs on many computers.
fn complete(section: &mut Section<'_>, settings: &mut Settings) {
    let given = (
        settings.given(keys::PLE_WINDOW),
        settings.get(keys::PLE_WINDOW_MAX),
    );
    if let (Some(window), Some(max)) = given
        && max < window
        && let Some(node) = section.table.get(keys::PLE_WINDOW_MAX.name())
    {
        let message = format!("it is below ple-window, {window}");
        let remedy = format!("use {window} or more, or leave it out");
        section.report(node, keys::PLE_WINDOW_MAX.name(), message, remedy);
    }
    let preset = (settings.get(keys::PLE), settings.origin(keys::PLE).cloned());
    let (Some(preset), Some(origin)) = preset else {
        return;
    };
    settings.set_missing(keys::PLE_GAP, 128, &origin);
    settings.set_missing(keys::PLE_WINDOW, 4096, &origin);
    let max = match preset {
        PausePreset::Xen => settings.get(keys::PLE_WINDOW),
        PausePreset::Kvm => u32::MAX,
    };
    settings.set_missing(keys::PLE_WINDOW_MAX, Some(max), &origin);
}

/// Reads the extensions that a guest's device tree does not name.
pub(super) fn read_hidden(section: &mut Section<'_>) -> Hidden {
    let mut hidden = Hidden::default();
    for node in section.list(keys::HIDE) {
        let Some(name) = section.text(node, "hide", "\"zawrs\"") else {
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
    use abi::keys;
    use std::path::Path;

    fn read(more: &str) -> Result<System, Mistakes> {
        let text = format!(
            "harts = 1\nmemory = \"2 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
             kernel = \"image:debian/kernel\"\n{more}\n"
        );
        System::read(&Document::new(Path::new("a.toml"), text, &[]).unwrap())
    }

    #[test]
    fn vms_hide_extensions_and_have_own_loops() {
        let system = read("hide = [\"zawrs\", \"sstc\"]\nexperiment.ple-window = 0").unwrap();
        let vm = &system.vms[0];
        assert!(vm.hidden.names().eq(["sstc", "zawrs"]));
        let settings = &vm.settings;
        assert_eq!(settings.given(keys::PLE_GAP), None);
        assert_eq!(settings.given(keys::PLE_WINDOW), Some(0));
    }

    #[test]
    fn presets_give_missing_numbers() {
        let terms = |more: &str| {
            let system = read(&format!("[vm.a.experiment]\n{more}")).unwrap();
            let settings = &system.vms[0].settings;
            let (gap, window) = (keys::PLE_GAP, keys::PLE_WINDOW);
            let max = settings.get(keys::PLE_WINDOW_MAX);
            (settings.given(gap), settings.given(window), max)
        };
        assert_eq!(terms(""), (None, None, None));
        assert_eq!(terms("ple = \"xen\""), (Some(128), Some(4096), Some(4096)));
        assert_eq!(
            terms("ple = \"kvm\""),
            (Some(128), Some(4096), Some(u32::MAX))
        );
        assert_eq!(
            terms("ple = \"kvm\"\nple-gap = 32\nple-window-max = 65536"),
            (Some(32), Some(4096), Some(65536))
        );
        assert_eq!(
            terms("ple = \"xen\"\nple-window = 512"),
            (Some(128), Some(512), Some(512))
        );
    }

    #[test]
    fn mistakes_name_a_remedy() {
        for (line, words) in [
            (
                "hide = [\"i\"]",
                &["a.toml:8", "vm.a.hide", "i cannot be hidden", "zawrs"][..],
            ),
            ("hide = \"zawrs\"", &["a list"]),
            ("experiment.ple-gap = -1", &["0 to 4294967295"]),
            (
                "experiment.ple = \"vmware\"",
                &["a.toml:8", "vm.a.experiment.ple", "use one of xen, kvm"],
            ),
            (
                "[vm.a.experiment]\nple-window = 4096\nple-window-max = 4095",
                &["a.toml:10", "below ple-window, 4096", "use 4096 or more"],
            ),
            (
                "ple-window-most = 4095",
                &[
                    "a.toml:8",
                    "vm.a.ple-window-most",
                    "ple-window-max = ... below [vm.a.experiment]",
                ],
            ),
        ] {
            let told = read(line).unwrap_err().to_string();
            for word in words {
                assert!(told.contains(word), "{line}: {word} is not in\n{told}");
            }
        }
    }
}
