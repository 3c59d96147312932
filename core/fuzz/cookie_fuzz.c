/* Cookies: no field may crash the reader or make it write beyond its room, and what is baked of a pair that was read is
 * one cookie, read as that pair again. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/form/cookie.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The pair as a cookie with its own value as path and its name as domain, where these may be such. */
static void bake(struct oribi_form_pair pair)
{
    const char *wrong = NULL;
    struct oribi_cookie cookie = {.name = pair.key, .values = &pair.value, .value_count = 1};
    cookie.path = pair.value;
    cookie.domain = pair.key;
    ssize_t room = oribi_cookie_room(&cookie);
    char *text = oribi_mem_alloc(1, (size_t)room);
    ssize_t n = oribi_cookie_bake(&cookie, ORIBI_BAKE_PERL, text, &wrong);
    if (n > room || (n < 0) != (wrong != NULL))
        abort();
    size_t semicolons = 0;
    for (ssize_t i = 0; i < n; i++) {
        semicolons += text[i] == ';';
        if ((uint8_t)text[i] < 0x20 && text[i] != '\t')
            abort();
    }
    if (n > 0 && semicolons != 2)
        abort();
    cookie.path = cookie.domain = oribi_slice(NULL, 0);
    n = oribi_cookie_bake(&cookie, ORIBI_BAKE_PERL, text, &wrong);
    struct oribi_cookies again;
    struct oribi_form_pair read;
    char *dst = oribi_mem_alloc(1, (size_t)room);
    if (n < 0 || oribi_cookies_begin(&again, oribi_slice(text, (size_t)n), dst, ORIBI_COOKIE_PERL) < 0 ||
        oribi_cookies_next(&again, &read) != 1 || !oribi_slice_equal(read.key, pair.key) ||
        !oribi_slice_equal(read.value, pair.value) || oribi_cookies_next(&again, &read) != 0)
        abort();
    oribi_mem_free(text);
    oribi_mem_free(dst);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 4096)
        return 0;
    struct oribi_cookies cookies;
    struct oribi_form_pair pair;
    size_t n = size - 1;
    char *text = oribi_mem_alloc(1, n + 1);
    char *room = oribi_mem_alloc(1, n + 1);
    memcpy(text, data + 1, n);
    size_t given = 0;
    if (oribi_cookies_begin(&cookies, oribi_slice(text, n), room, data[0] & 63) < 0)
        abort();
    while (oribi_cookies_next(&cookies, &pair) > 0) {
        given += pair.key.n + pair.value.n;
        if (!pair.bare)
            bake(pair);
    }
    if (given > n || memcmp(text, data + 1, n) != 0)
        abort();
    int64_t seconds;
    char date[ORIBI_COOKIE_DATE_CAP];
    if (oribi_cookie_expires(oribi_slice(text, n), 1000000000, &seconds))
        (void)oribi_cookie_date(seconds, '-', date);
    oribi_mem_free(text);
    oribi_mem_free(room);
    return 0;
}
