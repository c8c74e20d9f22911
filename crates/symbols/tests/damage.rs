//! Damaged files: fewer names and a complaint, never a panic.

mod build;

use std::fs;
use std::ops::Range;
use std::path::Path;

use build::{BASE, Program, build, build_queue, tool};
use object::{Object, ObjectSection, ObjectSymbol};
use raddle_code::elf::ElfError;
use raddle_symbols::{Cache, Complaint, Symbols};
use raddle_trace::id::{Addr, Pc};
use raddle_trace::run::Module;

const FLAGS: &str = "-g -O1 -fsanitize=thread";

fn queue() -> Program {
    build_queue("gcc", FLAGS).expect("gcc")
}

/// A module whose file holds these bytes.
fn module(path: &Path, bytes: &[u8]) -> Module {
    fs::write(path, bytes).expect("written");
    let path = path.to_string_lossy().into_owned();
    Module { path, build_id: String::new(), base: BASE, low: BASE, high: BASE + (1 << 30) }
}

/// The named parts of a program: ranges of data, ranges of code.
struct Parts {
    data: Vec<Range<u64>>,
    code: Vec<Range<u64>>,
}

fn parts(program: &Program) -> Parts {
    let bytes = program.bytes();
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let of = |kind| {
        elf.symbols()
            .filter(|symbol| symbol.kind() == kind && symbol.size() > 0)
            .map(|symbol| BASE + symbol.address()..BASE + symbol.address() + symbol.size())
            .collect()
    };
    Parts { data: of(object::SymbolKind::Data), code: of(object::SymbolKind::Text) }
}

/// Requests every name that the intact program has, and returns those that are found.
fn ask(symbols: &Symbols, sound: &Parts) -> Vec<String> {
    let mut names = Vec::new();
    for addr in sound.data.iter().flat_map(|range| range.clone().step_by(4)).map(Addr) {
        let variables = [symbols.accessed(addr, 4), symbols.lock(addr)];
        names.extend(variables.into_iter().flatten().map(|variable| variable.name.clone()));
    }
    for pc in sound.code.iter().flat_map(|range| range.clone().step_by(3)).map(Pc) {
        let site = symbols.site(pc);
        // Printing must not panic either.
        let text = site.to_string();
        names.extend(site.frame.function.is_some().then_some(text));
    }
    names
}

#[test]
fn a_stripped_program_has_offsets() {
    let program = queue();
    let (addr, pc) = (program.addr("config", 8), program.calls("give_up")[0]);
    tool("strip", |command| _ = command.arg(&program.path)).expect("strip");
    let symbols = program.symbols();
    assert_eq!(symbols.global(addr), None);
    assert_eq!(symbols.site(pc).to_string(), format!("program+{:#x}", pc.0 - BASE));
    let path = program.path.to_string_lossy().into_owned();
    assert_eq!(symbols.complaints(), [Complaint::NoDebug { path }]);
}

#[test]
fn a_program_without_debug_information_has_its_symbols() {
    let program = build_queue("gcc", "-O1").expect("gcc");
    let symbols = program.symbols();
    let name =
        |symbol, offset| symbols.global(program.addr(symbol, offset)).expect("it").name.clone();
    assert_eq!(name("config", 0), "config");
    assert_eq!(name("config", 8), "config+8");
    assert_eq!(name("calls", 0), "calls");
    let pc = program.calls("give_up")[0];
    assert_eq!(symbols.site(pc).to_string(), format!("program+{:#x} in give_up", pc.0 - BASE));
}

#[test]
fn a_program_that_was_rebuilt_has_no_names() {
    let program = queue();
    let recorded = program.module();
    let other = build_queue("gcc", "-g -O2").expect("gcc");
    fs::copy(&other.path, &program.path).expect("copied");
    let symbols = Symbols::new(std::slice::from_ref(&recorded), &Cache::default());
    assert_eq!(symbols.global(program.addr("config", 8)), None);
    let site = symbols.site(Pc(program.symbol("main").0 + 1));
    assert_eq!(site.frame.function, None);
    let found = Some(program.module().build_id);
    let complaint = Complaint::File(ElfError::Replaced {
        path: recorded.path,
        recorded: recorded.build_id,
        found,
    });
    assert_eq!(symbols.complaints(), [complaint]);
}

#[test]
fn a_program_that_is_gone_has_no_names() {
    let program = queue();
    let symbols = program.symbols();
    let addr = program.addr("config", 8);
    fs::remove_file(&program.path).expect("removed");
    assert_eq!(symbols.global(addr), None);
    assert!(matches!(symbols.complaints()[..], [Complaint::File(ElfError::Unreadable { .. })]));
}

#[test]
fn a_complaint_is_made_once() {
    let symbols =
        Symbols::new(&[module(&queue().dir.join("text"), b"no program")], &Cache::default());
    for n in 0..3 {
        assert_eq!(symbols.global(Addr(BASE + n)), None);
        assert_eq!(symbols.site(Pc(BASE + 16 + n)).to_string(), format!("text+{:#x}", 16 + n));
    }
    assert!(matches!(symbols.complaints()[..], [Complaint::File(ElfError::NotElf { .. })]));
}

#[test]
fn the_kernels_own_module_is_not_complained_about() {
    let mut vdso = queue().module();
    vdso.path = "linux-vdso.so.1".to_owned();
    let symbols = Symbols::new(&[vdso], &Cache::default());
    assert_eq!(symbols.site(Pc(BASE + 16)).to_string(), "linux-vdso.so.1+0x10");
    assert_eq!(symbols.complaints(), []);
}

#[test]
fn a_directory_is_no_program() {
    let mut module = queue().module();
    module.path = "/".to_owned();
    let symbols = Symbols::new(&[module], &Cache::default());
    assert_eq!(symbols.global(Addr(BASE)), None);
    assert!(matches!(symbols.complaints()[..], [Complaint::File(ElfError::Unreadable { .. })]));
}

#[test]
fn a_file_that_ends_early_has_no_names_and_a_complaint() {
    let program = queue();
    let bytes = program.bytes();
    let (path, sound) = (program.dir.join("short"), parts(&program));
    let whole = Symbols::new(&[module(&path, &bytes)], &Cache::default());
    assert!(ask(&whole, &sound).len() > 100, "the whole file has names");
    assert_eq!(whole.complaints(), []);
    for n in (0..64).chain((64..bytes.len()).step_by(bytes.len() / 150)) {
        let symbols = Symbols::new(&[module(&path, &bytes[..n])], &Cache::default());
        assert_eq!(ask(&symbols, &sound), [""; 0], "{n} bytes");
        assert_eq!(symbols.complaints().len(), 1, "{n} bytes: {:?}", symbols.complaints());
    }
}

/// Changes random bytes within the sections whose names pass.
fn check_changed(program: &Program, n_rounds: u32, is_part: impl Fn(&str) -> bool) {
    let bytes = program.bytes();
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let range = |section: object::Section<'_, '_>| {
        let (start, n) = section.file_range()?;
        let (start, n) = (usize::try_from(start).ok()?, usize::try_from(n).ok()?);
        (n > 0 && is_part(section.name().ok()?)).then_some(start..start + n)
    };
    let mut places: Vec<Range<usize>> = elf.sections().filter_map(range).collect();
    if places.is_empty() {
        // The headers, at both ends of the file, and everything in between.
        places = vec![0..64, bytes.len() - 4096..bytes.len(), 0..bytes.len()];
    }
    let (path, sound) = (program.dir.join("changed"), parts(program));
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % below as u64).expect("it fits")
    };
    for round in 0..n_rounds {
        let mut changed = bytes.clone();
        for _ in 0..=round % 20 {
            let range = &places[next(places.len())];
            let place = range.start + next(range.len());
            changed[place] = match next(4) {
                0 => 0,
                1 => 0xff,
                2 => changed[place] ^ (1 << next(8)),
                _ => u8::try_from(next(256)).expect("a byte"),
            };
        }
        ask(&Symbols::new(&[module(&path, &changed)], &Cache::default()), &sound);
    }
}

#[test]
fn changed_bytes_of_the_file_are_no_harm() {
    check_changed(&queue(), 300, |_| false);
}

#[test]
fn changed_bytes_of_the_debug_information_are_no_harm() {
    for flags in [FLAGS, "-gdwarf-4 -O1 -fdebug-types-section"] {
        let program = build_queue("gcc", flags).expect("gcc");
        check_changed(&program, 400, |name| name.starts_with(".debug_"));
    }
}

#[test]
fn changed_names_are_no_harm() {
    let program = build("g++", "-std=c++17 -g -O1", &["bank.cc"]).expect("g++");
    check_changed(&program, 100, |name| matches!(name, ".strtab" | ".debug_str" | ".debug_info"));
}
