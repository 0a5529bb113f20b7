//! Frames received from outside, by the uplink's card.

use super::frame::{HEAD, HEADER, Head, LONGEST};
use super::uplink::BUFFERS;
use super::{Member, Passed, Switch};
use crate::devices::virtio::client::Clients;
use crate::devices::virtio::driver::Board;
use crate::memory::guest::{HostMemory, TheHost};
use crate::memory::owned::OwnedRegion;

/// Most copies of frames that one interrupt makes.
const COPIES: u32 = 2 * BUFFERS as u32;

impl Switch {
    /// Handles an interrupt of the uplink's card: passes received frames on, as many as it has buffers, and in [`COPIES`] copies. Frames that
    /// need more copies, as many broadcasts to many ports do, are dropped. Returns the devices to notify.
    pub fn serve_uplink(&self, board: &dyn Board) -> Clients {
        let (Some(uplink), Some(outside)) = (&self.uplink, self.outside()) else {
            return Clients::NONE;
        };
        if !uplink.has_interrupted(board) {
            return Clients::NONE;
        }
        let mut notified = Clients::NONE;
        let mut back = None;
        let mut copies = COPIES;
        // Frames that come meanwhile interrupt again.
        for _ in 0..BUFFERS {
            let Some((buffer, at, written)) = self.next_received(back, board.host()) else {
                break;
            };
            if copies > 0 {
                let passed = self.pass_received(outside, at, written, board.host());
                copies = copies.saturating_sub(passed.copies);
                notified.add(passed.notified);
            }
            back = Some(buffer);
        }
        if let Some(buffer) = back {
            self.give_back(buffer, board.host());
            uplink.notify_of_buffers(board);
        }
        notified
    }

    fn next_received(
        &self,
        back: Option<u16>,
        host: TheHost<'_>,
    ) -> Option<(u16, OwnedRegion, u32)> {
        let mut frames = self.frames.lock();
        let card = frames.card.as_mut()?;
        let (buffer, written) = card.take_received(back, host)?;
        Some((buffer, card.buffer(buffer), written))
    }

    fn give_back(&self, buffer: u16, host: TheHost<'_>) {
        if let Some(card) = &mut self.frames.lock().card {
            card.offer(buffer, host);
        }
    }

    /// Passes on the frame that the card has received at `at`.
    fn pass_received(
        &self,
        outside: Member,
        at: OwnedRegion,
        written: u32,
        host: TheHost<'_>,
    ) -> Passed {
        let length = written.wrapping_sub(HEADER as u32);
        if !(HEAD as u32..=LONGEST.into()).contains(&length) {
            return Passed::default();
        }
        let behind = |bytes: usize| at.skip(bytes as u64);
        let mut head = Head([0; HEAD]);
        for (offset, byte) in (0..).zip(&mut head.0) {
            *byte = host.byte(behind(HEADER + offset));
        }
        let body = behind(HEADER + HEAD);
        self.pass(outside, &head, (length as u16, 0), host, &mut |to| {
            host.move_bytes(body, to, u64::from(length).saturating_sub(HEAD as u64));
        })
    }
}
