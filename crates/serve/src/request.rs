//! A request as the hypervisor has written it.

use abi::serve::request;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Tells requests in one slot apart.
    pub id: u32,
    /// Type of virtio's request.
    pub kind: u32,
    /// The first sector.
    pub sector: u64,
    /// Bytes of data.
    pub bytes: u32,
    /// Pieces that the data lies in.
    pub pieces: u32,
}

impl Request {
    /// Reads a request by `word`, which reads the word at an offset.
    pub fn read(word: impl Fn(u64) -> u32) -> Self {
        let high = u64::from(word(request::SECTOR + 4)) << 32;
        Self {
            id: word(request::ID),
            kind: word(request::KIND),
            sector: high | u64::from(word(request::SECTOR)),
            bytes: word(request::DATA_BYTES),
            pieces: word(request::PIECES),
        }
    }

    /// Offset of a piece in the slot's part of the window, and its bytes.
    pub fn piece(number: u32, word: impl Fn(u64) -> u32) -> (u32, u32) {
        let at = request::PIECE + u64::from(number) * request::PIECE_BYTES;
        (word(at), word(at + 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_a_request() {
        let words = [7, 1, 0x11, 0x22, 4096, 2, 0, 0, 0x200, 0xe00, 0x1000, 0x200];
        let word = |offset: u64| words[(offset / 4) as usize];
        let expected = Request {
            id: 7,
            kind: 1,
            sector: 0x22_0000_0011,
            bytes: 4096,
            pieces: 2,
        };
        assert_eq!(Request::read(word), expected);
        assert_eq!(Request::piece(0, word), (0x200, 0xe00));
        assert_eq!(Request::piece(1, word), (0x1000, 0x200));
    }
}
