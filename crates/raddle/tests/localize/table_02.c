// What is wrong: row 2 of Table 1 of the LOCON paper, an order violation: a client reads the
// port before it has been configured, goes on with it, and it is noticed at the end only. An
// unexpected value is read due to the late write.
// Localize: I
// Pattern: R1-W2
// Pairs: 1

#include <assert.h>
#include <pthread.h>

static int port;
static int n_clients;
static int n_options;

static void *configure(void *argument)
{
    n_options++;
    port = 8080; /* tail */ /* falcon */
    return argument;
}

static void *client(void *argument)
{
    (void)argument;
    n_clients++;
    long connected_to = port; /* head */ /* falcon */
    return (void *)connected_to;
}

int main(void)
{
    pthread_t threads[2];
    void *connected_to;

    pthread_create(&threads[0], NULL, configure, NULL);
    pthread_create(&threads[1], NULL, client, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], &connected_to);
    assert((long)connected_to == 8080);
    return 0;
}
