#include "src/retry.c"

#include "tap.h"

/* A command of words between spaces. */
static bool repeatable(const char *text)
{
    struct oribi_slice words[8];
    uint64_t count = 0;
    while (*text && count < 8) {
        size_t n = strcspn(text, " ");
        words[count++] = oribi_slice(text, n);
        text += n + (text[n] == ' ');
    }
    return oribi_redis_repeatable(words, count);
}

static void test_the_list_is_in_order(void)
{
    size_t wrong = 0;
    for (size_t i = 1; i < sizeof(REPEATABLE) / sizeof(REPEATABLE[0]); i++)
        wrong += strcmp(REPEATABLE[i - 1], REPEATABLE[i]) >= 0;
    ok_eq(wrong, 0);
    for (size_t i = 0; i < sizeof(REPEATABLE) / sizeof(REPEATABLE[0]); i++)
        ok_named(strlen(REPEATABLE[i]) < NAME_MAX && repeatable(REPEATABLE[i]), "%s", REPEATABLE[i]);
}

static void test_what_may_be_sent_again(void)
{
    static const char *const YES[] = {"GET a",       "get a",   "gEt a",    "MGET a b",      "SET a b",
                                      "set a b",     "PING",    "SELECT 1", "LRANGE a 0 -1", "ZUNION 1 a",
                                      "EVAL_RO x 0", "HELLO 3", "MSET a b"};
    /* LTRIM a 1 -1 drops one more each time. */
    static const char *const NO[] = {"INCR a",
                                     "DEL a",
                                     "SET a b NX",
                                     "SET a b EX 1",
                                     "SETEX a 1 b",
                                     "LPUSH a b",
                                     "LTRIM a 1 -1",
                                     "EXPIRE a 1",
                                     "EVAL x 0",
                                     "MULTI",
                                     "EXEC",
                                     "PUBLISH a b",
                                     "BLPOP a 0",
                                     "SPOP a",
                                     "XADD s * a b",
                                     "GETDEL a",
                                     "GETSET a b",
                                     "APPEND a b",
                                     "RENAME a b",
                                     "FLUSHALL",
                                     "GETX",
                                     "GE",
                                     "",
                                     "NOSUCHCOMMANDOFANYVERSIONATALL"};
    for (size_t i = 0; i < sizeof(YES) / sizeof(YES[0]); i++)
        ok_named(repeatable(YES[i]), "%s", YES[i]);
    for (size_t i = 0; i < sizeof(NO) / sizeof(NO[0]); i++)
        ok_named(!repeatable(NO[i]), "not: %s", NO[i]);
}

static void test_waits_grow_to_their_maximum(void)
{
    static const struct {
        uint32_t attempt;
        int64_t base_ms, max_ms, all;
    } CASES[] = {
        {1, 50, 1000, 50},
        {2, 50, 1000, 100},
        {5, 50, 1000, 800},
        {6, 50, 1000, 1000},
        {60, 50, 1000, 1000},
        {UINT32_MAX, 1, 1000, 1000},
        {UINT32_MAX, 0, 1000, 0},
        {3, 5000, 1000, 1000},
        {1, -5, 10, 0},
        {3, 5, -1, 0},
        {100, 3, INT64_MAX, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        int64_t all = CASES[i].all;
        int64_t least = oribi_redis_backoff_ms(CASES[i].attempt, CASES[i].base_ms, CASES[i].max_ms, 0);
        ok_eq(least, all / 2);
        if (all < INT32_MAX) {
            int64_t most = oribi_redis_backoff_ms(CASES[i].attempt, CASES[i].base_ms, CASES[i].max_ms, UINT32_MAX);
            ok(most >= least && most <= all && most >= all - 1);
        }
    }
}

static void test_errors_that_say_not_now(void)
{
    ok(oribi_redis_later(ORIBI_SLICE("LOADING Redis is loading the dataset in memory")));
    ok(oribi_redis_later(ORIBI_SLICE("BUSY Redis is busy running a script")));
    ok(oribi_redis_later(ORIBI_SLICE("TRYAGAIN")));
    ok(!oribi_redis_later(ORIBI_SLICE("BUSYGROUP Consumer Group name already exists")));
    ok(!oribi_redis_later(ORIBI_SLICE("LOADIN")));
    ok(!oribi_redis_later(ORIBI_SLICE("ERR LOADING")));
    ok(!oribi_redis_later(ORIBI_SLICE("READONLY You can't write against a read only replica.")));
    ok(!oribi_redis_later(ORIBI_SLICE("")));
}

static void test_errors_of_a_server_that_is_no_master(void)
{
    ok(oribi_redis_not_master(ORIBI_SLICE("READONLY You can't write against a read only replica.")));
    ok(oribi_redis_not_master(ORIBI_SLICE("LOADING Redis is loading the dataset in memory")));
    ok(oribi_redis_not_master(
        ORIBI_SLICE("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is 'no'.")));
    ok(oribi_redis_not_master(ORIBI_SLICE("NOREPLICAS Not enough good replicas to write.")));
    ok(oribi_redis_not_master(ORIBI_SLICE("UNBLOCKED force unblock from blocking operation")));
    ok(!oribi_redis_not_master(ORIBI_SLICE("READONLYX")));
    ok(!oribi_redis_not_master(ORIBI_SLICE("READONL")));
    ok(!oribi_redis_not_master(ORIBI_SLICE("ERR READONLY")));
    ok(!oribi_redis_not_master(ORIBI_SLICE("BUSY Redis is busy running a script")));
    ok(!oribi_redis_not_master(ORIBI_SLICE("")));
}

int main(void)
{
    test_the_list_is_in_order();
    test_what_may_be_sent_again();
    test_waits_grow_to_their_maximum();
    test_errors_that_say_not_now();
    test_errors_of_a_server_that_is_no_master();
    return done_testing();
}
