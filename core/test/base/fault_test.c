/* Reads that meet a fault, and those that do not. */
#include "base/fault.c"

#include "tap.h"

#include <sys/mman.h>

static void count(void *self)
{
    (*(int *)self)++;
}

static void read_nowhere(void *self)
{
    char *where = *(char **)self;
    (void)*(volatile char *)where;
    *(char **)self = NULL;
}

static void guard_again(void *self)
{
    *(bool *)self = oribi_fault_guard(count, &(int){0});
}

static void on_segv(int number)
{
}

static bool is_handled_by(void (*handler)(int))
{
    struct sigaction action;
    return sigaction(SIGSEGV, NULL, &action) == 0 && action.sa_handler == handler;
}

static void test_a_read_without_a_fault_is_done(void)
{
    int calls = 0;
    ok(oribi_fault_guard(count, &calls));
    ok_eq(calls, 1);
}

static void test_a_fault_is_left_and_everything_is_as_before(void)
{
    struct sigaction action = {.sa_handler = on_segv};
    sigset_t mask;
    char *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *where = nowhere;
    (void)sigaction(SIGSEGV, &action, NULL);
    (void)sigfillset(&mask);
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL); /* as in the helper */
    for (int i = 0; i < 3; i++)
        ok(!oribi_fault_guard(read_nowhere, &where));
    ok(where == nowhere);
    ok(is_handled_by(on_segv));
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    ok(sigismember(&mask, SIGSEGV) == 1);
    (void)munmap(nowhere, 4096);
}

static void test_one_read_at_a_time(void)
{
    bool second = true;
    ok(oribi_fault_guard(guard_again, &second));
    ok(!second);
    int calls = 0;
    ok(oribi_fault_guard(count, &calls));
}

int main(void)
{
    test_a_read_without_a_fault_is_done();
    test_a_fault_is_left_and_everything_is_as_before();
    test_one_read_at_a_time();
    return done_testing();
}
