//! Methods that a product's build of the hypervisor lacks.

use crate::document::Origin;
use crate::{Document, Problem, Settings, System};
use abi::keys::{PapersMethod, Row, Scope};

/// Finds every value that only a hypervisor with the papers' methods carries out.
pub fn papers_methods(document: &Document, system: &System) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut find = |settings: &Settings, table: &str| {
        for (row, method, origin) in settings.papers_methods() {
            problems.push(problem(document, (row, method, origin), table));
        }
    };
    find(&system.settings, "");
    for vm in &system.vms {
        find(&vm.settings, &format!("vm.{}.", vm.name));
    }
    problems
}

fn problem(
    document: &Document,
    (row, method, origin): (&Row, PapersMethod, &Origin),
    table: &str,
) -> Problem {
    let is_experiment = row.is_in(Scope::Experiment) || row.is_in(Scope::VmExperiment);
    let within = if is_experiment { "experiment." } else { "" };
    let message = "this hypervisor was built without the papers' methods";
    let remedy = "use the default, or a hypervisor that `make build` made, which has them";
    let key = format!("{table}{within}{}", row.name);
    Problem::new(document, origin, key, message, remedy).with_value(method.word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn found(lines: &str) -> Vec<String> {
        let text = format!(
            "harts = 2\nmemory = \"512 MiB\"\n{lines}\n[vm.one]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"image:debian/kernel\"\n"
        );
        let document = Document::new(Path::new("a.toml"), text, &[]).unwrap();
        let system = System::read(&document).unwrap();
        let problems = papers_methods(&document, &system);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn papers_methods_are_found_with_their_place() {
        assert!(found("spin = \"wapd\"\ntlb-purge = \"one-shot\"").is_empty());
        let problems = found("spin = \"wopd\"\nexperiment.purge = \"new-vmid\"");
        let [spin, purge] = &problems[..] else {
            panic!("{problems:?}");
        };
        assert!(
            spin.starts_with("a.toml:3: spin = wopd: this hypervisor"),
            "{spin}"
        );
        assert!(
            purge.starts_with("a.toml:4: experiment.purge = new-vmid:"),
            "{purge}"
        );
    }

    #[test]
    fn a_vms_methods_are_found_too() {
        let text = "harts = 2\nmemory = \"512 MiB\"\n[vm.one]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 10\nkernel = \"image:debian/kernel\"\n\
                    translation = \"shadow\"\n";
        let document = Document::new(Path::new("a.toml"), text.to_owned(), &[]).unwrap();
        let system = System::read(&document).unwrap();
        let problems = papers_methods(&document, &system);
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].key, "vm.one.translation");
    }
}
