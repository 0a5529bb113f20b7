//! The start under EFI: the hypervisor asks the firmware for the device tree, the boot hart and the system image, ends the
//! firmware's boot services, and goes on as if a firmware of SBI alone had started it.
//!
//! The image is loaded anywhere, so the system image is a file beside it: [`SYSTEM`] on the same file system.

mod map;

use core::ffi::c_void;
use core::ptr;

use uefi_raw::protocol::file_system::{
    FileAttribute, FileInfo, FileMode, FileProtocolV1, SimpleFileSystemProtocol,
};
use uefi_raw::protocol::loaded_image::LoadedImageProtocol;
use uefi_raw::table::boot::{AllocateType, BootServices, MemoryDescriptor, MemoryType};
use uefi_raw::table::system::SystemTable;
use uefi_raw::{Guid, Handle, Status, guid};

use crate::boot::handover::{self, Full, Handover};
use crate::hart;
use board::Range;

/// The system image's file, as EFI writes paths.
const SYSTEM: &str = r"\partita\system";
/// The configuration table that is the board's device tree (UEFI, section 4.6.1.3).
const DEVICE_TREE: Guid = guid!("b1b621d5-f19c-41a5-830b-d9152c69aae0");
/// Protocol that names the boot hart (RISC-V UEFI Protocol Specification, section 2).
const RISCV_BOOT: Guid = guid!("ccd15fec-6f73-4eec-8395-3e69e4b940bf");
/// Bytes for a memory map, and for a file's information with its name.
const MAP_BYTES: usize = 32 << 10;
const INFORMATION_BYTES: usize = 256;
/// The map may change between being read and the end of the services, once (UEFI, section 7.4.6).
const TRIES: usize = 3;

/// The protocol by which the boot hart is asked for.
#[repr(C)]
struct RiscvBoot {
    revision: u64,
    boot_hart: unsafe extern "efiapi" fn(this: *mut Self, hart: *mut usize) -> Status,
}

/// Memory for a map, aligned as its descriptors.
#[repr(C, align(8))]
struct MapSpace([u8; MAP_BYTES]);

/// Reason why the hypervisor cannot be started.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    what: &'static str,
    status: Status,
}

/// Converts a status to a result.
fn done(status: Status, what: &'static str) -> Result<(), Refusal> {
    if status == Status::SUCCESS {
        Ok(())
    } else {
        Err(Refusal { what, status })
    }
}

/// EFI's entry: returns with a status, after a message, if the hypervisor cannot be started.
///
/// # Safety
/// Both are what EFI passes to an application, and the image's data are at their places.
pub unsafe fn start(image: Handle, table: *const SystemTable) -> Status {
    // SAFETY: the caller answers for both.
    let Err(refusal) = unsafe { try_to_start(image, table) };
    // SAFETY: as above; the services have not ended where something is refused.
    unsafe { say(table, &["Partita cannot start: ", refusal.what, "\r\n"]) };
    refusal.status
}

/// # Safety
/// As [`start`].
unsafe fn try_to_start(
    image: Handle,
    table: *const SystemTable,
) -> Result<core::convert::Infallible, Refusal> {
    // SAFETY: EFI's tables live at least as long as its boot services, and nothing here writes to them.
    let (table, services) = unsafe { (&*table, &*(*table).boot_services) };
    let tree = device_tree(table).ok_or(Refusal {
        what: "the firmware gives no device tree",
        status: Status::NOT_FOUND,
    })?;
    // SAFETY: the services have not ended.
    let (hart, system) = unsafe { (boot_hart(services)?, read_system(services, image)?) };
    // SAFETY: nothing is asked of the firmware afterwards.
    handover::leave(unsafe { end_services(services, image, system)? });
    // SAFETY: the services have ended, and the firmware named both.
    unsafe { hart::entry::leave_firmware(hart, tree) }
}

fn device_tree(table: &SystemTable) -> Option<*const u8> {
    let entries = table.configuration_table;
    if entries.is_null() {
        return None;
    }
    (0..table.number_of_configuration_table_entries)
        // SAFETY: the firmware says how many entries there are.
        .map(|index| unsafe { &*entries.add(index) })
        .find(|entry| entry.vendor_guid == DEVICE_TREE)
        .map(|entry| entry.vendor_table.cast_const().cast())
}

/// # Safety
/// The services have not ended.
unsafe fn boot_hart(services: &BootServices) -> Result<u64, Refusal> {
    let what = "the firmware does not name the boot hart (RISCV_EFI_BOOT_PROTOCOL)";
    let mut protocol = ptr::null_mut();
    let mut hart = 0;
    // SAFETY: the pointers are to places of the right types; the protocol's is what its GUID promises.
    unsafe {
        done(
            (services.locate_protocol)(&RISCV_BOOT, ptr::null(), &raw mut protocol),
            what,
        )?;
        let protocol: *mut RiscvBoot = protocol.cast();
        done(((*protocol).boot_hart)(protocol, &raw mut hart), what)?;
    }
    Ok(hart as u64)
}

/// The protocol `guid` of `handle`.
///
/// # Safety
/// The services have not ended, and `T` is what `guid` stands for.
unsafe fn protocol<T>(
    services: &BootServices,
    handle: Handle,
    guid: &Guid,
    what: &'static str,
) -> Result<*mut T, Refusal> {
    let mut found: *mut c_void = ptr::null_mut();
    done(
        // SAFETY: the pointers are to places of the right types.
        unsafe { (services.handle_protocol)(handle, guid, &raw mut found) },
        what,
    )?;
    Ok(found.cast())
}

/// Reads the system image into pages of its own.
///
/// # Safety
/// The services have not ended.
unsafe fn read_system(services: &BootServices, image: Handle) -> Result<Range, Refusal> {
    let what =
        r"\partita\system cannot be read from the file system that the hypervisor was loaded from";
    let mut name = [0; SYSTEM.len() + 1];
    for (place, byte) in name.iter_mut().zip(SYSTEM.bytes()) {
        *place = u16::from(byte);
    }
    // SAFETY: protocols are used as their GUIDs promise; all buffers are as long as is said with them.
    unsafe {
        let own: *mut LoadedImageProtocol =
            protocol(services, image, &LoadedImageProtocol::GUID, what)?;
        let volume: *mut SimpleFileSystemProtocol = protocol(
            services,
            (*own).device_handle,
            &SimpleFileSystemProtocol::GUID,
            what,
        )?;
        let (mut root, mut file) = (ptr::null_mut(), ptr::null_mut::<FileProtocolV1>());
        done(((*volume).open_volume)(volume, &raw mut root), what)?;
        let opened = ((*root).open)(
            root,
            &raw mut file,
            name.as_ptr(),
            FileMode::READ,
            FileAttribute::empty(),
        );
        done(opened, what)?;
        let bytes = file_size(file, what)?;
        let pages = (bytes as u64).div_ceil(map::PAGE);
        let mut start = 0;
        let given = (services.allocate_pages)(
            AllocateType::ANY_PAGES,
            MemoryType::LOADER_DATA,
            pages as usize,
            &raw mut start,
        );
        done(given, "there is no memory for the system image")?;
        let mut read = 0;
        while read < bytes {
            let mut more = bytes - read;
            let place = start as *mut u8;
            done(
                ((*file).read)(file, &raw mut more, place.add(read).cast()),
                what,
            )?;
            if more == 0 {
                let status = Status::END_OF_FILE;
                return Err(Refusal { what, status });
            }
            read += more;
        }
        // The services end soon, and the file with them: nothing depends on how it is closed.
        let _ = ((*file).close)(file);
        Ok(Range {
            start,
            size: bytes as u64,
        })
    }
}

/// # Safety
/// `file` is an open file.
unsafe fn file_size(file: *mut FileProtocolV1, what: &'static str) -> Result<usize, Refusal> {
    #[repr(C, align(8))]
    struct Space([u8; INFORMATION_BYTES]);
    let mut space = Space([0; INFORMATION_BYTES]);
    let mut size = INFORMATION_BYTES;
    // SAFETY: the space is as long as is said, and aligned as the structure that the firmware writes to it.
    unsafe {
        let told = ((*file).get_info)(
            file,
            &FileInfo::ID,
            &raw mut size,
            space.0.as_mut_ptr().cast(),
        );
        done(told, what)?;
        let information: *const FileInfo = space.0.as_ptr().cast();
        Ok((*information).file_size as usize)
    }
}

/// Reads the memory map and ends the boot services. Returns the firmware's ranges and the system image.
///
/// # Safety
/// Nothing is asked of the firmware after success.
unsafe fn end_services(
    services: &BootServices,
    image: Handle,
    system: Range,
) -> Result<Handover, Refusal> {
    let mut space = MapSpace([0; MAP_BYTES]);
    for _ in 0..TRIES {
        let (mut size, mut key, mut each, mut version) = (MAP_BYTES, 0, 0, 0);
        // SAFETY: the space is as long as is said, and aligned as descriptors are.
        let told = unsafe {
            (services.get_memory_map)(
                &raw mut size,
                space.0.as_mut_ptr().cast::<MemoryDescriptor>(),
                &raw mut key,
                &raw mut each,
                &raw mut version,
            )
        };
        done(told, "the firmware's memory map cannot be read")?;
        let mut handover = Handover::new(system);
        // A map that is longer than its space is not used.
        let map = space.0.get(..size).ok_or(Full);
        map.and_then(|map| map::keep(&mut handover, map, each))
            .map_err(|Full| Refusal {
                what: "the firmware's memory map has too many parts",
                status: Status::OUT_OF_RESOURCES,
            })?;
        // SAFETY: the image is this one, and the key is the newest.
        if unsafe { (services.exit_boot_services)(image, key) } == Status::SUCCESS {
            return Ok(handover);
        }
    }
    Err(Refusal {
        what: "the firmware's boot services do not end",
        status: Status::ABORTED,
    })
}

/// # Safety
/// The services have not ended.
unsafe fn say(table: *const SystemTable, parts: &[&str]) {
    // SAFETY: EFI's console is there as long as its services; each text ends with a zero.
    unsafe {
        let out = (*table).stdout;
        if out.is_null() {
            return;
        }
        for character in parts.iter().flat_map(|part| part.bytes()) {
            let text = [u16::from(character), 0];
            // There is no other place for a message.
            let _ = ((*out).output_string)(out, text.as_ptr());
        }
    }
}
