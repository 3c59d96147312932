/* A model of kqueue(2) on top of epoll(7), so that what is written for kqueue runs on Linux. It follows the manual page
 * of FreeBSD, kqueue(2), and has what our sources use: EVFILT_READ and EVFILT_WRITE of sockets and pipes.
 *
 *   EV_ADD         of an event that is there changes its parameters; the filter is run at once (DESCRIPTION), so that
 *                  what is already there is reported
 *   EV_CLEAR       an event that was retrieved comes again with something new only; without it, as long as the filter
 *                  says so
 *   retrieval      runs the filter again, and leaves out what does not hold any more (DESCRIPTION)
 *   EVFILT_READ    data: bytes to read. EV_EOF when the reading side is shut, also while bytes are to be read; fflags
 *                  has the socket's error
 *   EVFILT_WRITE   room below the low water mark (here: of poll(2)) is none; EV_EOF when the reader is gone
 *   close(2)       of a number ends its events, though a copy of the file is open (DESCRIPTION)
 *   fork(2)        the child has no kqueue (DESCRIPTION)
 *   errors         ENOENT: no such event; EBADF: no such descriptor, or no kqueue (ERRORS)
 *
 * A filter for reading is an entry in the kqueue's epoll; those for writing stand in a second epoll, itself an entry of
 * the first, since an entry for both would tell of one when the other changes. close(2) and dup2(2) are taken over, to
 * end filters. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/event.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NUMBERS_MAX = 65536, BATCH = 256, RDHUP = 0x2000 /* POLLRDHUP and EPOLLRDHUP, poll(2) */ };

/* A filter of one descriptor in one kqueue. Never freed: an event that another thread has in its hands may name it. */
struct note {
    struct note *next; /* of the same descriptor; or of those that are free */
    int kq;
    int fd;
    int epoll; /* kq, or the one for writing */
    int16_t filter;
    uint16_t flags;
    void *udata;
    bool live;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct note *notes[NUMBERS_MAX];
static struct note *unused;
static bool is_queue[NUMBERS_MAX];
static int writers[NUMBERS_MAX]; /* of a kqueue: its second epoll */
static pid_t owner;              /* of all that is noted */

static int close_number(int fd)
{
    return (int)syscall(SYS_close, fd);
}

/* --- filters; the lock is held --- */

static struct note **find(int kq, int fd, int filter)
{
    struct note **at = &notes[fd];
    while (*at && ((*at)->kq != kq || (*at)->filter != filter))
        at = &(*at)->next;
    return at;
}

/* In a forked child the epoll is still the parent's. */
static void end_note(struct note **at, bool forked)
{
    struct note *note = *at;
    if (!forked)
        (void)epoll_ctl(note->epoll, EPOLL_CTL_DEL, note->fd, NULL);
    *at = note->next;
    note->live = false;
    note->next = unused;
    unused = note;
}

static int arm(struct note *note, int operation)
{
    uint32_t wanted = note->filter == EVFILT_READ ? EPOLLIN | EPOLLRDHUP : EPOLLOUT;
    struct epoll_event event = {.events = wanted | (note->flags & EV_CLEAR ? EPOLLET : 0), .data.ptr = note};
    return epoll_ctl(note->epoll, operation, note->fd, &event);
}

static int add_note(int kq, const struct kevent *change)
{
    int fd = (int)change->ident;
    struct note *note = unused ? unused : calloc(1, sizeof(*note));
    if (unused)
        unused = unused->next;
    int epoll = change->filter == EVFILT_WRITE ? writers[kq] : kq;
    *note = (struct note){notes[fd], kq, fd, epoll, change->filter, change->flags, change->udata, true};
    notes[fd] = note;
    if (arm(note, EPOLL_CTL_ADD) == 0)
        return 0;
    int saved = errno;
    end_note(&notes[fd], false);
    errno = saved;
    return -1;
}

static int apply(int kq, const struct kevent *change)
{
    int fd = (int)change->ident;
    struct note **at = find(kq, fd, change->filter);
    if (fcntl(fd, F_GETFD) < 0)
        return -1; /* EBADF */
    if (!*at && (change->flags & EV_ADD))
        return add_note(kq, change);
    if (!*at) {
        errno = ENOENT;
        return -1;
    }
    if (change->flags & EV_DELETE) {
        end_note(at, false);
        return 0;
    }
    (*at)->udata = change->udata;
    return arm(*at, EPOLL_CTL_MOD);
}

/* Gives the filter's event at this moment. False: none. */
static bool ask(const struct note *note, struct kevent *event)
{
    struct pollfd state = {.fd = note->fd, .events = note->filter == EVFILT_READ ? POLLIN | RDHUP : POLLOUT};
    if (poll(&state, 1, 0) <= 0)
        return false;
    int bytes = 0;
    bool gone = state.revents & (POLLHUP | POLLERR);
    bool end = gone || (state.revents & RDHUP);
    if (note->filter == EVFILT_READ)
        (void)ioctl(note->fd, FIONREAD, &bytes);
    *event = (struct kevent){.ident = (uintptr_t)note->fd, .filter = note->filter, .data = bytes, .udata = note->udata};
    event->flags = (uint16_t)(note->flags | (end ? EV_EOF : 0));
    event->fflags = state.revents & POLLERR ? ECONNRESET : 0;
    return true;
}

static int take(const struct epoll_event *ready, int count, struct kevent *events)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        const struct note *note = ready[i].data.ptr;
        found += note && note->live && ask(note, &events[found]);
    }
    return found;
}

/* An event of one of the two epolls, with room for those of the other. */
static int take_both(int kq, const struct epoll_event *ready, int count, struct kevent *events, int max)
{
    struct epoll_event written[BATCH];
    (void)pthread_mutex_lock(&lock);
    int found = take(ready, count, events);
    int room = max - found < BATCH ? max - found : BATCH;
    int more = room > 0 && is_queue[kq] ? epoll_wait(writers[kq], written, room, 0) : 0;
    found += more > 0 ? take(written, more, events + found) : 0;
    (void)pthread_mutex_unlock(&lock);
    return found;
}

/* --- the calls --- */

/* A forked child has no kqueue. It finds that out at its first call, since a handler of pthread_atfork(3) could come
 * behind another one that closes descriptors. */
static void forget_in_child(void)
{
    if (!owner || owner == getpid())
        return;
    owner = getpid();
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    for (int fd = 0; fd < NUMBERS_MAX; fd++) {
        while (notes[fd])
            end_note(&notes[fd], true);
        if (is_queue[fd]) {
            (void)close_number(writers[fd]);
            (void)close_number(fd);
        }
        is_queue[fd] = false;
    }
}

int kqueue(void)
{
    forget_in_child();
    int fd = epoll_create1(0);
    int second = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    if (fd < 0 || second < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, second, &event) < 0)
        return -1;
    (void)pthread_mutex_lock(&lock);
    owner = getpid();
    is_queue[fd] = true;
    writers[fd] = second;
    (void)pthread_mutex_unlock(&lock);
    return fd;
}

static int change_all(int kq, const struct kevent *changes, int count)
{
    int code = 0;
    (void)pthread_mutex_lock(&lock);
    for (int i = 0; i < count && code == 0; i++)
        code = apply(kq, &changes[i]);
    int saved = errno;
    (void)pthread_mutex_unlock(&lock);
    errno = saved;
    return code;
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int kevent(int kq, const struct kevent *changes, int change_count, struct kevent *events, int event_count,
           const struct timespec *timeout)
{
    struct epoll_event ready[BATCH];
    forget_in_child();
    if (kq < 0 || kq >= NUMBERS_MAX || !is_queue[kq]) {
        errno = EBADF;
        return -1;
    }
    if (change_all(kq, changes, change_count) < 0)
        return -1;
    int64_t ms = timeout ? (int64_t)timeout->tv_sec * 1000 + timeout->tv_nsec / 1000000 : -1;
    int64_t until = now_ms() + ms;
    while (event_count > 0) {
        int count = epoll_wait(kq, ready, event_count < BATCH ? event_count : BATCH, (int)ms);
        if (count < 0 && errno == EINVAL)
            errno = EBADF; /* another file */
        int found = count > 0 ? take_both(kq, ready, count, events, event_count) : 0;
        if (count <= 0 || found > 0)
            return count <= 0 ? count : found;
        ms = timeout ? until - now_ms() : -1;
        if (timeout && ms < 0)
            return 0;
    }
    return 0;
}

static void end_number(int fd)
{
    if (fd < 0 || fd >= NUMBERS_MAX)
        return;
    int saved = errno;
    forget_in_child();
    (void)pthread_mutex_lock(&lock);
    while (notes[fd])
        end_note(&notes[fd], false);
    for (int other = 0; is_queue[fd] && other < NUMBERS_MAX; other++)
        for (struct note **at = &notes[other]; *at;)
            if ((*at)->kq == fd)
                end_note(at, false);
            else
                at = &(*at)->next;
    if (is_queue[fd])
        (void)close_number(writers[fd]);
    is_queue[fd] = false;
    (void)pthread_mutex_unlock(&lock);
    errno = saved;
}

int close(int fd)
{
    end_number(fd);
    return close_number(fd);
}

int dup2(int fd, int number)
{
    if (fd != number && fcntl(fd, F_GETFD) >= 0)
        end_number(number);
    return fd == number ? number : (int)syscall(SYS_dup3, fd, number, 0);
}
