//! `partita reference`.

use super::failure::Failure;
use super::output;

pub(super) fn execute(schema: bool, control: bool) -> Result<(), Failure> {
    let schema = match (schema, control) {
        (true, _) => crate::reference::schema(),
        (_, true) => crate::reference::control_schema(),
        (false, false) => {
            output::say_unfolded(&crate::reference::page());
            return Ok(());
        }
    };
    let text = serde_json::to_string_pretty(&schema)
        .map_err(|error| Failure::Host("the schema", error.into()))?;
    output::say_unfolded(&(text + "\n"));
    Ok(())
}
