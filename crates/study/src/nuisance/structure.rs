//! Structures of a computer as nuisance factors: what few makers publish, and what a model of a core leaves out. The first level is the
//! profile's own.

use machine::timing::{Profile, ReplacementPolicy};

/// A structure: name, words for both levels, and the profile's changes at the second level.
pub(super) struct Structure {
    pub(super) name: &'static str,
    pub(super) levels: [&'static str; 2],
    pub(super) changes: Vec<String>,
}

/// Stores of a buffer where the profile has none.
const BUFFERED_STORES: u16 = 8;
/// How much longer a line keeps a channel of memory.
const SCARCE: u64 = 4;
/// A predictor where the profile has none: 512 counters chosen by 8 branches and the address, 64 targets, 8 returns.
const PREDICTOR: &str =
    "{ counters = 512, history = 8, targets = 64, target_ways = 4, returns = 8 }";

/// The structures of a profile, each beside its opposite.
pub(super) fn of(profile: &Profile) -> Vec<Structure> {
    let mut all = Vec::new();
    let mut add = |name, levels, changes: Vec<String>| {
        let key = |change: String| format!("profile.{change}");
        all.push(Structure {
            name,
            levels,
            changes: changes.into_iter().map(key).collect(),
        });
    };
    match profile.store_buffer {
        0 => add(
            "store-buffer",
            ["none", "8 stores"],
            vec![format!("store_buffer={BUFFERED_STORES}")],
        ),
        _ => add(
            "store-buffer",
            ["as it is", "none"],
            vec![String::from("store_buffer=0")],
        ),
    }
    match (profile.prefetcher, profile.prefetch_next_line) {
        (Some(_), _) => add(
            "prefetcher",
            ["as it is", "none"],
            vec![String::from("prefetcher=none")],
        ),
        (None, true) => {
            let none = vec![String::from("prefetch_next_line=false")];
            add("prefetcher", ["the next line", "none"], none);
        }
        (None, false) => {
            let next = vec![String::from("prefetch_next_line=true")];
            add("prefetcher", ["none", "the next line"], next);
        }
    }
    let gap = match profile.costs.memory_gap {
        // As if a line had memory for itself for a quarter of its way.
        0 => profile.costs.memory / SCARCE,
        gap => gap * SCARCE,
    };
    add(
        "bandwidth",
        ["as it is", "a quarter"],
        vec![format!("costs.memory_gap={gap}")],
    );
    let caches = [
        ("l1i", Some(profile.l1i.replacement)),
        ("l1d", Some(profile.l1d.replacement)),
        ("l2", profile.l2.map(|cache| cache.replacement)),
    ];
    add(
        "cache-replacement",
        ["as it is", "another"],
        others(&caches),
    );
    let tlbs = [
        ("itlb", Some(profile.itlb.replacement)),
        ("dtlb", Some(profile.dtlb.replacement)),
        ("l2tlb", profile.l2tlb.map(|tlb| tlb.replacement)),
        ("guest_tlb", profile.guest_tlb.map(|tlb| tlb.replacement)),
    ];
    add("tlb-replacement", ["as it is", "another"], others(&tlbs));
    match profile.predictor {
        Some(_) => add(
            "predictor",
            ["as it is", "none"],
            vec![String::from("predictor=none")],
        ),
        None => {
            // A wrong prediction refills the pipeline, as a trap does.
            let costs = [("mispredict", profile.costs.trap), ("redirect", 2)];
            let costs = costs.map(|(name, cost)| format!("costs.{name}={cost}"));
            let mut changes = vec![format!("predictor={PREDICTOR}")];
            changes.extend(costs);
            add("predictor", ["none", "gshare"], changes);
        }
    }
    all
}

/// Another replacement for each structure that is there: least recently used, or in turn where it is that already.
fn others(structures: &[(&str, Option<ReplacementPolicy>)]) -> Vec<String> {
    let there = structures.iter();
    let there = there.filter_map(|(name, replacement)| Some((name, (*replacement)?)));
    let other = there.map(|(name, replacement)| {
        let other = match replacement {
            ReplacementPolicy::Lru => "fifo",
            _ => "lru",
        };
        format!("{name}.replacement={other}")
    });
    other.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::expand;
    use crate::laboratory::{Computer, Point};

    /// Every second level is a profile that can be used and differs from the first.
    #[test]
    fn second_levels_are_other_profiles() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "rocket-h",
            "k3-class",
            "xeon-class",
            "cva6",
            "mainframe-1994",
        ] {
            let own = Profile::named(name).unwrap();
            let structures = of(&own);
            assert_eq!(structures.len(), 6, "{name}");
            for structure in structures {
                let point = Point {
                    changes: structure.changes.clone(),
                    computer: Computer::Machine {
                        profile: Some(String::from(name)),
                    },
                    ..Point::default()
                };
                let expanded = expand(point, folder.path());
                let expanded =
                    expanded.unwrap_or_else(|error| panic!("{name}, {}: {error}", structure.name));
                let Computer::Machine {
                    profile: Some(path),
                } = expanded.computer
                else {
                    panic!("no profile")
                };
                assert_ne!(
                    Profile::find(&path).unwrap(),
                    own,
                    "{name}: {}",
                    structure.name
                );
            }
        }
    }
}
