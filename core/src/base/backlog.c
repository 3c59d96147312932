/* The queue before a sink. It moves only when its end is reached, so a reader that is always a little behind costs
 * little. */
#include "oribi/base/sink.h"

#include "oribi/base/error.h"

#include <string.h>

void oribi_backlog_count_dropped(struct oribi_backlog *b, uint64_t lines)
{
    b->dropped += lines;
    atomic_fetch_add_explicit(&b->dropped_ever, lines, memory_order_relaxed);
}

char *oribi_backlog_reserve(struct oribi_backlog *b, size_t n)
{
    if (b->cap - b->len < n && b->pos > 0) {
        memmove(b->text, b->text + b->pos, b->len - b->pos);
        b->len -= b->pos;
        b->pos = 0;
    }
    if (b->cap - b->len >= n)
        return b->text + b->len;
    oribi_backlog_count_dropped(b, 1);
    return NULL;
}

void oribi_backlog_commit(struct oribi_backlog *b, size_t n)
{
    b->len += n;
}

static uint64_t count_lines(const char *p, size_t n)
{
    uint64_t count = 0;
    for (const char *end = p + n; p < end; count++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        p = newline ? newline + 1 : end;
    }
    return count;
}

/* The sink takes nothing any more: a full disk, a reader that is gone. */
static void drop_all(struct oribi_backlog *b)
{
    oribi_backlog_count_dropped(b, count_lines(b->text + b->pos, b->len - b->pos));
    b->torn = b->torn || (b->pos > 0 && b->text[b->pos - 1] != '\n');
    b->pos = b->len = 0;
}

int oribi_backlog_flush(struct oribi_backlog *b, struct oribi_sink *sink)
{
    if (!oribi_backlog_waits(b))
        return 0;
    if (b->torn && oribi_sink_write(sink, "\n", 1) == 1)
        b->torn = false;
    while (b->pos < b->len) {
        const char *p = b->text + b->pos;
        ssize_t sent = oribi_sink_write(sink, p, oribi_sink_piece(sink, p, b->len - b->pos));
        if (sent == ORIBI_AGAIN)
            return ORIBI_AGAIN;
        if (sent <= 0) {
            drop_all(b);
            return sent < 0 ? (int)sent : ORIBI_ESYS;
        }
        b->pos += (size_t)sent;
    }
    b->pos = b->len = 0;
    return 0;
}
