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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
