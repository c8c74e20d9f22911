// About: qsort, output of shared buffers, times, descriptions of files and sockets, and directories, each by
// several threads under a lock. The comparison of one qsort leaves it by longjmp.
// Covers: __xpg_strerror_r, asctime_r, ctime_r, fputs, fputs_unlocked, fstat, fstat64, fstatat, fstatat64, fwrite,
// Covers: fwrite_unlocked, getpeername, getsockname, getsockopt, gmtime_r, localtime_r, lstat, lstat64, mktime,
// Covers: puts, qsort, qsort_r, readdir, readdir64, stat, stat64, strftime
// Outcome: exit 0
#define _GNU_SOURCE
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// A name that headers hide.
int __xpg_strerror_r(int, char *, size_t);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int numbers[8], n_rounds;
static char text[64];
static struct stat about;
static struct tm parts;
static jmp_buf out;

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int compare_with(const void *a, const void *b, void *factor)
{
    return *(int *)factor * compare(a, b);
}

static int give_up(const void *a, const void *b)
{
    (void)a, (void)b;
    longjmp(out, 1);
}

static void sort(void)
{
    int down = -1;
    for (int i = 0; i < 8; i++)
        numbers[i] = i * 5 % 8;
    qsort(numbers, 8, sizeof *numbers, compare);
    assert(numbers[0] == 0 && numbers[7] == 7);
    qsort_r(numbers, 8, sizeof *numbers, compare_with, &down);
    assert(numbers[0] == 7 && numbers[7] == 0);
    if (setjmp(out) == 0) {
        qsort(numbers, 8, sizeof *numbers, give_up);
        assert(!"sorted");
    }
}

static void print(void)
{
    strcpy(text, "text");
    puts(text);
    assert(fputs(text, stdout) >= 0 && fputs_unlocked(text, stdout) >= 0);
    assert(fwrite(text, 1, 4, stdout) == 4 && (fwrite_unlocked)(text, 2, 2, stdout) == 2);
    assert(__xpg_strerror_r(ENOENT, text, sizeof text) == 0 && strstr(text, "file"));
}

static void times(void)
{
    time_t time = 962409600;
    assert(gmtime_r(&time, &parts) == &parts && parts.tm_year == 100);
    assert(asctime_r(&parts, text) == text && strstr(text, "2000"));
    assert(strftime(text, sizeof text, "%Y", &parts) == 4 && strcmp(text, "2000") == 0);
    assert(localtime_r(&time, &parts) == &parts && mktime(&parts) == time);
    assert(ctime_r(&time, text) == text && strstr(text, "2000"));
}

static void files(void)
{
    int directory = open("/", O_RDONLY), sockets[2], kind;
    assert(stat("/", &about) == 0 && S_ISDIR(about.st_mode) && lstat("/", &about) == 0);
    assert(fstat(directory, &about) == 0 && fstatat(directory, ".", &about, 0) == 0);
    assert(stat64("/", (struct stat64 *)&about) == 0 && lstat64("/", (struct stat64 *)&about) == 0);
    assert(fstat64(directory, (struct stat64 *)&about) == 0);
    assert(fstatat64(directory, ".", (struct stat64 *)&about, 0) == 0 && S_ISDIR(about.st_mode));
    close(directory);
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    struct sockaddr_storage address;
    socklen_t length = sizeof kind;
    assert(getsockopt(sockets[0], SOL_SOCKET, SO_TYPE, &kind, &length) == 0 && kind == SOCK_STREAM);
    length = sizeof address;
    assert(getsockname(sockets[0], (struct sockaddr *)&address, &length) == 0 && address.ss_family == AF_UNIX);
    length = 1;
    assert(getpeername(sockets[0], (struct sockaddr *)&address, &length) == 0 && length > 1);
    close(sockets[0]), close(sockets[1]);
    DIR *stream = opendir("/");
    assert(stream && readdir(stream) && readdir64(stream) && closedir(stream) == 0);
}

static void *work(void *argument)
{
    for (int i = 0; i < 2; i++) {
        pthread_mutex_lock(&lock);
        sort();
        print();
        times();
        files();
        n_rounds++;
        pthread_mutex_unlock(&lock);
    }
    return argument;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < 2; i++)
        assert(pthread_join(threads[i], NULL) == 0);
    assert(n_rounds == 4);
    return 0;
}
