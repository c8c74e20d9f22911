// About: setjmp, longjmp over several frames, under a lock, in several threads at once.
// Covers: pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <setjmp.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_errors, n_calls;

struct parser {
    jmp_buf failure;
    int depth;
};

static void parse(struct parser *parser, int depth)
{
    pthread_mutex_lock(&lock);
    n_calls++;
    pthread_mutex_unlock(&lock);
    if (depth == parser->depth)
        longjmp(parser->failure, depth + 1);
    if (depth < 1000)
        parse(parser, depth + 1);
    parser->depth = -1; // Never reached.
}

static void *work(void *argument)
{
    for (volatile int i = 0; i < 10; i++) {
        struct parser parser = { .depth = i };
        int failure = setjmp(parser.failure);
        if (failure == 0) {
            parse(&parser, 0);
            assert(!"parse returned");
        }
        assert(failure == i + 1 && parser.depth == i);
        pthread_mutex_lock(&lock);
        n_errors++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 3; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_errors == 30 && n_calls == 3 * 55);
    return 0;
}
