//! A corpus: cases that each reach places of the hypervisor which the others do not.

use crate::case::Case;
use crate::code::Covered;
use crate::draw::{draw, mutate};
use exerciser::random::Random;
use std::io;
use std::path::{Path, PathBuf};
use system::fingerprint::Fingerprint;

/// Ending of a case's file.
const ENDING: &str = "json";
/// One case in so many is drawn anew; the others are mutations of cases of the corpus.
const NEW_CASES: u64 = 4;
/// Stream of what is drawn about a case, beside the case itself.
const CHOICES: u64 = 0x636f_7270_7573;

/// A case with what it reaches.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    case: Case,
    covered: Covered,
}

/// Cases in a folder.
#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
    entries: Vec<Entry>,
    all: Covered,
}

impl Corpus {
    /// Cases of a folder, which is made if it is not there, before they have been run. A case that this version does not read is left out.
    ///
    /// # Errors
    /// The folder cannot be made or read.
    pub fn cases(folder: &Path) -> io::Result<Vec<Case>> {
        std::fs::create_dir_all(folder)?;
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
        paths.sort();
        let texts = paths.iter().filter_map(|path| std::fs::read(path).ok());
        Ok(texts
            .filter_map(|text| serde_json::from_slice(&text).ok())
            .collect())
    }

    /// An empty corpus whose cases go into a folder.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
            entries: Vec::new(),
            all: Covered::default(),
        }
    }

    /// Places that some case reached.
    pub const fn covered(&self) -> &Covered {
        &self.all
    }

    /// Number of cases.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// The case to be tried at a place of the farm's order: drawn, or a mutation of cases that are there.
    pub fn next(&self, seed: u64, number: u64) -> Case {
        let mut random = Random::stream(seed ^ CHOICES, number);
        let mut pick = || {
            let index = random.below(self.entries.len() as u64) as usize;
            self.entries.get(index).map(|entry| &entry.case)
        };
        let (Some(one), Some(other)) = (pick(), pick()) else {
            return draw(seed, number);
        };
        match random.one_in(NEW_CASES) {
            true => draw(seed, number),
            false => mutate(one, other, (seed, number), &mut random),
        }
    }

    /// Takes a case that was run. Returns how many places it is the first to reach; with any, it is kept in the folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn take(&mut self, case: &Case, covered: Covered) -> io::Result<usize> {
        let new = self.all.add(&covered);
        if new > 0 {
            let text = text(case)?;
            std::fs::write(self.path(&text), text)?;
            let case = case.clone();
            self.entries.push(Entry { case, covered });
        }
        Ok(new)
    }

    /// Keeps few cases that together reach all: each time the one that reaches most of what is left. Files of the others are removed.
    ///
    /// # Errors
    /// A file cannot be removed.
    pub fn minimise(&mut self) -> io::Result<()> {
        let mut left = std::mem::take(&mut self.entries);
        let mut reached = Covered::default();
        loop {
            let gains = left.iter().map(|entry| entry.covered.beyond(&reached));
            // The first of those with most.
            let best = gains.enumerate().rev().max_by_key(|(_, gain)| *gain);
            let Some((index, _)) = best.filter(|(_, gain)| *gain > 0) else {
                break;
            };
            let entry = left.remove(index);
            reached.add(&entry.covered);
            self.entries.push(entry);
        }
        for entry in left {
            let path = self.path(&text(&entry.case)?);
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// File of a case, named by its contents: the same case is there once.
    fn path(&self, text: &str) -> PathBuf {
        let name = Fingerprint::of(text.as_bytes()).to_string();
        let name = name.get(..16).unwrap_or(&name);
        self.folder.join(format!("{name}.{ENDING}"))
    }
}

fn text(case: &Case) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(case).map_err(io::Error::other)? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cases_with_new_places_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut corpus = Corpus::new(folder.path());
        let covered = [&[1, 2][..], &[2], &[1, 2, 3, 4], &[5]];
        for (number, covered) in (0..).zip(covered) {
            let new = corpus.take(&draw(1, number), Covered::of(covered)).unwrap();
            assert_eq!(new > 0, number != 1);
        }
        assert_eq!((corpus.count(), corpus.covered().count()), (3, 5));
        // The third case reaches all that the first one does.
        corpus.minimise().unwrap();
        let kept = Corpus::cases(folder.path()).unwrap();
        assert_eq!((corpus.count(), kept.len()), (2, 2));
        assert!(kept.contains(&draw(1, 2)) && kept.contains(&draw(1, 3)));
    }

    #[test]
    fn next_case_depends_on_corpus_and_number() {
        let folder = tempfile::tempdir().unwrap();
        let mut corpus = Corpus::new(folder.path());
        assert_eq!(corpus.next(1, 7), draw(1, 7));
        corpus.take(&draw(1, 0), Covered::of(&[1])).unwrap();
        corpus.take(&draw(1, 3), Covered::of(&[2])).unwrap();
        let cases = |corpus: &Corpus| {
            (0..20)
                .map(|number| corpus.next(1, number))
                .collect::<Vec<_>>()
        };
        assert_eq!(cases(&corpus), cases(&corpus));
        let mutations = (0..20).zip(cases(&corpus));
        assert!(
            mutations
                .filter(|(number, case)| *case != draw(1, *number))
                .count()
                > 5
        );
    }
}
