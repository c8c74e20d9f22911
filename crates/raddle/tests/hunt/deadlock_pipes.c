// What is wrong: of two peers, whoever comes first serves: it waits for a question in its pipe. If
// both look before either has said that it is there, both serve, and nobody ever asks.
// Hunt: fails
// Kind: atomicity, order, deadlock
// Guilty: 2 lines
// Shows: deadlock

#include <assert.h>
#include <pthread.h>
#include <unistd.h>

struct peer {
    int in, out;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_present;

static int arrive(void)
{
    int is_first;

    pthread_mutex_lock(&lock);
    is_first = n_present == 0; /* guilty */
    pthread_mutex_unlock(&lock);
    pthread_mutex_lock(&lock);
    n_present++; /* guilty */
    pthread_mutex_unlock(&lock);
    return is_first;
}

static void put(int end, char byte)
{
    assert(write(end, &byte, 1) == 1);
}

static char take(int end)
{
    char byte;
    assert(read(end, &byte, 1) == 1);
    return byte;
}

static void *talk(void *argument)
{
    struct peer *peer = argument;

    if (arrive()) {
        assert(take(peer->in) == '?');
        put(peer->out, '!');
    } else {
        put(peer->out, '?');
        assert(take(peer->in) == '!');
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    struct peer peers[2];
    int there[2], back[2];

    assert(pipe(there) == 0 && pipe(back) == 0);
    peers[0] = (struct peer){ .in = there[0], .out = back[1] };
    peers[1] = (struct peer){ .in = back[0], .out = there[1] };
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, talk, &peers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
