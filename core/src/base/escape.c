/* One loop for both kinds; see the header. Reading order: escape, copy_plain. */
#include "oribi/base/escape.h"

#include <stdbool.h>
#include <stdint.h>
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

uint32_t oribi_hidden_character(const char *text, size_t len)
{
    const unsigned char *p = (const unsigned char *)text;
    if (len == 2) {
        uint32_t code = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
        return code < 0xa0 || code == 0x61c ? code : 0;
    }
    if (len != 3 || p[0] != 0xe2)
        return 0;
    uint32_t code = (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
    bool turns =
        code == 0x200e || code == 0x200f || (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
    return turns || code == 0x2028 || code == 0x2029 ? code : 0;
}

static char *put_code(char *dst, uint32_t code)
{
    static const char hex[] = "0123456789abcdef";
    const char text[] = {'\\', 'u', hex[code >> 12], hex[code >> 8 & 15], hex[code >> 4 & 15], hex[code & 15]};
    memcpy(dst, text, sizeof(text));
    return dst + sizeof(text);
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

/* --- plain text --- */

enum { WORD = sizeof(uint64_t) };

static inline uint64_t each(unsigned char byte)
{
    return 0x0101010101010101u * byte;
}

/* Has the word a byte that is zero? Its high bits tell, but for bytes behind the first one that is. */
static inline uint64_t zeros(uint64_t word)
{
    return (word - each(1)) & ~word;
}

/* Are these eight bytes printable ASCII without quote and backslash? */
static inline bool is_plain(uint64_t word)
{
    uint64_t low = (word - each(0x20)) & ~word; /* below a space */
    uint64_t bad = word | low | zeros(word ^ each('"')) | zeros(word ^ each('\\')) | zeros(word ^ each(0x7f));
    return (bad & each(0x80)) == 0;
}

/* Nearly all of what is logged is plain: eight bytes at a time. Returns how many were copied. */
static inline size_t copy_plain(char *dst, const char *src, size_t n)
{
    size_t done = 0;
    for (; n - done >= WORD; done += WORD) {
        uint64_t word;
        memcpy(&word, src + done, WORD);
        if (!is_plain(word))
            break;
        memcpy(dst + done, &word, WORD);
    }
    return done;
}

/* Copies fewer bytes than a word has: two overlapping halves of it. False: not all of them are plain. */
static inline bool copy_short(char *dst, const char *src, size_t n)
{
    if (n >= 4) {
        uint32_t first;
        uint32_t last;
        memcpy(&first, src, 4);
        memcpy(&last, src + n - 4, 4);
        if (!is_plain(first | (uint64_t)last << 32))
            return false;
        memcpy(dst, &first, 4);
        memcpy(dst + n - 4, &last, 4);
        return true;
    }
    if (n == 0)
        return true;
    char first = src[0];
    char middle = src[n / 2];
    char last = src[n - 1];
    if (!is_plain(each('a') << 24 | (uint64_t)(unsigned char)first << 16 | (uint64_t)(unsigned char)middle << 8 |
                  (unsigned char)last))
        return false;
    dst[0] = first;
    dst[n / 2] = middle;
    dst[n - 1] = last;
    return true;
}

__attribute__((always_inline)) static inline char *escape(char *dst, struct oribi_slice text, bool json)
{
    for (size_t i = 0; i < text.n;) {
        size_t plain = copy_plain(dst, text.p + i, text.n - i);
        dst += plain;
        i += plain;
        if (text.n - i < WORD && copy_short(dst, text.p + i, text.n - i))
            return dst + (text.n - i);
        size_t end = text.n - i < WORD ? text.n : i + WORD; /* the word that is not plain, or the rest */
        while (i < end) {
            unsigned char c = (unsigned char)text.p[i];
            size_t sequence = json && c >= 0x80 ? oribi_utf8_len(text.p + i, text.n - i) : 0;
            if (sequence) {
                uint32_t hidden = oribi_hidden_character(text.p + i, sequence);
                if (!hidden)
                    memcpy(dst, text.p + i, sequence);
                dst = hidden ? put_code(dst, hidden) : dst + sequence;
                i += sequence;
                continue;
            }
            i++;
            if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
                *dst++ = (char)c;
            } else if (c == '"' || c == '\\') {
                *dst++ = '\\';
                *dst++ = (char)c;
            } else {
                dst = json ? put_number(dst, "\\u00", 4, c) : put_number(dst, "\\x", 2, c);
            }
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

void oribi_escape_append_json(struct oribi_buf *buf, struct oribi_slice text)
{
    char *dst = oribi_buf_try_reserve(buf, text.n * ORIBI_ESCAPE_JSON_GROWTH + 2);
    if (!dst)
        return;
    char *end = dst;
    *end++ = '"';
    end = oribi_escape_json(end, text);
    *end++ = '"';
    buf->len += (size_t)(end - dst);
}
