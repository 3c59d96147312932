/* Shared by the levels of scan for payloads of frames (scan_payload.c, scan_payload_x86.c, scan_payload_neon.c): the
 * tables of UTF-8, and what is left of less than a vector.
 *
 * UTF-8 is checked as Keiser and Lemire do ("Validating UTF-8 In Less Than One Instruction Per Byte", 2021). Each byte
 * and the one before it are looked up in three tables: by the high half of the byte before, by its low half, and by the
 * high half of the byte itself. A bit stands for a kind of error, and is in all three where the two bytes make that
 * error. TWO_CONTINUATIONS alone is none where the byte is the third or fourth of a character, which is seen from the
 * bytes two and three before it: there, and only there, the bit must be set. Behind the text the check goes on with
 * zeros, so that a character that is cut off is an error too. */
#ifndef ORIBI_HTTP_SCAN_PAYLOAD_H
#define ORIBI_HTTP_SCAN_PAYLOAD_H

#include "http/scan_private.h"

#include <string.h>

enum {
    TOO_SHORT = 1,   /* a first byte, and no continuation behind it */
    TOO_LONG = 2,    /* a continuation behind ASCII */
    OVERLONG_3 = 4,  /* E0 80-9F */
    TOO_LARGE = 8,   /* F4 90-BF, F5-FF 90-BF */
    SURROGATE = 16,  /* ED A0-BF */
    OVERLONG_2 = 32, /* C0-C1 */
    BY_80_8F = 64,   /* F0 80-8F is overlong, F5-FF 80-8F too large */
    TWO_CONTINUATIONS = 128,
    ANY_LOW = TOO_SHORT | TOO_LONG | TWO_CONTINUATIONS, /* whatever the low half of the byte before is */
    CONTINUATION = TOO_LONG | OVERLONG_2 | TWO_CONTINUATIONS,
    F5_UP = ANY_LOW | TOO_LARGE | BY_80_8F,
};

/* By the high half of the byte before. */
static const uint8_t utf8_before_high[16]
    __attribute__((aligned(16))) = {TOO_LONG,
                                    TOO_LONG,
                                    TOO_LONG,
                                    TOO_LONG,
                                    TOO_LONG,
                                    TOO_LONG,
                                    TOO_LONG,
                                    TOO_LONG, /* ASCII */
                                    TWO_CONTINUATIONS,
                                    TWO_CONTINUATIONS,
                                    TWO_CONTINUATIONS,
                                    TWO_CONTINUATIONS, /* 80-BF */
                                    TOO_SHORT | OVERLONG_2,
                                    TOO_SHORT,
                                    TOO_SHORT | OVERLONG_3 | SURROGATE, /* C_, D_, E_ */
                                    TOO_SHORT | TOO_LARGE | BY_80_8F};  /* F_ */

/* By the low half of the byte before. */
static const uint8_t utf8_before_low[16] __attribute__((aligned(16))) = {ANY_LOW | OVERLONG_2 | OVERLONG_3 | BY_80_8F,
                                                                         ANY_LOW | OVERLONG_2,
                                                                         ANY_LOW,
                                                                         ANY_LOW, /* _0 … _3 */
                                                                         ANY_LOW | TOO_LARGE,
                                                                         F5_UP,
                                                                         F5_UP,
                                                                         F5_UP,
                                                                         F5_UP,
                                                                         F5_UP,
                                                                         F5_UP,
                                                                         F5_UP,
                                                                         F5_UP, /* _4 … _C */
                                                                         F5_UP | SURROGATE,
                                                                         F5_UP,
                                                                         F5_UP}; /* _D … _F */

/* By the high half of the byte itself. */
static const uint8_t utf8_high[16] __attribute__((aligned(16))) = {TOO_SHORT,
                                                                   TOO_SHORT,
                                                                   TOO_SHORT,
                                                                   TOO_SHORT,
                                                                   TOO_SHORT,
                                                                   TOO_SHORT,
                                                                   TOO_SHORT,
                                                                   TOO_SHORT,                             /* ASCII */
                                                                   CONTINUATION | OVERLONG_3 | BY_80_8F,  /* 80-8F */
                                                                   CONTINUATION | OVERLONG_3 | TOO_LARGE, /* 90-9F */
                                                                   CONTINUATION | SURROGATE | TOO_LARGE,
                                                                   CONTINUATION | SURROGATE | TOO_LARGE, /* A0-BF */
                                                                   TOO_SHORT,
                                                                   TOO_SHORT,
                                                                   TOO_SHORT,
                                                                   TOO_SHORT}; /* a first byte */

/* Taken off the bytes two and three before: the top bit stays of first bytes of three (E0) and four (F0) at least. */
enum { UTF8_THREE = 0xe0 - 0x80, UTF8_FOUR = 0xf0 - 0x80 };

/* The scalar level's way from byte i on, which must be a multiple of four. */
SCAN_INLINE void mask_rest(char *p, size_t n, size_t i, const uint8_t mask[4])
{
    uint64_t two;
    uint64_t word;
    memcpy(&two, mask, 4);
    memcpy((char *)&two + 4, mask, 4);
    for (; n - i >= sizeof(word); i += sizeof(word)) {
        memcpy(&word, p + i, sizeof(word));
        word ^= two;
        memcpy(p + i, &word, sizeof(word));
    }
    for (size_t k = 0; i < n; i++, k++)
        p[i] = (char)((uint8_t)p[i] ^ mask[k & 3]);
}

/* `utf8` of a level whose vectors have `width` bytes, from its utf8_<level>(), which takes one vector on. */
#define SCAN_DEFINE_UTF8(level, attribute, width)                                                                      \
    attribute bool oribi__scan_##level##_utf8(const char *p, size_t n)                                                 \
    {                                                                                                                  \
        struct utf8_##level walk = utf8_begin_##level();                                                               \
        char copy[width] = {0};                                                                                        \
        size_t i = 0;                                                                                                  \
        for (; n - i >= (width); i += (width))                                                                         \
            utf8_##level(&walk, p + i);                                                                                \
        if (n - i)                                                                                                     \
            memcpy(copy, p + i, n - i);                                                                                \
        utf8_##level(&walk, copy);                                                                                     \
        return utf8_end_##level(&walk);                                                                                \
    }

#endif
