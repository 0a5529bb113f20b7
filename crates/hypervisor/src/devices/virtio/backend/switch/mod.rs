//! A switch between VMs: each has a port, which its guest sees as a network card, and a card of the board may be the switch's uplink.
//!
//! A frame is copied twice: out of the sender's memory into the receiver's [`inbox`], which is memory of the hypervisor's, and from there
//! into the buffers that the receiver has made available. So no VM reaches another's memory, no VM's devices are locked for another's, and a
//! receiver that takes nothing delays no sender: frames without room in its inbox are dropped.
//!
//! The switch's lock is held for changes of inboxes and of the card's rings ([`Frames`]), never while bytes are copied. The sender owns
//! the slots that it copies to until it commits them.

pub mod frame;
pub mod inbox;
mod outside;
pub mod port;
#[cfg(test)]
mod tests;
pub mod uplink;

use alloc::vec::Vec;

use self::frame::{Address, HEAD, HEADER, Head, Parcel, SLOT};
use self::inbox::{Inbox, MEMBERS, SLOTS, Sender};
use self::uplink::{Card, Uplink};
use crate::devices::virtio::client::{Client, Clients};
use crate::lock::{Mutex, place};
use crate::memory::guest::{HostMemory, TheHost};
use crate::memory::owned::OwnedRegion;

/// The most ports of a switch: each VM has one at most.
pub const MAX_PORTS: usize = MEMBERS - 1;
/// Bytes of memory for an inbox.
pub const INBOX_BYTES: u64 = SLOTS as u64 * SLOT;

/// Names a switch between VMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchNumber(pub usize);

/// A port of a switch, or its uplink, by its number in the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member(u8);

impl Member {
    const fn index(self) -> usize {
        self.0 as usize
    }

    const fn bit(self) -> u32 {
        1 << self.0
    }
}

/// Address and client of a port, as other ports see them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortPlace {
    pub address: Address,
    /// Device that is notified of frames for it.
    pub client: Client,
}

/// A switch.
#[derive(Debug)]
pub struct Switch {
    ports: Vec<PortPlace>,
    uplink: Option<Uplink>,
    /// The inboxes, one behind the other; the uplink's is the last.
    memory: OwnedRegion,
    frames: Mutex<Frames, { place::SHARED }>,
}

/// Stored frames.
#[derive(Debug)]
pub struct Frames {
    inboxes: Vec<Inbox>,
    card: Option<Card>,
}

/// Outcome of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Number of inboxes that have it.
    pub copies: u32,
    /// Devices of these inboxes that are to be notified.
    pub notified: Clients,
    /// Set if the uplink's card is to be notified.
    pub card: bool,
}

/// The places that a frame is copied to: each in the inbox of a member.
struct Places {
    slots: [Option<u8>; MEMBERS],
}

impl Places {
    fn each(&self) -> impl Iterator<Item = (Member, u8)> {
        let slots = (0..).map(Member).zip(self.slots);
        slots.filter_map(|(member, slot)| Some((member, slot?)))
    }
}

impl Switch {
    /// Bytes of memory that a switch needs for its inboxes.
    #[must_use]
    pub const fn bytes(ports: usize, uplink: bool) -> u64 {
        let members = if uplink { ports + 1 } else { ports };
        members as u64 * INBOX_BYTES
    }

    /// A switch with these ports, [`MAX_PORTS`] at most, whose inboxes lie at `memory`: as many [`bytes`](Self::bytes), the switch's alone.
    #[must_use]
    pub fn new(ports: Vec<PortPlace>, uplink: Option<(Uplink, Card)>, memory: OwnedRegion) -> Self {
        let (uplink, card) = uplink.unzip();
        let members = ports.len() + usize::from(uplink.is_some());
        let inboxes = (0..members).map(|_| Inbox::new(members)).collect();
        let switch = Self {
            ports,
            uplink,
            memory,
            frames: Mutex::new(Frames { inboxes, card }),
        };
        if let Some(outside) = switch.outside() {
            switch.open(outside);
        }
        switch
    }

    /// The port with this number.
    #[must_use]
    pub fn member(&self, port: usize) -> Option<Member> {
        (port < self.ports.len().min(MAX_PORTS)).then_some(Member(port as u8))
    }

    /// The uplink, if there is one.
    #[must_use]
    pub const fn uplink(&self) -> Option<&Uplink> {
        self.uplink.as_ref()
    }

    fn outside(&self) -> Option<Member> {
        self.uplink.as_ref().map(|_| Member(self.ports.len() as u8))
    }

    /// The address of a port; none of the uplink.
    fn address(&self, of: Member) -> Option<Address> {
        self.ports.get(of.index()).map(|port| port.address)
    }

    /// Receivers of a frame: a bit each.
    fn receivers(&self, from: Member, head: &Head) -> u32 {
        let to_outside = self.outside().map_or(0, Member::bit);
        let ports = (1 << self.ports.len()) - 1;
        let source = head.source();
        match self.address(from) {
            // A guest sends as itself alone.
            Some(own) if own != source => return 0,
            Some(_) => {}
            // The frame was sent by a port, and comes back from outside.
            None if source.is_group() || self.port_of(source).is_some() => return 0,
            None => {}
        }
        let destination = head.destination();
        let to = match self.port_of(destination) {
            _ if destination.is_group() => ports | to_outside,
            Some(port) => port.bit(),
            None => to_outside,
        };
        to & !from.bit()
    }

    fn port_of(&self, address: Address) -> Option<Member> {
        let place = self.ports.iter().position(|port| port.address == address);
        place.map(|place| Member(place as u8))
    }

    /// Header in front of a frame for a member.
    fn header_for(&self, member: Member) -> &'static [u8; HEADER] {
        match Some(member) == self.outside() {
            true => &frame::TO_CARD,
            false => &frame::TO_GUEST,
        }
    }

    /// Memory of a slot of an inbox.
    fn at(&self, of: Member, slot: u8) -> OwnedRegion {
        let before = of.index() as u64 * INBOX_BYTES + u64::from(slot) * SLOT;
        self.memory.skip(before).take(SLOT)
    }

    /// Passes a frame on: its first bytes are `head`, it has `length` in all, and `copy` puts the rest into the slots. The
    /// places for the rest are `shift` bytes behind a multiple of 8, fewer than 8, so that whole doublewords can be copied.
    pub fn pass(
        &self,
        from: Member,
        head: &Head,
        (length, shift): (u16, u8),
        host: TheHost<'_>,
        copy: &mut dyn FnMut(OwnedRegion),
    ) -> Passed {
        let receivers = self.receivers(from, head);
        if receivers == 0 {
            return Passed::default();
        }
        let parcel = Parcel::new(length, shift);
        let places = self.reserve(from, receivers, host);
        let mut first = None;
        for (member, slot) in places.each() {
            let at = self.at(member, slot);
            match first {
                None => {
                    host.copy(parcel.begin(at), &head.behind(self.header_for(member)));
                    copy(parcel.body(at));
                    first = Some(at);
                }
                Some(first) => {
                    let bytes = parcel.bytes_with_header();
                    host.move_bytes(parcel.begin(first), parcel.begin(at), bytes);
                    host.copy(parcel.begin(at), self.header_for(member));
                }
            }
        }
        self.commit(&places, parcel, host)
    }

    /// Places for a frame in the inboxes of these members, where they have room.
    fn reserve(&self, from: Member, receivers: u32, host: TheHost<'_>) -> Places {
        let mut frames = self.frames.lock();
        let Frames { inboxes, card } = &mut *frames;
        let outside = self.outside();
        let mut places = Places {
            slots: [None; MEMBERS],
        };
        for ((member, inbox), place) in (0..).map(Member).zip(inboxes).zip(&mut places.slots) {
            if receivers & member.bit() == 0 {
                continue;
            }
            if Some(member) == outside
                && let Some(card) = card
            {
                card.take_sent(inbox, host);
            }
            *place = inbox.reserve(Sender(from.0));
        }
        places
    }

    /// Commits the filled places.
    fn commit(&self, places: &Places, parcel: Parcel, host: TheHost<'_>) -> Passed {
        let mut passed = Passed::default();
        let mut frames = self.frames.lock();
        let Frames { inboxes, card } = &mut *frames;
        for (member, slot) in places.each() {
            let Some(inbox) = inboxes.get_mut(member.index()) else {
                continue;
            };
            if let Some(port) = self.ports.get(member.index()) {
                if inbox.commit(slot, parcel) {
                    passed.copies += 1;
                    passed.notified.insert(port.client);
                }
            } else if let Some(card) = card {
                let frame = parcel.begin(self.at(member, slot));
                let frame = frame.take(parcel.bytes_with_header());
                if card.send(slot, frame, host) {
                    passed.copies += 1;
                    passed.card = true;
                } else {
                    inbox.free(slot);
                }
            }
        }
        passed
    }

    /// Lets a port take frames from now on.
    pub fn open(&self, port: Member) {
        if let Some(inbox) = self.frames.lock().inboxes.get_mut(port.index()) {
            inbox.open();
        }
    }

    /// Lets a port take no more frames, and drops those that wait for it.
    pub fn close(&self, port: Member) {
        if let Some(inbox) = self.frames.lock().inboxes.get_mut(port.index()) {
            inbox.close();
        }
    }

    /// Number of frames that wait for a port, and of those dropped for lack of room since the last call.
    #[must_use]
    pub fn waiting(&self, port: Member) -> (usize, u32) {
        let mut frames = self.frames.lock();
        let inbox = frames.inboxes.get_mut(port.index());
        inbox.map_or((0, 0), |inbox| (inbox.waiting(), inbox.take_missed()))
    }

    /// Oldest frame that waits for a port; `done` drops the previous one first.
    #[must_use]
    pub fn first(&self, port: Member, done: bool) -> Option<(OwnedRegion, Parcel)> {
        let mut frames = self.frames.lock();
        let inbox = frames.inboxes.get_mut(port.index())?;
        if done {
            inbox.drop_first();
        }
        let (slot, parcel) = inbox.first()?;
        Some((self.at(port, slot), parcel))
    }
}

// A head and the bytes before it fit in front of a slot's body.
const _: () = assert!(frame::BODY >= (HEAD + HEADER) as u64);
