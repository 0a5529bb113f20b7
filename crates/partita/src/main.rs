//! The laboratory's command.
fn main() {}
