/* Commands become bytes. */
#include "oribi/redis/writer.h"

#include "oribi/base/error.h"
#include "oribi/redis/reader.h"

#include <string.h>

/* Writes n in decimal to the end of a text of 20 bytes; returns how many. */
static size_t decimal(char text[20], uint64_t n)
{
    size_t at = 20;
    do
        text[--at] = (char)('0' + n % 10);
    while (n /= 10);
    return 20 - at;
}

/* The mark, a number, CR LF. */
static int head(struct oribi_buf *out, char mark, uint64_t n)
{
    char *p = oribi_buf_try_reserve(out, ORIBI_REDIS_HEAD_MAX);
    if (!p)
        return ORIBI_ENOMEM;
    char text[20];
    size_t digits = decimal(text, n);
    p[0] = mark;
    memcpy(p + 1, text + sizeof(text) - digits, digits);
    p[1 + digits] = '\r';
    p[2 + digits] = '\n';
    out->len += digits + 3;
    return 0;
}

int oribi_redis_begin(struct oribi_buf *out, uint64_t count)
{
    if (count == 0 || count > ORIBI_REDIS_ARGUMENTS_MAX)
        return ORIBI_EINVAL;
    return head(out, '*', count);
}

int oribi_redis_argument_head(struct oribi_buf *out, uint64_t n)
{
    return n > ORIBI_REDIS_STRING_MAX ? ORIBI_EINVAL : head(out, '$', n);
}

int oribi_redis_argument_end(struct oribi_buf *out)
{
    return oribi_buf_try_append(out, "\r\n", 2);
}

int oribi_redis_argument(struct oribi_buf *out, struct oribi_slice text)
{
    if (text.n > ORIBI_REDIS_STRING_MAX)
        return ORIBI_EINVAL;
    if (!oribi_buf_try_reserve(out, text.n + ORIBI_REDIS_HEAD_MAX + 2))
        return ORIBI_ENOMEM;
    int failed = head(out, '$', text.n);
    if (failed)
        return failed;
    char *p = oribi_buf_try_reserve(out, text.n + 2);
    if (!p)
        return ORIBI_ENOMEM;
    if (text.n > 0)
        memcpy(p, text.p, text.n);
    p[text.n] = '\r';
    p[text.n + 1] = '\n';
    out->len += text.n + 2;
    return 0;
}

int oribi_redis_argument_int(struct oribi_buf *out, int64_t value)
{
    char text[21];
    size_t n = decimal(text + 1, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    char *p = text + sizeof(text) - n;
    if (value < 0) {
        *--p = '-';
        n++;
    }
    return oribi_redis_argument(out, oribi_slice(p, n));
}

int oribi_redis_command(struct oribi_buf *out, const struct oribi_slice *arguments, uint64_t count)
{
    size_t before = out->len;
    int failed = oribi_redis_begin(out, count);
    for (uint64_t i = 0; i < count && !failed; i++)
        failed = oribi_redis_argument(out, arguments[i]);
    if (failed)
        out->len = before;
    return failed;
}
