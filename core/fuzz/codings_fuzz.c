/* Codings of a message: chunks, escapes, compression and its choice. Each part is a target of its own:
 * the build compiles this source once for each, with FUZZ_<target> defined. */
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifdef FUZZ_accept_encoding
/* Accept-Encoding: any value and any offer, against elements read by a regular expression and weights as fractions. */
#include "oribi/base/mem.h"
#include "oribi/http/compress.h"

#include "ours.h"

#include <regex.h>

enum { BYTES_MAX = 10 * 1024, OFFERED_MAX = 5 };

/* A client's preference for one name: none, or its lowest q. */
struct wish {
    bool said;
    double q;
};

static void add(struct wish *wish, double q)
{
    if (!wish->said || q < wish->q)
        wish->q = q;
    wish->said = true;
}

static bool is_named(const char *element, size_t n, const char *name)
{
    return strlen(name) == n && strncasecmp(element, name, n) == 0;
}

/* The wishes that the element speaks of; `star` is the wish for all others. */
static void read_slowly(const char *element, struct wish wishes[ORIBI_CODING_COUNT], struct wish *star)
{
    static regex_t form;
    static bool ready;
    regmatch_t at[6];
    static const char pattern[] =
        "^([!#$%&'*+.^_`|~0-9A-Za-z-]+)([ \t]*;[ \t]*[qQ]=(0(\\.[0-9]{0,3})?|1(\\.0{0,3})?))?$";
    expect(ready || regcomp(&form, pattern, REG_EXTENDED) == 0);
    ready = true;
    bool whole = regexec(&form, element, 6, at, 0) == 0;
    size_t name = strspn(element, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    double q = whole && at[3].rm_so >= 0 ? strtod(element + at[3].rm_so, NULL) : 1;
    if (is_named(element, name, "*") && whole)
        add(star, q);
    if (is_named(element, name, "identity") && whole)
        add(&wishes[ORIBI_CODING_IDENTITY], q);
    if (is_named(element, name, "gzip") || is_named(element, name, "x-gzip"))
        add(&wishes[ORIBI_CODING_GZIP], whole ? q : 0);
    if (is_named(element, name, "br"))
        add(&wishes[ORIBI_CODING_BR], whole ? q : 0);
    if (is_named(element, name, "zstd"))
        add(&wishes[ORIBI_CODING_ZSTD], whole ? q : 0);
}

static void read_all_slowly(const char *value, size_t n, struct wish wishes[ORIBI_CODING_COUNT], struct wish *star)
{
    static char text[BYTES_MAX + 1];
    memcpy(text, value, n);
    text[n] = 0;
    for (size_t i = 0; i < n; i++) /* as wrong as NUL, and no end of a string */
        text[i] = text[i] ? text[i] : 1;
    char *rest = text;
    for (char *element = strsep(&rest, ","); element; element = strsep(&rest, ",")) {
        element += strspn(element, " \t");
        size_t len = strlen(element);
        while (len && (element[len - 1] == ' ' || element[len - 1] == '\t'))
            element[--len] = 0;
        read_slowly(element, wishes, star);
    }
}

static enum oribi_coding choose_slowly(const char *value, size_t n, const enum oribi_coding *offered, size_t count)
{
    struct wish wishes[ORIBI_CODING_COUNT] = {0};
    struct wish star = {0};
    read_all_slowly(value, n <= ORIBI_ACCEPT_ENCODING_BYTES_MAX ? n : 0, wishes, &star);
    if (!wishes[ORIBI_CODING_IDENTITY].said && !star.said)
        add(&wishes[ORIBI_CODING_IDENTITY], 0.0001);
    enum oribi_coding best = ORIBI_CODING_NONE;
    int best_q = 0;
    for (size_t i = count; i-- > 0;) { /* from the last, so that an earlier one with the same q takes its place */
        const struct wish *wish = wishes[offered[i]].said ? &wishes[offered[i]] : &star;
        int q = wish->said ? (int)(wish->q * 10000 + 0.5) : 0;
        best = q && q >= best_q ? offered[i] : best;
        best_q = q > best_q ? q : best_q;
    }
    return best;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes in = {data, size};
    enum oribi_coding offered[OFFERED_MAX];
    if (size < 2 || size > BYTES_MAX)
        return 0;
    size_t count = next_byte(&in) % (OFFERED_MAX + 1);
    unsigned code = next_byte(&in);
    for (size_t i = 0; i < count; i++)
        offered[i] = (enum oribi_coding)(ORIBI_CODING_IDENTITY + (code >> 2 * (i % 4) & 3));
    char *text = oribi_mem_alloc(1, in.n ? in.n : 1);
    memcpy(text, in.p, in.n);
    enum oribi_coding got = oribi_accept_encoding_choose(oribi_slice(text, in.n), offered, count);
    expect(got == choose_slowly(text, in.n, offered, count));
    enum oribi_coding free_choice = oribi_accept_encoding_choose(oribi_slice(NULL, 0), offered, count);
    expect((free_choice == ORIBI_CODING_NONE) == (count == 0));
    oribi_mem_free(text);
    return 0;
}
#endif

#ifdef FUZZ_chunked
/* Chunked decoder: no input may crash it or make it touch what follows the body, and every cut must give one
 * verdict. The first two bytes choose limits and the cut; the rest is the body. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/chunked.h"
#include "oribi/http/head.h"

#include <stdlib.h>
#include <string.h>

struct decoded {
    int error;
    bool done;
    size_t used;
    size_t len;
    struct oribi_buf trailers;
};

static struct decoded decode(const struct oribi_limits *limits, const char *data, size_t size, size_t cut, size_t step,
                             char *dst)
{
    struct oribi_chunked body = {0};
    struct decoded result = {0};
    size_t piece = cut ? cut : 1;
    while (result.used < size && !body.done && !result.error) {
        if (piece > size - result.used)
            piece = size - result.used;
        size_t len = piece;
        size_t used = 0;
        char *in = oribi_mem_alloc(1, piece);
        memcpy(in, data + result.used, piece);
        result.error = oribi_chunked_decode(&body, limits, in, &len, &used);
        if (len > used || used > piece || memcmp(in + used, data + result.used + used, piece - used) != 0 ||
            (used < piece && !body.done && !result.error) || (result.error && !body.reason))
            abort();
        memcpy(dst + result.len, in, len);
        result.len += len;
        result.used += used;
        oribi_mem_free(in);
        piece = step;
    }
    if (body.body_len != (int64_t)result.len || body.body_len > limits->body_bytes_max)
        abort();
    result.done = body.done;
    result.trailers = body.trailers;
    return result;
}

/* Checks every trailer field that an application gets to see. */
static void check_trailers(const struct decoded *decoded)
{
    struct oribi_trailers trailers;
    size_t total = 0;
    if (oribi_trailers_read(oribi_slice(decoded->trailers.p, decoded->trailers.len), &trailers) != 0)
        abort();
    for (uint32_t i = 0; i < trailers.count; i++) {
        const struct oribi_field *field = &trailers.fields[i];
        total += field->name_len + field->value_len;
        if (field->name_len == 0 || field->id != 0 || memchr(field->name, '_', field->name_len))
            abort();
        for (uint32_t k = 0; k < field->name_len; k++)
            if (field->name[k] <= ' ' || field->name[k] == ':' || (field->name[k] >= 'A' && field->name[k] <= 'Z'))
                abort();
        for (uint32_t k = 0; k < field->value_len; k++)
            if (((uint8_t)field->value[k] < ' ' && field->value[k] != '\t') || field->value[k] == 0x7f)
                abort();
    }
    if (total > decoded->trailers.len)
        abort();
    oribi_trailers_release(&trailers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct oribi_limits limits;
    if (size < 2 || size > 65536)
        return 0;
    const char *bytes = (const char *)data + 2;
    size -= 2;
    oribi_limits_init(&limits);
    if (data[0] & 1)
        limits.body_bytes_max = 20;
    if (data[0] & 2)
        limits.fields_max = 2;
    if (data[0] & 4)
        limits.body_bytes_max = INT64_MAX;
    char *want_bytes = oribi_mem_alloc(1, size + 1);
    char *got_bytes = oribi_mem_alloc(1, size + 1);
    struct decoded want = decode(&limits, bytes, size, size, 1, want_bytes);
    size_t cuts[2] = {size * data[1] / 256, 1};
    for (int i = 0; i < 2; i++) {
        struct decoded got = decode(&limits, bytes, size, cuts[i], i ? size / 256 + 1 : size + 1, got_bytes);
        if (got.error != want.error || got.used != want.used || got.len != want.len || got.done != want.done ||
            memcmp(got_bytes, want_bytes, got.len) != 0 ||
            !oribi_slice_equal(oribi_slice(got.trailers.p, got.trailers.len),
                               oribi_slice(want.trailers.p, want.trailers.len)))
            abort();
        oribi_buf_deinit(&got.trailers);
    }
    if (want.done)
        check_trailers(&want);
    oribi_buf_deinit(&want.trailers);
    oribi_mem_free(want_bytes);
    oribi_mem_free(got_bytes);
    return 0;
}
#endif

#ifdef FUZZ_compressible
/* The decision to compress: any If-None-Match, any headers of an answer. The list with both forms must match the same
 * tags as the list that came; the coding must be one of those allowed, and the new headers must be those of the answer
 * except where the decision says otherwise. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/compress.h"
#include "oribi/http/conditions.h"
#include "oribi/http/fields.h"

#include "ours.h"

#include <strings.h>

enum { BYTES_MAX = 8 * 1024, HEADERS_MAX = 12 };

static const char *const names[] = {"ETag",          "Vary",           "Content-Type",  "Cache-Control",
                                    "Set-Cookie",    "Content-Length", "Content-Range", "Content-Encoding",
                                    "Accept-Ranges", "Digest",         "X-Other",       "content-type"};
static const int codes[] = {200, 200, 200, 200, 204, 206, 304, 404, 500, 101};

/* A block of its own, so that a sanitizer knows its ends. */
static struct oribi_slice take_text(struct bytes *in, char **block)
{
    struct bytes part = next_bytes(in, next_byte(in));
    *block = oribi_mem_alloc(part.n ? part.n : 1, 1);
    if (part.n)
        memcpy(*block, part.p, part.n);
    return oribi_slice(*block, part.n);
}

static bool matches(struct oribi_slice list, struct oribi_slice etag)
{
    bool ranges;
    const struct oribi_validators own = {.etag = etag, .exists = true};
    const struct oribi_conditions asked = {.method = ORIBI_SLICE("GET"), .if_none_match = list};
    return oribi_conditions_decide(&asked, &own, 0, &ranges) == ORIBI_CONDITION_NOT_MODIFIED;
}

static size_t check_tags(struct oribi_slice list, struct oribi_slice etag, char *room)
{
    size_t n = oribi_compress_expand_tags(list, room, ORIBI_COMPRESS_EXPANDED_BYTES_MAX);
    expect(n <= ORIBI_COMPRESS_EXPANDED_BYTES_MAX);
    if (n > 0)
        expect(matches(list, etag) == matches(oribi_slice(room, n), etag));
    return n;
}

static uint32_t count_named(const struct oribi_header *headers, uint32_t count, const char *name)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        found += headers[i].name_len == strlen(name) && strncasecmp(headers[i].name, name, strlen(name)) == 0;
    return found;
}

static void check_headers(const struct oribi_compress_question *question,
                          const struct oribi_compress_decision *decision)
{
    struct oribi_header out[HEADERS_MAX + ORIBI_COMPRESS_HEADERS_ADDED_MAX];
    struct oribi_compress_texts *texts = oribi_mem_alloc(1, sizeof(*texts));
    uint32_t count = oribi_compress_headers(question, decision, texts, out);
    bool coded = decision->coding != ORIBI_CODING_IDENTITY;
    expect(count <= question->header_count + ORIBI_COMPRESS_HEADERS_ADDED_MAX);
    if (coded) {
        expect(question->status != 204 && question->status != 206 && question->status != 304 &&
               question->status >= 200);
        expect(count_named(out, count, "Content-Encoding") == 1 && count_named(out, count, "Content-Length") == 0);
        expect(count_named(out, count, "Content-Range") == 0 && count_named(out, count, "Vary") > 0);
        expect(!decision->is_private || question->rules->private_too);
    }
    for (uint32_t i = 0; decision->weakens && i < count; i++)
        if (out[i].value == texts->etag)
            expect(out[i].value_len > 3 && memcmp(out[i].value, "W/\"", 3) == 0);
    oribi_mem_free(texts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_compress_rules rules;
    static struct oribi_head head;
    struct bytes in = {data, size};
    char *blocks[HEADERS_MAX + 2];
    char room[ORIBI_COMPRESS_EXPANDED_BYTES_MAX];
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_header headers[HEADERS_MAX];
    if (size < 4 || size > BYTES_MAX)
        return 0;
    uint8_t kind = next_byte(&in);
    rules = (struct oribi_compress_rules){.offered = {ORIBI_CODING_ZSTD, ORIBI_CODING_GZIP, ORIBI_CODING_IDENTITY},
                                          .offered_count = 3,
                                          .min = kind & 1 ? 1024 : 0,
                                          .private_too = kind & 2};
    expect(oribi_compress_rules_types(&rules, oribi_compress_types_default, error) == 0);
    head.method = kind & 4 ? ORIBI_SLICE("HEAD") : ORIBI_SLICE("GET");
    head.is_head = kind & 4;
    head.fields[0] = (struct oribi_field){"Accept-Encoding", "gzip", 4, 15, ORIBI_FIELD_ACCEPT_ENCODING};
    head.field_count = kind & 8 ? 0 : 1;
    struct oribi_compress_question question = {.rules = &rules, .head = &head, .headers = headers};
    question.status = codes[next_byte(&in) % (sizeof(codes) / sizeof(codes[0]))];
    question.body_len = kind & 16 ? -1 : 5000;
    struct oribi_slice list = take_text(&in, &blocks[HEADERS_MAX]);
    struct oribi_slice etag = take_text(&in, &blocks[HEADERS_MAX + 1]);
    if (check_tags(list, etag, room) > 0)
        question.none_match = list;
    while (in.n > 0 && question.header_count < HEADERS_MAX) {
        const char *name = names[next_byte(&in) % (sizeof(names) / sizeof(names[0]))];
        struct oribi_slice value = take_text(&in, &blocks[question.header_count]);
        headers[question.header_count++] =
            (struct oribi_header){name, value.p, (uint32_t)strlen(name), (uint32_t)value.n};
    }
    struct oribi_compress_decision decision;
    oribi_compress_decide(&question, &decision);
    expect(decision.coding == ORIBI_CODING_IDENTITY || decision.coding == ORIBI_CODING_GZIP);
    expect(!decision.not_modified || (question.status == 200 && question.none_match.p));
    if (decision.changes)
        check_headers(&question, &decision);
    for (uint32_t i = 0; i < question.header_count; i++)
        oribi_mem_free(blocks[i]);
    oribi_mem_free(blocks[HEADERS_MAX]);
    oribi_mem_free(blocks[HEADERS_MAX + 1]);
    return 0;
}
#endif

#ifdef FUZZ_percent
/* Percent-decoding: no input may crash it or make it write beyond its bytes, in place or elsewhere, and what it
 * gives is what the escapes say. */
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/syntax.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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
#endif
