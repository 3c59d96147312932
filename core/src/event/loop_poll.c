/* The poll(2) source: built everywhere, and run through the same tests as the native one, so that nothing above
 * leans on epoll. poll is level-triggered; watches that want nothing are masked with a negative descriptor, because
 * POLLHUP cannot be switched off otherwise and would be reported for ever.
 *
 * poll(2) watches numbers, not open files. An application may close a descriptor of ours and open a file that gets the
 * same number. So each entry has a mark of the file that was registered (device and inode), and before an event is
 * told fstat(2) says whether the number is still that file's: one system call for an event, which is a percent of what
 * the shortest request costs. If it is not, the entry is masked for good, and the owner of a stream is told. */
#include "event/loop_source.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <poll.h>

static int source_open(struct oribi_loop *loop)
{
    loop->fd = -1;
    return 0;
}

static void source_close(struct oribi_loop *loop)
{
    oribi_mem_free(loop->fds);
    oribi_mem_free(loop->watches);
    oribi_mem_free(loop->marks);
}

static void arm(struct oribi_loop *loop, struct oribi_watch *watch)
{
    struct pollfd *entry = &loop->fds[watch->index];
    entry->events = 0;
    if (watch->interest & ORIBI_READ)
        entry->events |= POLLIN;
    if (watch->interest & ORIBI_WRITE)
        entry->events |= POLLOUT;
    entry->fd = entry->events && !watch->lost ? watch->fd : -1;
}

static int out_of_memory(void)
{
    (void)oribi_os_fail_saying("out of memory");
    return ORIBI_ENOMEM;
}

static int source_add(struct oribi_loop *loop, struct oribi_watch *watch)
{
    if (loop->count == loop->cap) {
        uint32_t cap = loop->cap ? loop->cap * 2 : 64;
        struct pollfd *fds = oribi_mem_try_resize(loop->fds, cap, sizeof(*fds));
        if (!fds)
            return out_of_memory();
        loop->fds = fds;
        struct oribi_watch **watches = oribi_mem_try_resize(loop->watches, cap, sizeof(struct oribi_watch *));
        if (!watches)
            return out_of_memory();
        loop->watches = watches;
        struct oribi_fd_mark *marks = oribi_mem_try_resize(loop->marks, cap, sizeof(*marks));
        if (!marks)
            return out_of_memory();
        loop->marks = marks;
        loop->cap = cap;
    }
    watch->index = loop->count++;
    loop->watches[watch->index] = watch;
    loop->fds[watch->index].revents = 0;
    oribi_os_mark(watch->fd, &loop->marks[watch->index]);
    arm(loop, watch);
    return 0;
}

static bool source_holds(struct oribi_loop *loop, struct oribi_watch *watch)
{
    return !watch->lost && oribi_os_is_marked(watch->fd, &loop->marks[watch->index]);
}

static bool source_remove(struct oribi_loop *loop, struct oribi_watch *watch)
{
    bool held = source_holds(loop, watch);
    uint32_t last = --loop->count;
    loop->fds[watch->index] = loop->fds[last];
    loop->watches[watch->index] = loop->watches[last];
    loop->marks[watch->index] = loop->marks[last];
    loop->watches[watch->index]->index = watch->index;
    return held;
}

static void source_rotate(struct oribi_loop *loop, struct oribi_watch *watch)
{
}

static uint8_t ready_of(short revents)
{
    uint8_t ready = 0;
    if (revents & POLLIN)
        ready |= ORIBI_READ;
    if (revents & POLLOUT)
        ready |= ORIBI_WRITE;
    if (revents & (POLLHUP | POLLERR | POLLNVAL))
        ready |= ORIBI_HANGUP | ORIBI_READ | ORIBI_WRITE;
    return ready;
}

/* A closed number (POLLNVAL) is told of: its owner's next call fails at once. A number that is another file's now is
 * not, except for streams, whose owners look at `lost` first. */
static bool is_told(struct oribi_loop *loop, uint32_t i)
{
    struct oribi_watch *watch = loop->watches[i];
    if (__builtin_expect(oribi_os_is_marked(watch->fd, &loop->marks[i]), 1))
        return true;
    bool stream = watch->kind == ORIBI_WATCH_STREAM;
    if (!stream && (loop->fds[i].revents & POLLNVAL))
        return true;
    watch->lost = true;
    loop->fds[i].fd = -1;
    return stream;
}

static int source_poll(struct oribi_loop *loop, int timeout_ms, struct oribi_event *events, int max)
{
    int left = poll(loop->fds, loop->count, timeout_ms);
    if (left <= 0)
        return 0;
    int found = 0;
    uint32_t start = loop->next < loop->count ? loop->next : 0;
    for (uint32_t step = 0; step < loop->count && left > 0 && found < max; step++) {
        uint32_t i = (start + step) % loop->count;
        loop->next = i + 1;
        if (loop->fds[i].fd < 0 || loop->fds[i].revents == 0)
            continue;
        left--;
        if (!is_told(loop, i))
            continue;
        uint8_t ready = ready_of(loop->fds[i].revents);
        if (oribi__watch_ready(loop->watches[i], ready))
            events[found++] = (struct oribi_event){loop->watches[i], ready};
    }
    return found;
}

const struct oribi_loop_ops oribi__loop_poll = {
    .open = source_open,
    .close = source_close,
    .add = source_add,
    .remove = source_remove,
    .holds = source_holds,
    .interest = arm,
    .rotate = source_rotate,
    .poll = source_poll,
    .wakes_all = true,
};
