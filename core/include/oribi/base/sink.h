/* Where log lines go (sink.c), and the queue of lines that wait until there is room (backlog.c). */
#ifndef ORIBI_BASE_SINK_H
#define ORIBI_BASE_SINK_H

#include "oribi/base/os/os.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- sink ---- */

/* Where log lines go: a file, a pipe, a socket, a terminal. Writing there never waits, whatever other processes have
 * the same open file and however full it is.
 *
 * O_NONBLOCK belongs to the open file and not to the descriptor: on a standard error that we share with the shell, the
 * application and its children it would change their writes too. So a pipe or a terminal is opened once more through
 * /proc, which gives an open file of our own. Where that is not allowed (a pipe that another user has made), a pipe
 * gets its lines by splice(2) from a small pipe of ours, which takes "do not wait" with each call; elsewhere poll(2) is
 * called before each piece, as the next best. poll(2) alone would not be enough for a pipe: of two processes that both
 * see the last room in it one would wait. Sockets have MSG_DONTWAIT. Files are written as they are: a disk answers.
 *
 * Pieces of at most PIPE_BUF bytes reach a pipe whole or not at all (pipe(7)). One thread at a time. */

enum oribi_sink_way {
    ORIBI_SINK_FILE,   /* write(2) */
    ORIBI_SINK_OWN,    /* write(2) on an open file of our own that is non-blocking */
    ORIBI_SINK_SOCKET, /* send(2) with MSG_DONTWAIT */
    ORIBI_SINK_SPLICE, /* a pipe that only its maker may open */
    ORIBI_SINK_POLL,   /* poll(2) before write(2) */
};

struct oribi_sink {
    int fd; /* CLOEXEC and above 2; -1: none */
    enum oribi_sink_way way;
    struct oribi_fd_mark mark;
    /* private: the small pipe, made by the process that needs it */
    pid_t via_pid;
    int via[2];
    struct oribi_fd_mark via_mark;
};

#define ORIBI_SINK_NONE ((struct oribi_sink){.fd = -1, .via = {-1, -1}})

/* Takes fd (CLOEXEC and above 2, -1: lines go nowhere); sink->fd may be another afterwards. Cannot fail: at worst
 * the way is ORIBI_SINK_POLL. */
void oribi_sink_open(struct oribi_sink *sink, int fd);
void oribi_sink_close(struct oribi_sink *sink);

/* Are its descriptors still the same files? False: the application has closed one. */
bool oribi_sink_intact(const struct oribi_sink *sink);

/* Writes as much of [p, p+n) as the sink takes now, as one piece. Returns how many bytes (> 0), ORIBI_AGAIN when there
 * is no room, or a code of os.h. Async-signal-safe. */
ssize_t oribi_sink_write(struct oribi_sink *sink, const char *p, size_t n);

/* How much of [p, p+n) to write as one piece: everything where it is appended at one place, else as many whole lines
 * as PIPE_BUF holds, or of a longer line PIPE_BUF bytes. */
size_t oribi_sink_piece(const struct oribi_sink *sink, const char *p, size_t n);

/* ---- backlog ---- */

/* Log lines that wait until their sink has room. Lines that the queue has no room for are dropped and counted. */

struct oribi_backlog {
    char *text; /* borrowed */
    size_t cap;
    size_t pos; /* bytes before it are written */
    size_t len;
    uint64_t dropped;              /* lines, since oribi_backlog_reported() */
    _Atomic uint64_t dropped_ever; /* lines; read by all threads */
    bool torn;                     /* the last write ended within a line whose rest was dropped */
};

/* Gives room for a line of at most n bytes, which oribi_backlog_commit() then adds; NULL when there is none: the
 * line counts as dropped. */
char *oribi_backlog_reserve(struct oribi_backlog *backlog, size_t n);
void oribi_backlog_commit(struct oribi_backlog *backlog, size_t n);

/* Counts lines that were dropped elsewhere. */
void oribi_backlog_count_dropped(struct oribi_backlog *backlog, uint64_t lines);

/* Writes as much as the sink takes. 0: the queue is empty; ORIBI_AGAIN; or a code of os.h: all lines were dropped and
 * counted, and oribi_os_error_text() has the reason. */
int oribi_backlog_flush(struct oribi_backlog *backlog, struct oribi_sink *sink);

static inline bool oribi_backlog_waits(const struct oribi_backlog *backlog)
{
    return backlog->len > backlog->pos;
}

/* Would a reserve of n bytes succeed? */
static inline bool oribi_backlog_has_room(const struct oribi_backlog *b, size_t n)
{
    return b->cap - (b->len - b->pos) >= n;
}

#endif
