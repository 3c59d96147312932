/* Writing log lines without waiting; see the header for the ways. */
#include "oribi/base/sink.h"

#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

static enum oribi_sink_way way_without_own(int fd)
{
    switch (oribi_os_fd_kind(fd)) {
    case ORIBI_FD_FILE:
        return ORIBI_SINK_FILE;
    case ORIBI_FD_SOCKET:
        return ORIBI_SINK_SOCKET;
    case ORIBI_FD_PIPE:
        return oribi_os_can_splice() ? ORIBI_SINK_SPLICE : ORIBI_SINK_POLL;
    default:
        return ORIBI_SINK_POLL;
    }
}

void oribi_sink_open(struct oribi_sink *sink, int fd)
{
    int own;
    *sink = ORIBI_SINK_NONE;
    sink->fd = fd;
    if (fd < 0)
        return;
    sink->way = way_without_own(fd);
    if (sink->way != ORIBI_SINK_FILE && sink->way != ORIBI_SINK_SOCKET && oribi_os_open_again(fd, &own) == 0) {
        oribi_os_close(fd);
        sink->fd = own;
        sink->way = ORIBI_SINK_OWN;
    }
    oribi_os_mark(sink->fd, &sink->mark);
}

static void close_via(struct oribi_sink *sink)
{
    oribi_os_close(sink->via[0]);
    oribi_os_close(sink->via[1]);
    sink->via[0] = sink->via[1] = -1;
    sink->via_pid = 0;
}

void oribi_sink_close(struct oribi_sink *sink)
{
    close_via(sink);
    oribi_os_close(sink->fd);
    *sink = ORIBI_SINK_NONE;
}

bool oribi_sink_intact(const struct oribi_sink *sink)
{
    return sink->fd < 0 || (oribi_os_is_marked(sink->fd, &sink->mark) &&
                            (sink->via[1] < 0 || oribi_os_is_marked(sink->via[1], &sink->via_mark)));
}

/* A child makes its own: two processes must not take what the other has put in. */
static ssize_t write_spliced(struct oribi_sink *sink, const char *p, size_t n)
{
    if (sink->via_pid != getpid()) {
        close_via(sink); /* our copies of the parent's */
        int code = oribi_os_pipe(sink->via);
        if (code < 0)
            return code;
        sink->via_pid = getpid();
        oribi_os_mark(sink->via[1], &sink->via_mark);
    }
    return oribi_os_splice_now(sink->via, sink->fd, p, n < PIPE_BUF ? n : PIPE_BUF);
}

ssize_t oribi_sink_write(struct oribi_sink *sink, const char *p, size_t n)
{
    switch (sink->way) {
    case ORIBI_SINK_SOCKET:
        return oribi_os_send_now(sink->fd, p, n);
    case ORIBI_SINK_SPLICE:
        return write_spliced(sink, p, n);
    case ORIBI_SINK_POLL:
        return oribi_os_write_polled(sink->fd, p, n < PIPE_BUF ? n : PIPE_BUF);
    default:
        return oribi_os_write(sink->fd, p, n);
    }
}

size_t oribi_sink_piece(const struct oribi_sink *sink, const char *p, size_t n)
{
    if (sink->way == ORIBI_SINK_FILE || n <= PIPE_BUF)
        return n;
    const char *end = oribi_os_memrchr(p, '\n', PIPE_BUF);
    return end ? (size_t)(end - p) + 1 : PIPE_BUF;
}
