//! `partita explain`.

use super::failure::Failure;
use runner::measures::{self, Measure};
use runner::table::Table;
use std::io::Write;

pub(super) fn execute(name: Option<&str>) -> Result<(), Failure> {
    let text = match name {
        Some(name) => measures::explain(name).map_err(Failure::Measure)? + "\n",
        None => {
            let mut table = Table::new(["measure", "unit", ""]);
            for measure in Measure::ALL {
                table.row([measure.name(), measure.unit(), measure.line()]);
            }
            table.to_string()
        }
    };
    // A reader that has gone needs no explanation.
    let _ = write!(std::io::stdout(), "{text}");
    Ok(())
}
