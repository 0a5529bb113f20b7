//! A session with gdb.

use std::io;
use std::marker::PhantomData;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use gdbstub::common::Signal;
use gdbstub::conn::{Connection, ConnectionExt};
use gdbstub::stub::run_blocking::{BlockingEventLoop, Event, WaitForStopReasonError};
use gdbstub::stub::{BaseStopReason, DisconnectReason, GdbStub, MultiThreadStopReason};
use gdbstub::target::Target;

use super::target::{Debugged, thread};
use super::{Reached, Stops};
use crate::machine::{Limit, Machine, Stop};

/// Cycles between two looks at what gdb says.
const SLICE: u64 = 200_000;
/// How long to wait for gdb when nothing can happen in the machine.
const IDLE: Duration = Duration::from_millis(5);

/// Why a session ended badly.
#[derive(Debug, thiserror::Error)]
pub enum GdbError {
    /// The port cannot be used.
    #[error("cannot wait for gdb on port {port}: {error}")]
    Listen {
        /// The port.
        port: u16,
        /// Error of the host.
        error: io::Error,
    },
    /// gdb and the machine do not understand each other.
    #[error("the session with gdb broke off: {0}")]
    Protocol(String),
}

/// Waits for gdb on a port of this host, 0 for any that is free, and runs the machine under it.
/// `ready` is told the port. Gives why the machine stopped, `None` if gdb killed it; when gdb goes
/// away the machine runs on without.
///
/// # Errors
/// [`GdbError`].
pub fn serve(
    machine: &mut Machine,
    port: u16,
    limit: Limit,
    ready: impl FnOnce(u16),
) -> Result<Option<Stop>, GdbError> {
    let refused = |error| GdbError::Listen { port, error };
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(refused)?;
    ready(listener.local_addr().map_err(refused)?.port());
    let (stream, _) = listener.accept().map_err(refused)?;
    stream.set_nodelay(true).map_err(refused)?;
    for hart in &mut machine.harts {
        hart.stops = Some(Box::new(Stops::default()));
    }
    let mut debugged = Debugged { machine };
    let ended = GdbStub::new(stream).run_blocking::<Session<'_>>(&mut debugged);
    for hart in &mut machine.harts {
        hart.stops = None;
    }
    match ended {
        Ok(DisconnectReason::Kill) => Ok(None),
        Ok(DisconnectReason::TargetExited(0)) => Ok(Some(Stop::PowerOff)),
        Ok(DisconnectReason::TargetExited(code)) => Ok(Some(Stop::Exit(code.into()))),
        Ok(_) => Ok(Some(machine.run(limit))),
        Err(error) => Err(GdbError::Protocol(error.to_string())),
    }
}

/// How the machine runs between two words of gdb.
struct Session<'a>(PhantomData<&'a ()>);

impl<'a> BlockingEventLoop for Session<'a> {
    type Target = Debugged<'a>;
    type Connection = TcpStream;
    type StopReason = MultiThreadStopReason<u64>;

    fn wait_for_stop_reason(
        target: &mut Debugged<'a>,
        connection: &mut TcpStream,
    ) -> Result<
        Event<Self::StopReason>,
        WaitForStopReasonError<<Debugged<'a> as Target>::Error, <TcpStream as Connection>::Error>,
    > {
        let failed = WaitForStopReasonError::Connection;
        loop {
            if ConnectionExt::peek(connection).map_err(failed)?.is_some() {
                let byte = ConnectionExt::read(connection).map_err(failed)?;
                return Ok(Event::IncomingData(byte));
            }
            let machine = &mut *target.machine;
            let limit = Limit {
                instructions: None,
                cycles: Some(machine.now().saturating_add(SLICE)),
            };
            let reason = match machine.run(limit) {
                Stop::Limit | Stop::Marker => continue,
                Stop::Idle | Stop::Stuck => {
                    std::thread::sleep(IDLE);
                    continue;
                }
                Stop::Debugger => reached(machine),
                Stop::PowerOff | Stop::Reset => BaseStopReason::Exited(0),
                Stop::Exit(code) => BaseStopReason::Exited(code.min(255) as u8),
            };
            return Ok(Event::TargetStopped(reason));
        }
    }

    fn on_interrupt(
        _: &mut Debugged<'a>,
    ) -> Result<Option<Self::StopReason>, <Debugged<'a> as Target>::Error> {
        Ok(Some(BaseStopReason::Signal(Signal::SIGINT)))
    }
}

/// Which hart has stopped, and why.
fn reached(machine: &Machine) -> MultiThreadStopReason<u64> {
    for (index, hart) in machine.harts.iter().enumerate() {
        let tid = thread(index);
        match hart.stops.as_ref().and_then(|stops| stops.reached) {
            Some(Reached::Breakpoint) => return BaseStopReason::SwBreak(tid),
            Some(Reached::Step) => {
                let signal = Signal::SIGTRAP;
                return BaseStopReason::SignalWithThread { tid, signal };
            }
            None => {}
        }
    }
    BaseStopReason::Signal(Signal::SIGTRAP)
}
