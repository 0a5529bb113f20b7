//! QEMU's virt board, with its RAM in a file that is read when it has ended.

use std::process::Command;

use super::error::OracleError;
use super::process::{self, Folder, memory, read};
use crate::{elf, layout};

pub(super) const NAME: &str = "qemu-system-riscv64";
/// The extensions of this machine, and none that it has not.
const CPU: &str = "rv64,h=on,sstc=on,svadu=on,svpbmt=on,svinval=on,zicond=on,zawrs=on,\
    zba=on,zbb=on,zbc=on,zbs=on,zbkb=on,zbkx=on,zfh=on,zicbom=on,zicboz=on,smstateen=on,\
    zfa=on,zacas=on,zabha=on,zimop=on,zcb=on,zcmop=on,svnapot=on,smmpm=on,smnpm=on,ssnpm=on,\
    smcntrpmf=on,zkr=on,svvptc=on,zicfilp=on,zicfiss=on,ssdbltrp=on,\
    smcsrind=on,sscsrind=on,smcdeleg=on,ssccfg=on";
/// Extensions of this machine's vector unit.
const VECTORS: &str = "v=on,zvfh=on,zvbb=on,zvbc=on,zvkg=on,zvkned=on,zvknhb=on,\
    zvksed=on,zvksh=on,zvkt=on,elen=64";

/// The extensions with a vector unit whose registers have so many bits, or without one.
fn processor(vectors: u16) -> String {
    match vectors {
        0 => format!("{CPU},v=off"),
        bits => format!("{CPU},{VECTORS},vlen={bits}"),
    }
}

pub(super) fn run(image: &[u8], harts: u32, vectors: u16) -> Result<Vec<u8>, OracleError> {
    let folder = Folder::new()?;
    let program = folder.write("programs.elf", &elf::write(image))?;
    let ram = folder.file("ram");
    let size = memory(image.len());
    let mut command = Command::new(NAME);
    command
        .args(["-M", "virt,aia=aplic-imsic,aia-guests=7,memory-backend=ram"])
        .args(["-cpu", &processor(vectors)])
        .arg("-object")
        .arg(format!(
            "memory-backend-file,id=ram,size={size}M,share=on,mem-path={}",
            ram.display()
        ))
        .args(["-m", &format!("{size}M"), "-display", "none"])
        .args(["-smp", &harts.to_string(), "-accel"])
        // Time by instructions, so that no program depends on the host's; harts that wait for each
        // other would wait for a whole turn.
        .arg(if harts == 1 {
            "tcg"
        } else {
            "tcg,thread=multi"
        })
        .args(if harts == 1 {
            &["-icount", "shift=0,sleep=off"][..]
        } else {
            &[]
        })
        .args(["-monitor", "none", "-serial", "none", "-bios"])
        .arg(program);
    match process::run(NAME, &mut command) {
        // Its time stands still while nothing but exceptions happens. What the programs before have left is there.
        Ok(()) | Err(OracleError::Endless(..)) => {}
        Err(error) => return Err(error),
    }
    let bytes = read(&ram)?;
    let start = (layout::SLOTS - layout::RAM) as usize;
    bytes
        .get(start..image.len())
        .map(<[u8]>::to_vec)
        .ok_or_else(|| OracleError::NoResult(NAME, "its RAM is too small".to_owned()))
}
