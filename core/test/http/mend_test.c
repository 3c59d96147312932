/* Values against guard pages; what becomes of whole heads is in spec/response/mended.case. */
#include "http/mend.c"

#include "guard.h"
#include "tap.h"

#define FOLDED  ORIBI_MENDED_FOLDED
#define TRIMMED ORIBI_MENDED_TRIMMED

/* The room is as long as the value and ends at a guard page too; nothing is written to the application's bytes. */
static int mend(const char *p, size_t n, struct guard *room, struct oribi_header *header)
{
    struct guard in = guard_copy(p, n);
    *room = guard_alloc(n);
    *header = (struct oribi_header){"n", in.p, 1, (uint32_t)n};
    int mended = oribi_mend_value(header, room->p);
    ok(memcmp(in.p, p, n) == 0);
    if (mended >= 0 && header->value != room->p) { /* outlives its guard for the caller */
        memcpy(room->p, header->value, header->value_len);
        header->value = room->p;
    }
    guard_free(&in);
    return mended;
}

static void becomes(const char *value, const char *want, int kinds)
{
    struct guard room;
    struct oribi_header header;
    ok_eq(mend(value, strlen(value), &room, &header), kinds);
    is_bytes(header.value, header.value_len, want, strlen(want));
    guard_free(&room);
}

static void refused(const char *value, size_t n)
{
    struct guard room;
    struct oribi_header header;
    ok_eq(mend(value, n, &room, &header), -1);
    guard_free(&room);
}

static void test_what_is_right_stays(void)
{
    becomes("a", "a", 0);
    becomes("", "", 0);
    becomes("  a\tb \xff", "  a\tb \xff", 0);
}

static void test_no_value(void)
{
    struct oribi_header header = {"n", NULL, 1, 0};
    ok_eq(oribi_mend_value(&header, NULL), ORIBI_MENDED_UNDEFINED);
}

static void test_ends(void)
{
    becomes("a ", "a", TRIMMED);
    becomes("a\r\n\t \n", "a", TRIMMED);
    becomes(" \r\n", "", TRIMMED);
    becomes("a\r\n ", "a", TRIMMED); /* a fold with nothing behind it */
}

static void test_folds(void)
{
    becomes("a\r\n b", "a b", FOLDED);
    becomes("a\n\tb", "a b", FOLDED);
    becomes("a \t\r\n \t b\n  c", "a b c", FOLDED);
    becomes("\n a", "a", FOLDED);
    becomes("a\r\n b\r\n", "a b", FOLDED | TRIMMED);
    becomes("a\r\n \r\n \r\n b", "a b", FOLDED);
}

static void test_what_is_refused(void)
{
    refused("a\nb", 3);
    refused("a\r\nb", 4);
    refused("a\rb", 3);
    refused("a\r b", 4);
    refused("a\r\r\n b", 6);
    refused("a\r\n\r\n b", 7);
    refused("a\0", 2);
    refused("a\r\n b\0", 6);
    refused("a\r\n \x7f", 5);
    refused("a\x0b", 2);
}

/* Whatever stands in a value: what may be sent has no control character but TAB, and is never longer. */
static void test_no_value_splits_an_answer(void)
{
    static const char letters[] = {'a', ' ', '\t', '\r', '\n', '\0'};
    bool good = true;
    for (int number = 0; number < 6 * 6 * 6 * 6 * 6 * 6; number++) {
        char value[6];
        char room[6];
        for (int i = 0, rest = number; i < 6; i++, rest /= 6)
            value[i] = letters[rest % 6];
        struct oribi_header header = {"n", value, 1, sizeof(value)};
        if (oribi_mend_value(&header, room) < 0)
            continue;
        good &= header.value_len <= sizeof(value);
        for (uint32_t i = 0; i < header.value_len; i++)
            good &= header.value[i] != '\r' && header.value[i] != '\n' && header.value[i] != '\0';
        good &= header.value_len == 0 || header.value[header.value_len - 1] == 'a';
    }
    ok(good);
}

int main(void)
{
    test_what_is_right_stays();
    test_no_value();
    test_ends();
    test_folds();
    test_what_is_refused();
    test_no_value_splits_an_answer();
    return done_testing();
}
