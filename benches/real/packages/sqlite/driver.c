// Threads with a connection of their own to one database, which count in it in transactions. The
// argument is the journal's mode.
//
// Time-outs of 20 seconds are long: whoever holds the database works for a few milliseconds.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sqlite3.h"

#define THREADS 3
#define ROUNDS 3

static char name[32];

static void fail(const char *what, const char *detail)
{
    printf("%s: %s\n", what, detail);
    fflush(stdout);
    _exit(1);
}

static void check(sqlite3 *database, int result, const char *what)
{
    if (result != SQLITE_OK)
        fail(what, sqlite3_errmsg(database));
}

static void execute(sqlite3 *database, const char *statement)
{
    check(database, sqlite3_exec(database, statement, NULL, NULL, NULL), statement);
}

static sqlite3 *opened(void)
{
    sqlite3 *database;
    check(database, sqlite3_open(name, &database), "open");
    check(database, sqlite3_busy_timeout(database, 20000), "busy_timeout");
    return database;
}

// Removes the database. An earlier process of the same id may have left one, with journals.
static void clean(void)
{
    static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};
    char path[sizeof name + 16];
    for (size_t at = 0; at < sizeof suffixes / sizeof *suffixes; at++) {
        snprintf(path, sizeof path, "%s%s", name, suffixes[at]);
        unlink(path);
    }
}

static void *count(void *number)
{
    char statement[128];
    sqlite3 *database = opened();
    for (int round = 0; round < ROUNDS; round++) {
        execute(database, "BEGIN IMMEDIATE");
        execute(database, "UPDATE counter SET value = value + 1");
        snprintf(statement, sizeof statement, "INSERT INTO entry VALUES (%d, %d)", (int)(long)number, round);
        execute(database, statement);
        execute(database, "COMMIT");
    }
    check(database, sqlite3_close(database), "close");
    return NULL;
}

static int print(void *unused, int n, char **values, char **names)
{
    (void)unused, (void)names;
    for (int at = 0; at < n; at++)
        printf("%s%c", values[at], at + 1 < n ? ' ' : '\n');
    return 0;
}

int main(int n_arguments, char **arguments)
{
    char pragma[64];
    pthread_t threads[THREADS];
    if (n_arguments != 2)
        fail("usage", "program JOURNAL_MODE");
    // As long in every run.
    snprintf(name, sizeof name, "counter-%010d.db", (int)syscall(SYS_getpid));
    clean();
    sqlite3 *database = opened();
    snprintf(pragma, sizeof pragma, "PRAGMA journal_mode = %s", arguments[1]);
    execute(database, pragma);
    execute(database, "CREATE TABLE counter (value INTEGER)");
    execute(database, "CREATE TABLE entry (thread INTEGER, round INTEGER)");
    execute(database, "INSERT INTO counter VALUES (0)");
    for (long n = 0; n < THREADS; n++)
        if (pthread_create(&threads[n], NULL, count, (void *)n) != 0)
            fail("pthread_create", strerror(errno));
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], NULL);
    const char *query = "SELECT value, count(*), sum(thread), sum(round) FROM counter, entry";
    check(database, sqlite3_exec(database, query, print, NULL, NULL), query);
    check(database, sqlite3_exec(database, "PRAGMA integrity_check", print, NULL, NULL), "check");
    check(database, sqlite3_close(database), "close");
    clean();
    return 0;
}
