/* Results of forms are in spec/form; here they are compared with those of a reader that is as simple as can be, on
 * every level of the search, with limits and with the work that hostile forms cause. */
#include "form/urlencoded.c"

#include "guard.h"
#include "form/field_lines.h"
#include "oribi/base/mem.h"

enum { INPUT_MAX = 4096, HOSTILE_BYTES = 200 * 1000 };

static struct guard arena; /* inputs end at its end */
static struct guard rooms; /* decoded texts end at its end */
static struct oribi_form_limits limits;

static const unsigned rule_sets[] = {0, ORIBI_FORM_PERL, ORIBI_FORM_RACK,
                                     ORIBI_FORM_PLUS_STAYS | ORIBI_FORM_STRICT | ORIBI_FORM_SEMICOLON};

/* ---- a reader that looks at each byte, for comparison ---- */

static int digit(char c)
{
    const char *digits = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* Decodes [p, p+n) to dst; -1: a bad escape. */
static long decode_slowly(const char *p, size_t n, unsigned rules, char *dst)
{
    long len = 0;
    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if (c == '+' && !(rules & ORIBI_FORM_PLUS_STAYS))
            c = ' ';
        if (c == '%') {
            if (n - i > 2 && digit(p[i + 1]) >= 0 && digit(p[i + 2]) >= 0) {
                c = (char)(digit(p[i + 1]) * 16 + digit(p[i + 2]));
                i += 2;
            } else if (rules & ORIBI_FORM_STRICT) {
                return -1;
            }
        }
        dst[len++] = c;
    }
    return len;
}

/* A pair as lengths and bytes, so that no two differ and look alike. */
static size_t note(char *dst, const char *key, size_t key_n, const char *value, size_t value_n, bool bare)
{
    char *p = dst;
    p += snprintf(p, 64, "%zu,%zu,%d:", key_n, value_n, bare);
    memcpy(p, key, key_n);
    memcpy(p + key_n, value, value_n);
    return (size_t)(p - dst) + key_n + value_n;
}

static size_t read_slowly(const char *p, size_t n, unsigned rules, char *dst)
{
    static char key[INPUT_MAX];
    static char value[INPUT_MAX];
    size_t len = 0;
    size_t start = 0;
    while (n && start <= n) {
        size_t most = rules & ORIBI_FORM_BLANK ? 1 : rules & ORIBI_FORM_BLANKS && start ? n : 0;
        for (; most && start < n && p[start] == ' '; most--)
            start++;
        size_t end = start;
        while (end < n && p[end] != '&' && !(p[end] == ';' && rules & ORIBI_FORM_SEMICOLON))
            end++;
        const char *equals = memchr(p + start, '=', end - start);
        size_t key_n = equals ? (size_t)(equals - p) - start : end - start;
        long key_len = decode_slowly(p + start, key_n, rules, key);
        long value_len = equals ? decode_slowly(equals + 1, (size_t)(p + end - equals) - 1, rules, value) : 0;
        if (key_len < 0 || value_len < 0)
            return len + (size_t)snprintf(dst + len, 8, "bad");
        if (!(rules & ORIBI_FORM_SKIP_EMPTY) || start != end)
            len += note(dst + len, key, (size_t)key_len, value, (size_t)value_len, !equals);
        start = end + 1;
    }
    return len;
}

/* ---- the parser's ---- */

static size_t read_pairs(const char *p, size_t n, char *room, unsigned rules, char *dst)
{
    struct oribi_form form;
    struct oribi_form_pair pair;
    size_t len = 0;
    int code = oribi_form_begin(&form, oribi_slice(p, n), room, rules, &limits);
    while (code == 0 && (code = oribi_form_next(&form, &pair)) > 0) {
        len += note(dst + len, pair.key.p, pair.key.n, pair.value.p, pair.value.n, pair.bare);
        code = 0;
    }
    if (code < 0 && (oribi_form_next(&form, &pair) != code || oribi_form_status(&form) != 400))
        return len + (size_t)snprintf(dst + len, 16, "unsteady");
    return code < 0 ? len + (size_t)snprintf(dst + len, 8, "bad") : len;
}

/* Input and room at guard pages, then in place. */
static bool agrees(const char *p, size_t n, unsigned rules)
{
    static char want[INPUT_MAX * 16];
    static char got[INPUT_MAX * 16];
    size_t want_n = read_slowly(p, n, rules, want);
    size_t got_n = read_pairs(guard_place(&arena, p, n), n, rooms.p + rooms.n - n, rules, got);
    if (got_n != want_n || memcmp(got, want, want_n) != 0)
        return false;
    char *own = guard_place(&rooms, p, n);
    got_n = read_pairs(own, n, own, rules, got);
    return got_n == want_n && memcmp(got, want, want_n) == 0;
}

static uint32_t next_random(void)
{
    static uint64_t seed = 0x9e3779b97f4a7c15U;
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32);
}

static void test_random_forms_against_the_simple_reader(void)
{
    static const char usual[] = "&=+%; &=abcdefgh0123456789ABCDEF%4%E3%81\xff";
    static const char rare[] = "abcdefghijklmnop=&+%";
    char text[INPUT_MAX];
    for (int level = 0; level < ORIBI_SCAN_LEVELS; level++) {
        if (oribi_scan_level_set((enum oribi_scan_level)level) < 0)
            continue;
        bool same = true;
        for (int round = 0; round < 8000 && same; round++) {
            size_t n = next_random() % (round % 16 ? 200 : 2000);
            for (size_t i = 0; i < n; i++)
                text[i] = round & 1 ? usual[next_random() % (sizeof(usual) - 1)]
                                    : rare[next_random() % (next_random() % 8 ? 16 : sizeof(rare) - 1)];
            same = agrees(text, n, rule_sets[round / 2 % 4]);
            if (!same)
                tap_print_bytes_("input", text, n);
        }
        ok_named(same, "%s reads as the simple reader does", oribi_scan_active->name);
    }
    oribi_scan_level_set(ORIBI_SCAN_SCALAR);
}

static void test_every_truncation(void)
{
    static const char text[] = "name=J%c3%bcrgen+M&; city=%zz&&x=%e3%81%82%e3%81%84;=&last=1+2%2B3=5%";
    bool same = true;
    for (size_t n = 0; n < sizeof(text); n++)
        for (size_t i = 0; i < 4; i++)
            same &= agrees(text, n, rule_sets[i]);
    ok(same);
}

/* ---- spec ---- */

static void set_limit(const char *name, size_t *value)
{
    struct oribi_slice raw = case_raw(&file, "limit");
    size_t n = strlen(name);
    if (raw.n > n && memcmp(raw.p, name, n) == 0)
        *value = strtoul(raw.p + n, NULL, 10);
}

static unsigned rules_of_case(void)
{
    return case_is(&file, "as", "perl") ? ORIBI_FORM_PERL : case_is(&file, "as", "rack") ? ORIBI_FORM_RACK : 0;
}

static void run_case(void)
{
    if (!case_has(&file, "as"))
        return; /* of another module */
    static char input[INPUT_MAX];
    struct oribi_form_limits small = limits;
    struct oribi_form form;
    struct oribi_form_pair pair;
    struct oribi_slice key;
    struct oribi_slice value;
    size_t line = 0;
    size_t n = case_bytes(&file, "input", input, sizeof(input));
    set_limit("pairs_max", &small.pairs_max);
    set_limit("key_bytes_max", &small.key_bytes_max);
    set_limit("bytes_max", &small.bytes_max);
    int code = oribi_form_begin(&form, oribi_slice(guard_place(&arena, input, n), n), rooms.p + rooms.n - n,
                                rules_of_case(), &small);
    while (code == 0 && (code = oribi_form_next(&form, &pair)) > 0) {
        code = 0;
        if (case_has(&file, "status"))
            continue;
        if (!next_field(&line, &key, &value) || !oribi_slice_equal(key, pair.key) ||
            !oribi_slice_equal(value, pair.value) || pair.bare != is_named_bare(form.count)) {
            complain("field");
            tap_print_bytes_("key  ", pair.key.p, pair.key.n);
            tap_print_bytes_("value", pair.value.p, pair.value.n);
        }
    }
    if (!case_has(&file, "status") && next_field(&line, &key, &value))
        complain("field");
    char text[ORIBI_ERROR_TEXT_CAP];
    oribi_form_explain(&form, text);
    check_number("status", code < 0 ? oribi_form_status(&form) : 200);
    if (case_has(&file, "status") != (code < 0) || (code < 0) != (text[0] != 0))
        complain("code");
}

/* ---- limits and work ---- */

static void test_the_default_limits_at_their_most(void)
{
    struct oribi_form form;
    struct oribi_form_pair pair;
    size_t n = ORIBI_FORM_KEY_BYTES_DEFAULT + 1;
    char *text = oribi_mem_alloc(1, n);
    memset(text, '&', n);
    ok_eq(oribi_form_begin(&form, oribi_slice(text, ORIBI_FORM_PAIRS_DEFAULT - 1), text, 0, &limits), 0);
    while (oribi_form_next(&form, &pair) > 0)
        continue;
    ok_eq(form.count, ORIBI_FORM_PAIRS_DEFAULT);
    ok_eq(oribi_form_next(&form, &pair), 0);
    ok_eq(oribi_form_begin(&form, oribi_slice(text, ORIBI_FORM_PAIRS_DEFAULT), text, 0, &limits), 0);
    while (oribi_form_next(&form, &pair) > 0)
        continue;
    ok_eq(form.count, ORIBI_FORM_PAIRS_DEFAULT);
    ok_eq(oribi_form_next(&form, &pair), ORIBI_ELIMIT);
    ok_eq(oribi_form_status(&form), 413);

    memset(text, 'k', n);
    oribi_form_begin(&form, oribi_slice(text, n - 1), text, 0, &limits);
    ok_eq(oribi_form_next(&form, &pair), 1);
    oribi_form_begin(&form, oribi_slice(text, n), text, 0, &limits);
    ok_eq(oribi_form_next(&form, &pair), ORIBI_ELIMIT);
    oribi_mem_free(text);

    /* of these not a byte is looked at */
    ok_eq(oribi_form_begin(&form, oribi_slice("", ORIBI_FORM_BYTES_DEFAULT), NULL, 0, &limits), 0);
    ok_eq(oribi_form_begin(&form, oribi_slice("", ORIBI_FORM_BYTES_DEFAULT + 1), NULL, 0, &limits), ORIBI_ELIMIT);
    struct oribi_form_limits high = limits;
    high.bytes_max = SIZE_MAX;
    ok_eq(oribi_form_begin(&form, oribi_slice("", ORIBI_FORM_BYTES_CAP), NULL, 0, &high), 0);
    ok_eq(oribi_form_begin(&form, oribi_slice("", (size_t)ORIBI_FORM_BYTES_CAP + 1), NULL, 0, &high), ORIBI_ELIMIT);
}

/* The search, counting what it is given and what it finds. */
static struct oribi_scan counting;
static const struct oribi_scan *counted;
static size_t bytes_looked;
static size_t marks_found;

static size_t count_form(const char *p, size_t n, uint32_t *marks, size_t cap, size_t *looked)
{
    size_t count = counted->form(p, n, marks, cap, looked);
    bytes_looked += *looked;
    marks_found += count;
    return count;
}

/* Every byte is searched once and every mark met once; what is copied is in the room, which is as long as the form. */
static void check_work(const char *what, const char *unit)
{
    struct oribi_form form;
    struct oribi_form_pair pair;
    struct oribi_form_limits high = {SIZE_MAX, SIZE_MAX, SIZE_MAX};
    size_t unit_n = strlen(unit);
    char *text = oribi_mem_alloc(1, HOSTILE_BYTES);
    char *room = oribi_mem_alloc(1, HOSTILE_BYTES);
    size_t marks = 0;
    size_t given = 0;
    for (size_t i = 0; i < HOSTILE_BYTES; i++) {
        text[i] = unit[i % unit_n];
        marks += text[i] && strchr("%&+;=", text[i]);
    }
    bytes_looked = marks_found = 0;
    oribi_form_begin(&form, oribi_slice(text, HOSTILE_BYTES), room, ORIBI_FORM_PERL, &high);
    while (oribi_form_next(&form, &pair) > 0)
        given += pair.key.n + pair.value.n;
    ok_named(bytes_looked == HOSTILE_BYTES && marks_found == marks, "%s: each byte is searched once", what);
    ok_named(form.count <= marks + 1 && given <= HOSTILE_BYTES, "%s: each byte is given once", what);
    oribi_mem_free(text);
    oribi_mem_free(room);
}

static void test_the_work_of_hostile_forms_is_linear(void)
{
    counted = oribi_scan_active;
    counting = *counted;
    counting.form = count_form;
    oribi_scan_active = &counting;
    check_work("keys", "k&");
    check_work("separators", "&");
    check_work("escapes", "%41");
    check_work("percent signs", "%");
    check_work("equals signs", "=");
    check_work("blanks", "&        ");
    check_work("brackets", "a[a]");
    check_work("one key", "k");
    oribi_scan_active = counted;
}

int main(void)
{
    arena = guard_alloc(INPUT_MAX);
    rooms = guard_alloc(INPUT_MAX);
    oribi_form_limits_init(&limits);
    run_case_folder("form", run_case);
    test_random_forms_against_the_simple_reader();
    test_every_truncation();
    test_the_default_limits_at_their_most();
    test_the_work_of_hostile_forms_is_linear();
    return done_testing();
}
