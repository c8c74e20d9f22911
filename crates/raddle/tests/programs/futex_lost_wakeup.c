// About: a futex wait whose expected value is read too late, so that the wake-up comes before it.
// Covers: syscall
// Outcome: exit 0 | lost wake-up | deadlock
//
// The value is taken as seen just before the wait instead of before the check. A futex wake
// that finds nobody is everyday business, so the plain word for it is fair as well.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_int version, has_work;

static void *work(void *argument)
{
    while (!has_work) {
        int seen = version;
        syscall(SYS_futex, &version, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
    }
    return argument;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    has_work = 1;
    version++;
    syscall(SYS_futex, &version, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    pthread_join(thread, NULL);
    return 0;
}
