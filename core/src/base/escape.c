/* One loop for both kinds; see the header. */
#include "oribi/base/escape.h"

#include <stdbool.h>
#include <string.h>

size_t oribi_utf8_len(const char *text, size_t n)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max, len;
    } shapes[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    const unsigned char *p = (const unsigned char *)text;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (p[0] < shapes[i].first_min || p[0] > shapes[i].first_max)
            continue;
        if (n < shapes[i].len || p[1] < shapes[i].second_min || p[1] > shapes[i].second_max)
            return 0;
        for (size_t k = 2; k < shapes[i].len; k++) {
            if ((p[k] & 0xc0) != 0x80)
                return 0;
        }
        return shapes[i].len;
    }
    return 0;
}

static char *put_number(char *dst, const char *prefix, size_t prefix_len, unsigned char byte)
{
    static const char hex[] = "0123456789abcdef";
    memcpy(dst, prefix, prefix_len);
    dst += prefix_len;
    *dst++ = hex[byte >> 4];
    *dst++ = hex[byte & 15];
    return dst;
}

static inline char *escape(char *dst, struct oribi_slice text, bool json)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        size_t sequence = json && c >= 0x80 ? oribi_utf8_len(text.p + i, text.n - i) : 0;
        if (sequence) {
            memcpy(dst, text.p + i, sequence);
            dst += sequence;
            i += sequence - 1;
        } else if (c == '"' || c == '\\') {
            *dst++ = '\\';
            *dst++ = (char)c;
        } else if (c >= 0x20 && c < 0x7f) {
            *dst++ = (char)c;
        } else {
            dst = json ? put_number(dst, "\\u00", 4, c) : put_number(dst, "\\x", 2, c);
        }
    }
    return dst;
}

char *oribi_escape_text(char *dst, struct oribi_slice text)
{
    return escape(dst, text, false);
}

char *oribi_escape_json(char *dst, struct oribi_slice text)
{
    return escape(dst, text, true);
}
