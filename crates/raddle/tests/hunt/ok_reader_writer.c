// Nothing is wrong: readers and writers of a route table share a read-write lock. A reader that
// wants to write lets go first, and looks again once it has the lock for writing.
// Hunt: clean

#include <assert.h>
#include <pthread.h>

#define N_ROUTES 4

struct route {
    int destination;
    int gateway;
    int check;
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct route routes[N_ROUTES];
static int n_learned;

static int find(int destination)
{
    int gateway;

    pthread_rwlock_rdlock(&lock);
    const struct route *route = &routes[destination];
    assert(route->check == route->destination + route->gateway);
    gateway = route->gateway;
    pthread_rwlock_unlock(&lock);
    return gateway;
}

static int find_or_learn(int destination)
{
    int gateway = find(destination);
    if (gateway != 0)
        return gateway;

    pthread_rwlock_wrlock(&lock);
    struct route *route = &routes[destination];
    if (route->gateway == 0) {
        route->destination = destination;
        route->gateway = 10 + destination;
        route->check = route->destination + route->gateway;
        n_learned++;
    }
    gateway = route->gateway;
    pthread_rwlock_unlock(&lock);
    return gateway;
}

static void *router(void *argument)
{
    for (int i = 0; i < 2 * N_ROUTES; i++)
        assert(find_or_learn(i % N_ROUTES) == 10 + i % N_ROUTES);
    return argument;
}

int main(void)
{
    pthread_t routers[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&routers[i], NULL, router, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(routers[i], NULL);
    assert(n_learned == N_ROUTES);
    return 0;
}
