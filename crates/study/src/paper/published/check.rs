//! Checks that what a paper's file names exists.

use super::{Case, Claim, KVM, NATIVE, Published};
use crate::paper::Gain;
use crate::paper::figures::Cost;
use runner::measures::known;

impl Published {
    /// Looks for measures, cases and methods of drawings and of the table of events that are not there.
    fn check_drawings(&self) -> Result<(), String> {
        let case = |name: &String| self.cases.iter().find(|case| case.name == *name);
        let method = |name: &String, method: &String| {
            let found = case(name).ok_or_else(|| format!("there is no case {name}"))?;
            let native = method == NATIVE && found.native.is_some();
            match native || found.methods.contains(method) {
                true => Ok(()),
                false => Err(format!("case {name}: {method} is none of its methods")),
            }
        };
        for curve in &self.curves {
            [&curve.across, &curve.up]
                .into_iter()
                .try_for_each(|name| measure(name))?;
            for name in &curve.cases {
                let mut methods = curve.methods.iter();
                methods.try_for_each(|one| method(name, one))?;
            }
        }
        for bars in &self.bars {
            bars.parts.iter().try_for_each(|(_, name)| measure(name))?;
            let mut all = bars.bars.iter();
            all.try_for_each(|(name, one)| method(name, one))?;
        }
        let costs = self.events.iter();
        for Cost {
            case,
            method: one,
            measures,
        } in costs.flat_map(|event| [&event.cost, &event.beside])
        {
            method(case, one)?;
            measures.iter().try_for_each(|name| measure(name))?;
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.check_drawings()?;
        for gain in &self.gains {
            self.check_gain(gain)
                .map_err(|error| format!("gain: {error}"))?;
        }
        for case in &self.cases {
            let at = |error| format!("case {} of table {}: {error}", case.name, case.table);
            case.check().map_err(at)?;
        }
        for name in self.orders.iter().flat_map(|order| &order.cases) {
            if !self.cases.iter().any(|case| &case.name == name) {
                return Err(format!("there is no case {name} to put in order"));
            }
        }
        Ok(())
    }

    fn check_gain(&self, gain: &Gain) -> Result<(), String> {
        let mut named = gain.over.iter().chain([&gain.measure]);
        named.try_for_each(|name| measure(name))?;
        let mut cases = self.cases.iter().filter(|case| gain.is_of(case.table));
        let is_there = |case: &Case| {
            let methods = [&gain.method, &gain.base];
            let all = methods.iter().all(|method| case.methods.contains(method));
            all && self.base(case, &gain.method) == gain.base
        };
        if cases.any(is_there) {
            return Ok(());
        }
        let Gain {
            method,
            base,
            table,
            ..
        } = gain;
        let of = table.map_or_else(String::new, |table| format!(" of table {table}"));
        Err(format!("no case{of} compares {method} with {base}"))
    }
}

/// Refuses a measure that does not exist.
fn measure(name: &str) -> Result<(), String> {
    known(name).map(|_| ())
}

impl Case {
    fn check(&self) -> Result<(), String> {
        if self.methods.is_empty() {
            return Err(String::from("it has no methods"));
        }
        for figure in &self.figures {
            measure(&figure.measure)?;
            let named = figure.values.keys().chain(&figure.fitted);
            for method in named {
                // A paper may have figures that are not measured here.
                let beside = method == NATIVE || method == KVM;
                self.check_method(method, beside)?;
            }
        }
        for method in &self.worst_waits {
            self.check_method(method, false)?;
        }
        for method in &self.quick_methods {
            self.check_method(method, self.is_beside(method))?;
        }
        let pairs = self.against.iter();
        for name in pairs.flat_map(|pair| [&pair.up, &pair.across]) {
            measure(name)?;
        }
        if let Some(method) = &self.model {
            self.check_method(method, false)?;
        }
        self.claims
            .iter()
            .try_for_each(|claim| self.check_claim(claim))
    }

    fn check_claim(&self, claim: &Claim) -> Result<(), String> {
        measure(&claim.measure)?;
        let sides = (claim.more.is_empty(), claim.less.is_empty());
        let numbers = (claim.than.is_some(), claim.at_most.is_some());
        if !matches!(
            (sides, numbers),
            ((false, false), (false, false))
                | ((false, true), (true, false))
                | ((true, false), (false, true))
        ) {
            return Err(format!(
                "{}: either `more` and `less`, or `more` and `than`, or `less` and `at-most`",
                claim.text
            ));
        }
        let both = [&claim.more, &claim.less].into_iter();
        let mut named = both.filter(|method| !method.is_empty());
        named.try_for_each(|method| self.check_method(method, self.is_beside(method)))
    }

    /// Returns whether the case has runs of this name beside its methods.
    fn is_beside(&self, method: &str) -> bool {
        match method {
            NATIVE => self.native.is_some(),
            KVM => self.kvm,
            _ => false,
        }
    }

    fn check_method(&self, method: &String, beside: bool) -> Result<(), String> {
        match beside || self.methods.contains(method) {
            true => Ok(()),
            false => Err(format!("{method} is none of its methods")),
        }
    }
}
