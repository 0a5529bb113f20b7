//! The mirror that packages come from.

use crate::error::ImagesError;
use crate::process::run;
use std::process::Command;

/// Names a mirror where the machine's apt has none.
const MIRROR_VARIABLE: &str = "PARTITA_DEBIAN_MIRROR";

/// A URI that apt can fetch from, in one word as its list of sources needs it.
fn checked(mirror: String) -> Result<String, ImagesError> {
    let schemes = ["http://", "https://", "file:/"];
    let mut rests = schemes
        .iter()
        .filter_map(|scheme| mirror.strip_prefix(scheme));
    match rests.any(|rest| !rest.is_empty()) && !mirror.contains(char::is_whitespace) {
        true => Ok(mirror),
        false => Err(ImagesError::NotMirror(mirror)),
    }
}

/// The mirror that the variable names, or from which the machine's own apt takes Debian's main archive.
///
/// # Errors
/// There is none, or what is named is none.
pub(crate) fn find() -> Result<String, ImagesError> {
    if let Ok(mirror) = std::env::var(MIRROR_VARIABLE) {
        return checked(mirror);
    }
    let mut command = Command::new("apt-get");
    command.args([
        "indextargets",
        "--format",
        "$(ORIGIN)|$(LABEL)|$(REPO_URI)",
        "Created-By: Packages",
    ]);
    let text = run(&mut command, "apt-get", "apt")?;
    // The security archive calls itself Debian-Security, backports Debian Backports.
    let main = text
        .lines()
        .filter_map(|line| line.strip_prefix("Debian|Debian|"));
    main.map(String::from).next().ok_or(ImagesError::NoMirror)
}

#[cfg(test)]
mod tests {
    use super::checked;

    #[test]
    fn mirrors_are_uris() {
        let taken = |text: &str| checked(String::from(text)).is_ok();
        assert!(
            ["http://a/debian", "https://a/b", "file:/media/debian"]
                .into_iter()
                .all(taken)
        );
        assert!(
            !["", "nonsense", "ftp://a/debian", "https://", "http://a b"]
                .into_iter()
                .any(taken)
        );
    }
}
