/* Every level gives what the scalar one gives, for every input length and offset, and reads nothing behind the
 * input. */
#include "http/scan.c"

#include "guard.h"
#include "tap.h"

#include <stdlib.h>

enum { INPUT_MAX = 300, ROUNDS = 20000, MARKS = 1024 };

static uint64_t seed = 0x9e3779b97f4a7c15U;

static uint32_t next_random(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32);
}

/* Bytes as they come in heads, with a rare surprise. */
static void fill(char *p, size_t n, uint32_t kind)
{
    static const char usual[] = "abcXYZ019-_~/?&=:; ,.%()+";
    static const char raw[] = "ab/?{|}\\^`\x80\xa9\xc3\xff"; /* what a target may hold unless it must be strict */
    for (size_t i = 0; i < n; i++) {
        uint32_t r = next_random();
        p[i] = kind == 0 ? (char)(r >> 8) : usual[r % (sizeof(usual) - 1)];
        if (kind == 5)
            p[i] = r >> 16 < 400 ? (char)(r >> 8) : raw[r % (sizeof(raw) - 1)];
        if (kind == 1 && r >> 16 < 400)
            p[i] = (char)(r >> 8);
        if (kind == 2 && i + 1 < n && (r >> 16) % 16 == 0) {
            p[i++] = '\r';
            p[i] = '\n';
        }
        if (kind == 3)
            p[i] = "a:\r\n"[r >> 20 & 3];
        if (kind == 4)
            p[i] = 'a';
    }
}

/* How many marks mean something: up to the first that is no colon or no CR where one belongs. The name of the first
 * line may end with another byte than a colon, but no control. */
static size_t meaningful(const char *p, size_t n, const uint32_t *marks, size_t count)
{
    size_t start = 0;
    for (size_t i = 0; i < count; i += 2) {
        bool text = oribi__scan_class[(uint8_t)p[marks[i]]] & SCAN_TEXT;
        bool ends_name = p[marks[i]] == ':' || (i == 0 && text);
        if (!ends_name || (i > 0 && marks[i] == start) || i + 1 == count)
            return i + 1;
        start = marks[i + 1] + 2;
        if (start > n || memcmp(p + marks[i + 1], "\r\n", 2) != 0)
            return i + 2;
    }
    return count;
}

/* Do both give the same marks, from as many calls as either wants? */
static bool agrees_on_forms(const struct oribi_scan *got, const struct oribi_scan *want, const char *p, size_t n)
{
    uint32_t got_marks[MARKS];
    uint32_t want_marks[MARKS];
    size_t looked;
    size_t cap = 64 + next_random() % 100;
    size_t got_count = 0;
    for (size_t at = 0; at < n; at += looked) {
        size_t count = got->form(p + at, n - at, got_marks + got_count, cap, &looked);
        if (count > cap || looked == 0 || looked > n - at)
            return false;
        for (size_t end = got_count + count; got_count < end; got_count++)
            got_marks[got_count] += (uint32_t)at;
    }
    size_t want_count = want->form(p, n, want_marks, MARKS, &looked);
    return looked == n && got_count == want_count &&
           memcmp(got_marks, want_marks, got_count * sizeof(got_marks[0])) == 0;
}

static bool agrees(const struct oribi_scan *got, const struct oribi_scan *want, const char *p, size_t before, size_t n)
{
    size_t got_query;
    size_t want_query;
    uint32_t got_marks[MARKS];
    uint32_t want_marks[MARKS];
    if (got->token(p, n) != want->token(p, n) || got->host(p, n) != want->host(p, n) ||
        got->text(p, n) != want->text(p, n))
        return false;
    if (got->target(p, n, &got_query) != want->target(p, n, &want_query) || got_query != want_query)
        return false;
    if (got->strict_target(p, n, &got_query) != want->strict_target(p, n, &want_query) || got_query != want_query)
        return false;
    if (!agrees_on_forms(got, want, p, n))
        return false;
    size_t cap = 64 + next_random() % 100;
    if (got->lines(p, before, n, got_marks, cap) > cap)
        return false;
    size_t got_count = meaningful(p, n, got_marks, got->lines(p, before, n, got_marks, MARKS));
    size_t want_count = meaningful(p, n, want_marks, want->lines(p, 0, n, want_marks, MARKS));
    return got_count == want_count && memcmp(got_marks, want_marks, got_count * sizeof(got_marks[0])) == 0;
}

static void test_level_agrees_with_scalar(const struct oribi_scan *scan)
{
    struct guard arena = guard_alloc(INPUT_MAX);
    char text[INPUT_MAX];
    bool good = true;
    for (uint32_t i = 0; i < ROUNDS && good; i++) {
        size_t n = next_random() % (INPUT_MAX + 1);
        fill(text, n, i % 6);
        size_t before = n ? next_random() % n : 0; /* the front of the input plays what was read before */
        const char *p = guard_place(&arena, text, n);
        good = agrees(scan, &scalar, p, 0, n) && agrees(scan, &scalar, p + before, before, n - before);
        if (!good)
            tap_print_bytes_("input", text, n);
    }
    ok_named(good, "%s agrees with scalar on random input", scan->name);
    guard_free(&arena);
}

/* Without `before`, not a byte in front may be read. */
static void test_nothing_is_read_in_front(const struct oribi_scan *scan)
{
    char text[200];
    bool good = true;
    fill(text, sizeof(text), 2);
    for (size_t n = 0; n <= sizeof(text); n++) {
        struct guard in = guard_copy_front(text, n);
        good &= agrees(scan, &scalar, in.p, 0, n);
        guard_free(&in);
    }
    ok_named(good, "%s reads nothing in front of the input", scan->name);
}

static void test_every_byte_has_one_class(const struct oribi_scan *scan)
{
    struct guard arena = guard_alloc(200);
    bool good = true;
    for (int c = 0; c < 256 && good; c++)
        for (size_t at = 0; at < 130 && good; at++) {
            char text[131];
            memset(text, 'a', sizeof(text));
            text[at] = (char)c;
            good = agrees(scan, &scalar, guard_place(&arena, text, sizeof(text)), 0, sizeof(text));
        }
    ok_named(good, "%s agrees with scalar on every byte at every place", scan->name);
    guard_free(&arena);
}

static void test_classes_are_those_of_the_grammar(void)
{
    static const char tchar[] = "!#$%&'*+-.^_`|~";
    static const char target[] = "-._~!$&'()*+,;=%:@/?[]";
    static const char host[] = "-._~!$&'()*+,;=";
    uint32_t marks[ORIBI_SCAN_BLOCK];
    bool good = true;
    for (int c = 0; c < 256; c++) {
        char b = (char)c;
        bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        size_t query;
        good &= (scalar.token(&b, 1) == 1) == (alnum || (c && strchr(tchar, c)));
        good &= (scalar.strict_target(&b, 1, &query) == 1) == (alnum || (c && strchr(target, c)));
        good &= (scalar.target(&b, 1, &query) == 1) == (c > 0x20 && c != 0x7f && !strchr("\"#<>", c));
        good &= (scalar.host(&b, 1) == 1) == (alnum || (c && strchr(host, c)));
        good &= (scalar.form(&b, 1, marks, ORIBI_SCAN_BLOCK, &query) == 1) == (c && strchr("%&+;=", c));
        good &= (scalar.text(&b, 1) == 1) == (c == '\t' || (c >= 0x20 && c != 0x7f));
    }
    ok(good);
}

static void test_marks_of_a_head(const struct oribi_scan *scan)
{
    static const char text[] = "Host: a\r\nA:\r\n"
                               "Long-Name-That-Crosses-The-First-Block-Of-Sixty-Four-Bytes: 1\r\n\r\nGET :";
    uint32_t marks[128];
    size_t count = scan->lines(text, 0, sizeof(text) - 1, marks, 128);
    ok(count >= 7);
    ok_eq(marks[0], 4);
    ok_eq(marks[1], 7);
    ok_eq(marks[2], 10);
    ok_eq(marks[3], 11);
    ok_eq(text[marks[4]], ':');
    ok_eq(text[marks[5]], '\r');
    ok_eq(marks[6], marks[5] + 2);
}

static void test_marks_of_a_request_line(const struct oribi_scan *scan)
{
    static const char text[] = "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n";
    uint32_t marks[128];
    ok(scan->lines(text, 0, sizeof(text) - 1, marks, 128) >= 5);
    ok_eq(marks[0], 7);
    ok_eq(marks[1], 18);
    ok_eq(marks[2], 24);
    ok_eq(marks[3], 27);
    ok_eq(marks[4], 29);
}

static void test_an_unfinished_name_has_no_mark(const struct oribi_scan *scan)
{
    uint32_t marks[128];
    ok_eq(scan->lines("Accept", 0, 6, marks, 128), 0);
    ok_eq(scan->lines("", 0, 0, marks, 128), 0);
    ok_eq(scan->lines("\r\n", 0, 2, marks, 128), 1);
}

static void test_a_level_can_be_forced(void)
{
    ok_eq(oribi_scan_level_set(ORIBI_SCAN_SCALAR), 0);
    ok(oribi_scan_active == &scalar);
    ok_eq(oribi_scan_level_set(ORIBI_SCAN_LEVELS), ORIBI_EINVAL);
    ok(oribi_scan_active == &scalar);
}

static void test_marks_of_a_form(const struct oribi_scan *scan)
{
    uint32_t marks[128];
    size_t looked;
    ok_eq(scan->form("a=b&c=%41+;d", 12, marks, 128, &looked), 6);
    ok_eq(looked, 12);
    ok(marks[0] == 1 && marks[1] == 3 && marks[2] == 5 && marks[3] == 6 && marks[4] == 9 && marks[5] == 10);
    ok_eq(scan->form("", 0, marks, 128, &looked), 0);
    ok_eq(looked, 0);
}

int main(void)
{
    test_classes_are_those_of_the_grammar();
    for (int level = 0; level < ORIBI_SCAN_LEVELS; level++) {
        const struct oribi_scan *scan = oribi_scan_level((enum oribi_scan_level)level);
        if (!scan) {
            tap_skip(1, "this CPU lacks a level");
            continue;
        }
        test_level_agrees_with_scalar(scan);
        test_nothing_is_read_in_front(scan);
        test_every_byte_has_one_class(scan);
        test_marks_of_a_head(scan);
        test_marks_of_a_request_line(scan);
        test_an_unfinished_name_has_no_mark(scan);
        test_marks_of_a_form(scan);
    }
    test_a_level_can_be_forced();
    return done_testing();
}
