// What is wrong: as in MySQL, data is loaded into a table although no database was selected:
// the session's database is still what it was made with.
// Isolate: plain
// Cause: statement
// Executions: 1 1 0 0
// Guilty: 1 line

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct session {
    int id;
    char *db;
    char *user;
};

static struct session *open_session(int id)
{
    struct session *session = malloc(sizeof *session);
    session->id = id;
    session->db = NULL; /* guilty */
    session->user = strdup("root");
    return session;
}

static size_t load_data(const struct session *session, const char *table)
{
    size_t length = strlen(session->db) + strlen(table) + 2;
    char *path = malloc(length);
    snprintf(path, length, "%s/%s", session->db, table);
    puts(path);
    free(path);
    return length;
}

int main(void)
{
    struct session *session = open_session(3);
    printf("%s\n", session->user);
    printf("%zu\n", load_data(session, "orders"));
    return 0;
}
