//! Which guest interrupt file of a hart belongs to whom.
//!
//! A file cannot move with its vCPU. When a vCPU is dispatched on another hart it gets a file there; the old one stays
//! as a *forwarder* while siblings or devices may still send to it, and what arrives in it is sent on.

use scheduler::{VcpuId, VmId};

/// The largest number of guest files of a hart (GEILEN on RV64).
pub const MAX_FILES: usize = 63;

/// Who has a guest file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    #[default]
    Free,
    /// The vCPU's own file.
    Vcpu(VcpuId),
    /// The vCPU has another file since `generation` of its VM's table; what still arrives here is sent on.
    Forwarder {
        vcpu: VcpuId,
        vm: VmId,
        generation: u64,
        prepared: bool,
    },
}

/// The guest files of one hart.
#[derive(Debug)]
pub struct FileTable {
    owners: [Owner; MAX_FILES + 1],
    count: u8,
    forwarders: u8,
}

impl Default for FileTable {
    fn default() -> Self {
        Self {
            owners: [Owner::Free; MAX_FILES + 1],
            count: 0,
            forwarders: 0,
        }
    }
}

impl FileTable {
    /// Says how many files the hart has.
    pub fn set_count(&mut self, count: u8) {
        self.count = count.min(MAX_FILES as u8);
    }

    /// How many files the hart has.
    #[must_use]
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Gives a free file to `vcpu`.
    pub fn allocate(&mut self, vcpu: VcpuId) -> Option<u8> {
        let file = (1..=self.count).find(|file| self.owners[usize::from(*file)] == Owner::Free)?;
        self.owners[usize::from(file)] = Owner::Vcpu(vcpu);
        Some(file)
    }

    /// Who has `file`; one that does not exist is free.
    #[must_use]
    pub fn owner(&self, file: u8) -> Owner {
        self.owners
            .get(usize::from(file))
            .copied()
            .unwrap_or_default()
    }

    /// Changes who has `file`.
    pub fn set_owner(&mut self, file: u8, owner: Owner) {
        if let Some(place) = self.owners.get_mut(usize::from(file)) {
            let forwards = |owner| u8::from(matches!(owner, Owner::Forwarder { .. }));
            self.forwarders = self.forwarders + forwards(owner) - forwards(*place);
            *place = owner;
        }
    }

    /// How many files forward.
    #[must_use]
    pub fn forwarders(&self) -> u8 {
        self.forwarders
    }

    /// The files and their owners.
    pub fn iter(&self) -> impl Iterator<Item = (u8, Owner)> + '_ {
        (1..=self.count).map(|file| (file, self.owners[usize::from(file)]))
    }
}
