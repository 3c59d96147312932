/* Commands that may be sent again. */
#include "oribi/redis/retry.h"

#include <stddef.h>
#include <string.h>

/* In the order of their bytes. */
static const char *const REPEATABLE[] = {
    "AUTH",
    "BITCOUNT",
    "BITFIELD_RO",
    "BITPOS",
    "DBSIZE",
    "DUMP",
    "ECHO",
    "EVALSHA_RO",
    "EVAL_RO",
    "EXISTS",
    "EXPIRETIME",
    "FCALL_RO",
    "GEODIST",
    "GEOHASH",
    "GEOPOS",
    "GEORADIUSBYMEMBER_RO",
    "GEORADIUS_RO",
    "GEOSEARCH",
    "GET",
    "GETBIT",
    "GETRANGE",
    "HELLO",
    "HEXISTS",
    "HGET",
    "HGETALL",
    "HKEYS",
    "HLEN",
    "HMGET",
    "HRANDFIELD",
    "HSCAN",
    "HSTRLEN",
    "HVALS",
    "INFO",
    "KEYS",
    "LCS",
    "LINDEX",
    "LLEN",
    "LOLWUT",
    "LPOS",
    "LRANGE",
    "MGET",
    "MSET",
    "PEXPIRETIME",
    "PFCOUNT",
    "PING",
    "PTTL",
    "RANDOMKEY",
    "ROLE",
    "SCAN",
    "SCARD",
    "SDIFF",
    "SELECT",
    "SINTER",
    "SINTERCARD",
    "SISMEMBER",
    "SMEMBERS",
    "SMISMEMBER",
    "SORT_RO",
    "SRANDMEMBER",
    "SSCAN",
    "STRLEN",
    "SUBSTR",
    "SUNION",
    "TIME",
    "TOUCH",
    "TTL",
    "TYPE",
    "XINFO",
    "XLEN",
    "XPENDING",
    "XRANGE",
    "XREAD",
    "XREVRANGE",
    "ZCARD",
    "ZCOUNT",
    "ZDIFF",
    "ZINTER",
    "ZINTERCARD",
    "ZLEXCOUNT",
    "ZMSCORE",
    "ZRANDMEMBER",
    "ZRANGE",
    "ZRANGEBYLEX",
    "ZRANGEBYSCORE",
    "ZRANK",
    "ZREVRANGE",
    "ZREVRANGEBYLEX",
    "ZREVRANGEBYSCORE",
    "ZREVRANK",
    "ZSCAN",
    "ZSCORE",
    "ZUNION",
};

enum { NAME_MAX = 24 };

static bool is_listed(struct oribi_slice name)
{
    char upper[NAME_MAX];
    if (name.n == 0 || name.n >= sizeof(upper))
        return false;
    for (size_t i = 0; i < name.n; i++)
        upper[i] = (char)(name.p[i] >= 'a' && name.p[i] <= 'z' ? name.p[i] - 32 : name.p[i]);
    upper[name.n] = '\0';
    size_t low = 0;
    size_t high = sizeof(REPEATABLE) / sizeof(REPEATABLE[0]);
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = strcmp(upper, REPEATABLE[middle]);
        if (order == 0)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

bool oribi_redis_repeatable(const struct oribi_slice *arguments, uint64_t count)
{
    if (count == 0)
        return false;
    /* With options it may answer otherwise the second time (NX, GET), or count a time from then (EX). */
    if (oribi_slice_equal_fold(arguments[0], ORIBI_SLICE("set")))
        return count == 3;
    return is_listed(arguments[0]);
}

int64_t oribi_redis_backoff_ms(uint32_t attempt, int64_t base_ms, int64_t max_ms, uint32_t random)
{
    int64_t all = base_ms < 0 ? 0 : base_ms;
    for (uint32_t i = 1; i < attempt && all > 0 && all < max_ms; i++)
        all = all > max_ms / 2 ? max_ms : all * 2;
    if (all > max_ms)
        all = max_ms < 0 ? 0 : max_ms;
    return all / 2 + (int64_t)(((uint64_t)(all - all / 2) * random) >> 32);
}

const char oribi_redis_transaction_lost[] = "the connection of the transaction is lost";

static bool is_lost(int code)
{
    return code != ORIBI_ETIMEOUT && code != ORIBI_EBAD && code != ORIBI_ELIMIT && code != ORIBI_ENOMEM;
}

int64_t oribi_redis_tries_after(struct oribi_redis_tries *tries, const struct oribi_redis_failed *failed,
                                uint32_t random)
{
    bool asking = failed->stage == ORIBI_REDIS_ASKING;
    if (failed->code == ORIBI_ENOMEM || (asking && !is_lost(failed->code)))
        return ORIBI_REDIS_GIVE_UP;
    if (failed->stage == ORIBI_REDIS_BEGINNING && (failed->code == ORIBI_EBAD || failed->code == ORIBI_ELIMIT))
        return ORIBI_REDIS_GIVE_UP;
    if (failed->pinned)
        return ORIBI_REDIS_TRANSACTION_LOST;
    if (failed->stage == ORIBI_REDIS_BEGINNING)
        return 0;
    if (asking && failed->sent && tries->resend != ORIBI_REDIS_RESEND_ALWAYS &&
        !(tries->resend == ORIBI_REDIS_RESEND_SAFE && failed->repeats))
        return ORIBI_REDIS_GIVE_UP;
    if (tries->used >= tries->max)
        return ORIBI_REDIS_GIVE_UP;
    tries->used++;
    uint32_t attempt = tries->used < UINT32_MAX ? (uint32_t)tries->used : UINT32_MAX;
    return oribi_redis_backoff_ms(attempt, tries->delay_ms, tries->delay_max_ms, random);
}

/* Is the first word of the text one of these? */
static bool begins_with_one_of(struct oribi_slice text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(words[i]);
        if (text.n >= n && memcmp(text.p, words[i], n) == 0 && (text.n == n || text.p[n] == ' '))
            return true;
    }
    return false;
}

bool oribi_redis_later(struct oribi_slice text)
{
    static const char *const WORDS[] = {"LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN"};
    return begins_with_one_of(text, WORDS, sizeof(WORDS) / sizeof(WORDS[0]));
}

bool oribi_redis_not_master(struct oribi_slice text)
{
    static const char *const WORDS[] = {"READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS", "UNBLOCKED"};
    return begins_with_one_of(text, WORDS, sizeof(WORDS) / sizeof(WORDS[0]));
}
