/* Forms and cookies, as applications read and write them. Each part is a target of its own:
 * the build compiles this source once for each, with FUZZ_<target> defined. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef FUZZ_cookie
/* Cookies: no field may crash the reader or make it write beyond its room, and what is baked of a pair that was read is
 * one cookie, read as that pair again. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/form/cookie.h"

#include <stdlib.h>
#include <string.h>

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
#endif

#ifdef FUZZ_multipart
/* Parser of multipart/form-data: no input may crash it, every cut must tell the same, the bodies and what stands
 * between them must be all of the input. The first byte chooses limits and the boundary, the second the cut. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/form/multipart.h"

#include <stdlib.h>
#include <string.h>

struct told {
    int error;
    uint32_t parts;
    size_t body_bytes;
    uint64_t sum; /* of everything that was told, in its order */
};

static void add(struct told *told, struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++)
        told->sum = told->sum * 31 + (unsigned char)text.p[i] + 1;
}

static void check_within(const struct oribi_part *part, struct oribi_slice inner)
{
    if (inner.p && (inner.p < part->head.p || inner.p + inner.n > part->head.p + part->head.n))
        abort();
}

static void add_part(struct told *told, const struct oribi_part *part)
{
    char text[16 * 1024];
    const struct oribi_slice all[] = {part->name.value, part->filename.value, part->filename_star.value,
                                      part->content_type, part->disposition};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        check_within(part, all[i]);
        add(told, all[i]);
        if (all[i].n <= sizeof(text) && oribi_form_data_unescape(all[i], text) > all[i].n)
            abort();
    }
    for (uint32_t i = 0; i < part->field_count; i++) {
        check_within(part, part->fields[i].name);
        check_within(part, part->fields[i].value);
        add(told, part->fields[i].value);
    }
    told->parts++;
}

static struct told feed(const struct oribi_form_data_limits *limits, struct oribi_slice boundary, const char *text,
                        size_t size, size_t piece)
{
    struct oribi_form_data form;
    struct told told = {0};
    int event = oribi_form_data_init(&form, limits, boundary);
    for (size_t used = 0; used < size && event >= 0; used += piece) {
        size_t n = size - used < piece ? size - used : piece;
        char *copy = oribi_mem_alloc(1, n);
        memcpy(copy, text + used, n);
        struct oribi_slice in = oribi_slice(copy, n);
        while ((event = oribi_form_data_next(&form, &in)) > ORIBI_FORM_DATA_MORE) {
            if (event == ORIBI_FORM_DATA_PART)
                add_part(&told, &form.part);
            if (event == ORIBI_FORM_DATA_DATA) {
                add(&told, form.data);
                told.body_bytes += form.data.n;
            }
        }
        oribi_mem_free(copy);
    }
    told.error = event < 0 ? event : oribi_form_data_finish(&form);
    if ((told.error != 0) != (form.reason != NULL) || told.body_bytes > size || told.parts != form.part_count)
        abort();
    oribi_form_data_deinit(&form);
    return told;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_form_data_limits limits;
    if (size < 2 || size > 65536)
        return 0;
    const char *text = (const char *)data + 2;
    struct oribi_slice boundary = data[0] & 4 ? ORIBI_SLICE("--b-") : ORIBI_SLICE("b");
    oribi_form_data_limits_init(&limits);
    limits.longer_is_data = data[0] & 1;
    if (data[0] & 2)
        limits = (struct oribi_form_data_limits){.parts_max = 2, .files_max = 1, .part_head_bytes_max = 40};
    size -= 2;
    struct told want = feed(&limits, boundary, text, size, size + 1);
    size_t pieces[] = {1, data[1] + 1u, size / 2 + 1};
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        struct told got = feed(&limits, boundary, text, size, pieces[i]);
        if (got.error != want.error || got.parts != want.parts || got.body_bytes != want.body_bytes ||
            got.sum != want.sum)
            abort();
    }
    (void)oribi_form_data_boundary(oribi_slice(text, size));
    return 0;
}
#endif

#ifdef FUZZ_parts
/* Forms taken apart: no input may crash it, every cut must give the same frame and files, and a body that is taken must
 * come together again byte for byte. The first byte chooses the sizes, the second the cut. */
#include "oribi/base/error.h"
#include "oribi/base/os/os.h"
#include "oribi/event/body.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE_MAX_HERE = 8 * 1024 };

struct taken {
    struct oribi_parts *parts;
    struct oribi_body frame;
    int error;
};

static void expect(bool right)
{
    if (!right)
        abort();
}

static struct taken take(const struct oribi_parts_room *room, const char *text, size_t size, size_t cut)
{
    struct taken taken = {0};
    const char *reason = NULL;
    oribi_body_init(&taken.frame);
    expect(oribi_parts_create(ORIBI_SLICE("multipart/form-data; boundary=b"), &taken.parts, &reason) == 0);
    for (size_t i = 0; i < size && taken.error == 0; i += cut) {
        size_t n = size - i < cut ? size - i : cut;
        char *copy = malloc(n); /* whoever reads beyond it is caught */
        expect(copy != NULL);
        memcpy(copy, text + i, n);
        taken.error = oribi_parts_append(taken.parts, &taken.frame, room, copy, n);
        free(copy);
    }
    if (taken.error == 0)
        taken.error = oribi_parts_finish(taken.parts, &taken.frame);
    return taken;
}

static void check_whole(const struct taken *taken, const char *text, size_t size)
{
    static char back[SIZE_MAX_HERE + 1];
    struct oribi_body_piece piece;
    size_t n = 0;
    int fd = -1;
    for (uint32_t i = 0; oribi_parts_piece(taken->parts, &taken->frame, i, &piece); i++) {
        expect(piece.len >= 0 && (size_t)piece.len <= size - n);
        if (piece.fd < 0 && piece.bytes.n > 0)
            memcpy(back + n, piece.bytes.p, piece.bytes.n);
        else if (piece.fd >= 0)
            expect(oribi_os_read_at(piece.fd, back + n, (size_t)piece.len, piece.offset) == piece.len);
        n += (size_t)piece.len;
    }
    expect(n == size && memcmp(back, text, n) == 0);
    if (taken->parts->file_count == 0)
        return;
    expect(oribi_parts_join(taken->parts, &taken->frame, &fd) == 0);
    expect(oribi_os_read(fd, back, sizeof(back)) == (ssize_t)size && memcmp(back, text, n) == 0);
    oribi_os_close(fd);
}

static void give_back(struct taken *taken)
{
    oribi_parts_destroy(taken->parts);
    oribi_body_deinit(&taken->frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3 || size > SIZE_MAX_HERE)
        return 0;
    const char *text = (const char *)data + 2;
    struct oribi_parts_room room = {.frame_memory_max = data[0] & 1 ? 64 : SIZE_MAX_HERE,
                                    .part_memory_max = (uint32_t)(data[0] >> 2),
                                    .batch_max = data[0] & 2 ? 16 : 0};
    struct taken whole = take(&room, text, size - 2, size - 2);
    struct taken cut = take(&room, text, size - 2, (size_t)data[1] + 1);
    expect(whole.error == cut.error);
    if (whole.error == 0) {
        expect(whole.parts->file_count == cut.parts->file_count && whole.frame.len == cut.frame.len);
        check_whole(&whole, text, size - 2);
        check_whole(&cut, text, size - 2);
    }
    give_back(&whole);
    give_back(&cut);
    return 0;
}
#endif

#ifdef FUZZ_urlencoded
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
#endif
