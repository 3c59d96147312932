/* Error log lines. A line is put together on the stack and leaves in one write(2), so that lines of several processes that share the
 * descriptor do not mix (O_APPEND, or a pipe up to PIPE_BUF).
 *
 *   2026-01-31T12:00:00.123Z oribi[4711] warn: text\n
 *
 * The log is the one mutable global of the core: everything must be able to say why it dies. */
#include "oribi/base/log.h"

#include "oribi/base/clock.h"
#include "oribi/base/escape.h"
#include "oribi/base/os.h"

#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    LINE_CAP = 8 * 1024,
    GATE_WINDOW_MS = 10 * 1000,
};

/* Lines go through a copy of the descriptor that is ours alone: whatever becomes of standard error, they do not follow it into a client's connection. */
static struct {
    _Atomic int fd;      /* written by the thread that opens or reopens the log, read by all */
    _Atomic int level;   /* likewise */
    _Atomic unsigned mark;         /* which of `marks` says what fd stands for */
    struct oribi_fd_mark marks[2]; /* the other one is written before it counts */
    atomic_bool own;               /* fd is such a copy */
    char path[PATH_MAX];           /* absolute; "" when no file was opened; main thread only */
} error_log = {.fd = STDERR_FILENO, .level = ORIBI_LOG_INFO};

struct line {
    size_t len;
    char text[LINE_CAP];
};

/* Takes fd. Its number stays what it was where there is one already, so that no line of another thread meets a closed descriptor. */
static void write_to(int fd)
{
    int before = atomic_load(&error_log.fd);
    unsigned mark = !atomic_load(&error_log.mark);
    oribi_os_mark(fd, &error_log.marks[mark]);
    atomic_store(&error_log.mark, mark);
    if (error_log.own && oribi_os_replace(before, fd) == 0) {
        oribi_os_close(fd);
        return;
    }
    atomic_store(&error_log.fd, fd);
    error_log.own = true;
}

void oribi_log_init(int fd, enum oribi_log_level level)
{
    int copy = fd >= 0 ? oribi_os_dup(fd) : -1;
    atomic_store(&error_log.level, (int)level);
    if (copy >= 0) {
        write_to(copy);
        return;
    }
    if (error_log.own)
        oribi_os_close(atomic_load(&error_log.fd));
    error_log.own = false;
    atomic_store(&error_log.fd, fd); /* better a borrowed one than none */
}

/* Standard error goes along as long as it leads where our lines go: an application that has pointed it elsewhere keeps what it chose. It is never CLOEXEC:
 * programs the application starts write there too. */
static int point_at(const char *path)
{
    int fd = -1;
    int code = oribi_os_open_append(path, &fd);
    if (code == 0 && oribi_os_same_file(STDERR_FILENO, atomic_load(&error_log.fd)) && dup2(fd, STDERR_FILENO) < 0) {
        code = oribi_os_fail();
        oribi_os_close(fd);
    }
    if (code == 0)
        write_to(fd);
    return code;
}

int oribi_log_open(const char *path)
{
    char absolute[PATH_MAX];
    int code = oribi_os_absolute_path(path, absolute, sizeof(absolute));
    if (code == 0)
        code = point_at(absolute);
    if (code == 0)
        memcpy(error_log.path, absolute, strlen(absolute) + 1);
    return code;
}

int oribi_log_reopen(void)
{
    return error_log.path[0] ? point_at(error_log.path) : 0;
}

static bool is_ours(int fd)
{
    return oribi_os_is_marked(fd, &error_log.marks[atomic_load(&error_log.mark)]);
}

bool oribi_log_intact(void)
{
    return !atomic_load(&error_log.own) || is_ours(atomic_load(&error_log.fd));
}

/* An application that closes all descriptors it does not know has closed our copy too, and may have got its number. Standard error is then the next best, if it
 * still leads there. -1: nowhere. */
int oribi_log_fd(void)
{
    int fd = atomic_load(&error_log.fd);
    if (oribi_log_intact())
        return fd;
    return is_ours(STDERR_FILENO) ? STDERR_FILENO : -1;
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

/* A descriptor may be non-blocking because whoever gave it to us made it so; waiting there could stop the server for a stuck reader. */
static void write_line(struct line *line)
{
    line->text[line->len++] = '\n';
    oribi_os_write_line(oribi_log_fd(), line->text, line->len);
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

/* The first line carries `head`; each line of the text follows on its own, four spaces in, so that a reader of the log can tell it from
 * a line of ours. All of it in one write as long as it fits. */
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

int oribi_log_gate_open(struct oribi_log_gate *gate, int64_t now_ms)
{
    if (gate->window_ms == 0 || now_ms - gate->window_ms >= GATE_WINDOW_MS) {
        gate->window_ms = now_ms;
        gate->passed = 0;
    }
    if (gate->passed >= gate->burst) {
        gate->dropped++;
        return 0;
    }
    gate->passed++;
    if (gate->dropped > 0) {
        oribi_log(ORIBI_LOG_WARN, "%u similar lines were left out", gate->dropped);
        gate->dropped = 0;
    }
    return 1;
}

const char *oribi_log_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}
