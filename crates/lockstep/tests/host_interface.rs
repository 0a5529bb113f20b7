//! HTIF and signatures: what bare programs say to their host, and how the suite judges them.

use std::path::PathBuf;
use std::sync::Arc;

use lockstep::assembler::{Code, addi, i, s, sd};
use lockstep::layout::{RAM, SLOTS, TOHOST};
use lockstep::suite::{Program, Settings, Verdict, run};
use lockstep::{elf, suite};
use machine::base::VectorLength;
use machine::board::PmpEntries;

const A: u32 = 5;
const B: u32 = 6;
const C: u32 = 7;

/// The image of a program, with `data` at the start of the signature.
fn image(code: Code, data: &[u8]) -> Vec<u8> {
    let mut image: Vec<u8> = code
        .finish()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    image.resize((SLOTS - RAM) as usize, 0);
    image.extend(data);
    elf::write(&image)
}

/// Sends B to the host.
fn send(code: &mut Code) {
    code.constant(A, TOHOST as u32);
    code.emit(sd(B, A, 0));
    // The host takes the word away once it has looked at it.
    let wait = code.label();
    code.place(wait);
    code.emit(i(0, A, 3, C, 0x03));
    code.branch(1, C, 0, wait);
}

/// Ends with a code.
fn exit(code: &mut Code, number: u32) {
    code.constant(B, number << 1 | 1);
    send(code);
}

/// Device 1, command 1: puts a character.
fn put(code: &mut Code, character: u8) {
    code.constant(B, 0x101);
    code.emit(i(48, B, 1, B, 0x13));
    code.emit(addi(B, B, i32::from(character)));
    send(code);
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("htif-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.join(name), bytes).expect("a file");
    }

    fn outcomes(&self) -> Vec<(String, suite::Outcome)> {
        let settings = Settings {
            harts: 1,
            memory: 16 << 20,
            vectors: VectorLength::NONE,
            pmp_entries: PmpEntries::default(),
            instructions: 100_000,
            profile: None,
            threads: 1,
            stop: Arc::default(),
        };
        let programs = suite::find(&self.0).expect("programs");
        let outcome = |program: &Program| (program.name.clone(), run(program, &settings));
        programs.iter().map(outcome).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing depends on it.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn characters_text_and_codes_reach_the_host() {
    let folder = Folder::new("says");
    let mut code = Code::default();
    put(&mut code, b'h');
    put(&mut code, b'i');
    // The write system call: number, file, address, length in a block of eight doublewords.
    code.constant(A, (SLOTS + 64) as u32);
    for (index, value) in [64, 1, SLOTS as u32, 6].into_iter().enumerate() {
        code.constant(B, value);
        code.emit(sd(B, A, 8 * index as i32));
    }
    code.constant(B, (SLOTS + 64) as u32);
    send(&mut code);
    exit(&mut code, 0);
    let mut data = b", host".to_vec();
    data.resize(256, 0);
    folder.put("good", &image(code, &data));

    let mut code = Code::default();
    exit(&mut code, 7);
    folder.put("bad", &image(code, &[0; 64]));

    let mut code = Code::default();
    let here = code.label();
    code.place(here);
    code.jump(here);
    folder.put("endless", &image(code, &[0; 64]));
    folder.put("truncated", &image(Code::default(), &[0; 64])[..200]);
    folder.put("readme", b"not a program");

    let outcomes = folder.outcomes();
    let verdict = |name: &str| {
        let found = outcomes.iter().find(|(program, _)| program == name);
        found
            .map(|(_, outcome)| outcome.clone())
            .expect("an outcome")
    };
    assert_eq!(outcomes.len(), 4, "what is no program is passed over");
    assert_eq!(verdict("good").verdict, Verdict::Passed);
    assert_eq!(verdict("good").output, "hi, host");
    assert_eq!(verdict("bad").verdict, Verdict::Test(7));
    assert_eq!(verdict("endless").verdict, Verdict::Endless);
    assert!(matches!(verdict("truncated").verdict, Verdict::Unusable(_)));
}

#[test]
fn signatures_are_compared_with_the_reference_beside() {
    let folder = Folder::new("signature");
    let mut code = Code::default();
    code.constant(A, SLOTS as u32);
    code.constant(B, 0x1234_5678);
    code.emit(s(4, B, A, 2, 0x23));
    exit(&mut code, 0);
    let program = image(code, &[0xff, 0, 0, 0, 1, 1, 1, 1]);
    for name in ["same", "other", "short"] {
        folder.put(name, &program);
    }
    folder.put("same.reference_output", b"000000ff\n12345678\n");
    folder.put("other.reference_output", b"000000ff\n01010101\n");
    folder.put("short.reference_output", b"000000ff\n");
    let outcomes = folder.outcomes();
    let names: Vec<_> = outcomes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["other", "same", "short"]);
    let difference = |expected: &str| Verdict::Signature {
        line: 2,
        expected: expected.to_owned(),
        found: "12345678".to_owned(),
    };
    assert_eq!(outcomes[0].1.verdict, difference("01010101"));
    assert_eq!(outcomes[1].1.verdict, Verdict::Passed);
    assert_eq!(outcomes[2].1.verdict, difference(""));
}
