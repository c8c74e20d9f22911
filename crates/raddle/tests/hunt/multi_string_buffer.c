// What is wrong: after Java's StringBuffer: `append` asks the other buffer for its length,
// makes room, and copies so many characters out of it. Each step locks the other buffer, but
// it may be shortened in between, and the length is stale.
// Hunt: fails
// Kind: atomicity, multi-variable
// Guilty: 3 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>
#include <string.h>

#define CAPACITY 64

struct string_buffer {
    pthread_mutex_t lock;
    int count;
    char value[CAPACITY];
};

static struct string_buffer greeting = {PTHREAD_MUTEX_INITIALIZER, 6, "hello "};
static struct string_buffer name = {PTHREAD_MUTEX_INITIALIZER, 5, "world"};

static int length(struct string_buffer *buffer)
{
    pthread_mutex_lock(&buffer->lock);
    int count = buffer->count; /* guilty */
    pthread_mutex_unlock(&buffer->lock);
    return count;
}

static void set_length(struct string_buffer *buffer, int count)
{
    pthread_mutex_lock(&buffer->lock);
    if (count < buffer->count)
        memset(buffer->value + count, 0, buffer->count - count);
    buffer->count = count; /* guilty */
    pthread_mutex_unlock(&buffer->lock);
}

static void get_chars(struct string_buffer *buffer, int begin, int end, char *to)
{
    pthread_mutex_lock(&buffer->lock);
    assert(begin <= end && end <= buffer->count); /* guilty */
    for (int i = begin; i < end; i++)
        to[i - begin] = buffer->value[i];
    pthread_mutex_unlock(&buffer->lock);
}

static void append(struct string_buffer *buffer, struct string_buffer *other)
{
    pthread_mutex_lock(&buffer->lock);
    int added = length(other);
    assert(buffer->count + added <= CAPACITY);
    get_chars(other, 0, added, buffer->value + buffer->count);
    buffer->count += added;
    pthread_mutex_unlock(&buffer->lock);
}

static void *greet(void *argument)
{
    append(&greeting, &name);
    return argument;
}

static void *forget(void *argument)
{
    set_length(&name, 0);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, greet, NULL);
    pthread_create(&threads[1], NULL, forget, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(greeting.count == 6 || strncmp(greeting.value, "hello world", 11) == 0);
    return 0;
}
