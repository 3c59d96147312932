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

enum { WAITS = 7, FULL = 100 }; /* the back-off of the cases: 7 ms, without a random part */

static void test_what_follows_from_a_failure(void)
{
    enum { BEGIN = ORIBI_REDIS_BEGINNING, OPEN = ORIBI_REDIS_OPENING, ASK = ORIBI_REDIS_ASKING };
    enum { NEVER = ORIBI_REDIS_RESEND_NEVER, SAFE = ORIBI_REDIS_RESEND_SAFE, ALWAYS = ORIBI_REDIS_RESEND_ALWAYS };
    enum { STOP = ORIBI_REDIS_GIVE_UP, LOST = ORIBI_REDIS_TRANSACTION_LOST };
    static const struct {
        int stage, code;
        bool sent, repeats, pinned;
        int resend, used, follows;
    } CASES[] = {
        /* an old connection */
        {BEGIN, ORIBI_ECLOSED, false, false, false, NEVER, 0, 0},
        {BEGIN, ORIBI_ECLOSED, false, false, false, NEVER, FULL, 0},
        {BEGIN, ORIBI_ETIMEOUT, false, false, false, NEVER, 0, 0},
        {BEGIN, ORIBI_EBAD, false, true, false, ALWAYS, 0, STOP},
        {BEGIN, ORIBI_ELIMIT, false, true, false, ALWAYS, 0, STOP},
        {BEGIN, ORIBI_ENOMEM, false, true, false, ALWAYS, 0, STOP},
        {BEGIN, ORIBI_ECLOSED, false, true, true, ALWAYS, 0, LOST},
        {BEGIN, ORIBI_ETIMEOUT, false, true, true, ALWAYS, 0, LOST},
        {BEGIN, ORIBI_EBAD, false, true, true, ALWAYS, 0, STOP},
        /* a new one */
        {OPEN, ORIBI_ESYS, false, false, false, NEVER, 0, WAITS},
        {OPEN, ORIBI_ESYS, true, false, false, NEVER, 0, WAITS}, /* the greeting was sent, nothing else */
        {OPEN, ORIBI_ETIMEOUT, true, false, false, NEVER, FULL - 1, WAITS},
        {OPEN, ORIBI_EBAD, true, false, false, SAFE, 0, WAITS},
        {OPEN, ORIBI_ETIMEOUT, false, true, false, ALWAYS, FULL, STOP},
        {OPEN, ORIBI_ENOMEM, false, true, false, ALWAYS, 0, STOP},
        /* nothing of the commands has left */
        {ASK, ORIBI_ECLOSED, false, false, false, NEVER, 0, WAITS},
        {ASK, ORIBI_ESYS, false, false, false, SAFE, FULL - 1, WAITS},
        {ASK, ORIBI_ECLOSED, false, false, false, ALWAYS, FULL, STOP},
        {ASK, ORIBI_ETIMEOUT, false, true, false, ALWAYS, 0, STOP},
        {ASK, ORIBI_ECLOSED, false, false, true, ALWAYS, 0, LOST},
        /* a part of them has */
        {ASK, ORIBI_ECLOSED, true, false, false, NEVER, 0, STOP},
        {ASK, ORIBI_ECLOSED, true, true, false, NEVER, 0, STOP},
        {ASK, ORIBI_ECLOSED, true, false, false, SAFE, 0, STOP},
        {ASK, ORIBI_ECLOSED, true, true, false, SAFE, 0, WAITS},
        {ASK, ORIBI_ESYS, true, false, false, ALWAYS, 0, WAITS},
        {ASK, ORIBI_ECLOSED, true, true, false, SAFE, FULL, STOP},
        {ASK, ORIBI_ETIMEOUT, true, true, false, ALWAYS, 0, STOP},
        {ASK, ORIBI_EBAD, true, true, false, ALWAYS, 0, STOP},
        {ASK, ORIBI_ELIMIT, true, true, false, ALWAYS, 0, STOP},
        {ASK, ORIBI_ENOMEM, true, true, false, ALWAYS, 0, STOP},
        {ASK, ORIBI_ECLOSED, true, true, true, ALWAYS, 0, LOST},
        {ASK, ORIBI_ETIMEOUT, true, true, true, ALWAYS, 0, STOP},
    };
    for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
        struct oribi_redis_tries tries = {
            .max = FULL, .delay_ms = 2 * WAITS, .delay_max_ms = 2 * WAITS, .used = CASES[i].used};
        tries.resend = (enum oribi_redis_resend)CASES[i].resend;
        struct oribi_redis_failed failed = {(enum oribi_redis_stage)CASES[i].stage, CASES[i].code, CASES[i].sent,
                                            CASES[i].repeats, CASES[i].pinned};
        int64_t follows = oribi_redis_tries_after(&tries, &failed, 0);
        ok_named(follows == CASES[i].follows, "failure %zu: %d", i, (int)follows);
        ok_eq(tries.used, CASES[i].used + (CASES[i].follows == WAITS));
    }
}

static void test_tries_end_and_wait_longer_each_time(void)
{
    static const int64_t WAIT_MS[] = {25, 50, 100, 150, 150, ORIBI_REDIS_GIVE_UP, ORIBI_REDIS_GIVE_UP};
    struct oribi_redis_tries tries = {.max = 5, .delay_ms = 50, .delay_max_ms = 300};
    struct oribi_redis_failed failed = {.stage = ORIBI_REDIS_OPENING, .code = ORIBI_ESYS};
    for (size_t i = 0; i < sizeof(WAIT_MS) / sizeof(WAIT_MS[0]); i++)
        ok_eq(oribi_redis_tries_after(&tries, &failed, 0), WAIT_MS[i]);
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
    test_what_follows_from_a_failure();
    test_tries_end_and_wait_longer_each_time();
    test_errors_that_say_not_now();
    test_errors_of_a_server_that_is_no_master();
    return done_testing();
}
