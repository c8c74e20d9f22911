//! The commands, as their users see them: what they print where, and how they exit.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use raddle_corpus::{Place, tool};
use raddle_trial::Order;

/// A program that does `body` in `main`; `other` may be the body of a second thread.
fn program(other: &str, body: &str) -> Place {
    let place = Place::new();
    let source = format!(
        "
        #define _GNU_SOURCE
        #include <assert.h>
        #include <pthread.h>
        #include <signal.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
        pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
        volatile int shared;
        static void *other(void *p) {{ {other} return p; }}
        int main(int argc, char **argv) {{
            (void)argc; (void)argv;
            pthread_t thread;
            pthread_create(&thread, 0, other, 0);
            {body}
            pthread_join(thread, 0);
            return 0;
        }}"
    );
    place.file("program.c", source);
    let flags = ["-g", "-O1", "-fsanitize=thread", "-pthread"];
    place.compile("gcc", &flags, "program.c", "program");
    place
}

/// A seed under which the program ends as wanted.
fn seed(place: &Place, code: i32) -> u64 {
    let ends =
        |seed: &u64| place.raddle(&format!("run --seed {seed} -- ./program")).code == Some(code);
    (0..200).find(ends).expect("one of many seeds")
}

#[test]
fn a_run_exits_as_the_program_does() {
    let place = program("", r#"puts("hello"); if (argc > 1) exit(atoi(argv[1]));"#);
    place.raddle("run -- ./program").exits(0).prints("hello\n").says_nothing();
    place.raddle("run ./program 7").exits(7).prints("hello\n").says("exited with status 7");
}

#[test]
fn an_unknown_option_is_not_a_program() {
    let place = Place::new();
    for command in ["hunt", "run", "localize", "isolate", "record -o trace", "replay", "doctor"] {
        let name = command.split(' ').next().expect("a name");
        place
            .raddle(&format!("{command} --html x ./program"))
            .exits(2)
            .says(&format!("raddle: unknown option --html; see raddle {name} --help"));
    }
    place.raddle("hunt -- -weird").exits(2).says("program -weird not found in PATH");
}

#[test]
fn a_signal_is_told_with_its_place() {
    let place = program("", "*(volatile int *)8 = 1;");
    place.raddle("run -- ./program").exits(128 + 11).says("SIGSEGV in main at program.c");
    let place = program("", "kill(getpid(), SIGKILL);");
    place.raddle("run -- ./program").exits(128 + 9).says("SIGKILL");
}

#[test]
fn a_failed_assertion_is_told() {
    let place = program("", "assert(argc == 2);");
    let ran = place.raddle("run --seed 3 -- ./program").exits(128 + 6);
    ran.says("assertion `argc == 2' failed in main at program.c:")
        .says("show it again: raddle run --policy random --seed 3 -- ./program");
}

const CROSSED: (&str, &str) = (
    "pthread_mutex_lock(&second); pthread_mutex_lock(&first);
     pthread_mutex_unlock(&first); pthread_mutex_unlock(&second);",
    "pthread_mutex_lock(&first); pthread_mutex_lock(&second);
     pthread_mutex_unlock(&second); pthread_mutex_unlock(&first);",
);

#[test]
fn a_deadlock_names_the_cycle() {
    let place = program(CROSSED.0, CROSSED.1);
    let seed = seed(&place, 1);
    let ran = place.raddle(&format!("run --seed {seed} -- ./program")).exits(1);
    ran.says("deadlock")
        .says("main waits for mutex second (program.c:")
        .says("held by main/1 since program.c:")
        .says("main/1 waits for mutex first");
}

#[test]
fn a_lost_wake_up_is_named() {
    let place = program(
        "pthread_cond_signal(&changed);",
        "pthread_mutex_lock(&first); pthread_cond_wait(&changed, &first);",
    );
    let seed = seed(&place, 1);
    let ran = place.raddle(&format!("run --seed {seed} -- ./program")).exits(1);
    ran.says("lost wake-up")
        .says("main waits on condition variable changed")
        .says("a wake-up was sent at program.c:");
}

#[test]
fn a_run_that_takes_too_long_is_not_judged_and_says_where_it_was() {
    let place = program("", "for (;;) shared++;");
    let start = Instant::now();
    let ran = place.raddle("run --timeout 1 --max-steps 0 -- ./program").exits(125);
    assert!(start.elapsed() < Duration::from_secs(20));
    ran.says("not judged: the program did not end within 1 second (--timeout")
        .says("main is running (program.c:");
}

#[test]
fn a_thread_that_runs_free_is_held_by_nobody() {
    let place =
        program("for (;;) shared++;", "pthread_create(&thread, 0, other, 0); for (;;) shared++;");
    let ran = place.raddle("run --policy free --timeout 1 -- ./program").exits(125);
    let ran = ran.says("main is running").says("main/1 is running").says("main/2 is running");
    assert!(!ran.stderr.contains("held by"), "{ran:?}");
}

#[test]
fn a_misuse_is_told() {
    let place = program("", "pthread_mutex_unlock(&first);");
    let ran = place.raddle("run -- ./program").exits(1);
    ran.says("misuse: main unlocks a mutex that no thread holds (program.c:").says("it is first");
    let place = program("", "pthread_cond_wait(&changed, &first);");
    let ran = place.raddle("run -- ./program").exits(1);
    ran.says("main waits on a condition variable with a mutex that no thread holds (program.c:");
}

#[test]
fn a_run_without_end_is_told_by_its_steps() {
    let place = program("", "for (;;) shared++;");
    let ran = place.raddle("run --max-steps 100000 -- ./program").exits(1);
    // Half of them again by each of two fair quanta.
    ran.says("hang: after 2").says("(--max-steps allows more)");
}

#[test]
fn a_livelock_is_told_by_what_it_spins_on() {
    let place = program("", "while (__atomic_load_n(&shared, __ATOMIC_RELAXED) < 9);");
    let ran = place.raddle("run --max-idle 100000 -- ./program").exits(1);
    ran.says("livelock: after ")
        .says("main is running (program.c:")
        .says("(--max-idle allows more)");
}

#[test]
fn expectations_make_the_verdict() {
    let place = program("", r#"puts("one"); exit(3);"#);
    place.file("one", "one\n");
    place.file("two", "two\n");
    place.raddle("run --expect-exit 3 -- ./program").exits(0).prints("one\n").says_nothing();
    place.raddle("run --expect-exit 4 -- ./program").exits(1).says("exit 3, expected 4");
    place.raddle("run --expect-exit 3 --expect-stdout one -- ./program").exits(0);
    place
        .raddle("run --expect-exit 3 --expect-stdout two -- ./program")
        .exits(1)
        .says("line 1 of the output is «one», expected «two»");
    place.raddle("run --oracle true -- ./program").exits(0);
    place
        .raddle("run --oracle false -- ./program")
        .exits(1)
        .says("oracle `false` rejected the run");
}

#[test]
fn input_and_environment_reach_the_program() {
    let place =
        program("", r#"char line[9]; puts(fgets(line, 9, stdin)); puts(getenv("GREETING"));"#);
    place.file("input", "typed");
    place.raddle("run --stdin input --env GREETING=hi -- ./program").exits(0).prints("typed\nhi\n");
}

#[test]
fn the_program_finds_no_signal_blocked() {
    // As the kernel says, since the runtime answers for sigprocmask.
    let place = program(
        "",
        r#"char line[99]; FILE *status = fopen("/proc/self/status", "r");
           while (fgets(line, 99, status)) if (!strncmp(line, "SigBlk", 6)) fputs(line, stdout);"#,
    );
    let line = "SigBlk:\t0000000000000000\n";
    place.raddle("run -- ./program").exits(0).prints(line);
    place.raddle("run --policy free -- ./program").exits(0).prints(line);
}

#[test]
fn two_runs_of_a_seed_do_the_same() {
    let place = program("shared++;", "shared++; free(malloc(10));");
    for policy in Order::controlled() {
        let policy = policy.name();
        place
            .raddle(&format!("run --verify --policy {policy} --seed 5 -- ./program"))
            .exits(0)
            .says("both runs did the same");
    }
    place.raddle("run --verify --policy free -- ./program").exits(2).says("--policy free");
}

#[test]
fn a_difference_between_two_runs_is_located() {
    // The second run finds the file that the first one left.
    let place = program("", r#"if (access("left", F_OK)) fopen("left", "w"); else shared++;"#);
    let ran = place.raddle("run --verify -- ./program").exits(125);
    ran.says("differ at event").says("program.c:");
}

#[test]
fn a_recorded_run_can_be_looked_at() {
    let place = program("shared = 1;", "shared = 2;");
    place.raddle("record -o trace -- ./program").exits(0).prints("").says("events in");
    let stats = place.raddle("trace stats --json trace").exits(0).json();
    assert_eq!(stats["schema"], "raddle/stats/1");
    assert_eq!(stats["threads"], 2);
    assert_eq!(stats["complete"], true);
    assert!(stats["events"].as_u64() > Some(5));
    let shown = place.raddle("trace show trace").exits(0).stdout;
    assert!(shown.contains("writes 4 bytes of shared"), "{shown}");
    let other = place.raddle("trace show --thread main/1 trace").exits(0).stdout;
    assert!(other.lines().all(|line| line.contains("main/1")), "{other}");
    let three = place.raddle("trace show --from 2 --count 3 trace").exits(0).stdout;
    assert_eq!(three.lines().count(), 3);
    place.raddle("trace show --thread nobody trace").exits(2).says("main, main/1");
    let text = place.raddle("trace export --format std trace").exits(0).stdout;
    assert!(text.contains("|fork("), "{text}");
    place.file("text", &text);
    place.raddle("trace import -o back text").exits(0);
    let back = place.raddle("trace stats --json back").exits(0).json();
    assert_eq!(back["events"], text.lines().count());
    for name in ["threads", "locations", "locks", "complete"] {
        assert_eq!(back[name], stats[name], "{name}: {back} {stats}");
    }
    place.raddle("trace export --format std back").exits(0).prints(&text);
}

#[test]
fn a_killed_run_is_recorded_to_its_last_event() {
    let place = program("", "for (int i = 0; i < 50000; i++) shared++; kill(getpid(), SIGKILL);");
    place.raddle("record -o trace -- ./program").exits(128 + 9);
    let stats = place.raddle("trace stats --json trace").exits(0).json();
    assert!(stats["events"].as_u64() >= Some(100_000), "{stats}");
}

#[test]
fn a_free_run_is_recorded_too() {
    let place = program("shared = 1;", "shared = 2;");
    place.raddle("record --policy free --delay 0.5:10 -o trace -- ./program").exits(0);
    let stats = place.raddle("trace stats --json trace").exits(0).json();
    assert_eq!(stats["threads"], 2);
}

#[test]
fn a_clip_replays() {
    let place = program(CROSSED.0, CROSSED.1);
    let seed = seed(&place, 1);
    place
        .raddle(&format!("run --seed {seed} --clip clip -- ./program"))
        .exits(1)
        .says("deadlock")
        .says("show it again: raddle replay clip");
    place.raddle("replay clip").exits(0).says("deadlock");
    let replay = place.raddle("replay --times 20 --json clip").exits(0).json();
    assert_eq!(replay["schema"], "raddle/replay/1");
    assert_eq!((&replay["times"], &replay["reproduced"]), (&20.into(), &20.into()));
    assert_eq!(replay["diverged"], 0);
}

#[test]
fn a_clip_brings_its_input() {
    let place = program("", "char line[9]; puts(fgets(line, 9, stdin));");
    place.file("input", "typed");
    place.raddle("run --stdin input --clip clip -- ./program").exits(0).prints("typed\n");
    fs::remove_file(place.path("input")).expect("own");
    place.raddle("replay clip").exits(0).prints("typed\n");
}

#[test]
fn a_replay_that_departs_says_where() {
    // What the program does depends on a file that changes in between.
    let place = program(
        "",
        r#"if (access("changed", F_OK) == 0) { pthread_mutex_lock(&second); shared++; }
           pthread_mutex_lock(&first); pthread_mutex_unlock(&first);"#,
    );
    place.raddle("run --seed 1 --clip clip -- ./program").exits(0);
    place.file("changed", "");
    let ran = place.raddle("replay clip").exits(125);
    ran.says("departed from its schedule").says("program.c:");
}

#[test]
fn another_outcome_is_not_a_reproduction() {
    let place = program("", r#"if (access("changed", F_OK) == 0) exit(9);"#);
    place.raddle("run --policy rr --clip clip -- ./program").exits(0);
    place.file("changed", "");
    place.raddle("replay clip").exits(1).says("not as clip says: exit 0");
}

#[test]
fn a_source_file_is_compiled_once() {
    let place = program("", r#"puts("compiled");"#);
    place.raddle("run -- program.c").exits(0).prints("compiled\n").says_nothing();
    place.raddle("run program.c").exits(0).prints("compiled\n").says_nothing();
    place.raddle("run --clip clip -- program.c").exits(0);
    place.raddle("replay clip").exits(0).prints("compiled\n");
}

/// A program that a compiler builds by `raddle cc`.
fn check_compiler(compiler: &str) {
    let place = program("", r#"puts("built");"#);
    let mut command = place.command("cc -pthread -o built program.c");
    let status = command.env("RADDLE_CC", compiler).status().expect("raddle");
    assert!(status.success());
    place.raddle("doctor ./built").exits(0);
    place.raddle("run -- ./built").exits(0).prints("built\n");
}

#[test]
fn raddle_cc_makes_a_fit_program() {
    check_compiler("gcc");
}

#[test]
fn raddle_cc_makes_a_fit_program_by_clang() {
    if tool("clang") {
        check_compiler("clang");
    }
}

#[test]
fn a_target_does_not_outlive_raddle() {
    let place = program("", r#"printf("%d\n", getpid()); fflush(stdout); for (;;) shared++;"#);
    let mut raddle = place.command("run --max-steps 0 -- ./program");
    let mut raddle = raddle.stdout(Stdio::piped()).spawn().expect("raddle");
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(raddle.stdout.take().expect("piped"));
    std::io::BufRead::read_line(&mut stdout, &mut line).expect("a line");
    raddle.kill().expect("own");
    raddle.wait().expect("own");
    let state = || fs::read_to_string(format!("/proc/{}/stat", line.trim()));
    let is_gone = || state().map_or(true, |stat| stat.contains(") Z "));
    let start = Instant::now();
    while !is_gone() {
        assert!(start.elapsed() < Duration::from_secs(10), "the target lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_stopped_raddle_stops_its_target() {
    let place = program("", "for (;;) shared++;");
    for (signal, code) in [("INT", 128 + 2), ("TERM", 128 + 15)] {
        let mut raddle = place.command("run --max-steps 0 -- ./program").spawn().expect("raddle");
        std::thread::sleep(Duration::from_millis(300));
        let kill = format!("kill -{signal} {}", raddle.id());
        Command::new("sh").args(["-c", &kill]).status().expect("a shell");
        assert_eq!(raddle.wait().expect("own").code(), Some(code));
    }
}

#[test]
fn addresses_do_not_depend_on_the_environment() {
    let place = program("", r#"printf("%p %p %p\n", (void *)&thread, (void *)argv, malloc(9));"#);
    let plain = place.raddle("run -- ./program").exits(0).stdout;
    let long = format!("run --env LONG={} -- ./program and more", "x".repeat(5000));
    place.raddle(&long).exits(0).prints(&plain);
    place.raddle("run --verify -- ./program").exits(0).prints(&plain);
}

/// A child that sleeps goes on by the clock, so whoever sleeps beside it races with it.
#[test]
fn a_child_process_that_is_not_controlled_is_named() {
    let body = r#"
        FILE *child = popen("sleep 0.05; echo late", "r");
        char line[16];
        assert(fgets(line, sizeof line, child));
        pclose(child);
        shared = 1;"#;
    let place = program("while (!shared) usleep(700);", body);
    let name = "a child process, started by popen at program.c:19 in main";
    place
        .raddle("run --seed 1 -- ./program")
        .exits(0)
        .says(&format!("note: this run depended on input from outside: {name}"));
    // How often the other thread sleeps is up to the machine.
    let differs = |_: &u32| {
        let ran = place.raddle("run --seed 1 --verify -- ./program");
        ran.code == Some(125) && ran.stderr.contains(&format!("not controlled: {name}"))
    };
    assert!((0..5).any(|n| differs(&n)), "five pairs of runs are the same, or nothing is named");
}

/// Nobody sleeps beside it: how long it takes does not matter, and there is nothing to tell.
#[test]
fn a_child_process_that_is_waited_for_alone_is_controlled() {
    let body = r#"assert(system("sleep 0.05; exit 3") == 3 << 8); shared = 1;"#;
    let place = program("pthread_mutex_lock(&first); pthread_mutex_unlock(&first);", body);
    place.raddle("run --seed 1 -- ./program").exits(0).says_nothing();
    place.raddle("run --seed 1 --verify -- ./program").exits(0).says("both runs did the same");
}
