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
#ifndef ORIBI_BASE_SINK_H
#define ORIBI_BASE_SINK_H

#include "oribi/base/os/os.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
