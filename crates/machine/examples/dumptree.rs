//! Writes the device tree that a one-hart machine hands over.

use machine::Config;
use machine::board::device_tree;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("no file given")?;
    std::fs::write(path, device_tree(&Config::default().board, None)?)?;
    Ok(())
}
