//! What raddle says to those who use it in a wrong way: one sentence, and the right exit code.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use raddle_corpus::place::{self, MISUSE, UNJUDGED};
use raddle_corpus::tool::skip;
use raddle_corpus::{Place, Ran, tool};

/// Compiles a program that does nothing wrong.
fn compile(place: &Place, compiler: &str, flags: &[&str]) {
    let flags = [flags, &["-g", "-pthread"]].concat();
    place.compile(compiler, &flags, place.file("program.c", PROGRAM), "program");
}

const PROGRAM: &str = "
    #include <pthread.h>
    int shared;
    static void *other(void *p) { shared = 1; return p; }
    int main(void) {
        pthread_t thread;
        pthread_create(&thread, 0, other, 0);
        pthread_join(thread, 0);
        return 0;
    }";

#[test]
fn no_program() {
    let place = Place::new();
    place.raddle("run").complains(MISUSE, "no program to run");
    place.raddle("run --").complains(MISUSE, "no program to run");
    place.raddle("record -o trace").complains(MISUSE, "no program to run");
}

#[test]
fn a_program_that_is_not_there() {
    let place = Place::new();
    place.raddle("run -- ./missing").complains(MISUSE, "program ./missing not found");
    place.raddle("run -- missing-everywhere").complains(MISUSE, "in PATH");
    place.raddle("run -- ./missing.c").complains(MISUSE, "program ./missing.c not found");
}

#[test]
fn a_directory() {
    Place::new().raddle("run -- /usr").complains(MISUSE, "is a directory");
}

#[test]
fn not_executable() {
    let place = Place::new();
    place.file("program", "text");
    place.raddle("run -- ./program").complains(MISUSE, "is not executable");
}

#[test]
fn neither_elf_nor_script() {
    let place = Place::new();
    for bytes in ["text", "", "\x7fEL"] {
        let path = place.file("program", bytes);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("own");
        place
            .raddle("run -- ./program")
            .complains(MISUSE, "neither an ELF executable nor a script");
    }
}

#[test]
fn an_elf_file_of_another_machine() {
    let place = Place::new();
    compile(&place, "gcc", &["-fsanitize=thread"]);
    let mut bytes = fs::read(place.path("program")).expect("readable");
    // e_machine: 183 is AArch64.
    bytes[18] = 183;
    fs::write(place.path("program"), &bytes).expect("writable");
    place.raddle("run -- ./program").complains(MISUSE, "not an x86-64 program");
    // Cut off within its header.
    fs::write(place.path("program"), &bytes[..20]).expect("writable");
    place.raddle("run -- ./program").complains(MISUSE, "not an x86-64 program");
}

#[test]
fn a_static_program() {
    let place = Place::new();
    compile(&place, "gcc", &["-static"]);
    place.raddle("run -- ./program").complains(MISUSE, "linked statically");
}

#[test]
fn an_uninstrumented_program() {
    let place = Place::new();
    compile(&place, "gcc", &[]);
    place.raddle("run -- ./program").complains(MISUSE, "gcc -g -fsanitize=thread");
}

#[test]
fn a_program_with_clangs_own_runtime() {
    if !tool("clang") {
        return;
    }
    let place = Place::new();
    compile(&place, "clang", &["-fsanitize=thread"]);
    place.raddle("run -- ./program").complains(MISUSE, "clang's ThreadSanitizer runtime");
}

#[test]
fn a_source_that_does_not_compile() {
    let place = Place::new();
    place.file("wrong.c", "int main(void) { return nothing; }");
    // The compiler's words are passed on.
    let ran = place.raddle("run -- wrong.c").exits(MISUSE).says("wrong.c:1");
    ran.says("raddle: wrong.c does not compile");
}

#[test]
fn no_compiler() {
    let place = Place::new();
    place.file("fine.c", PROGRAM);
    let ran = Ran::from(place.command("run -- fine.c").env("CC", "no-such-cc"));
    ran.complains(MISUSE, "cannot start compiler no-such-cc");
}

#[test]
fn options_that_are_no_numbers() {
    let place = Place::new();
    for (line, words) in [
        ("run --seed x -- ./program", "--seed"),
        ("run --seed -1 -- ./program", "--seed"),
        ("run --timeout soon -- ./program", "--timeout"),
        ("run --delay 2:5 --policy free -- ./program", "between 0 and 1"),
        ("run --policy best -- ./program", "expected random, "),
        ("replay clip --times 0", "--times"),
    ] {
        place.raddle(line).exits(MISUSE).says(words);
    }
}

#[test]
fn options_that_do_not_go_together() {
    let place = Place::new();
    place.raddle("run --delay 0.1:5 -- ./program").complains(MISUSE, "--delay needs --policy free");
    place.raddle("run --depth 2 -- ./program").complains(MISUSE, "--depth needs --policy pct");
    place.raddle("run --policy follow -- ./program").complains(MISUSE, "raddle replay");
}

#[test]
fn a_trace_that_cannot_be_read() {
    let place = Place::new();
    place.raddle("trace stats missing").complains(MISUSE, "missing");
    place.raddle("trace stats /").complains(MISUSE, "not a regular file");
    place.file("foreign", "this is not a trace, but it is long enough to be one");
    place.raddle("trace stats foreign").complains(MISUSE, "is not a raddle trace");
    place.file("empty", "");
    place.raddle("trace show empty").complains(MISUSE, "trace");
}

/// Records a trace of the program.
fn recorded(place: &Place) -> Vec<u8> {
    compile(place, "gcc", &["-fsanitize=thread"]);
    place.raddle("record -o trace -- ./program").exits(0);
    fs::read(place.path("trace")).expect("a trace")
}

#[test]
fn a_truncated_trace_is_read_up_to_its_end() {
    let place = Place::new();
    let bytes = recorded(&place);
    for n in 0..bytes.len() {
        place.file("short", &bytes[..n]);
        let ran = place.raddle("trace stats --json short");
        match ran.code {
            Some(0) => ran.says("unfinished"),
            _ => ran.exits(MISUSE),
        };
    }
}

#[test]
fn a_damaged_trace_is_told() {
    let place = Place::new();
    let bytes = recorded(&place);
    let sound = place.raddle("trace show trace").exits(0).stdout;
    // Every byte of the header, and some of the others.
    for at in (0..64).chain((64..bytes.len()).step_by(7)) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x55;
        place.file("changed", &changed);
        let ran = place.raddle("trace show changed");
        match at {
            0..8 => ran.exits(MISUSE).says("is not a raddle trace"),
            8..12 => ran.exits(MISUSE).says("format version"),
            // Reserved.
            12..16 => ran.exits(0).prints(&sound),
            _ => ran.exits(MISUSE).says("damaged at byte"),
        };
    }
}

#[test]
fn a_trace_of_a_newer_version() {
    let place = Place::new();
    let mut bytes = recorded(&place);
    bytes[8] = 200;
    place.file("newer", &bytes);
    place.raddle("trace stats newer").complains(MISUSE, "format version 200");
}

/// Needs a disk that is small, which a user may make only in a namespace. Containers may forbid
/// that; only there the test is skipped.
#[test]
fn a_full_disk() {
    if !tool("unshare") {
        return;
    }
    let place = Place::new();
    compile(&place, "gcc", &["-fsanitize=thread"]);
    fs::create_dir(place.path("small")).expect("room");
    let on_small_disk = |command: &str| -> Output {
        let script = format!(
            "mount -t tmpfs -o size=8k none small || exit 77
             head -c 8192 /dev/zero > small/full 2>/dev/null
             exec {command}",
        );
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .current_dir(place.directory())
            .output()
            .expect("unshare")
    };
    if !on_small_disk("true").status.success() {
        skip("no namespace for a small disk");
        return;
    }
    let raddle = place::executable();
    for line in ["record -o small/trace -- ./program", "run --clip small/clip -- ./program"] {
        let output = on_small_disk(&format!("'{}' {line}", raddle.display()));
        Ran::from(output).complains(MISUSE, "No space left on device");
    }
}

#[test]
fn a_directory_that_is_not_there() {
    let place = Place::new();
    compile(&place, "gcc", &["-fsanitize=thread"]);
    place.raddle("record -o no/where -- ./program").complains(MISUSE, "no/where");
    place.raddle("run --clip no/where -- ./program").complains(MISUSE, "no/where");
    place.raddle("run --stdin nothing -- ./program").complains(MISUSE, "cannot read nothing");
}

#[test]
fn no_room_for_the_runtime_library() {
    let place = Place::new();
    compile(&place, "gcc", &["-fsanitize=thread"]);
    let mut command = place.command("run -- ./program");
    command.env("XDG_CACHE_HOME", "/proc/none").env("HOME", "/proc/none");
    let ran = Ran::from(command.env("TMPDIR", "/proc/none"));
    ran.complains(MISUSE, "cannot unpack the runtime library");
}

#[test]
fn a_failed_recording_leaves_an_older_trace_alone() {
    let place = Place::new();
    let before = recorded(&place);
    place.file("script", "#!/bin/sh\nexit 0\n");
    let script = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path("script"), script).expect("own");
    let output = place.raddle("record -o trace -- ./script");
    output.complains(UNJUDGED, "before its first instrumented function");
    assert_eq!(fs::read(place.path("trace")).expect("a trace"), before);
    assert!(!place.path("trace.unfinished").exists());
}

#[test]
fn a_clip_that_cannot_be_read() {
    let place = Place::new();
    place.raddle("replay missing").complains(MISUSE, "missing");
    place.file("foreign", "{}");
    place.raddle("replay foreign").complains(MISUSE, "foreign");
    place.file("empty", "");
    place.raddle("replay empty").complains(MISUSE, "empty");
}

#[test]
fn a_program_that_was_replaced_since_its_clip() {
    let place = Place::new();
    compile(&place, "gcc", &["-fsanitize=thread"]);
    place.raddle("run --clip clip -- ./program").exits(0);
    compile(&place, "gcc", &["-fsanitize=thread", "-O2"]);
    place.raddle("replay clip").complains(MISUSE, "--any-build");
    fs::remove_file(place.path("program")).expect("own");
    place.raddle("replay clip").complains(MISUSE, "not found");
}
