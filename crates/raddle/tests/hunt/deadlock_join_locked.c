// What is wrong: `service_stop` holds the service's lock while it joins the worker, so that
// nobody starts another one meanwhile. If the worker has not yet reported its last result,
// it needs that same lock, and both wait for each other.
// Hunt: fails
// Kind: deadlock
// Guilty: 3 lines
// Shows: deadlock

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

struct service {
    pthread_mutex_t lock;
    pthread_t worker;
    int running;
    int n_results;
    _Atomic int stop;
};

static struct service service = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void report(struct service *service)
{
    pthread_mutex_lock(&service->lock); /* guilty */
    service->n_results++;
    pthread_mutex_unlock(&service->lock);
}

static void *work(void *argument)
{
    struct service *service = argument;
    for (int i = 0; i < 3 && !atomic_load(&service->stop); i++)
        report(service);
    return NULL;
}

static void *user(void *argument)
{
    struct service *service = argument;
    int n_seen = 0;

    for (int i = 0; i < 4; i++) {
        pthread_mutex_lock(&service->lock);
        n_seen += service->n_results;
        pthread_mutex_unlock(&service->lock);
    }
    assert(n_seen <= 12);
    return NULL;
}

static void service_start(struct service *service)
{
    pthread_mutex_lock(&service->lock);
    if (!service->running) {
        pthread_create(&service->worker, NULL, work, service);
        service->running = 1;
    }
    pthread_mutex_unlock(&service->lock);
}

static void service_stop(struct service *service)
{
    pthread_mutex_lock(&service->lock); /* guilty */
    atomic_store(&service->stop, 1);
    if (service->running) {
        pthread_join(service->worker, NULL); /* guilty */
        service->running = 0;
    }
    pthread_mutex_unlock(&service->lock);
}

int main(void)
{
    pthread_t thread;

    service_start(&service);
    pthread_create(&thread, NULL, user, &service);
    pthread_join(thread, NULL);
    service_stop(&service);
    assert(service.n_results <= 3);
    return 0;
}
