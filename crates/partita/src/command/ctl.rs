//! `partita ctl`: a client of a run's control socket.

use super::failure::{Failure, at};
use super::output;
use runner::protocol::{Answer, ErrorCode, Request};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  partita run systems/two-debian.toml --control socket &
  partita ctl socket vm list                a command of the operator's prompt; help lists them
  partita ctl socket stats                  the performance monitor's tables
  partita ctl socket --json stats           the same for programs
  partita ctl socket events                 all lines of guests and of the hypervisor from here on
  partita ctl socket power-off              powers every VM off, which ends the run";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CtlArguments {
    /// The socket of `partita run --control`
    #[arg(value_name = "SOCKET")]
    socket: PathBuf,
    /// Shows answers as the socket gives them, each a line of JSON
    #[arg(long)]
    json: bool,
    /// A command of the operator's prompt, or version, events or power-off
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true)]
    words: Vec<String>,
}

/// The request that the words are.
fn request(words: &[String]) -> Request {
    let line = words.join(" ");
    match line.as_str() {
        "version" => Request::Version {},
        "events" => Request::Events {},
        "power-off" => Request::PowerOff {},
        _ => Request::Command { line },
    }
}

pub(super) fn execute(arguments: &CtlArguments) -> Result<(), Failure> {
    let path = &arguments.socket;
    let request = request(&arguments.words);
    let mut socket = UnixStream::connect(path).map_err(at(path))?;
    let line = serde_json::to_string(&request).map_err(|error| at(path)(error.into()))?;
    writeln!(socket, "{line}").map_err(at(path))?;
    let mut answers = BufReader::new(socket).lines();
    loop {
        let line = match answers.next() {
            Some(line) => line.map_err(at(path))?,
            // Events end with the run.
            None if matches!(request, Request::Events {}) => return Ok(()),
            None => {
                return Err(Failure::Unmade(String::from(
                    "the run ended before it answered",
                )));
            }
        };
        let answer: Answer = serde_json::from_str(&line).map_err(|error| {
            let path = path.display();
            Failure::Usage(format!(
                "{path}: this is no control socket of a run: {error}"
            ))
        })?;
        if arguments.json {
            output::say_unfolded(&(line + "\n"));
        }
        show(&answer, arguments.json)?;
        let goes_on = matches!(answer, Answer::Events {} | Answer::Event { .. });
        if !goes_on || !output::is_read() {
            return Ok(());
        }
    }
}

/// Shows an answer to people, unless programs have had it.
fn show(answer: &Answer, shown: bool) -> Result<(), Failure> {
    match answer {
        Answer::Error { code, message } => {
            return Err(match code {
                ErrorCode::BadRequest | ErrorCode::BadCommand => Failure::Usage(message.clone()),
                ErrorCode::Over => Failure::Unmade(message.clone()),
            });
        }
        _ if shown => {}
        Answer::Version { protocol, partita } => {
            output::say_line(format_args!("protocol {protocol}, partita {partita}"));
        }
        Answer::Command { lines, report, .. } => {
            for line in lines {
                output::say_line(format_args!("{line}"));
            }
            if let Some(report) = report {
                output::say(format_args!("{report}"));
            }
        }
        Answer::Event { source, text } => output::say_line(format_args!("[{source}] {text}")),
        Answer::PowerOff {} | Answer::Events {} => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_requests() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        assert_eq!(request(&words("power-off")), Request::PowerOff {});
        assert_eq!(request(&words("events")), Request::Events {});
        let line = String::from("share web 30");
        assert_eq!(request(&words("share web 30")), Request::Command { line });
    }
}
