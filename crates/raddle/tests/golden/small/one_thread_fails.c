// What is wrong: it fails with one thread already.

int main(void) { return 3; }
