// Loops that tell their iterations: `note` says them of the access that follows.
#include <stdio.h>
#include <stdlib.h>

extern void note(int first, int second, int third);

int shared, other, table[16];

#define NONE (-1)

// Numbers that no optimizer knows, so that it leaves loops as they are.
volatile int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

static __attribute__((noinline)) void simple(int n) {
    for (int i = 0; i < n; i++) {
        note(i, NONE, NONE);
        shared = i;
    }
}

static __attribute__((noinline)) void nested(int n, int m) {
    for (int i = 0; i < n; i++) {
        note(i, NONE, NONE);
        shared += i;
        for (int j = 0; j <= i; j++) {
            note(j, i, NONE);
            table[j]++;
            for (int k = 0; k < m; k++) {
                note(k, j, i);
                other += k;
            }
        }
    }
}

static __attribute__((noinline)) void branches(int n) {
    for (int i = 0; i < n; i++) {
        note(i, NONE, NONE);
        if (i % 3 == 0)
            shared = i;
        else
            other = i;
    }
}

static __attribute__((noinline)) void skips(int n) {
    for (int i = 0; i < n; i++) {
        note(i, NONE, NONE);
        shared++;
        if (i % 2)
            continue;
        note(i, NONE, NONE);
        other++;
    }
}

// Iterations without an access: nobody can tell.
static __attribute__((noinline)) void seldom(int n) {
    for (int i = 0; i < n; i++) {
        if (i % 2) {
            note(i, NONE, NONE);
            shared = i;
        } else {
            note(NONE, NONE, NONE);
        }
    }
}

static __attribute__((noinline)) void condition(int n) {
    int i = 0;
    other = n;
    do {
        note(i++, NONE, NONE);
    } while (--other > 0);
}

static __attribute__((noinline)) void die(int why) {
    printf("note -1 -1 -1\n%d\n", why);
    exit(1);
}

// What follows `die` in the file does not follow it in time.
static __attribute__((noinline)) void checks(int n) {
    for (int i = 0; i < n; i++) {
        note(i, NONE, NONE);
        if (shared++ < 0)
            die(1);
        for (int j = 0; j < n; j++) {
            note(j, i, NONE);
            if (other++ < 0)
                die(2);
        }
        note(i, NONE, NONE);
        if (table[i]++ < 0)
            die(3);
    }
}

static __attribute__((noinline)) void switches(int n) {
    for (int i = 0; i < n; i++) {
        note(i, NONE, NONE);
        switch (table[i] & 7) {
        case 0: note(i, NONE, NONE); shared = 7; break;
        case 1: note(i, NONE, NONE); other += i; break;
        case 2: note(i, NONE, NONE); shared -= i; break;
        case 3: note(i, NONE, NONE); table[3] += i; break;
        case 4: note(i, NONE, NONE); table[i] = shared; break;
        case 5: note(i, NONE, NONE); other = shared; break;
        default: break;
        }
    }
}

static __attribute__((noinline)) void recursive(int n) {
    for (int i = 0; i < n; i++) {
        note(i, NONE, NONE);
        shared++;
        recursive(n - 2);
        note(i, NONE, NONE);
        other++;
    }
}

int main(void) {
    simple(numbers[5]);
    nested(numbers[4], numbers[2]);
    branches(numbers[7]);
    skips(numbers[5]);
    condition(numbers[4]);
    checks(numbers[4]);
    switches(numbers[8]);
    recursive(numbers[5]);
    seldom(numbers[6]);
    simple(numbers[2]);
    return 0;
}
