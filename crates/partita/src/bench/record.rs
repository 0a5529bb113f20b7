//! One run of QEMU whose instructions are counted.

use crate::qemu::PROGRAM;
use crate::run::guarded;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Longest time that QEMU may take to open its control socket.
const START: Duration = Duration::from_secs(30);
/// Longest time of a run.
const PATIENCE: Duration = Duration::from_secs(1800);
/// What the guest says when its job went well.
const GOOD_END: &str = "partita-guest end ok=yes";

/// A run that went well.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// Instructions from reset to power-off.
    pub instructions: u64,
    /// What the console said.
    pub console: String,
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// QEMU or the connection to it.
    #[error("QEMU: {0}")]
    Qemu(#[from] std::io::Error),
    /// QEMU said something else than expected.
    #[error("QEMU's control socket said: {0}")]
    Answer(String),
    /// The guest did not say that all was well.
    #[error("the guest did not end well; the console said:\n{0}")]
    Guest(String),
}

/// Runs QEMU until the guest powers off and asks how many instructions that took. `folder` takes the recording.
///
/// # Errors
/// QEMU fails, or the guest does.
pub fn record(arguments: &[OsString], folder: &Path) -> Result<Recorded, RecordError> {
    let socket = folder.join("control");
    let recording = folder.join("recording");
    // The socket of the run before is of no use.
    let _ = std::fs::remove_file(&socket);
    let escaped = |path: &Path| path.to_string_lossy().replace(',', ",,");
    let mut child = guarded(PROGRAM)
        .args(arguments)
        .arg("-no-shutdown")
        .args([
            "-icount",
            &format!("shift=0,rr=record,rrfile={}", escaped(&recording)),
        ])
        .args([
            "-qmp",
            &format!("unix:{},server=on,wait=off", escaped(&socket)),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()?;
    let console = child.stdout.take().map(|mut output| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // What came before an error is judged.
            let _ = output.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    });
    let counted = connect(&socket).and_then(|control| count(&control));
    // After `quit` it is ending; if something went wrong it must.
    if counted.is_err() {
        let _ = child.kill();
    }
    child.wait()?;
    let console = console
        .and_then(|thread| thread.join().ok())
        .unwrap_or_default();
    let instructions = counted?;
    if !console.contains(GOOD_END) {
        return Err(RecordError::Guest(console));
    }
    Ok(Recorded {
        instructions,
        console,
    })
}

fn connect(socket: &Path) -> Result<UnixStream, RecordError> {
    let begin = Instant::now();
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => {
                stream.set_read_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) if begin.elapsed() > START => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Waits for the guest's power-off, asks for the count, and ends QEMU.
fn count(mut control: &UnixStream) -> Result<u64, RecordError> {
    let mut lines = BufReader::new(control).lines();
    let mut next = || -> Result<Value, RecordError> {
        let line = lines
            .next()
            .ok_or_else(|| RecordError::Answer(String::from("nothing more")))??;
        serde_json::from_str(&line).map_err(|_| RecordError::Answer(line))
    };
    let mut ask = |command: &str| -> std::io::Result<()> {
        writeln!(control, "{}", json!({ "execute": command }))
    };
    ask("qmp_capabilities")?;
    loop {
        let message = next()?;
        if message["event"] == "SHUTDOWN" {
            break;
        }
        if message["error"].is_object() {
            return Err(RecordError::Answer(message.to_string()));
        }
    }
    ask("query-replay")?;
    let instructions = loop {
        let message = next()?;
        if let Some(count) = message["return"]["icount"].as_u64() {
            break count;
        }
        if message["error"].is_object() {
            return Err(RecordError::Answer(message.to_string()));
        }
    };
    ask("quit")?;
    // QEMU drops what it has not read when the connection ends.
    while next().is_ok() {}
    Ok(instructions)
}
