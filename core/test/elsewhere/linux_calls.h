/* Calls of Linux that tests use and macOS lacks; the Makefile has tests include it first. */
#ifndef ORIBI_TEST_ELSEWHERE_LINUX_CALLS_H
#define ORIBI_TEST_ELSEWHERE_LINUX_CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef TCP_DEFER_ACCEPT
#define TCP_DEFER_ACCEPT 0x7fff /* no option: setsockopt(2) fails */
#endif

#ifndef SIGRTMIN
#define SIGRTMIN SIGUSR1
#define SIGRTMAX SIGUSR2
#endif

#ifndef SOCK_CLOEXEC
#define SOCK_CLOEXEC  0x10000000
#define SOCK_NONBLOCK 0x20000000

static inline int test_flagged(int fd, int flags)
{
    if (fd >= 0 && (flags & (SOCK_CLOEXEC | O_CLOEXEC)))
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (fd >= 0 && (flags & (SOCK_NONBLOCK | O_NONBLOCK)))
        (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static inline int test_socket(int family, int type, int protocol)
{
    return test_flagged(socket(family, type & 0xff, protocol), type);
}

static inline int test_socketpair(int family, int type, int protocol, int fds[2])
{
    int code = socketpair(family, type & 0xff, protocol, fds);
    for (int i = 0; i < 2 && code == 0; i++)
        (void)test_flagged(fds[i], type);
    return code;
}

static inline int pipe2(int fds[2], int flags)
{
    int code = pipe(fds);
    for (int i = 0; i < 2 && code == 0; i++)
        (void)test_flagged(fds[i], flags);
    return code;
}

static inline int memfd_create(const char *name, unsigned flags)
{
    char path[] = "/tmp/oribi-test-XXXXXX";
    int fd = mkstemp(path);
    (void)name;
    (void)unlink(path);
    return test_flagged(fd, flags ? SOCK_CLOEXEC : 0);
}

#define MFD_CLOEXEC 1
#define socket      test_socket
#define socketpair  test_socketpair
#endif

#endif
