/* The methods of Oribi::Redis and Oribi::Redis::Jet that are C; xs/redis.h has the reading order. */
#include "xs/redis.h"

/* --- options --- */

static SV *option(pTHX_ HV *options, const char *name)
{
    SV **value = hv_fetch(options, name, (I32)strlen(name), 0);
    return value && SvOK(*value) ? *value : NULL;
}

static int64_t count_option(pTHX_ HV *options, const char *name, int64_t otherwise)
{
    SV *value = option(aTHX_ options, name);
    if (!value)
        return otherwise;
    if (!looks_like_number(value) || SvNV(value) < 0 || SvNV(value) > INT32_MAX)
        redis_throw_usage("%s is a whole number from 0 to %d", name, INT32_MAX);
    return (int64_t)SvIV(value);
}

static bool text_option(pTHX_ HV *options, const char *name, char *dst, size_t cap)
{
    SV *value = option(aTHX_ options, name);
    if (!value)
        return false;
    STRLEN n;
    const char *p = SvPV(value, n);
    if (n >= cap || memchr(p, 0, n))
        redis_throw_usage("%s has %zu bytes at most, and no NUL", name, cap - 1);
    memcpy(dst, p, n);
    dst[n] = 0;
    return true;
}

static void place_of(pTHX_ HV *options, struct oribi_redis_place *place)
{
    oribi_redis_place_init(place);
    SV *url = option(aTHX_ options, "url");
    if (url) {
        STRLEN n;
        const char *p = SvPV(url, n);
        const char *wrong = oribi_redis_place_read(place, oribi_slice(p, n));
        if (wrong)
            redis_throw_usage("url: %s", wrong);
    }
    if (text_option(aTHX_ options, "host", place->host, sizeof(place->host)))
        place->path[0] = 0;
    if (text_option(aTHX_ options, "path", place->path, sizeof(place->path)))
        place->host[0] = 0;
    int64_t port = count_option(aTHX_ options, "port", place->port);
    if (port < 1 || port > UINT16_MAX)
        redis_throw_usage("port is from 1 to %d", UINT16_MAX);
    place->port = (uint16_t)port;
    place->db = (int32_t)count_option(aTHX_ options, "db", place->db);
    (void)text_option(aTHX_ options, "user", place->user, sizeof(place->user));
    if (text_option(aTHX_ options, "password", place->password, sizeof(place->password)))
        place->has_password = true;
    SV *tls = option(aTHX_ options, "tls");
    if (tls)
        place->tls = SvTRUE(tls);
}

enum { HELLO_WORDS = 7 };

static void add_hello(pTHX_ struct redis_client *c, const struct oribi_slice *words, uint64_t count)
{
    struct oribi_buf bytes = {0};
    if (oribi_redis_command(&bytes, words, count) < 0)
        redis_throw_usage("out of memory");
    if (!c->options.hello)
        c->options.hello = newSVpvs("");
    sv_catpvn(c->options.hello, bytes.p, bytes.len);
    c->options.hello_count++;
    oribi_buf_deinit(&bytes);
}

static struct oribi_slice word(const char *text)
{
    return oribi_slice(text, strlen(text));
}

/* What each connection begins with: HELLO, or with protocol 2 AUTH and CLIENT SETNAME; SELECT. */
static void set_hello(pTHX_ struct redis_client *c, int64_t protocol, const char *name)
{
    const struct oribi_redis_place *place = &c->options.place;
    struct oribi_slice words[HELLO_WORDS] = {ORIBI_SLICE("HELLO"), ORIBI_SLICE("3")};
    uint64_t count = 2;
    if (protocol == 2)
        words[0] = ORIBI_SLICE("AUTH"), count = 1;
    else if (place->has_password)
        words[count++] = ORIBI_SLICE("AUTH");
    if (place->has_password) {
        if (protocol == 3 || place->user[0])
            words[count++] = word(place->user[0] ? place->user : "default");
        words[count++] = word(place->password);
    }
    if (protocol == 3 && *name) {
        words[count++] = ORIBI_SLICE("SETNAME");
        words[count++] = word(name);
    }
    if (count > 1)
        add_hello(aTHX_ c, words, count);
    if (protocol == 2 && *name)
        add_hello(aTHX_ c, (struct oribi_slice[]){ORIBI_SLICE("CLIENT"), ORIBI_SLICE("SETNAME"), word(name)}, 3);
    if (place->db) {
        char number[16];
        snprintf(number, sizeof(number), "%d", (int)place->db);
        add_hello(aTHX_ c, (struct oribi_slice[]){ORIBI_SLICE("SELECT"), word(number)}, 2);
    }
}

static enum oribi_redis_resend resend_of(pTHX_ HV *options)
{
    SV *value = option(aTHX_ options, "resend");
    const char *word = value ? SvPV_nolen(value) : "safe";
    if (strcmp(word, "safe") == 0)
        return ORIBI_REDIS_RESEND_SAFE;
    if (strcmp(word, "always") == 0)
        return ORIBI_REDIS_RESEND_ALWAYS;
    if (strcmp(word, "never") != 0)
        redis_throw_usage("resend is safe, always or never");
    return ORIBI_REDIS_RESEND_NEVER;
}

/* sentinels is an array of addresses. */
static void set_sentinels(pTHX_ struct redis_client *c, HV *options)
{
    SV *value = option(aTHX_ options, "sentinels");
    if (!value)
        return;
    struct redis_sentinels *sentinels;
    Newxz(sentinels, 1, struct redis_sentinels);
    c->options.sentinels = sentinels;
    c->conn.follows = true;
    if (!SvROK(value) || SvTYPE(SvRV(value)) != SVt_PVAV ||
        !text_option(aTHX_ options, "service", sentinels->service, sizeof(sentinels->service)))
        redis_throw_usage("sentinels is an array of addresses, and service the name that they know");
    AV *addresses = (AV *)SvRV(value);
    for (SSize_t i = 0; i <= av_len(addresses); i++) {
        SV **one = av_fetch(addresses, i, 0);
        STRLEN n = 0;
        const char *p = one ? SvPV(*one, n) : "";
        const char *wrong = oribi_redis_sentinels_add(&sentinels->list, oribi_slice(p, n));
        if (wrong)
            redis_throw_usage("sentinels: %s", wrong);
    }
    (void)text_option(aTHX_ options, "sentinel_user", sentinels->user, sizeof(sentinels->user));
    (void)text_option(aTHX_ options, "sentinel_password", sentinels->password, sizeof(sentinels->password));
}

static void set_options(pTHX_ struct redis_client *c, HV *options)
{
    enum { LIMIT_MS = 1000, ATTEMPTS = 3, DELAY_MS = 50, DELAY_MAX_MS = 1000, NAME_CAP = 256 };
    char name[NAME_CAP] = "";
    place_of(aTHX_ options, &c->options.place);
    c->conn.connect_ms = count_option(aTHX_ options, "connect_timeout_ms", LIMIT_MS);
    c->conn.write_ms = count_option(aTHX_ options, "write_timeout_ms", LIMIT_MS);
    c->options.read_ms = count_option(aTHX_ options, "read_timeout_ms", LIMIT_MS);
    c->options.tries.max = count_option(aTHX_ options, "reconnect_attempts", ATTEMPTS);
    c->options.tries.delay_ms = count_option(aTHX_ options, "reconnect_delay_ms", DELAY_MS);
    c->options.tries.delay_max_ms = count_option(aTHX_ options, "reconnect_delay_max_ms", DELAY_MAX_MS);
    c->options.tries.resend = resend_of(aTHX_ options);
    SV *utf8 = option(aTHX_ options, "utf8");
    c->options.utf8 = utf8 && SvTRUE(utf8);
    c->options.lax = option(aTHX_ options, "lax") != NULL;
    set_sentinels(aTHX_ c, options);
    (void)text_option(aTHX_ options, "client_name", name, sizeof(name));
    int64_t protocol = count_option(aTHX_ options, "protocol", 3);
    if (protocol != 2 && protocol != 3)
        redis_throw_usage("protocol is 2 or 3");
    set_hello(aTHX_ c, protocol, name);
}

/* --- results --- */

/* The value of a command, or its error. */
static SV *checked(pTHX_ struct redis_client *c, SV *reply)
{
    if (!reply)
        redis_throw(aTHX_ c);
    if (redis_is_error(aTHX_ reply))
        croak_sv(reply);
    return reply;
}

/* Code that ran meanwhile may have moved perl's stack. */
#define RESTACK     \
    SPAGAIN;        \
    SP -= items

static SV *jet_pair(pTHX_ SV *value, SV *text)
{
    AV *pair = newAV();
    av_push(pair, value);
    if (text)
        av_push(pair, text);
    return sv_2mortal(newRV_noinc((SV *)pair));
}

static SV *jet_result(pTHX_ SV *reply)
{
    if (redis_is_error(aTHX_ reply))
        return jet_pair(aTHX_ newSV(0), newSVsv(redis_error_text(aTHX_ reply)));
    return jet_pair(aTHX_ SvREFCNT_inc_simple_NN(reply), NULL);
}

static bool is_noreply(pTHX_ SV *self)
{
    SV **noreply = hv_fetchs((HV *)SvRV(self), "noreply", 0);
    return noreply && SvTRUE(*noreply);
}

MODULE = Oribi::Redis    PACKAGE = Oribi::Redis

PROTOTYPES: DISABLE

BOOT:
    if (ORIBI_REDIS_ARGUMENTS_MAX < 1)
        croak("Oribi::Redis: built wrongly");

void
_attach(SV *self, HV *options)
  CODE:
    struct redis_client *c = redis_client_create();
    redis_client_attach(aTHX_ (HV *)SvRV(self), c);
    set_options(aTHX_ c, options);

void
_attach_as(SV *self, SV *other)
  CODE:
    redis_client_attach(aTHX_ (HV *)SvRV(self), redis_client_like(aTHX_ redis_client_of(aTHX_ other)));

void
command(SV *self, ...)
  PPCODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    SV *reply = redis_command(aTHX_ c, &ST(1), items - 1, -1);
    ST(0) = checked(aTHX_ c, reply);
    XSRETURN(1);

void
blocking(SV *self, SV *limit_ms, ...)
  PPCODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    int64_t ms = (int64_t)SvIV(limit_ms);
    if (ms < 0)
        redis_throw_usage("a time limit is 0 or more milliseconds");
    SV *reply = redis_command(aTHX_ c, &ST(2), items - 2, ms);
    ST(0) = checked(aTHX_ c, reply);
    XSRETURN(1);

void
pipeline(SV *self, ...)
  PPCODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    AV *replies = redis_pipeline(aTHX_ c, &ST(1), items - 1);
    SSize_t count = AvFILLp(replies) + 1;
    if (count < items - 1)
        redis_throw(aTHX_ c);
    RESTACK;
    EXTEND(SP, count);
    for (SSize_t i = 0; i < count; i++)
        ST(i) = AvARRAY(replies)[i];
    XSRETURN(count);

void
noreply(SV *self, ...)
  PPCODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    bool one = items > 1 && !(SvROK(ST(1)) && SvTYPE(SvRV(ST(1))) == SVt_PVAV);
    if (items > 1 && redis_noreply(aTHX_ c, &ST(1), items - 1, one) < 0)
        redis_throw(aTHX_ c);
    ST(0) = sv_2mortal(newSViv(one ? 1 : items - 1));
    XSRETURN(1);

void
settle(SV *self)
  PPCODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    (void)redis_settle(aTHX_ c);
    RESTACK;
    const struct oribi_redis_conn *conn = &c->conn;
    uint32_t kept = conn->errors_kept;
    XPUSHs(sv_2mortal(newSVuv(c->quiet - c->lost)));
    if (GIMME_V == G_LIST) {
        for (uint32_t i = 0; i < kept; i++)
            mXPUSHs(redis_error_new(aTHX_ "Oribi::Redis::Error::Command", conn->errors[i], strlen(conn->errors[i])));
        if (conn->quiet_errors > kept) {
            SV *more = sv_2mortal(newSVpvf("%llu more commands without reply have failed", (unsigned long long)(conn->quiet_errors - kept)));
            mXPUSHs(redis_error_new(aTHX_ "Oribi::Redis::Error::Command", SvPVX(more), SvCUR(more)));
        }
        if (c->lost) {
            SV *lost = sv_2mortal(newSVpvf("the replies of %llu commands were lost with their connection", (unsigned long long)c->lost));
            mXPUSHs(redis_error_new(aTHX_ "Oribi::Redis::Error::Connection", SvPVX(lost), SvCUR(lost)));
        }
        oribi_redis_conn_forget_errors(&c->conn);
        c->quiet = c->lost = 0;
    } else if (conn->quiet_errors || c->lost) {
        redis_throw_usage("commands without reply have failed: settle() in list context tells the errors");
    } else {
        c->quiet = 0;
    }

void
connect(SV *self)
  PPCODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    if (redis_connect(aTHX_ c) < 0)
        redis_throw(aTHX_ c);
    XSRETURN(1);

bool
is_connected(SV *self)
  CODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    RETVAL = c->conn.state != ORIBI_REDIS_CLOSED && !c->conn.left && c->pid == getpid();
  OUTPUT:
    RETVAL

void
close(SV *self)
  CODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    redis_must_be_free(c);
    redis_close(aTHX_ c);

void
_listen(SV *self, ...)
  CODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    if (redis_listen(aTHX_ c, &ST(1), items - 1) < 0)
        redis_throw(aTHX_ c);

void
_next_push(SV *self, IV limit_ms)
  PPCODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    SV *push = redis_next_push(aTHX_ c, limit_ms);
    if (!push && c->failure)
        redis_throw(aTHX_ c);
    if (push && redis_is_error(aTHX_ push))
        croak_sv(push);
    ST(0) = push ? push : &PL_sv_undef;
    XSRETURN(1);

const char *
_host(SV *self)
  CODE:
    RETVAL = redis_client_of(aTHX_ self)->options.place.host;
  OUTPUT:
    RETVAL

MODULE = Oribi::Redis    PACKAGE = Oribi::Redis::Jet

void
command(SV *self, ...)
  PPCODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    if (is_noreply(aTHX_ self)) {
        if (redis_noreply(aTHX_ c, &ST(1), items - 1, true) == 0) {
            ST(0) = sv_2mortal(newSVpvs("0 but true"));
            XSRETURN(1);
        }
    } else {
        SV *reply = redis_command(aTHX_ c, &ST(1), items - 1, -1);
        if (reply) {
            bool failed = redis_is_error(aTHX_ reply);
            RESTACK;
            EXTEND(SP, 2);
            ST(0) = failed ? &PL_sv_undef : reply;
            if (failed)
                ST(1) = redis_error_text(aTHX_ reply);
            XSRETURN(failed && GIMME_V == G_LIST ? 2 : 1);
        }
    }
    RESTACK;
    EXTEND(SP, 2);
    PUSHs(&PL_sv_undef);
    if (GIMME_V == G_LIST)
        mPUSHs(redis_jet_failure_new(aTHX_ c));

void
pipeline(SV *self, ...)
  PPCODE:
    struct redis_client *c = redis_client_of(aTHX_ self);
    SSize_t count = items - 1;
    SSize_t done = 0;
    if (is_noreply(aTHX_ self)) {
        bool fine = count == 0 || redis_noreply(aTHX_ c, &ST(1), count, false) == 0;
        RESTACK;
        EXTEND(SP, count);
        for (; done < count; done++)
            ST(done) = fine ? jet_pair(aTHX_ newSVpvs("0 but true"), NULL) : jet_pair(aTHX_ newSV(0), redis_jet_failure_new(aTHX_ c));
        XSRETURN(count);
    }
    AV *replies = redis_pipeline(aTHX_ c, &ST(1), count);
    RESTACK;
    EXTEND(SP, count);
    for (; done <= AvFILLp(replies); done++)
        ST(done) = jet_result(aTHX_ AvARRAY(replies)[done]);
    for (; done < count; done++)
        ST(done) = jet_pair(aTHX_ newSV(0), redis_jet_failure_new(aTHX_ c));
    XSRETURN(count);

SV *
parse_message(SV *bytes, AV *messages)
  ALIAS:
    parse_message_utf8 = 1
  CODE:
    IV used;
    RETVAL = redis_parse(aTHX_ bytes, messages, ix == 1, &used) ? newSViv(used) : newSV(0);
  OUTPUT:
    RETVAL
