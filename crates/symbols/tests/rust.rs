//! Names in Rust programs, with both manglings.

mod build;

use std::sync::LazyLock;

use build::{Program, build, line};

/// The program, compiled in three ways.
static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let builds = ["-g", "-g -O", "-g -Csymbol-mangling-version=v0"];
    let flags = |flags| format!("--edition 2024 {flags}");
    builds.into_iter().filter_map(|each| build("rustc", &flags(each), &["statics.rs"])).collect()
});

fn check_access(symbol: &str, offset: u64, bytes: u64, expect: &str) {
    build::check_access(&PROGRAMS, symbol, offset, bytes, expect);
}

fn check_lock(symbol: &str, offset: u64, expect: &str) {
    build::check_lock(&PROGRAMS, symbol, offset, expect);
}

#[test]
fn a_static_has_its_path() {
    check_access("statics5COUNT", 0, 8, "statics::COUNT");
    check_access("PAIR", 0, 4, "statics::inner::PAIR.0");
    check_access("PAIR", 4, 4, "statics::inner::PAIR.1");
}

#[test]
fn a_static_in_a_function_has_the_functions_name() {
    check_access("4NEXT", 0, 8, "statics::ticket::NEXT");
}

#[test]
fn data_in_a_mutex_has_members() {
    check_access("5STATE", 8, 8, "statics::STATE.data.len");
    check_access("5STATE", 8 + 8 + 8 + 4, 4, "statics::STATE.data.slots[1].value");
}

#[test]
fn a_cell_adds_no_name() {
    check_access("4BARE", 8 + 4, 4, "statics::BARE.0.slots[0].value");
}

#[test]
fn a_member_of_the_only_variant_with_members_has_its_path() {
    check_access("6CHOICE", 16, 8, "statics::CHOICE.data.Some.0");
    check_access("6CHOICE", 8, 8, "statics::CHOICE.data");
}

#[test]
fn a_lock_is_one_thing() {
    check_lock("5STATE", 0, "statics::STATE");
    check_lock("7READERS", 0, "statics::READERS");
    check_lock("5READY", 0, "statics::READY");
}

#[test]
fn functions_have_no_hash() {
    for program in &*PROGRAMS {
        let site = format!("statics.rs:{} in statics::withdraw", line("statics.rs", "withdraw"));
        let sites = program.sites("8withdraw");
        assert!(sites.contains(&site), "{site} is not among {sites:?}");
    }
}
