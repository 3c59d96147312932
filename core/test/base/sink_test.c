/* Sinks: a log of any kind is written to without waiting, and no other process's descriptor changes. */
#include "base/sink.c"

#include "child.h"
#include "tap.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>

static char block[65536];

/* Writes lines of n bytes until there is no room. Returns how many, -1 for another failure. */
static int fill(struct oribi_sink *sink, size_t n)
{
    int count = 0;
    ssize_t sent;
    memset(block, 'x', n - 1);
    block[n - 1] = '\n';
    while ((sent = oribi_sink_write(sink, block, n)) == (ssize_t)n)
        count++;
    return sent == ORIBI_AGAIN || sent > 0 ? count : -1;
}

static size_t read_some(int fd, size_t max)
{
    ssize_t n = read(fd, block, max);
    return n > 0 ? (size_t)n : 0;
}

static int fill_and_go_on(void *data)
{
    struct oribi_sink *sink = data;
    return fill(sink, 100) > 0 && fill(sink, 1) >= 0 && oribi_sink_write(sink, "x", 1) == ORIBI_AGAIN ? 0 : 1;
}

/* Does this system give an open file of our own for a pipe? */
static bool has_own(void)
{
    int ends[2];
    int own;
    bool has = pipe2(ends, O_CLOEXEC) == 0 && oribi_os_open_again(ends[1], &own) == 0;
    if (has)
        close(own);
    close(ends[0]);
    close(ends[1]);
    return has;
}

static void check_pipe(enum oribi_sink_way way)
{
    int ends[2];
    struct oribi_sink sink;
    if (pipe2(ends, O_CLOEXEC) < 0)
        exit(2);
    oribi_sink_open(&sink, oribi_os_dup(ends[1]));
    ok_eq(sink.way, has_own() ? ORIBI_SINK_OWN : ORIBI_SINK_POLL);
    if (way != ORIBI_SINK_OWN) { /* as where the pipe may not be opened again */
        oribi_sink_close(&sink);
        sink.fd = oribi_os_dup(ends[1]);
        sink.way = way;
        oribi_os_mark(sink.fd, &sink.mark);
    }
    ok(sink.fd > 2 && (fcntl(sink.fd, F_GETFD) & FD_CLOEXEC));
    ok(oribi_sink_intact(&sink));
    ok_named(child_code(fill_and_go_on, &sink) == 0, "way %d does not wait", way);
    ok_eq(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0); /* what the shell shares with us */
    while (poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, 1, 0) > 0)
        (void)read_some(ends[0], sizeof(block));
    ok_eq(oribi_sink_write(&sink, "room again\n", 11), 11);
    ok_eq(read_some(ends[0], sizeof(block)), 11);
    ok(memcmp(block, "room again\n", 11) == 0);
    ok(oribi_sink_intact(&sink));
    oribi_sink_close(&sink);
    close(ends[0]);
    close(ends[1]);
}

static void test_a_full_pipe_is_no_wait(void)
{
    check_pipe(ORIBI_SINK_OWN);
    check_pipe(ORIBI_SINK_POLL);
    if (oribi_os_can_splice())
        check_pipe(ORIBI_SINK_SPLICE);
}

struct writers {
    int ends[2];
    enum oribi_sink_way way;
};

/* Lines of its own letter, in lengths around what a page holds. */
static int write_lines(void *data)
{
    enum { LINES = 3000 };
    struct writers *writers = data;
    struct oribi_sink sink;
    char line[PIPE_BUF];
    oribi_sink_open(&sink, oribi_os_dup(writers->ends[1]));
    if (writers->way == ORIBI_SINK_SPLICE) {
        oribi_sink_close(&sink);
        sink.fd = oribi_os_dup(writers->ends[1]);
        sink.way = ORIBI_SINK_SPLICE;
    }
    memset(line, 'a' + getpid() % 26, sizeof(line));
    for (int i = 0; i < LINES; i++) {
        size_t n = 2 + (size_t)(i * 37) % (PIPE_BUF - 1);
        line[n - 1] = '\n';
        ssize_t sent = oribi_sink_write(&sink, line, n);
        line[n - 1] = line[0];
        if (sent != (ssize_t)n && sent != ORIBI_AGAIN)
            return 1;
    }
    return 0;
}

/* Four processes write into a pipe whose reader reads for a while and then never again: one takes the last room,
 * and the others do not wait. Lines of up to PIPE_BUF bytes stay whole. */
static int share_pipe(void *data)
{
    struct writers *writers = data;
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            _exit(write_lines(writers));
    }
    char previous = '\n';
    struct pollfd readable = {.fd = writers->ends[0], .events = POLLIN};
    for (int i = 0; i < 2000 && poll(&readable, 1, 100) > 0; i++) {
        size_t n = read_some(writers->ends[0], 777);
        for (size_t k = 0; k < n; k++) {
            if (block[k] != '\n' && previous != '\n' && block[k] != previous)
                return 2;
            previous = block[k];
        }
    }
    for (int i = 0; i < 4; i++) {
        int status;
        if (waitpid(pids[i], &status, 0) != pids[i] || status != 0)
            return 3;
    }
    return 0;
}

static void test_processes_that_share_a_pipe_do_not_wait_for_one_another(void)
{
    static const enum oribi_sink_way ways[] = {ORIBI_SINK_OWN, ORIBI_SINK_SPLICE};
    for (int i = 0; i < 2; i++) {
        struct writers writers = {.way = ways[i]};
        if ((ways[i] == ORIBI_SINK_SPLICE && !oribi_os_can_splice()) || (ways[i] == ORIBI_SINK_OWN && !has_own()) ||
            pipe2(writers.ends, O_CLOEXEC) < 0)
            continue;
        ok_named(child_code(share_pipe, &writers) == 0, "way %d", ways[i]);
        close(writers.ends[0]);
        close(writers.ends[1]);
    }
}

static int open_as_another_user(void *data)
{
    int *ends = data;
    struct oribi_sink sink;
    if (geteuid() == 0 && setuid(65534) < 0)
        return 77;
    if (geteuid() == 0)
        return 77;
    oribi_sink_open(&sink, oribi_os_dup(ends[1]));
    if (sink.way != ORIBI_SINK_SPLICE && sink.way != ORIBI_SINK_POLL)
        return 1;
    return fill(&sink, 100) > 0 ? 0 : 2;
}

/* A pipe that root has made for a program that runs as another user (runit, supervisord, sudo): it cannot be opened
 * again. */
static void test_a_pipe_of_another_user(void)
{
    int ends[2];
    if (geteuid() != 0) {
        pass("not root: there is no other user to play");
        return;
    }
    if (pipe2(ends, O_CLOEXEC) < 0)
        exit(2);
    ok_eq(child_code(open_as_another_user, ends), 0);
    close(ends[0]);
    close(ends[1]);
}

static void test_a_full_socket_is_no_wait(void)
{
    int ends[2];
    struct oribi_sink sink;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        exit(2);
    oribi_sink_open(&sink, oribi_os_dup(ends[1]));
    ok_eq(sink.way, ORIBI_SINK_SOCKET);
    ok_eq(child_code(fill_and_go_on, &sink), 0);
    ok_eq(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    oribi_sink_close(&sink);
    close(ends[0]);
    close(ends[1]);
}

/* A terminal whose user has pressed ^S. */
static void test_a_stopped_terminal_is_no_wait(void)
{
    struct oribi_sink sink;
    int leader = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    int follower = -1;
    if (leader >= 0 && grantpt(leader) == 0 && unlockpt(leader) == 0)
        follower = open(ptsname(leader), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (follower < 0) {
        pass("no terminals here");
        return;
    }
    oribi_sink_open(&sink, oribi_os_dup(follower));
    ok_eq(oribi_sink_write(&sink, "hello\n", 6), 6);
    ok_eq(tcflow(follower, TCOOFF), 0);
    ok(child_code(fill_and_go_on, &sink) <= 1); /* whether it takes some or nothing: it is back */
    ok_eq(fcntl(follower, F_GETFL) & O_NONBLOCK, 0);
    oribi_sink_close(&sink);
    close(follower);
    close(leader);
}

static void test_files_are_written_as_they_are(void)
{
    char path[] = "/tmp/oribi-sink-XXXXXX";
    struct oribi_sink sink;
    int fd = mkostemp(path, O_CLOEXEC);
    oribi_sink_open(&sink, fd);
    ok_eq(sink.way, ORIBI_SINK_FILE);
    ok_eq(sink.fd, fd);
    ok_eq(oribi_sink_write(&sink, block, sizeof(block)), (long long)sizeof(block));
    ok_eq(oribi_sink_piece(&sink, block, sizeof(block)), sizeof(block));
    oribi_sink_close(&sink);
    ok(fcntl(fd, F_GETFD) < 0);
    oribi_sink_open(&sink, oribi_os_dup(open("/dev/null", O_WRONLY | O_CLOEXEC)));
    ok_eq(oribi_sink_write(&sink, "x\n", 2), 2);
    oribi_sink_close(&sink);
    oribi_sink_open(&sink, -1);
    ok(oribi_sink_write(&sink, "x\n", 2) < 0);
    ok(oribi_sink_intact(&sink));
    oribi_sink_close(&sink);
    unlink(path);
}

static void test_pieces_end_with_a_line_and_fit(void)
{
    struct oribi_sink pipe_sink = {.fd = -1, .way = ORIBI_SINK_OWN, .via = {-1, -1}};
    memset(block, 'x', sizeof(block));
    ok_eq(oribi_sink_piece(&pipe_sink, block, PIPE_BUF), PIPE_BUF);
    ok_eq(oribi_sink_piece(&pipe_sink, block, PIPE_BUF + 1), PIPE_BUF); /* a longer line goes in parts */
    block[10] = block[100] = block[PIPE_BUF] = '\n';
    ok_eq(oribi_sink_piece(&pipe_sink, block, PIPE_BUF + 1), 101);
    block[PIPE_BUF - 1] = '\n';
    ok_eq(oribi_sink_piece(&pipe_sink, block, sizeof(block)), PIPE_BUF);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    test_a_full_pipe_is_no_wait();
    test_processes_that_share_a_pipe_do_not_wait_for_one_another();
    test_a_pipe_of_another_user();
    test_a_full_socket_is_no_wait();
    test_a_stopped_terminal_is_no_wait();
    test_files_are_written_as_they_are();
    test_pieces_end_with_a_line_and_fit();
    return done_testing();
}
