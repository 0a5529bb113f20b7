//! What comes over the board's UART, taken apart into lines and passed on.
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
        /// What it wrote.
        text: &'a str,
    },
    /// The hypervisor, to people or to programs.
    Hypervisor(&'a str),
    /// Somebody else: the firmware, or the guest that has the console.
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
}

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

    /// Whether a line is begun that has no end yet.
    pub fn has_begun(&self) -> bool {
        !self.line.is_empty()
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
            let held = may_be_monitor && self.line.get(..compared) == monitor.get(..compared);
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

    fn end_line(&mut self) -> String {
        self.shown = 0;
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        // A console ends lines with CR LF.
        String::from(text.trim_end_matches('\r'))
    }
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
        fn lines_come_out_whole_however_bytes_come_in(
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
