//! Devices of VMs that share something, by their numbers in the whole system, and sets of them.

/// A device of one VM that shares something with devices of others: a number below [`CLIENTS`], of its own in the whole system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client(u8);

/// Most clients of a system.
pub const CLIENTS: usize = abi::system::MAX_SHARING;
const _: () = assert!(CLIENTS <= 1 << u8::BITS, "each has a number");

impl Client {
    /// The device with this number, if there can be one.
    #[must_use]
    pub const fn new(number: usize) -> Option<Self> {
        match number < CLIENTS {
            true => Some(Self(number as u8)),
            false => None,
        }
    }

    /// Its number.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of such devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clients([u64; WORDS]);

/// Words of a set, with a bit for each device.
const WORDS: usize = CLIENTS.div_ceil(u64::BITS as usize);

impl Clients {
    /// Empty set.
    pub const NONE: Self = Self([0; WORDS]);

    /// Adds a device.
    #[inline]
    pub fn insert(&mut self, client: Client) {
        if let Some(word) = self.0.get_mut(client.index() / u64::BITS as usize) {
            *word |= 1 << (client.0 % u64::BITS as u8);
        }
    }

    /// Adds all of another set.
    #[inline]
    pub fn add(&mut self, others: Self) {
        for (own, other) in self.0.iter_mut().zip(others.0) {
            *own |= other;
        }
    }

    /// Its devices, by their numbers.
    pub fn iter(self) -> impl Iterator<Item = Client> {
        let firsts = (0..CLIENTS).step_by(u64::BITS as usize);
        let words = firsts.zip(self.0);
        words.flat_map(|(first, mut word)| {
            core::iter::from_fn(move || {
                if word == 0 {
                    return None;
                }
                let bit = word.trailing_zeros() as usize;
                word &= word - 1;
                Client::new(first + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_what_was_added() {
        let mut set = Clients::NONE;
        assert!(set.iter().next().is_none());
        let numbers = [0, 1, 63, 64, 130, CLIENTS - 1];
        for number in numbers.into_iter().rev() {
            set.insert(Client::new(number).unwrap());
            assert_ne!(set, Clients::NONE);
        }
        let found = |set: Clients| set.iter().map(Client::index).collect::<std::vec::Vec<_>>();
        assert_eq!(found(set), numbers);
        let mut all = Clients::NONE;
        (0..CLIENTS)
            .filter_map(Client::new)
            .for_each(|client| all.insert(client));
        all.add(set);
        assert_eq!(found(all), (0..CLIENTS).collect::<std::vec::Vec<_>>());
        assert_eq!(Client::new(CLIENTS), None);
    }
}
