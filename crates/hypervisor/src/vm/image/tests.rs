//! Headers made by hand, and layouts of every size.

use proptest::prelude::*;

use super::*;

/// A kernel's file of `length` bytes.
fn file(text_offset: u64, image_size: u64, flags: u64, length: usize) -> Vec<u8> {
    let mut header = vec![0x13, 0, 0, 0, 0x6f, 0, 0, 0];
    header.extend(text_offset.to_le_bytes());
    header.extend(image_size.to_le_bytes());
    header.extend(flags.to_le_bytes());
    header.extend(2u32.to_le_bytes());
    header.extend([0; 12]);
    header.extend(b"RISCV\0\0\0");
    header.extend(b"RSC\x05");
    header.extend([0; 4]);
    header.resize(length, 0);
    header
}

#[test]
fn a_kernel_says_what_it_wants() {
    let parsed = KernelImage::parse(&file(2 << 20, 30 << 20, 0, 1 << 20));
    assert_eq!(
        parsed,
        Ok(KernelImage {
            text_offset: 2 << 20,
            size: 30 << 20
        })
    );
    // Signed: more bytes in the file than in the image.
    let parsed = KernelImage::parse(&file(0, 4096, 0, 5000));
    assert_eq!(
        parsed,
        Ok(KernelImage {
            text_offset: 0,
            size: 5000
        })
    );
}

#[test]
fn what_is_not_a_kernel_is_named() {
    assert_eq!(
        KernelImage::parse(&file(0, 4096, 1, 4096)),
        Err(ImageError::BigEndian)
    );
    assert_eq!(
        KernelImage::parse(&file(0, 0, 0, 4096)),
        Err(ImageError::NoSize)
    );
    assert_eq!(KernelImage::parse(&[]), Err(ImageError::TooShort(0)));
    assert_eq!(KernelImage::parse(&[0; 4096]), Err(ImageError::NoMagic));
    for length in 0..64 {
        let cut = &file(0, 4096, 0, 64)[..length];
        assert_eq!(KernelImage::parse(cut), Err(ImageError::TooShort(length)));
    }
    for (start, word) in [
        (&b"\x7fELF\x02\x01\x01"[..], "ELF"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"MZ\0\0zimg", "EFI"),
        (b"070701", "cpio"),
    ] {
        let mut bytes = start.to_vec();
        bytes.resize(100, 0);
        let error = KernelImage::parse(&bytes).unwrap_err();
        assert!(matches!(error, ImageError::OtherFormat { .. }));
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn parts_that_do_not_fit_are_named() {
    let memory = GuestRegion::new(GuestPhysical::new(0x8000_0000), 64 << 20).unwrap();
    let kernel = KernelImage {
        text_offset: 2 << 20,
        size: 20 << 20,
    };
    let part = |initrd, tree| match Layout::plan(memory, kernel, initrd, tree) {
        Err(LayoutError::DoesNotFit { part, .. }) => Some(part),
        _ => None,
    };
    assert_eq!(part(Some(41 << 20), 5000), None);
    assert_eq!(part(Some(42 << 20), 5000), Some(Part::Initrd));
    assert_eq!(part(Some(u64::MAX), 5000), Some(Part::Initrd));
    let small = GuestRegion::new(GuestPhysical::new(0x8000_0000), 22 << 20).unwrap();
    assert_eq!(
        Layout::plan(small, kernel, None, 1),
        Err(LayoutError::DoesNotFit {
            part: Part::DeviceTree,
            wanted: 1,
            free: 0,
            memory: 22 << 20
        })
    );
    let huge = KernelImage {
        text_offset: u64::MAX,
        size: u64::MAX,
    };
    assert!(matches!(
        Layout::plan(memory, huge, None, 1),
        Err(LayoutError::DoesNotFit {
            part: Part::Kernel,
            ..
        })
    ));
    assert_eq!(
        Layout::plan(memory, kernel, None, (2 << 20) + 1),
        Err(LayoutError::DeviceTreeTooLong((2 << 20) + 1))
    );
}

proptest! {
    #[test]
    fn any_file(bytes in prop::collection::vec(any::<u8>(), 0..200), marked in any::<bool>()) {
        let mut bytes = bytes;
        if marked && bytes.len() >= 60 {
            bytes[56..60].copy_from_slice(b"RSC\x05");
        }
        if let Ok(image) = KernelImage::parse(&bytes) {
            prop_assert!(marked && image.size >= bytes.len() as u64);
        }
    }

    /// Layouts are sound for every header.
    #[test]
    fn any_layout(
        base in 0u64..1 << 40, memory in 0u64..256 << 20, shift in 0u32..40,
        text_offset in any::<u64>(), size in any::<u64>(), initrd in any::<u64>(),
        with_initrd in any::<bool>(), tree in 0u64..3 << 20,
    ) {
        let memory = GuestRegion::new(GuestPhysical::new(base & !0xfff), memory).unwrap();
        let kernel = KernelImage { text_offset: text_offset >> (shift + 24), size: size >> (shift + 24) };
        let initrd = with_initrd.then_some(initrd >> (shift + 24));
        if let Ok(layout) = Layout::plan(memory, kernel, initrd, tree) {
            prop_assert!(layout.kernel.base().is_aligned(KERNEL_ALIGNMENT));
            prop_assert!(layout.kernel.base().raw() - memory.base().raw() >= kernel.text_offset);
            prop_assert_eq!(layout.kernel.size(), kernel.size);
            prop_assert_eq!(layout.device_tree.size(), tree);
            prop_assert_eq!(layout.initrd.map(|region| region.size()), initrd);
            let parts: Vec<GuestRegion> =
                [Some(layout.kernel), layout.initrd, Some(layout.device_tree)].into_iter().flatten().collect();
            for (index, &part) in parts.iter().enumerate() {
                prop_assert!(memory.covers(part));
                prop_assert!(part.base().is_aligned(4096));
                prop_assert!(parts[index + 1..].iter().all(|&other| !part.overlaps(other)));
            }
        }
    }
}
