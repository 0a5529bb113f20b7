//! Programs that the checker of fences convicts, and those that pass.

use super::*;
use crate::base::{Mode, VirtualFence};

const PAGE: u64 = 0x4000_0000;
const GUEST_FRAME: u64 = 0x9000_0000;

fn view(virtualized: bool) -> View {
    View {
        mode: Mode::new(Privilege::Supervisor, virtualized),
        sum: false,
        mxr: false,
        guest_mxr: false,
        execute_for_read: false,
        shadow_stack: false,
        masking: super::super::Masking::None,
    }
}

fn csrs(asid: u64, vmid: u64) -> Csrs {
    let mut csrs = Csrs::new();
    csrs.vsatp = 8 << 60 | asid << 44;
    // The G-stage is left out where the first stage is looked at.
    csrs.hgatp = vmid << 44;
    csrs
}

fn note(shadow: &mut Shadow, csrs: &Csrs, address: u64, physical: u64, shift: u32) {
    let mapping = Mapping {
        physical: GUEST_FRAME,
        guest_physical: physical,
        shift,
        first_shift: shift,
    };
    shadow.note(csrs, view(true), &mapping, at(address));
}

fn at(address: u64) -> Use {
    Use {
        hart: 0,
        pc: 0,
        cycle: 0,
        access: Access::Load,
        address,
    }
}

/// A page that changes is reported once, unless a fence of each form that covers it comes first.
#[test]
fn only_covering_fences_excuse_a_change() {
    let (asid, vmid, address) = (Some(3), 7, Some(PAGE));
    let fences = [
        (None, true),
        (
            Some(Fence::Virtual {
                by: VirtualFence::Hfence,
                address: None,
                asid: None,
                vmid,
            }),
            false,
        ),
        (
            Some(Fence::Virtual {
                by: VirtualFence::Hfence,
                address,
                asid: None,
                vmid,
            }),
            false,
        ),
        (
            Some(Fence::Virtual {
                by: VirtualFence::Hfence,
                address,
                asid,
                vmid,
            }),
            false,
        ),
        (
            Some(Fence::Virtual {
                by: VirtualFence::Hfence,
                address: None,
                asid,
                vmid,
            }),
            false,
        ),
        // Of another stage, another machine, another space, another page, another V.
        (
            Some(Fence::Guest {
                address: None,
                vmid: None,
            }),
            true,
        ),
        (
            Some(Fence::Virtual {
                by: VirtualFence::Hfence,
                address: None,
                asid: None,
                vmid: 8,
            }),
            true,
        ),
        (
            Some(Fence::Virtual {
                by: VirtualFence::Hfence,
                address,
                asid: Some(4),
                vmid,
            }),
            true,
        ),
        (
            Some(Fence::Virtual {
                by: VirtualFence::Hfence,
                address: Some(PAGE + 0x1000),
                asid,
                vmid,
            }),
            true,
        ),
        (
            Some(Fence::Supervisor {
                address: None,
                asid: None,
            }),
            true,
        ),
        (Some(Fence::Everything), true),
    ];
    for (fence, stale) in fences {
        let mut shadow = Shadow::default();
        let csrs = csrs(3, 7);
        note(&mut shadow, &csrs, PAGE + 8, 0x8000_0008, 12);
        if let Some(fence) = fence {
            shadow.fence(fence);
        }
        note(&mut shadow, &csrs, PAGE, 0x8100_0000, 12);
        note(&mut shadow, &csrs, PAGE, 0x8100_0000, 12);
        assert_eq!(shadow.count(), u64::from(stale), "{fence:?}");
    }
}

/// Translations used again after a fence are held again, however lately it was compared: the next change of the page is reported.
#[test]
fn uses_after_a_fence_are_held_again() {
    let csrs = csrs(3, 7);
    let fence = Fence::Virtual {
        by: VirtualFence::Hfence,
        address: None,
        asid: None,
        vmid: 7,
    };
    let mut shadow = Shadow::default();
    note(&mut shadow, &csrs, PAGE, 0x8000_0000, 12);
    shadow.fence(fence);
    note(&mut shadow, &csrs, PAGE, 0x8000_0000, 12);
    assert_eq!(shadow.count(), 0);
    note(&mut shadow, &csrs, PAGE, 0x8100_0000, 12);
    assert_eq!(shadow.count(), 1);
    // And there and back again is two changes.
    note(&mut shadow, &csrs, PAGE, 0x8000_0000, 12);
    assert_eq!(shadow.count(), 2);
}

/// A fetch from the page of the last one need not be compared until something is stored or fenced.
#[test]
fn stores_and_fences_compare_the_next_fetch() {
    let csrs = csrs(3, 7);
    let fetched = || {
        let mut shadow = Shadow::default();
        shadow.note_fetch(1, 2);
        shadow
    };
    let mut shadow = fetched();
    note(&mut shadow, &csrs, PAGE, 0x8000_0000, 12);
    assert!(shadow.has_fetched(1, 2), "a load changes nothing");
    assert!(!shadow.has_fetched(1, 3) && !shadow.has_fetched(2, 2));
    let mapping = Mapping {
        physical: GUEST_FRAME,
        guest_physical: GUEST_FRAME,
        shift: 12,
        first_shift: 12,
    };
    let store = Use {
        access: Access::Store,
        ..at(PAGE)
    };
    // A store in M-mode, which is not translated, too.
    let machine = View {
        mode: Mode::new(Privilege::Machine, false),
        ..view(false)
    };
    for view in [view(true), machine] {
        let mut shadow = fetched();
        shadow.note(&csrs, view, &mapping, store);
        assert!(!shadow.has_fetched(1, 2), "{view:?}");
    }
    let mut shadow = fetched();
    shadow.fence(Fence::Everything);
    assert!(!shadow.has_fetched(1, 2));
}

/// A guest page that moves is the G-stage's affair: no fence of the VS-stage excuses it.
#[test]
fn the_guest_stage_has_own_fences() {
    let address = Some(PAGE);
    let guest = |address, vmid| Fence::Guest { address, vmid };
    for (fence, stale) in [
        (guest(None, None), false),
        (guest(None, Some(7)), false),
        (guest(None, Some(8)), true),
        (guest(Some(GUEST_FRAME + 8), Some(7)), false),
        (guest(Some(GUEST_FRAME + 8), None), false),
        (guest(Some(GUEST_FRAME + 0x1000), Some(7)), true),
        (guest(Some(GUEST_FRAME), Some(8)), true),
        (
            Fence::Virtual {
                by: VirtualFence::Hfence,
                address,
                asid: None,
                vmid: 7,
            },
            true,
        ),
        (
            Fence::Virtual {
                by: VirtualFence::Hfence,
                address: None,
                asid: None,
                vmid: 7,
            },
            true,
        ),
    ] {
        let mut shadow = Shadow::default();
        let mut csrs = csrs(3, 7);
        csrs.hgatp |= 8 << 60;
        for physical in [0x8000_0000, 0x8100_0000] {
            let mapping = Mapping {
                physical,
                guest_physical: GUEST_FRAME,
                shift: 12,
                first_shift: 12,
            };
            shadow.note(&csrs, view(true), &mapping, at(PAGE));
            shadow.fence(fence);
        }
        assert_eq!(shadow.count(), u64::from(stale), "{fence:?}");
    }
}

/// Two address spaces or two virtual machines do not see each other's pages.
#[test]
fn tags_keep_spaces_apart() {
    let mut shadow = Shadow::default();
    note(&mut shadow, &csrs(1, 1), PAGE, 0x8000_0000, 12);
    note(&mut shadow, &csrs(2, 1), PAGE, 0x8100_0000, 12);
    note(&mut shadow, &csrs(1, 2), PAGE, 0x8200_0000, 12);
    assert_eq!(shadow.count(), 0);
    // Another root under the same tags: what two vCPUs with one VMID look like.
    let mut other = csrs(1, 1);
    other.vsatp |= 0x80123;
    note(&mut shadow, &other, PAGE, 0x8300_0000, 12);
    assert_eq!(shadow.count(), 1);
    let found = shadow.found()[0];
    assert_eq!((found.held, found.now), (0x8000_0000, 0x8300_0000));
}

/// A fence with any address of a large page covers all of it.
#[test]
fn an_address_stands_for_its_whole_leaf() {
    let mut shadow = Shadow::default();
    let csrs = csrs(1, 1);
    note(&mut shadow, &csrs, PAGE + 0x5000, 0x8000_5000, 21);
    let address = Some(PAGE + 0x1f_f000);
    shadow.fence(Fence::Virtual {
        by: VirtualFence::Hfence,
        address,
        asid: None,
        vmid: 1,
    });
    note(&mut shadow, &csrs, PAGE + 0x5000, 0x8020_5000, 21);
    assert_eq!(shadow.count(), 0);
}
