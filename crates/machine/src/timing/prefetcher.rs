//! A prefetcher that follows ascending streams of lines.

use serde::{Deserialize, Serialize};

use super::LINE_SHIFT;
use crate::base::PAGE_SHIFT;
use crate::profile::PrefetcherProfile;

/// The number of a line in its page.
const PAGE_LINES_MASK: u64 = (1 << (PAGE_SHIFT - LINE_SHIFT)) - 1;

/// A stream of lines, each one behind the one before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stream {
    /// The line that was accessed last.
    last: u64,
    /// The first line that has not been asked for.
    ahead: u64,
    /// True if a second access has followed the first.
    confirmed: bool,
    /// Number of the access that used it last.
    used: u64,
}

/// The streams of a hart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Prefetcher {
    profile: PrefetcherProfile,
    streams: Vec<Stream>,
    accesses: u64,
}

impl Prefetcher {
    /// A prefetcher that knows no stream.
    pub fn new(profile: PrefetcherProfile) -> Self {
        Self {
            profile,
            streams: vec![Stream::default(); profile.streams.into()],
            accesses: 0,
        }
    }

    /// Tests whether it is what a profile describes, and whole.
    pub fn is_of(&self, profile: PrefetcherProfile) -> bool {
        self.profile == profile && self.streams.len() == usize::from(profile.streams)
    }

    /// Lines that may be on their way at once.
    pub fn limit(&self) -> usize {
        self.profile.outstanding.into()
    }

    /// Notes a miss, or the first use of a prefetched line. Gives the stream that it belongs to, and the lines that the stream then
    /// wants: those in front of it in its page that have not been asked for.
    pub fn note(&mut self, line: u64) -> Option<(usize, std::ops::Range<u64>)> {
        self.accesses += 1;
        let distance = u64::from(self.profile.distance);
        let belongs = |stream: &Stream| {
            let reach = if stream.confirmed { distance } else { 1 };
            (1..=reach).contains(&line.wrapping_sub(stream.last))
        };
        let Some(index) = self.streams.iter().position(belongs) else {
            let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used)?;
            *oldest = Stream {
                last: line,
                ahead: line + 1,
                confirmed: false,
                used: self.accesses,
            };
            return None;
        };
        let stream = self.streams.get_mut(index)?;
        *stream = Stream {
            last: line,
            ahead: stream.ahead.max(line + 1),
            confirmed: true,
            used: self.accesses,
        };
        let page_end = (line | PAGE_LINES_MASK) + 1;
        let end = (line + 1 + distance).min(page_end);
        (stream.ahead < end).then_some((index, stream.ahead..end))
    }

    /// A stream has asked for all lines before this one.
    pub fn advance(&mut self, stream: usize, ahead: u64) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.ahead = ahead;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefetcher() -> Prefetcher {
        Prefetcher::new(PrefetcherProfile {
            streams: 2,
            distance: 4,
            outstanding: 4,
        })
    }

    #[test]
    fn a_second_line_confirms_its_stream() {
        let mut prefetcher = prefetcher();
        assert_eq!(prefetcher.note(128), None);
        let (stream, lines) = prefetcher.note(129).expect("a stream");
        assert_eq!(lines, 130..134);
        prefetcher.advance(stream, 134);
        assert_eq!(prefetcher.note(130), Some((stream, 134..135)));
        // What had no room is wanted again.
        assert_eq!(prefetcher.note(131), Some((stream, 134..136)));
    }

    #[test]
    fn streams_end_at_their_page() {
        let mut prefetcher = prefetcher();
        prefetcher.note(189);
        assert_eq!(prefetcher.note(190).map(|(_, lines)| lines), Some(191..192));
        prefetcher.advance(0, 192);
        assert_eq!(prefetcher.note(191), None);
        // The next page's first line goes on with it.
        assert_eq!(prefetcher.note(192).map(|(_, lines)| lines), Some(193..197));
    }

    #[test]
    fn chases_and_descents_are_no_streams() {
        let mut prefetcher = prefetcher();
        for line in [1000, 500, 2000, 1999, 1998, 77] {
            assert_eq!(prefetcher.note(line), None);
        }
    }
}
