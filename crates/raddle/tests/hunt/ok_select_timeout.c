// Nothing is wrong: a reader waits for two pipes by select, half a second at a time, and does other
// things when nothing comes. The writers pause for longer than that.
// Hunt: clean

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/select.h>
#include <unistd.h>

enum { SOURCES = 2, MESSAGES = 3 };

struct source {
    pthread_t thread;
    int read_end, write_end;
    int is_open;
    int sum;
};

static struct source sources[SOURCES];

static void *produce(void *argument)
{
    struct source *source = argument;

    for (unsigned char i = 1; i <= MESSAGES; i++) {
        usleep(700 * 1000);
        assert(write(source->write_end, &i, 1) == 1);
    }
    close(source->write_end);
    return NULL;
}

int main(void)
{
    int n_open = SOURCES, n_idle = 0;

    for (int i = 0; i < SOURCES; i++) {
        int ends[2];
        assert(pipe(ends) == 0);
        sources[i] = (struct source){ .read_end = ends[0], .write_end = ends[1], .is_open = 1 };
    }
    for (int i = 0; i < SOURCES; i++)
        pthread_create(&sources[i].thread, NULL, produce, &sources[i]);
    while (n_open > 0) {
        struct timeval half = { 0, 500 * 1000 };
        int highest = -1, n;
        fd_set set;

        FD_ZERO(&set);
        for (int i = 0; i < SOURCES; i++) {
            if (sources[i].is_open) {
                FD_SET(sources[i].read_end, &set);
                highest = sources[i].read_end > highest ? sources[i].read_end : highest;
            }
        }
        n = select(highest + 1, &set, NULL, NULL, &half);
        assert(n >= 0);
        if (n == 0)
            n_idle++;
        for (int i = 0; i < SOURCES && n > 0; i++) {
            unsigned char byte;
            if (!sources[i].is_open || !FD_ISSET(sources[i].read_end, &set))
                continue;
            if (read(sources[i].read_end, &byte, 1) == 1) {
                sources[i].sum += byte;
            } else {
                sources[i].is_open = 0;
                close(sources[i].read_end);
                n_open--;
            }
        }
    }
    for (int i = 0; i < SOURCES; i++) {
        pthread_join(sources[i].thread, NULL);
        assert(sources[i].sum == 1 + 2 + 3);
    }
    return 0;
}
