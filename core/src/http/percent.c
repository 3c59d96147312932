/* Percent-decoding. Strict, since a path decoded by guesswork is one that another program reads differently. */
#include "oribi/http/syntax.h"

#include "oribi/base/error.h"

#include <string.h>

ssize_t oribi_percent_decode(struct oribi_slice in, char *dst)
{
    const char *p = in.p;
    size_t left = in.n;
    char *out = dst;
    while (left) {
        const char *mark = memchr(p, '%', left);
        size_t plain = mark ? (size_t)(mark - p) : left;
        if (out != p)
            memmove(out, p, plain);
        out += plain;
        p += plain;
        left -= plain;
        if (!mark)
            break;
        int high = left > 2 ? hex_value(p[1]) : -1;
        int low = left > 2 ? hex_value(p[2]) : -1;
        if (high < 0 || low < 0)
            return ORIBI_EBAD;
        *out++ = (char)(high << 4 | low);
        p += 3;
        left -= 3;
    }
    return out - dst;
}
