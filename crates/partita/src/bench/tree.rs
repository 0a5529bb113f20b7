//! The board's device tree without the devices that no guest of Partita has.
//!
//! A kernel that looks at a PCI host, a clock and flash memory executes instructions for that. Natively the guest must
//! not pay for what it does not see under Partita, or the comparison would flatter.

use abi::tree::{Token, Tree, TreeError};
use vm_fdt::FdtWriter;

/// The nodes, by their names up to the address.
const LEFT_OUT: [&str; 5] = ["pci", "flash", "fw-cfg", "rtc", "platform-bus"];

/// Why the tree cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum TreeProblem {
    /// It cannot be read.
    #[error("the board's device tree: {0}")]
    Read(#[from] TreeError),
    /// It cannot be written.
    #[error("the board's device tree: {0}")]
    Write(#[from] vm_fdt::Error),
}

/// Copies a tree without them.
///
/// # Errors
/// The tree is damaged.
pub fn without_devices(blob: &[u8]) -> Result<Vec<u8>, TreeProblem> {
    let tree = Tree::new(blob)?;
    let mut writer = FdtWriter::new()?;
    let mut open = Vec::new();
    // How many nodes deep the walk is inside one that is left out.
    let mut left_out = 0usize;
    for token in tree.tokens() {
        match token? {
            Token::Begin(name) => {
                let kind = name.split('@').next().unwrap_or_default();
                if left_out > 0 || LEFT_OUT.contains(&kind) {
                    left_out += 1;
                } else {
                    open.push(writer.begin_node(name)?);
                }
            }
            Token::Property(property) if left_out == 0 => {
                writer.property(property.name, property.value)?;
            }
            Token::Property(_) => {}
            Token::End if left_out > 0 => left_out -= 1,
            Token::End => {
                if let Some(node) = open.pop() {
                    writer.end_node(node)?;
                }
            }
        }
    }
    Ok(writer.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_removed_with_their_children() {
        let mut writer = FdtWriter::new().unwrap();
        let root = writer.begin_node("").unwrap();
        writer.property_u32("keep", 1).unwrap();
        let soc = writer.begin_node("soc").unwrap();
        let pci = writer.begin_node("pci@30000000").unwrap();
        let inner = writer.begin_node("inner").unwrap();
        writer.property_u32("drop", 2).unwrap();
        writer.end_node(inner).unwrap();
        writer.end_node(pci).unwrap();
        let serial = writer.begin_node("serial@10000000").unwrap();
        writer.property_u32("keep", 3).unwrap();
        writer.end_node(serial).unwrap();
        writer.end_node(soc).unwrap();
        writer.end_node(root).unwrap();
        let before = writer.finish().unwrap();

        let after = without_devices(&before).unwrap();
        let tree = Tree::new(&after).unwrap();
        let mut names = Vec::new();
        for token in tree.tokens() {
            match token.unwrap() {
                Token::Begin(name) => names.push(String::from(name)),
                Token::Property(property) => {
                    names.push(format!("{}={:?}", property.name, property.number()));
                }
                Token::End => names.push(String::from("end")),
            }
        }
        let expected = [
            "",
            "keep=Some(1)",
            "soc",
            "serial@10000000",
            "keep=Some(3)",
            "end",
            "end",
            "end",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_damaged_tree_is_refused() {
        assert!(without_devices(&[0; 64]).is_err());
    }
}
