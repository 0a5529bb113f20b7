//! The user's terminal while a machine or a guest has it.

use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};
use std::io::stdin;
use std::sync::Mutex;

/// How the terminal was before, for whoever ends the program.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The terminal in raw mode; dropping it puts everything back.
#[derive(Debug)]
pub struct RawTerminal(());

impl RawTerminal {
    /// Passes every key on as it is. Does nothing if standard input is no terminal.
    ///
    /// # Errors
    /// The terminal refuses.
    pub fn enter() -> std::io::Result<Self> {
        if isatty(stdin()) {
            let before = tcgetattr(stdin())?;
            let mut raw = before.clone();
            raw.make_raw();
            *lock() = Some(before);
            // A panic ends the program without dropping anything.
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                hook(panic);
            }));
            tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        }
        Ok(Self(()))
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Ends this process as the signal does by default, with the terminal as it was before.
pub fn end_by(signal: i32) -> ! {
    restore();
    // It fails for signals alone that there are not.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    std::process::exit(128 + signal);
}

fn lock() -> std::sync::MutexGuard<'static, Option<Termios>> {
    BEFORE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn restore() {
    if let Some(before) = lock().take() {
        // There is nobody left to tell of a failure.
        let _ = tcsetattr(stdin(), OptionalActions::Now, &before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use rustix::termios::LocalModes;
    use std::process::{Command, Stdio};

    /// Says to the test that it is the process that panics.
    const PANICS: &str = "PARTITA_TEST_PANICS";

    #[test]
    fn a_panic_gives_the_terminal_back() {
        if std::env::var_os(PANICS).is_some() {
            let _raw = RawTerminal::enter().expect("a terminal");
            let now = tcgetattr(stdin()).expect("a terminal");
            assert!(!now.local_modes.contains(LocalModes::ECHO));
            // Not unwound through the guard: as in a program that aborts.
            std::mem::forget(_raw);
            panic!("as the test wants it");
        }
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&main).and_then(|()| unlockpt(&main)).expect("mine");
        let name = ptsname(&main, Vec::new()).expect("a name");
        let user = open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("a terminal");
        let modes = || {
            let found = tcgetattr(&user).expect("a terminal");
            (found.local_modes, found.input_modes, found.output_modes)
        };
        let before = modes();
        let output = Command::new(std::env::current_exe().expect("this test"))
            .args([
                "--exact",
                "front::raw::tests::a_panic_gives_the_terminal_back",
            ])
            .arg("--nocapture")
            .env(PANICS, "yes")
            .stdin(user.try_clone().expect("a copy"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("as the test wants it"), "{said}");
        assert_eq!(modes(), before);
    }
}
