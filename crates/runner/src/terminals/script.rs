//! Lines that a user types, and expected answers.

use machine::device::Random;

/// Prompt of the guest's shell (guests/init).
pub const SHELL: &str = "ready> ";
/// Prompt of the guest's editor.
pub const EDITOR: &str = "edit> ";

/// Program that waits for a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompt {
    /// The shell.
    Shell,
    /// The editor.
    Editor,
}

/// Keys that are sent at once, and the expected answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Keys, with their line ends.
    pub keys: String,
    /// Expected answer, beside the echo of the keys.
    pub expected: Option<String>,
}

/// An edit session: open the file, add lines to it, look at them, change them, keep them, leave; then a look at the file
/// with another program.
#[derive(Debug, Clone)]
pub struct Script {
    random: Random,
    /// Number of the next step within the editor.
    step: u32,
    /// Lines in the file, and those added since it was opened.
    lines: u64,
    added: u64,
    /// The last line that was added.
    last: String,
}

/// Lines that a session adds.
const ADDED: u64 = 3;

impl Script {
    /// A script that follows from the seed.
    pub const fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            step: 0,
            lines: 0,
            added: 0,
            last: String::new(),
        }
    }

    /// The next line for a user who waits for one.
    pub fn next(&mut self, prompt: Prompt) -> Line {
        match prompt {
            Prompt::Shell => self.command(),
            Prompt::Editor => self.edit(),
        }
    }

    /// How to leave. A session that is broken off is not kept.
    pub fn leave(prompt: Prompt) -> Line {
        let keys = match prompt {
            Prompt::Shell => "exit\n",
            Prompt::Editor => "Q\n",
        };
        Line {
            keys: String::from(keys),
            expected: None,
        }
    }

    fn command(&mut self) -> Line {
        let count = self.lines;
        let (keys, expected) = match self.random.below(4) {
            0 if count > 0 => (
                String::from("wc -l notes\n"),
                Some(format!("{count} notes")),
            ),
            1 if count > 0 => (
                String::from("sort notes | uniq | wc -l\n"),
                Some(format!("\n{count}\r")),
            ),
            _ => {
                (self.step, self.added) = (0, 0);
                (String::from("edit notes\n"), None)
            }
        };
        Line { keys, expected }
    }

    fn edit(&mut self) -> Line {
        self.step += 1;
        let step = u64::from(self.step);
        let (keys, expected) = if step <= ADDED {
            self.added += 1;
            let (number, word) = (self.lines + self.added, self.random.below(1 << 32));
            self.last = format!("line {number} with the word {word:08x} in it");
            (format!("$a\n{}\n.\n", self.last), None)
        } else if step == ADDED + 1 {
            (String::from("$p\n"), Some(self.last.clone()))
        } else if step == ADDED + 2 {
            self.last = self.last.replace("with the word", "changed to");
            let keys = String::from("$s/with the word/changed to/\n");
            (keys, None)
        } else if step == ADDED + 3 {
            (String::from("$p\n"), Some(self.last.clone()))
        } else if step == ADDED + 4 {
            self.lines += self.added;
            (String::from("w\n"), None)
        } else {
            (String::from("q\n"), None)
        };
        Line { keys, expected }
    }
}
