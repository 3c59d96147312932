/* Delimiter search: the only code that looks at a request head, a form, a cookie or the payload of a WebSocket's frame
 * byte by byte. Each level offers the same functions with the same results; the best one this CPU has is chosen before
 * main.
 *
 * No function reads outside [p, p+n), but for `lines` and its `before`. */
#ifndef ORIBI_HTTP_SCAN_H
#define ORIBI_HTTP_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum oribi_scan_level {
    ORIBI_SCAN_SCALAR,
    ORIBI_SCAN_NEON,
    ORIBI_SCAN_SSE42,
    ORIBI_SCAN_AVX2,
    ORIBI_SCAN_AVX512,
    ORIBI_SCAN_LEVELS
};

/* Slots `lines` and `form` want to be free before they look at their next 64 bytes, and so the least useful cap. */
enum { ORIBI_SCAN_BLOCK = 64 };

struct oribi_scan {
    const char *name;

    /* How many bytes at the front are tchar (RFC 9110 5.6.2). */
    size_t (*token)(const char *p, size_t n);

    /* How many bytes at the front may stand in a request target: everything but controls, space, `" # < >`. Besides
     * the characters of RFC 3986 these are `\\ ^ { | }`, backquote and 0x80-0xff, which browsers (WHATWG URL) and
     * old clients do not escape. Sets *query to the offset of the first `?` among them, or to the result. */
    size_t (*target)(const char *p, size_t n, size_t *query);

    /* As target(), with the characters of RFC 3986 alone: unreserved, sub-delims, `% : @ / ?` and brackets. */
    size_t (*strict_target)(const char *p, size_t n, size_t *query);

    /* How many bytes at the front are RFC 3986 unreserved or sub-delims: a reg-name without percent-encoding. */
    size_t (*host)(const char *p, size_t n);

    /* How many bytes at the front are no controls: anything but 0x00-0x1f and 0x7f, TAB allowed (RFC 9110 5.5). */
    size_t (*text)(const char *p, size_t n);

    /* Finds the structure of field lines. p is the first byte of a line. Writes ascending offsets to marks[0 … cap):
     * for each line its first byte that is no tchar, and its first control; when both are the same byte, once. A
     * line is taken to end two bytes after its control, so a caller that finds anything but `:` and CRLF at the
     * marks must stop there: what follows is then meaningless. Well-formed lines give: colon, CR, colon, CR, … and
     * the CR of the empty line alone. The first line may be a request line, whose first mark is the method's end.
     * Ends soon after a line that starts with a control, at p+n, or when fewer than 64 slots are left (cap >= 64).
     * Levels may differ in how many meaningless marks they add behind the place where the caller must stop, and in
     * nothing else. `before` bytes in front of p may be read, which makes a short rest cheaper. Returns the number of
     * marks. */
    size_t (*lines)(const char *p, size_t before, size_t n, uint32_t *marks, size_t cap);

    /* Finds what forms and cookies are cut at: each of `% & + ; =`. Writes ascending offsets to marks[0 … cap) and
     * ends at p+n, or when fewer than 64 slots are left (cap >= 64; slots behind the last mark may hold rubbish). Sets
     * *looked to the number of bytes whose marks are known. n is at most UINT32_MAX. Returns the number of marks. */
    size_t (*form)(const char *p, size_t n, uint32_t *marks, size_t cap, size_t *looked);

    /* Masks or unmasks (RFC 6455 5.3): the bytes [p, p+n) are changed by the four of `mask` in turn. */
    void (*mask)(char *p, size_t n, const uint8_t mask[4]);

    /* Is [p, p+n) UTF-8 (RFC 3629 4), from the begin of a character to the end of one? */
    bool (*utf8)(const char *p, size_t n);
};

/* The level in use. Written once by a constructor, and by oribi_scan_level_set(). */
extern __attribute__((visibility("hidden"))) const struct oribi_scan *oribi_scan_active;

/* Is all of [p, p+n) one token (RFC 9110 5.6.2)? Nothing is none. */
static inline bool oribi_scan_is_token(const char *p, size_t n)
{
    return n > 0 && oribi_scan_active->token(p, n) == n;
}

/* The functions of one level, or NULL when this CPU or this build does not have it. Scalar is always there. */
const struct oribi_scan *oribi_scan_level(enum oribi_scan_level level);

/* Makes one level the active one, for tests and benchmarks: not while another thread parses. Returns 0, or
 * ORIBI_EINVAL when it is not there. */
int oribi_scan_level_set(enum oribi_scan_level level);

#endif
