//! `partita explain`.

use super::failure::Failure;
use super::output;
use runner::measures::{self, Measure};
use runner::table::Table;

pub(super) fn execute(name: Option<&str>) -> Result<(), Failure> {
    let text = match name {
        Some(name) => measures::explain(name).map_err(Failure::Measure)? + "\n",
        None => {
            let mut table = Table::new(["measure", "unit", "meaning"]).with_text(2);
            for measure in Measure::ALL {
                table.row([measure.name(), measure.unit(), measure.line()]);
            }
            table.to_string()
        }
    };
    output::say(format_args!("{text}"));
    Ok(())
}
