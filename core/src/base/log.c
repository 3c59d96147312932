/* Error log lines. A line is put together on the stack and leaves in one write(2), so that lines of several
 * processes that share the descriptor do not mix (O_APPEND, or a pipe up to PIPE_BUF). What there is no room for
 * waits in a queue of bounded length (sink.h, backlog.h).
 *
 *   2026-01-31T12:00:00.123Z oribi[4711] warn: text\n
 *
 * The log is state of the whole process: every source must be able to say why the process ends. Reading order:
 * oribi_log, deliver, lock; oribi_log_open. */
#include "oribi/base/log.h"

#include "oribi/base/backlog.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/escape.h"
#include "oribi/base/os.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_CAP = 8 * 1024,
    LIMIT_WINDOW_MS = 10 * 1000,
    LOCK_TRIES = 1000,
    DRAIN_LOOK_MS = 10,
};

static char kept[ORIBI_LOG_KEPT_MAX];

/* Lines go through a copy of the descriptor that is ours alone: whatever becomes of standard error, they do not
 * follow it into a client's connection. */
static struct {
    _Atomic int level;  /* written by the thread that opens the log, read by all */
    atomic_bool waits;  /* the queue is not empty, or lines that were dropped are to be told; read by all */
    _Atomic pid_t lock; /* thread that holds the fields below; 0: none */
    pid_t pid;          /* whose queue it is: a child's copy is its parent's to write */
    struct oribi_sink sink;
    bool own;    /* the sink's descriptor is ours to close */
    bool robbed; /* the application has closed the descriptor, and the sink is a substitute */
    struct oribi_backlog backlog;
    _Atomic uint64_t dropped_past; /* lines of threads that could not have the lock */
    char reason[96];               /* why lines were dropped */
    char path[PATH_MAX];           /* absolute; "" when no file was opened; main thread only */
} error_log = {.level = ORIBI_LOG_INFO,
               .sink = {.fd = STDERR_FILENO, .way = ORIBI_SINK_POLL, .via = {-1, -1}},
               .backlog = {.text = kept, .cap = sizeof(kept)}};

struct line {
    size_t len;
    char text[LINE_CAP];
};

/* --- the way out --- */

/* The lock is held for moments only, so waiting is short. False: a signal handler has interrupted the thread that holds
 * the lock, or the process was forked while another thread held it, and no thread will release it. */
static bool lock(void)
{
    pid_t self = getpid();
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        pid_t holder = 0;
        bool taken = atomic_compare_exchange_strong(&error_log.lock, &holder, self) ||
                     (holder != self && atomic_compare_exchange_strong(&error_log.lock, &holder, self));
        if (taken && error_log.pid != self) {
            error_log.backlog = (struct oribi_backlog){.text = kept, .cap = sizeof(kept)};
            error_log.pid = self;
        }
        if (taken)
            return true;
        oribi_os_yield();
    }
    return false;
}

static void unlock(void)
{
    atomic_store(&error_log.waits, oribi_backlog_waits(&error_log.backlog) || error_log.backlog.dropped > 0);
    atomic_store(&error_log.lock, 0);
}

/* Takes fd if it is ours. */
static void write_to(int fd, bool own)
{
    struct oribi_sink before = ORIBI_SINK_NONE;
    bool locked = lock(); /* else it is a signal handler's process that ends anyway */
    if (error_log.own)
        before = error_log.sink;
    if (own) {
        oribi_sink_open(&error_log.sink, fd);
    } else {
        error_log.sink = ORIBI_SINK_NONE;
        error_log.sink.fd = fd;
        error_log.sink.way = ORIBI_SINK_POLL;
    }
    error_log.own = own;
    error_log.robbed = false;
    if (locked)
        unlock();
    oribi_sink_close(&before);
}

void oribi_log_set_level(enum oribi_log_level level)
{
    atomic_store(&error_log.level, (int)level);
}

void oribi_log_init(int fd, enum oribi_log_level level)
{
    int copy = fd >= 0 ? oribi_os_dup(fd) : -1;
    oribi_log_set_level(level);
    write_to(copy >= 0 ? copy : fd, copy >= 0); /* better a borrowed one than none */
}

/* Standard error goes along as long as it leads where our lines go: an application that has pointed it elsewhere
 * keeps what it chose. It is never CLOEXEC: programs the application starts write there too. */
static int point_at(const char *path, const struct oribi_log_owner *owner, bool again)
{
    int fd = -1;
    bool stream = false;
    int code = oribi_log_file_open(path, owner, &fd, &stream);
    if (code == 0 && stream && again) { /* the sink is that descriptor already */
        oribi_os_close(fd);
        return 0;
    }
    if (code == 0 && oribi_os_same_file(STDERR_FILENO, error_log.sink.fd) && dup2(fd, STDERR_FILENO) < 0) {
        code = oribi_os_fail();
        oribi_os_close(fd);
    }
    if (code == 0)
        write_to(fd, true);
    return code;
}

int oribi_log_open(const char *path, const struct oribi_log_owner *owner)
{
    char absolute[PATH_MAX];
    int code = oribi_os_absolute_path(path, absolute, sizeof(absolute));
    if (code == 0)
        code = point_at(absolute, owner, false);
    if (code == 0)
        memcpy(error_log.path, absolute, strlen(absolute) + 1);
    return code;
}

int oribi_log_reopen(const struct oribi_log_owner *owner)
{
    return error_log.path[0] ? point_at(error_log.path, owner, true) : 0;
}

bool oribi_log_intact(void)
{
    bool locked = lock();
    bool intact = !error_log.robbed && (!error_log.own || oribi_sink_intact(&error_log.sink));
    if (locked)
        unlock();
    return intact;
}

int oribi_log_fd(void)
{
    return error_log.sink.fd;
}

/* An application that closes all descriptors it does not know has closed our copy too, and may have got its number.
 * Standard error is then the next best, if it still leads there. */
static void make_shift(void)
{
    bool same = oribi_os_is_marked(STDERR_FILENO, &error_log.sink.mark);
    error_log.sink = ORIBI_SINK_NONE; /* what it holds is not ours to close */
    error_log.sink.fd = same ? STDERR_FILENO : -1;
    error_log.sink.way = ORIBI_SINK_POLL;
    error_log.own = false;
    error_log.robbed = true;
}

static bool dropped(enum oribi_log_level level)
{
    return (int)level < atomic_load_explicit(&error_log.level, memory_order_relaxed);
}

/* Room is always kept for the final newline. */
static void put_byte(struct line *line, char c)
{
    if (line->len < LINE_CAP - 1)
        line->text[line->len++] = c;
}

/* \xNN; one that does not fit is left out whole. */
static void put_number(struct line *line, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    if (line->len + 4 > LINE_CAP - 1)
        return;
    put_byte(line, '\\');
    put_byte(line, 'x');
    put_byte(line, hex[byte >> 4]);
    put_byte(line, hex[byte & 15]);
}

/* U+0080 to U+009F are controls too: a terminal may obey U+009B as it obeys ESC [. */
static bool is_c1(const char *p)
{
    return p[0] == '\xc2' && (unsigned char)p[1] < 0xa0;
}

/* Writes [p, p+n), but controls other than those in `allowed`, and what is no UTF-8, as numbers. */
static void put_escaped(struct line *line, const char *p, size_t n, const char *allowed)
{
    while (n > 0) {
        unsigned char byte = (unsigned char)*p;
        size_t len = byte < 0x80 ? 1 : oribi_utf8_len(p, n);
        bool plain = len > 0 && !is_c1(p);
        if (byte < 0x20 || byte == 0x7f)
            plain = byte && strchr(allowed, byte);
        if (!plain)
            put_number(line, byte);
        else if (line->len + len <= LINE_CAP - 1)
            for (size_t i = 0; i < len; i++)
                put_byte(line, p[i]);
        len = plain ? len : 1;
        p += len;
        n -= len;
    }
}

static void put_text(struct line *line, const char *text)
{
    put_escaped(line, text, strlen(text), "");
}

static void put_prefix(struct line *line, enum oribi_log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    int64_t now_ms = oribi_clock_wall_ms();
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm utc = {0};
    (void)gmtime_r(&seconds, &utc); /* fails for years beyond int only */
    int n = snprintf(line->text, LINE_CAP, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ oribi[%ld] %s: ", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, (int)(now_ms % 1000),
                     (long)getpid(), names[level]);
    line->len = n > 0 ? (size_t)n : 0;
}

static void tell_dropped(void)
{
    struct line line;
    struct oribi_backlog *backlog = &error_log.backlog;
    oribi_backlog_count_dropped(backlog, atomic_exchange(&error_log.dropped_past, 0));
    if (backlog->dropped == 0)
        return;
    put_prefix(&line, ORIBI_LOG_WARN);
    int n = snprintf(line.text + line.len, LINE_CAP - line.len, "%llu line%s of this log %s dropped: %s\n",
                     (unsigned long long)backlog->dropped, oribi_log_plural(backlog->dropped),
                     backlog->dropped == 1 ? "was" : "were",
                     error_log.reason[0] ? error_log.reason : "its reader did not read in time");
    if (n > 0 && oribi_sink_write(&error_log.sink, line.text, line.len + (size_t)n) > 0) {
        backlog->dropped = 0;
        error_log.reason[0] = '\0';
    }
}

/* With the lock. */
static void flush(void)
{
    if (error_log.own && !oribi_sink_intact(&error_log.sink))
        make_shift();
    int code = oribi_backlog_flush(&error_log.backlog, &error_log.sink);
    if (code < 0 && code != ORIBI_AGAIN)
        (void)snprintf(error_log.reason, sizeof(error_log.reason), "%s", oribi_os_error_text());
    if (code == 0)
        tell_dropped();
}

static void deliver(const char *p, size_t n)
{
    struct oribi_os_error before = oribi_os_error_save();
    if (lock()) {
        char *room = oribi_backlog_reserve(&error_log.backlog, n);
        if (room) {
            memcpy(room, p, n);
            oribi_backlog_commit(&error_log.backlog, n);
        }
        flush();
        unlock();
    } else if (oribi_os_write_polled(error_log.sink.fd, p, n < PIPE_BUF ? n : PIPE_BUF) < 0) {
        atomic_fetch_add(&error_log.dropped_past, 1);
    }
    oribi_os_error_restore(before);
}

uint64_t oribi_log_dropped(void)
{
    return atomic_load_explicit(&error_log.backlog.dropped_ever, memory_order_relaxed);
}

bool oribi_log_waits(void)
{
    return atomic_load_explicit(&error_log.waits, memory_order_relaxed);
}

void oribi_log_flush(void)
{
    if (!oribi_log_waits() || !lock())
        return;
    struct oribi_os_error before = oribi_os_error_save();
    flush();
    unlock();
    oribi_os_error_restore(before);
}

void oribi_log_drain(int64_t ms)
{
    int64_t until_ms = oribi_clock_ms() + ms;
    for (oribi_log_flush(); oribi_log_waits() && oribi_clock_ms() < until_ms; oribi_log_flush())
        (void)poll(NULL, 0, DRAIN_LOOK_MS);
}

static void write_line(struct line *line)
{
    line->text[line->len++] = '\n';
    deliver(line->text, line->len);
}

void oribi_log(enum oribi_log_level level, const char *format, ...)
{
    if (dropped(level))
        return;
    char text[LINE_CAP];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (n < 0)
        return;

    struct line line;
    put_prefix(&line, level);
    put_text(&line, text);
    write_line(&line);
}

/* The first line carries `head`; each line of the text follows on its own, four spaces in, so that a reader of the
 * log can tell it from a line of ours. All of it in one write as long as it fits. */
void oribi_log_block(enum oribi_log_level level, const char *head, const char *text, uint32_t n)
{
    if (dropped(level))
        return;
    struct line line;
    put_prefix(&line, level);
    put_text(&line, head);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    const char *end = text + n;
    for (const char *p = n > 0 ? text : NULL; p;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (line.len + 5 <= LINE_CAP - 1) {
            memcpy(line.text + line.len, "\n    ", 5);
            line.len += 5;
        }
        put_escaped(&line, p, (size_t)((newline ? newline : end) - p), "\t");
        p = newline ? newline + 1 : NULL;
    }
    write_line(&line);
}

/* Through a pipe of ours, because the sink may have no room and the C library's function waits for it. What that
 * pipe holds is more than a line can. */
int oribi_log_limit_allows(struct oribi_log_limit *limit, int64_t now_ms)
{
    if (limit->window_ms == 0 || now_ms - limit->window_ms >= LIMIT_WINDOW_MS) {
        limit->window_ms = now_ms;
        limit->passed = 0;
    }
    if (limit->passed >= limit->burst) {
        limit->dropped++;
        return 0;
    }
    limit->passed++;
    if (limit->dropped > 0) {
        oribi_log(ORIBI_LOG_WARN, "%u similar lines were left out", limit->dropped);
        limit->dropped = 0;
    }
    return 1;
}

const char *oribi_log_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}
