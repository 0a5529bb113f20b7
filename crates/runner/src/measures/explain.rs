//! Measures as people read them.

use super::renamed::present_name;
use super::{Figures, Measure};
use crate::table::{Table, number};

/// A table of the figures, in the order of the measures.
pub fn show(figures: &Figures) -> Table {
    let mut table = Table::new(["measure", "value", "unit"]);
    for measure in Measure::ALL {
        let own = figures
            .iter()
            .filter(|(name, _)| name.measure() == *measure);
        for (name, value) in own {
            let unit = String::from(measure.unit());
            table.row([name.to_string(), number(value), unit]);
        }
    }
    table
}

/// Explains a measure.
///
/// # Errors
/// There is no such measure: the message names the nearest one and all others, or the present name of one that was renamed.
pub fn explain(name: &str) -> Result<String, String> {
    let measure = known(name)?;
    let unit = match measure.unit() {
        "" => "a number",
        unit => unit,
    };
    let (line, definition) = (measure.line(), measure.definition());
    Ok(format!("{name} ({unit}): {line}.\n{definition}"))
}

/// The measure of this name.
///
/// # Errors
/// There is no such measure: the message names the nearest one and all others, or the present name of one that was renamed.
pub fn known(name: &str) -> Result<Measure, String> {
    // A former member of a family that still exists passes for a member.
    if let Some(present) = present_name(name) {
        return Err(format!("the measure {name} is called {present} now"));
    }
    if let Some(measure) = Measure::find(name) {
        return Ok(measure);
    }
    let names = Measure::ALL.iter().map(|measure| measure.name());
    let names: Vec<&str> = names.collect();
    let near = names
        .iter()
        .max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
    Err(format!(
        "there is no measure {name:?}; did you mean {}? There are {}",
        near.copied().unwrap_or_default(),
        names.join(", ")
    ))
}
