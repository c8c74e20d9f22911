// What is wrong: after Mozilla's nsThread: the new thread looks up its own handle, which the
// creator stores only once `pthread_create` has returned. If the new thread is quicker, it
// finds nothing there.
// Hunt: fails
// Kind: order, race
// Guilty: 2 lines
// Shows: signal

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum thread_state { STATE_NEW, STATE_RUNNING, STATE_ENDED };

struct handle {
    pthread_t id;
    enum thread_state state;
    int priority;
};

struct ns_thread {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct handle *handle;
    int result;
};

static void thread_main(struct ns_thread *self)
{
    struct handle *handle = self->handle; /* guilty */
    int result = handle->priority * 2;

    pthread_mutex_lock(&self->lock);
    self->result = result;
    handle->state = STATE_ENDED;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
}

static void *start(void *argument)
{
    thread_main(argument);
    return NULL;
}

static struct handle *create_handle(struct ns_thread *thread, int priority)
{
    struct handle *handle = calloc(1, sizeof *handle);
    handle->priority = priority;
    handle->state = STATE_RUNNING;
    if (pthread_create(&handle->id, NULL, start, thread) != 0)
        abort();
    return handle;
}

static void thread_init(struct ns_thread *thread, int priority)
{
    pthread_mutex_init(&thread->lock, NULL);
    pthread_cond_init(&thread->changed, NULL);
    thread->handle = NULL;
    thread->handle = create_handle(thread, priority); /* guilty */
}

int main(void)
{
    struct ns_thread thread;

    thread_init(&thread, 21);
    pthread_mutex_lock(&thread.lock);
    while (thread.handle->state != STATE_ENDED)
        pthread_cond_wait(&thread.changed, &thread.lock);
    pthread_mutex_unlock(&thread.lock);
    pthread_join(thread.handle->id, NULL);
    printf("%d\n", thread.result);
    free(thread.handle);
    return thread.result == 42 ? 0 : 1;
}
