// What is wrong: `print_all` holds the registry for reading and calls `name_of`, which locks it
// for reading once more. The lock prefers writers: one that came in between makes the second
// reader wait behind it, and itself waits for the first.
// Hunt: fails
// Kind: deadlock
// Guilty: 3 lines
// Shows: deadlock

#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#define N_NAMES 4

struct registry {
    pthread_rwlock_t lock;
    int n_names;
    char names[N_NAMES][16];
};

static struct registry registry;

static const char *name_of(struct registry *registry, int index)
{
    pthread_rwlock_rdlock(&registry->lock); /* guilty */
    const char *name = index < registry->n_names ? registry->names[index] : NULL;
    pthread_rwlock_unlock(&registry->lock);
    return name;
}

static void *print_all(void *argument)
{
    int *n_printed = argument;

    pthread_rwlock_rdlock(&registry.lock); /* guilty */
    for (int i = 0; i < registry.n_names; i++)
        if (name_of(&registry, i) != NULL)
            ++*n_printed;
    pthread_rwlock_unlock(&registry.lock);
    return NULL;
}

static void *add(void *argument)
{
    pthread_rwlock_wrlock(&registry.lock); /* guilty */
    snprintf(registry.names[registry.n_names++], 16, "%s", (const char *)argument);
    pthread_rwlock_unlock(&registry.lock);
    return NULL;
}

int main(void)
{
    pthread_rwlockattr_t attributes;
    pthread_t printer, adder;
    int n_printed = 0;

    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&registry.lock, &attributes);
    add("warp");
    add("weft");

    pthread_create(&printer, NULL, print_all, &n_printed);
    pthread_create(&adder, NULL, add, "heddle");
    pthread_join(printer, NULL);
    pthread_join(adder, NULL);
    assert(n_printed == 2 || n_printed == 3);
    return 0;
}
