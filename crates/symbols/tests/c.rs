//! Names in C programs, from the output of gcc and clang, in DWARF 4 and 5.

mod build;

use std::sync::LazyLock;

use build::{BASE, Program, build_queue, line, source};
use raddle_symbols::{Cache, Symbols};
use raddle_trace::id::{Addr, Pc};

/// The program, compiled with every installed compiler and option set.
static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| {
    let builds = [
        ("gcc", "-g -O1 -fsanitize=thread"),
        ("gcc", "-gdwarf-4 -O1 -fsanitize=thread"),
        ("gcc", "-gdwarf-4 -O1 -fdebug-types-section"),
        ("gcc", "-gdwarf-5 -O1 -fdebug-types-section"),
        ("gcc", "-g -O1 -gz=zlib -no-pie -fno-pie"),
        ("gcc", "-g -O1 -flto"),
        ("clang", "-gdwarf-4 -O1"),
        ("clang", "-gdwarf-5 -O1"),
        ("clang", "-gdwarf-5 -O0"),
    ];
    builds.into_iter().filter_map(|(compiler, flags)| build_queue(compiler, flags)).collect()
});

fn check_access(symbol: &str, offset: u64, bytes: u64, expect: &str) {
    build::check_access(&PROGRAMS, symbol, offset, bytes, expect);
}

fn check_lock(symbol: &str, offset: u64, expect: &str) {
    build::check_lock(&PROGRAMS, symbol, offset, expect);
}

#[test]
fn a_member_of_a_member_has_its_path() {
    check_access("config", 8, 4, "config.limits.max");
    check_access("config", 12, 4, "config.limits.min");
}

#[test]
fn an_access_of_all_of_a_record_is_the_record() {
    check_access("config", 8, 8, "config.limits");
    check_access("config", 0, 32, "config");
}

#[test]
fn an_access_of_several_members_is_from_the_first_to_the_last() {
    check_access("config", 0, 16, "config.version..limits");
}

#[test]
fn an_element_of_an_array_has_its_subscript() {
    check_access("table", 3 * 16, 8, "table[3].next");
    check_access("table", 7 * 16 + 8, 4, "table[7].value");
    check_access("config", 16 + 5, 1, "config.name[5]");
}

#[test]
fn several_elements_are_from_the_first_to_the_last() {
    check_access("config", 16 + 4, 8, "config.name[4..11]");
    check_access("config", 16, 16, "config.name");
}

#[test]
fn an_array_of_two_dimensions_has_two_subscripts() {
    check_access("grid", 4 * (4 + 2), 4, "grid[1][2]");
    check_access("grid", 4 * 2, 12, "grid[0][2]..[1][0]");
}

#[test]
fn padding_is_an_offset() {
    check_access("table", 12, 4, "table[0]+12");
}

#[test]
fn the_member_of_a_union_is_the_one_that_fits() {
    check_access("queue", 104, 4, "queue.as.number");
    check_access("queue", 106, 2, "queue.as.halves.high");
}

#[test]
fn an_anonymous_record_adds_no_name() {
    check_access("queue", 112, 4, "queue.count");
}

#[test]
fn bit_fields_that_share_a_word_are_named_together() {
    check_access("queue", 116, 2, "queue.open..kind");
    check_access("queue", 117, 1, "queue.kind");
}

#[test]
fn a_mutex_is_one_thing() {
    check_lock("queue", 0, "queue.m");
    check_lock("queue", 40, "queue.ready");
}

#[test]
fn a_plain_access_sees_what_a_mutex_is_made_of() {
    check_access("queue", 0, 4, "queue.m.__data.__lock");
}

#[test]
fn a_static_in_a_function_has_the_functions_name() {
    check_access("calls", 0, 4, "count_calls::calls");
    check_access("seen", 0, 4, "count_calls::seen.max");
}

#[test]
fn a_variable_without_debug_information_has_its_declarations_type() {
    check_access("opaque", 0, 4, "opaque");
    check_access("opaque", 2, 2, "opaque+2");
    // clang does not describe variables that are only used.
    let program = &PROGRAMS[0];
    let found = program.symbols().accessed(program.addr("elsewhere", 12), 4);
    assert_eq!(found.expect("a variable").name, "elsewhere.limits.min");
}

#[test]
fn a_variable_knows_symbol_offset_size_and_declaration() {
    for program in &*PROGRAMS {
        let found = program.symbols().accessed(program.addr("config", 12), 4).expect("a variable");
        assert_eq!((found.symbol.as_str(), found.offset, found.bytes), ("config", 12, Some(4)));
        let file = source("queue.c").to_string_lossy().into_owned();
        assert_eq!(found.declared, Some((file, line("queue.c", "config"))));
    }
}

#[test]
fn an_address_between_variables_is_no_variable() {
    for program in &*PROGRAMS {
        let symbols = program.symbols();
        assert_eq!(symbols.global(Addr(BASE + 4)), None);
        assert_eq!(symbols.global(Addr(BASE - 4)), None);
        assert_eq!(symbols.global(Addr(0)), None);
    }
}

#[test]
fn inlined_functions_are_listed_from_inside_out() {
    for program in &*PROGRAMS {
        let symbols = program.symbols();
        let wanted = ["push", "push_twice", "fill"]
            .map(|function| format!("queue.c:{} in {function}", line("queue.c", function)));
        // Not every build has a callback there, so take any address in the function.
        let (low, size) = program.symbol("fill");
        let found = (low + 1..low + size).any(|pc| {
            let site = symbols.site(Pc(pc));
            let frames: Vec<String> = site.frames().map(ToString::to_string).collect();
            frames == wanted
        });
        assert!(found, "no address in fill has these frames: {wanted:?}");
    }
}

#[test]
fn the_last_call_of_a_function_is_in_it_though_it_returns_behind_it() {
    for program in &*PROGRAMS {
        let site = format!("queue.c:{} in give_up", line("queue.c", "give_up"));
        assert_eq!(program.sites("give_up").last(), Some(&site));
    }
}

#[test]
fn callbacks_are_at_the_line_of_their_access() {
    let program = &PROGRAMS[0];
    let site = format!("queue.c:{} in count_calls", line("queue.c", "calls++"));
    let sites = program.sites("count_calls");
    assert!(sites.contains(&site), "{site} is not among {sites:?}");
}

#[test]
fn files_are_shown_relative_to_a_directory_above() {
    let program = &PROGRAMS[0];
    let directory = source("").parent().expect("tests").to_owned();
    let symbols = program.symbols().shown_from(&directory);
    let pc = *program.calls("give_up").last().expect("a call");
    let site = symbols.site(pc);
    assert_eq!(site.frame.short_file.as_deref(), Some("programs/queue.c"));
    assert_eq!(site.frame.file.as_deref(), source("queue.c").to_str());
    assert_eq!(site.module, program.path.to_string_lossy());
    assert_eq!(site.offset, pc.0 - BASE);
}

#[test]
fn a_site_in_no_module_is_its_address() {
    assert_eq!(Symbols::new(&[], &Cache::default()).site(Pc(0x1234)).to_string(), "0x1234");
    assert_eq!(Symbols::new(&[], &Cache::default()).site(Pc(0)).to_string(), "unknown");
}

#[test]
fn good_programs_give_no_reason_to_complain() {
    for program in &*PROGRAMS {
        let symbols = program.symbols();
        let _ = symbols.global(program.addr("config", 0));
        let _ = symbols.site(Pc(program.symbol("main").0 + 1));
        assert_eq!(symbols.complaints(), []);
    }
}
