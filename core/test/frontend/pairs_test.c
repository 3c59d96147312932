/* Records of a frontend's text: what none of them may be. */
#include "frontend/pairs.c"

#include "tap.h"

#include "guard.h"

static struct guard arena;

/* How many records the text has; -1: it is no text of records. */
static int count(const char *text, size_t n)
{
    const char *at = guard_place(&arena, text, n);
    const char *end = at + n;
    struct oribi__record record;
    int records = 0;
    while (oribi__record_next(&at, end, &record)) {
        records++;
        if (record.value.p < at - n || record.value.n > n)
            return -2;
    }
    return at == end ? records : -1;
}

#define COUNT(text) count(text, sizeof(text) - 1)

static void test_one_behind_the_other(void)
{
    ok_eq(COUNT(""), 0);
    ok_eq(COUNT("key 3\nabc\n"), 1);
    ok_eq(COUNT("option a 0\n\nkey 10\n0123456789\n"), 2);
    ok_eq(COUNT("ocsp 3\n\0\n\0\n"), 1);
}

static void test_lengths_that_are_none(void)
{
    ok_eq(COUNT("key -1\n"), -1);
    ok_eq(COUNT("key -1\n\n"), -1);
    ok_eq(COUNT("key 18446744073709551615\n\n"), -1);
    ok_eq(COUNT("key 18446744073709551616\n\n"), -1);
    ok_eq(COUNT("key +3\nabc\n"), -1);
    ok_eq(COUNT("key 03\nabc\n"), -1);
    ok_eq(COUNT("key 0x3\nabc\n"), -1);
    ok_eq(COUNT("key 3 \nabc\n"), -1);
    ok_eq(COUNT("key \nabc\n"), -1);
    ok_eq(COUNT("key\nabc\n"), -1);
}

static void test_values_that_end_elsewhere(void)
{
    ok_eq(COUNT("key 4\nabc\n"), -1);
    ok_eq(COUNT("key 2\nabc\n"), -1);
    ok_eq(COUNT("key 3\nabc"), -1);
    ok_eq(COUNT("key 3"), -1);
}

static void test_listeners_by_number(void)
{
    static struct oribi__pairs pairs;
    struct oribi__record record = {.value = ORIBI_SLICE("site.pem")};
    record.name = ORIBI_SLICE("certificate 0");
    ok(oribi__pairs_add(&pairs, &record));
    ok_eq(pairs.counts[0], 1);
    record.name = ORIBI_SLICE("certificate -0");
    ok(!oribi__pairs_add(&pairs, &record));
    record.name = ORIBI_SLICE("certificate 0x1");
    ok(!oribi__pairs_add(&pairs, &record));
    record.name = ORIBI_SLICE("certificate 999");
    ok(!oribi__pairs_add(&pairs, &record));
    record.name = ORIBI_SLICE("certificate ");
    ok(!oribi__pairs_add(&pairs, &record));
}

static void test_where_a_text_ends(void)
{
    ok_eq(oribi__records_len("ocsp 3\n\0\n\0\n\0\0", 13), 11);
    ok_eq(oribi__records_len("\0\0", 2), 0);
    ok_eq(oribi__records_len("", 0), 0);
}

int main(void)
{
    arena = guard_alloc(4096);
    test_one_behind_the_other();
    test_lengths_that_are_none();
    test_values_that_end_elsewhere();
    test_listeners_by_number();
    test_where_a_text_ends();
    return done_testing();
}
