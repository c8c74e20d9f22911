// What is wrong: after OpenJMS 0.7.7 (figure 6 of the PECAN paper): a request reads the
// connection's multiplexer, under the lock, and gives up if there is none. Nobody makes sure
// that the thread that creates the multiplexer has come so far.
// Hunt: fails
// Kind: order, race
// Guilty: 2 lines
// Shows: exit

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct multiplexer {
    int n_channels;
    int n_requests;
};

struct connection {
    pthread_mutex_t lock;
    struct multiplexer *multiplexer;
    int port;
    int handler;
};

static struct connection connection = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0};

static struct multiplexer *create_multiplexer(int n_channels)
{
    struct multiplexer *multiplexer = calloc(1, sizeof *multiplexer);
    multiplexer->n_channels = n_channels;
    return multiplexer;
}

static void *set_invocation_handler(void *argument)
{
    pthread_mutex_lock(&connection.lock);
    connection.port = 3030;
    connection.handler = 7;
    pthread_mutex_unlock(&connection.lock);

    struct multiplexer *fresh = create_multiplexer(4);

    pthread_mutex_lock(&connection.lock);
    connection.multiplexer = fresh; /* guilty */
    pthread_mutex_unlock(&connection.lock);
    return argument;
}

static void *invoke(void *argument)
{
    struct multiplexer *multiplexer;

    pthread_mutex_lock(&connection.lock);
    multiplexer = connection.multiplexer; /* guilty */
    pthread_mutex_unlock(&connection.lock);

    if (multiplexer == NULL) {
        fprintf(stderr, "ResourceException: connection not established\n");
        exit(2);
    }
    pthread_mutex_lock(&connection.lock);
    multiplexer->n_requests++;
    pthread_mutex_unlock(&connection.lock);
    return argument;
}

int main(void)
{
    pthread_t threads[3];

    pthread_create(&threads[0], NULL, set_invocation_handler, NULL);
    pthread_create(&threads[1], NULL, invoke, NULL);
    pthread_create(&threads[2], NULL, invoke, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    free(connection.multiplexer);
    return 0;
}
