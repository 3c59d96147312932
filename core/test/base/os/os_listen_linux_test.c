/* Listening sockets: their queue, and how they end. */
#include <stdio.h>
#include <sys/socket.h>

/* Both ways in which os_listen_linux.c looks at a listener call `between_looks` first: what happens then, the look must
 * not miss. */
static void (*between_looks)(void);

static FILE *open_table(const char *path, const char *mode)
{
    if (between_looks)
        between_looks();
    return fopen(path, mode);
}

static int ask_socket(int fd, int level, int name, void *value, socklen_t *len)
{
    if (between_looks)
        between_looks();
    return getsockopt(fd, level, name, value, len);
}

#define fopen      open_table
#define getsockopt ask_socket
#include "base/os/os_listen_linux.c"
#undef fopen
#undef getsockopt

#include "base/loopback.h"
#include "tap.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/un.h>
#include <unistd.h>

static void test_backlog_is_what_the_kernel_says(void)
{
    char line[32];
    ok_eq(oribi_os_read_line("/proc/sys/net/core/somaxconn", line, sizeof(line)), 0);
    ok_eq(oribi_os_backlog_max(), strtol(line, NULL, 10));
}

/* A connection attempt without an answer yet: its descriptor, non-blocking. */
static int begin_to_connect(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno != EINPROGRESS)
        diag("an attempt was answered at once");
    return fd;
}

static int error_of(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);
    struct pollfd wanted = {.fd = fd, .events = POLLOUT};
    if (poll(&wanted, 1, 30000) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        return -1;
    return error;
}

static void test_a_tcp_listener_that_stops_accepting_keeps_its_connections(void)
{
    struct sockaddr_in address;
    int fd = listen_tcp(&address);
    int taken;
    ok(!oribi_os_listen_awaits(fd, true));
    int before = connect_tcp(&address);
    wait_readable(fd);
    ok(oribi_os_listen_awaits(fd, false));
    oribi_os_listen_stop_accepting(fd);
    int late = begin_to_connect(&address);
    ok_eq(oribi_os_accept(fd, &taken, NULL, NULL), 0);
    ok(!oribi_os_listen_awaits(fd, true)); /* the late connection has not begun */
    oribi_os_listen_end(fd);
    ok_eq(error_of(late), ECONNREFUSED); /* at the client's next SYN, a second after the first */
    ok(oribi_os_accept(fd, &taken, NULL, NULL) < 0);
    ok_eq(oribi_os_write(before, "x", 1), 1);
    oribi_os_close(before);
    oribi_os_close(late);
    oribi_os_close(taken);
    oribi_os_close(fd);
}

static void test_connections_that_the_kernel_holds_back_are_seen(void)
{
    struct sockaddr_in address;
    int fd = listen_tcp(&address);
    int taken;
    ok_eq(oribi_os_defer_accept(fd, 1), 0);
    int client = connect_tcp(&address);
    ok(!oribi_os_listen_awaits(fd, false));
    ok(oribi_os_listen_awaits(fd, true));
    oribi_os_listen_stop_accepting(fd);
    ok_eq(oribi_os_write(client, "x", 1), 1);
    wait_readable(fd); /* its first byte completes it, though the listener has stopped accepting */
    ok_eq(oribi_os_accept(fd, &taken, NULL, NULL), 0);
    ok(!oribi_os_listen_awaits(fd, true));
    oribi_os_close(client);
    oribi_os_close(taken);
    oribi_os_close(fd);
}

static struct {
    int listen_fd;
    int client_fd;
    int looks_before; /* so many looks find the connection held back, during the next one it asks */
} moment;

static void ask_at_the_moment(void)
{
    if (moment.looks_before-- == 0 && oribi_os_write(moment.client_fd, "x", 1) == 1)
        wait_readable(moment.listen_fd);
}

/* A connection leaves the table of those held back when it joins the queue. Between two looks it must not be in
 * neither. */
static void test_a_connection_that_asks_between_two_looks_is_seen(void)
{
    struct sockaddr_in address;
    int fd = listen_tcp(&address);
    int taken;
    ok_eq(oribi_os_defer_accept(fd, 1), 0);
    for (int looks = 0; looks < 2; looks++) {
        int client = connect_tcp(&address);
        moment.listen_fd = fd;
        moment.client_fd = client;
        moment.looks_before = looks;
        between_looks = ask_at_the_moment;
        ok_named(oribi_os_listen_awaits(fd, true), "seen though it asked before look %d", looks + 1);
        between_looks = NULL;
        if (moment.looks_before >= 0) /* the first look was enough */
            ok_eq(oribi_os_write(client, "x", 1), 1);
        wait_readable(fd);
        ok_eq(oribi_os_accept(fd, &taken, NULL, NULL), 0);
        oribi_os_close(client);
        oribi_os_close(taken);
    }
    oribi_os_close(fd);
}

static void test_a_unix_listener_that_stops_accepting_refuses_and_keeps_its_queue(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "oribi-os-test-%d", (int)getpid()); /* no file */
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int before = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int late = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int taken;
    ok(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 8) == 0);
    ok_eq(connect(before, (struct sockaddr *)&address, sizeof(address)), 0);
    oribi_os_listen_stop_accepting(fd);
    ok(connect(late, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == ECONNREFUSED);
    oribi_os_listen_end(fd);
    ok_eq(oribi_os_accept(fd, &taken, NULL, NULL), 0);
    ok_eq(oribi_os_accept(fd, &taken, NULL, NULL), ORIBI_AGAIN);
    oribi_os_close(before);
    oribi_os_close(late);
    oribi_os_close(taken);
    oribi_os_close(fd);
}

int main(void)
{
    test_backlog_is_what_the_kernel_says();
    test_a_tcp_listener_that_stops_accepting_keeps_its_connections();
    test_connections_that_the_kernel_holds_back_are_seen();
    test_a_connection_that_asks_between_two_looks_is_seen();
    test_a_unix_listener_that_stops_accepting_refuses_and_keeps_its_queue();
    return done_testing();
}
