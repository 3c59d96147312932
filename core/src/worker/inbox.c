/* The inbox of publications; see the header. */
#include "oribi/worker/inbox.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    BUFFER_BYTES = 1024 * 1024, /* as far as the system grants it */
    CONTROL_CAP = 128,          /* longer than the path of a unix socket may be */
};

int oribi_inbox_pair(int fds[2])
{
    int size = BUFFER_BYTES;
    int code = oribi_os_socket_pair(oribi_os_record_type(true), true, fds);
    if (code == 0)
        (void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)); /* less room means more waiting */
    return code;
}

/* --- records --- */

int oribi_inbox_send(int fd, const struct iovec *vec, size_t count, int passed)
{
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)vec, .msg_iovlen = count};
    if (passed >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof(control.room);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &passed, sizeof(int));
    }
    ssize_t n;
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n >= 0)
        return 0;
    if (errno == ENOBUFS || errno == ECONNREFUSED) { /* of datagrams: no room; nobody reads */
        int code = errno == ENOBUFS ? ORIBI_AGAIN : ORIBI_ECLOSED;
        (void)oribi_os_fail();
        return code;
    }
    return oribi_os_fail();
}

ssize_t oribi_inbox_receive_cut(int fd, char *dst, size_t cap, int *passed, bool *cut)
{
    /* Room for one descriptor and no more: the kernel closes others. */
    union {
        struct cmsghdr align;
        char room[CMSG_LEN(sizeof(int))];
    } control;
    struct iovec vec = {dst, cap};
    struct msghdr message = {
        .msg_iov = &vec, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
    *passed = -1;
    *cut = false;
    ssize_t n = oribi_os_receive(fd, &message);
    if (n < 0)
        return n;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(passed, CMSG_DATA(head), sizeof(int));
    *passed = oribi_os_lift(*passed);
    *cut = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
    return n;
}

ssize_t oribi_inbox_receive(int fd, char *dst, size_t cap, int *passed)
{
    bool cut;
    ssize_t n = oribi_inbox_receive_cut(fd, dst, cap, passed, &cut);
    if (n < 0 || !cut)
        return n;
    oribi_os_close(*passed);
    *passed = -1;
    return ORIBI_EBAD;
}

/* --- memory --- */

int oribi_inbox_memory(struct oribi_slice text, int *fd)
{
    int code = oribi_process_sealed_memory(text.n, fd);
    if (code < 0)
        return code;
    code = oribi_os_write_all(*fd, text.p, text.n);
    if (code < 0)
        oribi_os_close(*fd);
    return code;
}

/* By reading: whoever has made it may still write there. It cannot be cut off, and reading does not wait. */
int oribi_inbox_memory_take(int fd, size_t n, struct oribi_buf *out)
{
    int code = ORIBI_EBAD;
    if (fd >= 0 && n > 0 && oribi_process_is_sealed(fd, n)) {
        char *p = oribi_buf_try_reserve(out, n);
        code = !p ? ORIBI_ENOMEM : oribi_os_read_at(fd, p, n, 0) == (ssize_t)n ? 0 : ORIBI_EBAD;
        if (code == 0)
            out->len += n;
    }
    oribi_os_close(fd);
    return code;
}

/* --- publishing --- */

int oribi_inbox_publish(int fd, const struct oribi_publication *publication, int64_t wait_ms)
{
    char head[ORIBI_PUBLICATION_HEAD_CAP];
    bool apart = oribi_publication_goes_apart(publication);
    struct oribi_slice body = oribi_publication_body(publication);
    struct iovec vec[] = {{head, oribi_publication_head(publication, head)}, {(void *)(uintptr_t)body.p, body.n}};
    int memory = -1;
    int code = apart ? oribi_inbox_memory(publication->data, &memory) : 0;
    int64_t until_ms = oribi_clock_ms() + wait_ms;
    while (code == 0 && (code = oribi_inbox_send(fd, vec, body.n ? 2 : 1, memory)) == ORIBI_AGAIN) {
        int64_t rest_ms = until_ms - oribi_clock_ms();
        if (rest_ms <= 0)
            break;
        oribi_process_poll_both(NULL, 0, &fd, 1, rest_ms);
        code = 0;
    }
    oribi_os_close(memory);
    return code;
}

/* Written by enter and leave, before other threads run. */
static struct {
    enum oribi_publisher state;
    int fd;
    struct oribi_fd_mark mark; /* an application may close what is not its own */
    char control[CONTROL_CAP];
} here = {.fd = -1};

void oribi_publisher_enter(int fd, const char *control)
{
    (void)snprintf(here.control, sizeof(here.control), "%s", control ? control : ""); /* a longer one is none */
    here.state = fd >= 0 ? ORIBI_PUBLISHER_READY : ORIBI_PUBLISHER_NONE;
    here.fd = fd;
    if (fd >= 0)
        oribi_os_mark(fd, &here.mark);
}

void oribi_publisher_leave(void)
{
    here.state = ORIBI_PUBLISHER_OUTSIDE;
    here.fd = -1;
}

enum oribi_publisher oribi_publisher_inbox(int *fd)
{
    *fd = here.fd;
    if (here.state == ORIBI_PUBLISHER_READY && !oribi_os_is_marked(here.fd, &here.mark))
        return ORIBI_PUBLISHER_OUTSIDE;
    return here.state;
}

const char *oribi_publisher_control(void)
{
    return here.control[0] ? here.control : NULL;
}
