/* Calls that Linux and each BSD have of their own, made of POSIX alone; os_bsd.c has those of the BSDs. */
#include "oribi/base/os/os.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os_process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const char *oribi_os_layer(void)
{
    return "portable";
}

bool oribi_os_forks_safely(void)
{
    return true;
}

int oribi__os_started(bool environment, struct oribi_buf *out)
{
    return oribi__os_read_proc(environment, out);
}

/* --- descriptors: between the call and its flag another thread's fork and exec may pass them on --- */

static int flagged(int fd, bool nonblock)
{
    int code = oribi_os_set_cloexec(fd, true);
    if (code == 0 && nonblock)
        code = oribi_os_set_nonblock(fd, true);
    if (code < 0)
        oribi_os_close(fd);
    return code < 0 ? code : fd;
}

/* Takes the result of oribi_os_lift_pair(). */
static int flagged_pair(int made, bool nonblock, int fds[2])
{
    if (made < 0)
        return oribi_os_fail();
    for (int i = 0; i < 2; i++) {
        int code = flagged(fds[i], nonblock);
        if (code < 0) {
            oribi_os_close(fds[1 - i]);
            return code;
        }
    }
    return 0;
}

int oribi_os_socket(int family, int type, bool nonblock)
{
    int fd = oribi_os_lift(socket(family, type, 0));
    return fd < 0 ? oribi_os_fail() : flagged(fd, nonblock);
}

int oribi_os_socket_pair(int type, bool nonblock, int fds[2])
{
    return flagged_pair(oribi_os_lift_pair(socketpair(AF_UNIX, type, 0, fds), fds), nonblock, fds);
}

int oribi_os_pipe(int fds[2])
{
    return flagged_pair(oribi_os_lift_pair(pipe(fds), fds), true, fds);
}

/* POSIX has ECONNABORTED for a connection that is gone; systems also give what is pending on it. */
int oribi_os_accept(int listen_fd, int *fd, struct sockaddr_storage *peer, socklen_t *peer_len)
{
    for (;;) {
        socklen_t len = sizeof(*peer);
        int got = oribi_os_lift(accept(listen_fd, (struct sockaddr *)peer, peer ? &len : NULL));
        if (got >= 0) {
            got = flagged(got, true);
            if (got < 0)
                return got;
            *fd = got;
            if (peer)
                *peer_len = len;
            return 0;
        }
        switch (errno) {
        case EINTR:
            continue;
        case EPROTO:
        case EPERM:
        case ENETDOWN:
        case ENETUNREACH:
        case EHOSTUNREACH:
        case ENOPROTOOPT:
            (void)oribi_os_fail();
            return ORIBI_ECLOSED;
        default:
            return oribi_os_fail();
        }
    }
}

ssize_t oribi_os_receive(int socket_fd, struct msghdr *message)
{
    for (;;) {
        ssize_t got = recvmsg(socket_fd, message, MSG_DONTWAIT);
        if (got >= 0) {
            oribi__os_flag_passed(message);
            return got;
        }
        if (errno != EINTR)
            return oribi_os_fail();
    }
}

/* Every system whose POSIX goes this far has them, but for macOS: os_bsd.c. */
int oribi_os_record_type(bool shared)
{
    return SOCK_SEQPACKET;
}

int oribi_os_either(int first_fd, int second_fd, int *fd)
{
    return oribi_os_fail_saying("this system has no descriptor that stands for two");
}

/* --- files and sockets --- */

ssize_t oribi_os_send_file(int socket_fd, int in_fd, int64_t *offset, int64_t n)
{
    return oribi__os_send_copy(socket_fd, in_fd, offset, n);
}

int64_t oribi_os_send_queue(int socket_fd)
{
    return oribi_os_fail_saying("this system has no length of a socket's queue");
}

int oribi_os_peer(int unix_fd, struct oribi_peer *peer)
{
    return oribi__os_peer_user(unix_fd, peer);
}

/* --- threads --- */

int oribi_os_poll_masked(struct pollfd *fds, size_t count, int64_t timeout_us, const sigset_t *mask)
{
    return oribi__os_poll_between(fds, count, timeout_us, mask);
}

/* Which it is is not known; who asks wants to know whether its end would end its children, and nothing does here. */
bool oribi_os_is_main_thread(void)
{
    return true;
}

void oribi_os_thread_name(const char *name)
{
}

int oribi_os_thread_enter_dir(const char *path)
{
    return chdir(path) < 0 ? oribi_os_fail() : 0;
}

/* --- machine and processes --- */

uint32_t oribi_os_backlog_max(void)
{
    return SOMAXCONN;
}

void oribi_process_look(pid_t pid, struct oribi_process_look *look)
{
    *look = (struct oribi_process_look){0};
}

void oribi_process_usage(pid_t pid, int64_t *resident_bytes, int64_t *cpu_ms)
{
    *resident_bytes = 0;
    *cpu_ms = 0;
}
