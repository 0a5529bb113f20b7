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
