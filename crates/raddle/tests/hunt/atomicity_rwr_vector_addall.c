// What is wrong: `vector_add_all`, after Java's Vector (figure 1 of the PENELOPE paper), asks
// the other vector for its size and then copies so many elements out of it. Each step holds
// the other's lock, but not both together: the other may be cleared in between (R-W-R).
// Hunt: fails
// Kind: atomicity
// Guilty: 3 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct vector {
    pthread_mutex_t lock;
    int *elements;
    int n_elements;
    int capacity;
    int n_changes;
};

static void vector_init(struct vector *vector)
{
    pthread_mutex_init(&vector->lock, NULL);
    vector->capacity = 4;
    vector->elements = calloc(vector->capacity, sizeof *vector->elements);
    vector->n_elements = 0;
    vector->n_changes = 0;
}

static void ensure_capacity(struct vector *vector, int wanted)
{
    if (wanted <= vector->capacity)
        return;
    vector->capacity = wanted * 2;
    vector->elements = realloc(vector->elements, vector->capacity * sizeof *vector->elements);
}

static void vector_add(struct vector *vector, int element)
{
    pthread_mutex_lock(&vector->lock);
    vector->n_changes++;
    ensure_capacity(vector, vector->n_elements + 1);
    vector->elements[vector->n_elements++] = element;
    pthread_mutex_unlock(&vector->lock);
}

static int vector_size(struct vector *vector)
{
    pthread_mutex_lock(&vector->lock);
    int n = vector->n_elements; /* guilty */
    pthread_mutex_unlock(&vector->lock);
    return n;
}

static int vector_get(struct vector *vector, int index)
{
    pthread_mutex_lock(&vector->lock);
    assert(index < vector->n_elements); /* guilty */
    int element = vector->elements[index];
    pthread_mutex_unlock(&vector->lock);
    return element;
}

static void vector_clear(struct vector *vector)
{
    pthread_mutex_lock(&vector->lock);
    vector->n_changes++;
    vector->n_elements = 0; /* guilty */
    pthread_mutex_unlock(&vector->lock);
}

static void vector_add_all(struct vector *vector, struct vector *other)
{
    int n_new = vector_size(other);

    pthread_mutex_lock(&vector->lock);
    vector->n_changes++;
    ensure_capacity(vector, vector->n_elements + n_new);
    for (int i = 0; i < n_new; i++)
        vector->elements[vector->n_elements++] = vector_get(other, i);
    pthread_mutex_unlock(&vector->lock);
}

static struct vector all, today;

static void *collect(void *argument)
{
    vector_add_all(&all, &today);
    return argument;
}

static void *reset(void *argument)
{
    vector_clear(&today);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    vector_init(&all);
    vector_init(&today);
    for (int i = 0; i < 6; i++)
        vector_add(&today, i);
    pthread_create(&threads[0], NULL, collect, NULL);
    pthread_create(&threads[1], NULL, reset, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(all.n_elements == 0 || all.n_elements == 6);
    free(all.elements);
    free(today.elements);
    return 0;
}
