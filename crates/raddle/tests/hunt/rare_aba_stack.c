// What is wrong: a stack of free buffers without locks suffers from ABA: a thread reads the top
// and its successor; another pops both and pushes the first one back; the swap of the first
// thread succeeds, and puts a buffer on top that is in use: the successor that it has read was
// changed by the push.
// Hunt: fails
// Kind: atomicity, multi-variable
// Guilty: 5 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define N_BUFFERS 4

struct buffer {
    struct buffer *_Atomic next;
    _Atomic int n_users;
    int filling;
};

static struct buffer buffers[N_BUFFERS];
static struct buffer *_Atomic top;

static struct buffer *pop(void)
{
    struct buffer *old = atomic_load(&top); /* guilty */
    while (old != NULL) {
        struct buffer *next = atomic_load(&old->next); /* guilty */
        if (atomic_compare_exchange_strong(&top, &old, next)) /* guilty */
            break;
    }
    return old;
}

static void push(struct buffer *buffer)
{
    struct buffer *old = atomic_load(&top);
    do
        atomic_store(&buffer->next, old); /* guilty */
    while (!atomic_compare_exchange_strong(&top, &old, buffer)); /* guilty */
}

static void use(struct buffer *buffer)
{
    int users = atomic_fetch_add(&buffer->n_users, 1);
    assert(users == 0);
    buffer->filling++;
    atomic_fetch_sub(&buffer->n_users, 1);
}

static void *copy(void *argument)
{
    for (int i = 0; i < 2; i++) {
        struct buffer *from = pop();
        struct buffer *to = pop();
        assert(from != NULL && to != NULL && from != to);
        int users = atomic_fetch_add(&to->n_users, 1);
        assert(users == 0);
        push(from);
        to->filling++;
        atomic_fetch_sub(&to->n_users, 1);
        push(to);
    }
    return argument;
}

static void *fill(void *argument)
{
    for (int i = 0; i < 2; i++) {
        struct buffer *buffer = pop();
        assert(buffer != NULL);
        use(buffer);
        push(buffer);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    for (int i = 0; i < N_BUFFERS; i++)
        push(&buffers[i]);
    pthread_create(&threads[0], NULL, copy, NULL);
    pthread_create(&threads[1], NULL, fill, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    int n_free = 0;
    for (struct buffer *buffer = top; buffer != NULL && n_free <= N_BUFFERS; buffer = buffer->next)
        n_free++;
    assert(n_free == N_BUFFERS);
    return 0;
}
