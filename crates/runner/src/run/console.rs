//! Output of the board's UART, taken apart into lines and passed on.
//!
//! Guests' lines come as `[name] text`, the hypervisor's as `[partita] text`, the monitor's reports as
//! they are. Before the hypervisor's first line the firmware speaks.

use abi::monitor::PREFIX;
use abi::system::RESERVED_NAME;

/// A line of the console by who wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// A guest.
    Guest {
        /// The VM's name.
        vm: &'a str,
        /// Its text.
        text: &'a str,
    },
    /// The hypervisor, to people or to programs.
    Hypervisor(&'a str),
    /// Another writer: the firmware, or the guest that has the console.
    Bare(&'a str),
}

impl<'a> Line<'a> {
    /// Tells who wrote a line.
    pub fn of(line: &'a str) -> Self {
        if line.starts_with(PREFIX) {
            return Self::Hypervisor(line);
        }
        let parts = line.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        match parts {
            Some((RESERVED_NAME, _)) => Self::Hypervisor(line),
            Some((vm, text)) if abi::system::VmName::new(vm).is_some() => Self::Guest {
                vm,
                text: text.strip_prefix(' ').unwrap_or(text),
            },
            _ => Self::Bare(line),
        }
    }
}

/// Longest line that is kept together; what is longer is cut.
const LONGEST_LINE: usize = 16 << 10;

/// Takes the console's bytes and gives them back as lines, or as bytes without the monitor's lines.
#[derive(Debug, Default)]
pub struct Relay {
    line: Vec<u8>,
    /// How much of the present line has been given out as bytes.
    shown: usize,
    /// A report of the monitor's has begun and not ended.
    in_report: bool,
}

/// The operator's prompt, and how the first and the last line of a report go on behind [`PREFIX`].
const PROMPT: &str = "partita> ";
const BEGIN: &str = "begin";
const END: &str = "end";

impl Relay {
    /// A relay that has seen nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes and returns the lines that they end, without line ends.
    pub fn lines(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for byte in bytes {
            match byte {
                b'\n' => lines.push(self.end_line()),
                _ => self.line.push(*byte),
            }
            if self.line.len() >= LONGEST_LINE {
                lines.push(self.end_line());
            }
        }
        lines
    }

    /// Beginning of a line without an end yet.
    pub fn begun(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.line)
    }

    /// The line that was not ended, if there is one.
    pub fn rest(&mut self) -> Option<String> {
        (!self.line.is_empty()).then(|| self.end_line())
    }

    /// Takes bytes and returns those that a terminal should get at once, and the lines that ended. Of a line
    /// that may still become the monitor's nothing is given out, and of one that is nothing at all.
    pub fn bytes(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<String>) {
        let (mut out, mut lines) = (Vec::new(), Vec::new());
        for byte in bytes {
            self.line.push(*byte);
            let ended = *byte == b'\n' || self.line.len() >= LONGEST_LINE;
            let monitor = PREFIX.as_bytes();
            let compared = self.line.len().min(monitor.len());
            let may_be_monitor =
                !ended && compared < monitor.len() || self.line.len() >= monitor.len();
            let is_monitor = may_be_monitor && self.line.get(..compared) == monitor.get(..compared);
            let held = is_monitor || self.is_idle_prompt();
            if !held {
                out.extend_from_slice(self.line.get(self.shown..).unwrap_or_default());
                self.shown = self.line.len();
            }
            if ended {
                if self.line.last() == Some(&b'\n') {
                    self.line.pop();
                }
                lines.push(self.end_line());
            }
        }
        (out, lines)
    }

    /// Returns whether the line is but the prompt, which comes back between the lines of a report and is of no use there.
    fn is_idle_prompt(&self) -> bool {
        const LONGEST: usize = 40;
        let short = self.in_report && self.shown == 0 && self.line.len() <= LONGEST;
        short && {
            let text = String::from_utf8_lossy(&self.line).replace("\x1b[K", "");
            let text: String = text
                .chars()
                .filter(|one| !"\r\n\x1b[".contains(*one))
                .collect();
            PROMPT.repeat(2).starts_with(&text)
        }
    }

    fn end_line(&mut self) -> String {
        self.shown = 0;
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        if let Some(record) = text.strip_prefix(PREFIX) {
            self.in_report =
                record.starts_with(BEGIN) || self.in_report && !record.starts_with(END);
        }
        // A console ends lines with CR LF.
        String::from(text.trim_end_matches('\r'))
    }
}

/// A line without what the operator's prompt has written before it: the prompt is shown, and wiped for a line that comes meanwhile.
pub(super) fn behind_prompt(line: &str) -> &str {
    if !line.contains(PROMPT) {
        return line;
    }
    let mut rest = line;
    while let Some(less) = [PROMPT, "\r", "\x1b[K"]
        .iter()
        .find_map(|before| rest.strip_prefix(before))
    {
        rest = less;
    }
    rest
}

/// A line as a terminal shows it: without escape sequences, and without what a carriage return has written over.
pub(super) fn plain(line: &str) -> String {
    let last = line
        .rsplit('\r')
        .find(|part| !part.is_empty())
        .unwrap_or_default();
    let mut out = String::new();
    let mut characters = last.chars();
    while let Some(character) = characters.next() {
        if character != '\x1b' {
            out.push(character);
            continue;
        }
        // ECMA-48: a control sequence goes on to a character from 0x40 to 0x7e, an operating system command to ST, which
        // terminals take BEL for too.
        let _ = match characters.next() {
            Some('[') => characters.find(|end| ('@'..='~').contains(end)),
            Some(']') => {
                let mut before = ' ';
                characters.find(|end| {
                    let over = *end == '\x07' || (before == '\x1b' && *end == '\\');
                    before = *end;
                    over
                })
            }
            _ => None,
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_told_apart() {
        assert_eq!(
            Line::of("[web] a [b] c"),
            Line::Guest {
                vm: "web",
                text: "a [b] c"
            }
        );
        assert_eq!(
            Line::of("[web]"),
            Line::Guest {
                vm: "web",
                text: ""
            }
        );
        assert_eq!(
            Line::of("[partita] hello"),
            Line::Hypervisor("[partita] hello")
        );
        let record = format!("{PREFIX}end lines=1");
        assert_eq!(Line::of(&record), Line::Hypervisor(&record));
        assert_eq!(Line::of("[    0.1] Linux"), Line::Bare("[    0.1] Linux"));
        assert_eq!(Line::of("OpenSBI v1.5.1"), Line::Bare("OpenSBI v1.5.1"));
    }

    #[test]
    fn lines_behind_prompts_are_their_writers() {
        for line in [
            "[one] up",
            "\rpartita> \x1b[K\r\x1b[K[one] up",
            "partita> \r\x1b[K[one] up",
        ] {
            assert_eq!(behind_prompt(line), "[one] up");
        }
        let own = "\r\x1b[K[one] a bar";
        assert_eq!(behind_prompt(own), own);
    }

    #[test]
    fn prompts_within_reports_are_hidden() {
        let mut relay = Relay::new();
        let said = format!(
            "before\r\n{PREFIX}begin version=1\r\n\rpartita> \x1b[K\r\n{PREFIX}vm name=a\r\npartita> \r\n{PREFIX}end lines=2\r\n\rpartita> \x1b[K"
        );
        let mut shown = Vec::new();
        for byte in said.bytes() {
            shown.extend(relay.bytes(&[byte]).0);
        }
        assert_eq!(
            String::from_utf8(shown).unwrap(),
            "before\r\n\rpartita> \x1b[K"
        );
        // A guest's line is shown whatever goes on.
        let (out, _) =
            relay.bytes(format!("\r\n{PREFIX}begin version=1\r\n[a] partita> \r\n").as_bytes());
        assert_eq!(String::from_utf8(out).unwrap(), "\r\n[a] partita> \r\n");
    }

    /// Lines, some of them the monitor's, some nearly.
    fn lines() -> impl Strategy<Value = Vec<String>> {
        let line = prop_oneof![
            "[ -~]{0,20}",
            "[a-z ]{0,9}".prop_map(|rest| format!("{PREFIX}{rest}")),
            "[a-z]{0,3}".prop_map(|rest| format!("partita-moni{rest}")),
        ];
        prop::collection::vec(line, 0..8)
    }

    proptest! {
        #[test]
        fn lines_are_whole_for_any_pieces(
            lines in lines(),
            cuts in prop::collection::vec(1usize..9, 1..40),
        ) {
            let bytes: Vec<u8> = lines.iter().flat_map(|line| format!("{line}\r\n").into_bytes()).collect();
            let (mut relay, mut read) = (Relay::new(), Vec::new());
            let (mut filter, mut shown, mut filtered) = (Relay::new(), Vec::new(), Vec::new());
            let mut rest = &bytes[..];
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                read.extend(relay.lines(now));
                let (out, ended) = filter.bytes(now);
                shown.extend(out);
                filtered.extend(ended);
                rest = later;
            }
            prop_assert_eq!(&read, &lines);
            prop_assert_eq!(&filtered, &lines);
            let people: Vec<u8> = lines
                .iter()
                .filter(|line| !line.starts_with(PREFIX))
                .flat_map(|line| format!("{line}\r\n").into_bytes())
                .collect();
            prop_assert_eq!(shown, people);
        }
    }
}
