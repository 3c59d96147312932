/* Oribi::Form and Oribi::Cookie: text to pairs and hashes, and back. lib/Oribi/Form.pm and Cookie.pm say what users may
 * expect; the functions are defined here as they are called, without code of Perl's between.
 *
 * Text may be an object with an overloaded "", or tied: then reading it runs code of the program's, which may die, free
 * or change every other argument, and move perl's stack. So nothing is held across it but what perl itself frees, what
 * is read later is kept() first, and arguments are found by their place on the stack. */
#include "xs/binding.h"

#include "oribi/form/cookie.h"
#include "oribi/form/urlencoded.h"

#include <time.h>

enum { ROOM_STACK = 4096 }; /* longer texts have the room for what is decoded on the heap */

void psgi_form_fail(pTHX_ int status, const char *text)
{
    HV *error = newHV();
    SV *thrown = sv_2mortal(sv_bless(newRV_noinc((SV *)error), gv_stashpv("Oribi::Form::Error", GV_ADD)));
    const char *path = CopFILE(PL_curcop);
    (void)hv_stores(error, "status", newSViv(status));
    (void)hv_stores(error, "message", newSVpv(text, 0));
    (void)hv_stores(error, "place", newSVpvf("at %s line %" UVuf, path ? path : "-", (UV)CopLINE(PL_curcop)));
    croak_sv(thrown);
}

int psgi_form_error_status(pTHX_ SV *error)
{
    if (!SvROK(error) || !sv_derived_from(error, "Oribi::Form::Error") || SvTYPE(SvRV(error)) != SVt_PVHV)
        return 0;
    SV **status = hv_fetchs((HV *)SvRV(error), "status", 0);
    IV value = status && SvIOK(*status) ? SvIVX(*status) : 0;
    return value >= 400 && value < 500 ? (int)value : 0;
}

/* Does reading it run code of the program's? */
static bool is_live(SV *sv)
{
    return SvROK(sv) || SvGMAGICAL(sv);
}

/* It lives on until the statement ends. */
static SV *kept(pTHX_ SV *sv)
{
    return sv_2mortal(SvREFCNT_inc_simple_NN(sv));
}

/* The bytes perl has of it, as XS modules see them; undef has none. They stay while no code of the program's runs. */
static struct oribi_slice bytes_of(pTHX_ SV *sv)
{
    STRLEN n;
    SvGETMAGIC(sv);
    if (!SvOK(sv))
        return oribi_slice("", 0);
    const char *p = SvPV_nomg_const(sv, n);
    return oribi_slice(p, n);
}

/* `stack` has ROOM_STACK bytes. */
static char *room_for(pTHX_ size_t n, char *stack)
{
    return n <= ROOM_STACK ? stack : SvPVX(sv_2mortal(newSV(n)));
}

/* --- reading forms --- */

static void begin(pTHX_ struct oribi_form *form, struct oribi_slice in, char *stack)
{
    struct oribi_form_limits limits;
    oribi_form_limits_init(&limits);
    size_t n = in.n <= limits.bytes_max ? in.n : 0; /* or it is refused before anything is decoded */
    if (oribi_form_begin(form, in, room_for(aTHX_ n, stack), ORIBI_FORM_PERL, &limits) == 0)
        return;
    char text[ORIBI_ERROR_TEXT_CAP];
    oribi_form_explain(form, text);
    psgi_form_fail(aTHX_ oribi_form_status(form), text);
}

static bool next_pair(pTHX_ struct oribi_form *form, struct oribi_form_pair *pair)
{
    int code = oribi_form_next(form, pair);
    if (code >= 0)
        return code > 0;
    char text[ORIBI_ERROR_TEXT_CAP];
    oribi_form_explain(form, text);
    psgi_form_fail(aTHX_ oribi_form_status(form), text);
}

XS_INTERNAL(parse_urlencoded)
{
    dXSARGS;
    struct oribi_form form;
    struct oribi_form_pair pair;
    char stack[ROOM_STACK];
    if (items != 1)
        croak_xs_usage(cv, "text");
    struct oribi_slice in = bytes_of(aTHX_ ST(0));
    SPAGAIN;
    SP -= items;
    begin(aTHX_ & form, in, stack);
    while (next_pair(aTHX_ & form, &pair)) {
        EXTEND(SP, 2);
        PUSHs(newSVpvn_flags(pair.key.p, pair.key.n, SVs_TEMP));
        PUSHs(newSVpvn_flags(pair.value.p, pair.value.n, SVs_TEMP));
    }
    PUTBACK;
}

XS_INTERNAL(parse_urlencoded_arrayref)
{
    dXSARGS;
    struct oribi_form form;
    struct oribi_form_pair pair;
    char stack[ROOM_STACK];
    if (items != 1)
        croak_xs_usage(cv, "text");
    struct oribi_slice in = bytes_of(aTHX_ ST(0));
    AV *pairs = newAV();
    SV *result = sv_2mortal(newRV_noinc((SV *)pairs));
    begin(aTHX_ & form, in, stack);
    while (next_pair(aTHX_ & form, &pair)) {
        SSize_t last = AvFILLp(pairs) + 2;
        if (last > AvMAX(pairs))
            av_extend(pairs, 2 * last + 6);
        AvARRAY(pairs)[last - 1] = newSVpvn(pair.key.p, pair.key.n);
        AvARRAY(pairs)[last] = newSVpvn(pair.value.p, pair.value.n);
        AvFILLp(pairs) = last;
    }
    ST(0) = result;
    XSRETURN(1);
}

/* --- building forms --- */

struct building {
    SV *out;
    struct oribi_slice delimiter;
    bool utf8; /* every text is UTF-8 encoded first */
    bool begun;
};

static bool is_ascii(struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((uint8_t)text.p[i] > 127)
            return false;
    return true;
}

/* Text as it is to be escaped. The UTF-8 of a text is made of a copy, so that the program's own stays what it is. */
static struct oribi_slice text_of(pTHX_ const struct building *building, SV *sv)
{
    if (is_live(sv))
        sv = sv_mortalcopy(sv); /* its own code may free it */
    struct oribi_slice text = bytes_of(aTHX_ sv);
    if (!building->utf8 || SvUTF8(sv) || is_ascii(text))
        return text;
    SV *copy = newSVpvn_flags(text.p, text.n, SVs_TEMP);
    sv_utf8_upgrade(copy);
    return oribi_slice(SvPVX(copy), SvCUR(copy));
}

static void append_pair(pTHX_ struct building *building, SV *key, SV *value)
{
    SV *out = building->out;
    if (is_live(key))
        value = kept(aTHX_ value);
    struct oribi_slice between = building->begun ? building->delimiter : oribi_slice("", 0);
    struct oribi_slice text = text_of(aTHX_ building, key);
    char *p = SvGROW(out, SvCUR(out) + between.n + ORIBI_FORM_GROWTH * text.n + 2) + SvCUR(out);
    memcpy(p, between.p, between.n);
    p = oribi_form_escape(p + between.n, text, ORIBI_ESCAPE_PERL, true);
    *p++ = '=';
    SvCUR_set(out, (STRLEN)(p - SvPVX(out)));
    text = text_of(aTHX_ building, value);
    p = SvGROW(out, SvCUR(out) + ORIBI_FORM_GROWTH * text.n + 1) + SvCUR(out);
    p = oribi_form_escape(p, text, ORIBI_ESCAPE_PERL, true);
    SvCUR_set(out, (STRLEN)(p - SvPVX(out)));
    building->begun = true;
}

/* The array or hash that it refers to, kept; or NULL. Magic has been got. */
static SV *behind(pTHX_ SV *sv, svtype type)
{
    return SvROK(sv) && SvTYPE(SvRV(sv)) == type ? kept(aTHX_ SvRV(sv)) : NULL;
}

static SV *element(pTHX_ AV *array, SSize_t at)
{
    SV **found = at <= av_len(array) ? av_fetch(array, at, 0) : NULL;
    return found ? *found : &PL_sv_undef;
}

/* A pair for each value of an array. */
static void append_values(pTHX_ struct building *building, SV *key, SV *value)
{
    AV *values = NULL;
    if (is_live(value)) {
        key = kept(aTHX_ key);
        value = sv_mortalcopy(value);
        values = (AV *)behind(aTHX_ value, SVt_PVAV);
    }
    if (!values)
        append_pair(aTHX_ building, key, value);
    for (SSize_t i = 0; values && i <= av_len(values); i++)
        append_pair(aTHX_ building, key, element(aTHX_ values, i));
}

static void append_hash(pTHX_ struct building *building, HV *hash)
{
    HE *entry;
    hv_iterinit(hash);
    while ((entry = hv_iternext(hash)))
        append_values(aTHX_ building, hv_iterkeysv(entry), hv_iterval(hash, entry));
}

static void append_list(pTHX_ struct building *building, I32 ax, I32 count)
{
    bool live = false;
    for (I32 i = 0; i < count; i++)
        live = live || is_live(ST(i));
    for (I32 i = 0; live && i < count; i++)
        (void)kept(aTHX_ ST(i));
    for (I32 i = 0; i < count; i += 2)
        append_values(aTHX_ building, ST(i), i + 1 < count ? ST(i + 1) : &PL_sv_undef);
}

/* A copy, because all pairs have it between them. undef is none in a list, and the usual one behind a reference. */
static void set_delimiter(pTHX_ struct building *building, SV *sv, bool in_list)
{
    SV *given = sv_mortalcopy(sv);
    struct oribi_slice text = text_of(aTHX_ building, given);
    if (SvOK(given) || in_list)
        building->delimiter = text;
}

/* The arguments stand on the stack at `ax`. A list with an odd number of parts ends with the delimiter, but for a key
 * alone; a reference has it behind. */
static SV *build(pTHX_ I32 ax, I32 count, bool utf8)
{
    struct building building = {.out = newSVpvn_flags("", 0, SVs_TEMP), .delimiter = oribi_slice("&", 1), .utf8 = utf8};
    AV *array = NULL;
    HV *hash = NULL;
    if (count && is_live(ST(0))) {
        SV *first = sv_mortalcopy(ST(0));
        array = (AV *)behind(aTHX_ first, SVt_PVAV);
        hash = (HV *)behind(aTHX_ first, SVt_PVHV);
    }
    bool list = !array && !hash;
    if (count > 1 && (!list || count % 2))
        set_delimiter(aTHX_ & building, ST(list ? --count : 1), list);
    if (hash)
        append_hash(aTHX_ & building, hash);
    else if (array)
        for (SSize_t i = 0; i <= av_len(array); i += 2) {
            SV *key = kept(aTHX_ element(aTHX_ array, i)); /* a tied array's code runs for the other */
            append_values(aTHX_ & building, key, element(aTHX_ array, i + 1));
        }
    else
        append_list(aTHX_ & building, ax, count);
    *SvEND(building.out) = 0;
    return building.out;
}

/* XSANY says whether every text is encoded first. */
XS_INTERNAL(build_urlencoded)
{
    dXSARGS;
    dXSI32;
    SV *built = build(aTHX_ ax, items, ix);
    ST(0) = built;
    XSRETURN(1);
}

/* --- cookies --- */

XS_INTERNAL(crush_cookie)
{
    dXSARGS;
    struct oribi_cookies cookies;
    struct oribi_form_pair pair;
    char stack[ROOM_STACK];
    if (items != 1)
        croak_xs_usage(cv, "text");
    struct oribi_slice in = bytes_of(aTHX_ ST(0));
    HV *crushed = newHV();
    SV *result = sv_2mortal(newRV_noinc((SV *)crushed));
    hv_ksplit(crushed, in.n < 64 * 24 ? (IV)in.n / 24 : 64); /* places for as many as there usually are */
    char *room = in.n <= ORIBI_COOKIE_BYTES_MAX ? room_for(aTHX_ in.n, stack) : stack;
    int code = oribi_cookies_begin(&cookies, in, room, ORIBI_COOKIE_PERL);
    while (code == 0 && (code = oribi_cookies_next(&cookies, &pair)) > 0) {
        SV **slot = hv_fetch(crushed, pair.key.p, (I32)pair.key.n, 1);
        if (slot && !SvOK(*slot)) /* the first of several counts */
            sv_setpvn(*slot, pair.value.p, pair.value.n);
        code = 0;
    }
    if (code < 0)
        psgi_form_fail(aTHX_ 413, "the cookies are too many or too long");
    ST(0) = result;
    XSRETURN(1);
}

/* Text that no code of the program's changes any more. */
static SV *settled(pTHX_ SV *sv)
{
    if (!is_live(sv))
        return kept(aTHX_ sv);
    SV *copy = sv_mortalcopy(sv);
    if (SvROK(copy)) {
        struct oribi_slice text = bytes_of(aTHX_ copy);
        copy = newSVpvn_flags(text.p, text.n, SVs_TEMP | (SvUTF8(copy) ? SVf_UTF8 : 0));
    }
    return copy;
}

/* The value of a key that is there and defined, settled, or NULL. */
static SV *option(pTHX_ HV *options, const char *key)
{
    SV **found = options ? hv_fetch(options, key, (I32)strlen(key), 0) : NULL;
    SV *value = found ? settled(aTHX_ * found) : NULL;
    return value && SvOK(value) ? value : NULL;
}

static bool is_set(pTHX_ HV *options, const char *key)
{
    SV **found = options ? hv_fetch(options, key, (I32)strlen(key), 0) : NULL;
    return found && SvTRUE(*found);
}

/* An attribute that is left out when it is false. */
static struct oribi_slice attribute(pTHX_ SV *sv)
{
    return sv && SvTRUE(sv) ? bytes_of(aTHX_ sv) : oribi_slice(NULL, 0);
}

/* The bytes of a text that is escaped byte by byte. */
static struct oribi_slice octets(pTHX_ SV *sv, const char *what)
{
    if (!sv)
        return oribi_slice("", 0);
    struct oribi_slice text = bytes_of(aTHX_ sv);
    if (!SvUTF8(sv) || is_ascii(text))
        return text;
    SV *copy = newSVpvn_flags(text.p, text.n, SVs_TEMP);
    SvUTF8_on(copy);
    if (!sv_utf8_downgrade(copy, TRUE))
        croak("Oribi::Cookie: the %s has characters beyond bytes; encode it first", what);
    return oribi_slice(SvPVX(copy), SvCUR(copy));
}

static enum oribi_same_site same_site_of(pTHX_ SV *sv)
{
    static const char *const names[] = {"", "lax", "strict", "none"};
    struct oribi_slice text = sv ? bytes_of(aTHX_ sv) : oribi_slice("", 0);
    for (int i = ORIBI_SAME_SITE_LAX; i <= ORIBI_SAME_SITE_NONE; i++)
        if (text.n == strlen(names[i]) && foldEQ(text.p, names[i], (I32)text.n))
            return (enum oribi_same_site)i;
    return ORIBI_SAME_SITE_UNSET;
}

/* The date is written to `date` unless it stays as it is. */
static struct oribi_slice expires_of(pTHX_ SV *sv, char *date)
{
    int64_t seconds;
    if (!sv)
        return oribi_slice(NULL, 0);
    struct oribi_slice text = bytes_of(aTHX_ sv);
    if (!oribi_cookie_expires(text, (int64_t)time(NULL), &seconds))
        return text;
    ssize_t n = oribi_cookie_date(seconds, '-', date);
    if (n < 0)
        croak("Oribi::Cookie: expires is in no year of four digits");
    return oribi_slice(date, (size_t)n);
}

static SV *baked(pTHX_ const struct oribi_cookie *cookie)
{
    const char *wrong;
    ssize_t room = oribi_cookie_room(cookie);
    if (room < 0)
        croak("Oribi::Cookie: the cookie has more than %d bytes", ORIBI_COOKIE_BYTES_MAX);
    SV *out = sv_2mortal(newSV((STRLEN)room));
    ssize_t n = oribi_cookie_bake(cookie, ORIBI_BAKE_PERL, SvPVX(out), &wrong);
    if (n < 0)
        croak("Oribi::Cookie: the cookie cannot be baked: %s", wrong);
    SvPOK_only(out);
    SvCUR_set(out, (STRLEN)n);
    *SvEND(out) = 0;
    return out;
}

XS_INTERNAL(bake_cookie)
{
    dXSARGS;
    char date[ORIBI_COOKIE_DATE_CAP];
    if (items != 2)
        croak_xs_usage(cv, "name, value");
    SvGETMAGIC(ST(1));
    if (!SvOK(ST(1))) {
        ST(0) = sv_2mortal(newSVpvs(""));
        XSRETURN(1);
    }
    SV *given = sv_mortalcopy(ST(1));
    HV *options = (HV *)behind(aTHX_ given, SVt_PVHV);
    if (SvROK(given) && !options && !SvAMAGIC(given))
        croak("Oribi::Cookie: a cookie is a value or a reference to a hash");
    /* Code of the program's runs here, */
    SV *name = settled(aTHX_ ST(0));
    SV *content = options ? option(aTHX_ options, "value") : settled(aTHX_ given);
    SV *domain = option(aTHX_ options, "domain");
    SV *path = option(aTHX_ options, "path");
    SV *expires = option(aTHX_ options, "expires");
    SV *max_age = option(aTHX_ options, "max-age");
    SV *same_site = option(aTHX_ options, "samesite");
    struct oribi_cookie cookie = {
        .secure = is_set(aTHX_ options, "secure"),
        .http_only = is_set(aTHX_ options, "httponly"),
        .partitioned = is_set(aTHX_ options, "partitioned"),
    };
    /* and none from here on. */
    struct oribi_slice value = octets(aTHX_ content, "value");
    cookie.name = octets(aTHX_ name, "name");
    cookie.values = &value;
    cookie.value_count = 1;
    cookie.domain = attribute(aTHX_ domain);
    cookie.path = attribute(aTHX_ path);
    cookie.expires = expires_of(aTHX_ expires, date);
    cookie.max_age = max_age ? bytes_of(aTHX_ max_age) : oribi_slice(NULL, 0);
    cookie.same_site = same_site_of(aTHX_ same_site);
    if (cookie.partitioned)
        cookie.same_site = ORIBI_SAME_SITE_NONE;
    if (cookie.same_site == ORIBI_SAME_SITE_NONE)
        cookie.secure = true; /* browsers refuse it otherwise */
    SV *text = baked(aTHX_ & cookie);
    ST(0) = text;
    XSRETURN(1);
}

void psgi_form_boot(pTHX)
{
    newXS("Oribi::Form::parse_urlencoded", parse_urlencoded, __FILE__);
    newXS("Oribi::Form::parse_urlencoded_arrayref", parse_urlencoded_arrayref, __FILE__);
    CvXSUBANY(newXS("Oribi::Form::build_urlencoded", build_urlencoded, __FILE__)).any_i32 = 0;
    CvXSUBANY(newXS("Oribi::Form::build_urlencoded_utf8", build_urlencoded, __FILE__)).any_i32 = 1;
    newXS("Oribi::Cookie::crush_cookie", crush_cookie, __FILE__);
    newXS("Oribi::Cookie::bake_cookie", bake_cookie, __FILE__);
}
