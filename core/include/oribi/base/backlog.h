/* Lines that wait for their sink: written as soon as there is room, dropped and counted when they are too many. */
#ifndef ORIBI_BASE_BACKLOG_H
#define ORIBI_BASE_BACKLOG_H

#include "oribi/base/sink.h"

struct oribi_backlog {
    char *text; /* borrowed */
    size_t cap;
    size_t pos; /* what is before was written */
    size_t len;
    uint64_t dropped; /* lines, since oribi_backlog_reported() */
    bool torn;        /* the last thing written is a part of a line whose rest was dropped */
};

/* Gives room for a line of at most n bytes, which oribi_backlog_commit() then adds; NULL when there is none: the
 * line counts as dropped. */
char *oribi_backlog_reserve(struct oribi_backlog *backlog, size_t n);
void oribi_backlog_commit(struct oribi_backlog *backlog, size_t n);

/* Writes what there is room for. 0: nothing is left, or nothing was there; ORIBI_AGAIN; or a code of os.h:
 * everything was dropped and counted. Keeps the last failure's text. */
int oribi_backlog_flush(struct oribi_backlog *backlog, struct oribi_sink *sink);

static inline bool oribi_backlog_waits(const struct oribi_backlog *backlog)
{
    return backlog->len > backlog->pos;
}

#endif
