//! A profile from what a board has measured: the lines that `conformance/src/bin/measure.rs` prints.
//!
//! docs/guide/profile-a-board.md says what each line is. What the lines do not tell stays as the base profile has it.

use super::Profile;

/// The mark at the beginning of a line.
const MARK: &str = "measure: ";
/// Cycles of the loop of the ping-pong and of its two accesses.
const PING_PONG_LOOP: f64 = 6.0;
/// Instructions of the trap's handler besides the trapped one: CSRR, ADDI, CSRW, MRET.
const HANDLER: f64 = 4.0;
/// Ways of a TLB that has more entries than a set can have, where the base profile's is fully associative.
const LARGE_TLB_WAYS: u16 = 4;

/// Measured values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurements {
    /// Names, sizes and cycles, in the order of the lines.
    rows: Vec<(String, u64, f64)>,
}

/// Why lines cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// A line that begins like one of them is not one.
    #[error("line {0} is no measurement: `measure: NAME SIZE CYCLES` is one")]
    Line(usize),
    /// The last line is missing, so that the program did not come to its end.
    #[error("the measurements are not complete: `measure: end` is missing")]
    Incomplete,
    /// The base profile lacks what was measured.
    #[error("{0} was measured, and the base profile has nothing of the kind: give another --base")]
    Base(&'static str),
}

/// A value of a profile that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The key.
    pub key: &'static str,
    /// The value, in the key's unit.
    pub value: u64,
}

impl Measurements {
    /// The measurements in a program's output; other lines are passed over.
    ///
    /// # Errors
    /// [`MeasureError`].
    pub fn parse(text: &str) -> Result<Self, MeasureError> {
        let mut found = Self::default();
        let mut ended = false;
        for (line, number) in text.lines().zip(1..) {
            let Some(rest) = line.trim().strip_prefix(MARK) else {
                continue;
            };
            let mut words = rest.split_whitespace();
            let row = (|| {
                let name = words.next()?.to_owned();
                let size = words.next()?.parse().ok()?;
                let cycles: f64 = words.next()?.parse().ok()?;
                (cycles.is_finite() && words.next().is_none()).then_some((name, size, cycles))
            })();
            let (name, size, cycles) = row.ok_or(MeasureError::Line(number))?;
            if name == "end" {
                ended = true;
            } else {
                found.rows.push((name, size, cycles));
            }
        }
        if ended {
            Ok(found)
        } else {
            Err(MeasureError::Incomplete)
        }
    }

    fn of(&self, name: &str) -> Option<f64> {
        self.series(name).map(|(_, cycles)| cycles).next()
    }

    fn series<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (u64, f64)> + 'a {
        let rows = self.rows.iter().filter(move |row| row.0 == name);
        rows.map(|&(_, size, cycles)| (size, cycles))
    }

    /// Where a series stays level and where it jumps: the largest size of each level, and its cycles.
    fn levels(&self, name: &str) -> Vec<(u64, f64)> {
        let mut levels: Vec<(u64, f64)> = Vec::new();
        let mut rising = false;
        for (size, cycles) in self.series(name) {
            match levels.last_mut() {
                // A level may rise by a seventh, and by half a cycle.
                Some((largest, level)) if cycles <= *level * 1.15 + 0.5 => {
                    *largest = size;
                    rising = false;
                }
                // Between two levels a part of the accesses finds its place: the level is behind it.
                Some((largest, level)) if rising => (*largest, *level) = (size, cycles),
                _ => {
                    levels.push((size, cycles));
                    rising = levels.len() > 1;
                }
            }
        }
        levels
    }

    /// Values of a profile, by the model of docs/why/machine.md: an instruction is a cycle, and all else is beyond it. If
    /// FENCE.I empties the instruction cache, as the base profile says, the loop's line has to come again.
    #[must_use]
    pub fn found(&self, base: &Profile) -> Vec<Found> {
        let mut found = Vec::new();
        let mut add = |key, value: f64| {
            let value = value.max(0.0).round() as u64;
            found.push(Found { key, value });
        };
        for (name, key) in [
            ("multiply", "costs.multiply"),
            ("divide", "costs.divide"),
            ("fence", "costs.fence"),
            ("fence-translation", "costs.fence_translation"),
            ("atomic", "costs.atomic"),
            ("pause", "costs.pause"),
        ] {
            if let Some(cycles) = self.of(name) {
                add(key, cycles - 1.0);
            }
        }
        let csr = self.of("csr").map(|cycles| (cycles / 2.0 - 1.0).max(0.0));
        if let Some(csr) = csr {
            add("costs.csr", csr);
        }
        if let Some(trap) = self.of("trap") {
            // Both ways look alike: each gets a half. Entering a handler is a cycle by itself.
            let both = trap - HANDLER - 1.0 - 2.0 * csr.unwrap_or(0.0);
            add("costs.trap", both / 2.0);
            add("costs.trap_return", both / 2.0);
        }
        let caches = self.levels("chase");
        let hit = caches.first().map_or(0.0, |level| level.1);
        if let [(first, _), .., (_, memory)] = caches.as_slice() {
            add("l1d.size", *first as f64);
            add("costs.memory", memory - hit);
        }
        let mut second = 0.0;
        if let [_, (size, cycles), _, ..] = caches.as_slice() {
            second = cycles - hit;
            add("l2.size", *size as f64);
            add("costs.l2_hit", second);
        }
        if let Some(cycles) = self.of("ping-pong") {
            add("costs.transfer", cycles - second - PING_PONG_LOOP);
        }
        if let Some(cycles) = self.of("fence-i") {
            let again = if base.fence_i_clears { second } else { 0.0 };
            add("costs.fence_i", cycles - again - 1.0);
        }
        let reach = self.levels("reach");
        if let [(first, _), _, ..] = reach.as_slice() {
            add("dtlb.entries", *first as f64);
        }
        // Without a second level, walks that find less and less of the tables in the caches make levels of their own.
        if base.l2tlb.is_some()
            && let [(_, first), (entries, second), _, ..] = reach.as_slice()
        {
            add("l2tlb.entries", *entries as f64);
            add("costs.l2_tlb_hit", second - first);
        }
        found
    }

    /// The base profile with what was found in it.
    ///
    /// # Errors
    /// [`MeasureError::Base`]: a second level that was measured and is not there.
    pub fn apply(&self, base: &Profile) -> Result<Profile, MeasureError> {
        let mut profile = base.clone();
        for Found { key, value } in self.found(base) {
            let entries = u32::try_from(value).unwrap_or(u32::MAX);
            let costs = &mut profile.costs;
            match key {
                "costs.multiply" => costs.multiply = value,
                "costs.divide" => costs.divide = value,
                "costs.fence" => costs.fence = value,
                "costs.fence_i" => costs.fence_i = value,
                "costs.fence_translation" => costs.fence_translation = value,
                "costs.atomic" => costs.atomic = value,
                "costs.pause" => costs.pause = value,
                "costs.csr" => costs.csr = value,
                "costs.trap" => costs.trap = value,
                "costs.trap_return" => costs.trap_return = value,
                "costs.memory" => costs.memory = value,
                "costs.l2_hit" => costs.l2_hit = value,
                "costs.transfer" => costs.transfer = value,
                "costs.l2_tlb_hit" => costs.l2_tlb_hit = value,
                "l1d.size" => profile.l1d.size = value,
                "l2.size" => profile.l2.as_mut().ok_or(MeasureError::Base(key))?.size = value,
                "dtlb.entries" => {
                    // A fully associative TLB stays one, as far as there can be one.
                    if u32::from(profile.dtlb.ways) == profile.dtlb.entries {
                        let whole = u8::try_from(entries).ok();
                        profile.dtlb.ways = whole.map_or(LARGE_TLB_WAYS, u16::from);
                        profile.dtlb.any_size &= whole.is_some();
                    }
                    profile.dtlb.entries = entries;
                }
                "l2tlb.entries" => {
                    profile
                        .l2tlb
                        .as_mut()
                        .ok_or(MeasureError::Base(key))?
                        .entries = entries
                }
                _ => return Err(MeasureError::Base(key)),
            }
        }
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_or_incomplete_is_refused() {
        assert_eq!(
            Measurements::parse("measure: chase 4096 4.00\n"),
            Err(MeasureError::Incomplete)
        );
        assert_eq!(
            Measurements::parse("boot\nmeasure: chase many 4.00\n"),
            Err(MeasureError::Line(2))
        );
        assert_eq!(
            Measurements::parse("measure: fence 1 inf\n"),
            Err(MeasureError::Line(1))
        );
    }

    #[test]
    fn levels_and_costs_are_told_apart() {
        let text = "measure: fence 1 6.00\nmeasure: csr 1 8.00\nmeasure: trap 1 41.00\n\
            measure: chase 4096 1.25\nmeasure: chase 8192 1.25\nmeasure: chase 16384 9.00\n\
            measure: chase 32768 15.25\nmeasure: chase 65536 15.25\nmeasure: chase 131072 120.00\n\
            measure: chase 262144 241.25\nmeasure: ping-pong 1 60.00\nmeasure: end 0 0.00\n";
        let found = Measurements::parse(text)
            .expect("complete")
            .found(&Profile::default());
        let value = |key| {
            found
                .iter()
                .find(|found| found.key == key)
                .map(|found| found.value)
        };
        assert_eq!(value("costs.fence"), Some(5));
        assert_eq!(value("costs.csr"), Some(3));
        // 41 less four instructions, the entry's cycle, and two CSRs' costs: 30 for both ways.
        assert_eq!(
            (value("costs.trap"), value("costs.trap_return")),
            (Some(15), Some(15))
        );
        assert_eq!(
            (value("l1d.size"), value("l2.size")),
            (Some(8192), Some(65536))
        );
        assert_eq!(
            (value("costs.l2_hit"), value("costs.memory")),
            (Some(14), Some(240))
        );
        assert_eq!(value("costs.transfer"), Some(40));
    }
    /// Measurements of a board whose TLB has so many entries, with three levels.
    fn with_reach(entries: u32) -> Measurements {
        let mut text = String::from("measure: end 0 0.00\n");
        for (pages, cycles) in [(1, 1.25), (2, 8.0), (4, 8.0), (8, 30.0), (16, 30.0)] {
            text += &format!("measure: reach {} {cycles}\n", entries * pages);
        }
        Measurements::parse(&text).expect("complete")
    }

    #[test]
    fn walk_levels_make_no_second_level_tlb() {
        let mut base = Profile::default();
        let keys = |base: &Profile| {
            let found = with_reach(32).found(base);
            found.into_iter().map(|found| found.key).collect::<Vec<_>>()
        };
        let both = ["dtlb.entries", "l2tlb.entries", "costs.l2_tlb_hit"];
        assert_eq!(keys(&base), both);
        base.l2tlb = None;
        assert_eq!(keys(&base), both[..1]);
        assert_eq!(
            with_reach(32).apply(&base).map(|board| board.l2tlb),
            Ok(None)
        );
    }

    #[test]
    fn large_measured_tlbs_make_a_profile() {
        let k3 = Profile::named("k3-class").expect("ships");
        for entries in [64, 512] {
            let board = with_reach(entries).apply(&k3).expect("a board");
            assert_eq!(board.dtlb.entries, entries);
            assert_eq!(board.check(), Ok(()));
        }
    }
}
