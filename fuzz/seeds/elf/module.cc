// A module with a bit of everything that is read from ELF files: globals of several types, a
// lock, loops, a switch with a jump table, exceptions that land, a part that is cold.
// `fuzz/run` compiles it in several ways; nothing of it is ever executed.
struct Lock { int word; long pad[4]; };
struct Node { Node *next; unsigned flags : 3, kind : 5; union { int number; float fraction; } value; };
enum class Mode : unsigned char { Idle, Busy };

namespace shop {
Lock lock;
Node nodes[3][2];
static Mode mode = Mode::Idle;
template <typename T> struct Box { T held; virtual T get() const { return held; } };
Box<Node *> box;
thread_local int depth;
}

extern "C" void give(int *);
extern "C" [[noreturn, gnu::cold]] void give_up(const char *);

struct Guard { ~Guard() { give(&shop::lock.word); } };

extern "C" int walk(const int *numbers, int n, int which) {
    Guard guard;
    int sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = i; j < n; j += 2) {
            try {
                switch (which + numbers[j]) {
                case 0: give(&sum); break;
                case 1: sum += 3; break;
                case 2: give(nullptr); sum ^= i; break;
                case 3: shop::mode = Mode::Busy; break;
                case 4: throw i;
                case 5: shop::nodes[i][j].value.number = sum; break;
                default: if (__builtin_expect(sum < 0, 0)) give_up("sum");
                }
            } catch (int thrown) {
                sum -= thrown + ++shop::depth;
            }
        }
    return sum + (shop::box.get() != nullptr);
}
