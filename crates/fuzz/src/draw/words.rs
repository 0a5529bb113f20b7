//! Draws from lists of words.

use exerciser::random::Random;

/// One of these words.
pub fn pick(random: &mut Random, words: &[&str]) -> String {
    let index = random.below(words.len() as u64) as usize;
    words
        .get(index)
        .map_or_else(String::new, |word| String::from(*word))
}
