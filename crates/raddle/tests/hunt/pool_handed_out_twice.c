// What is wrong: the connection pool looks for an idle connection under the lock, and marks it
// as taken under the lock, but not under the same holding of it. Two threads can be handed
// the same connection (R-W-W), and their requests mix.
// Hunt: fails
// Kind: atomicity
// Guilty: 2 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>

#define N_CONNECTIONS 4
#define N_CLIENTS 3

struct connection {
    int taken;
    _Atomic int user;
    int n_requests;
};

struct pool {
    pthread_mutex_t lock;
    struct connection connections[N_CONNECTIONS];
    int n_checks;
};

static struct pool pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct connection *find_idle(struct pool *pool)
{
    struct connection *found = NULL;

    pthread_mutex_lock(&pool->lock);
    pool->n_checks++;
    for (int i = 0; i < N_CONNECTIONS && found == NULL; i++)
        if (!pool->connections[i].taken) /* guilty */
            found = &pool->connections[i];
    pthread_mutex_unlock(&pool->lock);
    return found;
}

static void mark(struct pool *pool, struct connection *connection, int taken)
{
    pthread_mutex_lock(&pool->lock);
    connection->taken = taken; /* guilty */
    pthread_mutex_unlock(&pool->lock);
}

static struct connection *get(struct pool *pool)
{
    struct connection *connection = find_idle(pool);
    mark(pool, connection, 1);
    return connection;
}

static void *client(void *argument)
{
    int user = *(const int *)argument;
    struct connection *connection = get(&pool);

    connection->user = user;
    connection->n_requests++;
    assert(connection->user == user);
    connection->user = 0;
    mark(&pool, connection, 0);
    return NULL;
}

int main(void)
{
    static const int users[N_CLIENTS] = {1, 2, 3};
    pthread_t clients[N_CLIENTS];
    int n_requests = 0;

    for (int i = 0; i < N_CLIENTS; i++)
        pthread_create(&clients[i], NULL, client, (void *)&users[i]);
    for (int i = 0; i < N_CLIENTS; i++)
        pthread_join(clients[i], NULL);
    for (int i = 0; i < N_CONNECTIONS; i++)
        n_requests += pool.connections[i].n_requests;
    assert(n_requests == N_CLIENTS);
    return 0;
}
