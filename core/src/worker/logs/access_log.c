/* Access log. Lines gather in a buffer and leave in one write a turn; several workers append to the same file. What
 * there is no room for stays in the buffer (sink.h). What a line looks like: access_line.c. */
#include "oribi/worker/logs/access_log.h"

#include "oribi/base/sink.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_terminal.h"
#include "worker/logs/access_line.h"
#include "oribi/http/head.h"

#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    REPORT_INTERVAL_MS = 60 * 1000,
    RESUMED_INTERVAL_MS = 1000, /* between two lines about a reader that comes and goes */
};

struct oribi_access_log {
    struct oribi_backlog lines;
    struct oribi__line_style style;
    struct oribi_sink sink;
    bool stalled;                       /* the last write found no room */
    bool full;                          /* lines are dropped until it takes some again, and the error log knows */
    const struct oribi_text_list *skip; /* paths without lines; NULL: none */
    uint32_t sample;                    /* of so many answers below 400 one has a line; 0 or 1: each has */
    uint32_t sampled;                   /* such answers so far */
    int64_t reported_ms;                /* when the error log was told last of lines that were lost; 0: never */
    char path[PATH_MAX];                /* absolute; "" for standard output */
};

static int open_path(struct oribi_access_log *log, const struct oribi_log_owner *owner, bool again, char *error)
{
    bool stream = false;
    int fd = *log->path ? -1 : oribi_os_dup(STDOUT_FILENO);
    int code = *log->path ? oribi_log_file_open(log->path, owner, &fd, &stream) : fd < 0 ? fd : 0;
    if (code == 0 && stream && again) { /* what it was then, we have */
        oribi_os_close(fd);
        return 0;
    }
    if (code < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot open the access log %.120s: %s",
                       *log->path ? log->path : "-", oribi_os_error_text());
        return code;
    }
    log->style.colours = !*log->path && oribi_terminal_shows_colours(STDOUT_FILENO);
    oribi_sink_close(&log->sink);
    oribi_sink_open(&log->sink, fd);
    log->stalled = false;
    return 0;
}

int oribi_access_log_open(const char *path, const char *format, const struct oribi_log_owner *owner,
                          struct oribi_access_log **out, char *error)
{
    if (strcmp(path, "off") == 0) {
        *out = NULL;
        return 0;
    }
    struct oribi_access_log *log = oribi_mem_alloc(1, sizeof(*log));
    log->sink = ORIBI_SINK_NONE;
    int code = oribi__line_style_init(&log->style, format, error);
    if (code == 0 && strcmp(path, "-") != 0 &&
        (code = oribi_os_absolute_path(path, log->path, sizeof(log->path))) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot open the access log %.120s: %s", path,
                       oribi_os_error_text());
    }
    if (code == 0)
        code = open_path(log, owner, false, error);
    if (code < 0) {
        oribi__line_style_deinit(&log->style);
        oribi_mem_free(log);
        return code;
    }
    log->lines.cap = ORIBI_ACCESS_KEPT_MAX + log->style.bytes_max; /* pages that are never touched are never had */
    log->lines.text = oribi_mem_alloc(1, log->lines.cap);
    *out = log;
    return 0;
}

int oribi_access_log_reopen(struct oribi_access_log *log, const struct oribi_log_owner *owner, char *error)
{
    if (!log)
        return 0;
    oribi_access_log_flush(log); /* what happened before the rotation belongs to the old file */
    return *log->path ? open_path(log, owner, true, error) : 0;
}

int oribi_access_log_follow_stdout(struct oribi_access_log *log, char *error)
{
    return log && !*log->path ? open_path(log, NULL, false, error) : 0;
}

void oribi_access_log_close(struct oribi_access_log *log)
{
    if (!log)
        return;
    oribi_access_log_drain(log, ORIBI_LOG_DRAIN_MS);
    oribi_access_log_forget(log);
}

void oribi_access_log_forget(struct oribi_access_log *log)
{
    if (!log)
        return;
    oribi_sink_close(&log->sink);
    oribi__line_style_deinit(&log->style);
    oribi_mem_free(log->lines.text);
    oribi_mem_free(log);
}

int oribi_access_log_fd(const struct oribi_access_log *log)
{
    return log->sink.fd;
}

bool oribi_access_log_intact(const struct oribi_access_log *log)
{
    return !log || oribi_sink_intact(&log->sink);
}

/* Writing */

/* Lines that could not be written: the disk is full, or the reader is gone. */
static void report_lost(struct oribi_access_log *log)
{
    int64_t now_ms = oribi_clock_ms();
    if (log->reported_ms && now_ms - log->reported_ms < REPORT_INTERVAL_MS)
        return;
    oribi_log(ORIBI_LOG_ERROR, "access log: %llu lines lost: %s", (unsigned long long)log->lines.dropped,
              oribi_os_error_text());
    log->lines.dropped = 0;
    log->reported_ms = now_ms;
}

/* Nobody reads, and as many lines are kept as may be. */
static void report_full(struct oribi_access_log *log)
{
    if (!log->full)
        oribi_log(ORIBI_LOG_ERROR,
                  "access log: its reader has not taken the last %d KiB: dropping lines until it reads on",
                  ORIBI_ACCESS_KEPT_MAX / 1024);
    log->full = true;
}

/* Where both logs have one reader, the error log has no room yet as a rule: this is told when it has. */
static void report_resumed(struct oribi_access_log *log)
{
    oribi_log_flush();
    if (oribi_log_waits())
        return;
    int64_t now_ms = oribi_clock_ms();
    if (log->reported_ms && now_ms - log->reported_ms < RESUMED_INTERVAL_MS)
        return;
    oribi_log(ORIBI_LOG_ERROR, "access log: %llu lines lost while its reader did not read; writing goes on",
              (unsigned long long)log->lines.dropped);
    log->lines.dropped = 0;
    log->full = false;
    log->reported_ms = now_ms;
}

uint64_t oribi_access_log_dropped(const struct oribi_access_log *log)
{
    return log ? atomic_load_explicit(&log->lines.dropped_ever, memory_order_relaxed) : 0;
}

bool oribi_access_log_waits(const struct oribi_access_log *log)
{
    return log && (oribi_backlog_waits(&log->lines) || log->full);
}

void oribi_access_log_flush(struct oribi_access_log *log)
{
    if (!oribi_access_log_waits(log))
        return;
    int code = oribi_backlog_flush(&log->lines, &log->sink);
    log->stalled = code == ORIBI_AGAIN;
    if (log->stalled && log->lines.dropped > 0)
        report_full(log);
    else if (code == 0 && log->full)
        report_resumed(log);
    else if (code < 0 && !log->stalled)
        report_lost(log);
}

void oribi_access_log_drain(struct oribi_access_log *log, int64_t ms)
{
    enum { LOOK_MS = 10 };
    int64_t until_ms = oribi_clock_ms() + ms;
    oribi_access_log_flush(log);
    while (oribi_access_log_waits(log) && oribi_clock_ms() < until_ms) {
        (void)poll(NULL, 0, LOOK_MS);
        oribi_access_log_flush(log);
    }
    if (oribi_access_log_waits(log))
        oribi_log(ORIBI_LOG_ERROR, "access log: its reader does not read: the last lines are lost%s",
                  log->full ? ", and others before" : "");
}

void oribi_access_log_discard(struct oribi_access_log *log)
{
    if (!log)
        return;
    log->lines.pos = log->lines.len = 0;
    log->lines.dropped = 0;
    atomic_store(&log->lines.dropped_ever, 0);
    log->full = false;
}

/* --- choosing --- */

void oribi_access_log_choose(struct oribi_access_log *log, const struct oribi_text_list *skip, uint32_t sample)
{
    if (!log)
        return;
    log->skip = skip;
    log->sample = sample;
}

uint32_t oribi_access_log_wants(const struct oribi_access_log *log)
{
    return log ? log->style.wants : 0;
}

static bool has_path(const struct oribi_text_list *list, struct oribi_slice path)
{
    for (size_t i = 0; i < list->count; i++) {
        size_t n = strlen(list->items[i]);
        bool open_end = n > 0 && list->items[i][n - 1] == '*';
        n -= open_end;
        if ((open_end ? path.n >= n : path.n == n) && memcmp(path.p, list->items[i], n) == 0)
            return true;
    }
    return false;
}

/* Has this entry no line? */
static bool is_left_out(struct oribi_access_log *log, const struct oribi_access_entry *entry)
{
    if (log->skip && log->skip->count && entry->head->path.n && has_path(log->skip, entry->head->path))
        return true;
    if (log->sample <= 1 || entry->status >= 400 || entry->cut)
        return false;
    return log->sampled++ % log->sample != 0;
}

void oribi_access_log_add(struct oribi_access_log *log, const struct oribi_access_entry *entry)
{
    if (!log)
        return;
    if (is_left_out(log, entry))
        return;
    char *start = oribi_backlog_reserve(&log->lines, log->style.bytes_max);
    if (!start)
        return; /* dropped and counted: the next flush says so */
    char *end = oribi__access_line(&log->style, start, entry);
    oribi_backlog_commit(&log->lines, (size_t)(end - start));
    if (!log->stalled && log->lines.len >= ORIBI_ACCESS_BUFFER_MAX)
        oribi_access_log_flush(log);
}
