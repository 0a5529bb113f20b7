//! What the guests' workloads say of themselves on their consoles.

use serde::Serialize;
use std::collections::BTreeMap;

/// What a line of the exerciser's `work` begins with.
const EXERCISER: &str = "exerciser: work ";

/// What one VM's workload counted. Nothing that it did not say is there.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GuestFigures {
    /// Numbers by name; those of a distribution as `response-ns.p50`.
    pub numbers: BTreeMap<String, f64>,
}

impl GuestFigures {
    /// A number.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }
}

/// What the workloads of all VMs said, gathered line by line.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Guests {
    vms: BTreeMap<String, GuestFigures>,
}

impl Guests {
    /// Takes a line that a VM wrote. Lines that are no figures are none of this one's business; what a guest writes
    /// cannot do more than be a wrong figure of its own VM.
    pub fn line(&mut self, vm: &str, line: &str) {
        let Some(rest) = line.trim().strip_prefix(EXERCISER) else {
            return;
        };
        let mut words = rest.split_whitespace().peekable();
        // A word without = is the name of a distribution.
        let prefix = words
            .next_if(|word| !word.contains('='))
            .map_or_else(String::new, |name| format!("{name}."));
        let figures = words.filter_map(|word| word.split_once('='));
        for (name, value) in figures {
            let Ok(value) = value.parse::<f64>() else {
                continue;
            };
            if value.is_finite() {
                let numbers = &mut self.vms.entry(String::from(vm)).or_default().numbers;
                numbers.insert(format!("{prefix}{name}"), value);
            }
        }
    }

    /// A VM's figures.
    pub fn vm(&self, name: &str) -> Option<&GuestFigures> {
        self.vms.get(name)
    }

    /// The sum of a number over the VMs that have it.
    pub fn sum(&self, name: &str) -> Option<f64> {
        self.values(name).reduce(|a, b| a + b)
    }

    /// The largest of a number among the VMs that have it.
    pub fn largest(&self, name: &str) -> Option<f64> {
        self.values(name).reduce(f64::max)
    }

    fn values(&self, name: &str) -> impl Iterator<Item = f64> {
        self.vms.values().filter_map(move |vm| vm.get(name))
    }
}
