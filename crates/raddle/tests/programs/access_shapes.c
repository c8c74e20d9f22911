// About: plain accesses of 1 to 16 bytes, unaligned, volatile, packed, bit fields, large copies.
// Covers: __tsan_read_range, memmove, pthread_mutex_lock, pthread_mutex_unlock
// Outcome: exit 0
#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

struct __attribute__((packed)) packed {
    uint8_t tag;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    unsigned __int128 sixteen;
};

struct bits {
    unsigned low : 3, mid : 17, high : 12;
};

struct large {
    uint64_t words[64];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct packed packed = { .tag = 1 };
static struct bits bits;
static volatile uint8_t v8;
static volatile uint64_t v64;
static struct large large, copy;
static unsigned __int128 wide;
static double real;
static long double long_real;

static void *work(void *argument)
{
    for (int i = 0; i < 20; i++) {
        pthread_mutex_lock(&lock);
        packed.two += 1;
        packed.four += 70000;
        packed.eight += 5000000000;
        packed.sixteen += (unsigned __int128)1 << 64 | 1;
        bits.low++;
        bits.mid += 1000;
        bits.high ^= 1;
        v8++;
        v64 += v8;
        wide = wide * 3 + 1;
        real += 0.5;
        long_real += 0.25L;
        large.words[i] += i;
        copy = large;
        memmove(&copy.words[1], &copy.words[0], sizeof copy.words - sizeof copy.words[0]);
        assert(copy.words[i + 1] == large.words[i]);
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
    assert(packed.tag == 1 && packed.two == 40 && packed.four == 40 * 70000);
    assert(packed.eight == 40 * 5000000000 && packed.sixteen == ((unsigned __int128)40 << 64 | 40));
    assert(bits.low == 0 && bits.mid == 40000 && bits.high == 0);
    assert(v8 == 40 && v64 == 820 && real == 20.0 && long_real == 10.0L);
    assert((uint64_t)wide == 6078832729528464400u && large.words[19] == 38);
    return 0;
}
