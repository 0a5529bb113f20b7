//! The network between the machine's ports: a learning switch, and a peer that answers.
//!
//! Frames cross the switch in a fixed time, in the order in which they were sent, so a run that is
//! repeated sees the same traffic at the same cycles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Cycles;

/// A port of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PortId(pub u8);

/// The port that the answering peer is on.
const PEER: PortId = PortId(u8::MAX);

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Tests whether a frame to this address is for many: broadcast or multicast.
    #[must_use]
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

/// Most addresses that the switch remembers; the oldest is forgotten first.
const MAX_ADDRESSES: usize = 256;
/// Most frames under way at once; more are dropped.
const MAX_FRAMES: usize = 4096;

/// Ethernet: destination, source, type.
const ETHERNET: usize = 14;
const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TYPE_ARP: [u8; 2] = [0x08, 0x06];

/// A peer on the network that answers ARP requests for its address and ICMP echo requests, and
/// returns any other frame sent to it with the two Ethernet addresses exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// Its Ethernet address.
    pub mac: MacAddress,
    /// Its IPv4 address.
    pub ipv4: [u8; 4],
}

impl Default for Peer {
    /// A locally administered address, and the gateway's in QEMU's user network.
    fn default() -> Self {
        Self {
            mac: MacAddress([0x52, 0x55, 10, 0, 2, 2]),
            ipv4: [10, 0, 2, 2],
        }
    }
}

impl Peer {
    /// The answer to a frame.
    fn answer(&self, frame: &[u8]) -> Option<Vec<u8>> {
        let destination: [u8; 6] = frame.get(0..6)?.try_into().ok()?;
        let source: [u8; 6] = frame.get(6..12)?.try_into().ok()?;
        if source == self.mac.0 {
            // A forgery: the answer would go to the peer again, and so for ever.
            return None;
        }
        let mut reply = frame.to_vec();
        reply.get_mut(0..6)?.copy_from_slice(&source);
        reply.get_mut(6..12)?.copy_from_slice(&self.mac.0);
        let kind = frame.get(12..ETHERNET)?;
        if kind == TYPE_ARP {
            return self.answer_arp(frame, reply);
        }
        if destination != self.mac.0 {
            return None;
        }
        if kind == TYPE_IPV4 {
            answer_echo(&mut reply);
        }
        Some(reply)
    }

    /// RFC 826: a request (operation 1) for our protocol address gets a reply (operation 2).
    fn answer_arp(&self, frame: &[u8], mut reply: Vec<u8>) -> Option<Vec<u8>> {
        let (operation, sender, target) =
            (frame.get(20..22)?, frame.get(22..32)?, frame.get(38..42)?);
        if operation != [0, 1] || target != self.ipv4 {
            return None;
        }
        reply.get_mut(20..22)?.copy_from_slice(&[0, 2]);
        reply.get_mut(22..28)?.copy_from_slice(&self.mac.0);
        reply.get_mut(28..32)?.copy_from_slice(&self.ipv4);
        reply.get_mut(32..42)?.copy_from_slice(sender);
        Some(reply)
    }
}

/// Makes an echo request (RFC 792) the reply to it; leaves anything else as it is.
fn answer_echo(packet: &mut [u8]) -> Option<()> {
    const PROTOCOL_ICMP: u8 = 1;
    const ECHO_REQUEST: u8 = 8;
    let header = usize::from(packet.get(ETHERNET)? & 0xf) * 4;
    let message = ETHERNET + header;
    if *packet.get(ETHERNET + 9)? != PROTOCOL_ICMP || *packet.get(message)? != ECHO_REQUEST {
        return None;
    }
    let addresses = packet.get_mut(ETHERNET + 12..ETHERNET + 20)?;
    addresses.rotate_left(4);
    let checksum = packet.get_mut(message + 2..message + 4)?;
    // The type falls from 8 to 0: the ones' complement sum rises by as much (RFC 1624).
    let old = u16::from_be_bytes([*checksum.first()?, *checksum.get(1)?]);
    let (sum, carry) = old.overflowing_add(u16::from(ECHO_REQUEST) << 8);
    checksum.copy_from_slice(&(sum + u16::from(carry)).to_be_bytes());
    *packet.get_mut(message)? = 0;
    Some(())
}

/// A learning switch, which can be divided into networks that know nothing of each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    latency: Cycles,
    ports: Vec<PortId>,
    /// Ports on another network than number 0.
    networks: BTreeMap<PortId, u8>,
    /// On network 0.
    peer: Option<Peer>,
    /// Sources and the ports of their last frames, the latest last.
    heard: Vec<(MacAddress, PortId)>,
    /// Frames under way in the order of arrival.
    under_way: Vec<(Cycles, PortId, Vec<u8>)>,
    dropped: u64,
}

impl Switch {
    /// A switch that frames take `latency` to cross, with an answering peer if there is one.
    #[must_use]
    pub fn new(latency: Cycles, peer: Option<Peer>) -> Self {
        Self {
            latency,
            peer,
            ..Self::default()
        }
    }

    /// Puts a port on another network than number 0.
    pub fn assign(&mut self, port: PortId, network: u8) {
        self.networks.insert(port, network);
    }

    /// The network that a port is on.
    fn network(&self, port: PortId) -> u8 {
        self.networks.get(&port).copied().unwrap_or(0)
    }

    /// Connects a port.
    pub fn connect(&mut self, port: PortId) {
        if !self.ports.contains(&port) && port != PEER {
            self.ports.push(port);
        }
    }

    /// Takes a frame from a port at `now`. One without two addresses is dropped.
    pub fn send(&mut self, now: Cycles, port: PortId, frame: Vec<u8>) {
        let address =
            |range: core::ops::Range<usize>| frame.get(range)?.try_into().ok().map(MacAddress);
        let (Some(destination), Some(source)) = (address(0..6), address(6..12)) else {
            self.dropped += 1;
            return;
        };
        let network = self.network(port);
        if !source.is_group() {
            let networks = &self.networks;
            let near = |port| networks.get(&port).copied().unwrap_or(0) == network;
            self.heard
                .retain(|&(known, at)| known != source || !near(at));
            if self.heard.len() >= MAX_ADDRESSES {
                self.heard.remove(0);
            }
            self.heard.push((source, port));
        }
        let at = now.after(self.latency);
        let known = self
            .heard
            .iter()
            .find(|&&(known, at)| known == destination && self.network(at) == network);
        let peer = self.peer.filter(|_| network == self.network(PEER));
        let to_peer = peer.is_some_and(|peer| peer.mac == destination);
        match known {
            _ if to_peer => self.enqueue(at, PEER, frame),
            Some(&(_, out)) if !destination.is_group() => {
                if out != port {
                    self.enqueue(at, out, frame);
                }
            }
            _ => {
                for out in self.ports.clone() {
                    if out != port && self.network(out) == network {
                        self.enqueue(at, out, frame.clone());
                    }
                }
                if peer.is_some() && destination.is_group() {
                    self.enqueue(at, PEER, frame);
                }
            }
        }
    }

    fn enqueue(&mut self, at: Cycles, port: PortId, frame: Vec<u8>) {
        if self.under_way.len() >= MAX_FRAMES {
            self.dropped += 1;
            return;
        }
        let place = self.under_way.partition_point(|&(other, _, _)| other <= at);
        self.under_way.insert(place, (at, port, frame));
    }

    /// Takes a frame that has arrived at a port by `now`. The peer's answers set out when what
    /// they answer arrives.
    pub fn receive(&mut self, now: Cycles) -> Option<(PortId, Vec<u8>)> {
        loop {
            let &(at, _, _) = self.under_way.first()?;
            if at > now {
                return None;
            }
            let (_, port, frame) = self.under_way.remove(0);
            if port != PEER {
                return Some((port, frame));
            }
            if let Some(answer) = self.peer.and_then(|peer| peer.answer(&frame)) {
                self.send(at, PEER, answer);
            }
        }
    }

    /// When the next frame arrives.
    #[must_use]
    pub fn next_event(&self) -> Option<Cycles> {
        self.under_way.first().map(|&(at, _, _)| at)
    }

    /// Frames that were dropped.
    #[must_use]
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(to: [u8; 6], from: [u8; 6], rest: &[u8]) -> Vec<u8> {
        [&to[..], &from, rest].concat()
    }

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const ALL: [u8; 6] = [0xff; 6];

    fn arrivals(switch: &mut Switch, now: u64) -> Vec<u8> {
        core::iter::from_fn(|| switch.receive(Cycles(now)))
            .map(|(port, _)| port.0)
            .collect()
    }

    #[test]
    fn frames_flood_until_the_address_is_known() {
        let mut switch = Switch::new(Cycles(10), None);
        (0..3).for_each(|port| switch.connect(PortId(port)));
        switch.send(Cycles(0), PortId(0), frame(B, A, &[0; 50]));
        assert!(arrivals(&mut switch, 9).is_empty());
        assert_eq!(arrivals(&mut switch, 10), [1, 2]);
        switch.send(Cycles(20), PortId(1), frame(A, B, &[0; 50]));
        assert_eq!(arrivals(&mut switch, 30), [0]);
        switch.send(Cycles(40), PortId(0), frame(B, A, &[0; 50]));
        assert_eq!(arrivals(&mut switch, 50), [1]);
        switch.send(
            Cycles(60),
            PortId(2),
            frame(ALL, [2, 0, 0, 0, 0, 3], &[0; 50]),
        );
        assert_eq!(arrivals(&mut switch, 70), [0, 1]);
    }

    #[test]
    fn networks_know_nothing_of_each_other() {
        let mut switch = Switch::new(Cycles(0), Some(Peer::default()));
        (0..4).for_each(|port| switch.connect(PortId(port)));
        (2..4).for_each(|port| switch.assign(PortId(port), 1));
        switch.send(Cycles(0), PortId(2), frame(ALL, A, &[0; 50]));
        assert_eq!(arrivals(&mut switch, 0), [3]);
        // The same address on the other network, and one that was heard only there.
        switch.send(Cycles(1), PortId(0), frame(ALL, A, &[0; 50]));
        assert_eq!(arrivals(&mut switch, 1), [1]);
        switch.send(Cycles(2), PortId(3), frame(A, B, &[0; 50]));
        assert_eq!(arrivals(&mut switch, 2), [2]);
        switch.send(Cycles(3), PortId(1), frame(B, [2, 0, 0, 0, 0, 3], &[0; 50]));
        assert_eq!(arrivals(&mut switch, 3), [0]);
    }

    #[test]
    fn short_frames_are_dropped() {
        let mut switch = Switch::new(Cycles(0), Some(Peer::default()));
        switch.connect(PortId(0));
        for length in 0..12 {
            switch.send(Cycles(0), PortId(0), vec![0xff; length]);
        }
        assert_eq!((switch.dropped(), switch.next_event()), (12, None));
        // Headers that promise more than there is.
        switch.send(Cycles(0), PortId(0), frame(ALL, A, &[8, 6, 0, 1]));
        switch.send(
            Cycles(0),
            PortId(0),
            frame(Peer::default().mac.0, A, &[8, 0, 0x4f]),
        );
        while switch.receive(Cycles(0)).is_some() {}
    }

    /// RFC 1071's sum over 16-bit words.
    fn checksum(bytes: &[u8]) -> u16 {
        let mut sum: u32 = bytes
            .chunks(2)
            .map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low)))
            .sum();
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn the_peer_answers_arp_and_echo_requests() {
        let peer = Peer::default();
        let mut switch = Switch::new(Cycles(5), Some(peer));
        switch.connect(PortId(0));
        let mine = [10, 0, 2, 15];
        let mut arp = vec![8, 6, 0, 1, 8, 0, 6, 4, 0, 1];
        arp.extend([&A[..], &mine, &[0; 6], &peer.ipv4].concat());
        switch.send(Cycles(0), PortId(0), frame(ALL, A, &arp));
        let (port, reply) = switch.receive(Cycles(10)).expect("an ARP reply");
        assert_eq!((port, &reply[..6]), (PortId(0), &A[..]));
        assert_eq!(
            reply[20..],
            [&[0, 2], &peer.mac.0[..], &peer.ipv4, &A, &mine].concat()
        );

        let mut icmp = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1, 0xff, 0xff, 0x7a];
        let sum = checksum(&icmp).to_be_bytes();
        icmp[2..4].copy_from_slice(&sum);
        let mut packet = vec![8, 0, 0x45, 0, 0, 31, 0, 0, 0, 0, 64, 1, 0, 0];
        packet.extend([&mine[..], &peer.ipv4, &icmp].concat());
        switch.send(Cycles(20), PortId(0), frame(peer.mac.0, A, &packet));
        let (_, reply) = switch.receive(Cycles(30)).expect("an echo reply");
        assert_eq!(reply[26..34], [peer.ipv4, mine].concat());
        assert_eq!(reply[34], 0);
        assert_eq!(
            checksum(&reply[34..]),
            0,
            "a sum over a message with its checksum is zero"
        );
    }
}
