//! Document of a run: what `run --json` writes, what a child process gives its series, and what a file of results keeps.

use crate::exit_latency::Row;
use crate::measures::Figures;
use crate::report::{HartReport, Report, VmReport};
use crate::storms::{Held, Storms};
use crate::workloads::Guests;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most locks of a document, those that were held for the longest time in all.
const MAX_LOCKS: usize = 64;

/// Everything that a run gives to programs. A part that a run does not have is null or empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunDocument {
    /// Seconds since the hypervisor's entry.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// The VMs, by the hypervisor's performance monitor.
    #[serde(default)]
    pub vms: Vec<VmReport>,
    /// The harts, by the hypervisor's performance monitor.
    #[serde(default)]
    pub harts: Vec<HartReport>,
    /// KiB of memory that the hypervisor has for itself.
    #[serde(default, rename = "own_memory")]
    pub own_memory: Option<u64>,
    /// The measures.
    pub measures: Figures,
    /// Figures of the guests' workloads.
    #[serde(default)]
    pub guests: Guests,
    /// Report of the machine's hardware monitor; QEMU has none.
    #[serde(default)]
    pub hardware: Option<machine::monitor::Report>,
    /// Exits of each pause loop, by the address of its PAUSE.
    #[serde(default)]
    pub pause_loops: BTreeMap<String, u64>,
    /// Locks at which a pause loop exited, by the physical address of their word.
    #[serde(default)]
    pub locks: BTreeMap<String, Held>,
    /// Ways through the hypervisor by cause, where they were counted.
    #[serde(default, alias = "passages")]
    pub exit_latency: Vec<Row>,
    /// Measures that compare the run with a native one, where there was one.
    #[serde(default)]
    pub against_native: Option<Figures>,
    /// Inputs from the host, which make the run unrepeatable.
    #[serde(default)]
    pub from_host: Vec<String>,
}

impl RunDocument {
    /// Document of a run with these measures and nothing else.
    pub fn of_figures(measures: Figures) -> Self {
        Self {
            measures,
            ..Self::default()
        }
    }

    /// Adds the report of the hypervisor's performance monitor.
    #[must_use]
    pub fn with_monitor(self, report: Report) -> Self {
        let Report {
            seconds,
            vms,
            harts,
            own_memory,
        } = report;
        Self {
            seconds: Some(seconds),
            vms,
            harts,
            own_memory,
            ..self
        }
    }

    /// Adds the accounts of pause loops and of the locks at which they exited.
    #[must_use]
    pub fn with_storms(self, storms: Option<&Storms>) -> Self {
        let loops = storms.into_iter().flat_map(|storms| &storms.loops);
        let locks = storms.map(|storms| storms.most_held(MAX_LOCKS));
        Self {
            pause_loops: loops
                .map(|(pause, exits)| (format!("{pause:#x}"), *exits))
                .collect(),
            locks: (locks.into_iter().flatten())
                .map(|(word, held)| (format!("{word:#x}"), held))
                .collect(),
            ..self
        }
    }

    /// Reads the document that `run --json` wrote.
    ///
    /// # Errors
    /// Why it is none, for people.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measures::Measure;

    #[test]
    fn documents_come_back_to_the_last_digit() {
        let report = Report {
            seconds: 0.1 + 0.2,
            vms: Vec::new(),
            harts: Vec::new(),
            own_memory: Some(9),
        };
        let figures = Figures::from([(Measure::Throughput, 1.0 / 3.0)]);
        let document = RunDocument::of_figures(figures).with_monitor(report);
        let text = serde_json::to_vec(&document).unwrap();
        assert_eq!(RunDocument::read(&text), Ok(document));
    }

    #[test]
    fn former_names_are_read() {
        let text = r#"{ "seconds": 1.5, "measures": { "etr": 2.5, "ends": 3.0 },
            "locks": { "0x8": { "times": 1, "nanoseconds": 2, "most": 7 } },
            "passages": [{ "kind": "exit", "cause": "wfi", "count": 1, "instructions": [1, 2, 3], "cycles": [4, 5, 6] }] }"#;
        let document = RunDocument::read(text.as_bytes()).unwrap();
        let figures = [(Measure::Throughput, 2.5), (Measure::Completions, 3.0)];
        assert_eq!(document.measures, Figures::from(figures));
        assert_eq!(document.locks["0x8"].longest, 7);
        assert_eq!(document.exit_latency[0].cycles, [4, 5, 6]);
    }

    #[test]
    fn documents_without_measures_are_refused() {
        let error = RunDocument::read(b"{ \"seconds\": 1.0 }").unwrap_err();
        assert!(error.contains("measures"), "{error}");
    }
}
