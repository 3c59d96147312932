/* Edit distance. */
#include "config/suggest.c"

#include "tap.h"

static void test_each_kind_of_slip_counts_one(void)
{
    ok_eq(oribi_suggest_distance("workers", "workers"), 0);
    ok_eq(oribi_suggest_distance("worker", "workers"), 1);
    ok_eq(oribi_suggest_distance("workersx", "workers"), 1);
    ok_eq(oribi_suggest_distance("workirs", "workers"), 1);
    ok_eq(oribi_suggest_distance("wrokers", "workers"), 1);
    ok_eq(oribi_suggest_distance("", "abc"), 3);
    ok_eq(oribi_suggest_distance("abc", ""), 3);
    ok_eq(oribi_suggest_distance("ca", "abc"), 3); /* a swapped pair is not edited again */
    ok_eq(oribi_suggest_distance("kitten", "sitting"), 3);
}

static void test_words_at_the_limit_are_compared_longer_ones_are_not(void)
{
    char max[ORIBI_SUGGEST_WORD_MAX + 1];
    char over[ORIBI_SUGGEST_WORD_MAX + 2];
    memset(max, 'a', sizeof(max));
    max[sizeof(max) - 1] = '\0';
    memset(over, 'a', sizeof(over));
    over[sizeof(over) - 1] = '\0';
    ok_eq(oribi_suggest_distance(max, max), 0);
    ok_eq(oribi_suggest_distance(max, "a"), ORIBI_SUGGEST_WORD_MAX - 1);
    ok(oribi_suggest_distance(max, over) == UINT32_MAX);
    ok(oribi_suggest_distance(over, max) == UINT32_MAX);
}

static void test_likely_allows_a_third_of_the_word(void)
{
    ok(oribi_suggest_likely("ab", 1) && !oribi_suggest_likely("ab", 2));
    ok(oribi_suggest_likely("abcdef", 2) && !oribi_suggest_likely("abcdef", 3));
    ok(oribi_suggest_likely("abcdefghijklmnopqrstuvwxyz", 4) && !oribi_suggest_likely("abcdefghijklmnopqrstuvwxyz", 5));
}

int main(void)
{
    test_each_kind_of_slip_counts_one();
    test_words_at_the_limit_are_compared_longer_ones_are_not();
    test_likely_allows_a_third_of_the_word();
    return done_testing();
}
