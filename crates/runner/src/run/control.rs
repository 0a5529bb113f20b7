//! The operator's prompt for programs: a socket that takes a command a line and answers each with a line of JSON.
//!
//! `{"command":"vm list","lines":["1 web ..."]}`; `stats` has the performance monitor's report as `report` too. While a
//! command is carried out, the next waits.

use super::console::{Line, Relay, plain};
use crate::report::Report;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

/// The keys that open the operator's prompt, and the one that ends a line there; an empty line leaves it.
const OPEN: &[u8] = b"\x1dm";
const ENTER: u8 = b'\r';
/// The prompt.
const PROMPT: &str = "partita> ";
/// Longest command.
const LONGEST: usize = 200;

/// A command, and where its answer goes.
#[derive(Debug)]
pub(super) struct Request {
    command: String,
    answer: Sender<Value>,
}

/// The socket's file, which goes when this is dropped.
#[derive(Debug)]
pub(super) struct Socket(PathBuf);

impl Socket {
    /// Listens at `path`; each request goes to `take`, which says whether the run still goes on.
    pub(super) fn listen(
        path: &Path,
        take: impl Fn(Request) -> bool + Clone + Send + 'static,
    ) -> std::io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let take = take.clone();
                std::thread::spawn(move || serve(stream, &take));
            }
        });
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The file may have been removed already.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Answers the commands of a client until the client leaves or the run is over.
fn serve(stream: UnixStream, take: &dyn Fn(Request) -> bool) {
    let Ok(mut out) = stream.try_clone() else {
        return;
    };
    for line in BufReader::new(stream).lines() {
        let Ok(command) = line.map(|line| String::from(line.trim())) else {
            return;
        };
        let over = || json!({ "command": command, "error": "the run is over" });
        let answer = if command.is_empty()
            || command.len() > LONGEST
            || !command.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        {
            let error = format!("a command is a line of at most {LONGEST} printable characters");
            json!({ "command": command, "error": error })
        } else {
            let (answer, answered) = channel();
            let request = Request {
                command: command.clone(),
                answer,
            };
            if take(request) {
                answered.recv().unwrap_or_else(|_| over())
            } else {
                over()
            }
        };
        if writeln!(out, "{answer}").is_err() {
            return;
        }
    }
}

/// The requests of a run, one after another.
#[derive(Debug, Default)]
pub(super) struct Control {
    waiting: VecDeque<Request>,
    present: Option<Present>,
}

/// The request that is being carried out.
#[derive(Debug)]
struct Present {
    request: Request,
    /// The prompt has shown the command as typed.
    begun: bool,
    lines: Vec<String>,
    /// How many reports there had been before.
    reports: usize,
}

impl Control {
    /// Takes a request.
    pub(super) fn take(&mut self, request: Request) {
        self.waiting.push_back(request);
    }

    /// The keys that are to be typed now, if a request waits and none is being carried out. `reports` is how many of the
    /// monitor's reports there have been.
    pub(super) fn keys(&mut self, reports: usize) -> Option<Vec<u8>> {
        if self.present.is_some() {
            return None;
        }
        let request = self.waiting.pop_front()?;
        let mut keys = OPEN.to_vec();
        keys.extend(request.command.bytes());
        keys.push(ENTER);
        self.present = Some(Present {
            request,
            begun: false,
            lines: Vec::new(),
            reports,
        });
        Some(keys)
    }

    /// Takes a line of the console.
    pub(super) fn line(&mut self, line: &str) {
        let Some(present) = &mut self.present else {
            return;
        };
        let shown = plain(line);
        if !present.begun {
            let typed = shown.rsplit_once(PROMPT).map(|(_, typed)| typed.trim_end());
            present.begun = typed == Some(present.request.command.as_str());
            return;
        }
        let rest = shown
            .rsplit_once(PROMPT)
            .map_or(shown.as_str(), |(_, rest)| rest);
        if let Line::Hypervisor(text) = Line::of(rest)
            && let Some((_, said)) = text.split_once("] ")
        {
            present.lines.push(String::from(said));
        }
    }

    /// Answers if the prompt has come back; the keys that leave it then.
    pub(super) fn answer(
        &mut self,
        relay: &Relay,
        reports: usize,
        report: impl FnOnce() -> Option<Report>,
    ) -> Option<Vec<u8>> {
        let is_back = plain(&relay.begun()).ends_with(PROMPT);
        let present = self.present.take_if(|present| present.begun && is_back)?;
        let mut answer = json!({ "command": present.request.command, "lines": present.lines });
        if reports > present.reports
            && let (Some(object), Some(report)) = (answer.as_object_mut(), report())
        {
            object.insert(
                String::from("report"),
                serde_json::to_value(report).unwrap_or_default(),
            );
        }
        // The client may be gone.
        let _ = present.request.answer.send(answer);
        Some(vec![ENTER])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_lies_between_two_prompts() {
        let (answer, answered) = channel();
        let mut control = Control::default();
        let mut relay = Relay::new();
        assert_eq!(control.keys(0), None);
        control.take(Request {
            command: String::from("vm list"),
            answer,
        });
        assert_eq!(control.keys(0).unwrap(), b"\x1dmvm list\r");
        assert_eq!(control.keys(0), None);
        let said = "[web] before\r\npartita> \x1b[K\rpartita> vm\x1b[K\rpartita> vm list\x1b[K\r\n\
                    [partita] 1 web\r\n[web] [partita] not the hypervisor\r\n[partita] 2 db\r\n";
        for line in relay.lines(said.as_bytes()) {
            control.line(&line);
        }
        assert_eq!(control.answer(&relay, 0, || None), None);
        relay.lines(b"partita> \x1b[K");
        assert_eq!(control.answer(&relay, 0, || None).unwrap(), b"\r");
        let expected = json!({ "command": "vm list", "lines": ["1 web", "2 db"] });
        assert_eq!(answered.recv().unwrap(), expected);
        assert_eq!(control.answer(&relay, 0, || None), None);
    }

    #[test]
    fn socket_answers_lines_and_ends_with_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let take = |request: Request| {
            let _ = request.answer.send(json!({ "command": request.command }));
            true
        };
        let socket = Socket::listen(&path, take).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(b"vm list\nvm\x07list\n").unwrap();
        let mut answers = BufReader::new(client.try_clone().unwrap()).lines();
        assert_eq!(
            answers.next().unwrap().unwrap(),
            "{\"command\":\"vm list\"}"
        );
        assert!(answers.next().unwrap().unwrap().contains("printable"));
        drop(socket);
        assert!(!path.exists());
    }
}
