//! `partita reference`.

use super::failure::Failure;
use std::io::Write;

pub(super) fn execute(schema: bool) -> Result<(), Failure> {
    let text = if schema {
        let schema = crate::reference::schema();
        let text = serde_json::to_string_pretty(&schema);
        text.map_err(|error| Failure::Laboratory(format!("the schema: {error}")))? + "\n"
    } else {
        crate::reference::page()
    };
    // A reader that has gone needs no reference.
    let _ = write!(std::io::stdout(), "{text}");
    Ok(())
}
