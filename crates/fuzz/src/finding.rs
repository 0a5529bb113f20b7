//! A finding: a case in which an invariant did not hold, in a folder from which it can be replayed.

use crate::case::Case;
use crate::judge::Violation;
use crate::observe::Observed;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The case, the system file and the page in a finding's folder, and the console's end.
const CASE: &str = "case.json";
const SYSTEM: &str = "system.toml";
const PAGE: &str = "finding.md";
const CONSOLE: &str = "console.log";

/// A case with the invariants that it breaks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The case.
    pub case: Case,
    /// The invariants, at least one.
    pub violations: Vec<Violation>,
    /// Fingerprint of the run.
    pub fingerprint: String,
}

impl Finding {
    /// The folder's name below the farm's.
    pub fn name(&self) -> String {
        format!("{}-{}", self.case.seed, self.case.number)
    }

    /// Writes the finding with the console's end into a folder below `farm`.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, farm: &Path, observed: &Observed) -> io::Result<PathBuf> {
        let folder = farm.join(self.name());
        std::fs::create_dir_all(&folder)?;
        let case = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        std::fs::write(folder.join(CASE), case + "\n")?;
        std::fs::write(folder.join(SYSTEM), self.case.system_file())?;
        std::fs::write(folder.join(CONSOLE), observed.lines.join("\n") + "\n")?;
        std::fs::write(folder.join(PAGE), self.page(&folder))?;
        Ok(folder)
    }

    /// Reads the finding in a folder.
    ///
    /// # Errors
    /// There is none.
    pub fn read(folder: &Path) -> io::Result<Self> {
        let text = std::fs::read_to_string(folder.join(CASE))?;
        serde_json::from_str(&text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    fn page(&self, folder: &Path) -> String {
        let Case { seed, number, .. } = self.case;
        let mut page = format!("# Seed {seed}, system {number}\n\n");
        for violation in &self.violations {
            let Violation { invariant, detail } = violation;
            let _ = writeln!(page, "- **{invariant}**: {detail}");
        }
        let profile = self.case.profile.as_deref().unwrap_or("none");
        let _ = write!(
            page,
            "\nReplay: `partita fuzz --replay {}`\n\nFingerprint: {}\n\nProfile: {profile}\n\n## System\n\n```toml\n{}```\n",
            folder.display(),
            self.fingerprint,
            self.case.system_file()
        );
        if !self.case.commands.is_empty() {
            page += "\n## Operator\n\n| us | command |\n|---|---|\n";
            for command in &self.case.commands {
                let _ = writeln!(page, "| {} | `{}` |", command.at_us, command.line);
            }
        }
        let _ = write!(page, "\nThe console's end is in `{CONSOLE}`.\n");
        page
    }
}
