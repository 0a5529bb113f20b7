//! Extensions that a guest's device tree does not name.

/// Extensions that may be hidden: a guest can do without each of them. They are hidden from its device tree and not forbidden, so a guest that uses
/// them all the same is served as if it had been told. Vectors alone are forbidden where they are hidden, and with `v` all that are built on
/// it: their registers are then not kept.
pub const HIDEABLE: [&str; 31] = [
    "sscofpmf",
    "ssnpm",
    "sstc",
    "supm",
    "svade",
    "svadu",
    "svinval",
    "svnapot",
    "svpbmt",
    "v",
    "zabha",
    "zacas",
    "zawrs",
    "zba",
    "zbb",
    "zbc",
    "zbkb",
    "zbkc",
    "zbkx",
    "zbs",
    "zcb",
    "zfa",
    "zfh",
    "zicbom",
    "zicbop",
    "zicboz",
    "zicond",
    "zihintntl",
    "zihintpause",
    "zihpm",
    "zkt",
];

/// A set of [`HIDEABLE`] extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hidden(u32);

impl Hidden {
    /// Adds an extension. False, and nothing changes, if it is none of [`HIDEABLE`].
    pub fn insert(&mut self, name: &str) -> bool {
        let place = HIDEABLE.iter().position(|hideable| *hideable == name);
        self.0 |= place.map_or(0, |place| 1 << place);
        place.is_some()
    }

    /// The set of these, with spaces between them.
    ///
    /// # Errors
    /// The first that is none of [`HIDEABLE`].
    pub fn from_names(names: &str) -> Result<Self, &str> {
        let mut hidden = Self::default();
        match names.split_whitespace().find(|name| !hidden.insert(name)) {
            Some(name) => Err(name),
            None => Ok(hidden),
        }
    }

    /// The names in it, in the order of [`HIDEABLE`].
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let all = HIDEABLE.into_iter().enumerate();
        all.filter(move |(place, _)| self.0 >> place & 1 != 0)
            .map(|(_, name)| name)
    }

    /// Returns true if this extension is in the set.
    pub fn contains(self, name: &str) -> bool {
        self.names().any(|hidden| hidden == name)
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_extensions_alone_are_hidden() {
        let hidden = Hidden::from_names(" zawrs  sstc ").unwrap();
        assert!(hidden.names().eq(["sstc", "zawrs"]));
        assert!(hidden.contains("zawrs") && !hidden.contains("zba") && !hidden.contains("i"));
        assert_eq!(Hidden::from_names("zawrs h"), Err("h"));
        assert!(Hidden::from_names("").unwrap().is_empty());
    }

    #[test]
    fn extensions_have_different_places() {
        for name in HIDEABLE {
            assert!(Hidden::from_names(name).unwrap().names().eq([name]));
        }
    }
}
