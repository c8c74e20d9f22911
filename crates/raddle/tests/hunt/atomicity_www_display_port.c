// What is wrong: a display has one command port: writing an address selects a cell, and what is
// written next goes into that cell. Two drivers lock the bus for each write, but not for both:
// the other's address may come in between (W-W-W), and the data ends up in the wrong cell.
// Hunt: fails
// Kind: atomicity, multi-variable
// Guilty: 3 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>

#define N_CELLS 8
#define SELECT 0x80

/* The device: it reacts to what is written to its port. */
struct display {
    pthread_mutex_t bus;
    unsigned char port;
    unsigned char selected;
    unsigned char cells[N_CELLS];
};

static struct display display = {.bus = PTHREAD_MUTEX_INITIALIZER};

static void react(struct display *display, unsigned char command)
{
    if (command & SELECT)
        display->selected = command & ~SELECT; /* guilty */
    else
        display->cells[display->selected] = command; /* guilty */
}

static void out(struct display *display, unsigned char command)
{
    pthread_mutex_lock(&display->bus);
    display->port = command; /* guilty */
    react(display, command);
    pthread_mutex_unlock(&display->bus);
}

static void put(struct display *display, int cell, char letter)
{
    out(display, SELECT | cell);
    out(display, letter);
}

static void *clock_driver(void *argument)
{
    put(&display, 0, '1');
    put(&display, 1, '2');
    return argument;
}

static void *mail_driver(void *argument)
{
    put(&display, 6, '@');
    return argument;
}

int main(void)
{
    pthread_t threads[2];

    pthread_create(&threads[0], NULL, clock_driver, NULL);
    pthread_create(&threads[1], NULL, mail_driver, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(display.cells[0] == '1' && display.cells[1] == '2');
    assert(display.cells[6] == '@');
    return 0;
}
