//! Lanes of a timeline that is being recorded: lanes within a window, as long as there is room.

use super::{Flow, Lane, Mark, Owner, Slice, SliceKind, Window};
use std::collections::BTreeMap;

/// The lanes so far.
#[derive(Debug)]
pub(super) struct LaneRecorder {
    window: Window,
    /// When a vCPU first had a hart.
    pub(super) begun: Option<u64>,
    lanes: BTreeMap<Owner, Lane>,
    count: usize,
    /// Count of what found no room.
    pub(super) lost: u64,
}

impl LaneRecorder {
    pub(super) const fn new(window: Window) -> Self {
        Self {
            window,
            begun: None,
            lanes: BTreeMap::new(),
            count: 0,
            lost: 0,
        }
    }

    /// Hands the lanes over, each in the order of time.
    pub(super) fn take(&mut self) -> Vec<Lane> {
        let mut lanes: Vec<Lane> = std::mem::take(&mut self.lanes).into_values().collect();
        for lane in &mut lanes {
            lane.slices
                .sort_by_key(|slice| (slice.start, u64::MAX - slice.end));
            lane.marks.sort_by_key(|mark| mark.at);
        }
        lanes
    }

    /// Writes a stretch down, as far as the window shows it.
    pub(super) fn slice(
        &mut self,
        owner: Owner,
        start: u64,
        end: u64,
        kind: SliceKind,
        name: String,
        details: Vec<(&'static str, String)>,
    ) {
        let Some((from, to)) = self.shown() else {
            return;
        };
        let (start, end) = (start.max(from), end.min(to));
        if start >= end || !self.has_room() {
            return;
        }
        self.lane(owner).slices.push(Slice {
            start,
            end,
            kind,
            name,
            details,
        });
    }

    /// Writes a moment down, if the window shows it.
    pub(super) fn mark(
        &mut self,
        owner: Owner,
        at: u64,
        name: String,
        details: Vec<(&'static str, String)>,
        flows: Vec<Flow>,
    ) {
        let inside = self
            .shown()
            .is_some_and(|(from, to)| (from..=to).contains(&at));
        if !inside || !self.has_room() {
            return;
        }
        self.lane(owner).marks.push(Mark {
            at,
            name,
            details,
            flows,
        });
    }

    /// The window in nanoseconds since reset.
    pub(super) fn shown(&self) -> Option<(u64, u64)> {
        let begun = self.begun?;
        let from = begun.saturating_add(self.window.start);
        Some((from, begun.saturating_add(self.window.end)))
    }

    fn has_room(&mut self) -> bool {
        let room = self.count < self.window.most;
        if room {
            self.count += 1;
        } else {
            self.lost += 1;
        }
        room
    }

    fn lane(&mut self, owner: Owner) -> &mut Lane {
        self.lanes.entry(owner.clone()).or_insert_with(|| Lane {
            owner,
            slices: Vec::new(),
            marks: Vec::new(),
        })
    }
}
