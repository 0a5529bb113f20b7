//! A file of events for Perfetto's viewer (ui.perfetto.dev), in the Trace Event Format (JSON).
//!
//! One track a hart with its modes as slices and its waits inside them, one track for the devices;
//! everything else is an instant. Times are microseconds of machine time with three decimals; the
//! cycles stand among each event's arguments.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Event, Happening, Place, Sink, WaitEnd};
use crate::base::Fence;
use crate::base::Mode;
use crate::base::{Clock, Cycles, InterruptFile};

/// The track of the devices; harts have their own numbers.
const DEVICES: u64 = 1 << 32;

/// Open intervals of a hart's track.
#[derive(Debug, Clone, Copy, Default)]
struct Track {
    known: bool,
    mode: Option<Mode>,
    waiting: bool,
}

/// Writes a timeline.
#[derive(Debug)]
pub struct Timeline<W> {
    file: W,
    clock: Clock,
    /// Nothing has been written yet.
    fresh: bool,
    tracks: Vec<Track>,
    /// First error.
    error: Option<io::Error>,
}

impl<W: Write> Timeline<W> {
    /// A timeline of a machine with this clock.
    pub const fn new(file: W, clock: Clock) -> Self {
        Self {
            file,
            clock,
            fresh: true,
            tracks: Vec::new(),
            error: None,
        }
    }

    fn put(&mut self, value: &Value) {
        if self.error.is_some() {
            return;
        }
        let before = if self.fresh {
            "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        } else {
            ",\n"
        };
        self.fresh = false;
        let written = self
            .file
            .write_all(before.as_bytes())
            .and_then(|()| serde_json::to_writer(&mut self.file, value).map_err(Into::into));
        self.error = written.err();
    }

    /// An event of a kind: `B` and `E` begin and end a slice, `i` is an instant.
    fn mark(&mut self, kind: &str, name: &str, track: u64, cycles: u64, arguments: Value) {
        let nanoseconds = self.clock.nanoseconds(Cycles(cycles));
        let mut arguments = arguments;
        if let Some(arguments) = arguments.as_object_mut() {
            arguments.insert("cycles".to_owned(), cycles.into());
        }
        let mut value = json!({
            "ph": kind, "pid": 0, "tid": track, "ts": nanoseconds as f64 / 1000.0, "name": name,
            "args": arguments,
        });
        if kind == "i"
            && let Some(value) = value.as_object_mut()
        {
            // The instant belongs to its track alone.
            value.insert("s".to_owned(), "t".into());
        }
        self.put(&value);
    }

    fn name_track(&mut self, track: u64, name: &str) {
        self.put(&json!({
            "ph": "M", "pid": 0, "tid": track, "name": "thread_name", "args": { "name": name },
        }));
    }

    fn track(&mut self, hart: usize) -> Track {
        if self.tracks.len() <= hart {
            self.tracks.resize(hart + 1, Track::default());
        }
        let track = self.tracks.get(hart).copied().unwrap_or_default();
        if !track.known {
            self.name_track(hart as u64, &format!("hart {hart}"));
        }
        Track {
            known: true,
            ..track
        }
    }

    /// Ends the slice of the present mode and begins one of another.
    fn change_mode(&mut self, hart: usize, cycles: u64, mode: Mode, vmid: u16) {
        let mut track = self.track(hart);
        if let Some(mode) = track.mode {
            self.mark("E", mode.name(), hart as u64, cycles, json!({}));
        }
        let arguments = if mode.virtualized {
            json!({ "vmid": vmid })
        } else {
            json!({})
        };
        self.mark("B", mode.name(), hart as u64, cycles, arguments);
        track.mode = Some(mode);
        self.keep(hart, track);
    }

    fn set_waiting(&mut self, hart: usize, waiting: bool) {
        let track = self.track(hart);
        self.keep(hart, Track { waiting, ..track });
    }

    fn keep(&mut self, hart: usize, track: Track) {
        if let Some(place) = self.tracks.get_mut(hart) {
            *place = track;
        }
    }

    fn on_hart(&mut self, hart: usize, cycles: u64, happening: &Happening) {
        let track = hart as u64;
        match *happening {
            Happening::Mode { mode, vmid } => self.change_mode(hart, cycles, mode, vmid),
            Happening::Exception {
                exception,
                from,
                to,
                pc,
                vmid,
            } => {
                let name = exception.cause.name();
                let arguments = json!({
                    "cause": exception.cause as u8, "from": from.name(), "to": to.name(),
                    "pc": hex(pc), "value": hex(exception.value),
                    "guest_physical": hex(exception.guest_physical), "vmid": vmid,
                });
                self.mark("i", name, track, cycles, arguments);
                self.change_mode(hart, cycles, to, vmid);
            }
            Happening::Interrupt {
                code,
                from,
                to,
                pc,
                vmid,
                ..
            } => {
                let arguments = json!({
                    "code": code, "from": from.name(), "to": to.name(), "pc": hex(pc),
                    "vmid": vmid,
                });
                self.mark("i", "Interrupt", track, cycles, arguments);
                self.change_mode(hart, cycles, to, vmid);
            }
            Happening::Return { to, pc, vmid, .. } => {
                self.change_mode(hart, cycles, to, vmid);
                self.mark("i", "Return", track, cycles, json!({ "pc": hex(pc) }));
            }
            Happening::Fence { fence, mode } => {
                let (name, arguments) = describe(&fence, mode);
                self.mark("i", name, track, cycles, arguments);
            }
            Happening::WaitForInterrupt { .. } => {
                self.mark("B", "WFI", track, cycles, json!({}));
                self.set_waiting(hart, true);
            }
            Happening::WaitForStore {
                physical, deadline, ..
            } => {
                let deadline = (deadline != u64::MAX).then_some(deadline);
                let arguments = json!({ "physical": hex(physical), "deadline": deadline });
                self.mark("B", "WRS", track, cycles, arguments);
                self.set_waiting(hart, true);
            }
            Happening::Wake { end } => {
                // A trace may begin in the middle of a wait.
                if self.track(hart).waiting {
                    let by = match end {
                        WaitEnd::Interrupt => "interrupt",
                        WaitEnd::Store => "store",
                        WaitEnd::Time => "time",
                    };
                    self.mark("E", "wait", track, cycles, json!({ "by": by }));
                    self.set_waiting(hart, false);
                }
            }
            Happening::Word {
                physical, value, ..
            } => {
                let arguments = json!({ "physical": hex(physical), "value": hex(value) });
                self.mark("i", "Word", track, cycles, arguments);
            }
            Happening::PauseLoop { pc, physical, .. } => {
                let arguments = json!({ "pc": hex(pc), "physical": physical.map(hex) });
                self.mark("i", "PauseLoop", track, cycles, arguments);
            }
            Happening::Pause { .. } | Happening::Line { .. } | Happening::Message { .. } => {}
        }
    }

    fn in_devices(&mut self, cycles: u64, happening: &Happening) {
        match *happening {
            Happening::Line { source, level } => {
                let arguments = json!({ "source": source, "level": level });
                self.mark("i", "Line", DEVICES, cycles, arguments);
            }
            Happening::Message {
                hart,
                file,
                identity,
            } => {
                let file = match file {
                    InterruptFile::Machine => "M".to_owned(),
                    InterruptFile::Supervisor => "S".to_owned(),
                    InterruptFile::Guest(number) => format!("VS {number}"),
                };
                let arguments = json!({ "hart": hart.0, "file": file, "identity": identity });
                self.mark("i", "Message", DEVICES, cycles, arguments);
            }
            _ => {}
        }
    }
}

/// Addresses as people read them.
fn hex(value: u64) -> String {
    format!("{value:#x}")
}

fn describe(fence: &Fence, mode: Mode) -> (&'static str, Value) {
    let address = |address: Option<u64>| address.map(hex);
    let mode = mode.name();
    match *fence {
        Fence::Supervisor { address: at, asid } => (
            "SFENCE.VMA",
            json!({ "mode": mode, "address": address(at), "asid": asid }),
        ),
        Fence::Virtual {
            address: at,
            asid,
            vmid,
            ..
        } => (
            "HFENCE.VVMA",
            json!({ "mode": mode, "address": address(at), "asid": asid, "vmid": vmid }),
        ),
        Fence::Guest { address: at, vmid } => (
            "HFENCE.GVMA",
            json!({ "mode": mode, "address": address(at), "vmid": vmid }),
        ),
        Fence::Everything => ("PMP", json!({ "mode": mode })),
    }
}

impl<W: Write + std::fmt::Debug + Send> Sink for Timeline<W> {
    fn event(&mut self, event: &Event) {
        match event.place {
            Place::Hart(hart) => self.on_hart(hart.index(), event.cycles, &event.happening),
            Place::Devices => self.in_devices(event.cycles, &event.happening),
        }
    }

    fn end(&mut self, cycles: u64) -> io::Result<()> {
        for hart in 0..self.tracks.len() {
            let track = self.track(hart);
            for _ in 0..u8::from(track.waiting) + u8::from(track.mode.is_some()) {
                self.mark("E", "end", hart as u64, cycles, json!({}));
            }
        }
        self.name_track(DEVICES, "devices");
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.file.write_all(b"\n]}\n")?;
        self.file.flush()
    }
}
