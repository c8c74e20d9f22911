// Nothing is wrong: an atomic reference count. Whoever brings it to zero, by what the decrement
// itself returns, frees the object, and nobody touches it after giving up a reference.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct image {
    _Atomic int refcount;
    int width;
    int height;
    unsigned char *pixels;
};

static _Atomic int n_freed;

static struct image *image_new(int width, int height)
{
    struct image *image = malloc(sizeof *image);
    atomic_init(&image->refcount, 1);
    image->width = width;
    image->height = height;
    image->pixels = malloc(width * height);
    for (int i = 0; i < width * height; i++)
        image->pixels[i] = i;
    return image;
}

static struct image *image_take(struct image *image)
{
    atomic_fetch_add_explicit(&image->refcount, 1, memory_order_relaxed);
    return image;
}

static void image_drop(struct image *image)
{
    if (atomic_fetch_sub_explicit(&image->refcount, 1, memory_order_acq_rel) > 1)
        return;
    free(image->pixels);
    free(image);
    atomic_fetch_add(&n_freed, 1);
}

static void *show(void *argument)
{
    struct image *image = argument;
    int sum = 0;
    for (int i = 0; i < image->width * image->height; i++)
        sum += image->pixels[i];
    assert(sum == 66);
    image_drop(image);
    return NULL;
}

int main(void)
{
    struct image *image = image_new(4, 3);
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, show, image_take(image));
    image_drop(image);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert(atomic_load(&n_freed) == 1);
    return 0;
}
