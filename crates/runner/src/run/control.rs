//! The control socket of a run: takes requests and answers them, by the operator's prompt where an operator would.

use super::console::{Line, Relay, plain};
use crate::protocol::{Answer, ErrorCode, MAX_LINE, Request, VERSION};
use crate::report::Report;
use abi::system::RESERVED_NAME;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};

/// The keys that open the operator's prompt, and the one that ends a line there; an empty line leaves it.
const OPEN: &[u8] = b"\x1dm";
const ENTER: u8 = b'\r';
/// The prompt.
const PROMPT: &str = "partita> ";

/// A request, and where its answers go.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    pub(super) answer: Sender<Answer>,
}

/// The socket's file, which goes when this is dropped.
#[derive(Debug)]
pub(super) struct Socket(PathBuf);

impl Socket {
    /// Listens at `path`; each request goes to `take`, which says whether the run still goes on.
    pub(super) fn listen(
        path: &Path,
        take: impl Fn(Asked) -> bool + Clone + Send + 'static,
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

/// Answers the requests of a client until the client leaves or the run is over.
fn serve(stream: UnixStream, take: &dyn Fn(Asked) -> bool) {
    let Ok(mut out) = stream.try_clone() else {
        return;
    };
    let mut lines = BufReader::new(stream);
    while let Some(line) = next_line(&mut lines) {
        let followed = match Request::read(&String::from_utf8_lossy(&line)) {
            Ok(request) => pass_on(request, take, &mut out),
            Err(refusal) => send(&mut out, &refusal),
        };
        if followed.is_err() {
            return;
        }
    }
}

/// The next line of a client, cut where it is longer than any request; `None` at the end.
fn next_line(lines: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let most = MAX_LINE as u64 + 1;
    let read = lines.by_ref().take(most).read_until(b'\n', &mut line);
    matches!(read, Ok(1..)).then_some(line)
}

/// Passes a request on to the run, and its answers to the client.
fn pass_on(
    request: Request,
    take: &dyn Fn(Asked) -> bool,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let (answer, answered) = channel();
    let wants_events = matches!(request, Request::Events {});
    let first = match take(Asked { request, answer }) {
        true => answered.recv().ok(),
        false => None,
    };
    let over = || Answer::error(ErrorCode::Over, "the run is over");
    send(out, &first.unwrap_or_else(over))?;
    match wants_events {
        true => answered.iter().try_for_each(|event| send(out, &event)),
        false => Ok(()),
    }
}

fn send(out: &mut impl Write, answer: &Answer) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    out.write_all(&line)
}

/// The requests of a run, one after another.
#[derive(Debug, Default)]
pub(super) struct Control {
    waiting: VecDeque<(String, Sender<Answer>)>,
    present: Option<Present>,
    /// The prompt has been left, and its last line is yet to come.
    leaves: bool,
    /// Those who want events.
    listeners: Vec<Sender<Answer>>,
}

/// The command that is being carried out.
#[derive(Debug)]
struct Present {
    command: String,
    answer: Sender<Answer>,
    /// The prompt has shown the command as typed.
    begun: bool,
    lines: Vec<String>,
    /// How many reports there had been before.
    reports: usize,
}

impl Control {
    /// Takes a request. True if the run is to be powered off.
    pub(super) fn take(&mut self, asked: Asked) -> bool {
        let Asked { request, answer } = asked;
        // A client may be gone.
        let _ = match &request {
            Request::Version {} => answer.send(Answer::Version {
                protocol: VERSION,
                partita: String::from(env!("CARGO_PKG_VERSION")),
            }),
            Request::PowerOff {} => answer.send(Answer::PowerOff {}),
            Request::Events {} => answer.send(Answer::Events {}),
            Request::Command { .. } => Ok(()),
        };
        match request {
            Request::Command { line } => self.waiting.push_back((line, answer)),
            Request::Events {} => self.listeners.push(answer),
            Request::PowerOff {} => return true,
            Request::Version {} => {}
        }
        false
    }

    /// The keys that are to be typed now, if a command waits and none is being carried out. `reports` is how many of the
    /// monitor's reports there have been.
    pub(super) fn keys(&mut self, reports: usize) -> Option<Vec<u8>> {
        if self.present.is_some() {
            return None;
        }
        let (command, answer) = self.waiting.pop_front()?;
        let mut keys = OPEN.to_vec();
        keys.extend(command.bytes());
        keys.push(ENTER);
        self.present = Some(Present {
            command,
            answer,
            begun: false,
            lines: Vec::new(),
            reports,
        });
        Some(keys)
    }

    /// Takes a line of the console. True if it shows what was typed for a request, which is of no use to people.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let shown = plain(line);
        let rest = shown.rsplit_once(PROMPT);
        let said = rest.map_or(shown.as_str(), |(_, rest)| rest);
        let line = Line::of(said);
        let is_echo = shown.starts_with(PROMPT)
            && matches!(line, Line::Bare(_))
            && (self.present.is_some() || self.leaves);
        self.leaves &= !is_echo;
        if !is_echo {
            self.tell(line);
        }
        let Some(present) = &mut self.present else {
            return is_echo;
        };
        if !present.begun {
            let typed = rest.map(|(_, typed)| typed.trim_end());
            present.begun = typed == Some(present.command.as_str());
        } else if let Line::Hypervisor(text) = line
            && let Some((_, said)) = text.split_once("] ")
        {
            present.lines.push(String::from(said));
        }
        is_echo
    }

    /// Sends a line to those who want events; those who are gone are forgotten.
    fn tell(&mut self, line: Line<'_>) {
        let (source, text) = match line {
            Line::Guest { vm, text } => (vm, text),
            // Lines for programs have no name in brackets.
            Line::Hypervisor(text) => match text.split_once("] ") {
                Some((_, said)) => (RESERVED_NAME, said),
                None => return,
            },
            Line::Bare(_) => return,
        };
        self.listeners.retain(|listener| {
            let (source, text) = (String::from(source), String::from(text));
            listener.send(Answer::Event { source, text }).is_ok()
        });
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
        let report = (reports > present.reports).then(report).flatten();
        // The client may be gone.
        let _ = present.answer.send(Answer::Command {
            command: present.command,
            lines: present.lines,
            report: report.map(Box::new),
        });
        self.leaves = true;
        Some(vec![ENTER])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request, with its answers.
    fn asked(request: Request) -> (Asked, std::sync::mpsc::Receiver<Answer>) {
        let (answer, answered) = channel();
        (Asked { request, answer }, answered)
    }

    fn command(line: &str) -> Request {
        Request::Command {
            line: String::from(line),
        }
    }

    #[test]
    fn answer_lies_between_two_prompts() {
        let mut control = Control::default();
        let mut relay = Relay::new();
        assert_eq!(control.keys(0), None);
        let (request, answered) = asked(command("vm list"));
        assert!(!control.take(request));
        assert_eq!(control.keys(0).unwrap(), b"\x1dmvm list\r");
        assert_eq!(control.keys(0), None);
        let said = "[web] before\r\npartita> \x1b[K\rpartita> vm\x1b[K\rpartita> vm list\x1b[K\r\n\
                    [partita] 1 web\r\n[web] [partita] not the hypervisor\r\n[partita] 2 db\r\n";
        let echoes = relay.lines(said.as_bytes()).into_iter();
        let echoes: Vec<bool> = echoes.map(|line| control.line(&line)).collect();
        assert_eq!(echoes, [false, true, false, false, false]);
        assert_eq!(control.answer(&relay, 0, || None), None);
        relay.lines(b"partita> \x1b[K");
        assert_eq!(control.answer(&relay, 0, || None).unwrap(), b"\r");
        let expected = Answer::Command {
            command: String::from("vm list"),
            lines: vec![String::from("1 web"), String::from("2 db")],
            report: None,
        };
        assert_eq!(answered.recv().unwrap(), expected);
        assert_eq!(control.answer(&relay, 0, || None), None);
        // The prompt's last line is an echo too, and what an operator types is not.
        assert!(control.line("partita> \r"));
        assert!(!control.line("partita> vm list"));
    }

    #[test]
    fn events_are_lines_with_their_sources() {
        let mut control = Control::default();
        let (request, answered) = asked(Request::Events {});
        assert!(!control.take(request));
        for line in [
            "[web] up",
            "OpenSBI",
            "[partita] web: stopped",
            "partita-monitor end lines=1",
        ] {
            assert!(!control.line(line));
        }
        let event = |source: &str, text: &str| Answer::Event {
            source: String::from(source),
            text: String::from(text),
        };
        let expected = [
            Answer::Events {},
            event("web", "up"),
            event("partita", "web: stopped"),
        ];
        assert_eq!(answered.try_iter().collect::<Vec<_>>(), expected);
        drop(answered);
        control.line("[web] more");
        assert!(control.listeners.is_empty());
    }

    #[test]
    fn power_off_ends_the_run() {
        let (request, answered) = asked(Request::PowerOff {});
        assert!(Control::default().take(request));
        assert_eq!(answered.recv().unwrap(), Answer::PowerOff {});
    }

    #[test]
    fn socket_answers_lines_and_ends_with_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let take = |asked: Asked| {
            let is_over = asked.request == command("stats");
            Control::default().take(asked);
            !is_over
        };
        let socket = Socket::listen(&path, take).unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        client
            .write_all(b"{\"request\":\"version\"}\nvm\x07list\nstats\n")
            .unwrap();
        let answers = BufReader::new(client.try_clone().unwrap()).lines();
        let answers: Vec<Answer> = answers
            .take(3)
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect();
        assert!(matches!(
            answers[0],
            Answer::Version {
                protocol: VERSION,
                ..
            }
        ));
        for (answer, expected) in answers[1..]
            .iter()
            .zip([ErrorCode::BadCommand, ErrorCode::Over])
        {
            assert!(matches!(answer, Answer::Error { code, .. } if *code == expected));
        }
        drop(socket);
        assert!(!path.exists());
    }
}
