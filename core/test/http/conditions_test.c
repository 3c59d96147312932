/* Validators, limits and long lists; what conditions decide is in spec/conditions. */
#include "http/conditions.c"

#include "guard.h"
#include "http/case_folder.h"
#include "oribi/http/head.h"

enum { VALUE_MAX = 32 * 1024, SLOTS = 6 };

#define DATE "Sat, 05 Nov 1994 08:49:37 GMT"

static const int64_t november_1994 = 784111777; /* Sun, 06 Nov 1994 08:49:37 GMT */
static struct guard arenas[SLOTS];

static struct oribi_slice *slot(struct oribi_conditions *conditions, int index)
{
    struct oribi_slice *slots[SLOTS] = {&conditions->if_match,          &conditions->if_none_match,
                                        &conditions->if_modified_since, &conditions->if_unmodified_since,
                                        &conditions->if_range,          &conditions->range};
    return slots[index];
}

/* ---- spec ---- */

/* The request as bytes, so that repeated fields are joined as they are on the way to a file. */
static bool read_request(struct oribi_head *head, struct oribi_conditions *conditions)
{
    static char text[VALUE_MAX];
    static char part[VALUE_MAX];
    struct oribi_limits limits;
    struct oribi_parser parser = {0};
    struct oribi_slice method = case_has(&file, "method") ? case_raw(&file, "method") : ORIBI_SLICE("GET");
    size_t n = (size_t)snprintf(text, sizeof(text), "%.*s /f HTTP/1.1\r\nHost: a\r\n", (int)method.n, method.p);
    for (size_t i = 0; i < file.count; i++) {
        struct oribi_slice name;
        struct oribi_slice value;
        if (strcmp(file.lines[i].key, "field") != 0)
            continue;
        case_pair(file.lines[i].raw, part, sizeof(part), &name, &value);
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%.*s: %.*s\r\n", (int)name.n, name.p, (int)value.n, value.p);
    }
    n += (size_t)snprintf(text + n, sizeof(text) - n, "\r\n");
    oribi_limits_init(&limits);
    if (oribi_parser_head(&parser, &limits, text, n, head) != (ssize_t)n)
        return false;
    oribi_conditions_of_head(head, conditions);
    return true;
}

/* The representation that the case speaks of: by default one with the ETag "one" that was changed a day ago. */
static struct oribi_validators read_validators(char *etag, size_t cap)
{
    char text[64];
    struct oribi_validators validators = {.exists = case_number(&file, "exists", 1)};
    if (!validators.exists)
        return validators;
    size_t n = case_has(&file, "etag") ? case_bytes(&file, "etag", etag, cap) : 5;
    validators.etag = case_has(&file, "etag") ? oribi_slice(etag, n) : ORIBI_SLICE("\"one\"");
    size_t date_len = case_bytes(&file, "last_modified", text, sizeof(text));
    struct oribi_slice date = case_has(&file, "last_modified") ? oribi_slice(text, date_len) : ORIBI_SLICE(DATE);
    validators.has_last_modified = date.n > 0;
    validators.last_modified_strong = case_number(&file, "last_modified_strong", 1);
    if (date.n && oribi_date_read(date, november_1994, &validators.last_modified_s) != 0)
        complain("last_modified");
    return validators;
}

/* Every field cut at every byte, against the guard page: each answer is one that this method can have. */
static void check_cuts(const struct oribi_conditions *conditions, const struct oribi_validators *validators)
{
    bool reads = oribi_slice_equal(conditions->method, ORIBI_SLICE("GET")) ||
                 oribi_slice_equal(conditions->method, ORIBI_SLICE("HEAD"));
    for (int i = 0; i < SLOTS; i++) {
        struct oribi_conditions part = *conditions;
        struct oribi_slice whole = *slot(&part, i);
        for (size_t cut = 0; cut<whole.n; cut += whole.n> 2000 ? 97 : 1) {
            bool ranges;
            *slot(&part, i) = oribi_slice(guard_place(&arenas[i], whole.p, cut), cut);
            enum oribi_condition_result result = oribi_conditions_decide(&part, validators, november_1994, &ranges);
            if (result != ORIBI_CONDITION_GO_ON && result != ORIBI_CONDITION_FAILED &&
                (result != ORIBI_CONDITION_NOT_MODIFIED || !reads))
                complain("a cut");
        }
    }
}

static void run_case(void)
{
    static struct oribi_head head;
    static char etag[VALUE_MAX];
    struct oribi_conditions conditions;
    if (!read_request(&head, &conditions)) {
        complain("request");
        return;
    }
    for (int i = 0; i < SLOTS; i++) {
        struct oribi_slice *value = slot(&conditions, i);
        if (value->p)
            value->p = guard_place(&arenas[i], value->p, value->n);
    }
    struct oribi_validators validators = read_validators(etag, sizeof(etag));
    bool ranges;
    char got[16] = "ok";
    enum oribi_condition_result result = oribi_conditions_decide(&conditions, &validators, november_1994, &ranges);
    if (result != ORIBI_CONDITION_GO_ON)
        snprintf(got, sizeof(got), "%d", result);
    if (!case_is(&file, "status", got)) {
        complain("status");
        diag("got %s", got);
    }
    check_number("ranges", ranges);
    if (ranges && result != ORIBI_CONDITION_GO_ON)
        complain("ranges");
    struct oribi_conditions again;
    oribi_conditions_of_head(&head, &again); /* in the parser's bytes: cuts are taken from there */
    check_cuts(&again, &validators);
    oribi_head_release(&head);
}

/* ---- validators of files ---- */

static void is_file(int64_t size, int64_t mtime_s, int64_t now_s, const char *coding, const char *etag)
{
    struct guard dst = guard_alloc(ORIBI_ETAG_BYTES_MAX);
    struct oribi_validators validators;
    oribi_validators_of_file(size, mtime_s, now_s, oribi_slice(coding, strlen(coding)), dst.p, &validators);
    is_slice(validators.etag, etag);
    struct etag tag = {0};
    ok(read_etag(validators.etag, &tag) && tag.weak == (mtime_s > now_s - 2));
    ok(validators.exists && validators.has_last_modified && validators.last_modified_strong == !tag.weak);
    ok_eq(validators.last_modified_s, mtime_s > now_s ? now_s : mtime_s);
    guard_free(&dst);
}

static void test_etag_of_a_file(void)
{
    is_file(30, 1704164645, 1704164647, "", "\"65937d25-1e\"");
    is_file(0, 2, 100, "", "\"2-0\"");
    is_file(30, 1704164645, 1704164647, "gzip", "\"65937d25-1e-gzip\"");
    is_file(INT64_MAX, INT64_MAX - 2, INT64_MAX, "zstd", "\"7ffffffffffffffd-7fffffffffffffff-zstd\"");
}

static void has_neither(int64_t mtime_s, int64_t now_s)
{
    char dst[ORIBI_ETAG_BYTES_MAX];
    struct oribi_validators validators;
    oribi_validators_of_file(5, mtime_s, now_s, ORIBI_SLICE("gzip"), dst, &validators);
    ok(validators.exists && validators.etag.n == 0 && !validators.has_last_modified);
}

/* Each state of such a file has the same time: what tells two of them apart is neither tag nor date. */
static void test_a_time_that_says_nothing(void)
{
    has_neither(0, 1704164647);
    has_neither(1, 1704164647);
    has_neither(-1, 1704164647);
    has_neither(INT64_MIN, 0);
    has_neither(INT64_MIN + 1, INT64_MAX);
    has_neither(1, 0); /* ahead of a clock that was never set */
    is_file(5, 2, 1704164647, "", "\"2-5\"");
}

static void test_etag_of_a_content(void)
{
    struct guard dst = guard_alloc(ORIBI_ETAG_BYTES_MAX);
    struct oribi_validators validators;
    oribi_validators_of_file(5, 1, 1704164647, ORIBI_SLICE(""), dst.p, &validators);
    oribi_validators_take_hash(0xabc, 5, false, ORIBI_SLICE(""), dst.p, &validators);
    is_slice(validators.etag, "\"habc-5\"");
    ok(validators.exists && !validators.has_last_modified);
    oribi_validators_of_file(5, 1000, 1704164647, ORIBI_SLICE(""), dst.p, &validators);
    oribi_validators_take_hash(0xabc, 5, true, ORIBI_SLICE("br"), dst.p, &validators);
    is_slice(validators.etag, "W/\"habc-5-br-new\"");
    ok(validators.has_last_modified && validators.last_modified_s == 1000);
    oribi_validators_take_hash(UINT64_MAX, INT64_MAX, true, ORIBI_SLICE("identity"), dst.p, &validators);
    is_slice(validators.etag, "W/\"hffffffffffffffff-7fffffffffffffff-identity-new\"");
    ok_eq(validators.etag.n, ORIBI_ETAG_BYTES_MAX);
    guard_free(&dst);
}

static void test_a_file_younger_than_two_seconds_is_weak(void)
{
    is_file(1, 1000, 1001, "", "W/\"3e8-1-new\"");
    is_file(1, 1000, 1000, "br", "W/\"3e8-1-br-new\"");
    is_file(1, 1000, 999, "", "W/\"3e8-1-new\""); /* ahead of the clock */
    is_file(INT64_MAX, INT64_MAX, 0, "identity", "W/\"7fffffffffffffff-7fffffffffffffff-identity-new\"");
}

static enum oribi_condition_result ask(const char *field, const struct oribi_validators *validators, int64_t now_s,
                                       bool *ranges)
{
    struct oribi_conditions conditions = {.method = ORIBI_SLICE("GET"), .range = ORIBI_SLICE("bytes=0-0")};
    struct oribi_slice value = oribi_slice(field, strlen(field));
    if (*ranges)
        conditions.if_range = value;
    else
        conditions.if_none_match = value;
    return oribi_conditions_decide(&conditions, validators, now_s, ranges);
}

/* A file that changes twice in a second without a change of its size: who has seen it in between must not keep that. */
static void test_what_was_seen_in_the_second_of_a_change_is_not_kept(void)
{
    char early[ORIBI_ETAG_BYTES_MAX + 1] = "";
    char late[ORIBI_ETAG_BYTES_MAX + 1] = "";
    struct oribi_validators validators;
    bool ranges = false;
    oribi_validators_of_file(5, 1000, 1000, oribi_slice("", 0), early, &validators);
    ok_eq(ask(early, &validators, 1000, &ranges), ORIBI_CONDITION_NOT_MODIFIED);
    ranges = true;
    ok_eq(ask(early, &validators, 1000, &ranges), ORIBI_CONDITION_GO_ON);
    ok(!ranges);
    ranges = true;
    ok_eq(ask("Thu, 01 Jan 1970 00:16:40 GMT", &validators, 1000, &ranges), ORIBI_CONDITION_GO_ON);
    ok(!ranges);

    oribi_validators_of_file(5, 1000, 1002, oribi_slice("", 0), late, &validators);
    ranges = false;
    ok_eq(ask(early, &validators, 1002, &ranges), ORIBI_CONDITION_GO_ON);
    ranges = false;
    ok_eq(ask(late, &validators, 1002, &ranges), ORIBI_CONDITION_NOT_MODIFIED);
    ranges = true;
    ok_eq(ask(late, &validators, 1002, &ranges), ORIBI_CONDITION_GO_ON);
    ok(ranges);
    ranges = true;
    ok_eq(ask("Thu, 01 Jan 1970 00:16:40 GMT", &validators, 1002, &ranges), ORIBI_CONDITION_GO_ON);
    ok(ranges);
}

/* ---- lists ---- */

static void test_every_byte_of_a_tag(void)
{
    bool right = true;
    for (int c = 0; c < 256; c++) {
        char text[] = "\"a?b\"";
        struct etag tag;
        text[2] = (char)c;
        bool allowed = c == 0x21 || (c >= 0x23 && c <= 0x7e) || c >= 0x80;
        right &= read_etag(oribi_slice(text, 5), &tag) == allowed;
    }
    ok(right);
}

static void test_a_long_list_is_read_to_its_end(void)
{
    static char text[VALUE_MAX];
    struct oribi_validators validators = {.exists = true, .etag = ORIBI_SLICE("\"one\"")};
    size_t n = 0;
    while (n + 16 < sizeof(text))
        n += (size_t)snprintf(text + n, sizeof(text) - n, "\"x%zu\", ", n);
    size_t tags = n;
    n += (size_t)snprintf(text + n, sizeof(text) - n, "\"one\"");
    struct oribi_slice list = oribi_slice(guard_place(&arenas[0], text, n), n);
    ok_eq(match_list(list, &validators, false), MATCH_YES);
    list.n = tags;
    ok_eq(match_list(list, &validators, false), MATCH_NO);
    memset(text, ',', sizeof(text));
    ok_eq(match_list(oribi_slice(text, sizeof(text)), &validators, false), MATCH_NO);
    text[sizeof(text) - 1] = 'x';
    ok_eq(match_list(oribi_slice(text, sizeof(text)), &validators, false), MATCH_BAD);
}

static void test_methods_that_select_nothing_go_on(void)
{
    static const char *const methods[] = {"CONNECT", "OPTIONS", "TRACE"};
    struct oribi_validators validators = {.exists = true, .etag = ORIBI_SLICE("\"one\"")};
    for (int i = 0; i < 3; i++) {
        struct oribi_conditions conditions = {.method = oribi_slice(methods[i], strlen(methods[i])),
                                              .if_match = ORIBI_SLICE("\"two\""),
                                              .if_none_match = ORIBI_SLICE("*"),
                                              .range = ORIBI_SLICE("bytes=0-0")};
        bool ranges = true;
        ok_eq(oribi_conditions_decide(&conditions, &validators, november_1994, &ranges), ORIBI_CONDITION_GO_ON);
        ok(!ranges);
    }
}

int main(void)
{
    for (int i = 0; i < SLOTS; i++)
        arenas[i] = guard_alloc(VALUE_MAX);
    run_case_folder("conditions", run_case);
    test_etag_of_a_file();
    test_a_time_that_says_nothing();
    test_etag_of_a_content();
    test_a_file_younger_than_two_seconds_is_weak();
    test_what_was_seen_in_the_second_of_a_change_is_not_kept();
    test_every_byte_of_a_tag();
    test_a_long_list_is_read_to_its_end();
    test_methods_that_select_nothing_go_on();
    return done_testing();
}
