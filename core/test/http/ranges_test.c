/* Limits and buffers; what ranges become is in spec/ranges. */
#include "http/ranges.c"

#include "guard.h"
#include "http/case_folder.h"

enum { VALUE_MAX = 64 * 1024, BODY_MAX = 64 * 1024 };

static struct guard arena;

static enum oribi_ranges_result read_text(const char *text, int64_t size, struct oribi_ranges *ranges)
{
    return oribi_ranges_read(oribi_slice(text, strlen(text)), size, ranges);
}

/* ---- spec ---- */

/* "0-4 7-9" for the ranges at hand. */
static struct oribi_slice show(const struct oribi_ranges *ranges)
{
    static char text[ORIBI_RANGES_MAX * 48];
    size_t n = 0;
    for (uint32_t i = 0; i < ranges->count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%lld-%lld", i ? " " : "", (long long)ranges->at[i].first,
                              (long long)ranges->at[i].last);
    return oribi_slice(text, n);
}

/* Does the result keep the rules of all results? */
static bool is_sound(enum oribi_ranges_result result, const struct oribi_ranges *ranges, int64_t size)
{
    if (result != ORIBI_RANGES_PART)
        return (result == ORIBI_RANGES_WHOLE || result == ORIBI_RANGES_NONE) && ranges->count == 0;
    if (ranges->count == 0 || ranges->count > ORIBI_RANGES_MAX)
        return false;
    for (uint32_t i = 0; i < ranges->count; i++) {
        struct oribi_byte_range range = ranges->at[i];
        if (range.first < 0 || range.first > range.last || range.last >= size)
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (range.first <= ranges->at[j].last + 1 && ranges->at[j].first <= range.last + 1)
                return false;
    }
    return true;
}

/* The body as the client reads it, each part in a buffer of exactly its length. */
static void check_multipart(const struct oribi_ranges *ranges, int64_t size)
{
    static char body[BODY_MAX];
    static char content[BODY_MAX];
    char boundary[128];
    char type[256];
    char shown[ORIBI_MULTIPART_TYPE_CAP];
    size_t content_len = case_bytes(&file, "content", content, sizeof(content));
    struct oribi_multipart multipart = {.size = size};
    multipart.boundary = oribi_slice(boundary, case_bytes(&file, "boundary", boundary, sizeof(boundary)));
    multipart.type = oribi_slice(type, case_bytes(&file, "type", type, sizeof(type)));
    if ((int64_t)content_len != size)
        complain("content");
    size_t n = 0;
    for (uint32_t i = 0; i <= ranges->count; i++) {
        bool end = i == ranges->count;
        ssize_t want = end ? oribi_multipart_end(&multipart, body + n, sizeof(body) - n)
                           : oribi_multipart_head(&multipart, ranges, i, body + n, sizeof(body) - n);
        for (ssize_t cap = 0; cap <= want; cap++) {
            struct guard out = guard_alloc((size_t)cap);
            ssize_t got = end ? oribi_multipart_end(&multipart, out.p, (size_t)cap)
                              : oribi_multipart_head(&multipart, ranges, i, out.p, (size_t)cap);
            if (got != (cap < want ? ORIBI_ELIMIT : want) || (got > 0 && memcmp(out.p, body + n, (size_t)got) != 0))
                complain("cap");
            guard_free(&out);
        }
        n += (size_t)want;
        if (end)
            break;
        size_t len = (size_t)(ranges->at[i].last - ranges->at[i].first + 1);
        memcpy(body + n, content + ranges->at[i].first, len);
        n += len;
    }
    check_bytes("output", oribi_slice(body, n));
    if (oribi_multipart_len(&multipart, ranges) != (int64_t)n)
        complain("length");
    check_bytes("content_type", oribi_slice(shown, oribi_multipart_type(&multipart, shown)));
}

static void run_case(void)
{
    static char text[VALUE_MAX];
    char shown[ORIBI_CONTENT_RANGE_CAP];
    struct oribi_ranges ranges;
    int64_t size = case_number(&file, "size", 100);
    size_t n = case_bytes(&file, "range", text, sizeof(text));
    enum oribi_ranges_result result = oribi_ranges_read(oribi_slice(guard_place(&arena, text, n), n), size, &ranges);
    check_number("status", result);
    if (!case_has(&file, "status") || !is_sound(result, &ranges, size))
        complain("ranges");
    check_bytes("ranges", show(&ranges));
    if (result == ORIBI_RANGES_PART && !case_has(&file, "ranges"))
        complain("ranges");
    if (result == ORIBI_RANGES_NONE)
        check_bytes("content_range", oribi_slice(shown, oribi_content_range_none(size, shown)));
    if (ranges.count == 1)
        check_bytes("content_range", oribi_slice(shown, oribi_content_range(ranges.at[0], size, shown)));
    if (case_has(&file, "boundary"))
        check_multipart(&ranges, size);
    struct guard front = guard_copy_front(text, n);
    for (size_t cut = 0; cut <= n; cut += n > 2000 ? 97 : 1) { /* every part of a value is read within it */
        result = oribi_ranges_read(oribi_slice(guard_place(&arena, text, cut), cut), size, &ranges);
        if (!is_sound(result, &ranges, size) || oribi_ranges_read(oribi_slice(front.p, cut), size, &ranges) != result)
            complain("a cut");
    }
    guard_free(&front);
}

/* ---- limits ---- */

/* "bytes=0-0,2-2,…" with so many ranges that do not touch, and what comes behind them. */
static void write_apart(char *text, size_t cap, int count, const char *rest)
{
    size_t n = (size_t)snprintf(text, cap, "bytes=");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, cap - n, "%d-%d,", 2 * i, 2 * i);
    snprintf(text + n, cap - n, "%s", rest);
}

static void test_sixteen_ranges_and_one_more(void)
{
    char text[2048];
    struct oribi_ranges ranges;
    write_apart(text, sizeof(text), ORIBI_RANGES_MAX, "");
    ok_eq(read_text(text, 1000, &ranges), ORIBI_RANGES_PART);
    ok_eq(ranges.count, ORIBI_RANGES_MAX);
    write_apart(text, sizeof(text), ORIBI_RANGES_MAX + 1, "");
    ok_eq(read_text(text, 1000, &ranges), ORIBI_RANGES_WHOLE);
    write_apart(text, sizeof(text), ORIBI_RANGES_MAX + 1, "1-1"); /* joins the first two */
    ok_eq(read_text(text, 1000, &ranges), ORIBI_RANGES_PART);
    ok_eq(ranges.count, ORIBI_RANGES_MAX);
    ok(ranges.at[0].first == 0 && ranges.at[0].last == 2 && ranges.at[1].first == 4);
}

static void test_ranges_apart_while_they_are_read(void)
{
    char text[2048];
    struct oribi_ranges ranges;
    write_apart(text, sizeof(text), ORIBI_RANGES_PENDING_MAX, "0-999");
    ok_eq(read_text(text, 1000, &ranges), ORIBI_RANGES_PART);
    ok_eq(ranges.count, 1);
    write_apart(text, sizeof(text), ORIBI_RANGES_PENDING_MAX + 1, "0-999");
    ok_eq(read_text(text, 1000, &ranges), ORIBI_RANGES_WHOLE);
    write_apart(text, sizeof(text), ORIBI_RANGES_PENDING_MAX, "2000-,5-4"); /* none is added; then no grammar */
    ok_eq(read_text(text, 1000, &ranges), ORIBI_RANGES_WHOLE);
}

static void test_a_head_full_of_overlapping_ranges_is_their_union(void)
{
    static char text[VALUE_MAX];
    struct oribi_ranges ranges;
    size_t n = (size_t)snprintf(text, sizeof(text), "bytes=");
    for (int i = 0; n + 32 < sizeof(text); i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%d-%d,", i % 7 * 100, i % 7 * 100 + i % 50);
    enum oribi_ranges_result result = oribi_ranges_read(oribi_slice(guard_place(&arena, text, n), n), 1000, &ranges);
    ok_eq(result, ORIBI_RANGES_PART);
    ok_eq(ranges.count, 7);
    ok(ranges.at[6].first == 600 && ranges.at[6].last == 649);
}

static void test_the_largest_representation(void)
{
    char shown[ORIBI_CONTENT_RANGE_CAP + 1] = "";
    struct oribi_ranges ranges;
    struct guard dst = guard_alloc(ORIBI_CONTENT_RANGE_CAP);
    static const char digits[] = "9223372036854775806-9223372036854775806";
    snprintf(shown, sizeof(shown), "bytes=%s", digits);
    ok_eq(read_text(shown, INT64_MAX, &ranges), ORIBI_RANGES_PART);
    ok_eq(oribi_content_range(ranges.at[0], INT64_MAX, dst.p), ORIBI_CONTENT_RANGE_CAP);
    is_bytes(dst.p, dst.n, "bytes 9223372036854775806-9223372036854775806/9223372036854775807", dst.n);
    ok_eq(oribi_content_range_none(INT64_MAX, shown), 27);
    is_bytes(shown, 27, "bytes */9223372036854775807", 27);
    is_bytes(shown + 27, 18, digits + 21, 18); /* nothing is written behind it */
    guard_free(&dst);

    struct oribi_multipart multipart = {.boundary = ORIBI_SLICE("B"), .size = INT64_MAX};
    ok_eq(read_text("bytes=0-9223372036854775000,9223372036854775100-", INT64_MAX, &ranges), ORIBI_RANGES_PART);
    ok_eq(ranges.count, 2);
    ok(oribi_multipart_len(&multipart, &ranges) == ORIBI_ELIMIT);
    ok_eq(read_text("bytes=0-9223372036854775000", INT64_MAX, &ranges), ORIBI_RANGES_PART);
    ok(oribi_multipart_len(&multipart, &ranges) > 9223372036854775000);
}

static void test_the_longest_boundary(void)
{
    char boundary[ORIBI_BOUNDARY_BYTES_MAX];
    struct guard dst = guard_alloc(ORIBI_MULTIPART_TYPE_CAP);
    memset(boundary, 'b', sizeof(boundary));
    struct oribi_multipart multipart = {.boundary = oribi_slice(boundary, sizeof(boundary)), .size = 10};
    ok_eq(oribi_multipart_type(&multipart, dst.p), ORIBI_MULTIPART_TYPE_CAP);
    ok(memcmp(dst.p, "multipart/byteranges; boundary=bbb", 34) == 0);
    guard_free(&dst);
}

/* Every set of up to three ranges in ten bytes, against a bit for each byte. */
static void test_all_sets_of_three_ranges_in_ten_bytes(void)
{
    bool right = true;
    for (int code = 0; code < 1000000 && right; code += 7) {
        char text[64];
        struct oribi_ranges ranges;
        unsigned want = 0;
        unsigned got = 0;
        bool whole = false;
        size_t n = (size_t)snprintf(text, sizeof(text), "bytes=");
        for (int i = 0, rest = code; i < 3; i++, rest /= 100) {
            int first = rest % 10;
            int last = rest / 10 % 10;
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d-%d", i ? "," : "", first, last);
            whole |= last < first;
            for (int at = first; at <= last && at < 8; at++) /* the representation has 8 bytes */
                want |= 1U << at;
        }
        enum oribi_ranges_result result = read_text(text, 8, &ranges);
        for (uint32_t i = 0; i < ranges.count; i++)
            for (int64_t at = ranges.at[i].first; at <= ranges.at[i].last; at++)
                got |= 1U << at;
        right = is_sound(result, &ranges, 8) &&
                result == (whole  ? ORIBI_RANGES_WHOLE
                           : want ? ORIBI_RANGES_PART
                                  : ORIBI_RANGES_NONE) &&
                (whole || got == want);
        if (!right)
            diag("%s", text);
    }
    ok(right);
}

int main(void)
{
    arena = guard_alloc(VALUE_MAX);
    run_case_folder("ranges", run_case);
    test_sixteen_ranges_and_one_more();
    test_ranges_apart_while_they_are_read();
    test_a_head_full_of_overlapping_ranges_is_their_union();
    test_the_largest_representation();
    test_the_longest_boundary();
    test_all_sets_of_three_ranges_in_ten_bytes();
    return done_testing();
}
