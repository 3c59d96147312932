/* A growing byte buffer. It grows by half, at least to 256 bytes, so that appending n bytes one by one costs O(n). */
#include "oribi/base/buf.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CAP_MIN = 256, PRINT_ROOM = 128 };

void oribi_buf_deinit(struct oribi_buf *buf)
{
    oribi_mem_free(buf->p);
    *buf = (struct oribi_buf){0};
}

char *oribi_buf_try_reserve(struct oribi_buf *buf, size_t more)
{
    assert(buf->len <= buf->cap);
    if (buf->p && more <= buf->cap - buf->len)
        return buf->p + buf->len;

    size_t need;
    if (__builtin_add_overflow(buf->len, more, &need))
        return NULL;
    size_t cap = buf->cap + buf->cap / 2;
    if (cap < need)
        cap = need;
    if (cap < CAP_MIN)
        cap = CAP_MIN;
    char *p = oribi_mem_try_resize(buf->p, cap, 1);
    if (!p)
        return NULL;
    buf->p = p;
    buf->cap = cap;
    return p + buf->len;
}

char *oribi_buf_reserve(struct oribi_buf *buf, size_t more)
{
    char *p = oribi_buf_try_reserve(buf, more);
    if (!p) {
        oribi_log(ORIBI_LOG_ERROR, "out of memory: buffer of %zu and %zu more bytes", buf->len, more);
        _exit(ORIBI_EXIT_MEMORY);
    }
    return p;
}

int oribi_buf_try_append(struct oribi_buf *buf, const void *p, size_t n)
{
    if (n == 0)
        return 0;
    char *dst = oribi_buf_try_reserve(buf, n);
    if (!dst)
        return ORIBI_ENOMEM;
    memcpy(dst, p, n);
    buf->len += n;
    return 0;
}

void oribi_buf_append(struct oribi_buf *buf, const void *p, size_t n)
{
    if (n == 0)
        return;
    memcpy(oribi_buf_reserve(buf, n), p, n);
    buf->len += n;
}

void oribi_buf_print(struct oribi_buf *buf, const char *format, ...)
{
    size_t room = PRINT_ROOM;
    int n = 0;
    do {
        char *dst = oribi_buf_try_reserve(buf, room);
        if (!dst)
            return;
        va_list args;
        va_start(args, format);
        n = vsnprintf(dst, room, format, args);
        va_end(args);
        room = n >= (int)room ? (size_t)n + 1 : 0; /* with the NUL; once more at the most */
    } while (room > 0);
    buf->len += n > 0 ? (size_t)n : 0;
}

void oribi_buf_consume(struct oribi_buf *buf, size_t n)
{
    assert(n <= buf->len);
    if (n == 0)
        return;
    buf->len -= n;
    memmove(buf->p, buf->p + n, buf->len);
}
