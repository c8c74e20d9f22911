//! From the name of a function to its code, and back.

mod build;

use std::collections::BTreeMap;

use build::{BASE, Program, build};
use object::{Object as _, ObjectSection as _};
use raddle_symbols::Cache;
use raddle_symbols::functions::{alike, code_of};
use raddle_trace::id::Pc;

/// Every address of the code, by the name that raddle prints for it.
fn by_name(program: &Program) -> BTreeMap<String, Vec<u64>> {
    let bytes = program.bytes();
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let text = elf.section_by_name(".text").expect("code");
    let symbols = program.symbols();
    let mut names = BTreeMap::<String, Vec<u64>>::new();
    for address in text.address()..text.address() + text.size() {
        // A code address points past its instruction.
        let site = symbols.site(Pc(BASE + address + 1));
        let frame = site.own_frame().unwrap_or(&site.frame);
        if let Some(function) = &frame.function {
            names.entry(function.clone()).or_default().push(address);
        }
    }
    names
}

/// Checks that the code of every function is exactly where its name is printed.
#[track_caller]
fn check(compiler: &str, flags: &str, sources: &[&str], expect: &[&str]) {
    let Some(program) = build(compiler, flags, sources) else { return };
    let cache = Cache::default();
    let names = by_name(&program);
    for function in expect {
        assert!(names.contains_key(*function), "{function} in {:?}", names.keys());
    }
    for (function, addresses) in names {
        let code = code_of(&program.module(), &function, &cache);
        let found: Vec<u64> = code.into_iter().flatten().collect();
        assert_eq!(found, addresses, "{function}, {}", program.how);
    }
}

#[test]
fn code_is_where_the_name_is_printed() {
    check("gcc", "-g -O1", &["queue.c", "elsewhere.c"], &["push", "main"]);
    check("gcc", "-g -O2", &["queue.c", "elsewhere.c"], &["push", "main"]);
    check("gcc", "-gdwarf-4 -O2 -fsanitize=thread", &["queue.c", "elsewhere.c"], &["push", "main"]);
    check("clang", "-g -O2", &["queue.c", "elsewhere.c"], &["push", "main"]);
    check("g++", "-g -O2 -pthread", &["bank.cc"], &["main"]);
    check("g++", "-g -O0 -pthread", &["bank.cc"], &["main"]);
}

#[test]
fn without_debug_information_symbols_count() {
    check("gcc", "-O1", &["queue.c", "elsewhere.c"], &["fill", "main"]);
}

#[test]
fn an_unknown_name_has_no_code() {
    let Some(program) = build("g++", "-g -O1 -pthread", &["bank.cc"]) else { return };
    let (module, cache) = (program.module(), Cache::default());
    assert!(code_of(&module, "nothing", &cache).is_empty());
    assert!(alike(&module, "nothing", 3, &cache).is_empty());
    assert_eq!(alike(&module, "main", 3, &cache), ["main"]);
}
