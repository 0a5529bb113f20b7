//! Crate and module that a demangled name of a function belongs to.

/// Path of the module that a function stands in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner<'a> {
    /// Names of crate and modules; the first is the crate's.
    names: Vec<&'a str>,
}

impl<'a> Owner<'a> {
    /// Finds the owner of a function: the module of its type if it is a method, else the module of its path. None for a name
    /// without a path.
    pub(crate) fn of(name: &'a str) -> Option<Self> {
        let path = match name.strip_prefix('<') {
            // `<Type as Trait>::method` or `<Type>::method`.
            Some(qualified) => {
                let (own, of_trait) = split_qualified(qualified);
                return Self::of_type(own).or_else(|| of_trait.and_then(Self::of_type));
            }
            None => name,
        };
        let mut names = leading_names(path);
        // The last name is the function's.
        if names.len() > 1 && !is_cut_at_type(path, &names) {
            names.pop();
        }
        let is_path = path.contains("::") && !names.is_empty();
        is_path.then_some(Self { names })
    }

    /// Finds the owner of a type; None for a type without a path, such as a slice or a type parameter.
    fn of_type(path: &'a str) -> Option<Self> {
        let path = path.trim_start_matches(['&', '*', '[', '(']);
        let path = (["mut ", "const ", "dyn "].iter())
            .fold(path, |path, word| path.strip_prefix(word).unwrap_or(path));
        if path.starts_with('<') {
            return Self::of(path);
        }
        let names = leading_names(path);
        let is_path = path.contains("::") && !names.is_empty();
        is_path.then_some(Self { names })
    }

    /// Name of the crate.
    pub(crate) fn crate_name(&self) -> &'a str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Path of the module, of at most `depth` names.
    pub(crate) fn module(&self, depth: usize) -> String {
        let depth = depth.clamp(1, self.names.len());
        self.names[..depth].join("::")
    }
}

/// Names of modules at the beginning of a path: up to the first that is a type, a closure, or has type parameters.
fn leading_names(path: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for name in path.split("::") {
        let length = name.find(|c: char| !c.is_alphanumeric() && c != '_');
        let word = &name[..length.unwrap_or(name.len())];
        if word.is_empty() || word.starts_with(char::is_uppercase) {
            break;
        }
        names.push(word);
        if length.is_some() {
            break;
        }
    }
    names
}

/// Returns true if the path goes on with a type, so that all of `names` are modules.
fn is_cut_at_type(path: &str, names: &[&str]) -> bool {
    let length: usize = names.iter().map(|name| name.len() + 2).sum();
    let rest = path.get(length..).unwrap_or_default();
    // A type, or `<impl Trait for Type>`.
    rest.starts_with(char::is_uppercase) || rest.starts_with("<impl ")
}

/// Splits `Type as Trait>::method` into type and trait, and `Type>::method` into the type alone.
fn split_qualified(text: &str) -> (&str, Option<&str>) {
    let mut depth = 0usize;
    let mut own = None;
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            // The arrow of a function's type closes nothing.
            '>' if text[..at].ends_with('-') => {}
            '>' if depth == 0 => {
                return match own {
                    Some(end) => (&text[..end], text.get(end + " as ".len()..at)),
                    None => (&text[..at], None),
                };
            }
            '>' => depth -= 1,
            ' ' if depth == 0 && own.is_none() && text[at..].starts_with(" as ") => own = Some(at),
            _ => {}
        }
    }
    (text, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str) -> Option<String> {
        Owner::of(name).map(|owner| owner.module(9))
    }

    #[test]
    fn functions_belong_to_their_module() {
        for (name, expected) in [
            ("a::b::c::function", "a::b::c"),
            ("a::function", "a"),
            ("a::b::function::{{closure}}", "a::b"),
            ("a::b::function::{closure#0}::{closure#1}", "a::b"),
            ("a::b::function::<c::d::Type>", "a::b"),
            ("core::ptr::drop_in_place<a::b::Type>", "core::ptr"),
        ] {
            assert_eq!(module(name).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn methods_belong_to_their_type() {
        for (name, expected) in [
            ("a::b::Type::method", "a::b"),
            ("a::b::Type<c::d::Other>::method", "a::b"),
            ("<a::b::Type>::method", "a::b"),
            ("<a::b::Type as core::fmt::Display>::fmt", "a::b"),
            ("<&mut a::b::Type<fn(u8) -> u8> as c::Trait>::f", "a::b"),
            (
                "<a::b::Type<c::Other<u8>> as d::Trait<u8>>::f::<u8>",
                "a::b",
            ),
            ("<[T] as a::b::Trait>::f", "a::b"),
            ("<T as a::b::Trait>::f", "a::b"),
            ("<<a::b::Type as c::Trait>::Item as d::Trait>::f", "a::b"),
            ("a::b::<impl c::d::Trait for u8>::f", "a::b"),
            ("<dyn a::b::Trait>::f", "a::b"),
        ] {
            assert_eq!(module(name).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn names_without_a_path_have_no_owner() {
        for name in ["memcpy", "_start", "", "<", "<u8>", "::", "<[T]>::f"] {
            assert_eq!(module(name), None, "{name}");
        }
    }

    #[test]
    fn a_module_is_cut_at_the_depth() {
        let owner = Owner::of("a::b::c::function").unwrap();
        let cut = [0, 1, 2, 9].map(|depth| owner.module(depth));
        assert_eq!(cut, ["a", "a", "a::b", "a::b::c"]);
    }
}
