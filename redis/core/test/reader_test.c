#include "src/reader.c"

#include "told.h"

#include "http/case_file.h"
#include "oribi/base/mem.h"
#include "tap.h"

/* Reads all of it in pieces of so many bytes; each behind a guard page by the allocation of its own size. Returns 0, or
 * the error. */
static int read_all(const char *input, size_t n, size_t piece, struct told *told, const char **why)
{
    struct oribi_redis_reader reader = {0};
    oribi_redis_reader_init(&reader, 0, 0);
    int found = ORIBI_AGAIN;
    size_t used = 0;
    for (;;) {
        struct oribi_redis_event event;
        found = oribi_redis_next(&reader, &event);
        if (found == 0 && event.kind == ORIBI_REDIS_LONG) {
            char *text = oribi_mem_alloc(1, event.count + 1);
            size_t had = 0;
            while ((had += oribi_redis_take(&reader, text + had, event.count - had)) < event.count && used < n) {
                size_t step = n - used < event.count - had ? n - used : (size_t)event.count - had;
                memcpy(text + had, input + used, step);
                oribi_redis_skip_body(&reader, step);
                had += step;
                used += step;
            }
            event.kind = event.format[0] ? ORIBI_REDIS_VERBATIM : ORIBI_REDIS_STRING;
            event.text = oribi_slice(text, had);
            tell(told, &event);
            oribi_mem_free(text);
            if (had < event.count) {
                found = ORIBI_AGAIN;
                break;
            }
            continue;
        }
        if (found == 0) {
            tell(told, &event);
            continue;
        }
        if (found != ORIBI_AGAIN || used == n)
            break;
        size_t room;
        size_t step = n - used < piece ? n - used : piece;
        char *p = oribi_redis_room(&reader, step, &room);
        memcpy(p, input + used, step);
        oribi_redis_got(&reader, step);
        used += step;
    }
    *why = reader.why;
    oribi_redis_reader_deinit(&reader);
    return found;
}

static void check(const char *input, size_t n, int want_error, const char *want)
{
    static const size_t PIECES[] = {1, 2, 3, 5, 7, 64, 1000, 1 << 20};
    for (size_t i = 0; i < sizeof(PIECES) / sizeof(PIECES[0]); i++) {
        struct told told = {.n = 0};
        const char *why;
        int found = read_all(input, n, PIECES[i], &told, &why);
        if (found == want_error && strcmp(told.text, want) == 0)
            continue;
        fail("%.40s in pieces of %zu", input, PIECES[i]);
        diag("%d (%s): %s\nwant %d: %s", found, why ? why : "", told.text, want_error, want);
        return;
    }
    pass("%.40s", input);
}

#define GOOD(input, want) check(input, sizeof(input) - 1, ORIBI_AGAIN, want)
#define BAD(input)        check(input, sizeof(input) - 1, ORIBI_EBAD, "")

static void test_each_kind(void)
{
    GOOD("+OK\r\n", "status OK.");
    GOOD("+\r\n", "status .");
    GOOD("-ERR no\r\n", "error ERR no.");
    GOOD(":0\r\n:-1\r\n:+7\r\n", "int 0., int -1., int 7.");
    GOOD(":9223372036854775807\r\n:-9223372036854775808\r\n", "int 9223372036854775807., int -9223372036854775808.");
    GOOD(":00000000000000000009223372036854775807\r\n", "int 9223372036854775807.");
    GOOD(":123456\r\n:1234567\r\n:12345678\r\n", "int 123456., int 1234567., int 12345678.");
    GOOD("$5\r\nhello\r\n", "string hello.");
    GOOD("$0\r\n\r\n", "string .");
    GOOD("$4\r\na\r\nb\r\n", "string a\r\nb.");
    GOOD("$-1\r\n*-1\r\n_\r\n", "null., null., null.");
    GOOD("#t\r\n#f\r\n", "bool 1., bool 0.");
    GOOD(",1.5\r\n,-3\r\n,1e10\r\n,.5\r\n,inf\r\n,-inf\r\n,nan\r\n",
         "double 1.5., double -3., double 1e10., double .5., double inf., double -inf., double nan.");
    GOOD("(3492890328409238509324850943850943825024385\r\n(-1\r\n", "big 34928903...43., big -1.");
    GOOD("=15\r\ntxt:Some string\r\n", "txt:Some string.");
    GOOD("=4\r\nmkd:\r\n", "mkd:.");
    GOOD("!9\r\nERR a\r\nbc\r\n", "error ERR a\r\nbc.");
}

static void test_aggregates(void)
{
    GOOD("*0\r\n", "array 0.");
    GOOD("*2\r\n$1\r\na\r\n:1\r\n", "array 2, string a, int 1.");
    GOOD("*2\r\n*1\r\n:1\r\n*0\r\n", "array 2, array 1, int 1, array 0.");
    GOOD("*2\r\n-ERR in place\r\n_\r\n", "array 2, error ERR in place, null.");
    GOOD("%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", "map 2, status a, int 1, status b, array 1, int 2.");
    GOOD("%0\r\n~0\r\n", "map 0., set 0.");
    GOOD("~2\r\n:1\r\n:2\r\n", "set 2, int 1, int 2.");
    GOOD(">2\r\n+message\r\n+x\r\n+OK\r\n", "push 2, status message, status x., status OK.");
}

static void test_attributes_are_passed_over(void)
{
    GOOD("|1\r\n+ttl\r\n:3600\r\n+OK\r\n", "status OK.");
    GOOD("*2\r\n:1\r\n|1\r\n+a\r\n*2\r\n:8\r\n:9\r\n:2\r\n", "array 2, int 1, int 2.");
    GOOD("|1\r\n+a\r\n|1\r\n+x\r\n+y\r\n+b\r\n+OK\r\n", "status OK.");
    GOOD("|0\r\n+OK\r\n", "status OK.");
    GOOD("*1\r\n|1\r\n%1\r\n+k\r\n+v\r\n+b\r\n$1\r\nz\r\n", "array 1, string z.");
}

static void test_what_is_no_resp(void)
{
    BAD("HTTP/1.1 400 Bad Request\r\n");
    BAD("\r\n");
    BAD("+OK\rX\n");
    BAD(":\r\n");
    BAD(":1x\r\n");
    BAD(":9223372036854775808\r\n");
    BAD(":18446744073709551616\r\n");
    BAD(":99999999999999999999\r\n");
    BAD(":999999999999999999999999999999\r\n");
    BAD(":00000000000000000009223372036854775808\r\n");
    BAD(":-9223372036854775809\r\n");
    BAD("$\r\n");
    BAD("$-2\r\n");
    BAD("$x\r\n");
    BAD("$3\r\nabcd\r\n");
    BAD("!-1\r\n");
    BAD("*-2\r\n");
    BAD("%-1\r\n");
    BAD("#x\r\n");
    BAD("#\r\n");
    BAD(",\r\n");
    BAD(",1.2.3\r\n");
    BAD(",1e\r\n");
    BAD(",0x10\r\n");
    BAD("(1.5\r\n");
    BAD("(-\r\n");
    BAD("_x\r\n");
    BAD("=3\r\ntxt\r\n");
    BAD("=5\r\ntxt1x\r\n");
    BAD("$?\r\n");
    check("*1\r\n>1\r\n:1\r\n", 12, ORIBI_EBAD, "array 1");
    check("*2\r\n:1\r\nx", 9, ORIBI_EBAD, "array 2, int 1");
}

static void test_maxima(void)
{
    struct told told = {.n = 0};
    const char *why;
    check("$4611686018427387904\r\n", 22, ORIBI_ELIMIT, ""); /* 2^62 */
    check("$536870913\r\n", 12, ORIBI_ELIMIT, "");
    check("$536870912\r\n", 12, ORIBI_AGAIN, "string .");
    check("*2147483648\r\n", 13, ORIBI_ELIMIT, "");
    check("*2147483647\r\n", 13, ORIBI_AGAIN, "array 2147483647");

    /* A bulk error of more than a line's bytes, whole and in pieces. */
    for (size_t more = 0; more < 2; more++) {
        struct oribi_buf error = {0};
        oribi_buf_print(&error, "!%zu\r\n", ORIBI_REDIS_LINE_MAX + more);
        for (size_t i = 0; i < ORIBI_REDIS_LINE_MAX + more; i++)
            oribi_buf_append(&error, "e", 1);
        oribi_buf_append(&error, "\r\n", 2);
        check(error.p, error.len, more ? ORIBI_ELIMIT : ORIBI_AGAIN, more ? "" : "error eeeeeeee...65536.");
        oribi_buf_deinit(&error);
    }

    struct oribi_buf deep = {0};
    for (int i = 0; i < ORIBI_REDIS_DEPTH_MAX; i++)
        oribi_buf_append(&deep, "*1\r\n", 4);
    oribi_buf_append(&deep, ":1\r\n", 4);
    ok_eq(read_all(deep.p, deep.len, 100, &told, &why), ORIBI_AGAIN);
    deep.len -= 4;
    oribi_buf_append(&deep, "*1\r\n:1\r\n", 8);
    told.n = 0;
    ok_eq(read_all(deep.p, deep.len, 100, &told, &why), ORIBI_ELIMIT);
    is_str(why, "aggregates are nested too deeply");
    oribi_buf_deinit(&deep);

    for (int more = 0; more < 2; more++) {
        struct oribi_buf line = {0};
        oribi_buf_append(&line, "+", 1);
        for (int i = 0; i < ORIBI_REDIS_LINE_MAX + more; i++)
            oribi_buf_append(&line, "x", 1);
        told.n = 0;
        ok_eq(read_all(line.p, line.len, 1000, &told, &why), more ? ORIBI_ELIMIT : ORIBI_AGAIN);
        oribi_buf_append(&line, "\r\n", 2);
        told.n = 0;
        ok_eq(read_all(line.p, line.len, 1000, &told, &why), more ? ORIBI_ELIMIT : ORIBI_AGAIN);
        line.len -= 2;
        oribi_buf_append(&line, "xxxx", 4);
        told.n = 0;
        ok_eq(read_all(line.p, line.len, 1000, &told, &why), ORIBI_ELIMIT);
        oribi_buf_deinit(&line);
    }
}

static void test_long_strings_are_told_before_their_end(void)
{
    size_t n = ORIBI_REDIS_WHOLE_MAX + 1;
    struct oribi_buf text = {0};
    oribi_buf_print(&text, "*2\r\n$%zu\r\n", n);
    for (size_t i = 0; i < n; i++)
        oribi_buf_append(&text, &"abcdefgh"[i % 8], 1);
    oribi_buf_append(&text, "\r\n:5\r\n", 6);
    check(text.p, text.len, ORIBI_AGAIN, "array 2, string abcdefgh...16385, int 5.");
    text.len = 0;
    oribi_buf_print(&text, "=%zu\r\ntxt:", n + 4);
    for (size_t i = 0; i < n; i++)
        oribi_buf_append(&text, &"abcdefgh"[i % 8], 1);
    oribi_buf_append(&text, "\r\n", 2);
    check(text.p, text.len, ORIBI_AGAIN, "txt:abcdefgh...16385.");
    text.len -= 2;
    oribi_buf_append(&text, "xx", 2);
    struct told told = {.n = 0};
    const char *why;
    ok_eq(read_all(text.p, text.len, 100, &told, &why), ORIBI_EBAD);
    oribi_buf_deinit(&text);
}

static void test_room_is_made_for_what_can_have_come(void)
{
    struct oribi_redis_reader reader = {0};
    oribi_redis_reader_init(&reader, 0, 0);
    ok_eq(oribi_redis_likely(&reader, 3), 3);
    ok(oribi_redis_likely(&reader, 1ULL << 30) < 100);
    oribi_redis_reader_deinit(&reader);
}

static void test_cases_of_spec(void)
{
    static const struct {
        const char *word;
        int error;
    } STATUSES[] = {{"again", ORIBI_AGAIN}, {"bad", ORIBI_EBAD}, {"limit", ORIBI_ELIMIT}};
    static struct case_file file;
    static char input[128 * 1024];
    static char events[8192];
    size_t cases = 0;
    ok(case_file_open(&file, "../../spec/redis/replies.case"));
    for (; case_next(&file); cases++) {
        struct oribi_slice status = case_raw(&file, "status");
        int want = 0;
        for (size_t i = 0; i < sizeof(STATUSES) / sizeof(STATUSES[0]); i++)
            if (oribi_slice_equal(status, oribi_slice(STATUSES[i].word, strlen(STATUSES[i].word))))
                want = STATUSES[i].error;
        size_t n = case_unescape(case_raw(&file, "input"), input, sizeof(input) - 1);
        input[n] = '\0';
        events[case_unescape(case_raw(&file, "events"), events, sizeof(events) - 1)] = '\0';
        check(input, n, want, events);
    }
    ok(cases >= 14);
    case_file_close(&file);
}

int main(void)
{
    int64_t before = oribi_mem_blocks();
    test_cases_of_spec();
    test_each_kind();
    test_aggregates();
    test_attributes_are_passed_over();
    test_what_is_no_resp();
    test_maxima();
    test_long_strings_are_told_before_their_end();
    test_room_is_made_for_what_can_have_come();
    ok_eq(oribi_mem_blocks(), before);
    return done_testing();
}
