/* Listening sockets, as far as any system tells of them. */
#include "oribi/base/os/os.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int oribi_os_defer_accept(int tcp_fd, int seconds)
{
    return 0;
}

/* A socket cannot be opened: between the look and the change its folder's owner has a moment to put another there. */
int oribi_os_give_socket_file(const char *path, uint64_t device, uint64_t inode, uid_t uid, gid_t gid)
{
    struct stat entry;
    int code = lstat(path, &entry) < 0 ? oribi_os_fail() : oribi__os_is_new_socket(&entry, device, inode);
    return code == 0 && lchown(path, uid, gid) < 0 ? oribi_os_fail() : code;
}

static bool is_unix(int fd)
{
    struct sockaddr_storage bound = {0};
    socklen_t len = sizeof(bound);
    return getsockname(fd, (struct sockaddr *)&bound, &len) == 0 && bound.ss_family == AF_UNIX;
}

/* Nothing keeps newcomers from a TCP listener but its end. */
void oribi_os_listen_stop_accepting(int listen_fd)
{
    if (is_unix(listen_fd))
        (void)shutdown(listen_fd, SHUT_RDWR); /* fails only on what is no socket */
}

/* A listener is readable while a connection waits (poll(2)). None is held back: oribi_os_defer_accept(). */
bool oribi_os_listen_awaits(int listen_fd, bool half_open)
{
    struct pollfd state = {.fd = listen_fd, .events = POLLIN};
    return !is_unix(listen_fd) && poll(&state, 1, 0) > 0 && (state.revents & POLLIN);
}

void oribi_os_listen_end(int listen_fd)
{
    if (!is_unix(listen_fd))
        (void)shutdown(listen_fd, SHUT_RDWR); /* systems that refuse it end the listener with its last descriptor */
}
