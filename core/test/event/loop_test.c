/* Readiness sources: every test runs once for each of them, because nothing above the loop may notice which one it
 * has. */
#include "event/loop.c"

#include "oribi/base/os/os.h"
#include "tap.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static enum oribi_loop_source source;

struct pair {
    int near; /* watched, non-blocking */
    int far;
};

static struct pair open_pair(void)
{
    int fds[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        fail("socketpair");
    return (struct pair){fds[0], fds[1]};
}

static void close_pair(struct pair *pair)
{
    oribi_os_close(pair->near);
    oribi_os_close(pair->far);
}

static struct oribi_loop *open_loop(void)
{
    struct oribi_loop *loop = NULL;
    ok_eq(oribi_loop_create(source, &loop), 0);
    ok(loop->ops == (source == ORIBI_LOOP_POLL ? &oribi__loop_poll : oribi__loop_native));
    return loop;
}

/* Polls until nothing new is reported; true if `watch` was among it with these bits. */
static bool told(struct oribi_loop *loop, struct oribi_watch *watch, uint8_t bits)
{
    struct oribi_event events[8];
    bool seen = false;
    int count = oribi_loop_poll(loop, 0, events, 8);
    for (int i = 0; i < count; i++)
        seen |= events[i].watch == watch && (watch->ready & bits) == bits;
    return seen;
}

static void test_readiness_is_remembered_until_the_owner_clears_it(void)
{
    struct oribi_loop *loop = open_loop();
    struct pair pair = open_pair();
    struct oribi_watch watch = {0};
    ok_eq(oribi_loop_add(loop, &watch, pair.near, ORIBI_WATCH_STREAM, ORIBI_READ), 0);
    (void)told(loop, &watch, 0); /* epoll tells of room to write once */
    ok(!told(loop, &watch, ORIBI_READ));
    ok_eq(write(pair.far, "x", 1), 1);
    ok(told(loop, &watch, ORIBI_READ));
    (void)told(loop, &watch, 0);
    ok(watch.ready & ORIBI_READ);
    char byte;
    ok_eq(read(pair.near, &byte, 1), 1);
    watch.ready &= (uint8_t)~ORIBI_READ;
    ok(!told(loop, &watch, ORIBI_READ));
    ok_eq(write(pair.far, "y", 1), 1);
    ok(told(loop, &watch, ORIBI_READ));
    oribi_loop_remove(loop, &watch);
    close_pair(&pair);
    oribi_loop_destroy(loop);
}

/* Bytes that come while the owner is not interested are not lost: either the bit is remembered, or the source reports
 * them when the interest is back. */
static void test_no_wakeup_is_lost_while_interest_is_off(void)
{
    struct oribi_loop *loop = open_loop();
    struct pair pair = open_pair();
    struct oribi_watch watch = {0};
    ok_eq(oribi_loop_add(loop, &watch, pair.near, ORIBI_WATCH_STREAM, ORIBI_READ), 0);
    (void)told(loop, &watch, 0);
    oribi_loop_interest(loop, &watch, 0);
    ok_eq(write(pair.far, "x", 1), 1);
    ok(!told(loop, &watch, 0));
    oribi_loop_interest(loop, &watch, ORIBI_READ);
    ok((watch.ready & ORIBI_READ) || told(loop, &watch, ORIBI_READ));
    oribi_loop_remove(loop, &watch);
    close_pair(&pair);
    oribi_loop_destroy(loop);
}

static void fill(int fd)
{
    char block[4096] = {0};
    while (write(fd, block, sizeof(block)) > 0)
        continue;
}

static void drain(int fd)
{
    char block[4096];
    while (read(fd, block, sizeof(block)) > 0)
        continue;
}

static void test_room_to_write_is_reported_after_a_full_socket_drains(void)
{
    struct oribi_loop *loop = open_loop();
    struct pair pair = open_pair();
    struct oribi_watch watch = {0};
    ok_eq(oribi_loop_add(loop, &watch, pair.near, ORIBI_WATCH_STREAM, ORIBI_READ), 0);
    (void)told(loop, &watch, 0);
    fill(pair.near);
    watch.ready = 0;
    oribi_loop_interest(loop, &watch, ORIBI_WRITE);
    ok(!told(loop, &watch, ORIBI_WRITE));
    drain(pair.far);
    ok((watch.ready & ORIBI_WRITE) || told(loop, &watch, ORIBI_WRITE));
    oribi_loop_remove(loop, &watch);
    close_pair(&pair);
    oribi_loop_destroy(loop);
}

/* A unix socket reports room to its epoll whenever the peer has read: that must not wake an owner that has nothing to
 * write. */
static void test_a_peer_that_reads_wakes_only_watches_interested_in_writing(void)
{
    struct oribi_loop *loop = open_loop();
    struct pair pair = open_pair();
    struct oribi_watch watch = {0};
    struct pollfd native = {.fd = oribi_loop_fd(loop), .events = POLLIN};
    ok_eq(oribi_loop_add(loop, &watch, pair.near, ORIBI_WATCH_STREAM, ORIBI_READ), 0);
    (void)told(loop, &watch, 0);
    for (int flushes = 0; flushes < 2; flushes++) {
        ok_eq(write(pair.near, "answer", 6), 6);
        drain(pair.far);
        ok_eq(poll(&native, 1, 0), 0);
        fill(pair.near);
        watch.ready = 0;
        oribi_loop_interest(loop, &watch, ORIBI_WRITE);
        drain(pair.far);
        ok(told(loop, &watch, ORIBI_WRITE));
        watch.ready = 0;
        oribi_loop_interest(loop, &watch, ORIBI_READ);
        (void)told(loop, &watch, 0);
    }
    oribi_loop_remove(loop, &watch);
    close_pair(&pair);
    oribi_loop_destroy(loop);
}

static void test_end_of_stream_makes_readable(void)
{
    struct oribi_loop *loop = open_loop();
    struct pair pair = open_pair();
    struct oribi_watch watch = {0};
    ok_eq(oribi_loop_add(loop, &watch, pair.near, ORIBI_WATCH_STREAM, ORIBI_READ), 0);
    (void)told(loop, &watch, 0);
    ok_eq(shutdown(pair.far, SHUT_WR), 0);
    ok(told(loop, &watch, ORIBI_READ));
    oribi_loop_remove(loop, &watch);
    close_pair(&pair);
    oribi_loop_destroy(loop);
}

static void test_a_peer_that_is_gone_hangs_up_and_does_not_spin_unwanted(void)
{
    struct oribi_loop *loop = open_loop();
    struct pair pair = open_pair();
    struct oribi_watch watch = {0};
    ok_eq(oribi_loop_add(loop, &watch, pair.near, ORIBI_WATCH_STREAM, ORIBI_READ), 0);
    (void)told(loop, &watch, 0);
    oribi_os_close(pair.far);
    pair.far = -1;
    ok(told(loop, &watch, ORIBI_READ | ORIBI_HANGUP));
    oribi_loop_interest(loop, &watch, 0);
    struct oribi_event events[8];
    (void)oribi_loop_poll(loop, 0, events, 8);
    ok_eq(oribi_loop_poll(loop, 0, events, 8), 0);
    oribi_loop_remove(loop, &watch);
    close_pair(&pair);
    oribi_loop_destroy(loop);
}

static void test_wake_descriptor_is_reported_until_it_is_cleared(void)
{
    struct oribi_loop *loop = open_loop();
    struct oribi_wake wake;
    struct oribi_watch watch = {0};
    ok_eq(oribi_wake_create(&wake), 0);
    ok_eq(oribi_loop_add(loop, &watch, wake.read_fd, ORIBI_WATCH_SIGNAL, ORIBI_READ), 0);
    ok(!told(loop, &watch, ORIBI_READ));
    oribi_wake_notify(&wake);
    oribi_wake_notify(&wake);
    ok(told(loop, &watch, ORIBI_READ));
    ok(told(loop, &watch, ORIBI_READ));
    ok(oribi_wake_clear(&wake));
    watch.ready = 0;
    ok(!told(loop, &watch, ORIBI_READ));
    oribi_loop_remove(loop, &watch);
    oribi_wake_destroy(&wake);
    oribi_loop_destroy(loop);
}

static int listen_on_loopback(struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(*address);
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *)address, len) < 0 || listen(fd, 16) < 0 ||
        getsockname(fd, (struct sockaddr *)address, &len) < 0)
        fail("listen");
    return fd;
}

static int connect_to(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        fail("connect");
    return fd;
}

static void test_listener_is_reported_as_long_as_connections_wait_also_after_rotation(void)
{
    struct oribi_loop *loop = open_loop();
    struct sockaddr_in address;
    int listen_fd = listen_on_loopback(&address);
    struct oribi_watch watch = {0};
    ok_eq(oribi_loop_add(loop, &watch, listen_fd, ORIBI_WATCH_LISTENER, ORIBI_READ), 0);
    ok(!told(loop, &watch, ORIBI_READ));
    int client = connect_to(&address);
    ok(told(loop, &watch, ORIBI_READ));
    ok(told(loop, &watch, ORIBI_READ));
    oribi_loop_rotate(loop, &watch);
    ok(watch.added);
    ok(told(loop, &watch, ORIBI_READ));
    int fd;
    ok_eq(oribi_os_accept(listen_fd, &fd, NULL, NULL), 0);
    watch.ready = 0;
    ok(!told(loop, &watch, ORIBI_READ));
    oribi_loop_remove(loop, &watch);
    oribi_os_close(fd);
    oribi_os_close(client);
    oribi_os_close(listen_fd);
    oribi_loop_destroy(loop);
}

/* Two loops sleep on one listener, as two workers do: one connection wakes one of them (epoll only: the others
 * wake all). */
static void test_one_connection_wakes_one_exclusive_sleeper(void)
{
    if (source != ORIBI_LOOP_NATIVE || oribi__loop_native->wakes_all)
        return;
    struct sockaddr_in address;
    int listen_fd = listen_on_loopback(&address);
    int report[2];
    ok_eq(pipe2(report, O_CLOEXEC), 0);
    int go[2];
    ok_eq(pipe2(go, O_CLOEXEC), 0);
    pid_t pids[2];
    for (int i = 0; i < 2; i++) {
        pids[i] = fork();
        if (pids[i] > 0)
            continue;
        struct oribi_loop *loop;
        struct oribi_watch listener = {0};
        struct oribi_watch end = {0};
        oribi_os_close(go[1]);
        if (oribi_loop_create(source, &loop) < 0 ||
            oribi_loop_add(loop, &listener, listen_fd, ORIBI_WATCH_LISTENER, ORIBI_READ) < 0 ||
            oribi_loop_add(loop, &end, go[0], ORIBI_WATCH_SIGNAL, ORIBI_READ) < 0 || write(report[1], "r", 1) != 1)
            _exit(1);
        struct oribi_event events[2];
        int count = oribi_loop_poll(loop, 10000, events, 2);
        bool woken = false;
        for (int e = 0; e < count; e++)
            woken |= events[e].watch == &listener;
        _exit(write(report[1], woken ? "w" : "-", 1) == 1 ? 0 : 1);
    }
    oribi_os_close(go[0]);
    char seen[4] = "";
    for (int i = 0; i < 2; i++)
        ok_eq(read(report[0], seen + i, 1), 1);
    int client = connect_to(&address);
    ok_eq(read(report[0], seen + 2, 1), 1);
    ok_eq(seen[2], 'w');
    /* The other one is asleep or, if it had not yet fallen asleep, saw the listener too: which is no wake-up. Ask it
     * to end. */
    oribi_os_close(go[1]);
    ok_eq(read(report[0], seen + 3, 1), 1);
    for (int i = 0; i < 2; i++) {
        int status = -1;
        ok_eq(waitpid(pids[i], &status, 0), pids[i]);
        ok_eq(status, 0);
    }
    oribi_os_close(report[0]);
    oribi_os_close(report[1]);
    oribi_os_close(client);
    oribi_os_close(listen_fd);
}

enum { MANY = ORIBI_LOOP_EVENTS_MAX + 44 };

/* More ready descriptors than one batch holds: each is told of within a few polls, and none twice before another had
 * its turn. */
static void test_more_descriptors_than_one_batch(void)
{
    struct oribi_loop *loop = open_loop();
    static struct pair pairs[MANY];
    static struct oribi_watch watches[MANY];
    static struct oribi_event events[ORIBI_LOOP_EVENTS_MAX];
    static bool seen[MANY];
    memset(watches, 0, sizeof(watches));
    memset(seen, 0, sizeof(seen));
    int added = 0;
    for (int i = 0; i < MANY; i++) {
        pairs[i] = open_pair();
        added += oribi_loop_add(loop, &watches[i], pairs[i].near, ORIBI_WATCH_STREAM, ORIBI_READ) == 0;
        if (write(pairs[i].far, "x", 1) != 1)
            fail("write");
    }
    ok_eq(added, MANY);
    int found = 0;
    for (int round = 0; round < 2; round++) {
        int count = oribi_loop_poll(loop, 0, events, ORIBI_LOOP_EVENTS_MAX);
        ok(count <= ORIBI_LOOP_EVENTS_MAX);
        for (int i = 0; i < count; i++) {
            ptrdiff_t at = events[i].watch - watches;
            found += !seen[at];
            seen[at] = true;
        }
    }
    ok_eq(found, MANY);
    for (int i = 0; i < MANY; i++) {
        oribi_loop_remove(loop, &watches[i]);
        close_pair(&pairs[i]);
    }
    ok_eq(oribi_loop_poll(loop, 0, events, ORIBI_LOOP_EVENTS_MAX), 0);
    oribi_loop_destroy(loop);
}

/* Removing out of order moves entries of the poll source about; the rest must still be reported under its own name. */
static void test_removing_one_leaves_the_others(void)
{
    struct oribi_loop *loop = open_loop();
    struct pair pairs[3];
    struct oribi_watch watches[3] = {{0}};
    for (int i = 0; i < 3; i++) {
        pairs[i] = open_pair();
        ok_eq(oribi_loop_add(loop, &watches[i], pairs[i].near, ORIBI_WATCH_STREAM, ORIBI_READ), 0);
    }
    oribi_loop_remove(loop, &watches[0]);
    oribi_loop_remove(loop, &watches[0]); /* twice does no harm */
    oribi_loop_interest(loop, &watches[0], ORIBI_WRITE);
    ok_eq(write(pairs[0].far, "x", 1), 1);
    ok_eq(write(pairs[2].far, "x", 1), 1);
    struct oribi_event events[8];
    int count = oribi_loop_poll(loop, 0, events, 8);
    bool third = false;
    for (int i = 0; i < count; i++) {
        ok(events[i].watch != &watches[0]);
        third |= events[i].watch == &watches[2] && (events[i].ready & ORIBI_READ);
    }
    ok(third);
    for (int i = 0; i < 3; i++) {
        oribi_loop_remove(loop, &watches[i]);
        close_pair(&pairs[i]);
    }
    oribi_loop_destroy(loop);
}

static void test_time_out_gives_nothing(void)
{
    struct oribi_loop *loop = open_loop();
    struct oribi_event events[2];
    ok_eq(oribi_loop_poll(loop, 1, events, 2), 0);
    oribi_loop_destroy(loop);
}

static void test_a_watch_whose_number_is_anothers_is_not_held(void)
{
    struct oribi_loop *loop = open_loop();
    struct pair pair = open_pair();
    struct oribi_watch watch = {0};
    ok_eq(oribi_loop_add(loop, &watch, pair.near, ORIBI_WATCH_STREAM, ORIBI_READ), 0);
    ok(oribi_loop_holds(loop, &watch));
    ok(oribi_loop_remove(loop, &watch));
    ok(oribi_loop_remove(loop, &watch)); /* nothing is watched: nothing is lost */
    ok_eq(oribi_loop_add(loop, &watch, pair.near, ORIBI_WATCH_STREAM, ORIBI_READ), 0);
    int copy = oribi_os_dup(pair.near); /* keeps the open file, and with it what the kernel knows */
    close(pair.near);
    ok(!oribi_loop_holds(loop, &watch));
    ok_eq(dup2(pair.far, pair.near), pair.near);
    ok(!oribi_loop_holds(loop, &watch));
    ok(!oribi_loop_remove(loop, &watch));
    ok(!oribi_loop_lost(loop));
    oribi_os_close(copy);
    close_pair(&pair);
    oribi_loop_destroy(loop);
}

static int events_of(struct oribi_loop *loop, struct oribi_watch *watch)
{
    struct oribi_event events[8];
    int count = oribi_loop_poll(loop, 0, events, 8);
    ok(count == 0 || (count == 1 && events[0].watch == watch));
    return count;
}

/* A number that the application has given to a socket of its own, with bytes in it. A stream is told of once at most,
 * and then as lost; the other kinds are not told of. */
static void test_another_file_under_a_number_is_not_told_of(void)
{
    static const enum oribi_watch_kind kinds[] = {ORIBI_WATCH_STREAM, ORIBI_WATCH_LISTENER, ORIBI_WATCH_SIGNAL};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct oribi_loop *loop = open_loop();
        struct pair pair = open_pair();
        struct pair others = open_pair();
        struct oribi_watch watch = {0};
        ok_eq(oribi_loop_add(loop, &watch, pair.near, kinds[i], ORIBI_READ), 0);
        (void)told(loop, &watch, 0);
        ok_eq(dup2(others.near, pair.near), pair.near);
        ok_eq(write(others.far, "x", 1), 1);
        int count = events_of(loop, &watch);
        ok(count == 0 || (kinds[i] == ORIBI_WATCH_STREAM && watch.lost));
        oribi_loop_interest(loop, &watch, 0);
        oribi_loop_interest(loop, &watch, ORIBI_READ);
        ok_eq(events_of(loop, &watch), 0);
        ok(!oribi_loop_remove(loop, &watch));
        ok_eq(oribi_loop_add(loop, &watch, pair.near, kinds[i], ORIBI_READ), 0); /* now it is meant */
        ok(told(loop, &watch, ORIBI_READ));
        ok(!watch.lost);
        ok(oribi_loop_remove(loop, &watch));
        close_pair(&others);
        close_pair(&pair);
        oribi_loop_destroy(loop);
    }
}

/* Closed, or another file: waiting on it fails at once, which must not pass for silence. */
static void test_a_loop_without_its_descriptor_is_lost(void)
{
    for (int other = 0; other < 2; other++) {
        struct oribi_event events[8];
        struct oribi_loop *loop = open_loop();
        struct pair pair = open_pair();
        int fd = oribi_loop_fd(loop);
        ok_eq(oribi_loop_poll(loop, 0, events, 8), 0);
        ok(!oribi_loop_lost(loop));
        if (other)
            ok_eq(dup2(pair.near, fd), fd);
        else
            close(fd);
        oribi_loop_sleep(loop, -1);
        ok(oribi_loop_lost(loop));
        ok_eq(oribi_loop_collect(loop, events, 8), 0);
        ok_eq(oribi_loop_poll(loop, -1, events, 8), 0);
        close_pair(&pair);
        oribi_loop_destroy(loop);
    }
}

static void test_environment_chooses_poll(void)
{
    struct oribi_loop *loop;
    setenv("ORIBI_EVENT_SOURCE", "poll", 1);
    ok_eq(oribi_loop_create(ORIBI_LOOP_BEST, &loop), 0);
    ok(loop->ops == &oribi__loop_poll);
    ok_eq(oribi_loop_fd(loop), -1);
    oribi_loop_destroy(loop);
    unsetenv("ORIBI_EVENT_SOURCE");
    ok_eq(oribi_loop_create(ORIBI_LOOP_BEST, &loop), 0);
    ok(loop->ops == (oribi__loop_native ? oribi__loop_native : &oribi__loop_poll));
    oribi_loop_destroy(loop);
}

static void run_all(enum oribi_loop_source with)
{
    source = with;
    test_readiness_is_remembered_until_the_owner_clears_it();
    test_no_wakeup_is_lost_while_interest_is_off();
    test_room_to_write_is_reported_after_a_full_socket_drains();
    test_a_peer_that_reads_wakes_only_watches_interested_in_writing();
    test_end_of_stream_makes_readable();
    test_a_peer_that_is_gone_hangs_up_and_does_not_spin_unwanted();
    test_wake_descriptor_is_reported_until_it_is_cleared();
    test_listener_is_reported_as_long_as_connections_wait_also_after_rotation();
    test_one_connection_wakes_one_exclusive_sleeper();
    test_more_descriptors_than_one_batch();
    test_removing_one_leaves_the_others();
    test_time_out_gives_nothing();
    test_a_watch_whose_number_is_anothers_is_not_held();
    test_another_file_under_a_number_is_not_told_of();
    if (source == ORIBI_LOOP_NATIVE)
        test_a_loop_without_its_descriptor_is_lost();
}

int main(void)
{
    if (oribi__loop_native)
        run_all(ORIBI_LOOP_NATIVE);
    run_all(ORIBI_LOOP_POLL);
    test_environment_chooses_poll();
    return done_testing();
}
