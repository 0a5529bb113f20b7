//! Damaged trees: refused with the place, or read without a panic.

use board::{Fault, Survey, Tree, TreeError, hardware};
use proptest::prelude::*;
use vm_fdt::FdtWriter;

/// A small tree with all that is read.
fn tree() -> Vec<u8> {
    let mut fdt = FdtWriter::new().unwrap();
    let root = fdt.begin_node("").unwrap();
    fdt.property_u32("#address-cells", 2).unwrap();
    fdt.property_u32("#size-cells", 2).unwrap();
    let cpus = fdt.begin_node("cpus").unwrap();
    fdt.property_u32("#address-cells", 1).unwrap();
    fdt.property_u32("#size-cells", 0).unwrap();
    fdt.property_u32("timebase-frequency", 10_000_000).unwrap();
    let cpu = fdt.begin_node("cpu@0").unwrap();
    fdt.property_string("device_type", "cpu").unwrap();
    fdt.property_u32("reg", 0).unwrap();
    fdt.property_string("riscv,isa", "rv64imafdch_ssaia_sstc")
        .unwrap();
    let controller = fdt.begin_node("interrupt-controller").unwrap();
    fdt.property_null("interrupt-controller").unwrap();
    fdt.property_u32("phandle", 1).unwrap();
    fdt.end_node(controller).unwrap();
    fdt.end_node(cpu).unwrap();
    fdt.end_node(cpus).unwrap();
    let imsics = fdt.begin_node("imsics@28000000").unwrap();
    fdt.property_string("compatible", "riscv,imsics").unwrap();
    fdt.property_array_u64("reg", &[0x2800_0000, 0x8000])
        .unwrap();
    fdt.property_array_u32("interrupts-extended", &[1, 9])
        .unwrap();
    fdt.property_u32("riscv,guest-index-bits", 3).unwrap();
    fdt.end_node(imsics).unwrap();
    let uart = fdt.begin_node("serial@10000000").unwrap();
    fdt.property_string("compatible", "ns16550a").unwrap();
    fdt.property_array_u64("reg", &[0x1000_0000, 0x100])
        .unwrap();
    fdt.property_array_u32("clocks", &[1, 2, 3]).unwrap();
    fdt.end_node(uart).unwrap();
    fdt.end_node(root).unwrap();
    fdt.finish().unwrap()
}

#[test]
fn cut_trees_name_the_sizes() {
    let whole = tree();
    for length in 0..whole.len() {
        let error = Tree::new(&whole[..length]).unwrap_err();
        assert!(
            matches!(error, TreeError::Short { found, .. } if found == length),
            "{error:?}"
        );
    }
    let error = Tree::new(&whole[..100]).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "the device tree has 100 bytes and should have {}",
            whole.len()
        )
    );
}

#[test]
fn other_files_are_no_trees() {
    let error = Tree::new(b"[vm.web]\nmemory = \"1GiB\"\n").unwrap_err();
    assert!(matches!(error, TreeError::Magic(_)), "{error:?}");
}

/// A tree of tokens alone, with an empty block of strings.
fn of_tokens(tokens: &[u32]) -> Vec<u8> {
    const HEADER: u32 = 40;
    let length = 4 * tokens.len() as u32;
    let end = HEADER + length;
    let header = [0xd00d_feed, end, HEADER, end, end, 17, 16, 0, 0, length];
    let words = header.iter().chain(tokens);
    words.flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn nodes_that_do_not_match_are_found() {
    let fault = |tokens: &[u32]| match Tree::new(&of_tokens(tokens)) {
        Err(TreeError::Structure { fault, .. }) => Some(fault),
        other => panic!("{other:?}"),
    };
    // Begin 1 (with an empty name), end 2, property 3, the end 9.
    assert_eq!(fault(&[1, 0, 9]), Some(Fault::Nesting));
    assert_eq!(fault(&[1, 0, 2, 2, 9]), Some(Fault::Nesting));
    assert_eq!(fault(&[1, 0, 2, 1, 0, 2, 9]), Some(Fault::Nesting));
    assert_eq!(fault(&[1, 0, 2]), Some(Fault::CutOff));
    assert_eq!(fault(&[1, 0, 7, 2, 9]), Some(Fault::Token(7)));
    assert_eq!(fault(&[3, 0, 0, 1, 0, 2, 9]), Some(Fault::StrayProperty));
    let deep: Vec<u32> = [1, 0].repeat(100);
    assert_eq!(fault(&deep), Some(Fault::Depth));
    assert_eq!(fault(&[1, 0, 3, 0xffff_fff0, 0, 2, 9]), Some(Fault::CutOff));
}

/// A bus that is its own parent cannot be said, but an alias can name an alias, and a map can name nobody.
#[test]
fn aliases_are_followed_once() {
    let mut fdt = FdtWriter::new().unwrap();
    let root = fdt.begin_node("").unwrap();
    let aliases = fdt.begin_node("aliases").unwrap();
    fdt.property_string("a", "b").unwrap();
    fdt.property_string("b", "a").unwrap();
    fdt.end_node(aliases).unwrap();
    fdt.end_node(root).unwrap();
    let bytes = fdt.finish().unwrap();
    assert!(Tree::new(&bytes).unwrap().find("a").is_none());
}

proptest! {
    /// Any bytes of a tree may have changed.
    #[test]
    fn changed_trees_are_read_without_a_panic(changes in prop::collection::vec((0usize..1024, any::<u8>()), 1..6)) {
        let mut bytes = tree();
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if let Ok(tree) = Tree::new(&bytes) {
            let survey = Survey::read(&tree);
            let _ = survey.lacks();
            let _ = hardware(&tree);
        }
    }
}
