//! The vectors that VMs need, beside those of a profile's harts.

use abi::keys;
use machine::timing::Profile;
use system::System;

/// A VM that would not find the vector registers that it needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "vm.{vm}.vector-length = {wanted}: harts with the profile {profile} have {found}; use a profile with vector.vlen = {wanted}, or \
     change vector-length, or leave it away"
)]
pub struct UnmetVectorLength {
    /// The VM.
    vm: String,
    /// Bits that it needs.
    wanted: u32,
    /// The profile's name.
    profile: String,
    /// Vectors of the harts, in words.
    found: String,
}

/// Checks that the harts of a profile, called `name`, have the vector registers that each VM needs.
///
/// # Errors
/// The first VM that would not find them.
pub fn check(system: &System, name: &str, profile: &Profile) -> Result<(), UnmetVectorLength> {
    let own = profile.vector.map(|vector| u32::from(vector.vlen));
    for vm in &system.vms {
        let wanted = vm.get(keys::VECTOR_LENGTH);
        if let Some(wanted) = wanted.filter(|wanted| own != Some(*wanted)) {
            return Err(UnmetVectorLength {
                vm: vm.name.to_string(),
                wanted,
                profile: String::from(name),
                found: own.map_or_else(
                    || String::from("no vectors"),
                    |own| format!("vector registers of {own} bits"),
                ),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use system::Document;

    #[test]
    fn unmet_lengths_name_both_and_the_remedy() {
        let vm = "vcpus = 1\nmemory = \"64 MiB\"\nshare = 1\nkernel = \"image:debian/kernel\"\n";
        let text = format!(
            "harts = 1\nmemory = \"1 GiB\"\n[vm.any]\n{vm}[vm.web]\n{vm}vector-length = 256\n"
        );
        let document = Document::new(Path::new("a.toml"), text, &[]).unwrap();
        let system = System::read(&document).unwrap();
        let mut profile = Profile::find("k3-class").unwrap();
        assert_eq!(check(&system, "k3-class", &profile), Ok(()));
        let refusal = |profile: &Profile| {
            let refused = check(&system, "mine.toml", profile);
            refused.unwrap_err().to_string()
        };
        profile.vector.as_mut().unwrap().vlen = 128;
        assert_eq!(
            refusal(&profile),
            "vm.web.vector-length = 256: harts with the profile mine.toml have vector registers of 128 bits; use a profile with \
             vector.vlen = 256, or change vector-length, or leave it away"
        );
        profile.vector = None;
        let without = refusal(&profile);
        assert!(without.contains("mine.toml have no vectors;"), "{without}");
    }
}
