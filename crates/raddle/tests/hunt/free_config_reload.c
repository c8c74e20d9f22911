// What is wrong: reloading the configuration takes the old pointer, stores the new one, and
// frees the old one. Two reloads at once both take the same old one (R-W-W): it is freed twice,
// and one of the new ones is lost.
// Hunt: fails
// Kind: race, atomicity
// Guilty: 3 lines
// Shows: double-free, signal

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct config {
    int version;
    int limits[4];
};

static struct config *current;
static _Atomic int next_version = 1;
static _Atomic int n_live;

static struct config *config_load(void)
{
    struct config *config = malloc(sizeof *config);
    config->version = atomic_fetch_add(&next_version, 1);
    for (int i = 0; i < 4; i++)
        config->limits[i] = 10 * i;
    atomic_fetch_add(&n_live, 1);
    return config;
}

static void config_free(struct config *config)
{
    atomic_fetch_sub(&n_live, 1);
    free(config); /* guilty */
}

static void reload(void)
{
    struct config *fresh = config_load();
    struct config *old = current; /* guilty */
    current = fresh; /* guilty */
    config_free(old);
}

static void *admin(void *argument)
{
    reload();
    reload();
    return argument;
}

int main(void)
{
    pthread_t admins[2];

    current = config_load();
    for (int i = 0; i < 2; i++)
        pthread_create(&admins[i], NULL, admin, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(admins[i], NULL);
    assert(current->limits[3] == 30);
    config_free(current);
    assert(atomic_load(&next_version) == 6);
    return 0;
}
