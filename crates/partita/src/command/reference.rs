//! `partita reference`.

use super::failure::Failure;
use super::output;

pub(super) fn execute(schema: bool) -> Result<(), Failure> {
    let text = if schema {
        let schema = crate::reference::schema();
        let text = serde_json::to_string_pretty(&schema);
        text.map_err(|error| Failure::Host("the schema", error.into()))? + "\n"
    } else {
        crate::reference::page()
    };
    output::say_unfolded(&text);
    Ok(())
}
