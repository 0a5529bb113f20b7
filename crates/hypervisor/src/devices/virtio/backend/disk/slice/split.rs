//! Requests of a guest, split into operations of a bounded length.

use super::super::{Ended, MAX_SECTORS, Operation, SECTOR, SLOTS, SlotNumber, outcome};
use super::{Pending, Rest, Slice};
use crate::devices::trapped::VirtioContext;
use crate::devices::virtio::queue::chain::Piece;
use crate::memory::owned::OwnedRegion;

impl Slice {
    /// Puts as many operations of a request as there are slots. Returns false if none was put.
    pub(super) fn accept(
        &mut self,
        head: u16,
        status: OwnedRegion,
        operation: Operation,
        context: &dyn VirtioContext,
    ) -> bool {
        let Some(request) = self.requests.iter().position(Option::is_none) else {
            return false;
        };
        let Some(place) = self.requests.get_mut(request) else {
            return false;
        };
        *place = Some(Pending {
            head,
            status,
            operations: 0,
            is_split: true,
            outcome: outcome::OK,
            written: 0,
        });
        self.rest = Some(Rest {
            request,
            operation,
            piece: 0,
            used: 0,
        });
        let is_whole = self.put_rest(context);
        let pending = self.requests.get(request).copied().flatten();
        if !is_whole && pending.is_some_and(|pending| pending.operations == 0) {
            self.drop_request(request);
            self.rest = None;
            return false;
        }
        true
    }

    fn drop_request(&mut self, request: usize) {
        if let Some(place) = self.requests.get_mut(request) {
            *place = None;
        }
    }

    /// Puts the rest of the present request, as far as there are slots. Returns true if nothing is left.
    pub(super) fn put_rest(&mut self, context: &dyn VirtioContext) -> bool {
        // Each takes a slot.
        for _ in 0..=SLOTS {
            let Some(rest) = self.rest else {
                return true;
            };
            let sectors = rest.operation.sectors.min(MAX_SECTORS);
            let is_last = sectors == rest.operation.sectors;
            let next = self.cut(rest, sectors * SECTOR);
            let operation = Operation {
                sectors,
                ..rest.operation
            };
            let Some(slot) = self.put(operation, context) else {
                return false;
            };
            self.note_begun(slot, rest.request, is_last, context);
            self.rest = (!is_last).then_some(Rest {
                operation: Operation {
                    // All of it lies on the disk.
                    sector: rest.operation.sector.wrapping_add(sectors),
                    sectors: rest.operation.sectors.saturating_sub(sectors),
                    ..rest.operation
                },
                ..next
            });
        }
        self.rest.is_none()
    }

    /// Cuts the data of one operation, so many bytes, from the beginning of `rest`. Returns the new rest.
    fn cut(&mut self, rest: Rest, bytes: u64) -> Rest {
        let (mut next, mut left) = (rest, bytes);
        self.part_pieces.clear();
        while left > 0
            && let Some(piece) = self.pieces.get(next.piece)
        {
            let behind = piece.host.skip(next.used);
            let taken = behind.size().min(left);
            self.part_pieces.push(Piece {
                host: behind.take(taken),
                written: piece.written,
            });
            left -= taken;
            next.used += taken;
            if next.used == piece.host.size() {
                (next.piece, next.used) = (next.piece + 1, 0);
            }
        }
        next
    }

    #[inline]
    fn note_begun(
        &mut self,
        slot: SlotNumber,
        request: usize,
        is_last: bool,
        context: &dyn VirtioContext,
    ) {
        if let (Some(place), Some(Some(pending))) = (
            self.slots.get_mut(slot.index()),
            self.requests.get_mut(request),
        ) {
            *place = request;
            pending.operations += 1;
            pending.is_split = !is_last;
            self.in_flight += 1;
            self.polling.begins(slot.index() as u16, context.time());
        }
    }

    fn put(&self, operation: Operation, context: &dyn VirtioContext) -> Option<SlotNumber> {
        let mut slot = None;
        let host = context.memory().host;
        context.with_disk(self.part.disk, &mut |disk, _| {
            slot = disk.put(self.part.slice, operation, &self.part_pieces, host);
        });
        slot
    }

    /// Notes the end of an operation. Returns its request if that is complete, too.
    pub(super) fn note_ended(&mut self, ended: Ended) -> Option<Pending> {
        let request = *self.slots.get(ended.slot.index())?;
        let place = self.requests.get_mut(request)?;
        let pending = place.as_mut()?;
        pending.operations = pending.operations.saturating_sub(1);
        pending.written = (pending.written).saturating_add(ended.written.saturating_sub(1));
        if ended.status != outcome::OK && pending.outcome == outcome::OK {
            pending.outcome = ended.status;
            // The rest of it is not begun.
            if self.rest.is_some_and(|rest| rest.request == request) {
                self.rest = None;
                pending.is_split = false;
            }
        }
        let is_over = pending.operations == 0 && !pending.is_split;
        if is_over { place.take() } else { None }
    }
}
