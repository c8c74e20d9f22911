/*
 * Component: game networking library with a global library lock and one lock
 * per socket. Main opens one socket per client; the clients send packets and
 * close their socket; main shuts the library down and closes whatever is still
 * open.
 *
 * Bug (deadlock, lock order inversion, cf. HawkNL 1.6b3 nlClose/nlShutdown):
 * nl_close() locks the socket and then the library (to give the slot back),
 * nl_shutdown() locks the library and then every open socket. If a client is
 * between its two acquisitions when the shutdown has taken the library lock
 * and wants that client's socket, both wait for ever.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define SOCKETS 4
#define CLIENTS 3
#define PACKETS 3

struct nl_socket {
    pthread_mutex_t lock;
    int connected;
    long sent;
};

static pthread_mutex_t lib_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nl_socket sockets[SOCKETS];
static int in_use[SOCKETS];
static int open_count;
static int lib_running = 1;
static atomic_long packets;
static atomic_int closed_by_client;
static int closed_by_shutdown;

static int nl_open(void)
{
    int s = -1;

    pthread_mutex_lock(&lib_lock);
    for (int i = 0; lib_running && i < SOCKETS && s < 0; i++) {
        if (!in_use[i])
            s = i;
    }
    if (s >= 0) {
        in_use[s] = 1;
        open_count++;
    }
    pthread_mutex_unlock(&lib_lock);
    if (s < 0)
        return -1;

    pthread_mutex_lock(&sockets[s].lock);
    sockets[s].connected = 1;
    pthread_mutex_unlock(&sockets[s].lock);
    return s;
}

static int nl_write(int s, int bytes)
{
    int ok;

    pthread_mutex_lock(&sockets[s].lock);
    ok = sockets[s].connected;
    if (ok)
        sockets[s].sent += bytes;
    pthread_mutex_unlock(&sockets[s].lock);
    return ok;
}

static void nl_close(int s)
{
    struct nl_socket *sock = &sockets[s];

    pthread_mutex_lock(&sock->lock); /* guilty */
    if (sock->connected) {
        sock->connected = 0;
        pthread_mutex_lock(&lib_lock); /* guilty */
        in_use[s] = 0;
        open_count--;
        pthread_mutex_unlock(&lib_lock);
        atomic_fetch_add(&closed_by_client, 1);
    }
    pthread_mutex_unlock(&sock->lock);
}

static void nl_shutdown(void)
{
    pthread_mutex_lock(&lib_lock); /* guilty */
    lib_running = 0;
    for (int i = 0; i < SOCKETS; i++) {
        if (!in_use[i])
            continue;
        pthread_mutex_lock(&sockets[i].lock); /* guilty */
        sockets[i].connected = 0;
        in_use[i] = 0;
        open_count--;
        closed_by_shutdown++;
        pthread_mutex_unlock(&sockets[i].lock);
    }
    pthread_mutex_unlock(&lib_lock);
}

static void *client_main(void *arg)
{
    int s = (int)(size_t)arg;

    for (int i = 0; i < PACKETS; i++) {
        if (!nl_write(s, 32 * (s + 1)))
            break;
        atomic_fetch_add(&packets, 1);
    }
    nl_close(s);
    return NULL;
}

int main(void)
{
    pthread_t tid[CLIENTS];
    int sock[CLIENTS];

    for (int i = 0; i < SOCKETS; i++)
        pthread_mutex_init(&sockets[i].lock, NULL);
    for (int i = 0; i < CLIENTS; i++)
        sock[i] = nl_open();
    for (int i = 0; i < CLIENTS; i++)
        pthread_create(&tid[i], NULL, client_main, (void *)(size_t)sock[i]);
    nl_shutdown();
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(tid[i], NULL);
    assert(open_count == 0);
    assert(atomic_load(&closed_by_client) + closed_by_shutdown == CLIENTS);
    printf("%ld packets\n", atomic_load(&packets));
    return 0;
}
