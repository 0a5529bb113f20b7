//! Measures as people read them.

use super::{MEASURES, Measure, find};
use crate::measures::Figures;
use crate::table::{Table, number};

/// A table of the figures, in the order of the measures.
pub fn show(figures: &Figures) -> Table {
    let mut table = Table::new(["measure", "value", "unit"]);
    for measure in &MEASURES {
        let family = measure.name.ends_with('.');
        let of_measure = figures
            .iter()
            .filter(|(name, _)| find(name) == Some(measure) && (family || *name == measure.name));
        for (name, value) in of_measure {
            table.row([name.clone(), number(*value), String::from(measure.unit)]);
        }
    }
    table
}

/// Explains a measure; lists the measures if there is no such one.
pub fn explain(name: &str) -> Result<String, String> {
    let Some(measure) = find(name) else {
        let names: Vec<&str> = MEASURES.iter().map(|measure| measure.name).collect();
        let near = names
            .iter()
            .max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
        return Err(format!(
            "there is no measure {name:?}; did you mean {}? There are {}",
            near.unwrap_or(&"etr"),
            names.join(", ")
        ));
    };
    let Measure {
        unit,
        line,
        definition,
        ..
    } = measure;
    let unit = if unit.is_empty() { "a number" } else { unit };
    Ok(format!("{name} ({unit}): {line}.\n{definition}"))
}
