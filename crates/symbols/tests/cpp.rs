//! Names in C++ programs, from the output of g++ and clang++, in DWARF 4 and 5.

mod build;

use std::sync::LazyLock;

use build::{Program, build, line};
use raddle_trace::id::Pc;

/// The program, compiled with every installed compiler and option set.
static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let builds = [
        ("g++", "-std=c++17 -g -O1 -fsanitize=thread"),
        ("g++", "-std=c++17 -gdwarf-4 -O1"),
        ("g++", "-std=c++17 -gdwarf-5 -O0 -fdebug-types-section"),
        ("clang++", "-std=c++17 -gdwarf-4 -O0"),
        ("clang++", "-std=c++17 -gdwarf-5 -O1"),
    ];
    builds
        .into_iter()
        .filter_map(|(compiler, flags)| build(compiler, flags, &["bank.cc"]))
        .collect()
});

fn check_access(symbol: &str, offset: u64, bytes: u64, expect: &str) {
    build::check_access(&PROGRAMS, symbol, offset, bytes, expect);
}

fn check_lock(symbol: &str, offset: u64, expect: &str) {
    build::check_lock(&PROGRAMS, symbol, offset, expect);
}

const ACCOUNT: &str = "_ZN4bank7accountE";

#[test]
fn a_variable_has_its_namespace() {
    check_access(ACCOUNT, 80 + 16, 8, "bank::account.history[2]");
    check_access("_ZN4bank12_GLOBAL__N_16hiddenE", 0, 4, "bank::(anonymous namespace)::hidden");
}

#[test]
fn a_static_member_has_its_class() {
    check_access("_ZN4bank7Account6openedE", 0, 4, "bank::Account::opened");
    check_access("_ZN4bank7Account6closedE", 0, 8, "bank::Account::closed");
}

#[test]
fn members_of_base_classes_are_members() {
    check_access(ACCOUNT, 16, 4, "bank::account.id");
    check_access(ACCOUNT, 8, 4, "bank::account.sides");
}

#[test]
fn a_table_of_virtual_functions_is_a_member() {
    check_access(ACCOUNT, 0, 8, "bank::account.vptr");
}

#[test]
fn an_atomic_is_one_thing() {
    check_access(ACCOUNT, 72, 8, "bank::account.balance");
    check_access("done", 0, 1, "done");
    check_access("pointer", 0, 8, "pointer");
}

#[test]
fn a_mutex_is_one_thing() {
    check_lock(ACCOUNT, 32, "bank::account.m");
}

#[test]
fn a_static_in_a_function_has_the_functions_name() {
    check_access("deposits", 0, 4, "bank::Account::deposit::deposits");
    check_access("4sums", 0, 4, "sum::sums");
}

#[test]
fn a_template_is_a_record() {
    check_access("_ZN4bank4poolE", 24, 4, "bank::pool.items[1].id");
}

#[test]
fn functions_have_no_parameters() {
    let program = &PROGRAMS[0];
    let site = format!("bank.cc:{} in bank::Account::deposit", line("bank.cc", "opened++"));
    let sites = program.sites("_ZN4bank7Account7depositEl");
    assert!(sites.contains(&site), "{site} is not among {sites:?}");
}

#[test]
fn a_line_of_the_library_has_a_frame_of_the_program_around_it() {
    let program = &PROGRAMS[0];
    let symbols = program.symbols();
    let is_library = |pc: &Pc| !symbols.site(*pc).frame.has_own_source();
    let calls = program.calls("_ZN4bank7Account7depositEl");
    let pc = calls.into_iter().find(is_library).expect("the library is inlined");
    let site = symbols.site(pc);
    assert!(site.to_string().contains("std::"), "{site}");
    let own = format!("bank.cc:{} in bank::Account::deposit", line("bank.cc", "balance"));
    assert_eq!(site.own_frame().map(ToString::to_string), Some(own));
}

#[test]
fn a_class_that_another_unit_describes_has_members() {
    let builds = [("g++", "-g -O0"), ("clang++", "-g -O0"), ("clang++", "-gdwarf-4 -O0")];
    for (compiler, flags) in builds {
        let sources = ["ledger.cc", "ledger_main.cc"];
        let Some(program) = build(compiler, flags, &sources) else { continue };
        println!("{compiler} {flags}");
        let found = program.symbols().accessed(program.addr("ledger", 16), 4);
        assert_eq!(found.expect("a variable").name, "ledger.entries[2]");
    }
}
