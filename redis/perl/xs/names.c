/* Facts that the client must know of a command by its name: nearly none. */
#include "xs/redis.h"

#include <strings.h>

/* Reads what stands behind '*' or '$', and the end of that line. */
static size_t number(const char **p)
{
    size_t n = 0;
    for (++*p; **p != '\r'; ++*p)
        n = n * 10 + (size_t)(**p - '0');
    *p += 2;
    return n;
}

enum { LOOKED_AT = 8 }; /* arguments of a command that say whether it may be repeated */

/* May all commands of the request be carried out twice? The request is ours, so it is well-formed. */
bool redis_request_repeats(const struct redis_client *c)
{
    const char *p = c->request.p;
    size_t apart = 0;
    while (p < c->request.p + c->request.len) {
        struct oribi_slice words[LOOKED_AT] = {{NULL, 0}};
        size_t count = number(&p);
        for (size_t i = 0; i < count; i++) {
            size_t n = number(&p);
            bool is_apart = apart < c->apart_count && (size_t)(p - c->request.p) == c->apart[apart].at;
            if (i < LOOKED_AT)
                words[i] = is_apart ? oribi_slice(SvPVX(c->apart[apart].sv), n) : oribi_slice(p, n);
            apart += is_apart;
            p += (is_apart ? 0 : n) + 2;
        }
        if (count > LOOKED_AT ? !oribi_redis_repeatable(words, LOOKED_AT) : !oribi_redis_repeatable(words, count))
            return false;
    }
    return true;
}

static bool is_name(const char *p, size_t n, const char *name)
{
    return strncasecmp(p, name, n) == 0 && name[n] == 0;
}

static const struct {
    const char *name;
    enum redis_special special;
} SPECIAL[] = {
    {"HELLO", REDIS_KEEPS_HELLO},   {"AUTH", REDIS_KEEPS_AUTH},      {"SELECT", REDIS_KEEPS_SELECT},
    {"MULTI", REDIS_PINS},          {"WATCH", REDIS_PINS},           {"EXEC", REDIS_UNPINS},
    {"DISCARD", REDIS_UNPINS},      {"UNWATCH", REDIS_UNPINS},       {"RESET", REDIS_REFUSED},
    {"SUBSCRIBE", REDIS_REFUSED},   {"PSUBSCRIBE", REDIS_REFUSED},   {"SSUBSCRIBE", REDIS_REFUSED},
    {"UNSUBSCRIBE", REDIS_REFUSED}, {"PUNSUBSCRIBE", REDIS_REFUSED}, {"SUNSUBSCRIBE", REDIS_REFUSED},
    {"MONITOR", REDIS_REFUSED},     {"SYNC", REDIS_REFUSED},         {"PSYNC", REDIS_REFUSED},
};

/* Commands after which a connection is not what it was. */
enum redis_special redis_special_of(SV **args, SSize_t count)
{
    size_t n = SvCUR(args[0]);
    const char *p = SvPVX(args[0]);
    if (n < 4 || n > 12 || !strchr("hasmwedurp c", p[0] | 0x20))
        return REDIS_ORDINARY;
    for (size_t i = 0; i < sizeof(SPECIAL) / sizeof(SPECIAL[0]); i++)
        if (((SPECIAL[i].name[0] ^ p[0]) & 0xdf) == 0 && is_name(p, n, SPECIAL[i].name))
            return SPECIAL[i].special;
    bool silences = is_name(p, n, "CLIENT") && count == 3 && is_name(SvPVX(args[1]), SvCUR(args[1]), "REPLY");
    return silences && !is_name(SvPVX(args[2]), SvCUR(args[2]), "ON") ? REDIS_REFUSED : REDIS_ORDINARY;
}
