//! Which profiles are impossible.

use std::ops::RangeInclusive;

use super::{CacheProfile, Profile, ProfileError, TlbProfile};
use crate::timing::LINE_SHIFT;

/// Largest cache in bytes, and largest number of entries of a TLB.
const LARGEST_CACHE: u64 = 1 << 30;
const MOST_ENTRIES: u64 = 1 << 20;
/// Greatest cost in cycles.
const GREATEST_COST: u64 = 1_000_000;
/// Greatest limit of a wait in cycles.
const GREATEST_LIMIT: u64 = 1_000_000_000_000;

fn impossible(key: &str, value: u64, remedy: impl Into<String>) -> ProfileError {
    ProfileError::Impossible {
        key: key.to_owned(),
        value,
        remedy: remedy.into(),
    }
}

fn within(key: &str, value: u64, range: RangeInclusive<u64>) -> Result<(), ProfileError> {
    if range.contains(&value) {
        return Ok(());
    }
    let remedy = format!("must be {} to {}", range.start(), range.end());
    Err(impossible(key, value, remedy))
}

/// Checks that `total` entries make whole sets of `ways`, a power of two of them.
fn sets(key: &str, total: u64, ways: u64) -> Result<(), ProfileError> {
    within(&format!("{key}.ways"), ways, 1..=255)?;
    if !total.is_multiple_of(ways) || !(total / ways).is_power_of_two() {
        let remedy = format!(
            "{total} places in sets of {ways} make no power of two of sets; change the size or \
             the ways"
        );
        return Err(impossible(&format!("{key}.ways"), ways, remedy));
    }
    Ok(())
}

fn cache(key: &str, cache: CacheProfile) -> Result<(), ProfileError> {
    if cache.line != 1 << LINE_SHIFT {
        let remedy = "lines of 64 bytes are the only ones modelled; leave the key out";
        return Err(impossible(&format!("{key}.line"), cache.line, remedy));
    }
    within(
        &format!("{key}.size"),
        cache.size,
        cache.line..=LARGEST_CACHE,
    )?;
    if !cache.size.is_multiple_of(cache.line) {
        let remedy = "must be whole lines of 64 bytes";
        return Err(impossible(&format!("{key}.size"), cache.size, remedy));
    }
    sets(key, cache.size >> LINE_SHIFT, cache.ways.into())
}

fn tlb(key: &str, tlb: TlbProfile) -> Result<(), ProfileError> {
    let entries = u64::from(tlb.entries);
    within(&format!("{key}.entries"), entries, 1..=MOST_ENTRIES)?;
    sets(key, entries, tlb.ways.into())?;
    within(&format!("{key}.large"), tlb.large.into(), 0..=255)?;
    if tlb.any_size && u64::from(tlb.ways) != entries {
        let remedy = "any_size needs a fully associative structure: as many ways as entries";
        return Err(impossible(&format!("{key}.ways"), tlb.ways.into(), remedy));
    }
    if tlb.any_size && tlb.large != 0 {
        let remedy =
            "any_size leaves nothing to entries for large pages alone; leave one of them out";
        return Err(impossible(
            &format!("{key}.large"),
            tlb.large.into(),
            remedy,
        ));
    }
    Ok(())
}

/// A cache of page-table entries: their size is always the same.
fn walk_cache(key: &str, size: TlbProfile) -> Result<(), ProfileError> {
    if size.large != 0 || size.any_size {
        let remedy = "page-table entries are all of one size; leave large and any_size out";
        return Err(impossible(
            &format!("{key}.large"),
            size.large.into(),
            remedy,
        ));
    }
    tlb(key, size)
}

impl Profile {
    /// Checks that such a machine can exist.
    ///
    /// # Errors
    /// [`ProfileError::Impossible`] that names key, value and remedy.
    pub fn check(&self) -> Result<(), ProfileError> {
        within("hertz", self.hertz, 1..=100_000_000_000)?;
        within(
            "timebase",
            self.timebase,
            1..=self.hertz.min(u32::MAX.into()),
        )?;
        within("guest_files", self.guest_files.into(), 0..=63)?;
        within("quantum", self.quantum, 1..=1_000_000)?;
        within("wrs_nto_limit", self.wrs_nto_limit, 0..=GREATEST_LIMIT)?;
        within("wrs_sto_limit", self.wrs_sto_limit, 0..=GREATEST_LIMIT)?;
        cache("l1i", self.l1i)?;
        cache("l1d", self.l1d)?;
        self.l2.map_or(Ok(()), |l2| cache("l2", l2))?;
        tlb("itlb", self.itlb)?;
        tlb("dtlb", self.dtlb)?;
        for (key, structure) in [("l2tlb", self.l2tlb), ("guest_tlb", self.guest_tlb)] {
            structure.map_or(Ok(()), |structure| tlb(key, structure))?;
        }
        for (key, structure) in [
            ("walk_cache", self.walk_cache),
            ("guest_walk_cache", self.guest_walk_cache),
        ] {
            structure.map_or(Ok(()), |structure| walk_cache(key, structure))?;
        }
        for (key, cost) in self.costs.each() {
            within(&format!("costs.{key}"), cost, 0..=GREATEST_COST)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::NAMES;

    #[test]
    fn what_ships_is_usable() {
        for name in NAMES {
            let profile = Profile::named(name);
            assert!(profile.is_ok(), "{name}: {profile:?}");
            let extensions = profile.map(|profile| profile.extensions);
            assert_eq!(extensions, Ok(Default::default()), "{name}");
        }
    }

    /// The message for a profile in which one text takes the place of another.
    fn refusal(from: &str, to: &str) -> String {
        let text = toml::to_string(&Profile::default()).expect("serializes");
        assert!(Profile::parse("mine.toml", &text).is_ok());
        assert!(text.contains(from), "{from} in {text}");
        let changed: Profile = toml::from_str(&text.replacen(from, to, 1)).expect(to);
        changed.check().expect_err(to).to_string()
    }

    #[test]
    fn impossible_profiles_are_refused_by_key_value_and_remedy() {
        for (from, to, expected) in [
            ("ways = 4", "ways = 0", "l1i.ways = 0: must be 1 to 255"),
            ("ways = 4", "ways = 3", "l1i.ways = 3: 1024 places"),
            ("size = 65536", "size = 98304", "l1i.ways = 4: 1536 places"),
            (
                "size = 65536",
                "size = 65537",
                "l1i.size = 65537: must be whole lines",
            ),
            ("size = 65536", "size = 0", "l1i.size = 0: must be 64 to"),
            ("line = 64", "line = 32", "l1i.line = 32: lines of 64 bytes"),
            (
                "entries = 32",
                "entries = 0",
                "itlb.entries = 0: must be 1 to",
            ),
            (
                "any_size = false",
                "any_size = true",
                "itlb.large = 4: any_size",
            ),
            (
                "guest_files = 7",
                "guest_files = 64",
                "guest_files = 64: must be 0 to 63",
            ),
            ("quantum = 1000", "quantum = 0", "quantum = 0: must be 1 to"),
            (
                "timebase = 10000000",
                "timebase = 2000000000",
                "timebase = 2000000000: must be",
            ),
            (
                "memory = 100",
                "memory = 1000001",
                "costs.memory = 1000001: must be 0 to 1000000",
            ),
        ] {
            let message = refusal(from, to);
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
