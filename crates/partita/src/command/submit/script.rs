//! Scripts of the shell for a task and for the table.

/// A series that tasks share.
#[derive(Debug, Clone)]
pub(super) struct Series<'a> {
    /// The command of this program.
    pub(super) command: String,
    /// Its arguments.
    pub(super) arguments: &'a [String],
    /// The folder of the shards' results.
    pub(super) folder: String,
    /// How many tasks there are.
    pub(super) tasks: u32,
}

/// Times that a task makes its shard before it gives up.
const TRIES: &str = "1 2 3";

impl Series<'_> {
    /// The command with its arguments.
    fn line(&self) -> String {
        let words = std::iter::once(&self.command).chain(self.arguments);
        let words: Vec<String> = words.map(|word| quoted(word)).collect();
        words.join(" ")
    }

    /// The script of a task. `number` is what the shell takes for the task's number, from 1.
    ///
    /// Mistakes, and runs that fail, come again: exit codes 1 to 4 end the task. Whatever else ends a shard is tried again, and goes on where it
    /// was. A mark says that the shard is whole.
    pub(super) fn task(&self, number: &str) -> String {
        let (folder, line, tasks) = (quoted(&self.folder), self.line(), self.tasks);
        format!(
            "folder={folder}\n\
             number={number}\n\
             mkdir -p \"$folder\"\n\
             rm -f \"$folder/$number.done\"\n\
             for try in {TRIES}; do\n\
             \x20   code=0\n\
             \x20   {line} --shard \"$number/{tasks}\" --results \"$folder/$number.jsonl\" || code=$?\n\
             \x20   case $code in\n\
             \x20   0) touch \"$folder/$number.done\" && exit 0 ;;\n\
             \x20   1 | 2 | 3 | 4) exit \"$code\" ;;\n\
             \x20   esac\n\
             done\n\
             exit \"$code\"\n"
        )
    }

    /// The script that puts the shards together and shows the table.
    pub(super) fn table(&self) -> String {
        let (folder, line, tasks) = (quoted(&self.folder), self.line(), self.tasks);
        let command = quoted(&self.command);
        format!(
            "set -eu\n\
             folder={folder}\n\
             (cd \"$folder\" && seq -f '%.0f.jsonl' 1 {tasks} | xargs -n 1000 {command} results merge all.jsonl)\n\
             {line} --results \"$folder/all.jsonl\"\n"
        )
    }
}

/// A word that the shell takes as it is (POSIX, Shell Command Language, §2.2.2).
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_takes_words_as_they_are() {
        for word in ["", "a b", "it's", "$HOME `id` \"x\" \\", "''"] {
            let script = format!("printf %s {}", quoted(word));
            let shell = std::process::Command::new("sh")
                .args(["-c", &script])
                .output();
            assert_eq!(String::from_utf8(shell.unwrap().stdout).unwrap(), word);
        }
    }

    #[test]
    fn broken_runs_are_tried_again() {
        for (code, times) in [(0, 1), (1, 1), (3, 1), (5, 3), (130, 3)] {
            let folder = tempfile::tempdir().unwrap();
            let calls = folder.path().join("calls");
            let program = format!("echo call >> {}; exit {code}", calls.display());
            let arguments = ["-c", &program].map(String::from);
            let series = Series {
                command: String::from("sh"),
                arguments: &arguments,
                folder: folder.path().join("series").display().to_string(),
                tasks: 7,
            };
            let task = std::process::Command::new("sh")
                .args(["-c", &series.task("3")])
                .status();
            assert_eq!(task.unwrap().code(), Some(code), "{code}");
            let calls = std::fs::read_to_string(calls).unwrap();
            assert_eq!(calls.lines().count(), times, "{code}");
            let done = folder.path().join("series/3.done").exists();
            assert_eq!(done, code == 0, "{code}");
        }
    }
}
