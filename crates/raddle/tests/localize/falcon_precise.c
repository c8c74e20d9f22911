// What is wrong: a string buffer, as bug 4 of the LOCON paper: a thread fills the buffer, then
// asks for its length and copies so many characters, and another thread empties it in between
// (R-W-R). By Falcon's own policy the window forgets the first of these reads, as it follows a
// write by the same thread; what is left, W-W-R, is in passing runs too, where the buffer is
// emptied before its length is asked for.
// Localize: I
// Pattern: R1-W2-R1
// Pairs: 1

#include <assert.h>
#include <pthread.h>

static struct string_buffer {
    pthread_mutex_t lock;
    int count;
} buffer = {PTHREAD_MUTEX_INITIALIZER, 0};
static char room[8];

static void fill(int count)
{
    pthread_mutex_lock(&buffer.lock);
    buffer.count = count;
    pthread_mutex_unlock(&buffer.lock);
}

static int length(void)
{
    pthread_mutex_lock(&buffer.lock);
    int count = buffer.count; /* head */ /* falcon */
    pthread_mutex_unlock(&buffer.lock);
    return count;
}

static void copy(int count)
{
    pthread_mutex_lock(&buffer.lock);
    assert(count <= buffer.count); /* falcon */
    pthread_mutex_unlock(&buffer.lock);
}

static void *append(void *argument)
{
    fill(5);
    int count = length();
    for (int i = 0; i < count; i++)
        room[i] = ' ';
    copy(count);
    return argument;
}

static void *empty(void *argument)
{
    pthread_mutex_lock(&buffer.lock);
    buffer.count = 0; /* tail */ /* falcon */
    pthread_mutex_unlock(&buffer.lock);
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, append, NULL);
    pthread_create(&threads[1], NULL, empty, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
