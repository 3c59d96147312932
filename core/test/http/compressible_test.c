/* Decisions for answers are in spec/compress; here are the words of the operator, limits, every cut. */
#include "http/compressible.c"

#include "guard.h"
#include "http/case_folder.h"

#include <stdlib.h>

enum { VALUE_MAX = 64 * 1024, HEADERS_MAX = 16 };

static struct oribi_compress_rules rules;
static struct oribi_head head;
static struct oribi_header headers[HEADERS_MAX];
static char error[ORIBI_ERROR_TEXT_CAP];

/* ---- spec ---- */

static void read_rules(void)
{
    static char types[VALUE_MAX];
    rules = (struct oribi_compress_rules){
        .offered = {ORIBI_CODING_ZSTD, ORIBI_CODING_BR, ORIBI_CODING_GZIP, ORIBI_CODING_IDENTITY},
        .offered_count = 4,
        .min = case_number(&file, "min", 1024),
        .private_too = case_number(&file, "private", 0)};
    size_t n = case_bytes(&file, "types", types, sizeof(types) - 1);
    types[n] = '\0';
    if (oribi_compress_rules_types(&rules, n ? types : oribi_compress_types_default, error) < 0)
        complain("types");
}

static bool absent(const char *key)
{
    return oribi_slice_equal(case_raw(&file, key), ORIBI_SLICE("-"));
}

static void read_request(struct oribi_slice *none_match)
{
    static char match[VALUE_MAX];
    static char accept[VALUE_MAX];
    memset(&head, 0, sizeof(head));
    head.method = case_has(&file, "method") ? case_raw(&file, "method") : ORIBI_SLICE("GET");
    head.is_head = oribi_slice_equal(head.method, ORIBI_SLICE("HEAD"));
    struct oribi_slice value = ORIBI_SLICE("gzip");
    if (case_has(&file, "accept"))
        value = oribi_slice(accept, case_bytes(&file, "accept", accept, sizeof(accept)));
    if (!absent("accept"))
        head.fields[head.field_count++] =
            (struct oribi_field){"Accept-Encoding", value.p, (uint32_t)value.n, 15, ORIBI_FIELD_ACCEPT_ENCODING};
    *none_match = oribi_slice(NULL, 0);
    if (!case_has(&file, "none_match"))
        return;
    char seen[1024];
    size_t n = case_bytes(&file, "none_match", match, sizeof(match));
    size_t len = oribi_compress_expand_tags(oribi_slice(match, n), seen, sizeof(seen));
    if (len > 0)
        *none_match = oribi_slice(match, n);
    check_bytes("seen", len > 0 ? oribi_slice(seen, len) : ORIBI_SLICE("-"));
}

static uint32_t read_headers(void)
{
    static char text[HEADERS_MAX][2048];
    uint32_t count = 0;
    struct oribi_slice type = case_has(&file, "type") ? case_raw(&file, "type") : ORIBI_SLICE("text/plain");
    if (!absent("type"))
        headers[count++] = (struct oribi_header){"Content-Type", type.p, 12, (uint32_t)type.n};
    for (size_t i = 0; i < file.count && count < HEADERS_MAX; i++) {
        struct oribi_slice name;
        struct oribi_slice value;
        if (strcmp(file.lines[i].key, "header") != 0)
            continue;
        case_pair(file.lines[i].raw, text[count], sizeof(text[count]), &name, &value);
        headers[count++] = (struct oribi_header){name.p, value.p, (uint32_t)name.n, (uint32_t)value.n};
    }
    return count;
}

/* "Name: value|Name: value" */
static struct oribi_slice write_headers(const struct oribi_header *list, uint32_t count)
{
    static char text[VALUE_MAX];
    size_t n = 0;
    for (uint32_t i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s: %.*s", i ? "|" : "", (int)list[i].name_len,
                              list[i].name, (int)list[i].value_len, list[i].value);
    return oribi_slice(text, n);
}

/* Every header value cut at every byte against a guard page: what is decided is one of what can be. */
static void check_cuts(struct oribi_compress_question question)
{
    for (uint32_t i = 0; i < question.header_count; i++) {
        struct oribi_header whole = headers[i];
        for (uint32_t cut = 0; cut <= whole.value_len; cut += whole.value_len > 200 ? 97 : 1) {
            struct oribi_compress_decision decision;
            struct guard guard = guard_copy(whole.value, cut);
            headers[i].value = guard.p;
            headers[i].value_len = cut;
            oribi_compress_decide(&question, &decision);
            if (decision.coding == ORIBI_CODING_NONE || decision.coding >= ORIBI_CODING_COUNT)
                complain("a cut");
            guard_free(&guard);
        }
        headers[i] = whole;
    }
}

static void run_case(void)
{
    struct oribi_compress_question question = {.rules = &rules,
                                               .head = &head,
                                               .headers = headers,
                                               .status = (int)case_number(&file, "code", 200),
                                               .body_len = case_number(&file, "length", 5000)};
    struct oribi_compress_decision decision;
    struct oribi_compress_texts *texts = malloc(sizeof(*texts)); /* its ends are known to a sanitizer */
    struct oribi_header out[HEADERS_MAX + ORIBI_COMPRESS_HEADERS_ADDED_MAX];
    read_rules();
    read_request(&question.none_match);
    question.header_count = read_headers();
    oribi_compress_decide(&question, &decision);
    check_bytes("coding", oribi_coding_name(decision.coding));
    check_number("padded", decision.coding != ORIBI_CODING_IDENTITY && decision.is_private);
    check_number("not_modified", decision.not_modified);
    uint32_t count = question.header_count;
    if (decision.changes)
        count = oribi_compress_headers(&question, &decision, texts, out);
    check_bytes("out", write_headers(decision.changes ? out : headers, count));
    if (!case_has(&file, "coding"))
        complain("coding");
    check_cuts(question);
    free(texts);
}

/* ---- limits ---- */

static void test_the_longest_list_of_tags_and_one_byte_more(void)
{
    char room[64];
    struct oribi_slice value = ORIBI_SLICE("W/\"0123456789\", \"b\"");
    size_t n = oribi_compress_expand_tags(value, room, sizeof(room));
    is_bytes(room, n, "W/\"0123456789\", \"0123456789\", \"b\"", 33);
    for (size_t cap = 0; cap < 64; cap++) { /* whole or not at all, and never beyond the room */
        struct guard guard = guard_alloc(cap);
        size_t len = oribi_compress_expand_tags(value, guard.p, cap);
        if (len != 0 && len != n)
            ok(false);
        guard_free(&guard);
    }
    char text[512];
    memset(text, 'x', sizeof(text));
    memcpy(text, "W/\"", 3);
    text[sizeof(text) - 1] = '"';
    char large[ORIBI_COMPRESS_EXPANDED_BYTES_MAX];
    size_t longest = 0;
    for (size_t len = 4; len <= sizeof(text); len++) {
        text[len - 1] = '"';
        size_t got = oribi_compress_expand_tags(oribi_slice(text, len), large, sizeof(large));
        text[len - 1] = 'x';
        if (got > 0)
            longest = len;
    }
    ok_eq(longest, 511); /* two forms of one tag, in 1024 bytes */
}

static void test_words_of_the_operator(void)
{
    static const struct {
        const char *text;
        const char *wrong; /* NULL: it is right */
        size_t count;      /* identity included */
    } lines[] = {
        {"", NULL, 0},
        {"off", NULL, 0},
        {"gzip", NULL, 2},
        {" gzip\t,zstd , br", NULL, 4},
        {"gzip br gzip", "compress gzip: is given twice", 0},
        {"deflate", "compress deflate: takes gzip, zstd and br", 0},
        {"identity", "compress identity: takes gzip, zstd and br", 0},
        {"GZIP", "compress GZIP: takes gzip, zstd and br", 0},
        {"gzip off", "compress off: takes gzip, zstd and br", 0},
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        rules = (struct oribi_compress_rules){.min = 0};
        int result = oribi_compress_rules_codings(&rules, lines[i].text, error);
        bool lacks = result < 0 && strstr(error, "this build has no library for it (see --version)");
        if (lacks)
            diag("%s", error);
        else
            ok_named(lines[i].wrong ? result == ORIBI_EINVAL && strcmp(error, lines[i].wrong) == 0
                                    : result == 0 && rules.offered_count == lines[i].count,
                     "compress \"%s\"", lines[i].text);
    }
}

static void test_types_of_the_operator(void)
{
    static const char *const right[] = {"text/*", "application/json,text/html", "x/*+y", "a/b+c-d.e", ""};
    static const char *const wrong[] = {"text",           "/x",      "text/", "text/x*",  "t*/x", "Text/plain",
                                        "text/plain;q=1", "text/*x", "a/b/c", "text/*+*", "*/*",  "\xc3\xa4/x"};
    for (size_t i = 0; i < sizeof(right) / sizeof(right[0]); i++)
        ok_named(oribi_compress_rules_types(&rules, right[i], error) == 0, "\"%s\"", right[i]);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ok_named(oribi_compress_rules_types(&rules, wrong[i], error) == ORIBI_EINVAL &&
                     strncmp(error, "compress_types ", 15) == 0,
                 "not \"%s\": %s", wrong[i], error);
    rules.type_count = 0;
    int result = 0;
    for (int i = 0; i < ORIBI_COMPRESS_TYPES_MAX; i++)
        result += oribi_compress_rules_types(&rules, "a/b", error);
    ok_eq(result, 0);
    ok_eq(oribi_compress_rules_types(&rules, "a/b", error), ORIBI_EINVAL);
    rules.type_count = 0;
    char text[ORIBI_COMPRESS_TYPE_BYTES_MAX + 2];
    memset(text, 'x', sizeof(text));
    text[3] = '/';
    text[ORIBI_COMPRESS_TYPE_BYTES_MAX] = '\0';
    ok_eq(oribi_compress_rules_types(&rules, text, error), 0);
    text[ORIBI_COMPRESS_TYPE_BYTES_MAX] = 'x';
    text[ORIBI_COMPRESS_TYPE_BYTES_MAX + 1] = '\0';
    ok_eq(oribi_compress_rules_types(&rules, text, error), ORIBI_EINVAL);
}

static void test_a_header_without_a_value(void)
{
    struct oribi_header undefined[] = {{"ETag", NULL, 4, 0}, {"Content-Type", "text/plain", 12, 10}};
    struct oribi_compress_decision decision;
    rules = (struct oribi_compress_rules){.offered = {ORIBI_CODING_GZIP, ORIBI_CODING_IDENTITY}, .offered_count = 2};
    ok_eq(oribi_compress_rules_types(&rules, oribi_compress_types_default, error), 0);
    memset(&head, 0, sizeof(head));
    struct oribi_compress_question question = {
        .rules = &rules, .head = &head, .status = 200, .headers = undefined, .header_count = 2, .body_len = 9};
    oribi_compress_decide(&question, &decision);
    ok_eq(decision.coding, ORIBI_CODING_IDENTITY);
    ok(decision.varies && !decision.weakens);
}

/* An answer with this ETag and this Vary, decided. */
static uint32_t decided(struct oribi_slice etag, struct oribi_slice vary, struct oribi_compress_decision *decision,
                        struct oribi_compress_texts *texts, struct oribi_header *written)
{
    struct oribi_header given[] = {{"Content-Type", "text/plain", 12, 10},
                                   {"ETag", etag.p, 4, (uint32_t)etag.n},
                                   {"Vary", vary.p, 4, (uint32_t)vary.n}};
    rules = (struct oribi_compress_rules){.offered = {ORIBI_CODING_GZIP, ORIBI_CODING_IDENTITY}, .offered_count = 2};
    ok_eq(oribi_compress_rules_types(&rules, oribi_compress_types_default, error), 0);
    memset(&head, 0, sizeof(head));
    head.fields[head.field_count++] =
        (struct oribi_field){"Accept-Encoding", "gzip", 4, 15, ORIBI_FIELD_ACCEPT_ENCODING};
    struct oribi_compress_question question = {
        .rules = &rules, .head = &head, .status = 200, .headers = given, .header_count = 3, .body_len = 9000};
    oribi_compress_decide(&question, decision);
    return decision->changes ? oribi_compress_headers(&question, decision, texts, written) : 0;
}

static void test_the_longest_tag_and_vary_and_one_byte_more(void)
{
    static char tag[ORIBI_COMPRESS_ETAG_BYTES_MAX + 1];
    static char names[ORIBI_COMPRESS_VARY_BYTES_MAX];
    struct oribi_compress_decision decision;
    struct oribi_compress_texts texts;
    struct oribi_header written[3 + ORIBI_COMPRESS_HEADERS_ADDED_MAX];
    const size_t more = sizeof(", Accept-Encoding") - 1;
    memset(tag, 'x', sizeof(tag));
    memset(names, 'y', sizeof(names));
    tag[0] = tag[sizeof(tag) - 2] = '"';
    uint32_t count = decided(oribi_slice(tag, sizeof(tag) - 1), ORIBI_SLICE("Accept"), &decision, &texts, written);
    ok(decision.coding == ORIBI_CODING_GZIP && decision.weakens && count == 4);
    ok_eq(written[1].value_len, ORIBI_COMPRESS_ETAG_BYTES_MAX + 2);
    tag[sizeof(tag) - 2] = 'x';
    tag[sizeof(tag) - 1] = '"';
    (void)decided(oribi_slice(tag, sizeof(tag)), ORIBI_SLICE("Accept"), &decision, &texts, written);
    ok_eq(decision.coding, ORIBI_CODING_IDENTITY);

    count = decided(ORIBI_SLICE("\"a\""), oribi_slice(names, sizeof(names) - more), &decision, &texts, written);
    ok(count == 4 && written[2].value_len == ORIBI_COMPRESS_VARY_BYTES_MAX);
    count = decided(ORIBI_SLICE("\"a\""), oribi_slice(names, sizeof(names) - more + 1), &decision, &texts, written);
    ok(count == 5 && written[2].value == names); /* a line of its own */
}

int main(void)
{
    run_case_folder("compress", run_case);
    test_the_longest_list_of_tags_and_one_byte_more();
    test_words_of_the_operator();
    test_types_of_the_operator();
    test_a_header_without_a_value();
    test_the_longest_tag_and_vary_and_one_byte_more();
    return done_testing();
}
