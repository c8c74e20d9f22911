//! Programs for tests: compiled, inspected, never run.
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use object::{Object, ObjectSection, ObjectSymbol};
use raddle_symbols::{Cache, Symbols};
use raddle_trace::id::{Addr, Pc};
use raddle_trace::run::Module;

/// The load address that tests assume.
pub(crate) const BASE: u64 = 0x5555_5555_4000;

/// A program that was compiled for a test.
pub(crate) struct Program {
    pub(crate) dir: PathBuf,
    pub(crate) path: PathBuf,
    /// Compiler and flags.
    pub(crate) how: String,
}

/// The path of a source file.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// The number of the line that ends in `// line: mark`.
pub(crate) fn line(name: &str, mark: &str) -> u32 {
    let text = fs::read_to_string(source(name)).expect("the source is there");
    let is_marked = |line: &str| line.ends_with(&format!("// line: {mark}"));
    let number = text.lines().position(is_marked).expect("the mark is there");
    u32::try_from(number).expect("a short file") + 1
}

/// Checks the name of an access in each of these programs.
pub(crate) fn check_access(
    programs: &[Program],
    symbol: &str,
    offset: u64,
    bytes: u64,
    expect: &str,
) {
    for program in programs {
        let found = program.symbols().accessed(program.addr(symbol, offset), bytes);
        assert_eq!(found.expect("a variable").name, expect, "{}", program.how);
    }
}

/// Checks the name of a lock in each of these programs.
pub(crate) fn check_lock(programs: &[Program], symbol: &str, offset: u64, expect: &str) {
    for program in programs {
        let found = program.symbols().lock(program.addr(symbol, offset));
        assert_eq!(found.expect("a variable").name, expect, "{}", program.how);
    }
}

/// Runs a compiler or another tool. If it is missing, prints that and returns none; with
/// `CI=true`, nothing may be skipped.
pub(crate) fn tool(name: &str, set_up: impl FnOnce(&mut Command)) -> Option<()> {
    let mut command = Command::new(name);
    set_up(&mut command);
    match command.output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command:?} failed:\n{errors}");
            Some(())
        }
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => {
            let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            assert!(!is_ci, "no {name}, and CI skips no test");
            eprintln!("skipped: no {name}");
            None
        }
        Err(err) => panic!("{command:?} cannot be started: {err}"),
    }
}

/// Compiles source files to one program.
pub(crate) fn build(compiler: &str, flags: &str, sources: &[&str]) -> Option<Program> {
    let program = Program::new();
    tool(compiler, |command| {
        let sources = sources.iter().map(|name| source(name));
        command.args(flags.split_whitespace()).args(sources).arg("-o").arg(&program.path);
    })?;
    Some(Program { how: format!("{compiler} {flags}"), ..program })
}

/// Compiles `queue.c`, with debug information, and `elsewhere.c`, without.
pub(crate) fn build_queue(compiler: &str, flags: &str) -> Option<Program> {
    let program = Program::new();
    let other = program.dir.join("elsewhere.o");
    tool(compiler, |command| {
        command.arg("-c").arg(source("elsewhere.c")).arg("-o").arg(&other);
    })?;
    tool(compiler, |command| {
        command.args(flags.split_whitespace()).arg(source("queue.c")).arg(&other);
        command.arg("-o").arg(&program.path).arg("-pthread");
    })?;
    Some(Program { how: format!("{compiler} {flags}"), ..program })
}

impl Program {
    /// An empty program in a directory of its own. That stays, since the programs of a test file
    /// are static; the next run empties it.
    fn new() -> Self {
        static N_PROGRAMS: AtomicUsize = AtomicUsize::new(0);
        let number = N_PROGRAMS.fetch_add(1, Ordering::Relaxed).to_string();
        let test = std::env::current_exe().expect("a test");
        let test = test.file_name().expect("its name").to_owned();
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test).join(number);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        Self { path: dir.join("program"), dir, how: String::new() }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(&self.path).expect("the program is there")
    }

    /// The program as a run would list it.
    pub(crate) fn module(&self) -> Module {
        let bytes = self.bytes();
        let elf = object::File::parse(&*bytes).expect("an ELF file");
        let build_id = elf.build_id().ok().flatten().unwrap_or_default();
        Module {
            path: self.path.to_string_lossy().into_owned(),
            build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            base: BASE,
            low: BASE,
            high: BASE + (1 << 30),
        }
    }

    /// Its names, with source files shown by their base name.
    pub(crate) fn symbols(&self) -> Symbols {
        Symbols::new(&[self.module()], &Cache::default()).shown_from(source(""))
    }

    /// Address and size of the symbol `name`, possibly followed by a number. A mangled name is
    /// found by a part.
    pub(crate) fn symbol(&self, name: &str) -> (u64, u64) {
        let bytes = self.bytes();
        let elf = object::File::parse(&*bytes).expect("an ELF file");
        let all = || elf.symbols().filter(|symbol| symbol.is_definition());
        let is_similar = |known: &str| known.contains(name);
        // gcc writes `calls.0`, clang `count_calls.calls`.
        let is_numbered = |known: &str| known.split('.').any(|part| part == name);
        let found = all()
            .find(|symbol| symbol.name() == Ok(name))
            .or_else(|| all().find(|symbol| symbol.name().is_ok_and(is_numbered)))
            .or_else(|| all().find(|symbol| symbol.name().is_ok_and(is_similar)))
            .unwrap_or_else(|| panic!("no symbol {name}"));
        (BASE + found.address(), found.size())
    }

    pub(crate) fn addr(&self, name: &str, offset: u64) -> Addr {
        Addr(self.symbol(name).0 + offset)
    }

    /// The return addresses of the calls in a function: whatever follows a `call` opcode with a
    /// target in the program's code.
    pub(crate) fn calls(&self, function: &str) -> Vec<Pc> {
        let bytes = self.bytes();
        let elf = object::File::parse(&*bytes).expect("an ELF file");
        let code = elf.section_by_name(".text").expect("there is code");
        let (low, size) = self.symbol(function);
        let low = low - BASE;
        let body = code.data_range(low, size).expect("code is there").expect("in this section");
        let is_code = |address: u64| {
            elf.sections().any(|section| {
                section.kind() == object::SectionKind::Text
                    && (section.address()..section.address() + section.size()).contains(&address)
            })
        };
        body.windows(5)
            .zip(low..)
            .filter(|(code, at)| {
                let target = i32::from_le_bytes([code[1], code[2], code[3], code[4]]);
                code[0] == 0xe8 && is_code((at + 5).wrapping_add_signed(i64::from(target)))
            })
            .map(|(_, at)| Pc(BASE + at + 5))
            .collect()
    }

    /// The sites of the calls in a function, as displayed, each once.
    pub(crate) fn sites(&self, function: &str) -> Vec<String> {
        let symbols = self.symbols();
        let mut sites: Vec<String> =
            self.calls(function).into_iter().map(|pc| symbols.site(pc).to_string()).collect();
        sites.dedup();
        sites
    }
}
