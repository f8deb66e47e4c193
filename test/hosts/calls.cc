// SPDX-License-Identifier: Apache-2.0
// calls.cc - what hooks of calls must not disturb: values, exceptions, jumps, stacks, threads that end, forks
#include <execinfo.h>
#include <immintrin.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdexcept>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>
#include <vector>

struct small {
    long a;
    double b;
};
struct large {
    long a[9];
};
extern "C" {
double calls_sum(int n, ...);
double calls_many(double, double, double, double, double, double, double, double, double, long, long, long, long, long,
                  long, long);
long double calls_long(long double, int);
_Complex double calls_complex(_Complex double);
_Complex long double calls_long_complex(_Complex long double);
__int128 calls_wide(__int128, int);
small calls_small(small, long);
large calls_large(large, int);
__m256d calls_avx(__m256d, __m256d);
__m512d calls_avx512(__m512d, __m512d);
long calls_deep(long, long (*)(long));
void calls_back(void (*)(void *), void *);
long calls_tail(long, long (*)(long));
void calls_jump(jmp_buf, int);
int calls_compare(const void *, const void *);
int calls_plain(int);
long calls_keeps(long);
long keeps_all(void);
}

/* What of its registers is left to a caller by a function that promises to leave all but rax and r11. */
__asm__(".text\n.type keeps_all, @function\nkeeps_all: pushq %rbp\n movq %rsp, %rbp\n"
        "movl $1, %edi\n movl $20, %esi\n movl $300, %edx\n movl $4000, %ecx\n movl $50000, %r8d\n movl $600000, "
        "%r9d\n movl $7000000, %r10d\n"
        "call calls_keeps@PLT\n"
        "addq %rdi, %rax\n addq %rsi, %rax\n addq %rdx, %rax\n addq %rcx, %rax\n addq %r8, %rax\n addq %r9, %rax\n "
        "addq %r10, %rax\n"
        "popq %rbp\n ret\n.size keeps_all, . - keeps_all\n");

static void values()
{
    small s = calls_small({1, 1.5}, 41);
    large l{};
    for (int i = 0; i < 9; i++) l.a[i] = i * i;
    l = calls_large(l, 3);
    printf("%g %g %Lg\n", calls_sum(6, 0.5, 1, 1.5, 2, 2.5, 3),
           calls_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7), calls_long(1.5L, 3));
    _Complex double z = calls_complex(1.0 + 2.0i);
    _Complex long double y = calls_long_complex(1.0L + 2.0Li);
    printf("%g %g %Lg %Lg %ld %g %ld\n", __real__ z, __imag__ z, __real__ y, __imag__ y, s.a, s.b, l.a[8]);
    keeps_all(); /* the loader, which may bind the word now, promises less */
    printf("kept %ld\n", keeps_all());
    printf("%llx\n", (unsigned long long)(calls_wide((__int128)0x123456789abcdef << 32, 7) >> 32));
}

__attribute__((target("avx"))) static void avx()
{
    double out[4];
    for (int i = 0; i < 3; i++)
        _mm256_storeu_pd(out, calls_avx(_mm256_setr_pd(1, 2, 3, 4), _mm256_setr_pd(5, 6, 7, 8 + i)));
    printf("avx %g %g %g %g\n", out[0], out[1], out[2], out[3]);
}

__attribute__((target("avx512f"))) static void avx512()
{
    double out[8];
    for (int i = 0; i < 3; i++)
        _mm512_storeu_pd(out, calls_avx512(_mm512_set1_pd(3 + i), _mm512_setr_pd(1, 2, 3, 4, 5, 6, 7, 8)));
    printf("avx512 %g %g\n", out[0], out[7]);
}

struct guard {
    int *count;
    ~guard() { *count += calls_plain(0); }
};

static int cleaned;

static void throws(void *arg)
{
    guard g{&cleaned};
    long depth = (long)arg;
    if (depth) calls_back(throws, (void *)(depth - 1));
    else throw std::runtime_error("thrown");
}

static void rethrows(void *arg)
{
    try {
        calls_back(throws, arg);
    } catch (std::exception &e) {
        if (calls_plain(1) == 2) throw;
    }
}

static void exceptions()
{
    int caught = 0;
    for (long i = 0; i < 300; i++) {
        try {
            calls_back(i % 3 ? throws : rethrows, (void *)(i % 7));
        } catch (std::runtime_error &e) {
            caught += strcmp(e.what(), "thrown") == 0 && calls_plain((int)i) == i + 1;
        }
    }
    try {
        (void)std::stoi("none");
    } catch (std::invalid_argument &) {
        caught += 1000;
    }
    printf("exceptions %d %d\n", caught, cleaned);
}

static jmp_buf where;
static sigjmp_buf where_signal;

static void jumps_from(void *arg)
{
    if ((long)arg) calls_back(jumps_from, (void *)((long)arg - 1));
    calls_jump(where, 5);
}

static void on_signal(int sig)
{
    if (sig == SIGUSR2) siglongjmp(where_signal, calls_plain(6));
    calls_plain(1);
}

static void raises(void *arg) { raise((int)(long)arg); }

static void jumps()
{
    volatile long sum = 0;
    for (volatile long i = 0; i < 300; i++) {
        int value = setjmp(where);
        if (!value) jumps_from((void *)(i % 9));
        sum = sum + value + calls_plain(0);
    }
    struct sigaction action = {};
    stack_t stack = {};
    stack.ss_size = 65536;
    stack.ss_sp = malloc(stack.ss_size);
    sigaltstack(&stack, NULL);
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    for (volatile int i = 0; i < 100; i++) {
        if (sigsetjmp(where_signal, 1) == 0) calls_back(raises, (void *)(long)(i % 2 ? SIGUSR1 : SIGUSR2));
        sum = sum + calls_plain(0);
    }
    printf("jumps %ld\n", (long)sum);
}

static long again(long depth) { return calls_deep(depth, again); }
static long last(long n) { return n; }
static long next_tail(long n) { return n < 5000 ? calls_tail(n, next_tail) : last(n); }

static void depths()
{
    printf("depth %ld %ld %ld\n", again(10), again(5000), again(3));
    printf("tail %ld\n", next_tail(0));
}

static ucontext_t outside, fibers[4];
static long fiber_sum;

static void yields(void *arg) { swapcontext(&fibers[(long)arg], &outside); }

static void fiber(int number)
{
    for (int i = 0; i < 20; i++) {
        fiber_sum += calls_plain(number);
        calls_back(yields, (void *)(long)number);
        try {
            calls_back(throws, (void *)1);
        } catch (std::runtime_error &) {
            fiber_sum += 100;
        }
    }
}

static void runs_fibers(char *stacks, size_t each)
{
    for (int n = 0; n < 4; n++) {
        getcontext(&fibers[n]);
        fibers[n].uc_stack.ss_sp = stacks + each * n;
        fibers[n].uc_stack.ss_size = each;
        fibers[n].uc_link = &outside;
        makecontext(&fibers[n], (void (*)())fiber, 1, n);
    }
    for (int i = 0; i < 21; i++)
        for (int n = 3; n >= 0; n--) swapcontext(&outside, &fibers[n]);
}

static void resumes(void *arg) { runs_fibers((char *)arg, 65536); }

static void coroutines()
{
    char *stacks = (char *)mmap(NULL, 4 * 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char inside[4 * 65536]; /* on the stack of the thread itself */
    calls_back(resumes, stacks);
    munmap(stacks, 4 * 65536);
    calls_back(resumes, inside);
    printf("coroutines %ld %d\n", fiber_sum, cleaned);
}

static void leaves(void *arg)
{
    guard g{(int *)arg};
    pthread_exit((void *)7);
}

static void *thread_leaves(void *arg)
{
    calls_back(leaves, arg);
    return NULL;
}

static void waits(void *arg)
{
    guard g{(int *)arg};
    for (;;) sleep(100);
}

static void *thread_waits(void *arg)
{
    calls_back(waits, arg);
    return NULL;
}

static void *thread_works(void *arg)
{
    long sum = 0;
    for (int i = 0; i < 2000; i++) sum += calls_plain(i) + again(3);
    *(long *)arg = sum;
    return arg;
}

static void threads()
{
    pthread_t id;
    void *result;
    int count = 0;
    pthread_create(&id, NULL, thread_leaves, &count);
    pthread_join(id, &result);
    printf("exit %ld %d\n", (long)result, count);
    pthread_create(&id, NULL, thread_waits, &count);
    usleep(20000);
    pthread_cancel(id);
    pthread_join(id, &result);
    printf("cancel %d %d\n", result == PTHREAD_CANCELED, count);
    pthread_attr_t attr;
    pthread_t ids[20];
    long sums[20], sum = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 16384);
    for (int i = 0; i < 20; i++) pthread_create(&ids[i], &attr, thread_works, &sums[i]);
    for (int i = 0; i < 20; i++) pthread_join(ids[i], NULL), sum += sums[i];
    printf("threads %ld\n", sum);
}

static void forks(void *)
{
    pid_t pid = fork();
    if (!pid) calls_plain(1);
    else waitpid(pid, NULL, 0);
    if (!pid) _exit(calls_plain(2));
}

/* More of them than a thread has places for calls: none may keep one. */
static void vforks()
{
    char name[] = "true", *args[] = {name, nullptr}, *none[] = {nullptr};
    volatile long sum = 0;
    for (volatile int i = 0; i < 1100; i = i + 1) {
        int status;
        const pid_t pid = vfork();
        if (!pid) {
            if (i % 100 == 0) execve("/proc/self/exe/none", args, none);
            _exit(i % 7);
        }
        waitpid(pid, &status, 0);
        sum = sum + WEXITSTATUS(status);
    }
    printf("vforks %ld\n", (long)sum);
}

/* One instruction after the other is struck by a signal, and each time the stack is unwound: main's frame and registers
 * are as they were before. */
static struct frames {
    bool has_stepped;
    uintptr_t of_main, kept[6];
} expected;
static long steps, astray;
static volatile bool is_stepping;
int main(int argc, char **argv);
static long stepped();

static _Unwind_Reason_Code looks(struct _Unwind_Context *context, void *arg)
{
    frames *found = (frames *)arg;
    const void *function = _Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context));
    if (function == (const void *)stepped) found->has_stepped = true;
    if (function != (const void *)main) return _URC_NO_REASON;
    static const int kept[] = {3, 6, 12, 13, 14, 15}; /* rbx, rbp, r12 to r15 */
    for (int i = 0; i < 6; i++) found->kept[i] = _Unwind_GetGR(context, kept[i]);
    found->of_main = _Unwind_GetCFA(context);
    return _URC_NO_REASON;
}

static void on_step(int, siginfo_t *, void *context)
{
    frames found;
    memset(&found, 0, sizeof found);
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    *flags = is_stepping ? *flags | 0x100 : *flags & ~0x100; /* the trap flag */
    const _Unwind_Reason_Code end = _Unwind_Backtrace(looks, &found);
    if (!steps++) expected = found;
    if (end != _URC_END_OF_STACK || !found.has_stepped || memcmp(&found, &expected, sizeof found) != 0) astray++;
}

/* The last calls are deeper than a thread has places to begin with. */
static __attribute__((noinline)) long stepped()
{
    long sum = 0;
    is_stepping = true;
    raise(SIGTRAP);
    for (int i = 0; i < 3; i++) sum += calls_plain(i);
    sum += calls_tail(4990, next_tail) + again(20);
    calls_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7);
    is_stepping = false;
    return sum;
}

static void steps_through()
{
    struct sigaction action = {};
    action.sa_sigaction = on_step;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGTRAP, &action, NULL);
    calls_plain(0); /* a thread's first */
    const long sum = stepped();
    printf("steps %ld %d %ld\n", sum, steps > 300, astray);
}

static void *addresses[64];
static void shows(void *arg) { *(int *)arg = backtrace(addresses, 64) > 3; }

int main(int argc, char **argv)
{
    int n, numbers[] = {3, 1, 2}, seen = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (argc > 1) {
        if (strcmp(argv[1], "steps") == 0) steps_through();
        else vforks();
        return calls_plain(2);
    }
    values();
    if (__builtin_cpu_supports("avx")) avx();
    if (__builtin_cpu_supports("avx512f")) avx512();
    exceptions();
    jumps();
    depths();
    coroutines();
    threads();
    calls_back(forks, NULL);
    qsort(numbers, 3, sizeof *numbers, calls_compare);
    for (n = 0; n < 3; n++) printf("%d ", numbers[n]);
    calls_back(shows, &seen);
    printf("%d\n", seen);
    std::vector<std::thread> more;
    for (int i = 0; i < 4; i++)
        more.emplace_back([] {
            for (int k = 0; k < 50; k++) try {
                    throws((void *)3);
                } catch (...) {
                    calls_plain(k);
                }
        });
    for (auto &t : more) t.join();
    printf("end\n");
    return calls_plain(2);
}
