//! QEMU as a child that never outlives its parent.

use crate::qemu;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

/// Kills a program when its parent dies, for which the standard library has no means.
const GUARD: &str = "/usr/bin/setpriv";

/// A command that is killed when this process dies, where the system has the means.
pub(super) fn guarded(program: &str) -> Command {
    if !Path::new(GUARD).is_file() {
        return Command::new(program);
    }
    let mut command = Command::new(GUARD);
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

/// A running QEMU.
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    errors: Option<JoinHandle<String>>,
}

impl Process {
    /// Starts QEMU. Its console's bytes go to `output`, an empty piece at the end.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(arguments: &[OsString], output: Sender<Vec<u8>>) -> std::io::Result<Self> {
        let mut command = guarded(qemu::PROGRAM);
        command.args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // A group of its own: the terminal's interrupt key is ours to act on.
        command.process_group(0);
        let mut child = command.spawn()?;
        if let Some(mut console) = child.stdout.take() {
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(length) = console.read(&mut buffer) {
                    let piece = buffer.get(..length).unwrap_or_default().to_vec();
                    if output.send(piece).is_err() || length == 0 {
                        return;
                    }
                }
                // The receiver may be gone.
                let _ = output.send(Vec::new());
            });
        }
        let errors = child.stderr.take().map(|mut errors| {
            std::thread::spawn(move || {
                let mut text = Vec::new();
                // What could be read is shown.
                let _ = errors.read_to_end(&mut text);
                String::from_utf8_lossy(&text).into_owned()
            })
        });
        let input = child.stdin.take();
        Ok(Self {
            child,
            input,
            errors,
        })
    }

    /// Sends keys to the console. A QEMU that has ended takes none, and that shows elsewhere.
    pub fn send(&mut self, keys: &[u8]) {
        if let Some(input) = &mut self.input {
            let _ = input.write_all(keys).and_then(|()| input.flush());
        }
    }

    /// Ends QEMU at once, or takes the end that it has come to; its own messages come with it.
    ///
    /// # Errors
    /// The system does not say how it ended.
    pub fn end(mut self, kill: bool) -> std::io::Result<(ExitStatus, String)> {
        self.input = None;
        if kill {
            // It may have ended by itself.
            let _ = self.child.kill();
        }
        let status = self.child.wait()?;
        let errors = self.errors.take().and_then(|thread| thread.join().ok());
        Ok((status, errors.unwrap_or_default()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // After `end` both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
