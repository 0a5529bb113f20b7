//! Follows `docs/how-to-add-a-policy.md` from end to end: its file, lines and sample, in a copy of the crate.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Samples of Rust on the page, in order.
fn samples(page: &str) -> Vec<&str> {
    let blocks = page.split("```rust\n").skip(1);
    blocks
        .map(|rest| rest.split("```").next().expect("an end of the sample"))
        .collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{errors}");
}

fn compiler(edition_of: &Path) -> Command {
    let mut compiler = Command::new(env::var_os("RUSTC").unwrap_or("rustc".into()));
    compiler
        .current_dir(edition_of)
        .args(["--edition", "2024", "-D", "warnings"]);
    compiler
}

/// Inserts `line` into `text` before the only place of `before`.
fn insert(text: &str, line: &str, before: &str) -> String {
    assert_eq!(text.matches(before).count(), 1, "{before}");
    text.replace(before, &format!("{line}{before}"))
}

#[test]
fn page_adds_a_policy() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(own.join("../../docs/how-to-add-a-policy.md")).unwrap();
    let [policy, module, row, program] = samples(&page)[..] else {
        panic!("the page has a file, a module, a row and a program");
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("how_to");
    let _ = fs::remove_dir_all(&folder);
    copy(&own.join("src"), &folder.join("src"));
    let spin = folder.join("src/policies/spin");
    fs::write(spin.join("first_ready.rs"), policy).unwrap();
    let list = spin.join("mod.rs");
    let text = fs::read_to_string(&list).unwrap();
    let text = insert(&text, module, "mod none;\n");
    let (rows, end) = text.rsplit_once('}').unwrap();
    fs::write(&list, format!("{rows}{row}}}{end}")).unwrap();
    fs::write(folder.join("program.rs"), program).unwrap();
    run(compiler(&folder)
        .args(["--crate-type", "lib", "--crate-name", "scheduler"])
        .arg("src/lib.rs"));
    run(compiler(&folder)
        .args(["--extern", "scheduler=libscheduler.rlib"])
        .args(["-L", ".", "program.rs"]));
    run(&mut Command::new(folder.join("program")));
}
