/* The core's events to Perl's values. Every value has its owner before more bytes are waited for, since a signal
 * handler may die there: the reply itself is mortal, and the others hang in it. */
#include "xs/redis.h"

SV *redis_error_new(pTHX_ const char *class, const char *text, STRLEN n)
{
    HV *error = newHV();
    SV *object = newRV_noinc((SV *)error);
    (void)hv_stores(error, "message", newSVpvn(text, n));
    return sv_bless(object, gv_stashpv(class, GV_ADD));
}

bool redis_is_error(pTHX_ SV *reply)
{
    return SvROK(reply) && SvOBJECT(SvRV(reply)) && SvTYPE(SvRV(reply)) == SVt_PVHV;
}

SV *redis_error_text(pTHX_ SV *error)
{
    SV **message = hv_fetchs((HV *)SvRV(error), "message", 0);
    return message ? *message : &PL_sv_undef;
}

/* Where events come from: a connection, or bytes at hand (`reader`). */
struct source {
    struct redis_client *c;
    struct oribi_redis_reader *reader;
    bool utf8, jet;
    int code;
};

static int next(struct source *from, struct oribi_redis_event *event)
{
    from->code = from->c ? oribi_redis_conn_next(&from->c->conn, event) : oribi_redis_next(from->reader, event);
    return from->code;
}

/* Text from outside is tainted; UTF-8 becomes characters only where it is UTF-8. */
static void finish_text(pTHX_ const struct source *from, SV *sv)
{
    if (from->utf8 && !is_utf8_invariant_string((U8 *)SvPVX(sv), SvCUR(sv)) &&
        is_utf8_string((U8 *)SvPVX(sv), SvCUR(sv)))
        SvUTF8_on(sv);
    if (TAINTING_get)
        SvTAINTED_on(sv);
}

static void set_text(pTHX_ const struct source *from, SV *sv, struct oribi_slice text)
{
    sv_setpvn(sv, text.p ? text.p : "", text.n);
    if (from->utf8 || TAINTING_get)
        finish_text(aTHX_ from, sv);
}

/* Reads a long string to where it will lie. Room for all of it is reserved when a part has come. */
static bool read_long(pTHX_ struct source *from, SV *sv, uint64_t count)
{
    size_t have = 0;
    (void)SvUPGRADE(sv, SVt_PV);
    while (have < count) {
        size_t room = have + (have < REDIS_RESERVE_BYTES ? REDIS_RESERVE_BYTES : have);
        if (room > count)
            room = count;
        char *p = SvGROW(sv, room + 2); /* one for the NUL, one for perl's copy on write */
        if (!from->c) {
            size_t got = oribi_redis_take(from->reader, p + have, room - have);
            have += got;
            if (!got) {
                from->code = ORIBI_AGAIN;
                return false;
            }
            continue;
        }
        if ((from->code = oribi_redis_conn_body(&from->c->conn, p + have, room - have)) < 0)
            return false;
        have = room;
    }
    SvPVX(sv)[have] = 0;
    SvCUR_set(sv, have);
    SvPOK_only(sv);
    finish_text(aTHX_ from, sv);
    return true;
}

static double number_of(pTHX_ struct oribi_slice text)
{
    char digits[64];
    if (text.n >= sizeof(digits))
        return 0;
    memcpy(digits, text.p, text.n);
    digits[text.n] = 0;
    if (strcmp(digits, "inf") == 0 || strcmp(digits, "-inf") == 0)
        return digits[0] == '-' ? -NV_INF : NV_INF;
    return strcmp(digits, "nan") == 0 || strcmp(digits, "-nan") == 0 ? NV_NAN : my_atof(digits);
}

static bool fill(pTHX_ struct source *from, SV *sv, const struct oribi_redis_event *event);

/* Makes a fresh value a reference; takes what it refers to. */
static void set_ref(pTHX_ SV *sv, SV *referred)
{
    (void)SvUPGRADE(sv, SVt_IV);
    SvRV_set(sv, referred);
    SvROK_on(sv);
}

static bool fill_array(pTHX_ struct source *from, AV *array, uint64_t count, size_t likely)
{
    if (likely)
        av_extend(array, (SSize_t)likely - 1);
    for (uint64_t i = 0; i < count; i++) {
        struct oribi_redis_event event;
        if (next(from, &event) < 0)
            return false;
        SV *value;
        if (event.kind == ORIBI_REDIS_STRING && !from->utf8 && !TAINTING_get) {
            value = newSVpvn(event.text.p ? event.text.p : "", event.text.n);
            av_push(array, value);
        } else {
            value = newSV(0);
            av_push(array, value);
            if (!fill(aTHX_ from, value, &event))
                return false;
        }
    }
    return true;
}

/* Keys are texts: numbers are printed, and an aggregate is not a key. */
static bool fill_hash(pTHX_ struct source *from, HV *hash, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct oribi_redis_event event;
        if (next(from, &event) < 0)
            return false;
        SV *key = NULL;
        if (event.kind != ORIBI_REDIS_STRING || from->utf8) {
            key = sv_newmortal();
            if (!fill(aTHX_ from, key, &event))
                return false;
            if (SvROK(key)) {
                from->code = ORIBI_EBAD;
                return false;
            }
        }
        HE *entry = key ? hv_fetch_ent(hash, key, 1, 0) : NULL;
        SV *value = key ? HeVAL(entry) : *hv_fetch(hash, event.text.p ? event.text.p : "", (I32)event.text.n, 1);
        if (SvOK(value)) /* a key that comes twice: the last value is taken */
            sv_setsv(value, &PL_sv_undef);
        if (next(from, &event) < 0)
            return false;
        if (event.kind == ORIBI_REDIS_STRING)
            set_text(aTHX_ from, value, event.text);
        else if (!fill(aTHX_ from, value, &event))
            return false;
    }
    return true;
}

static size_t likely(const struct source *from, uint64_t count)
{
    return oribi_redis_likely(from->c ? &from->c->conn.reader : from->reader, count);
}

/* Makes `sv` what the event begins. Of false the code is in from->code; what was made of it stays. */
static bool fill(pTHX_ struct source *from, SV *sv, const struct oribi_redis_event *event)
{
    switch (event->kind) {
    case ORIBI_REDIS_NULL:
        return true;
    case ORIBI_REDIS_BOOLEAN:
        sv_setsv(sv, boolSV(event->integer));
        return true;
    case ORIBI_REDIS_INTEGER:
        sv_setiv(sv, (IV)event->integer);
        break;
    case ORIBI_REDIS_DOUBLE:
        sv_setnv(sv, number_of(aTHX_ event->text));
        break;
    case ORIBI_REDIS_BIG:
    case ORIBI_REDIS_STATUS:
    case ORIBI_REDIS_STRING:
    case ORIBI_REDIS_VERBATIM:
        set_text(aTHX_ from, sv, event->text);
        return true;
    case ORIBI_REDIS_ERROR: {
        SV *error =
            redis_error_new(aTHX_ "Oribi::Redis::Error::Command", event->text.p ? event->text.p : "", event->text.n);
        sv_setsv(sv, sv_2mortal(error));
        return true;
    }
    case ORIBI_REDIS_LONG:
        return read_long(aTHX_ from, sv, event->count);
    case ORIBI_REDIS_ARRAY:
    case ORIBI_REDIS_SET:
    case ORIBI_REDIS_PUSH: {
        AV *array = newAV();
        set_ref(aTHX_ sv, (SV *)array);
        return fill_array(aTHX_ from, array, event->count, likely(from, event->count));
    }
    case ORIBI_REDIS_MAP: {
        HV *hash = newHV();
        set_ref(aTHX_ sv, (SV *)hash);
        size_t pairs = likely(from, event->count);
        if (pairs > 8)
            hv_ksplit(hash, (IV)pairs);
        return fill_hash(aTHX_ from, hash, event->count);
    }
    }
    if (TAINTING_get)
        SvTAINTED_on(sv);
    return true;
}

/* The next reply of a connection, or a push with *push (NULL: pushes are passed over). Mortal; NULL with *code. */
SV *redis_reply(pTHX_ struct redis_client *c, int *code, bool *push)
{
    struct source from = {.c = c, .utf8 = c->options.utf8};
    for (;;) {
        struct oribi_redis_event event;
        SV *sv = NULL;
        bool fine = next(&from, &event) >= 0;
        if (fine) {
            sv = sv_newmortal();
            fine = fill(aTHX_ & from, sv, &event);
        }
        if (!fine) {
            *code = from.code;
            return NULL;
        }
        bool is_push = event.kind == ORIBI_REDIS_PUSH;
        if (is_push && !push)
            continue;
        if (push)
            *push = is_push;
        *code = 0;
        return sv;
    }
}

/* Reads the rest of a push that nobody wants. */
void redis_pass_push(pTHX_ struct redis_client *c, const struct oribi_redis_event *event, int *code)
{
    struct source from = {.c = c};
    *code = fill(aTHX_ & from, sv_newmortal(), event) ? 0 : from.code;
}

/* Redis::Jet's parse_message: all messages that lie complete in `bytes`, each [value] or [undef, text]; *used are the
 * bytes they take. False: no RESP. */
bool redis_parse(pTHX_ SV *bytes, AV *messages, bool utf8, IV *used)
{
    STRLEN n;
    const char *p = SvPVbyte(bytes, n);
    struct oribi_redis_reader reader = {0};
    oribi_redis_reader_init(&reader, 0, 0);
    size_t room;
    char *at = n ? oribi_redis_room(&reader, n, &room) : NULL;
    if (at) {
        memcpy(at, p, n);
        oribi_redis_got(&reader, n);
    }
    struct source from = {.reader = &reader, .utf8 = utf8};
    size_t before = 0;
    for (;;) {
        struct oribi_redis_event event;
        if (next(&from, &event) < 0)
            break;
        SV *sv = sv_newmortal();
        if (!fill(aTHX_ & from, sv, &event))
            break;
        AV *message = newAV();
        if (redis_is_error(aTHX_ sv)) {
            av_push(message, newSV(0));
            av_push(message, newSVsv(redis_error_text(aTHX_ sv)));
        } else {
            av_push(message, SvREFCNT_inc_simple_NN(sv));
        }
        av_push(messages, newRV_noinc((SV *)message));
        before = reader.at;
    }
    oribi_redis_reader_deinit(&reader);
    *used = (IV)before;
    return from.code == ORIBI_AGAIN;
}
