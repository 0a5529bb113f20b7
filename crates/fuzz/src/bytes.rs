//! A fuzzer of readers: inputs that are mutations of others, without an instrumented compiler.
//!
//! A reader says in a text how it took an input. An input with an answer that none had before joins the corpus, numbers in the answers left
//! aside, so that the search goes on from what reached another place of the reader. The inputs are a function of the seed and of the answers.

use exerciser::random::Random;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Longest input in bytes.
const MAX_BYTES: usize = 1 << 16;
/// Changes of an input at most.
const MAX_CHANGES: u64 = 6;
/// Inputs of the corpus at most: a reader may have as many answers as it likes.
const MAX_CORPUS: usize = 4096;
/// Numbers at an edge.
const EDGES: [u64; 12] = [
    0,
    1,
    7,
    8,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

/// Bounds of a search.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// Seed of all that is drawn.
    pub seed: u64,
    /// How many inputs are tried at most.
    pub inputs: u64,
    /// How long inputs are tried at most.
    pub time: Option<Duration>,
    /// Time of the processor that the reader may take for an input.
    pub patience: Duration,
    /// Words of the language, which are put in.
    pub words: &'a [&'a str],
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Searched {
    /// Inputs that were tried.
    pub inputs: u64,
    /// Answers that the reader had, numbers left aside.
    pub answers: BTreeSet<String>,
    /// First input that was taken wrongly, and how.
    pub find: Option<(Vec<u8>, String)>,
}

/// Searches for an input that the reader panics on, takes too long for, or says to be wrong with an [`Err`].
pub fn search(
    search: &Search<'_>,
    seeds: &[Vec<u8>],
    read: &dyn Fn(&[u8]) -> Result<String, String>,
) -> Searched {
    let begun = Instant::now();
    let mut random = Random::new(search.seed);
    let mut corpus = seeds.to_vec();
    let mut searched = Searched {
        inputs: 0,
        answers: BTreeSet::new(),
        find: None,
    };
    while searched.inputs < search.inputs && search.time.is_none_or(|time| begun.elapsed() < time) {
        // The seeds go first, as they are.
        let input = match seeds.get(searched.inputs as usize) {
            Some(seed) => seed.clone(),
            None => mutated(&corpus, search.words, &mut random),
        };
        searched.inputs += 1;
        match attempt(&input, search.patience, read) {
            Ok(answer) => {
                let answer = without_numbers(&answer);
                if searched.answers.insert(answer) && corpus.len() < MAX_CORPUS {
                    corpus.push(input);
                }
            }
            Err(what) => {
                searched.find = Some((input, what));
                break;
            }
        }
    }
    searched
}

fn attempt(
    input: &[u8],
    patience: Duration,
    read: &dyn Fn(&[u8]) -> Result<String, String>,
) -> Result<String, String> {
    let begun = processor_time();
    let answer = catch_unwind(AssertUnwindSafe(|| read(input)));
    let answer = answer.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| String::from(*text)));
        format!("it panics: {}", text.unwrap_or_default())
    })??;
    let time = processor_time().saturating_sub(begun);
    match time < patience {
        true => Ok(answer),
        false => Err(format!("it takes {:.1} s", time.as_secs_f64())),
    }
}

/// Time of the processor that this thread has had; none where the host does not tell it.
fn processor_time() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat");
    let nanoseconds = told
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// The text with each number as one sign, and no longer than a line: answers that differ by a place or a name are one.
fn without_numbers(text: &str) -> String {
    const LONGEST: usize = 160;
    let mut short = String::new();
    let mut in_number = false;
    for letter in text.chars().take(LONGEST) {
        let is_number = letter.is_ascii_digit() || in_number && letter.is_ascii_hexdigit();
        if !is_number {
            short.push(letter);
        } else if !in_number {
            short.push('#');
        }
        in_number = is_number;
    }
    short
}

/// An input that is a mutation of one of the corpus.
pub fn mutated(corpus: &[Vec<u8>], words: &[&str], random: &mut Random) -> Vec<u8> {
    let pick = |random: &mut Random| {
        let index = random.below(corpus.len() as u64) as usize;
        corpus.get(index).cloned().unwrap_or_default()
    };
    let mut bytes = pick(random);
    for _ in 0..=random.below(MAX_CHANGES) {
        change(&mut bytes, words, &pick, random);
    }
    bytes.truncate(MAX_BYTES);
    bytes
}

fn change(
    bytes: &mut Vec<u8>,
    words: &[&str],
    pick: &dyn Fn(&mut Random) -> Vec<u8>,
    random: &mut Random,
) {
    let length = bytes.len() as u64;
    let at = random.below(length + 1) as usize;
    let some = range(length, random);
    match random.below(11) {
        0 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.next() as u8;
            }
        }
        2..5 => number(bytes, at, random),
        5 => drop(bytes.drain(some)),
        6 => {
            let copy = bytes.get(some).unwrap_or_default().to_vec();
            let times = random.pick(&[1, 1, 2, 64, 1000]);
            let room = MAX_BYTES.saturating_sub(bytes.len());
            let copies: Vec<u8> = copy.repeat(times).into_iter().take(room).collect();
            bytes.splice(at..at, copies);
        }
        7 => bytes.truncate(at),
        8 => {
            let other = pick(random);
            let part = range(other.len() as u64, random);
            let part = other.get(part).unwrap_or_default();
            bytes.splice(at..at, part.iter().copied());
        }
        _ => {
            let index = random.below(words.len() as u64) as usize;
            let word = words.get(index).copied().unwrap_or("\0");
            bytes.splice(at..at, word.bytes());
        }
    }
}

/// Some bytes of so many: few, or any.
fn range(length: u64, random: &mut Random) -> std::ops::Range<usize> {
    let start = random.below(length + 1);
    let most = match random.one_in(2) {
        true => (length - start).min(16),
        false => length - start,
    };
    start as usize..(start + random.below(most + 1)) as usize
}

/// Puts a number at an edge over 1, 2, 4 or 8 bytes, or changes the number there by little.
fn number(bytes: &mut [u8], at: usize, random: &mut Random) {
    let size: usize = random.pick(&[1, 2, 4, 4, 8]);
    let aligned = at / size * size;
    let Some(place) = bytes.get_mut(aligned..aligned + size) else {
        return;
    };
    let big = random.one_in(2);
    let mut word = [0; 8];
    let value = if random.one_in(3) {
        word[..size].copy_from_slice(place);
        let old = match big {
            true => u64::from_be_bytes(word) >> (64 - 8 * size),
            false => u64::from_le_bytes(word),
        };
        old.wrapping_add(random.below(9)).wrapping_sub(4)
    } else {
        random.pick(&EDGES)
    };
    let (little, large) = (value.to_le_bytes(), value.to_be_bytes());
    let source = if big {
        &large[8 - size..]
    } else {
        &little[..size]
    };
    place.copy_from_slice(source);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(50);
    const NO_WORDS: &[&str] = &[];
    const WANTED: &[u8] = b"XYZXZYXYZX";

    fn searched(inputs: u64, read: &dyn Fn(&[u8]) -> Result<String, String>) -> Searched {
        let bounds = Search {
            seed: 1,
            inputs,
            time: None,
            patience: PATIENCE,
            words: &["X", "Y", "Z"],
        };
        search(&bounds, &[b"abc 12".to_vec()], read)
    }

    #[test]
    fn panic_is_found_with_its_input() {
        let found = searched(10_000, &|bytes| match bytes {
            [b'a', b'c', ..] => panic!("at {}", bytes.len()),
            _ => Ok(String::new()),
        });
        let (input, what) = found.find.unwrap();
        assert!(input.starts_with(b"ac") && what.starts_with("it panics: at "));
    }

    /// The letters are found one after the other, as each has an answer of its own: no input has so many changes at once.
    #[test]
    fn answers_lead_on() {
        let found = searched(200_000, &|bytes| {
            let steps = WANTED.iter().zip(bytes);
            match steps.take_while(|(want, is)| want == is).count() {
                count if count == WANTED.len() => Err(String::from("there")),
                count => Ok("far".repeat(count)),
            }
        });
        assert!(
            found
                .find
                .is_some_and(|(input, _)| input.starts_with(WANTED))
        );
    }

    #[test]
    fn slow_readers_are_found() {
        let found = searched(10, &|bytes| {
            let begun = processor_time();
            while bytes.len() > 6 && processor_time() < begun + PATIENCE {}
            Ok(String::new())
        });
        assert!(
            found
                .find
                .is_some_and(|(_, what)| what.starts_with("it takes "))
        );
    }

    #[test]
    fn searches_repeat() {
        let answer = |bytes: &[u8]| Ok(format!("{:x}", bytes.len() % 7));
        assert_eq!(searched(500, &answer), searched(500, &answer));
    }

    #[test]
    fn inputs_have_bounded_size() {
        let mut random = Random::new(3);
        let corpus = [vec![7; MAX_BYTES]];
        for _ in 0..200 {
            assert!(mutated(&corpus, NO_WORDS, &mut random).len() <= MAX_BYTES);
        }
    }

    #[test]
    fn answers_differ_in_words_alone() {
        assert_eq!(without_numbers("byte 31 of 22"), "byte # of #");
        assert_eq!(without_numbers("a 12ab"), "a #");
    }
}
