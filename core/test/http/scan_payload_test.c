/* Every level masks as a byte-wise loop does and takes the UTF-8 that a decoder takes, for every length and alignment,
 * and touches nothing beside the input. */
#include "http/scan_payload.c"

#include "guard.h"
#include "tap.h"

enum { INPUT_MAX = 300, ALIGNMENTS = 64 };

static uint64_t seed = 0x9e3779b97f4a7c15U;

static uint32_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32);
}

/* ---- mask ---- */

static bool masks_like_a_loop(const struct oribi_scan *scan, char *p, size_t n)
{
    char want[INPUT_MAX + 1];
    uint8_t mask[4];
    uint32_t bits = next_random();
    memcpy(mask, &bits, sizeof(mask));
    for (size_t i = 0; i < n; i++) {
        p[i] = (char)next_random();
        want[i] = (char)((uint8_t)p[i] ^ mask[i % 4]);
    }
    scan->mask(p, n, mask);
    return memcmp(p, want, n) == 0;
}

static void test_masks_at_every_length_and_alignment(const struct oribi_scan *scan)
{
    struct guard end = guard_alloc(INPUT_MAX + ALIGNMENTS);
    struct guard front = guard_copy_front("", 0);
    bool good = true;
    for (size_t n = 0; n <= INPUT_MAX && good; n++) {
        good = masks_like_a_loop(scan, end.p + end.n - n, n) && masks_like_a_loop(scan, front.p, n);
        for (size_t at = 0; at < ALIGNMENTS && good; at++) {
            char *p = front.p + at;
            char before = at ? p[-1] : 0;
            char behind = p[n];
            good = masks_like_a_loop(scan, p, n) && (at == 0 || p[-1] == before) && p[n] == behind;
        }
    }
    ok_named(good, "%s masks every length at every alignment and nothing beside it", scan->name);
    guard_free(&end);
    guard_free(&front);
}

/* ---- UTF-8 ---- */

/* The code point at the front of [p, p+n), decoded by arithmetic; its bytes in *len. -1: there is none. */
static long decode(const uint8_t *p, size_t n, size_t *len)
{
    static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t size = p[0] < 0x80             ? 1
                  : (p[0] & 0xe0) == 0xc0 ? 2
                  : (p[0] & 0xf0) == 0xe0 ? 3
                  : (p[0] & 0xf8) == 0xf0 ? 4
                                          : 0;
    if (size == 0 || size > n)
        return -1;
    long code = size == 1 ? p[0] : p[0] & (0x7f >> size);
    for (size_t i = 1; i < size; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return -1;
        code = code << 6 | (p[i] & 0x3f);
    }
    *len = size;
    return code < least[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? -1 : code;
}

static bool is_utf8(const char *p, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i += len)
        if (decode((const uint8_t *)p + i, n - i, &len) < 0)
            return false;
    return true;
}

/* A character of any length, or a byte that is none. */
static size_t put_character(char *dst, bool broken)
{
    static const uint8_t lengths[] = {1, 1, 1, 2, 3, 4};
    size_t len = lengths[next_random() % sizeof(lengths)];
    uint32_t r = next_random();
    if (broken) {
        dst[0] = (char)(r >> 8);
        return 1;
    }
    uint32_t code = len == 1   ? r % 0x80
                    : len == 2 ? 0x80 + r % 0x780
                    : len == 3 ? 0x800 + r % 0xd000
                               : 0x10000 + r % 0x100000;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len - 1; i > 0; i--) {
        dst[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    dst[0] = (char)(first[len] | code);
    return len;
}

/* Fills n bytes with text that `kind` says: mostly characters, with a rare wrong byte, ASCII. The last character may be
 * cut off. */
static void fill(char *p, size_t n, uint32_t kind)
{
    char text[INPUT_MAX + 4];
    size_t len = 0;
    while (len < n) {
        if (kind == 0)
            text[len++] = (char)(next_random() % 128);
        else
            len += put_character(text + len, kind > 1 && next_random() % 100 < (kind == 2 ? 1 : 50));
    }
    memcpy(p, text, n);
}

static void test_text_of_every_length_and_alignment(const struct oribi_scan *scan)
{
    struct guard end = guard_alloc(INPUT_MAX + ALIGNMENTS);
    struct guard front = guard_copy_front("", 0);
    char text[INPUT_MAX];
    bool good = true;
    size_t taken = 0;
    for (size_t n = 0; n <= INPUT_MAX && good; n++)
        for (size_t at = 0; at < ALIGNMENTS && good; at++) {
            fill(text, n, (uint32_t)at % 4);
            bool want = is_utf8(text, n);
            taken += want;
            memcpy(front.p + at, text, n);
            memset(front.p + at + n, 0x80, 4); /* a continuation of what is cut off */
            good = scan->utf8(guard_place(&end, text, n), n) == want && scan->utf8(front.p + at, n) == want;
            if (!good)
                tap_print_bytes_("input", text, n);
        }
    ok_named(good && taken > INPUT_MAX, "%s takes text of every length at every alignment as a decoder does",
             scan->name);
    guard_free(&end);
    guard_free(&front);
}

/* All runs of four of the bytes at which the table of well-formed sequences (RFC 3629 4) turns, at changing places. */
static void test_boundaries(const struct oribi_scan *scan)
{
    static const uint8_t turns[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0,
                                    0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf7, 0xf8, 0xff};
    enum { COUNT = sizeof(turns), ALL = COUNT * COUNT * COUNT * COUNT, LONGEST = 104 };
    char text[LONGEST];
    bool good = true;
    memset(text, 'a', sizeof(text));
    for (size_t i = 0; i < ALL && good; i++) {
        size_t at = i % (LONGEST - 4 + 1);
        text[at] = (char)turns[i % COUNT];
        text[at + 1] = (char)turns[i / COUNT % COUNT];
        text[at + 2] = (char)turns[i / COUNT / COUNT % COUNT];
        text[at + 3] = (char)turns[i / COUNT / COUNT / COUNT];
        size_t n = i & 1 ? at + 4 : sizeof(text);
        good = scan->utf8(text, n) == is_utf8(text, n);
        if (!good)
            tap_print_bytes_("input", text, n);
        memset(text + at, 'a', 4);
    }
    ok_named(good, "%s takes the characters at each turn of the table and nothing else", scan->name);
}

/* Each character alone, whole, and without its last and its first byte. */
static void test_every_character(const struct oribi_scan *scan)
{
    char text[40];
    bool good = true;
    memset(text, 'b', sizeof(text));
    for (long code = 0; code < 0x110000 && good; code++) {
        size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
        char *p = text + 13; /* over the end of a vector of 16 */
        for (size_t i = size - 1; i > 0; i--)
            p[i] = (char)(0x80 | (code >> 6 * (long)(size - 1 - i) & 0x3f));
        p[0] = (char)(first[size] | code >> 6 * (long)(size - 1));
        bool surrogate = code >= 0xd800 && code <= 0xdfff;
        good = scan->utf8(text, sizeof(text)) == !surrogate;
        if (size > 1)
            good &= !scan->utf8(text, 13 + size - 1) && !scan->utf8(text + 14, sizeof(text) - 14);
        memset(p, 'b', 4);
    }
    ok_named(good, "%s takes every character and none without its first or last byte", scan->name);
}

int main(void)
{
    for (int level = 0; level < ORIBI_SCAN_LEVELS; level++) {
        const struct oribi_scan *scan = oribi_scan_level((enum oribi_scan_level)level);
        if (!scan) {
            tap_skip(1, "this CPU lacks a level");
            continue;
        }
        test_masks_at_every_length_and_alignment(scan);
        test_text_of_every_length_and_alignment(scan);
        test_boundaries(scan);
        test_every_character(scan);
    }
    return done_testing();
}
