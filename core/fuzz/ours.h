/* Shared by the targets that send records with descriptors, as another process would. */
#ifndef ORIBI_FUZZ_OURS_H
#define ORIBI_FUZZ_OURS_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { OURS_FDS_MAX = 4 };

/* An assertion that prints its condition: a bare abort() would not tell which, as the compiler makes one abort() of
 * many. */
#define expect(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            (void)fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                              \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* As in every process of ours: sendfile(2) to a socket whose peer has gone raises it, and libFuzzer, which does not
 * handle it, would end without a word. */
__attribute__((constructor)) static void ours_ignore_sigpipe(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
}

/* The input, read from the front; zeros behind its end. */
struct bytes {
    const uint8_t *p;
    size_t n;
};

__attribute__((unused)) static uint8_t next_byte(struct bytes *in)
{
    if (in->n == 0)
        return 0;
    in->n--;
    return *in->p++;
}

__attribute__((unused)) static struct bytes next_bytes(struct bytes *in, size_t n)
{
    struct bytes part = {in->p, n < in->n ? n : in->n};
    in->p += part.n;
    in->n -= part.n;
    return part;
}

/* The lowest free descriptor: the same before and after means that none was left open below it. */
__attribute__((unused)) static int lowest_free_fd(void)
{
    int fd = dup(STDIN_FILENO);
    expect(fd >= 0 && close(fd) == 0);
    return fd;
}

/* One record, whatever it is, with copies of the descriptors. */
__attribute__((unused)) static bool send_raw(int to, const void *p, size_t n, const int *fds, size_t fd_count)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(OURS_FDS_MAX * sizeof(int))];
    } control = {0};
    struct iovec vec = {(void *)(uintptr_t)p, n};
    struct msghdr record = {.msg_iov = &vec, .msg_iovlen = 1};
    expect(fd_count <= OURS_FDS_MAX);
    if (fd_count > 0) {
        record.msg_control = control.room;
        record.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&record);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, fd_count * sizeof(int));
    }
    return sendmsg(to, &record, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

#endif
