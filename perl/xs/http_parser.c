/* Oribi::HTTPParser: heads of requests and responses that a program has as strings, with the calling convention of
 * HTTP::Parser::XS. lib/Oribi/HTTPParser.pm says what users may expect. Hashes of the program may be tied, whose code
 * can die: joined values are freed all the same. */
#include "xs/binding.h"

#include "oribi/base/mem.h"
#include "oribi/http/fields.h"
#include "oribi/http/response_head.h"
#include "oribi/http/syntax.h"

/* As lib/Oribi/HTTPParser.pm has them. */
enum { HEADERS_NONE, HEADERS_AS_HASHREF, HEADERS_AS_ARRAYREF };

enum { KEY_METHOD, KEY_URI, KEY_SCRIPT, KEY_PATH, KEY_QUERY, KEY_PROTOCOL, KEY_COUNT };

static const char *const key_texts[KEY_COUNT] = {"REQUEST_METHOD", "REQUEST_URI",  "SCRIPT_NAME",
                                                 "PATH_INFO",      "QUERY_STRING", "SERVER_PROTOCOL"};

/* Made once, for the life of the process: scalars that share their text, and its hash value, with perl's table of
 * keys. */
struct parser_keys {
    SV *of[KEY_COUNT];
    SV *of_field[ORIBI_FIELD_COUNT];
};

static SV *text_of(pTHX_ struct oribi_slice slice)
{
    return newSVpvn(slice.n ? slice.p : "", slice.n);
}

/* The bytes of the string; of one with characters beyond bytes none, since no head has such. */
static struct oribi_slice bytes_of(pTHX_ SV *sv)
{
    STRLEN n;
    const char *p = SvPV_const(sv, n);
    if (!SvUTF8(sv))
        return oribi_slice(p, n);
    SV *copy = newSVpvn_flags(p, n, SVs_TEMP | SVf_UTF8);
    if (!sv_utf8_downgrade(copy, TRUE))
        return oribi_slice("\n", 1);
    return oribi_slice(SvPVX(copy), SvCUR(copy));
}

/* Bytes that stay while code of the program's runs, which may change the string. */
static struct oribi_slice own_copy(pTHX_ struct oribi_slice in)
{
    return oribi_slice(SvPVX(newSVpvn_flags(in.p, in.n, SVs_TEMP)), in.n);
}

/* Behind a store of `value`, which the hash has taken if there is a slot. A tied one has to be told. */
static void settle(pTHX_ HV *hash, const void *slot, SV *value)
{
    if (!slot)
        sv_2mortal(value);
    if (SvRMAGICAL(hash))
        SvSETMAGIC(value);
}

/* Takes value. */
static void store(pTHX_ HV *hash, SV *key, SV *value)
{
    settle(aTHX_ hash, hv_store_ent(hash, key, value, SvSHARED_HASH(key)), value);
}

/* --- requests --- */

static void release_joined(pTHX_ void *joined)
{
    oribi_mem_free(joined);
}

/* Decoded once, a decoded NUL stays a NUL. Mortal; NULL: it cannot be. */
static SV *path_info_of(pTHX_ struct oribi_slice path)
{
    SV *sv = sv_2mortal(text_of(aTHX_ path));
    if (path.n == 0 || !memchr(path.p, '%', path.n))
        return sv;
    ssize_t n = oribi_percent_decode(path, SvPVX(sv));
    if (n < 0)
        return NULL;
    SvCUR_set(sv, (STRLEN)n);
    *SvEND(sv) = '\0';
    return sv;
}

static void store_fields(pTHX_ const struct parser_keys *keys, HV *env, const struct oribi_head *head)
{
    char name[ORIBI_FIELD_NAME_BYTES_MAX + 5];
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        SV *value = newSVpvn(field->value, field->value_len);
        if (field->id != ORIBI_FIELD_OTHER) {
            store(aTHX_ env, keys->of_field[field->id], value);
            continue;
        }
        size_t len = oribi_field_write_env_key(field, name);
        settle(aTHX_ env, hv_store(env, name, (I32)len, value, 0), value);
    }
}

static void store_request(pTHX_ const struct parser_keys *keys, HV *env, const struct oribi_head *head, SV *path_info)
{
    if (head->field_count > 2) /* beyond the eight places that every hash has */
        hv_ksplit(env, (IV)(HvUSEDKEYS(env) + KEY_COUNT + head->field_count));
    store(aTHX_ env, keys->of[KEY_METHOD], text_of(aTHX_ head->method));
    store(aTHX_ env, keys->of[KEY_URI], text_of(aTHX_ head->target));
    store(aTHX_ env, keys->of[KEY_SCRIPT], newSVpvs(""));
    store(aTHX_ env, keys->of[KEY_PATH], SvREFCNT_inc_simple_NN(path_info));
    store(aTHX_ env, keys->of[KEY_QUERY], text_of(aTHX_ head->query));
    store(aTHX_ env, keys->of[KEY_PROTOCOL], head->minor ? newSVpvs("HTTP/1.1") : newSVpvs("HTTP/1.0"));
    store_fields(aTHX_ keys, env, head);
}

XS_INTERNAL(parse_http_request)
{
    dXSARGS;
    dXSTARG;
    struct oribi_head head;
    if (items != 2)
        croak_xs_usage(cv, "request, env");
    struct oribi_slice in = bytes_of(aTHX_ ST(0));
    if (!SvROK(ST(1)) || SvTYPE(SvRV(ST(1))) != SVt_PVHV)
        croak("second param to parse_http_request should be a hashref");
    HV *env = (HV *)sv_2mortal(SvREFCNT_inc_simple_NN(SvRV(ST(1))));
    if (SvRMAGICAL(env))
        in = own_copy(aTHX_ in);
    ssize_t result = oribi_from_string_request(in.p, in.n, &head);
    if (result > 0) {
        SV *path_info = path_info_of(aTHX_ head.path);
        ENTER;
        if (head.joined)
            SAVEDESTRUCTOR_X(release_joined, head.joined);
        if (path_info)
            store_request(aTHX_ CvXSUBANY(cv).any_ptr, env, &head, path_info);
        else
            result = ORIBI_STRING_BROKEN;
        LEAVE;
    }
    XSprePUSH;
    PUSHi((IV)result);
    XSRETURN(1);
}

/* --- responses --- */

/* The name in lower case, as a key; the caller's. */
static SV *key_of(pTHX_ const struct oribi_field *field)
{
    char name[ORIBI_FIELD_NAME_BYTES_MAX];
    for (uint32_t i = 0; i < field->name_len; i++)
        name[i] = (char)toLOWER(field->name[i]);
    return newSVpvn_share(name, (I32)field->name_len, 0);
}

/* A name that comes again has a reference to an array of its values. */
static void add_to_hash(pTHX_ HV *hash, SV *key, SV *value)
{
    HE *entry = hv_fetch_ent(hash, key, 1, SvSHARED_HASH(key));
    SV *known = HeVAL(entry);
    if (!SvOK(known)) {
        HeVAL(entry) = value;
        SvREFCNT_dec_NN(known);
    } else if (SvROK(known)) {
        av_push((AV *)SvRV(known), value);
    } else {
        AV *values = newAV();
        av_push(values, known); /* takes it */
        av_push(values, value);
        HeVAL(entry) = newRV_noinc((SV *)values);
    }
}

/* Stores the headers in the hash or the array that is wanted; those that `special` has keys of are stored there too. */
static void store_headers(pTHX_ const struct oribi_response_head *head, HV *hash, AV *list, HV *special)
{
    if (list && head->field_count)
        av_extend(list, 2 * (SSize_t)head->field_count - 1);
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        SV *key = key_of(aTHX_ field);
        if (special) {
            sv_2mortal(SvREFCNT_inc_simple_NN(key)); /* what follows may be the program's own code */
            HE *wanted = hv_fetch_ent(special, key, 0, SvSHARED_HASH(key));
            if (wanted)
                sv_setpvn_mg(HeVAL(wanted), field->value, field->value_len);
        }
        if (list) {
            av_push(list, key);
            av_push(list, newSVpvn(field->value, field->value_len));
            continue;
        }
        if (hash)
            add_to_hash(aTHX_ hash, key, newSVpvn(field->value, field->value_len));
        SvREFCNT_dec_NN(key);
    }
}

XS_INTERNAL(parse_http_response)
{
    dXSARGS;
    struct oribi_response_head head;
    if (items < 2 || items > 3)
        croak_xs_usage(cv, "response, header_format, special_headers = undef");
    struct oribi_slice in = bytes_of(aTHX_ ST(0));
    IV form = SvIV(ST(1));
    SV *rest = items > 2 && SvOK(ST(2)) ? ST(2) : NULL;
    if (form < HEADERS_NONE || form > HEADERS_AS_ARRAYREF)
        croak("Oribi::HTTPParser: there is no header format %" IVdf, form);
    if (rest && (!SvROK(rest) || SvTYPE(SvRV(rest)) != SVt_PVHV))
        croak("Oribi::HTTPParser: special_headers is not a reference to a hash");
    HV *special = rest ? (HV *)sv_2mortal(SvREFCNT_inc_simple_NN(SvRV(rest))) : NULL;
    if (special)
        in = own_copy(aTHX_ in);
    ssize_t result = oribi_from_string_response(in.p, in.n, &head);
    SPAGAIN;
    SP -= items;
    if (result < 0) {
        mXPUSHi((IV)result);
        XSRETURN(1);
    }
    HV *hash = form == HEADERS_AS_HASHREF ? newHV() : NULL;
    AV *list = form == HEADERS_AS_ARRAYREF ? newAV() : NULL;
    SV *given = form == HEADERS_NONE ? &PL_sv_undef : sv_2mortal(newRV_noinc(hash ? (SV *)hash : (SV *)list));
    if (given != &PL_sv_undef || rest)
        store_headers(aTHX_ & head, hash, list, rest ? (HV *)SvRV(rest) : NULL);
    EXTEND(SP, 5);
    mPUSHi((IV)result);
    mPUSHi(head.minor);
    mPUSHi(head.status);
    PUSHs(sv_2mortal(text_of(aTHX_ head.reason)));
    PUSHs(given);
    XSRETURN(5);
}

void psgi_http_parser_boot(pTHX)
{
    struct parser_keys *keys;
    Newx(keys, 1, struct parser_keys);
    for (int i = 0; i < KEY_COUNT; i++)
        keys->of[i] = newSVpvn_share(key_texts[i], (I32)strlen(key_texts[i]), 0);
    for (int id = 1; id < ORIBI_FIELD_COUNT; id++) {
        const char *key = oribi_field_env_key((enum oribi_field_id)id);
        keys->of_field[id] = newSVpvn_share(key, (I32)strlen(key), 0);
    }
    CV *parse = newXS_flags("Oribi::HTTPParser::parse_http_request", parse_http_request, __FILE__, "$$", 0);
    CvXSUBANY(parse).any_ptr = keys;
    newXS("Oribi::HTTPParser::parse_http_response", parse_http_response, __FILE__);
}
