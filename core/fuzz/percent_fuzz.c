/* Percent-decoding: no input may crash it or make it write beyond its bytes, in place or elsewhere, and what it
 * gives is what the escapes say. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/syntax.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? memchr(digits, c >= 'A' && c <= 'F' ? c + 'a' - 'A' : c, 16) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Decodes as oribi_percent_decode() does, a byte at a time and without any care for speed. */
static ssize_t decode_slowly(const char *p, size_t n, char *dst)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != '%') {
            dst[len++] = p[i];
            continue;
        }
        if (n - i < 3 || digit(p[i + 1]) < 0 || digit(p[i + 2]) < 0)
            return ORIBI_EBAD;
        dst[len++] = (char)(digit(p[i + 1]) * 16 + digit(p[i + 2]));
        i += 2;
    }
    return (ssize_t)len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t room = size ? size : 1;
    char *text = oribi_mem_alloc(1, room);
    char *got = oribi_mem_alloc(1, room);
    char *want = oribi_mem_alloc(1, room);
    memcpy(text, data, size);
    ssize_t want_n = decode_slowly(text, size, want);
    ssize_t got_n = oribi_percent_decode(oribi_slice(text, size), got);
    if (got_n != want_n || (got_n > 0 && memcmp(got, want, (size_t)got_n) != 0))
        abort();
    if (oribi_percent_decode(oribi_slice(text, size), text) != want_n)
        abort();
    if (want_n > 0 && memcmp(text, want, (size_t)want_n) != 0)
        abort();
    oribi_mem_free(text);
    oribi_mem_free(got);
    oribi_mem_free(want);
    return 0;
}
