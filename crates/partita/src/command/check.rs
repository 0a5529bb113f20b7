//! `partita check`.

use super::failure::{Failure, at};
use super::input::SystemArguments;
use super::output;
use abi::keys;
use abi::system::Placement;
use std::path::Path;
use system::{BootForm, FileName, System, Vm};

pub(super) fn execute(
    arguments: &SystemArguments,
    hypervisor: Option<&Path>,
    profile: Option<&str>,
) -> Result<(), Failure> {
    let system = match hypervisor {
        Some(hypervisor) => {
            std::fs::metadata(hypervisor).map_err(at(hypervisor))?;
            arguments.read_for(hypervisor)?
        }
        None => arguments.read()?,
    };
    if let Some(name) = profile {
        let profile = super::laboratory::profile(name)?;
        runner::vector_length::check(&system, name, &profile)?;
    }
    let vms = system.vms.len();
    let vcpus: u32 = system.vms.iter().map(|vm| vm.vcpus.value).sum();
    let (harts, memory) = (system.harts.value, system.memory.value);
    let file = arguments.file.display();
    let count = |number: usize, what: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{number} {what}{plural}")
    };
    let (vms, vcpus) = (count(vms, "VM"), count(vcpus as usize, "vCPU"));
    let harts = count(harts as usize, "hart");
    output::say(format_args!(
        "{file}: no mistakes: {vms} with {vcpus} on {harts}, {memory}\n{}",
        notes(&system)
    ));
    Ok(())
}

/// Notes about a good system, a line each.
fn notes(system: &System) -> String {
    let names = |chosen: &dyn Fn(&&Vm) -> bool| {
        let vms = system.vms.iter().filter(chosen);
        let names: Vec<&str> = vms.map(|vm| vm.name.as_str()).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let mut notes = String::new();
    if let Some(trusted) = names(&|vm| vm.drives_devices()) {
        notes += &format!(
            "  note: the guest of {trusted} drives a device directly. Without an IOMMU the device reaches all memory, also that of other VMs. \
             Set io = \"general\" for a guest that you do not trust.\n"
        );
    }
    let doubtful = |vm: &&Vm| {
        let resident = vm.get(keys::PLACEMENT) == Placement::Resident;
        resident && vm.drives_devices() && is_no_linux(vm)
    };
    if let Some(doubtful) = names(&doubtful) {
        notes += &format!(
            "  note: the kernel of {doubtful} is no Linux. With placement = \"resident\" its drivers must honour dma-ranges; otherwise its devices \
             reach memory of other VMs. Set placement = \"real\" or io = \"general\" unless you know that they do.\n"
        );
    }
    let bounded =
        |vm: &&Vm| vm.boot == BootForm::Firmware && vm.get(keys::PLACEMENT) == Placement::Paged;
    if let Some(bounded) = names(&bounded) {
        notes += &format!(
            "  note: {bounded} boots a firmware in single pages, where a request of more than 256 pages ends its disk. U-Boot reads a whole kernel \
             by one: set placement = \"resident\" unless its files are small.\n"
        );
    }
    for vm in system.vms.iter().filter(|vm| !vm.devices.is_empty()) {
        let paths: Vec<&str> = vm.devices.iter().map(|path| path.value.as_str()).collect();
        notes += &format!(
            "  note: {} is given {}. Those of them that reach memory by themselves reach all of it, unless an IOMMU confines them: the guest is trusted. \
             `partita board --describe TREE.dtb FILE` says which, and whether a board has them.\n",
            vm.name,
            paths.join(", ")
        );
    }
    notes
}

/// Returns true if the user's own kernel lacks the banner in which Linux names its version. Kernels that Partita makes honour
/// `dma-ranges`.
fn is_no_linux(vm: &Vm) -> bool {
    const BANNER: &[u8] = b"Linux version ";
    let FileName::Path(path) = &vm.kernel.value else {
        return false;
    };
    let kernel = system::kernel::read(path, vm.boot);
    kernel.is_ok_and(|kernel| !kernel.windows(BANNER.len()).any(|part| part == BANNER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use system::Document;

    #[test]
    fn resident_guests_other_than_linux_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("system.toml");
        std::fs::write(folder.path().join("kernel"), "U-Boot 2026.01").unwrap();
        std::fs::write(folder.path().join("linux"), "Linux version 6.12").unwrap();
        std::fs::write(folder.path().join("disk"), "").unwrap();
        let notes_of = |keys: &str| {
            let text = format!(
                "harts = 1\nmemory = \"1 GiB\"\n[vm.loader]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
                 disks = [{{ file = \"disk\" }}]\n{keys}"
            );
            let document = Document::new(&path, text, &[]).unwrap();
            notes(&System::read(&document).unwrap())
        };
        let doubtful = "kernel of loader is no Linux";
        let resident = "placement = \"resident\"\n";
        let found = notes_of(&format!("kernel = \"kernel\"\n{resident}"));
        assert!(found.contains(doubtful), "{found}");
        for keys in [
            String::from("kernel = \"kernel\"\n"),
            format!("kernel = \"linux\"\n{resident}"),
            format!("kernel = \"kernel\"\nio = \"general\"\n{resident}"),
            String::from("firmware = \"kernel\"\n"),
        ] {
            let found = notes_of(&keys);
            assert!(!found.contains(doubtful), "{keys}: {found}");
            assert!(!found.contains("single pages"), "{keys}: {found}");
        }
        let paged = notes_of("firmware = \"kernel\"\nplacement = \"paged\"\n");
        assert!(
            paged.contains("loader boots a firmware in single pages"),
            "{paged}"
        );
    }
}
