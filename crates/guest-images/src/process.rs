//! Programs of the host that take part in building.

use crate::error::ImagesError;

/// Runs a program to its end, and shows what it said if it fails.
pub(crate) fn run(
    command: &mut std::process::Command,
    program: &'static str,
    package: &'static str,
) -> Result<String, ImagesError> {
    let output = run_whole(command, program, package)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The same with all that it said.
pub(crate) fn run_whole(
    command: &mut std::process::Command,
    program: &'static str,
    package: &'static str,
) -> Result<std::process::Output, ImagesError> {
    /// How many lines of a failing program's output are shown.
    const SHOWN: usize = 15;
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .map_err(|error| ImagesError::Program {
            program,
            error,
            package,
        })?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        let all = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        let lines: Vec<&str> = all.lines().collect();
        let tail = lines
            .get(lines.len().saturating_sub(SHOWN)..)
            .unwrap_or_default();
        return Err(ImagesError::Failed {
            program: String::from(program),
            status: output.status,
            output: tail.join("\n"),
        });
    }
    Ok(output)
}
