/* Log lines that wait until their sink has room. Lines that the queue has no room for are dropped and counted. */
#ifndef ORIBI_BASE_BACKLOG_H
#define ORIBI_BASE_BACKLOG_H

#include "oribi/base/sink.h"

#include <stdatomic.h>

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
