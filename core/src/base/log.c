/* The error log. A line is put together on the stack (log_line.c) and leaves in one write(2), so that lines of several
 * processes that share the descriptor do not mix (O_APPEND, or a pipe up to PIPE_BUF). What there is no room for
 * waits in a queue of bounded length (sink.h).
 *
 *   2026-01-31T12:00:00.123Z oribi[4711] warn: text\n
 *
 * The log is state of the whole process: every source must be able to say why the process ends. Reading order:
 * oribi_log, deliver, lock; oribi_log_open. */
#include "oribi/base/log.h"

#include "base/log_line.h"

#include "oribi/base/sink.h"
#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"

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
    LINE_CAP = ORIBI__LOG_LINE_CAP,
    LIMIT_WINDOW_MS = 10 * 1000,
    LOCK_TRIES = 200,
    LOCK_YIELDS = 100, /* the other tries wait a millisecond each: a holder may have lost its processor */
    DRAIN_LOOK_MS = 10,
};

static char kept[ORIBI_LOG_KEPT_MAX];

/* Lines go through a copy of the descriptor that is ours alone: whatever becomes of standard error, they do not
 * follow it into a client's connection. */
static struct {
    _Atomic int level; /* written by the thread that opens the log, read by all, as are the next three */
    atomic_bool json;
    _Atomic uint32_t worker; /* its number and one; 0: the process is none */
    _Atomic uint32_t generation;
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

/* The request that lines of this thread concern; see oribi_log_about(). Signal handlers read it, too, so the first use
 * in a thread must not allocate it. */
static _Thread_local struct about {
    struct oribi_slice request_id;
    struct oribi_slice trace_id;
} about __attribute__((tls_model("initial-exec")));

/* --- the way out --- */

/* The lock is held for moments only; tries go on for a tenth of a second at most. False: a signal handler has
 * interrupted the thread that holds the lock, or the process was forked while another thread held it, and no thread
 * will release it. */
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
        if (tries < LOCK_YIELDS)
            oribi_os_yield();
        else
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000 * 1000}, NULL); /* a signal makes it shorter */
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

void oribi_log_set_json(bool json)
{
    atomic_store(&error_log.json, json);
}

bool oribi_log_is_json(void)
{
    return atomic_load_explicit(&error_log.json, memory_order_relaxed);
}

void oribi_log_identify(int worker, uint32_t generation)
{
    atomic_store(&error_log.worker, (uint32_t)(worker + 1));
    atomic_store(&error_log.generation, generation);
}

void oribi_log_about(struct oribi_slice request_id, struct oribi_slice trace_id)
{
    about.request_id = request_id;
    about.trace_id = trace_id;
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

static struct oribi__log_frame frame_of(enum oribi_log_level level)
{
    return (struct oribi__log_frame){
        .json = atomic_load_explicit(&error_log.json, memory_order_relaxed),
        .level = level,
        .wall_ms = oribi_clock_wall_ms(),
        .pid = (long)getpid(),
        .worker = atomic_load_explicit(&error_log.worker, memory_order_relaxed) - 1L,
        .generation = atomic_load_explicit(&error_log.generation, memory_order_relaxed),
        .request_id = about.request_id,
        .trace_id = about.trace_id,
    };
}

static void tell_dropped(void)
{
    struct oribi__log_line line;
    struct oribi_backlog *backlog = &error_log.backlog;
    oribi_backlog_count_dropped(backlog, atomic_exchange(&error_log.dropped_past, 0));
    if (backlog->dropped == 0)
        return;
    char text[192];
    struct oribi__log_frame frame = frame_of(ORIBI_LOG_WARN);
    frame.request_id.n = frame.trace_id.n = 0;
    int n = snprintf(text, sizeof(text), "%llu line%s of this log %s dropped: %s", (unsigned long long)backlog->dropped,
                     oribi_log_plural(backlog->dropped), backlog->dropped == 1 ? "was" : "were",
                     error_log.reason[0] ? error_log.reason : "its reader did not read in time");
    oribi__log_line_begin(&line, &frame);
    oribi__log_line_put(&line, text, n > 0 ? strlen(text) : 0);
    oribi__log_line_end(&line, &frame);
    if (oribi_sink_write(&error_log.sink, line.text, line.len) > 0) {
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
        if (!oribi_backlog_has_room(&error_log.backlog, n))
            flush(); /* its reader may have read since the last line */
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

static void write_line(struct oribi__log_line *line, const struct oribi__log_frame *frame)
{
    oribi__log_line_end(line, frame);
    deliver(line->text, line->len);
}

static void log_text(enum oribi_log_level level, struct oribi_slice members, const char *format, va_list args)
{
    char text[LINE_CAP];
    if (vsnprintf(text, sizeof(text), format, args) < 0)
        return;

    struct oribi__log_line line;
    struct oribi__log_frame frame = frame_of(level);
    frame.members = members;
    oribi__log_line_begin(&line, &frame);
    oribi__log_line_put(&line, text, strlen(text));
    write_line(&line, &frame);
}

void oribi_log(enum oribi_log_level level, const char *format, ...)
{
    if (dropped(level))
        return;
    va_list args;
    va_start(args, format);
    log_text(level, oribi_slice(NULL, 0), format, args);
    va_end(args);
}

void oribi_log_with(enum oribi_log_level level, struct oribi_slice members, const char *format, ...)
{
    if (dropped(level))
        return;
    va_list args;
    va_start(args, format);
    log_text(level, members, format, args);
    va_end(args);
}

/* The first line carries `head`; each line of the text follows on its own, four spaces in, so that a reader of the
 * log can tell it from a line of ours. All of it in one write as long as it fits. */
void oribi_log_block(enum oribi_log_level level, const char *head, const char *text, uint32_t n)
{
    if (dropped(level))
        return;
    struct oribi__log_line line;
    struct oribi__log_frame frame = frame_of(level);
    oribi__log_line_begin(&line, &frame);
    oribi__log_line_put(&line, head, strlen(head));
    while (n > 0 && text[n - 1] == '\n')
        n--;
    const char *end = text + n;
    for (const char *p = n > 0 ? text : NULL; p;) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        oribi__log_line_detail(&line, &frame, p, (size_t)((newline ? newline : end) - p));
        p = newline ? newline + 1 : NULL;
    }
    write_line(&line, &frame);
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
