//! Spike, the RISC-V ISA simulator, with the slots as its signature.

use std::process::Command;

use super::error::OracleError;
use super::process::{self, Folder, memory, read};
use crate::elf;

pub(super) const NAME: &str = "spike";
/// The extensions of this machine that it has.
const ISA: &str = "rv64gch_zicntr_zba_zbb_zbc_zbs_zbkb_zbkx_zicond_zfh_zfa_zicbom_zicbop_zicboz_zawrs_\
    zacas_zabha_zimop_zcb_zcmop_zihintntl_sstc_svadu_svpbmt_svnapot_svinval_zihintpause_zicclsm_\
    smaia_ssaia_smstateen_smmpm_smnpm_ssnpm_zicfilp_zicfiss_ssdbltrp_smcntrpmf_zkr";

/// The extensions with a vector unit whose registers have so many bits, or without one.
fn isa(vectors: u16) -> String {
    match vectors {
        0 => ISA.to_owned(),
        bits => format!("{ISA}_v_zvfh_zvbb_zvbc_zvkg_zvkned_zvknhb_zvksed_zvksh_zvl{bits}b"),
    }
}

pub(super) fn run(image: &[u8], harts: u32, vectors: u16) -> Result<Vec<u8>, OracleError> {
    let folder = Folder::new()?;
    let program = folder.write("programs.elf", &elf::write(image))?;
    let signature = folder.file("signature");
    let size = memory(image.len());
    let mut command = Command::new(NAME);
    command
        .arg(format!("--isa={}", isa(vectors)))
        .arg("--pmpregions=16")
        .arg(format!("-p{harts}"))
        .arg(format!("-m0x80000000:{:#x}", size << 20))
        .arg(format!("+signature={}", signature.display()))
        .arg("+signature-granularity=8")
        .arg(program);
    process::run(NAME, &mut command)?;
    let text = String::from_utf8_lossy(&read(&signature)?).into_owned();
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for line in text.split_whitespace() {
        let value = u64::from_str_radix(line, 16)
            .map_err(|_| OracleError::NoResult(NAME, format!("a signature with `{line}`")))?;
        bytes.extend(value.to_le_bytes());
    }
    Ok(bytes)
}
