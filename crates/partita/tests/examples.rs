//! The example systems that the tree carries, and those that its claims are about.

use std::path::Path;
use study::claims::{Claims, plan};
use study::compare::expand;
use study::laboratory::Computer;
use system::{Document, System};

#[test]
#[ignore = "some examples boot the exerciser, which must have been built; make test runs it"]
fn the_examples_have_no_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../systems");
    let mut count = 0;
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let system = Document::new(&path, text, &[]).and_then(|document| System::read(&document));
        assert!(system.is_ok(), "{}", system.unwrap_err());
        count += 1;
    }
    assert!(count > 0, "there are no examples in {}", folder.display());
}

#[test]
#[ignore = "most claims are about the exerciser, which must have been built; make test runs it"]
fn systems_of_claims_have_no_mistakes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let claims = Claims::read(&folder.join("policies.toml")).unwrap();
    let profiles = tempfile::tempdir().unwrap();
    for claim in &claims.claims {
        for computer in [Computer::Machine { profile: None }, Computer::Qemu] {
            for point in plan(claim, &folder, &computer, 1) {
                let point = expand(point, profiles.path()).unwrap();
                let read = point.read();
                assert!(read.is_ok(), "{}: {:?}", claim.name, read.err());
            }
        }
    }
}

/// The same sources are the same bytes whoever builds them: neither a home nor the tree's folder is in them.
#[test]
#[ignore = "needs the hypervisor and the exerciser; make test runs it"]
fn bare_programs_hold_no_build_path() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    let home = std::env::var("HOME").unwrap_or_default();
    let cargo = std::env::var("CARGO_HOME").unwrap_or_default();
    let folders = [tree.display().to_string() + "/", home + "/.", cargo];
    for name in ["hypervisor", "exerciser"] {
        let path = system::installed::program(&system::installed::command(), name);
        let file = std::fs::read(&path).unwrap();
        for folder in folders.iter().filter(|folder| folder.len() > 4) {
            let found = file
                .windows(folder.len())
                .any(|part| part == folder.as_bytes());
            assert!(!found, "{} holds {folder}", path.display());
        }
    }
}
