//! Rules that the built runtime library must keep.

use std::collections::BTreeSet;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use object::{Object as _, ObjectSymbol as _};

const LIBRARY: &[u8] = include_bytes!(env!("RADDLE_RUNTIME"));
const EXPORTS: &str = include_str!("../../runtime/exports.txt");

fn exported(library: &object::File<'_>) -> BTreeSet<String> {
    let defined = library.dynamic_symbols().filter(|symbol| symbol.is_definition());
    defined.map(|symbol| symbol.name().expect("a name").to_owned()).collect()
}

#[test]
fn the_library_exports_what_the_list_says() {
    let library = object::File::parse(LIBRARY).expect("an ELF file");
    let listed: BTreeSet<String> = EXPORTS.lines().map(str::to_owned).collect();
    let exported = exported(&library);
    let missing: Vec<_> = listed.difference(&exported).collect();
    let unlisted: Vec<_> = exported.difference(&listed).collect();
    assert!(
        missing.is_empty() && unlisted.is_empty(),
        "missing {missing:?}, not in exports.txt {unlisted:?}"
    );
}

/// What a compiler emits or a program may call must be there, or the loader refuses the program.
#[test]
fn all_that_gcc_and_its_library_know_is_there() {
    let output =
        std::process::Command::new("gcc").arg("-print-file-name=libtsan.so").output().expect("gcc");
    let path = String::from_utf8(output.stdout).expect("a path");
    let bytes = std::fs::read(path.trim()).expect("gcc's libtsan.so");
    let theirs = object::File::parse(&*bytes).expect("an ELF file");
    let ours = exported(&object::File::parse(LIBRARY).expect("an ELF file"));
    let ours_too = |name: &String| {
        let hooks_of_the_program = name.starts_with("__tsan_default_");
        (name.starts_with("__tsan_")
            || name.starts_with("Annotate")
            || name.starts_with("__cxa_guard"))
            && !hooks_of_the_program
    };
    let missing: Vec<String> = exported(&theirs)
        .into_iter()
        .filter(ours_too)
        .filter(|name| !ours.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The path of a plain access without a trace, up to the return: before the program first frees
/// memory, and after that of an access to memory below all freed blocks or above them.
#[test]
fn a_plain_access_takes_six_instructions_and_eleven_after_a_free() {
    let library = object::File::parse(LIBRARY).expect("an ELF file");
    for name in
        ["__tsan_read1", "__tsan_read8", "__tsan_write4", "__tsan_write8", "__tsan_unaligned_read8"]
    {
        let symbol =
            library.dynamic_symbols().find(|symbol| symbol.name() == Ok(name)).expect(name);
        // The mode is not that of before; it is the one that looks; the address is elsewhere.
        let after_a_free = [true, false, true];
        for (taken, n) in [(&[][..], 6), (&after_a_free, 11)] {
            let path = path(&library, symbol.address(), taken);
            let text: Vec<String> = path.iter().map(ToString::to_string).collect();
            assert_eq!(path.len(), n, "{name}: {text:#?}");
            let calls = path
                .iter()
                .filter(|instruction| instruction.is_call_near() || instruction.has_lock_prefix());
            assert_eq!(calls.count(), 0, "{name}: {text:#?}");
        }
    }
}

/// Outside signal handlers, a replaced function that they must not call takes two more: a
/// comparison and a branch that is not taken.
#[test]
fn a_look_for_a_handler_takes_two_instructions() {
    let library = object::File::parse(LIBRARY).expect("an ELF file");
    for (name, n) in [("sem_post", 4), ("malloc", 6), ("calloc", 6), ("free", 6)] {
        let symbol =
            library.dynamic_symbols().find(|symbol| symbol.name() == Ok(name)).expect(name);
        let code = code_at(&library, symbol.address());
        let text: Vec<String> = Decoder::with_ip(64, code, symbol.address(), DecoderOptions::NONE)
            .into_iter()
            .scan(false, |is_over, instruction| {
                let is_last = instruction.flow_control() == FlowControl::UnconditionalBranch;
                (!std::mem::replace(is_over, is_last)).then(|| instruction.to_string())
            })
            .collect();
        assert_eq!(text.len(), n, "{name}: {text:#?}");
    }
}

/// The machine code from an address to the end of its section.
fn code_at<'data>(library: &object::File<'data>, address: u64) -> &'data [u8] {
    use object::ObjectSection as _;
    let section = library
        .sections()
        .find(|section| (section.address()..section.address() + section.size()).contains(&address))
        .expect("a section");
    &section.data().expect("its bytes")[(address - section.address()) as usize..]
}

/// The instructions from an address to the return. Of the conditional branches on the way the
/// first are taken or not as told, and none of the others.
fn path(library: &object::File<'_>, address: u64, taken: &[bool]) -> Vec<Instruction> {
    let mut taken = taken.iter();
    let mut path = Vec::new();
    let mut at = address;
    loop {
        let code = code_at(library, at);
        let instruction = Decoder::with_ip(64, code, at, DecoderOptions::NONE).decode();
        path.push(instruction);
        at = match instruction.flow_control() {
            FlowControl::Return => return path,
            FlowControl::UnconditionalBranch => instruction.near_branch_target(),
            FlowControl::ConditionalBranch if taken.next() == Some(&true) => {
                instruction.near_branch_target()
            }
            _ => instruction.next_ip(),
        };
        assert!(path.len() < 100, "no return in sight");
    }
}
