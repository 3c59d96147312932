/* Perl's values to the bytes of a command: bytes as they are, numbers as perl prints them, characters as UTF-8 or as an
 * error. Values that can run Perl code when they are looked at (tied, overloaded) are looked at first, all of them:
 * their code may use this very client. */
#include "xs/redis.h"

static bool is_plain(SV *sv)
{
    return SvPOK(sv) && !SvGMAGICAL(sv);
}

static void complain(pTHX_ SV **args, SSize_t i, const char *what)
{
    STRLEN n = 0;
    const char *name = i > 0 && SvPOK(args[0]) ? SvPV_nomg(args[0], n) : "command";
    if (i == 0)
        name = "command", n = 7;
    redis_throw_usage("argument %ld of %.*s %s", (long)i, (int)(n < 64 ? n : 64), name, what);
}

/* A value without magic, and defined; mortal where it is not the caller's own. */
static SV *looked_at(pTHX_ SV **args, SSize_t i)
{
    SV *sv = args[i];
    if (SvGMAGICAL(sv))
        sv = sv_mortalcopy(sv);
    if (!SvOK(sv))
        complain(aTHX_ args, i, "is undef");
    if (SvROK(sv) && !SvAMAGIC(sv))
        complain(aTHX_ args, i, "is a reference; a value is a string or a number");
    if (SvPOK(sv) && !SvROK(sv))
        return sv;
    /* Of a copy: perl would leave the text in the caller's number. What overloading returns has its flag there, too. */
    STRLEN n;
    SV *copy = sv_mortalcopy(sv);
    const char *p = SvPV(copy, n);
    return newSVpvn_flags(p, n, SVs_TEMP | (SvUTF8(copy) ? SVf_UTF8 : 0));
}

/* Bytes of a value with characters, or above 127 in a client that speaks UTF-8. */
static SV *encoded(pTHX_ struct redis_client *c, SV **args, SSize_t i)
{
    SV *sv = args[i];
    if (c->options.utf8) {
        SV *copy = newSVpvn_flags(SvPVX(sv), SvCUR(sv), SVs_TEMP);
        sv_utf8_upgrade(copy); /* of bytes: each is a character */
        return copy;
    }
    SV *copy = sv_mortalcopy(sv);
    if (!sv_utf8_downgrade(copy, TRUE) && !c->options.lax)
        complain(aTHX_ args, i, "has a wide character; encode it, or make the client with utf8 => 1");
    return copy;
}

static bool is_encoded(pTHX_ struct redis_client *c, SV *sv)
{
    if (!c->options.utf8)
        return !SvUTF8(sv);
    return SvUTF8(sv) || is_utf8_invariant_string((const U8 *)SvPVX(sv), SvCUR(sv));
}

static void put_apart(pTHX_ struct redis_client *c, SV *sv)
{
    if (c->apart_count == c->apart_cap) {
        c->apart_cap = c->apart_cap ? c->apart_cap * 2 : 16;
        Renew(c->apart, c->apart_cap, struct redis_apart);
    }
    c->apart[c->apart_count++] = (struct redis_apart){c->request.len, newSVsv(sv)};
}

static void put(pTHX_ struct redis_client *c, SV *sv)
{
    STRLEN n = SvCUR(sv);
    int code;
    if (n < REDIS_APART_BYTES) {
        code = oribi_redis_argument(&c->request, oribi_slice(SvPVX(sv), n));
    } else if ((code = oribi_redis_argument_head(&c->request, n)) == 0) {
        put_apart(aTHX_ c, sv);
        code = oribi_redis_argument_end(&c->request);
    }
    if (code == ORIBI_EINVAL)
        redis_throw_usage("an argument has %llu bytes at most", ORIBI_REDIS_STRING_MAX);
    if (code)
        redis_throw_usage("out of memory");
}

/* Arguments that are not plain strings, made so. Runs Perl code. */
SV **redis_looked_at(pTHX_ struct redis_client *c, SV **args, SSize_t count)
{
    if (count < 1)
        redis_throw_usage("a command has a name at least");
    if (count > ORIBI_REDIS_ARGUMENTS_MAX)
        redis_throw_usage("a command has %d arguments at most", ORIBI_REDIS_ARGUMENTS_MAX);
    SSize_t i = 0;
    while (i < count && is_plain(args[i]) && is_encoded(aTHX_ c, args[i]))
        i++;
    if (i == count)
        return args;
    SV **copies;
    Newx(copies, count, SV *);
    SAVEFREEPV(copies);
    /* perl's stack may move while code runs, and an array may lose what it holds */
    for (SSize_t k = 0; k < count; k++)
        copies[k] = sv_2mortal(SvREFCNT_inc(args[k]));
    for (SSize_t k = i; k < count; k++) {
        copies[k] = looked_at(aTHX_ copies, k);
        if (!is_encoded(aTHX_ c, copies[k]))
            copies[k] = encoded(aTHX_ c, copies, k);
    }
    return copies;
}

/* Appends a command whose arguments were looked at. Runs no Perl code. */
void redis_put_command(pTHX_ struct redis_client *c, SV **args, SSize_t count)
{
    if (oribi_redis_begin(&c->request, (uint64_t)count) < 0)
        redis_throw_usage("out of memory");
    for (SSize_t i = 0; i < count; i++)
        put(aTHX_ c, args[i]);
}

/* A command of a pipeline is an array, or a name alone. */
static AV *array_of(pTHX_ SV *command)
{
    if (SvROK(command) && SvTYPE(SvRV(command)) == SVt_PVAV && !SvAMAGIC(command))
        return (AV *)SvRV(command);
    AV *array = (AV *)sv_2mortal((SV *)newAV());
    av_push(array, SvREFCNT_inc(command));
    return array;
}

/* The arguments of each command, looked at: then no Perl code runs any more. */
static SV **words_of(pTHX_ struct redis_client *c, AV *array, SSize_t *count)
{
    *count = av_len(array) + 1;
    SV **words;
    Newx(words, *count + 1, SV *);
    SAVEFREEPV(words);
    for (SSize_t i = 0; i < *count; i++) {
        SV **word = av_fetch(array, i, 0);
        words[i] = word ? sv_2mortal(SvREFCNT_inc(*word)) : &PL_sv_undef;
    }
    return redis_looked_at(aTHX_ c, words, *count);
}

static bool is_ready(pTHX_ struct redis_client *c, SV *command)
{
    if (!SvROK(command) || SvTYPE(SvRV(command)) != SVt_PVAV || SvAMAGIC(command) || SvRMAGICAL(SvRV(command)))
        return false;
    AV *array = (AV *)SvRV(command);
    SSize_t count = AvFILLp(array) + 1;
    for (SSize_t i = 0; i < count; i++) {
        SV *sv = AvARRAY(array)[i];
        if (!sv || !is_plain(sv) || !is_encoded(aTHX_ c, sv))
            return false;
    }
    return count > 0 && count <= ORIBI_REDIS_ARGUMENTS_MAX;
}

static void check_special(pTHX_ struct redis_client *c, SV **words, SSize_t count)
{
    enum redis_special special = redis_special_of(words, count);
    if (special == REDIS_REFUSED)
        redis_throw_refused(aTHX_ words[0]);
    if (special == REDIS_KEEPS_HELLO || special == REDIS_KEEPS_AUTH || special == REDIS_KEEPS_SELECT)
        redis_throw_usage("%.*s changes the connection; send it by command()", (int)SvCUR(words[0]), SvPVX(words[0]));
    if (special == REDIS_PINS || special == REDIS_UNPINS)
        c->pins = special == REDIS_PINS;
}

/* Writes a new request of several commands. */
void redis_put_commands(pTHX_ struct redis_client *c, SV **commands, SSize_t count)
{
    SSize_t i = 0;
    while (i < count && is_ready(aTHX_ c, commands[i]))
        i++;
    SV ***words = NULL;
    SSize_t *sizes = NULL;
    if (i < count) {
        Newx(words, count, SV **);
        SAVEFREEPV(words);
        Newx(sizes, count, SSize_t);
        SAVEFREEPV(sizes);
        AV *kept = (AV *)sv_2mortal((SV *)av_make(count, commands)); /* perl's stack may move */
        for (SSize_t k = 0; k < count; k++)
            words[k] = words_of(aTHX_ c, array_of(aTHX_ AvARRAY(kept)[k]), &sizes[k]);
    }
    redis_must_be_free(c);
    redis_forget_request(aTHX_ c);
    c->pins = c->pinned;
    for (SSize_t k = 0; k < count; k++) {
        SV **those = words ? words[k] : AvARRAY((AV *)SvRV(commands[k]));
        SSize_t size = words ? sizes[k] : AvFILLp((AV *)SvRV(commands[k])) + 1;
        check_special(aTHX_ c, those, size);
        redis_put_command(aTHX_ c, those, size);
    }
}

void redis_forget_request(pTHX_ struct redis_client *c)
{
    while (c->apart_count > 0)
        SvREFCNT_dec_NN(c->apart[--c->apart_count].sv);
    c->request.len = 0;
}
