/* The model of kqueue, by what FreeBSD's manual page says of it: kqueue(2), whose sections are named. */
#include "oribi/base/os/os.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/event.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int kq;
static int near_fd; /* watched, non-blocking */
static int far_fd;
static int mark;

static void begin(void)
{
    int fds[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        fail("socketpair");
    near_fd = fds[0];
    far_fd = fds[1];
    kq = kqueue();
    ok(kq >= 0);
}

static void end(void)
{
    close(near_fd);
    close(far_fd);
    close(kq);
}

static int change(int fd, int filter, int flags)
{
    struct kevent one;
    EV_SET(&one, (uintptr_t)fd, filter, flags, 0, 0, &mark);
    return kevent(kq, &one, 1, NULL, 0, NULL) < 0 ? errno : 0;
}

/* How many events there are at this moment; the first one in *event. */
static int look(struct kevent *event)
{
    struct kevent events[4] = {{0}};
    const struct timespec now = {0, 0};
    int count = kevent(kq, NULL, 0, events, 4, &now);
    *event = events[0];
    return count;
}

static void say(int fd, const char *text)
{
    ok_eq(write(fd, text, strlen(text)), (long)strlen(text));
}

static void hear(int fd)
{
    char bytes[4096];
    while (read(fd, bytes, sizeof(bytes)) > 0)
        continue;
}

/* EV_CLEAR resets an event that was retrieved. */
static void test_ev_clear_reports_what_is_new(void)
{
    struct kevent event;
    begin();
    say(far_fd, "abc");
    ok_eq(change(near_fd, EVFILT_READ, EV_ADD | EV_CLEAR), 0); /* what is there already is reported */
    ok_eq(look(&event), 1);
    ok_eq((long)event.ident, near_fd);
    ok_eq(event.filter, EVFILT_READ);
    ok_eq(event.data, 3); /* EVFILT_READ: the bytes that can be read */
    ok(event.udata == &mark);
    ok_eq(event.flags & EV_EOF, 0);
    ok_eq(look(&event), 0); /* though nobody has read */
    say(far_fd, "d");
    ok_eq(look(&event), 1);
    ok_eq(event.data, 4);
    end();
}

static void test_without_ev_clear_it_is_reported_until_it_is_read(void)
{
    struct kevent event;
    begin();
    ok_eq(change(near_fd, EVFILT_READ, EV_ADD), 0);
    ok_eq(look(&event), 0);
    say(far_fd, "abc");
    ok_eq(look(&event), 1);
    ok_eq(look(&event), 1);
    hear(near_fd);
    ok_eq(look(&event), 0);
    end();
}

/* The filter is run again for whoever retrieves (DESCRIPTION). */
static void test_what_was_read_meanwhile_is_not_reported(void)
{
    struct kevent event;
    begin();
    ok_eq(change(near_fd, EVFILT_READ, EV_ADD | EV_CLEAR), 0);
    say(far_fd, "abc");
    hear(near_fd);
    ok_eq(look(&event), 0);
    say(far_fd, "d");
    ok_eq(look(&event), 1);
    end();
}

/* EVFILT_READ: EV_EOF may come while bytes are still to be read. */
static void test_the_end_is_told_with_the_last_bytes(void)
{
    struct kevent event;
    begin();
    ok_eq(change(near_fd, EVFILT_READ, EV_ADD | EV_CLEAR), 0);
    say(far_fd, "abc");
    ok_eq(shutdown(far_fd, SHUT_WR), 0);
    ok_eq(look(&event), 1);
    ok(event.flags & EV_EOF);
    ok_eq(event.fflags, 0);
    ok_eq(event.data, 3);
    end();
}

/* EVFILT_WRITE: whether the descriptor takes bytes, which low water decides, and EV_EOF when the reader has gone. */
static void test_room_is_told_apart_from_bytes(void)
{
    struct kevent event;
    char block[4096] = {0};
    begin();
    ok_eq(change(near_fd, EVFILT_READ, EV_ADD | EV_CLEAR), 0);
    ok_eq(change(near_fd, EVFILT_WRITE, EV_ADD | EV_CLEAR), 0);
    ok_eq(look(&event), 1);
    ok_eq(event.filter, EVFILT_WRITE);
    ok_eq(look(&event), 0);
    while (write(near_fd, block, sizeof(block)) > 0)
        continue;
    ok_eq(look(&event), 0);
    say(far_fd, "abc");
    ok_eq(look(&event), 1); /* and not that of writing, which has not changed */
    ok_eq(event.filter, EVFILT_READ);
    hear(far_fd);
    ok_eq(look(&event), 1);
    ok_eq(event.filter, EVFILT_WRITE);
    ok_eq(change(near_fd, EVFILT_WRITE, EV_DELETE), 0);
    close(far_fd);
    far_fd = -1;
    ok_eq(look(&event), 1);
    ok_eq(event.filter, EVFILT_READ);
    ok(event.flags & EV_EOF);
    end();
}

/* ERRORS: ENOENT and EBADF. */
static void test_a_filter_that_is_not_there_cannot_be_changed(void)
{
    struct kevent event;
    begin();
    ok_eq(change(near_fd, EVFILT_READ, EV_DELETE), ENOENT);
    ok_eq(change(near_fd, EVFILT_READ, EV_ENABLE), ENOENT);
    ok_eq(change(near_fd, EVFILT_READ, EV_ADD | EV_CLEAR), 0);
    ok_eq(change(near_fd, EVFILT_READ, EV_ENABLE), 0);
    ok_eq(change(near_fd, EVFILT_READ, EV_DELETE), 0);
    ok_eq(change(near_fd, EVFILT_READ, EV_DELETE), ENOENT);
    say(far_fd, "abc");
    ok_eq(look(&event), 0);
    end();
    ok_eq(change(near_fd, EVFILT_READ, EV_ADD), EBADF);
}

/* DESCRIPTION: close(2) removes what refers to the descriptor, though the file is open under another number. */
static void test_a_filter_ends_with_its_descriptor(void)
{
    struct kevent event;
    begin();
    ok_eq(change(near_fd, EVFILT_READ, EV_ADD), 0);
    int copy = fcntl(near_fd, F_DUPFD_CLOEXEC, 3);
    close(near_fd);
    say(far_fd, "abc");
    ok_eq(look(&event), 0);
    ok_eq(dup2(copy, near_fd), near_fd);
    ok_eq(change(near_fd, EVFILT_READ, EV_DELETE), ENOENT);
    close(copy);
    end();
}

/* EVFILT_READ: of sockets that listen, while a connection waits. */
static void test_a_listener_is_reported_while_connections_wait(void)
{
    struct kevent event;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    begin();
    int listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok(bind(listen_fd, (struct sockaddr *)&address, len) == 0 && listen(listen_fd, 8) == 0);
    ok_eq(getsockname(listen_fd, (struct sockaddr *)&address, &len), 0);
    ok_eq(change(listen_fd, EVFILT_READ, EV_ADD), 0);
    ok_eq(look(&event), 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ok_eq(connect(client, (struct sockaddr *)&address, len), 0);
    ok_eq(look(&event), 1);
    ok_eq(look(&event), 1);
    int fd = accept(listen_fd, NULL, NULL);
    ok_eq(look(&event), 0);
    close(fd);
    close(client);
    close(listen_fd);
    end();
}

/* DESCRIPTION, of fork(2). */
static void test_a_child_has_no_kqueue(void)
{
    struct kevent event;
    begin();
    ok_eq(change(near_fd, EVFILT_READ, EV_ADD), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct kevent none;
        _exit(look(&none) < 0 && errno == EBADF ? 7 : 1);
    }
    int status = -1;
    ok_eq(waitpid(pid, &status, 0), pid);
    ok_eq(WEXITSTATUS(status), 7);
    say(far_fd, "abc");
    ok_eq(look(&event), 1); /* the parent's is what it was */
    end();
}

int main(void)
{
    test_ev_clear_reports_what_is_new();
    test_without_ev_clear_it_is_reported_until_it_is_read();
    test_what_was_read_meanwhile_is_not_reported();
    test_the_end_is_told_with_the_last_bytes();
    test_room_is_told_apart_from_bytes();
    test_a_filter_that_is_not_there_cannot_be_changed();
    test_a_filter_ends_with_its_descriptor();
    test_a_listener_is_reported_while_connections_wait();
    test_a_child_has_no_kqueue();
    return done_testing();
}
