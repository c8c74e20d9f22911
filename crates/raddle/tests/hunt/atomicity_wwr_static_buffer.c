// What is wrong: `format_date` returns a static buffer, as `asctime` does. It is locked while
// it is written, but the caller reads it afterwards, and another call may have written its own
// date there by then (W-W-R).
// Hunt: fails
// Kind: atomicity, race
// Guilty: 2 lines
// Shows: assert

#include <assert.h>
#include <pthread.h>

struct date {
    int day;
    int month;
    int year;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char text[11];
static int n_formatted;

static void digits(char *to, int n_digits, int number)
{
    while (n_digits-- > 0) {
        to[n_digits] = '0' + number % 10; /* guilty */
        number /= 10;
    }
}

static const char *format_date(const struct date *date)
{
    pthread_mutex_lock(&lock);
    n_formatted++;
    digits(text, 4, date->year);
    text[4] = '-';
    digits(text + 5, 2, date->month);
    text[7] = '-';
    digits(text + 8, 2, date->day);
    pthread_mutex_unlock(&lock);
    return text;
}

static int number(const char *from, int n_digits)
{
    int value = 0;
    for (int i = 0; i < n_digits; i++)
        value = 10 * value + from[i] - '0'; /* guilty */
    return value;
}

static void *print_letter(void *argument)
{
    const struct date *date = argument;
    const char *formatted = format_date(date);
    assert(number(formatted, 4) == date->year);
    assert(number(formatted + 5, 2) == date->month);
    assert(number(formatted + 8, 2) == date->day);
    return NULL;
}

int main(void)
{
    static const struct date dates[2] = {{24, 12, 1986}, {29, 2, 2024}};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, print_letter, (void *)&dates[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(n_formatted == 2);
    return 0;
}
