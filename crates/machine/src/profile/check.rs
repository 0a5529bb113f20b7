//! Which profiles are impossible, as far as values have to fit together.

use super::{CacheProfile, PredictorProfile, Profile, ProfileError, TlbProfile};
use crate::base::{LINE_SHIFT, Paging, PmpEntries, VectorLength};

/// Impossible value: key, fault and remedy.
pub(super) type Impossible = (String, String, String);

/// Largest cache in bytes, and largest number of entries of a TLB.
const LARGEST_CACHE: u64 = 1 << 30;
const MAX_ENTRIES: u64 = 1 << 20;

fn impossible(key: &str, message: impl Into<String>, remedy: &str) -> Impossible {
    (key.to_owned(), message.into(), remedy.to_owned())
}

/// Checks that `total` entries make whole sets of `ways`, a power of two of them.
fn sets(key: &str, total: u64, ways: u64) -> Result<(), Impossible> {
    if !(1..=255).contains(&ways) {
        let message = format!("sets of {ways}");
        return Err(impossible(key, message, "use 1 to 255 ways"));
    }
    if !total.is_multiple_of(ways) || !(total / ways).is_power_of_two() {
        let message = format!(
            "{total} entries in sets of {ways} do not make a number of sets that is a power of two"
        );
        return Err(impossible(key, message, "change the size, or the ways"));
    }
    Ok(())
}

fn cache(key: &str, cache: CacheProfile) -> Result<(), Impossible> {
    if cache.line != 1 << LINE_SHIFT {
        let message = format!("lines of {} bytes", cache.line);
        let remedy = "lines of 64 bytes are the only ones modelled: leave the key out";
        return Err(impossible(key, message, remedy));
    }
    if !cache.size.is_multiple_of(cache.line) || cache.size > LARGEST_CACHE {
        let message = format!("{} bytes", cache.size);
        let remedy = "use whole lines of 64 bytes, at most 1 GiB of them";
        return Err(impossible(key, message, remedy));
    }
    sets(key, cache.size >> LINE_SHIFT, cache.ways.into())
}

fn tlb(key: &str, tlb: TlbProfile) -> Result<(), Impossible> {
    let entries = u64::from(tlb.entries);
    if entries > MAX_ENTRIES || tlb.large > 255 {
        let message = format!("{entries} entries and {} large ones", tlb.large);
        return Err(impossible(key, message, "use fewer"));
    }
    sets(key, entries, tlb.ways.into())?;
    if tlb.any_size && u64::from(tlb.ways) != entries {
        let message = format!("any_size with {entries} entries in sets of {}", tlb.ways);
        let remedy = "make it fully associative: as many ways as entries";
        return Err(impossible(key, message, remedy));
    }
    if tlb.any_size && tlb.large != 0 {
        let message = format!("any_size with {} entries for large pages", tlb.large);
        return Err(impossible(key, message, "leave one of them out"));
    }
    Ok(())
}

/// A cache of page-table entries: their size is always the same.
fn walk_cache(key: &str, size: TlbProfile) -> Result<(), Impossible> {
    if size.large != 0 || size.any_size {
        let message = "page-table entries are all of one size";
        return Err(impossible(key, message, "leave large and any_size out"));
    }
    tlb(key, size)
}

/// Counters are chosen by bits of an address, of which the history can change no more than there are.
fn predictor(size: PredictorProfile) -> Result<(), Impossible> {
    if !size.counters.is_power_of_two() {
        let message = format!("{} counters", size.counters);
        return Err(impossible(
            "predictor.counters",
            message,
            "use a power of two",
        ));
    }
    if u32::from(size.history) > size.counters.ilog2() {
        let message = format!(
            "{} bits of history for {} counters",
            size.history, size.counters
        );
        let remedy = "use no more bits than choose a counter";
        return Err(impossible("predictor.history", message, remedy));
    }
    let (targets, ways) = (size.targets.into(), size.target_ways.into());
    sets("predictor.targets", targets, ways)
}

impl Profile {
    /// Everything that does not fit together.
    pub(super) fn impossible(&self) -> Vec<Impossible> {
        let possible = Ok(());
        let checks = [
            cache("l1i", self.l1i),
            cache("l1d", self.l1d),
            self.l2.map_or(possible.clone(), |l2| cache("l2", l2)),
            tlb("itlb", self.itlb),
            tlb("dtlb", self.dtlb),
            self.l2tlb
                .map_or(possible.clone(), |size| tlb("l2tlb", size)),
            self.guest_tlb
                .map_or(possible.clone(), |size| tlb("guest_tlb", size)),
            self.walk_cache
                .map_or(possible.clone(), |size| walk_cache("walk_cache", size)),
            self.guest_walk_cache
                .map_or(possible, |size| walk_cache("guest_walk_cache", size)),
        ];
        let stream = self.prefetcher.map_or(Ok(()), |prefetcher| {
            if usize::from(prefetcher.distance) < self.l1d.geometry().sets {
                return Ok(());
            }
            let message = format!("{} lines in front of a stream", prefetcher.distance);
            let remedy = "use fewer than l1d has sets";
            Err(impossible("prefetcher.distance", message, remedy))
        });
        let predictor = self.predictor.map_or(Ok(()), predictor);
        let checks = checks.into_iter().chain([stream, predictor]);
        let mut found: Vec<_> = checks.filter_map(Result::err).collect();
        if self.timebase > self.hertz {
            let message = format!("{} Hz, and the harts have {}", self.timebase, self.hertz);
            let remedy = "use at most the harts' frequency";
            found.push(impossible("timebase", message, remedy));
        }
        if Paging::of_bits(self.virtual_address_bits).is_none() {
            let message = format!("{} bits of virtual addresses", self.virtual_address_bits);
            let remedy = "use 39, 48 or 57";
            found.push(impossible("virtual_address_bits", message, remedy));
        }
        if let Some(vector) = self.vector
            && VectorLength::new(vector.vlen).is_none_or(|length| !length.exists())
        {
            let message = format!("registers of {} bits", vector.vlen);
            found.push(impossible(
                "vector.vlen",
                message,
                "use 128, 256, 512 or 1024",
            ));
        }
        if PmpEntries::new(self.pmp_entries).is_none() {
            let message = format!("{} entries of memory protection", self.pmp_entries);
            found.push(impossible("pmp_entries", message, "use 16 or 64"));
        }
        found
    }

    /// Checks that such a machine can exist.
    ///
    /// # Errors
    /// [`ProfileError::Impossible`] that names what does not fit together, and a remedy.
    pub fn check(&self) -> Result<(), ProfileError> {
        match self.impossible().into_iter().next() {
            None => Ok(()),
            Some((key, message, remedy)) => Err(ProfileError::Impossible {
                key,
                message,
                remedy,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{NAMES, PrefetcherProfile, ReplacementPolicy, VectorProfile};

    #[test]
    fn what_ships_is_usable() {
        for name in NAMES {
            let profile = Profile::named(name);
            assert!(profile.is_ok(), "{name}: {profile:?}");
            let extensions = profile.map(|profile| profile.extensions);
            assert_eq!(extensions, Ok(Default::default()), "{name}");
        }
    }

    fn predictor(counters: u32, history: u8, targets: u32) -> PredictorProfile {
        PredictorProfile {
            counters,
            history,
            targets,
            target_ways: 4,
            replacement: ReplacementPolicy::Fifo,
            returns: 4,
        }
    }

    #[test]
    fn contradictions_are_refused_by_key() {
        type Change = fn(&mut Profile);
        let changes: [(Change, &str); 18] = [
            (|p| p.l1i.ways = 0, "l1i: sets of 0"),
            (|p| p.l1d.ways = 3, "l1d: 1024 entries in sets of 3"),
            (|p| p.l1d.size = 98304, "l1d: 1536 entries in sets of 4"),
            (|p| p.l1i.size = 65537, "l1i: 65537 bytes"),
            (|p| p.l1i.size = 0, "l1i: 0 entries"),
            (|p| p.l1i.line = 32, "l1i: lines of 32 bytes"),
            (|p| p.itlb.entries = 0, "itlb: 0 entries in sets of 32"),
            (
                |p| p.itlb.any_size = true,
                "itlb: any_size with 4 entries for large",
            ),
            (
                |p| {
                    p.l2tlb = p.l2tlb.map(|tlb| TlbProfile {
                        any_size: true,
                        ..tlb
                    })
                },
                "l2tlb: any_size with 512 entries in sets of 4",
            ),
            (
                |p| p.walk_cache = p.guest_tlb,
                "walk_cache: page-table entries are",
            ),
            (
                |p| p.virtual_address_bits = 50,
                "virtual_address_bits: 50 bits",
            ),
            (
                |p| {
                    p.prefetcher = Some(PrefetcherProfile {
                        streams: 8,
                        distance: 256,
                        outstanding: 16,
                    })
                },
                "prefetcher.distance: 256 lines in front",
            ),
            (
                |p| p.predictor = Some(predictor(100, 4, 32)),
                "predictor.counters: 100 counters",
            ),
            (
                |p| p.predictor = Some(predictor(128, 8, 32)),
                "predictor.history: 8 bits of history for 128",
            ),
            (
                |p| p.predictor = Some(predictor(128, 7, 24)),
                "predictor.targets: 24 entries in sets of 4",
            ),
            (
                |p| {
                    p.vector = Some(VectorProfile {
                        vlen: 384,
                        costs: None,
                    })
                },
                "vector.vlen: registers of 384 bits",
            ),
            (|p| p.pmp_entries = 17, "pmp_entries: 17 entries"),
            (|p| p.timebase = p.hertz + 1, "timebase: 1000000001 Hz"),
        ];
        assert_eq!(Profile::default().check(), Ok(()));
        for (change, expected) in changes {
            let mut profile = Profile::default();
            change(&mut profile);
            let message = profile.check().expect_err(expected).to_string();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
