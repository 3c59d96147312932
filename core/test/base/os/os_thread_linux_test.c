/* The system calls that threads wait in, and the effect of a signal on them. */
#include "base/os/os_thread_linux.c"

#include "tap.h"

#include <limits.h>
#include <poll.h>
#include <stdatomic.h>

enum { LOOKS_MAX = 10000 };

static int pair[2];
static atomic_bool quit;
static _Atomic int32_t self_tid;

static void *spin(void *unused)
{
    atomic_store(&self_tid, gettid());
    while (!atomic_load(&quit))
        continue;
    return NULL;
}

static void *receive(void *unused)
{
    char byte;
    (void)!recv(pair[0], &byte, 1, 0);
    return NULL;
}

static void *wait_for_input(void *unused)
{
    struct pollfd fd = {.fd = pair[0], .events = POLLIN};
    (void)poll(&fd, 1, -1);
    return NULL;
}

static void *rest(void *unused)
{
    const long piece[2] = {0, 200 * 1000 * 1000}; /* the timespec of the call itself */
    while (!atomic_load(&quit))
        (void)syscall(SYS_clock_nanosleep, CLOCK_REALTIME, 0, piece, NULL); /* musl sleeps by nanosleep(2) */
    return NULL;
}

/* Looks at the thread until it is in the call. */
static struct oribi_os_thread_state state_in(pthread_t thread, const char *call)
{
    struct oribi_os_thread_state state = {0};
    for (int i = 0; i < LOOKS_MAX; i++) {
        (void)oribi_os_thread_look(getpid(), oribi_os_thread_id(thread), &state);
        if (strcmp(state.call, call) == 0 && state.state == 'S')
            break;
        (void)poll(NULL, 0, 1);
    }
    return state;
}

static void check(void *(*body)(void *), const char *call, enum oribi_os_interruption expected)
{
    pthread_t thread;
    atomic_store(&quit, false);
    ok(pthread_create(&thread, NULL, body, NULL) == 0);
    struct oribi_os_thread_state state = state_in(thread, call);
    is_str(state.call, call);
    ok_named(state.interruption == expected, "a signal in %s", call);
    atomic_store(&quit, true);
    ok(write(pair[1], "x", 1) == 1);
    (void)pthread_join(thread, NULL);
}

static void test_what_a_signal_would_do(void)
{
    char byte;
    const struct timeval limit = {.tv_sec = 60};
    ok(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    check(receive, "recv", ORIBI_OS_UNHARMED);
    check(wait_for_input, "poll", ORIBI_OS_REPEATED);
    ok(read(pair[0], &byte, 1) == 1);
    check(rest, "clock_nanosleep", ORIBI_OS_CUT_SHORT);
    ok(read(pair[0], &byte, 1) == 1);
    ok(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    check(receive, "recv", ORIBI_OS_CUT_SHORT);
    oribi_os_close(pair[0]);
    oribi_os_close(pair[1]);
}

static void test_a_thread_that_runs(void)
{
    struct oribi_os_thread_state before;
    struct oribi_os_thread_state after;
    pthread_t thread;
    atomic_store(&quit, false);
    ok(pthread_create(&thread, NULL, spin, NULL) == 0);
    while (!atomic_load(&self_tid))
        (void)poll(NULL, 0, 1);
    ok_eq(oribi_os_thread_id(thread), atomic_load(&self_tid));
    ok_eq(oribi_os_thread_id(pthread_self()), oribi_os_thread_self());
    ok(oribi_os_thread_look(getpid(), oribi_os_thread_id(thread), &before));
    ok(oribi_os_thread_look(getpid(), oribi_os_thread_id(thread), &after));
    ok_eq(before.state, 'R');
    is_str(before.call, "");
    ok_eq(before.interruption, ORIBI_OS_UNHARMED);
    ok(!oribi_os_thread_waited(&before, &after));
    atomic_store(&quit, true);
    (void)pthread_join(thread, NULL);
    /* The kernel tells of the end (CLONE_CHILD_CLEARTID) a moment before the thread is gone from /proc. */
    for (int i = 0; i < 20000 && oribi_os_thread_look(getpid(), atomic_load(&self_tid), &after); i++)
        (void)poll(NULL, 0, 1);
    ok(!oribi_os_thread_look(getpid(), atomic_load(&self_tid), &after));
}

static void test_only_what_waits_all_the_time_has_waited(void)
{
    struct oribi_os_thread_state before = {.state = 'S', .switches = 7};
    struct oribi_os_thread_state after = before;
    ok(oribi_os_thread_waited(&before, &after));
    after.switches = 8;
    ok(!oribi_os_thread_waited(&before, &after));
    after = before;
    after.state = 'R';
    ok(!oribi_os_thread_waited(&before, &after));
}

static void *go_elsewhere(void *self)
{
    char *path = self;
    bool moved = oribi_os_thread_enter_dir("/dev") == 0 && getcwd(path, PATH_MAX);
    return moved && oribi_os_thread_enter_dir("/none") < 0 ? self : NULL;
}

static void test_a_thread_has_a_directory_of_its_own(void)
{
    char before[PATH_MAX];
    char after[PATH_MAX];
    char there[PATH_MAX] = "";
    pthread_t thread;
    void *result = NULL;
    ok(getcwd(before, sizeof(before)) != NULL);
    ok_eq(pthread_create(&thread, NULL, go_elsewhere, there), 0);
    ok_eq(pthread_join(thread, &result), 0);
    ok(result == there && strcmp(there, "/dev") == 0);
    ok(getcwd(after, sizeof(after)) && strcmp(before, after) == 0);
}

int main(void)
{
    test_what_a_signal_would_do();
    test_a_thread_that_runs();
    test_only_what_waits_all_the_time_has_waited();
    test_a_thread_has_a_directory_of_its_own();
    return done_testing();
}
