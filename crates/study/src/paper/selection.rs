//! A part of a paper: some of its cases, with some of their methods.

use super::published::{KVM, NATIVE};
use super::{PlanError, Published};

/// Selection of a paper's cases; empty lists select all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Cases, by their names.
    pub cases: Vec<String>,
    /// Methods, by their names; `native` and `kvm` are methods too.
    pub methods: Vec<String>,
}

impl Selection {
    /// Returns whether it is all.
    fn is_whole(&self) -> bool {
        self.cases.is_empty() && self.methods.is_empty()
    }
}

impl Published {
    /// The paper with no more than this part. Negatives, orders and figures over several cases are of the whole alone.
    ///
    /// # Errors
    /// The paper has no such case, or none of the cases has such a method.
    pub fn narrowed(mut self, part: &Selection) -> Result<Self, PlanError> {
        if part.is_whole() {
            return Ok(self);
        }
        let names = || self.cases.iter().map(|case| case.name.clone());
        if let Some(wanted) = part
            .cases
            .iter()
            .find(|case| !names().any(|name| name == **case))
        {
            return Err(PlanError::NoCase {
                wanted: wanted.clone(),
                there: names().collect(),
            });
        }
        self.cases
            .retain(|case| part.cases.is_empty() || part.cases.contains(&case.name));
        let mut there: Vec<String> = Vec::new();
        for case in &self.cases {
            let beside = [(NATIVE, case.native.is_some()), (KVM, case.kvm)];
            let beside = beside.into_iter().filter(|(_, has)| *has);
            there.extend(case.methods.iter().cloned());
            there.extend(beside.map(|(name, _)| String::from(name)));
        }
        there.sort();
        there.dedup();
        if let Some(wanted) = part.methods.iter().find(|name| !there.contains(name)) {
            return Err(PlanError::NoMethod {
                wanted: wanted.clone(),
                there,
            });
        }
        let wanted =
            |name: &str| part.methods.is_empty() || part.methods.iter().any(|one| one == name);
        for case in &mut self.cases {
            case.methods.retain(|name| wanted(name));
            // What is named is run, in short runs as well.
            if !part.methods.is_empty() {
                case.quick_methods.clear();
            }
            if !part.cases.is_empty() {
                case.quick_phases = case.quick_phases.filter(|phases| *phases > 0);
                case.by_name = false;
            }
            case.native = case.native.take().filter(|_| wanted(NATIVE));
            case.kvm &= wanted(KVM);
        }
        self.negatives.clear();
        self.orders.clear();
        self.gains.clear();
        self.events.clear();
        self.curves.clear();
        self.bars.clear();
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn paper() -> Published {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/paper-004");
        Published::read(&tree.join("published.toml")).unwrap()
    }

    fn selection(cases: &[&str], methods: &[&str]) -> Selection {
        let list = |names: &[&str]| names.iter().copied().map(String::from).collect();
        Selection {
            cases: list(cases),
            methods: list(methods),
        }
    }

    #[test]
    fn selection_has_named_parts_only() {
        let whole = paper().narrowed(&Selection::default()).unwrap();
        assert_eq!(whole, paper());
        let wanted = selection(&["OLTP, four a hart"], &["reservation", "kvm"]);
        let part = paper().narrowed(&wanted).unwrap();
        assert_eq!(part.cases.len(), 1);
        let case = part.cases.first().unwrap();
        assert_eq!(case.methods, ["reservation"]);
        assert!(case.kvm && case.native.is_none());
        assert_eq!(
            case.quick_phases, None,
            "it is named, so that short runs have it"
        );
        assert!(part.negatives.is_empty() && part.orders.is_empty());
    }

    #[test]
    fn unknown_names_list_known_ones() {
        let error = paper().narrowed(&selection(&["OLTP"], &[])).unwrap_err();
        assert!(
            error.to_string().contains("no case OLTP") && error.to_string().contains("figure 2")
        );
        let wanted = selection(&["OLTP, four a hart"], &["self-wait"]);
        let error = paper().narrowed(&wanted).unwrap_err();
        assert!(
            error.to_string().contains("no method self-wait")
                && error.to_string().contains("not-same")
        );
    }
}
