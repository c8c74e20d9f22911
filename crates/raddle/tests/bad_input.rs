//! What raddle says to those who use it in a wrong way: one sentence, and the right exit code.

mod place;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use place::{MISUSE, Place, UNJUDGED, check_sentence};

/// Compiles a program that does nothing wrong.
fn compile(place: &Place, compiler: &str, flags: &[&str]) {
    let source = place.file("program.c", PROGRAM);
    let status = Command::new(compiler)
        .args(flags)
        .args(["-g", "-pthread", "-o"])
        .arg(place.path("program"))
        .arg(source)
        .status()
        .expect("a compiler");
    assert!(status.success());
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
    check_sentence(&place.raddle("run"), MISUSE, "no program to run");
    check_sentence(&place.raddle("run --"), MISUSE, "no program to run");
    check_sentence(&place.raddle("record -o trace"), MISUSE, "no program to run");
}

#[test]
fn a_program_that_is_not_there() {
    let place = Place::new();
    check_sentence(&place.raddle("run -- ./missing"), MISUSE, "there is no program ./missing");
    check_sentence(&place.raddle("run -- missing-everywhere"), MISUSE, "in PATH");
    check_sentence(&place.raddle("run -- ./missing.c"), MISUSE, "there is no program ./missing.c");
}

#[test]
fn a_directory() {
    check_sentence(&Place::new().raddle("run -- /usr"), MISUSE, "is a directory");
}

#[test]
fn not_executable() {
    let place = Place::new();
    place.file("program", "text");
    check_sentence(&place.raddle("run -- ./program"), MISUSE, "is not executable");
}

#[test]
fn neither_elf_nor_script() {
    let place = Place::new();
    for bytes in ["text", "", "\x7fEL"] {
        let path = place.file("program", bytes);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("own");
        check_sentence(
            &place.raddle("run -- ./program"),
            MISUSE,
            "neither an ELF executable nor a script",
        );
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
    check_sentence(&place.raddle("run -- ./program"), MISUSE, "not a program for x86-64");
    // Cut off within its header.
    fs::write(place.path("program"), &bytes[..20]).expect("writable");
    check_sentence(&place.raddle("run -- ./program"), MISUSE, "not a program for x86-64");
}

#[test]
fn a_static_program() {
    let place = Place::new();
    compile(&place, "gcc", &["-static"]);
    check_sentence(&place.raddle("run -- ./program"), MISUSE, "linked statically");
}

#[test]
fn an_uninstrumented_program() {
    let place = Place::new();
    compile(&place, "gcc", &[]);
    check_sentence(&place.raddle("run -- ./program"), MISUSE, "gcc -g -fsanitize=thread");
}

#[test]
fn a_program_with_clangs_own_runtime() {
    if Command::new("clang").arg("--version").output().is_err() {
        return;
    }
    let place = Place::new();
    compile(&place, "clang", &["-fsanitize=thread"]);
    check_sentence(
        &place.raddle("run -- ./program"),
        MISUSE,
        "clang's own ThreadSanitizer runtime",
    );
}

#[test]
fn a_source_that_does_not_compile() {
    let place = Place::new();
    place.file("wrong.c", "int main(void) { return nothing; }");
    let output = place.raddle("run -- wrong.c");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(MISUSE));
    assert!(stderr.contains("wrong.c:1"), "the compiler's words are passed on: {stderr}");
    assert!(stderr.contains("raddle: wrong.c does not compile"), "{stderr}");
}

#[test]
fn no_compiler() {
    let place = Place::new();
    place.file("fine.c", PROGRAM);
    let output = place.command("run -- fine.c").env("CC", "no-such-cc").output().expect("raddle");
    check_sentence(&output, MISUSE, "cannot start the compiler no-such-cc");
}

#[test]
fn options_that_are_no_numbers() {
    let place = Place::new();
    for (line, words) in [
        ("run --seed x -- ./program", "--seed"),
        ("run --seed -1 -- ./program", "--seed"),
        ("run --timeout soon -- ./program", "--timeout"),
        ("run --delay 2:5 --policy free -- ./program", "between 0 and 1"),
        ("run --policy best -- ./program", "a policy is"),
        ("replay clip --times 0", "--times"),
    ] {
        let output = place.raddle(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(MISUSE), "{line}: {stderr}");
        assert!(stderr.contains(words), "{line}: {stderr}");
    }
}

#[test]
fn options_that_do_not_go_together() {
    let place = Place::new();
    check_sentence(&place.raddle("run --delay 0.1:5 -- ./program"), MISUSE, "add --policy free");
    check_sentence(&place.raddle("run --depth 2 -- ./program"), MISUSE, "add --policy pct");
    check_sentence(&place.raddle("run --policy follow -- ./program"), MISUSE, "raddle replay");
}

#[test]
fn a_trace_that_cannot_be_read() {
    let place = Place::new();
    check_sentence(&place.raddle("trace stats missing"), MISUSE, "missing");
    check_sentence(&place.raddle("trace stats /"), MISUSE, "not a regular file");
    place.file("foreign", "this is not a trace, but it is long enough to be one");
    check_sentence(&place.raddle("trace stats foreign"), MISUSE, "is not a raddle trace");
    place.file("empty", "");
    check_sentence(&place.raddle("trace show empty"), MISUSE, "trace");
}

/// Records a trace of the program.
fn recorded(place: &Place) -> Vec<u8> {
    compile(place, "gcc", &["-fsanitize=thread"]);
    let output = place.raddle("record -o trace -- ./program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(place.path("trace")).expect("a trace")
}

#[test]
fn a_truncated_trace_is_read_up_to_its_end() {
    let place = Place::new();
    let bytes = recorded(&place);
    for n in 0..bytes.len() {
        place.file("short", &bytes[..n]);
        let output = place.raddle("trace stats --json short");
        let stderr = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => assert!(stderr.contains("unfinished"), "{n}: {stderr}"),
            code => assert_eq!(code, Some(MISUSE), "{n}: {stderr}"),
        }
        assert!(!stderr.contains("panicked"), "{n}: {stderr}");
    }
}

#[test]
fn a_damaged_trace_is_told() {
    let place = Place::new();
    let bytes = recorded(&place);
    for at in (0..bytes.len()).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        place.file("damaged", &damaged);
        let output = place.raddle("trace show damaged");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | MISUSE)), "{at}: {stderr}");
        assert!(!stderr.contains("panicked"), "{at}: {stderr}");
    }
}

#[test]
fn a_trace_of_a_newer_version() {
    let place = Place::new();
    let mut bytes = recorded(&place);
    bytes[8] = 200;
    place.file("newer", &bytes);
    check_sentence(&place.raddle("trace stats newer"), MISUSE, "format version 200");
}

/// Needs a disk that is small, which a user may make only in a namespace; where that is
/// not allowed, nothing is tested.
#[test]
fn a_full_disk() {
    let place = Place::new();
    compile(&place, "gcc", &["-fsanitize=thread"]);
    fs::create_dir(place.path("small")).expect("room");
    let on_small_disk = |line: &str| {
        let script = format!(
            "mount -t tmpfs -o size=8k none small || exit 77
             head -c 8192 /dev/zero > small/full 2>/dev/null
             exec {} {line}",
            env!("CARGO_BIN_EXE_raddle")
        );
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
            .current_dir(place.directory.path())
            .output()
    };
    let Ok(output) = on_small_disk("record -o small/trace -- ./program") else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || stderr.contains("unshare") {
        return;
    }
    check_sentence(&output, MISUSE, "No space left on device");
    let output = on_small_disk("run --clip small/clip -- ./program").expect("as before");
    check_sentence(&output, MISUSE, "No space left on device");
}

#[test]
fn a_directory_that_is_not_there() {
    let place = Place::new();
    compile(&place, "gcc", &["-fsanitize=thread"]);
    check_sentence(&place.raddle("record -o no/where -- ./program"), MISUSE, "no/where");
    check_sentence(&place.raddle("run --clip no/where -- ./program"), MISUSE, "no/where");
    check_sentence(
        &place.raddle("run --stdin nothing -- ./program"),
        MISUSE,
        "cannot read nothing",
    );
}

#[test]
fn no_room_for_the_runtime_library() {
    let place = Place::new();
    compile(&place, "gcc", &["-fsanitize=thread"]);
    let output = place
        .command("run -- ./program")
        .env("XDG_CACHE_HOME", "/proc/none")
        .env("HOME", "/proc/none")
        .env("TMPDIR", "/proc/none")
        .output()
        .expect("raddle");
    check_sentence(&output, MISUSE, "cannot unpack the runtime library");
}

#[test]
fn a_failed_recording_leaves_an_older_trace_alone() {
    let place = Place::new();
    let before = recorded(&place);
    place.file("script", "#!/bin/sh\nexit 0\n");
    let script = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path("script"), script).expect("own");
    let output = place.raddle("record -o trace -- ./script");
    check_sentence(&output, UNJUDGED, "before its first instrumented function");
    assert_eq!(fs::read(place.path("trace")).expect("a trace"), before);
    assert!(!place.path("trace.unfinished").exists());
}

#[test]
fn a_clip_that_cannot_be_read() {
    let place = Place::new();
    check_sentence(&place.raddle("replay missing"), MISUSE, "missing");
    place.file("foreign", "{}");
    check_sentence(&place.raddle("replay foreign"), MISUSE, "foreign");
    place.file("empty", "");
    check_sentence(&place.raddle("replay empty"), MISUSE, "empty");
}

#[test]
fn a_program_that_was_replaced_since_its_clip() {
    let place = Place::new();
    compile(&place, "gcc", &["-fsanitize=thread"]);
    let output = place.raddle("run --clip clip -- ./program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    compile(&place, "gcc", &["-fsanitize=thread", "-O2"]);
    check_sentence(&place.raddle("replay clip"), MISUSE, "--any-build");
    fs::remove_file(place.path("program")).expect("own");
    check_sentence(&place.raddle("replay clip"), MISUSE, "there is no program");
}
