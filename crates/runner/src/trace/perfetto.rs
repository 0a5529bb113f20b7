//! A timeline in Perfetto's own format: a stream of `TracePacket`s in Protocol Buffers (perfetto.dev/docs/reference/
//! trace-packet-proto). Only the messages and fields that are used here are declared; their numbers are the format's.

use super::{Flow, Lane, Mark, Timeline};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct Trace {
    #[prost(message, repeated, tag = "1")]
    packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
struct TracePacket {
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "60")]
    track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    parent_uuid: Option<u64>,
    /// How the tracks below this one are ordered.
    #[prost(int32, optional, tag = "11")]
    child_ordering: Option<i32>,
    /// The place among the parent's tracks.
    #[prost(int32, optional, tag = "12")]
    sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    r#type: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    name: Option<String>,
    /// Arrows that go on from here, and that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct DebugAnnotation {
    #[prost(string, optional, tag = "6")]
    string_value: Option<String>,
    #[prost(string, optional, tag = "10")]
    name: Option<String>,
}

/// `TrackEvent.Type`.
mod event {
    pub const SLICE_BEGIN: i32 = 1;
    pub const SLICE_END: i32 = 2;
    pub const INSTANT: i32 = 3;
}

/// `TrackDescriptor.ChildTracksOrdering`: by `sibling_order_rank`.
const EXPLICIT: i32 = 3;
/// The one writer of the trace.
const SEQUENCE: u32 = 1;
/// The track above all others.
const ROOT: u64 = 1;

/// The timeline as the bytes of a `.pftrace` file. Slices that overlap without nesting do not occur in one lane.
pub fn encode(timeline: &Timeline) -> Vec<u8> {
    let mut packet = vec![descriptor(ROOT, "Partita", None, None)];
    for (index, lane) in timeline.lanes.iter().enumerate() {
        let uuid = ROOT + 1 + index as u64;
        let rank = i32::try_from(index).ok();
        packet.push(descriptor(uuid, &lane.owner.name(), Some(ROOT), rank));
        packet.extend(events(lane, uuid));
    }
    Trace { packet }.encode_to_vec()
}

fn descriptor(uuid: u64, name: &str, parent: Option<u64>, rank: Option<i32>) -> TracePacket {
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_descriptor: Some(TrackDescriptor {
            uuid: Some(uuid),
            name: Some(String::from(name)),
            parent_uuid: parent,
            child_ordering: parent.is_none().then_some(EXPLICIT),
            sibling_order_rank: rank,
        }),
        ..TracePacket::default()
    }
}

/// A lane's events in the order of their times: at one time, inner slices end before outer ones, all that ends does so
/// before anything begins, and outer slices begin before inner ones.
fn events(lane: &Lane, track: u64) -> Vec<TracePacket> {
    let mut events: Vec<((u64, u8, u64), TracePacket)> = Vec::new();
    for slice in &lane.slices {
        let length = slice.end.saturating_sub(slice.start);
        // An empty slice would end before it began.
        let end = slice.end.max(slice.start + 1);
        let begin = TrackEvent {
            debug_annotations: annotations(&slice.details),
            r#type: Some(event::SLICE_BEGIN),
            track_uuid: Some(track),
            categories: vec![String::from(slice.kind.name())],
            name: Some(slice.name.clone()),
            ..TrackEvent::default()
        };
        let key = (slice.start, 2, u64::MAX - length);
        events.push((key, packet(slice.start, begin)));
        let stop = TrackEvent {
            r#type: Some(event::SLICE_END),
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        events.push(((end, 0, length), packet(end, stop)));
    }
    for mark in &lane.marks {
        let instant = TrackEvent {
            debug_annotations: annotations(&mark.details),
            r#type: Some(event::INSTANT),
            track_uuid: Some(track),
            categories: vec![String::from("mark")],
            name: Some(mark.name.clone()),
            flow_ids: flows(mark, |flow| matches!(flow, Flow::From(_))),
            terminating_flow_ids: flows(mark, |flow| matches!(flow, Flow::To(_))),
        };
        events.push(((mark.at, 1, 0), packet(mark.at, instant)));
    }
    events.sort_by_key(|(key, _)| *key);
    events.into_iter().map(|(_, packet)| packet).collect()
}

/// The numbers of the mark's arrows of a kind.
fn flows(mark: &Mark, kind: fn(&Flow) -> bool) -> Vec<u64> {
    let of_kind = mark.flows.iter().filter(|flow| kind(flow));
    of_kind.map(|flow| flow.number()).collect()
}

fn packet(timestamp: u64, event: TrackEvent) -> TracePacket {
    TracePacket {
        timestamp: Some(timestamp),
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_event: Some(event),
        ..TracePacket::default()
    }
}

fn annotations(details: &[(&'static str, String)]) -> Vec<DebugAnnotation> {
    let annotation = |(name, value): &(&'static str, String)| DebugAnnotation {
        name: Some(String::from(*name)),
        string_value: Some(value.clone()),
    };
    details.iter().map(annotation).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Owner, Slice, SliceKind};
    use super::*;

    fn slice(start: u64, end: u64, name: &str) -> Slice {
        Slice {
            start,
            end,
            kind: SliceKind::Runs,
            name: String::from(name),
            details: vec![("why", String::from(name))],
        }
    }

    #[test]
    fn slices_nest_and_follow() {
        let lane = Lane {
            owner: Owner::Hart(0),
            slices: vec![
                slice(10, 50, "outer"),
                slice(10, 20, "inner"),
                slice(20, 50, "next"),
                slice(50, 50, "empty"),
            ],
            marks: vec![Mark {
                at: 20,
                name: String::from("mark"),
                details: Vec::new(),
                flows: Vec::new(),
            }],
        };
        let bytes = encode(&Timeline {
            lanes: vec![lane],
            ..Timeline::default()
        });
        let trace = Trace::decode(bytes.as_slice()).unwrap();
        let mut open = Vec::new();
        let mut story = Vec::new();
        let mut last = 0;
        for packet in &trace.packet {
            let Some(event) = &packet.track_event else {
                continue;
            };
            assert!(packet.timestamp.unwrap() >= last);
            last = packet.timestamp.unwrap();
            match event.r#type.unwrap() {
                event::SLICE_BEGIN => open.push(event.name.clone().unwrap()),
                event::SLICE_END => story.push(open.pop().unwrap()),
                _ => story.push(event.name.clone().unwrap()),
            }
        }
        assert_eq!(story, ["inner", "mark", "next", "outer", "empty"]);
        assert!(open.is_empty());
        let names = trace
            .packet
            .iter()
            .filter_map(|packet| packet.track_descriptor.as_ref());
        assert_eq!(names.count(), 2);
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        // A packet by hand, from the wire format's description: field 8 as a varint, field 10, and field 11 with
        // the fields 9, 11 and 23 inside.
        let lane = Lane {
            owner: Owner::Devices,
            slices: Vec::new(),
            marks: vec![Mark {
                at: 5,
                name: String::from("x"),
                details: Vec::new(),
                flows: Vec::new(),
            }],
        };
        let event = [
            0x48, 3, 0x58, 2, 0xb2, 1, 4, b'm', b'a', b'r', b'k', 0xba, 1, 1, b'x',
        ];
        let mut packet = vec![0x40, 5, 0x50, 1, 0x5a, event.len() as u8];
        packet.extend(event);
        let mut expected = vec![0x0a, packet.len() as u8];
        expected.extend(packet);
        let bytes = encode(&Timeline {
            lanes: vec![lane],
            ..Timeline::default()
        });
        assert!(bytes.ends_with(&expected), "{bytes:x?}\n{expected:x?}");
    }
}
