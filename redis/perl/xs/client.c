/* The object: a struct redis_client in the magic of a blessed hash, its copies in new threads, and its end. */
#include "xs/redis.h"

#include <unistd.h>

static int destroyed(pTHX_ SV *sv, MAGIC *magic)
{
    struct redis_client *c = (struct redis_client *)magic->mg_ptr;
    if (!c)
        return 0;
    magic->mg_ptr = NULL;
    if (!PL_dirty && c->pid == getpid() && (c->conn.quiet_errors || c->lost))
        warn(
            "Oribi::Redis: of commands without reply %llu failed and %llu were lost, and settle() was not called; %s\n",
            (unsigned long long)c->conn.quiet_errors, (unsigned long long)c->lost,
            c->conn.errors_kept ? c->conn.errors[0] : "");
    oribi_redis_conn_deinit(&c->conn);
    redis_forget_request(aTHX_ c);
    oribi_buf_deinit(&c->request);
    SvREFCNT_dec(c->options.hello);
    for (int i = 0; i < REDIS_KEPT_COUNT; i++)
        Safefree(c->kept[i].p);
    Safefree(c->apart);
    Safefree(c->options.sentinels);
    Safefree(c);
    return 0;
}

struct redis_client *redis_client_create(void)
{
    struct redis_client *c;
    Newxz(c, 1, struct redis_client);
    oribi_redis_conn_init(&c->conn, 0);
    c->conn.transport = &redis_plain;
    c->conn.context = c;
    return c;
}

/* Gives a client with the same options and no connection, but for `hello`. */
static struct redis_client *copy_of(pTHX_ const struct redis_client *old)
{
    struct redis_client *c = redis_client_create();
    c->conn.connect_ms = old->conn.connect_ms;
    c->conn.write_ms = old->conn.write_ms;
    c->conn.follows = old->conn.follows;
    c->options = old->options;
    if (old->options.sentinels) {
        Newx(c->options.sentinels, 1, struct redis_sentinels);
        *c->options.sentinels = *old->options.sentinels;
    }
    for (int i = 0; i < REDIS_KEPT_COUNT; i++) {
        c->kept[i].p = old->kept[i].p ? savepvn(old->kept[i].p, (I32)old->kept[i].n) : NULL;
        c->kept[i].n = old->kept[i].n;
    }
    return c;
}

struct redis_client *redis_client_like(pTHX_ const struct redis_client *old)
{
    struct redis_client *c = copy_of(aTHX_ old);
    c->options.hello = old->options.hello ? newSVsv(old->options.hello) : NULL;
    return c;
}

#ifdef USE_ITHREADS
/* A new thread has the options, and a connection of its own when it first needs one. */
static int duplicated(pTHX_ MAGIC *magic, CLONE_PARAMS *params)
{
    const struct redis_client *old = (const struct redis_client *)magic->mg_ptr;
    if (!old)
        return 0;
    struct redis_client *c = copy_of(aTHX_ old);
    c->options.hello = old->options.hello ? sv_dup_inc(old->options.hello, params) : NULL;
    c->self = (HV *)sv_dup((const SV *)old->self, params);
    magic->mg_ptr = (char *)c;
    return 0;
}
#endif

static MGVTBL CLIENT_MAGIC = {
    .svt_free = destroyed,
#ifdef USE_ITHREADS
    .svt_dup = duplicated,
#endif
};

void redis_client_attach(pTHX_ HV *self, struct redis_client *c)
{
    MAGIC *magic = sv_magicext((SV *)self, NULL, PERL_MAGIC_ext, &CLIENT_MAGIC, (const char *)c, 0);
    magic->mg_flags |= MGf_DUP;
    c->self = self;
}

struct redis_client *redis_client_of(pTHX_ SV *object)
{
    MAGIC *magic = SvROK(object) && SvTYPE(SvRV(object)) == SVt_PVHV
                       ? mg_findext(SvRV(object), PERL_MAGIC_ext, &CLIENT_MAGIC)
                       : NULL;
    if (!magic || !magic->mg_ptr)
        croak("Oribi::Redis: called without an object of the class");
    return (struct redis_client *)magic->mg_ptr;
}
