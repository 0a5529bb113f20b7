//! The host's network, as a guest sees it: the user-mode network of a QEMU that has nothing else.
//!
//! It gives addresses by DHCP and answers for names, lets guests connect to the world, and forwards ports of the host's
//! loopback address to guests. A run on QEMU has the same inside its own process, so guests see the same on both computers.

use super::error::ComputerError;
use super::process::guarded;
use crate::qemu::{self, QemuError};
use machine::device::Uplink;
use machine::front::Pace;
use std::io::{Error, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use system::HostNetwork;

/// How long it may take to find out that it cannot be started.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest frame that comes, with room.
const LONGEST: usize = 1 << 16;

/// The line to it.
#[derive(Debug)]
struct HostLine {
    process: Child,
    line: UnixDatagram,
    pace: Pace,
    buffer: Vec<u8>,
}

/// Connects to the host's network.
///
/// # Errors
/// QEMU cannot be started, or a port of the host that is to be forwarded is taken.
pub(super) fn open(host: &HostNetwork) -> Result<Box<dyn Uplink>, ComputerError> {
    let failed = |error| ComputerError::Host("the line to the host's network", error);
    let (ours, theirs) = UnixDatagram::pair().map_err(failed)?;
    ours.set_nonblocking(true).map_err(failed)?;
    let mut command = guarded(qemu::PROGRAM);
    command.args(["-M", "none", "-nodefaults", "-no-user-config"]);
    command.args(["-display", "none", "-netdev", &qemu::user_network(host)]);
    command.args(["-netdev", "hubport,id=inner,hubid=0,netdev=host"]);
    // The line is its standard input.
    command.args(["-netdev", "socket,id=line,fd=0"]);
    command.args(["-netdev", "hubport,id=outer,hubid=0,netdev=line"]);
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.process_group(0);
    let mut process = command.spawn().map_err(QemuError::Start)?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = process.try_wait().map_err(failed)? {
            let mut said = String::new();
            if let Some(mut errors) = process.stderr.take() {
                // What could be read is shown.
                let _ = errors.read_to_string(&mut said);
            }
            let error = format!("QEMU ended with {status}: {}", said.trim());
            return Err(failed(Error::other(error)));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Box::new(HostLine {
        process,
        line: ours,
        pace: Pace::new(),
        buffer: vec![0; LONGEST],
    }))
}

impl Uplink for HostLine {
    fn send(&mut self, frame: &[u8]) {
        // A line that is full or gone loses what is sent, as networks do.
        let _ = self.line.send(frame);
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        let length = self.line.recv(&mut self.buffer).ok()?;
        self.buffer.get(..length).map(<[u8]>::to_vec)
    }

    fn pace(&mut self) {
        self.pace.wait();
    }
}

impl Drop for HostLine {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
