//! A guest that makes a disk, where packages' own programs have to run.

use crate::error::ImagesError;
use crate::recipe::RunGuest;
use std::path::Path;
use system::cache::Cache;
use system::{Document, System};

/// A guest on the machine itself that makes a disk.
pub(crate) struct Builder<'a> {
    /// Takes what the run needs on the way.
    pub work: &'a Path,
    /// Its kernel.
    pub kernel: &'a Path,
    /// Its initial RAM disk, whose first process does the work, and says at the end whether it went well.
    pub initrd: &'a Path,
    /// Its disks, and whether what it writes to them is kept.
    pub disks: &'a [(&'a Path, bool)],
    /// Further words of its command line.
    pub words: &'a str,
}

impl Builder<'_> {
    /// Runs it to its end.
    pub(crate) fn run(&self, run: RunGuest) -> Result<(), ImagesError> {
        let disks: Vec<String> = self
            .disks
            .iter()
            .map(|(path, keep)| {
                let path = path.display().to_string();
                format!("{{ file = {path:?}, persistent = {keep} }}")
            })
            .collect();
        let text = format!(
            "harts = 1\nmemory = \"3 GiB\"\n[vm.builder]\nvcpus = 1\nmemory = \"2 GiB\"\nshare = 1\n\
             kernel = {kernel:?}\ninitrd = {initrd:?}\nrng = true\n\
             command-line = \"console=ttyS0 quiet {words}\"\ndisks = [{disks}]\n",
            kernel = self.kernel.display().to_string(),
            initrd = self.initrd.display().to_string(),
            words = self.words,
            disks = disks.join(", "),
        );
        let failed = |reason: String| ImagesError::Install { reason };
        let file = self.work.join("builder.toml");
        let document =
            Document::new(&file, text, &[]).map_err(|error| failed(format!("{error:?}")))?;
        let system = System::read(&document).map_err(|error| failed(format!("{error:?}")))?;
        let mut said = Vec::new();
        let mut show = |line: &str| said.push(String::from(line));
        run(&system, &Cache::new(self.work), &mut show)
            .map_err(|what| failed(format!("{what}; it said last:\n{}", last(&said))))?;
        let ended = said
            .iter()
            .any(|line| line.contains("partita-guest end ok=yes"));
        if ended {
            Ok(())
        } else {
            Err(failed(format!("it said last:\n{}", last(&said))))
        }
    }
}

/// The last of what a guest said.
fn last(said: &[String]) -> String {
    /// How many lines are shown.
    const SHOWN: usize = 20;
    let tail = said.get(said.len().saturating_sub(SHOWN)..);
    tail.unwrap_or_default().join("\n")
}
