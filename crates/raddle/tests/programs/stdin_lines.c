// About: standard input by fgets, getchar, scanf and read, from several threads.
// Covers: read
// Outcome: exit 0
// Stdin: 3\nalpha\nbeta\ngamma\n7 tail\n
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int n_chars;

static void *read_line(void *argument)
{
    char line[32];
    pthread_mutex_lock(&lock);
    assert(fgets(line, sizeof line, stdin) == line);
    assert(line[strlen(line) - 1] == '\n');
    n_chars += strlen(line) - 1;
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    int n_lines = 0, number = 0;
    assert(scanf("%d", &n_lines) == 1 && n_lines == 3);
    assert(getchar() == '\n');
    pthread_t threads[3];
    for (int i = 0; i < n_lines; i++)
        assert(pthread_create(&threads[i], NULL, read_line, NULL) == 0);
    for (int i = 0; i < n_lines; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_chars == 5 + 4 + 5);
    char word[8];
    assert(fscanf(stdin, "%d %7s", &number, word) == 2 && number == 7 && strcmp(word, "tail") == 0);
    assert(getchar() == '\n' && getchar() == EOF);
    assert(read(STDIN_FILENO, word, 1) == 0);
    return 0;
}
