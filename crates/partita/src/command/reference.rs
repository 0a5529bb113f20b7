//! `partita reference`.

use super::failure::Failure;
use super::output;

pub(super) fn execute(schema: bool) -> Result<(), Failure> {
    let text = if schema {
        let schema = crate::reference::schema();
        let text = serde_json::to_string_pretty(&schema);
        text.map_err(|error| Failure::Laboratory(format!("the schema: {error}")))? + "\n"
    } else {
        crate::reference::page()
    };
    output::say(format_args!("{text}"));
    Ok(())
}
