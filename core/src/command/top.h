/* `ctl top`: the live view of a server on a terminal.
 *
 *   control socket ─ top_text.c ─► snapshot ─┬─► top.c ─► screen ─► top_terminal.c
 *                        the one before ─────┘ */
#ifndef ORIBI_COMMAND_TOP_H
#define ORIBI_COMMAND_TOP_H

#include "oribi/base/buf.h"
#include "oribi/observe/top_snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/* --- the screen --- */

enum oribi__top_sort {
    ORIBI__TOP_BY_AGE, /* of the call under way */
    ORIBI__TOP_BY_STATE,
    ORIBI__TOP_BY_REQUESTS,
    ORIBI__TOP_BY_RATE,
    ORIBI__TOP_BY_MEMORY,
    ORIBI__TOP_BY_CPU,
    ORIBI__TOP_BY_WORKER,
    ORIBI__TOP_SORTS,
};

enum { ORIBI__TOP_COLUMNS_MAX = 500 }; /* a wider screen stays empty on its right */

struct oribi__top_view {
    uint32_t columns; /* 0: lines are as long as they are */
    uint32_t rows;    /* 0: as many as there are workers */
    bool live;        /* for a terminal: with escape sequences, over what stands there */
    bool color;       /* if live */
    bool help;        /* the keys in the place of the workers */
    bool reverse;
    enum oribi__top_sort sort;
    const char *note; /* a line at the end of the header: what is wrong; NULL: none. Borrowed */
};

/* top.c: appends the screen for `now`; rates and quantiles are those since `before`, or since the server's start where
 * `before` is NULL or of another server. Pure. */
void oribi__top_render(struct oribi_buf *out, const struct oribi__top_snapshot *now,
                       const struct oribi__top_snapshot *before, const struct oribi__top_view *view);

/* The word for an order ("age"), and the key for it ('a'). */
const char *oribi__top_sort_name(enum oribi__top_sort sort);
char oribi__top_sort_key(enum oribi__top_sort sort);

/* --- the terminal --- */

enum {
    ORIBI__TOP_INTERVAL_MS_DEFAULT = 1000,
    ORIBI__TOP_INTERVAL_MS_MIN = 100,
    ORIBI__TOP_INTERVAL_MS_MAX = 60 * 60 * 1000,
};

/* top_terminal.c: shows the server whose control socket is `path` until the user ends it, where standard input and
 * output are terminals; else prints once, after two looks `interval_ms` apart. Messages go to stderr behind `program`.
 * Returns the exit code of `ctl`. */
int oribi__top_run(const char *path, const char *program, int64_t interval_ms, enum oribi__top_sort sort);

#endif
