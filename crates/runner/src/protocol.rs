//! The protocol of the control socket (`run --control`): requests and answers, each a line of JSON.
//!
//! A client sends a [`Request`] a line and gets an [`Answer`] a line for each, in order. A line that is no JSON object is a command as an
//! operator says it, so that `printf 'vm list\n'` is a client. After [`Request::Events`] the connection brings events alone.

use crate::report::Report;
use serde::{Deserialize, Serialize};

/// Version of the protocol. A request or a member of an answer may be added in the same version; what is there keeps its meaning.
pub const VERSION: u32 = 1;
/// Longest command for the operator's prompt, in bytes.
pub const MAX_COMMAND: usize = 200;
/// Longest line of a request, in bytes.
pub const MAX_LINE: usize = 4096;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Asks for the protocol's version.
    Version {},
    /// Says a line at the operator's prompt.
    Command {
        /// The line.
        line: String,
    },
    /// Powers every VM off, which ends the run.
    PowerOff {},
    /// Asks for all lines of guests and of the hypervisor from here on, until the run ends.
    Events {},
}

/// An answer, or an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Answer {
    /// To [`Request::Version`].
    Version {
        /// Version of the protocol.
        protocol: u32,
        /// Version of Partita.
        partita: String,
    },
    /// To [`Request::Command`].
    Command {
        /// The command.
        command: String,
        /// The hypervisor's answer.
        lines: Vec<String>,
        /// Report of the performance monitor, to the command `stats`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        report: Option<Box<Report>>,
    },
    /// To [`Request::PowerOff`]: the VMs are being powered off.
    PowerOff {},
    /// To [`Request::Events`]: events follow.
    Events {},
    /// A line of a guest or of the hypervisor.
    Event {
        /// The VM's name; `partita` for the hypervisor.
        source: String,
        /// The line.
        text: String,
    },
    /// The request was not carried out.
    Error {
        /// Reason, for programs.
        code: ErrorCode,
        /// Reason, for people.
        message: String,
    },
}

/// Reason why a request was not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The line is no request of this version.
    BadRequest,
    /// The command is empty, too long or has characters that cannot be typed.
    BadCommand,
    /// The run is over.
    Over,
}

impl ErrorCode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::BadRequest, Self::BadCommand, Self::Over];
}

impl Answer {
    /// An error.
    pub fn error(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Error { code, message }
    }
}

impl Request {
    /// Reads a client's line.
    ///
    /// # Errors
    /// [`Answer::Error`] for the client.
    pub fn read(line: &str) -> Result<Self, Answer> {
        let line = line.trim();
        let request = match line.starts_with('{') {
            true => serde_json::from_str(line).map_err(|error| {
                let message = format!(
                    "{error}; version {VERSION} of the protocol has the requests version, command, power-off and events"
                );
                Answer::error(ErrorCode::BadRequest, message)
            })?,
            false => Self::Command {
                line: String::from(line),
            },
        };
        match &request {
            Self::Command { line } if !is_command(line) => {
                let message =
                    format!("a command is a line of at most {MAX_COMMAND} printable characters");
                Err(Answer::error(ErrorCode::BadCommand, message))
            }
            _ => Ok(request),
        }
    }
}

/// Returns whether a line can be typed at the prompt.
fn is_command(line: &str) -> bool {
    let length = 1..=MAX_COMMAND;
    length.contains(&line.len()) && line.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_lines_of_json() {
        let command = |line: &str| Request::Command {
            line: String::from(line),
        };
        for (text, request) in [
            (r#"{"request":"version"}"#, Request::Version {}),
            (
                r#"{"request":"command","line":"vm list"}"#,
                command("vm list"),
            ),
            (r#"{"request":"power-off"}"#, Request::PowerOff {}),
            (r#"{"request":"events"}"#, Request::Events {}),
        ] {
            assert_eq!(Request::read(text), Ok(request.clone()));
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
        }
        assert_eq!(Request::read(" vm list \r"), Ok(command("vm list")));
    }

    #[test]
    fn wrong_requests_get_errors_with_codes() {
        let long = "v".repeat(MAX_COMMAND + 1);
        let long = format!("{{\"request\":\"command\",\"line\":\"{long}\"}}");
        for (text, expected) in [
            (r#"{"request":"reboot"}"#, ErrorCode::BadRequest),
            (r#"{"request":"command"}"#, ErrorCode::BadRequest),
            (r#"{"request":"version","vm":"a"}"#, ErrorCode::BadRequest),
            ("{", ErrorCode::BadRequest),
            ("", ErrorCode::BadCommand),
            ("vm\x07list", ErrorCode::BadCommand),
            (&long, ErrorCode::BadCommand),
        ] {
            match Request::read(text) {
                Err(Answer::Error { code, .. }) => assert_eq!(code, expected, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
}
