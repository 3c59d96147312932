/* Results of fields and cookies are in spec/cookie; here are limits, dates, truncations and the work that hostile
 * fields cause. */
#include "form/cookie.c"

#include "guard.h"
#include "form/field_lines.h"
#include "oribi/base/mem.h"

enum { TEXT_MAX = 8192 };

static struct guard arena;
static struct guard rooms;

/* ---- spec ---- */

static void run_parse(void)
{
    static char input[TEXT_MAX];
    struct oribi_cookies cookies;
    struct oribi_form_pair pair;
    struct oribi_slice key;
    struct oribi_slice value;
    size_t line = 0;
    size_t n = case_bytes(&file, "input", input, sizeof(input));
    unsigned rules = case_is(&file, "as", "perl") ? ORIBI_COOKIE_PERL : ORIBI_COOKIE_RACK;
    oribi_cookies_begin(&cookies, oribi_slice(guard_place(&arena, input, n), n), rooms.p + rooms.n - n, rules);
    while (oribi_cookies_next(&cookies, &pair) > 0) {
        if (!next_field(&line, &key, &value) || !oribi_slice_equal(key, pair.key) ||
            !oribi_slice_equal(value, pair.value) || pair.bare != is_named_bare(cookies.count)) {
            complain("field");
            tap_print_bytes_("key  ", pair.key.p, pair.key.n);
            tap_print_bytes_("value", pair.value.p, pair.value.n);
        }
    }
    if (next_field(&line, &key, &value))
        complain("field");
}

/* The value of a key at *at, which moves on; p == NULL: the case has none. */
static struct oribi_slice take(const char *key, char **at, const char *end)
{
    if (!case_has(&file, key))
        return oribi_slice(NULL, 0);
    char *p = *at;
    *at += case_bytes(&file, key, p, (size_t)(end - p));
    return oribi_slice(p, (size_t)(*at - p));
}

static void run_bake(void)
{
    static char texts[TEXT_MAX];
    char *at = texts;
    const char *end = texts + sizeof(texts);
    const char *wrong = NULL;
    struct oribi_cookie cookie = {.name = take("key", &at, end)};
    struct oribi_slice value = take("value", &at, end);
    cookie.values = &value;
    cookie.value_count = 1;
    cookie.domain = take("domain", &at, end);
    cookie.path = take("path", &at, end);
    cookie.expires = take("expires", &at, end);
    cookie.max_age = take("max_age", &at, end);
    cookie.same_site = case_is(&file, "same_site", "strict") ? ORIBI_SAME_SITE_STRICT
                       : case_is(&file, "same_site", "none") ? ORIBI_SAME_SITE_NONE
                                                             : ORIBI_SAME_SITE_UNSET;
    cookie.secure = case_number(&file, "secure", 0);
    cookie.http_only = case_number(&file, "http_only", 0);
    cookie.partitioned = case_number(&file, "partitioned", 0);
    ssize_t room = oribi_cookie_room(&cookie);
    char *dst = rooms.p + rooms.n - room;
    ssize_t n =
        oribi_cookie_bake(&cookie, case_is(&file, "style", "perl") ? ORIBI_BAKE_PERL : ORIBI_BAKE_RACK, dst, &wrong);
    if (case_has(&file, "status") ? n != ORIBI_EBAD || !wrong : n < 0 || n > room || wrong)
        complain("status");
    if (n >= 0)
        check_bytes("output", oribi_slice(dst, (size_t)n));
}

static void run_case(void)
{
    if (case_has(&file, "style"))
        run_bake();
    else
        run_parse();
}

/* ---- reading ---- */

static void test_every_truncation(void)
{
    static const char text[] = " a%20 = \"b%22\" ; c=d+%zz ;; =e; f; g=\"\" ; h=%4";
    bool good_all = true;
    for (size_t n = 0; n < sizeof(text); n++)
        for (unsigned rules = 0; rules < 64; rules++) {
            struct oribi_cookies cookies;
            struct oribi_form_pair pair;
            size_t given = 0;
            oribi_cookies_begin(&cookies, oribi_slice(guard_place(&arena, text, n), n), rooms.p + rooms.n - n, rules);
            while (oribi_cookies_next(&cookies, &pair) > 0)
                given += pair.key.n + pair.value.n;
            good_all &= given <= n && oribi_cookies_next(&cookies, &pair) == 0;
        }
    ok(good_all);
}

static size_t count_cookies(const char *p, size_t n, char *room, int *code)
{
    struct oribi_cookies cookies;
    struct oribi_form_pair pair;
    *code = oribi_cookies_begin(&cookies, oribi_slice(p, n), room, ORIBI_COOKIE_PERL);
    while (*code == 0 && (*code = oribi_cookies_next(&cookies, &pair)) > 0)
        *code = 0;
    return cookies.count;
}

static void test_limits_of_reading(void)
{
    size_t n = ORIBI_COOKIE_BYTES_MAX + 1;
    char *text = oribi_mem_alloc(1, n);
    char *room = oribi_mem_alloc(1, n);
    int code;
    memset(text, ' ', n);
    ok_eq(count_cookies(text, n - 1, room, &code), 0);
    ok_eq(code, 0);
    count_cookies(text, n, room, &code);
    ok_eq(code, ORIBI_ELIMIT);
    for (size_t i = 0; i < n; i++)
        text[i] = "=;"[i & 1];
    ok_eq(count_cookies(text, 2 * ORIBI_FORM_PAIRS_DEFAULT, room, &code), ORIBI_FORM_PAIRS_DEFAULT);
    ok_eq(code, 0);
    count_cookies(text, 2 * ORIBI_FORM_PAIRS_DEFAULT + 1, room, &code);
    ok_eq(code, ORIBI_ELIMIT);
    oribi_mem_free(text);
    oribi_mem_free(room);
}

/* The search, counting what it is given. */
static struct oribi_scan counting;
static const struct oribi_scan *counted;
static size_t bytes_looked;

static size_t count_form(const char *p, size_t n, uint32_t *marks, size_t cap, size_t *looked)
{
    size_t count = counted->form(p, n, marks, cap, looked);
    bytes_looked += *looked;
    return count;
}

static void test_the_work_of_hostile_fields_is_linear(void)
{
    static const char *const units[] = {"a=b;", ";", "=", "%", "%41", "; ", "a; ", " ", "\"", "a= ;"};
    size_t n = ORIBI_COOKIE_BYTES_MAX / 8;
    char *text = oribi_mem_alloc(1, n);
    char *room = oribi_mem_alloc(1, n);
    int code;
    counted = oribi_scan_active;
    counting = *counted;
    counting.form = count_form;
    oribi_scan_active = &counting;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        for (size_t at = 0; at < n; at++)
            text[at] = units[i][at % strlen(units[i])];
        bytes_looked = 0;
        size_t count = count_cookies(text, n, room, &code);
        ok_named(code == 0 && bytes_looked == n && count <= n / 2, "%s: each byte is searched once", units[i]);
    }
    oribi_scan_active = counted;
    oribi_mem_free(text);
    oribi_mem_free(room);
}

/* ---- writing ---- */

static void test_the_longest_cookie_and_one_byte_more(void)
{
    size_t n = ORIBI_COOKIE_BYTES_MAX;
    char *text = oribi_mem_alloc(1, n);
    const char *wrong;
    memset(text, ' ', n);
    struct oribi_slice value = oribi_slice(text, n - 3); /* the name, the place for a `&`, and the path */
    struct oribi_cookie cookie = {.name = ORIBI_SLICE("a"), .values = &value, .value_count = 1};
    cookie.path = ORIBI_SLICE("/");
    ssize_t room = oribi_cookie_room(&cookie);
    char *dst = oribi_mem_alloc(1, (size_t)room);
    ok_eq(oribi_cookie_bake(&cookie, ORIBI_BAKE_PERL, dst, &wrong), 2 + 3 * (ssize_t)(n - 3) + 8);
    value.n++;
    ok_eq(oribi_cookie_room(&cookie), ORIBI_ELIMIT);
    value.n = 1;
    cookie.domain = oribi_slice(text, n);
    ok_eq(oribi_cookie_room(&cookie), ORIBI_ELIMIT);
    oribi_mem_free(text);
    oribi_mem_free(dst);
}

static void test_several_values(void)
{
    char dst[512];
    const char *wrong;
    struct oribi_slice values[] = {ORIBI_SLICE("a&"), ORIBI_SLICE(""), ORIBI_SLICE("c")};
    struct oribi_cookie cookie = {.name = ORIBI_SLICE("n"), .values = values, .value_count = 3};
    ok(oribi_cookie_room(&cookie) < (ssize_t)sizeof(dst));
    is_slice(oribi_slice(dst, (size_t)oribi_cookie_bake(&cookie, ORIBI_BAKE_RACK, dst, &wrong)), "n=a%26&&c");
    cookie.value_count = 0;
    is_slice(oribi_slice(dst, (size_t)oribi_cookie_bake(&cookie, ORIBI_BAKE_PERL, dst, &wrong)), "n=");
}

static void test_no_byte_of_an_attribute_begins_another(void)
{
    bool right = true;
    for (int c = 0; c < 256; c++)
        for (int i = 0; i < 4; i++) {
            char text[3] = {'a', (char)c, 'b'};
            char dst[512];
            const char *wrong;
            struct oribi_cookie cookie = {.name = ORIBI_SLICE("n")};
            *(struct oribi_slice *[]){&cookie.domain, &cookie.path, &cookie.expires, &cookie.max_age}[i] =
                oribi_slice(text, 3);
            bool refused = oribi_cookie_bake(&cookie, ORIBI_BAKE_PERL, dst, &wrong) == ORIBI_EBAD;
            right &= refused == (c == ';' || c == 0x7f || (c < 0x20 && c != '\t'));
        }
    ok(right);
}

/* ---- dates ---- */

static void test_dates(void)
{
    char text[ORIBI_COOKIE_DATE_CAP];
    ok_eq(oribi_cookie_date(784111777, '-', text), 29);
    is_str(text, "Sun, 06-Nov-1994 08:49:37 GMT");
    oribi_cookie_date(0, ' ', text);
    is_str(text, "Thu, 01 Jan 1970 00:00:00 GMT");
    oribi_cookie_date(-1, ' ', text);
    is_str(text, "Wed, 31 Dec 1969 23:59:59 GMT");
    oribi_cookie_date(253402300799, ' ', text);
    is_str(text, "Fri, 31 Dec 9999 23:59:59 GMT");
    ok_eq(oribi_cookie_date(253402300800, ' ', text), ORIBI_EBAD);
    ok_eq(oribi_cookie_date(-30610224000, ' ', text), 29);
    is_str(text, "Wed, 01 Jan 1000 00:00:00 GMT");
    ok_eq(oribi_cookie_date(-30610224001, ' ', text), ORIBI_EBAD);
    ok_eq(oribi_cookie_date(INT64_MAX, ' ', text), ORIBI_EBAD);
    ok_eq(oribi_cookie_date(INT64_MIN, ' ', text), ORIBI_EBAD);
}

static void test_expires(void)
{
    static const struct {
        const char *text;
        int64_t seconds; /* 1000 is now; -1: it is a date as it stands */
    } cases[] = {
        {"now", 1000},
        {"0", 0},
        {"784111777", 784111777},
        {"+5", 1005},
        {"-5", 995},
        {"5s", 1005},
        {"+2m", 1120},
        {"+1h", 4600},
        {"+1d", 87400},
        {"+1M", 2593000},
        {"+1y", 31537000},
        {"+1x", 1001},
        {".5h", 2800},
        {"-.5m", 970},
        {"1.5h", 1001},
        {".", 1000},
        {"", -1},
        {"+", -1},
        {"later", -1},
        {"Sun, 06 Nov 1994 08:49:37 GMT", -1},
        {"21-Oct", 1021},
        {"+99999999999999999999y", 1000000000001000},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int64_t seconds = -1;
        struct oribi_slice text = oribi_slice(cases[i].text, strlen(cases[i].text));
        bool date = oribi_cookie_expires(text, 1000, &seconds);
        ok_named(date == (cases[i].seconds != -1) && seconds == cases[i].seconds, "expires '%s'", cases[i].text);
    }
}

int main(void)
{
    arena = guard_alloc(TEXT_MAX);
    rooms = guard_alloc(TEXT_MAX);
    run_case_folder("cookie", run_case);
    test_every_truncation();
    test_limits_of_reading();
    test_the_work_of_hostile_fields_is_linear();
    test_the_longest_cookie_and_one_byte_more();
    test_several_values();
    test_no_byte_of_an_attribute_begins_another();
    test_dates();
    test_expires();
    return done_testing();
}
