// What is wrong: after Apache's object cache (bug 21287): the reference count goes down
// atomically, and is then read again to see whether it is zero. Two threads that let go at
// once can both read zero, and both free the object; or one frees it before the other reads.
// Hunt: fails
// Kind: atomicity
// Guilty: 3 lines
// Shows: double-free, use-after-free, signal, assert

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct object {
    _Atomic int refcount;
    int size;
    char *data;
};

static _Atomic int n_cleanups;

static struct object *object_new(int size)
{
    struct object *object = malloc(sizeof *object);
    atomic_init(&object->refcount, 1);
    object->size = size;
    object->data = malloc(size);
    memset(object->data, 'x', size);
    return object;
}

static void cleanup(struct object *object)
{
    atomic_fetch_add(&n_cleanups, 1);
    free(object->data);
    free(object); /* guilty */
}

static void take(struct object *object)
{
    atomic_fetch_add(&object->refcount, 1);
}

static void let_go(struct object *object)
{
    atomic_fetch_sub(&object->refcount, 1); /* guilty */
    if (atomic_load(&object->refcount) == 0) /* guilty */
        cleanup(object);
}

static void *serve(void *argument)
{
    struct object *object = argument;
    int sum = 0;
    for (int i = 0; i < object->size; i++)
        sum += object->data[i];
    assert(sum == 'x' * object->size);
    let_go(object);
    return NULL;
}

int main(void)
{
    struct object *object = object_new(8);
    pthread_t threads[2];

    for (int i = 0; i < 2; i++) {
        take(object);
        pthread_create(&threads[i], NULL, serve, object);
    }
    let_go(object);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(atomic_load(&n_cleanups) == 1);
    return 0;
}
