// What is wrong: the configuration is made on first use, checked twice, but the pointer is
// published before what it points to is filled in. A thread that passes the first check at
// that moment uses a configuration that is not there yet.
// Hunt: fails
// Kind: order, race, multi-variable
// Guilty: 4 lines
// Shows: signal

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define N_OPTIONS 3

struct option {
    const char *name;
    int value;
};

struct config {
    int n_options;
    int divisor;
    struct option options[N_OPTIONS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct config *config;

static struct config *get_config(void)
{
    if (config == NULL) { /* guilty */
        pthread_mutex_lock(&lock);
        if (config == NULL) {
            config = calloc(1, sizeof *config); /* guilty */
            for (int i = 0; i < N_OPTIONS; i++) {
                config->options[i].name = "option";
                config->options[i].value = 12 * i;
                config->n_options++;
            }
            config->divisor = 4; /* guilty */
        }
        pthread_mutex_unlock(&lock);
    }
    return config;
}

static void *use(void *argument)
{
    int *result = argument;
    struct config *config = get_config();
    *result = 60 / config->divisor; /* guilty */
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    int results[3] = {0, 0, 0};

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, use, &results[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d %d\n", results[0], results[1], results[2]);
    free(config);
    return results[0] == 15 && results[1] == 15 && results[2] == 15 ? 0 : 1;
}
