// Loops around exceptions and destructors: `note` says the iterations of the access that follows.
extern "C" void note(int first, int second, int third);

int shared, other;
volatile int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

#define NONE (-1)

struct Guard {
    ~Guard() { other++; }
};

__attribute__((noinline)) void may_throw(int i) {
    if (numbers[i & 7] % 3 == 1)
        throw i;
}

// The destructor is a landing pad that leads out of the function.
__attribute__((noinline)) void guards(int n) {
    for (int i = 0; i < n; i++) {
        note(i, NONE, NONE);
        shared++;
        Guard guard;
        may_throw(3);
    }
}

// The landing pad leads back into the loop.
__attribute__((noinline)) void catches(int n) {
    for (int i = 0; i < n; i++) {
        note(i, NONE, NONE);
        shared++;
        try {
            may_throw(i);
        } catch (int) {
            note(i, NONE, NONE);
            other++;
        }
    }
}

// The landing pad leads out of the inner loop, which is entered again.
__attribute__((noinline)) void leaves(int n) {
    for (int i = 0; i < n; i++) {
        try {
            for (int j = 0; j < n; j++) {
                note(j, i, NONE);
                shared++;
                may_throw(j);
            }
        } catch (int) {
        }
    }
}

int main() {
    guards(numbers[5]);
    catches(numbers[7]);
    leaves(numbers[5]);
    return 0;
}
