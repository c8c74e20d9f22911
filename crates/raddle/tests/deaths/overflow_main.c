// Says: SIGSEGV
static volatile int n_max = 1 << 30;
// All on one line, as any of it may be what first needs more stack than there is.
static int descend(int n) { volatile char frame[20000]; frame[n % 512] = 1; return n >= n_max ? 0 : descend(n + 1) + frame[n % 512]; } // died

int main(void)
{
    return descend(0);
}
