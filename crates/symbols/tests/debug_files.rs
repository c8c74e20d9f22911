//! Separate debug files.

mod build;

use std::fs;

use build::{Program, build_queue, source, tool};
use raddle_symbols::{Cache, Symbols};

/// A program whose debug information is moved to the file `debug` beside it.
fn split() -> Program {
    let program = build_queue("gcc", "-g -O1").expect("gcc");
    let debug = program.dir.join("program.debug");
    tool("objcopy", |command| {
        command.arg("--only-keep-debug").arg(&program.path).arg(&debug);
    })
    .expect("objcopy");
    program
}

fn strip(program: &Program, add_link: bool) {
    tool("strip", |command| _ = command.arg(&program.path)).expect("strip");
    if add_link {
        let debug = program.dir.join("program.debug");
        let link = format!("--add-gnu-debuglink={}", debug.display());
        tool("objcopy", |command| _ = command.arg(link).arg(&program.path)).expect("objcopy");
    }
}

/// The names of `config.limits.max` and of a call in `give_up` after the split.
fn names(
    program: &Program,
    add_link: bool,
    look: impl FnOnce(&Program) -> Symbols,
) -> (String, String) {
    let (addr, pc) = (program.addr("config", 8), program.calls("give_up")[0]);
    strip(program, add_link);
    let symbols = look(program);
    let variable = symbols.accessed(addr, 4).map_or_else(String::new, |found| found.name.clone());
    (variable, symbols.site(pc).frame.function.clone().unwrap_or_default())
}

fn both() -> (String, String) {
    ("config.limits.max".to_owned(), "give_up".to_owned())
}

#[test]
fn a_file_beside_the_program_is_found_by_link() {
    assert_eq!(names(&split(), true, Program::symbols), both());
}

#[test]
fn a_file_in_the_debug_directory_is_found_by_link() {
    let program = split();
    let found = names(&program, true, |program| {
        let directory = program.dir.join(".debug");
        fs::create_dir_all(&directory).expect("a directory");
        let debug = program.dir.join("program.debug");
        fs::rename(debug, directory.join("program.debug")).expect("moved");
        program.symbols()
    });
    assert_eq!(found, both());
}

#[test]
fn a_file_is_found_by_build_id() {
    let found = names(&split(), false, |program| {
        let id = program.module().build_id;
        let root = program.dir.join("root");
        let directory = root.join(".build-id").join(&id[..2]);
        fs::create_dir_all(&directory).expect("a directory");
        let debug = program.dir.join("program.debug");
        fs::rename(debug, directory.join(format!("{}.debug", &id[2..]))).expect("moved");
        let cache = Cache::default().with_debug_root(root);
        Symbols::new(&[program.module()], &cache).shown_from(source(""))
    });
    assert_eq!(found, both());
}

#[test]
fn a_file_of_another_build_is_not_believed() {
    let program = split();
    let found = names(&program, true, |program| {
        let other = build_queue("gcc", "-g -O2").expect("gcc");
        fs::copy(&other.path, program.dir.join("program.debug")).expect("copied");
        program.symbols()
    });
    assert_eq!(found, (String::new(), String::new()));
}

#[test]
fn split_units_leave_lines_and_symbols() {
    let Some(program) = build_queue("gcc", "-g -O1 -gsplit-dwarf") else { return };
    let symbols = program.symbols();
    let found = symbols.accessed(program.addr("config", 8), 4).expect("a variable");
    assert_eq!(found.name, "config+8");
    let site = symbols.site(program.calls("give_up")[0]).to_string();
    let line = build::line("queue.c", "give_up");
    assert_eq!(site, format!("queue.c:{line} in give_up"));
    assert_eq!(symbols.complaints().len(), 1);
}
