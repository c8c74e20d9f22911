// Variables and functions of C, for the lookups of tests/c.rs. A comment that begins with
// "line:" names its line.
#include <pthread.h>
#include <stdlib.h>

struct limits {
    int max;
    int min;
};

struct config {
    long version;
    struct limits limits;
    char name[16];
};

struct node {
    struct node *next;
    int value;
};

typedef struct node node_t;

struct queue {
    pthread_mutex_t m;
    pthread_cond_t ready;
    unsigned long len;
    node_t *head;
    union {
        int number;
        float fraction;
        struct {
            short low;
            short high;
        } halves;
    } as;
    struct {
        char tag;
        int count;
    };
    unsigned open : 1;
    unsigned closed : 3;
    unsigned kind : 12;
};

// So that link-time optimization keeps them.
#define KEPT __attribute__((used))

KEPT struct config config; // line: config
KEPT node_t table[8];
KEPT volatile struct queue queue;
KEPT static int grid[3][4];
static const struct node *const first = &table[0];
extern struct config elsewhere;
extern int opaque;
__thread int per_thread;

static __attribute__((noinline)) int count_calls(void) {
    static int calls;
    {
        static struct limits seen;
        seen.max += calls;
        calls++; // line: calls++
        return seen.max + calls;
    }
}

static inline __attribute__((always_inline)) void push(int value) {
    queue.len += value; // line: push
}

static inline __attribute__((always_inline)) void push_twice(int value) {
    push(value); // line: push_twice
    push(value + 1);
}

__attribute__((noinline)) void fill(int n) {
    push_twice(n); // line: fill
}

__attribute__((noinline)) void give_up(void) {
    abort(); // line: give_up
}

__attribute__((noinline)) void after_give_up(void) {
    queue.head = &table[1];
}

int main(int argc, char **argv) {
    (void)argv;
    fill(argc);
    after_give_up();
    queue.kind = 7;
    queue.closed = 2;
    queue.open = 1;
    queue.as.halves.high = 1;
    queue.count = count_calls();
    grid[argc][1] = first->value + elsewhere.limits.min + opaque + per_thread;
    if (argc > 3)
        give_up();
    return config.limits.max + grid[1][argc];
}
