//! Checks that what a paper's file names exists.

use super::{Case, KVM, NATIVE, Published};
use crate::paper::Gain;
use crate::paper::figures::Cost;

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
        let measure = |name: &String| match runner::measures::find(name) {
            Some(_) => Ok(()),
            None => Err(format!("there is no measure {name}")),
        };
        for curve in &self.curves {
            [&curve.across, &curve.up]
                .into_iter()
                .try_for_each(measure)?;
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
            measures.iter().try_for_each(measure)?;
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.check_drawings()?;
        for gain in &self.gains {
            let named = gain.over.iter().chain([&gain.measure]);
            let mut unknown = named.filter(|measure| runner::measures::find(measure).is_none());
            if let Some(measure) = unknown.next() {
                return Err(format!("gain: there is no measure {measure}"));
            }
            let mut cases = self.cases.iter().filter(|case| gain.is_of(case.table));
            let is_there = |case: &Case| {
                let methods = [&gain.method, &gain.base];
                let all = methods.iter().all(|method| case.methods.contains(method));
                all && self.base(case, &gain.method) == gain.base
            };
            if !cases.any(is_there) {
                let Gain {
                    method,
                    base,
                    table,
                    ..
                } = gain;
                let of = table.map_or_else(String::new, |table| format!(" of table {table}"));
                return Err(format!("gain: no case{of} compares {method} with {base}"));
            }
        }
        for case in &self.cases {
            let name = format!("case {} of table {}", case.name, case.table);
            if case.methods.is_empty() {
                return Err(format!("{name} has no methods"));
            }
            for figure in &case.figures {
                if runner::measures::find(&figure.measure).is_none() {
                    return Err(format!("{name}: there is no measure {}", figure.measure));
                }
                let beside = |method: &String| method == NATIVE || method == KVM;
                let known = |method: &String| beside(method) || case.methods.contains(method);
                let named = figure.values.keys().chain(&figure.fitted);
                if let Some(method) = named.into_iter().find(|method| !known(method)) {
                    return Err(format!("{name}: {method} is none of its methods"));
                }
            }
            let mut drawn = case.worst_waits.iter();
            let beside = |method: &String| match method.as_str() {
                NATIVE => case.native.is_some(),
                KVM => case.kvm,
                _ => false,
            };
            let is_unknown = |method: &&String| !case.methods.contains(method);
            let mut short = case.quick_methods.iter();
            let unknown = drawn.find(is_unknown);
            if let Some(method) =
                unknown.or_else(|| short.find(|method| is_unknown(method) && !beside(method)))
            {
                return Err(format!("{name}: {method} is none of its methods"));
            }
            for measure in case
                .against
                .iter()
                .flat_map(|pair| [&pair.up, &pair.across])
            {
                if runner::measures::find(measure).is_none() {
                    return Err(format!("{name}: there is no measure {measure}"));
                }
            }
            if let Some(model) = &case.model
                && !case.methods.contains(model)
            {
                return Err(format!("{name}: {model} is none of its methods"));
            }
            for claim in &case.claims {
                if runner::measures::find(&claim.measure).is_none() {
                    return Err(format!("{name}: there is no measure {}", claim.measure));
                }
                let sides = (claim.more.is_empty(), claim.less.is_empty());
                let numbers = (claim.than.is_some(), claim.at_most.is_some());
                if !matches!(
                    (sides, numbers),
                    ((false, false), (false, false))
                        | ((false, true), (true, false))
                        | ((true, false), (false, true))
                ) {
                    return Err(format!(
                        "{name}: {}: either `more` and `less`, or `more` and `than`, or `less` and `at-most`",
                        claim.text
                    ));
                }
                let both = [&claim.more, &claim.less].into_iter();
                for method in both.filter(|method| !method.is_empty()) {
                    let beside = match method.as_str() {
                        NATIVE => case.native.is_some(),
                        KVM => case.kvm,
                        _ => false,
                    };
                    if !beside && !case.methods.contains(method) {
                        return Err(format!("{name}: {method} is none of its methods"));
                    }
                }
            }
        }
        for name in self.orders.iter().flat_map(|order| &order.cases) {
            if !self.cases.iter().any(|case| &case.name == name) {
                return Err(format!("there is no case {name} to put in order"));
            }
        }
        Ok(())
    }
}
