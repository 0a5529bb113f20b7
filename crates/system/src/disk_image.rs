//! Disks in other forms than raw, which QEMU's `qemu-img` makes raw disks of.
//!
//! The files are somebody else's: what they say of other files is an allegation. Only plain files are followed, to a bounded depth, and each
//! of a chain once.

mod mistake;
pub mod qcow2;
mod vmdk;

pub use mistake::ImageMistake;

use crate::cache::Cache;
use crate::fingerprint::Fingerprint;
use mistake::at;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most files of a chain of backing files.
pub const MAX_DEPTH: usize = 16;
/// Bytes at the beginning of a file by which its form is told.
const START: usize = 128;
/// First bytes of a form that is not read, and can name backing files.
const QED: &[u8] = b"QED\0";
/// Folder of the cache with the raw disks.
const FOLDER: &str = "disks";

/// Form of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// QEMU's, versions 2 and 3 (QEMU, `docs/interop/qcow2.rst`).
    Qcow2,
    /// VMware's (Virtual Disk Format 5.0).
    Vmdk,
    /// Microsoft's of today (MS-VHDX, 2.2.1).
    Vhdx,
    /// Microsoft's older one (Virtual Hard Disk Image Format Specification).
    Vhd,
    /// VirtualBox's.
    Vdi,
}

/// Forms by their first bytes: offset, bytes there, the form.
const FORMS: [(usize, &[u8], Form); 6] = [
    (0, b"QFI\xfb", Form::Qcow2),
    (0, b"KDMV", Form::Vmdk),
    (0, vmdk::DESCRIPTOR, Form::Vmdk),
    (0, b"vhdxfile", Form::Vhdx),
    (0, b"conectix", Form::Vhd),
    // The signature 0xbeda107f behind the text.
    (64, b"\x7f\x10\xda\xbe", Form::Vdi),
];

impl Form {
    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Qcow2 => "qcow2",
            Self::Vmdk => "VMDK",
            Self::Vhdx => "VHDX",
            Self::Vhd => "VHD",
            Self::Vdi => "VDI",
        }
    }

    /// Its name for `qemu-img`.
    #[must_use]
    pub fn for_qemu(self) -> &'static str {
        match self {
            Self::Qcow2 => "qcow2",
            Self::Vmdk => "vmdk",
            Self::Vhdx => "vhdx",
            Self::Vhd => "vpc",
            Self::Vdi => "vdi",
        }
    }

    /// The form of a file that begins so; `None` for a raw disk, and for what no form here is.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        let mut forms = FORMS.iter();
        let found = forms.find(|(at, magic, _)| {
            let there = start.get(*at..);
            there.is_some_and(|there| there.starts_with(magic))
        });
        found.map(|(.., form)| *form)
    }
}

/// An image that is no raw disk, with all files that it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its form.
    pub form: Form,
    /// The file, then its backing file, and so on.
    pub files: Vec<PathBuf>,
}

/// The image in a file; `None` if the file is a raw disk.
///
/// # Errors
/// [`ImageMistake`], which names the file of the chain that has it.
pub fn of(path: &Path) -> Result<Option<Image>, ImageMistake> {
    let Some(form) = form_of(path)? else {
        return Ok(None);
    };
    let mut files = Vec::new();
    let mut known = Vec::new();
    let mut next = Some((path.to_owned(), Some(form)));
    while let Some((path, form)) = next {
        let refused = |what: String| ImageMistake::Refused {
            path: path.clone(),
            what,
        };
        let metadata = metadata(&path)?;
        if !metadata.is_file() {
            return Err(refused(String::from("this is no plain file")));
        }
        let identity = (metadata.dev(), metadata.ino());
        if known.contains(&identity) {
            return Err(refused(String::from(
                "it is its own backing file, by way of others",
            )));
        }
        if files.len() == MAX_DEPTH {
            return Err(refused(format!(
                "there are more than {MAX_DEPTH} backing files"
            )));
        }
        known.push(identity);
        let backing = match form {
            Some(Form::Qcow2) => qcow2::Header::read(&path)?.backing,
            Some(Form::Vmdk) => {
                vmdk::check(&path)?;
                None
            }
            _ => None,
        };
        next = match backing {
            Some(name) => {
                let backing = beside(&path, &name).map_err(refused)?;
                let form = form_of(&backing)?;
                Some((backing, form))
            }
            None => None,
        };
        files.push(path);
    }
    Ok(Some(Image { form, files }))
}

/// The path of a file by the name that `path` has for it. A name that `qemu-img` would take for a server or a description is none.
fn beside(path: &Path, name: &str) -> Result<PathBuf, String> {
    if name.contains(':') || name.contains('\0') {
        return Err(format!(
            "its backing file {name:?} is no plain file; `qemu-img rebase` names another"
        ));
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(folder.join(name))
}

fn form_of(path: &Path) -> Result<Option<Form>, ImageMistake> {
    if !metadata(path)?.is_file() {
        return Ok(None);
    }
    let file = File::open(path).map_err(at(path))?;
    let mut start = Vec::new();
    file.take(START as u64)
        .read_to_end(&mut start)
        .map_err(at(path))?;
    if start.starts_with(QED) {
        return Err(ImageMistake::Refused {
            path: path.to_owned(),
            what: String::from(
                "it is in the form QED; make a raw disk of it: qemu-img convert -O raw",
            ),
        });
    }
    Ok(Form::of(&start))
}

fn metadata(path: &Path) -> Result<Metadata, ImageMistake> {
    std::fs::metadata(path).map_err(at(path))
}

impl Image {
    /// Path of the raw disk that is made of the image, or of its snapshot with this name. It changes with each change of a file.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn raw(&self, snapshot: Option<&str>, cache: &Cache) -> Result<PathBuf, ImageMistake> {
        let mut text = format!("{} {snapshot:?}\n", self.form.name());
        for path in &self.files {
            let state = metadata(path)?;
            let (length, changed) = (state.len(), (state.mtime(), state.mtime_nsec()));
            let whole = path.canonicalize().map_err(at(path))?;
            text += &format!("{whole:?} {length} {changed:?}\n");
        }
        let name = format!("{}.raw", Fingerprint::of(text.as_bytes()));
        Ok(self.folder(snapshot, cache)?.join(name))
    }

    /// Folder of the raw disks that were made of earlier states of the image, and are to be made of later ones.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn folder(&self, snapshot: Option<&str>, cache: &Cache) -> Result<PathBuf, ImageMistake> {
        let path = self.files.first().map_or(Path::new(""), PathBuf::as_path);
        let whole = path.canonicalize().map_err(at(path))?;
        let name = Fingerprint::of(format!("{whole:?} {snapshot:?}").as_bytes());
        Ok(cache.folder().join(FOLDER).join(name.short()))
    }
}

#[cfg(test)]
mod tests;
