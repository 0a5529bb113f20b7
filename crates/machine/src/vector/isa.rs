//! Extensions of a vector unit, as the device tree names them.

use crate::base::VectorLength;

/// Extensions of every vector unit of this machine besides "v". Zvkt holds by construction: no cost depends on data.
const IMPLEMENTED: [&str; 16] = [
    "zvbb", "zvbc", "zve32f", "zve32x", "zve64d", "zve64f", "zve64x", "zvfh", "zvfhmin", "zvkb",
    "zvkg", "zvkned", "zvknhb", "zvksed", "zvksh", "zvkt",
];

/// Minimum lengths that a unit guarantees.
const LENGTHS: [(u16, &str); 6] = [
    (32, "zvl32b"),
    (64, "zvl64b"),
    (128, "zvl128b"),
    (256, "zvl256b"),
    (512, "zvl512b"),
    (1024, "zvl1024b"),
];

/// Names of the extensions that harts with registers of a length have, besides "v"; none without a vector unit.
pub fn extensions(length: VectorLength) -> impl Iterator<Item = &'static str> {
    let implemented = IMPLEMENTED.iter().copied().filter(move |_| length.exists());
    let lengths = LENGTHS
        .iter()
        .filter(move |(bits, _)| *bits <= length.bits());
    implemented.chain(lengths.map(|(_, name)| *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_up_to_the_registers_are_named() {
        let names: Vec<_> =
            VectorLength::new(256).map_or_else(Vec::new, |length| extensions(length).collect());
        assert!(names.contains(&"zvl256b") && !names.contains(&"zvl512b"));
        assert_eq!(extensions(VectorLength::NONE).count(), 0);
    }
}
