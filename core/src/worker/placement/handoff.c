/* The hand-off queue; see the header. A message is a head of fixed size, the bytes, and one to four descriptors;
 * SEQPACKET keeps messages whole, so a reader sees all of one or nothing (DGRAM where the system has no SEQPACKET:
 * oribi_os_record_type()). */
#include "oribi/worker/placement/handoff.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/event/out.h"
#include "oribi/http/date.h"
#include "oribi/http/response.h"
#include "oribi/base/fault.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    VERSION = 3,
    FDS_MAX = 4, /* in this order: the socket, a body, the memory of a channel, the bytes */
    MESSAGE_CAP = ORIBI_HANDOFF_BYTES_MAX + 1024,
    SEND_BUFFER_BYTES = 4 * 1024 * 1024, /* asked for; the kernel cuts it to its own maximum */
};

/* Two versions of the program share a queue during an upgrade, so the head says what it is. */
struct message_head {
    uint32_t version;
    uint32_t bytes;   /* behind the head, or in the file */
    int64_t body_len; /* -1: no second descriptor */
    int64_t complete_us;
    uint32_t request_count;
    uint32_t listener;
    uint32_t listener_hash;
    uint8_t addr_len;
    uint8_t port_len;
    uint8_t proxy_awaited;
    uint8_t proxy_tls;
    uint8_t has_ring;
    uint8_t has_file; /* with the bytes */
    uint16_t channel;
    char addr[INET6_ADDRSTRLEN];
    char port[6];
};

int oribi_handoff_create(struct oribi_handoff *queue)
{
    int fds[2];
    int code = oribi_os_socket_pair(oribi_os_record_type(true), true, fds);
    if (code < 0)
        return code;
    int size = SEND_BUFFER_BYTES;
    (void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &size,
                     sizeof(size)); /* less room means fewer hand-offs at a time */
    (void)setsockopt(fds[0], SOL_SOCKET, SO_RCVBUF, &size,
                     sizeof(size)); /* the BSDs look at the reader's room instead */
    *queue = (struct oribi_handoff){fds[0], fds[1]};
    return 0;
}

void oribi_handoff_close(struct oribi_handoff *queue)
{
    oribi_os_close(queue->take_fd);
    oribi_os_close(queue->give_fd);
    *queue = (struct oribi_handoff){-1, -1};
}

void oribi_handoff_export(const struct oribi_handoff *queue, char *dst, size_t cap)
{
    (void)snprintf(dst, cap, "%d,%d", queue->take_fd, queue->give_fd); /* 24 bytes hold any two ints */
}

void oribi_handoff_set_inheritable(const struct oribi_handoff *queue, bool on)
{
    if (queue->take_fd < 0)
        return;
    (void)oribi_os_set_cloexec(queue->take_fd, !on); /* the descriptors are open: it cannot fail */
    (void)oribi_os_set_cloexec(queue->give_fd, !on);
}

static bool keeps_records(int fd)
{
    int type = 0;
    socklen_t len = sizeof(type);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == oribi_os_record_type(true);
}

int oribi_handoff_import(struct oribi_handoff *queue, const char *text)
{
    int take_fd;
    int give_fd;
    char end;
    if (sscanf(text, "%d,%d%c", &take_fd, &give_fd, &end) != 2 || take_fd < 0 || give_fd < 0)
        return ORIBI_EINVAL;
    if (!keeps_records(take_fd) || !keeps_records(give_fd))
        return ORIBI_EINVAL;
    *queue = (struct oribi_handoff){take_fd, give_fd};
    oribi_handoff_set_inheritable(queue, false);
    return 0;
}

/* --- giving --- */

union control {
    struct cmsghdr align;
    char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

static int send_message(int give_fd, struct iovec *vec, size_t count, const int *fds, size_t fd_count)
{
    union control control = {0};
    struct msghdr message = {.msg_iov = vec, .msg_iovlen = count};
    if (fd_count > 0) {
        message.msg_control = control.room;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, fd_count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(give_fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return 0;
    return errno == EAGAIN || errno == ENOBUFS ? ORIBI_AGAIN : oribi_os_fail(); /* the BSDs' word for a full reader */
}

/* file_fd: where the bytes are, of which vec tells the number; -1: they go with the message. */
static int give(const struct oribi_handoff *queue, const struct oribi_handoff_item *item, const struct iovec *vec,
                size_t count, int file_fd)
{
    struct message_head head = {
        .version = VERSION,
        .body_len = item->body_fd >= 0 ? item->body_len : -1,
        .complete_us = item->complete_us,
        .request_count = item->request_count,
        .listener = item->listener,
        .listener_hash = item->listener_hash,
        .addr_len = item->addr_len,
        .port_len = item->port_len,
        .proxy_awaited = item->proxy_awaited,
        .proxy_tls = item->proxy_tls,
        .has_ring = item->ring_fd > 0,
        .has_file = file_fd >= 0,
        .channel = item->channel,
        .bytes = (uint32_t)oribi_vec_len(vec, count),
    };
    memcpy(head.addr, item->addr, sizeof(head.addr));
    memcpy(head.port, item->port, sizeof(head.port));
    struct iovec all[1 + ORIBI_HANDOFF_VECS_MAX] = {{&head, sizeof(head)}};
    size_t behind = file_fd >= 0 ? 0 : count;
    assert(behind <= ORIBI_HANDOFF_VECS_MAX);
    if (behind)
        memcpy(&all[1], vec, behind * sizeof(*vec));
    int fds[FDS_MAX] = {item->fd};
    size_t fd_count = 1;
    if (item->body_fd >= 0)
        fds[fd_count++] = item->body_fd;
    if (item->ring_fd > 0)
        fds[fd_count++] = item->ring_fd;
    if (file_fd >= 0)
        fds[fd_count++] = file_fd;
    ORIBI_FAULT("give: before sendmsg");
    int result = send_message(queue->give_fd, all, 1 + behind, fds, fd_count);
    ORIBI_FAULT("give: after sendmsg");
    return result;
}

int oribi_handoff_give(const struct oribi_handoff *queue, const struct oribi_handoff_item *item,
                       const struct iovec *vec, size_t count)
{
    return oribi_vec_len(vec, count) > ORIBI_HANDOFF_BYTES_MAX ? ORIBI_ELIMIT : give(queue, item, vec, count, -1);
}

static bool write_pieces(int fd, const struct iovec *vec, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (oribi_os_write_all(fd, vec[i].iov_base, vec[i].iov_len) < 0)
            return false;
    return true;
}

int oribi_handoff_give_long(const struct oribi_handoff *queue, const struct oribi_handoff_item *item,
                            const struct iovec *vec, size_t count)
{
    int fd;
    if (oribi_vec_len(vec, count) > ORIBI_HANDOFF_LONG_BYTES_MAX)
        return ORIBI_ELIMIT;
    if (oribi_process_shared_memory(0, &fd) < 0 && oribi_os_temp_file(&fd) < 0)
        return oribi_os_store_failed();
    int result = write_pieces(fd, vec, count) ? give(queue, item, vec, count, fd) : oribi_os_store_failed();
    oribi_os_close(fd);
    return result;
}

/* --- taking --- */

static void close_fds(const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        oribi_os_close(fds[i]);
}

static ssize_t receive_message(int take_fd, char *buf, size_t cap, int fds[FDS_MAX], size_t *fd_count, bool *cut)
{
    union control control;
    struct iovec vec = {buf, cap};
    /* Room for so many descriptors and no more: the kernel closes others. CMSG_SPACE() may have room for one more. */
    struct msghdr message = {.msg_iov = &vec,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = CMSG_LEN(FDS_MAX * sizeof(int))};
    *fd_count = 0;
    ssize_t got = oribi_os_receive(take_fd, &message);
    if (got < 0)
        return got;
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS) {
        *fd_count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(fds, CMSG_DATA(rights), *fd_count * sizeof(int));
        for (size_t i = 0; i < *fd_count; i++)
            fds[i] = oribi_os_lift(fds[i]);
    }
    *cut = (message.msg_flags & MSG_CTRUNC) || (*fd_count > 0 && (fds[0] < 0 || fds[*fd_count - 1] < 0));
    if (message.msg_flags & MSG_TRUNC) { /* of another version */
        close_fds(fds, *fd_count);
        *fd_count = 0;
        return ORIBI_EBAD;
    }
    return got;
}

/* True if the message of `got` bytes is as its head says. */
static bool head_fits(const struct message_head *head, size_t got)
{
    size_t behind = head->has_file ? 0 : head->bytes;
    return head->version == VERSION && behind == got - sizeof(*head) && head->bytes <= ORIBI_HANDOFF_LONG_BYTES_MAX &&
           head->addr_len <= sizeof(head->addr) && head->port_len <= sizeof(head->port);
}

/* Reads n bytes from a file that another process has written, and may write yet: they are copied before they are looked
 * at. Gives them; NULL: no memory, or fewer bytes. */
static char *read_file(int fd, size_t n)
{
    char *bytes = n > 0 && oribi_os_is_regular(fd) ? oribi_mem_try_alloc(1, n) : NULL;
    ssize_t got = 1;
    for (size_t at = 0; bytes && at < n; at += (size_t)got) {
        got = oribi_os_read_at(fd, bytes + at, n - at, (int64_t)at);
        if (got <= 0) {
            oribi_mem_free(bytes);
            return NULL;
        }
    }
    return bytes;
}

int oribi_handoff_take(const struct oribi_handoff *queue, char *buf, size_t cap, struct oribi_handoff_item *item)
{
    struct message_head head = {0};
    int fds[FDS_MAX] = {-1, -1, -1, -1};
    size_t fd_count;
    bool cut = false; /* the kernel had no place for all descriptors */
    ssize_t got = receive_message(queue->take_fd, buf, cap, fds, &fd_count, &cut);
    if (got < 0)
        return (int)got;
    if (got == sizeof(head) && fd_count == 0 && !cut)
        return ORIBI_HANDOFF_WAKEUP;
    ORIBI_FAULT("take: after recvmsg");
    if ((size_t)got >= sizeof(head))
        memcpy(&head, buf, sizeof(head));
    bool fits = (size_t)got >= sizeof(head) && head_fits(&head, (size_t)got);
    size_t ring_at = 1 + (head.body_len >= 0);
    size_t file_at = ring_at + (head.has_ring != 0);
    bool in_file = head.has_file != 0;
    if (!fits || (!cut && fd_count != file_at + in_file)) {
        close_fds(fds, fd_count);
        return ORIBI_EBAD;
    }
    char *long_bytes = in_file && !cut ? read_file(fds[file_at], head.bytes) : NULL;
    if (in_file && !cut)
        oribi_os_close(fds[file_at]);
    if (in_file && !cut && !long_bytes) {
        close_fds(fds, file_at);
        return ORIBI_EBAD;
    }
    for (size_t i = 1; i < FDS_MAX && cut; i++)
        oribi_os_close(fds[i]);
    *item = (struct oribi_handoff_item){
        .fd = fds[0],
        .body_fd = cut || head.body_len < 0 ? -1 : fds[1],
        .ring_fd = cut || !head.has_ring ? 0 : fds[ring_at],
        .body_len = head.body_len,
        .complete_us = head.complete_us,
        .request_count = head.request_count,
        .proxy_awaited = head.proxy_awaited != 0,
        .proxy_tls = head.proxy_tls != 0,
        .channel = head.channel <= ORIBI_CHANNELS_MAX ? head.channel : 0,
        .listener = head.listener,
        .listener_hash = head.listener_hash,
        .addr_len = head.addr_len,
        .port_len = head.port_len,
        .bytes = oribi_slice(in_file ? long_bytes : buf + sizeof(head), in_file && cut ? 0 : head.bytes),
        .long_bytes = long_bytes,
    };
    memcpy(item->addr, head.addr, sizeof(item->addr));
    memcpy(item->port, head.port, sizeof(item->port));
    return cut ? ORIBI_ELIMIT : 0;
}

/* --- the supervisor's part --- */

bool oribi_handoff_waiting(const struct oribi_handoff *queue, int64_t *complete_us)
{
    struct message_head head = {0};
    *complete_us = 0;
    if (queue->take_fd < 0)
        return false;
    ssize_t got = recv(queue->take_fd, &head, sizeof(head), MSG_PEEK | MSG_DONTWAIT); /* the kernel keeps the sockets */
    if (got < 0)
        return false;
    if (got == sizeof(head) && head.version == VERSION)
        *complete_us = head.complete_us;
    return true;
}

/* A wake-up is a head alone: it only has to wake a worker, and the worker that takes it goes on to the next message. */
void oribi_handoff_notify(const struct oribi_handoff *queue)
{
    if (queue->give_fd < 0)
        return;
    const struct message_head wakeup = {.version = VERSION, .body_len = -1};
    struct iovec vec = {(void *)&wakeup, sizeof(wakeup)};
    (void)send_message(queue->give_fd, &vec, 1, NULL, 0); /* a full queue has woken everybody there is */
}

/* A connection that was kept, and on which nothing new has come, is closed as any other that is idle. */
static bool expects_answer(const struct oribi_handoff_item *item)
{
    char first[1024];
    return item->bytes.n > 0 || oribi_os_read(item->fd, first, sizeof(first)) > 0;
}

static bool was_message(int result)
{
    return result == 0 || result == ORIBI_HANDOFF_WAKEUP || result == ORIBI_EBAD || result == ORIBI_ELIMIT;
}

uint32_t oribi_handoff_refuse(const struct oribi_handoff *queue)
{
    if (queue->take_fd < 0)
        return 0;
    char *buf = oribi_mem_alloc(1, MESSAGE_CAP);
    char date[ORIBI_DATE_LEN];
    char answer[512];
    uint32_t count = 0;
    int result;
    struct oribi_handoff_item item;
    oribi_date_format(oribi_clock_wall_s(), date);
    size_t n = oribi_response_error(503, date, oribi_slice(NULL, 0), false, answer, sizeof(answer));
    while (was_message(result = oribi_handoff_take(queue, buf, MESSAGE_CAP, &item))) {
        if ((result != 0 && result != ORIBI_ELIMIT) || item.fd < 0)
            continue;
        struct iovec vec = {answer, n};
        oribi_mem_free(item.long_bytes);
        if (expects_answer(&item)) {
            (void)oribi_os_send_vec(item.fd, &vec, 1); /* a client that has gone is answered by the close */
            count++;
        }
        oribi_os_close(item.fd);
        oribi_os_close(item.body_fd);
        if (item.ring_fd > 0)
            oribi_os_close(item.ring_fd);
    }
    oribi_mem_free(buf);
    return count;
}
