//! A target that is killed loses nothing of what it had done.

use raddle_corpus::Place;

const N_ACCESSES: u64 = 100_000;

#[test]
fn writes_to_as_many_places_are_all_in_the_trace() {
    check("cells[i] = i;", N_ACCESSES);
}

#[test]
fn writes_to_one_place_are_all_in_the_trace() {
    check("cells[0] = i;", 1);
}

/// A program that does `access` and then kills itself has left each of its accesses behind,
/// to so many places.
fn check(access: &str, n_places: u64) {
    let place = Place::new();
    let source = format!(
        "
        #include <pthread.h>
        #include <signal.h>
        volatile int cells[{N_ACCESSES}];
        static void *work(void *p) {{
            for (int i = 0; i < {N_ACCESSES}; i++)
                {access}
            raise(SIGKILL);
            return p;
        }}
        int main(void) {{
            pthread_t thread;
            pthread_create(&thread, 0, work, 0);
            pthread_join(thread, 0);
            return 0;
        }}"
    );
    place.file("killed.c", source);
    place.raddle("record -o killed.trace killed.c").exits(128 + 9);
    let stats = place.raddle("trace stats --json killed.trace").exits(0).json();
    let number = |name: &str| stats[name].as_u64().expect("a number");
    // What starts and ends the threads comes on top, and `main` touches its own variable.
    assert!((N_ACCESSES..N_ACCESSES + 100).contains(&number("events")), "{stats}");
    assert!((n_places..n_places + 10).contains(&number("locations")), "{stats}");
}
