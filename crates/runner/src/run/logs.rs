//! Each VM's lines in a file of its own.

use super::console::Line;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{LineWriter, Write};
use std::path::Path;

/// Name of the file for the hypervisor's lines, and the ending of all names.
const HYPERVISOR: &str = "partita";
const ENDING: &str = ".log";

/// The files, by the names of those whose lines they take.
#[derive(Debug, Default)]
pub(super) struct Logs {
    files: BTreeMap<String, LineWriter<File>>,
    /// The VM whose lines come without its name.
    focus: Option<String>,
}

impl Logs {
    /// Makes a file for each of these VMs, and one for the hypervisor, in a folder that is made if it is not there. Files of an
    /// earlier run are replaced.
    pub(super) fn create<'a>(
        folder: &Path,
        vms: impl Iterator<Item = &'a str>,
        focus: Option<&str>,
    ) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut files = BTreeMap::new();
        for name in vms.chain([HYPERVISOR]) {
            let file = File::create(folder.join(format!("{name}{ENDING}")))?;
            files.insert(String::from(name), LineWriter::new(file));
        }
        let focus = focus.map(String::from);
        Ok(Self { files, focus })
    }

    /// Keeps a line.
    pub(super) fn line(&mut self, line: &str) -> std::io::Result<()> {
        let (name, text) = match Line::of(line) {
            Line::Guest { vm, text } => (vm, text),
            Line::Hypervisor(text) => (HYPERVISOR, text),
            Line::Bare(text) => (self.focus.as_deref().unwrap_or(HYPERVISOR), text),
        };
        match self.files.get_mut(name) {
            Some(file) => writeln!(file, "{text}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_to_their_vms_files() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("logs");
        let mut logs = Logs::create(&place, ["web", "db"].into_iter(), Some("db")).unwrap();
        for line in [
            "OpenSBI",
            "[partita] hello",
            "[web] one",
            "bare",
            "[web] two",
            "[other] lost",
        ] {
            logs.line(line).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
        assert_eq!(read("web.log"), "one\ntwo\n");
        assert_eq!(read("db.log"), "OpenSBI\nbare\n");
        assert_eq!(read("partita.log"), "[partita] hello\n");
    }
}
