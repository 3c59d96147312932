/* Forms: no input may crash the parser or make it write beyond its room; in place, elsewhere, and on every level of
 * the search it reads the same pairs; and what is built of the pairs is read as these pairs again. Every key is taken
 * for a nested name too, whose steps hold no more than its bytes. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/form/urlencoded.h"
#include "oribi/form/nested.h"
#include "oribi/http/scan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Appends text and a byte that tells what it was. */
static size_t keep(char *dst, struct oribi_slice text, char kind)
{
    if (text.n)
        memcpy(dst, text.p, text.n);
    dst[text.n] = kind;
    return text.n + 1;
}

static void walk(struct oribi_slice name, uint32_t depth_max)
{
    struct oribi_nested nested;
    struct oribi_nested_step step;
    struct oribi_slice part;
    size_t bytes = 0;
    uint32_t steps = 0;
    int code;
    oribi_nested_begin(&nested, name, depth_max);
    while ((code = oribi_nested_next(&nested, &step)) > 0) {
        bytes += step.key.n;
        steps++;
        size_t parts = 0;
        while (step.kind == ORIBI_NESTED_ELEMENT && oribi_nested_part(&step.path, &part))
            parts += part.n;
        if (parts > name.n)
            abort();
    }
    if (bytes > name.n || steps > depth_max || (code < 0 && code != ORIBI_ELIMIT) || (code == 0 && name.n && !steps))
        abort();
}

/* Reads `in`: all keys and values behind one another in `seen`, and the same as a form in `built`. Returns the length
 * of `seen` and sets *built_n. */
static size_t read_form(struct oribi_slice in, char *room, unsigned rules, char *seen, char *built, size_t *built_n)
{
    struct oribi_form_limits limits;
    struct oribi_form form;
    struct oribi_form_pair pair;
    size_t n = 0;
    char *p = built;
    int code = 0;
    oribi_form_limits_init(&limits);
    limits.pairs_max = 1000;
    if (oribi_form_begin(&form, in, room, rules, &limits) < 0)
        abort();
    while ((code = oribi_form_next(&form, &pair)) > 0) {
        n += keep(seen + n, pair.key, 'k');
        walk(pair.key, (uint32_t)pair.value.n);
        n += keep(seen + n, pair.value, 'v');
        p = oribi_form_escape(p, pair.key, ORIBI_ESCAPE_PERL, true);
        *p++ = '=';
        p = oribi_form_escape(p, pair.value, ORIBI_ESCAPE_WHATWG, false);
        *p++ = '&';
    }
    if (code < 0 && code != (rules & ORIBI_FORM_STRICT && form.count < 1000 ? ORIBI_EBAD : ORIBI_ELIMIT))
        abort();
    *built_n = p == built ? 0 : (size_t)(p - built) - 1;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > 4096)
        return 0;
    unsigned rules = data[0] & 63;
    size_t n = size - 1;
    size_t growth = ORIBI_FORM_GROWTH * n + 4 * 4096;
    size_t built_n;
    size_t posted_n;
    char *own = oribi_mem_alloc(1, n + 1);
    char *room = oribi_mem_alloc(1, n + 1);
    char *large = oribi_mem_alloc(1, growth);
    char *seen[3];
    char *built = oribi_mem_alloc(1, growth);
    char *again = oribi_mem_alloc(1, 3 * growth);
    for (int i = 0; i < 3; i++)
        seen[i] = oribi_mem_alloc(1, 4 * growth);
    memcpy(own, data + 1, n);
    size_t seen_n = read_form(oribi_slice((const char *)data + 1, n), room, rules, seen[0], built, &built_n);
    const struct oribi_scan *best = oribi_scan_active;
    oribi_scan_level_set(ORIBI_SCAN_SCALAR);
    if (read_form(oribi_slice(own, n), own, rules, seen[1], again, &posted_n) != seen_n ||
        memcmp(seen[0], seen[1], seen_n) != 0)
        abort();
    oribi_scan_active = best;
    if (read_form(oribi_slice(built, built_n), large, ORIBI_FORM_STRICT, seen[2], again, &posted_n) != seen_n ||
        memcmp(seen[0], seen[2], seen_n) != 0)
        abort();
    for (int i = 0; i < 3; i++)
        oribi_mem_free(seen[i]);
    oribi_mem_free(own);
    oribi_mem_free(room);
    oribi_mem_free(large);
    oribi_mem_free(built);
    oribi_mem_free(again);
    return 0;
}
