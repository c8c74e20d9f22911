// Nothing is wrong: clients retry a service that is not up yet, with sleeps that double and a
// little of each client's own, and give up only after minutes.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

enum { CLIENTS = 3, START_MS = 300, RETRIES = 18 };

static atomic_bool is_up;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static int answers[CLIENTS];
static int n_calls;

static bool ask(int client)
{
    if (!atomic_load(&is_up))
        return false;
    pthread_rwlock_wrlock(&table);
    answers[client] = 100 + client;
    n_calls++;
    pthread_rwlock_unlock(&table);
    return true;
}

static void *client(void *argument)
{
    int id = *(int *)argument;
    unsigned delay_ms = 1;

    for (int i = 0; i < RETRIES; i++) {
        if (ask(id))
            return argument;
        usleep((delay_ms + (unsigned)id) * 1000);
        delay_ms *= 2;
    }
    return NULL;
}

static void *service(void *argument)
{
    usleep(START_MS * 1000);
    atomic_store(&is_up, true);
    return argument;
}

int main(void)
{
    pthread_t server, clients[CLIENTS];
    int ids[CLIENTS];

    for (int i = 0; i < CLIENTS; i++) {
        ids[i] = i;
        pthread_create(&clients[i], NULL, client, &ids[i]);
    }
    pthread_create(&server, NULL, service, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        void *answered;
        pthread_join(clients[i], &answered);
        assert(answered == &ids[i]);
    }
    pthread_join(server, NULL);
    pthread_rwlock_rdlock(&table);
    assert(n_calls == CLIENTS && answers[1] == 101);
    pthread_rwlock_unlock(&table);
    return 0;
}
