/* A response becomes a reply.
 *
 *   [status, headers, [strings]]      plain: no Perl code needed, one call of the core
 *   the same with ties or overloading copied to plain scalars first (any)
 *   [status, headers, handle]         body.c
 *   code                              delayed: called with a responder, see below
 *
 * Strings go to the core as they lie in Perl's memory. A string with Perl's UTF-8 flag is converted to bytes; one
 * with a character above 255 is the application's mistake. What a response may not be is said in words in w->reason. */
#include "xs/binding.h"

static int bad(struct psgi_worker *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int bad(struct psgi_worker *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(w->reason, sizeof w->reason, format, args);
    va_end(args);
    return PSGI_BAD;
}

/* --- scalars --- */

static int bytes_of_utf8(pTHX_ struct psgi_worker *w, const char **p, STRLEN *n, const char *what, IV index)
{
    bool is_utf8 = true;
    U8 *bytes = bytes_from_utf8((const U8 *)*p, n, &is_utf8);
    if (is_utf8)
        return bad(w, "wide character in %s %" IVdf ": encode text before it leaves the application", what, index);
    SAVEFREEPV(bytes);
    *p = (const char *)bytes;
    return PSGI_DONE;
}

SV *psgi_settled(pTHX_ SV *sv)
{
    SV *copy = sv_mortalcopy(sv);
    if (!SvROK(copy) || !SvAMAGIC(copy))
        return copy;
    STRLEN n;
    const char *p = SvPV(copy, n);
    SV *text = newSVpvn_flags(p, n, SVs_TEMP);
    if (SvUTF8(copy))
        SvUTF8_on(text);
    return text;
}

int psgi_bytes(pTHX_ struct psgi_worker *w, SV *sv, const char **p, STRLEN *n, const char *what, IV index)
{
    if (psgi_runs_code(sv))
        return PSGI_SLOW;
    if (SvROK(sv))
        return bad(w, "%s %" IVdf " is a reference (%s)", what, index, sv_reftype(SvRV(sv), 1));
    *p = NULL;
    *n = 0;
    if (!SvOK(sv))
        return PSGI_DONE;
    *p = SvPV_nomg(sv, *n);
    return SvUTF8(sv) ? bytes_of_utf8(aTHX_ w, p, n, what, index) : PSGI_DONE;
}

/* An integer, or text that looks like one or begins with one: "200 OK". */
static int take_status(pTHX_ struct psgi_worker *w, SV *sv)
{
    if (psgi_runs_code(sv))
        return PSGI_SLOW;
    if (SvIOK(sv) && SvIVX(sv) >= 100 && SvIVX(sv) <= 999) {
        w->status = (int)SvIVX(sv);
        return PSGI_DONE;
    }
    if (!SvOK(sv))
        return bad(w, "the status is undefined");
    if (!SvROK(sv) && looks_like_number(sv) && SvNV(sv) == (NV)(IV)SvNV(sv) && SvIV(sv) >= 100 && SvIV(sv) <= 999) {
        w->status = (int)SvIV(sv);
        return PSGI_DONE;
    }
    STRLEN n = 0;
    const char *p = SvROK(sv) ? "a reference" : SvPV(sv, n);
    w->status = oribi_req_read_status(w->req, oribi_slice(p, n));
    return w->status < 0 ? bad(w, "the status is no integer from 100 to 999: '%.40s'", p) : PSGI_DONE;
}

/* --- arrays --- */

/* The array behind `sv` if it can be read without running Perl code; *rc says why not. */
static AV *plain_array(SV *sv, int *rc)
{
    *rc = PSGI_BAD;
    if (SvGMAGICAL(sv) && psgi_runs_code(sv)) {
        *rc = PSGI_SLOW;
        return NULL;
    }
    if (!SvROK(sv) || SvTYPE(SvRV(sv)) != SVt_PVAV)
        return NULL;
    if (SvRMAGICAL(SvRV(sv))) {
        *rc = PSGI_SLOW;
        return NULL;
    }
    *rc = PSGI_DONE;
    return (AV *)SvRV(sv);
}

/* A mortal reference to a copy of the array behind `sv`, with settled values. Runs Perl code, which may let go of the
 * array or change it. `sv` itself if it is none. */
static SV *copied_array(pTHX_ SV *sv)
{
    sv = sv_mortalcopy(sv); /* holds the array */
    if (!SvROK(sv) || SvTYPE(SvRV(sv)) != SVt_PVAV)
        return sv;
    AV *from = (AV *)SvRV(sv);
    AV *to = newAV();
    SV *ref = sv_2mortal(newRV_noinc((SV *)to));
    for (SSize_t i = 0; i <= av_len(from); i++) {
        SV **slot = av_fetch(from, i, 0);
        SV *settled = slot ? psgi_settled(aTHX_ * slot) : sv_newmortal();
        av_push(to, SvREFCNT_inc_simple_NN(settled));
    }
    return ref;
}

static SV *item(pTHX_ AV *av, SSize_t i)
{
    SV *sv = AvARRAY(av)[i];
    return sv ? sv : &PL_sv_undef;
}

static int take_header(pTHX_ struct psgi_worker *w, AV *av, SSize_t i)
{
    struct oribi_header *header = &w->headers[i / 2];
    const char *p;
    STRLEN n;
    int rc = psgi_bytes(aTHX_ w, item(aTHX_ av, i), &p, &n, "header name", i / 2);
    if (rc != PSGI_DONE)
        return rc;
    if (!p || n > UINT32_MAX)
        return bad(w, "header name %d is undefined", (int)(i / 2));
    header->name = p;
    header->name_len = (uint32_t)n;
    rc = psgi_bytes(aTHX_ w, item(aTHX_ av, i + 1), &p, &n, "header value", i / 2);
    if (rc != PSGI_DONE)
        return rc;
    if (n > UINT32_MAX)
        return bad(w, "the value of header %.64s is too long", header->name);
    header->value = p; /* NULL: undefined, which the core knows what to do with */
    header->value_len = (uint32_t)n;
    return PSGI_DONE;
}

static int take_headers(pTHX_ struct psgi_worker *w, SV *sv)
{
    int rc;
    AV *av = plain_array(sv, &rc);
    if (!av)
        return rc == PSGI_SLOW ? rc : bad(w, "the headers are no array reference");
    SSize_t len = AvFILLp(av) + 1;
    if (len % 2)
        return bad(w, "the headers have an odd number of elements (%d)", (int)len);
    if (len / 2 > ORIBI_RESPONSE_FIELDS_MAX)
        return bad(w, "more than %d headers", ORIBI_RESPONSE_FIELDS_MAX);
    if ((size_t)(len / 2) > w->headers_cap) {
        Renew(w->headers, (size_t)(len / 2) + 16, struct oribi_header);
        w->headers_cap = (size_t)(len / 2) + 16;
    }
    for (SSize_t i = 0; i < len; i += 2) {
        rc = take_header(aTHX_ w, av, i);
        if (rc != PSGI_DONE)
            return rc;
    }
    w->header_count = (uint32_t)(len / 2);
    return PSGI_DONE;
}

/* Undefined and empty elements are skipped, "0" is not. */
static int take_strings(pTHX_ struct psgi_worker *w, AV *av)
{
    SSize_t len = AvFILLp(av) + 1;
    if ((size_t)len > w->iov_cap) {
        Renew(w->iov, (size_t)len + 16, struct iovec);
        w->iov_cap = (size_t)len + 16;
    }
    w->iov_count = 0;
    for (SSize_t i = 0; i < len; i++) {
        const char *p;
        STRLEN n;
        int rc = psgi_bytes(aTHX_ w, item(aTHX_ av, i), &p, &n, "body element", i);
        if (rc != PSGI_DONE)
            return rc;
        if (n > 0)
            w->iov[w->iov_count++] = (struct iovec){(void *)p, n};
    }
    return PSGI_DONE;
}

/* --- replies --- */

int psgi_replied(struct psgi_worker *w, int result)
{
    if (result == ORIBI_EAPP) {
        w->reason[0] = '\0'; /* the core has said why */
        return PSGI_BAD;
    }
    psgi_call_ended(w);
    return PSGI_DONE;
}

/* A header that names a file, where the options allow it. PSGI_SLOW: none does. */
static int reply_named(struct psgi_worker *w)
{
    if (LIKELY(!w->sendfile))
        return PSGI_SLOW;
    int result = oribi_reply_named(w->req, w->status, w->headers, w->header_count);
    return result == 1 ? PSGI_SLOW : psgi_replied(w, result);
}

static bool is_array(SV *body)
{
    return SvROK(body) && SvTYPE(SvRV(body)) == SVt_PVAV;
}

static int reply_strings(pTHX_ struct psgi_worker *w, SV *body)
{
    int rc;
    AV *av = plain_array(body, &rc);
    if (!av)
        return rc;
    rc = take_strings(aTHX_ w, av);
    if (rc != PSGI_DONE)
        return rc;
    return psgi_replied(w, oribi_reply(w->req, w->status, w->headers, w->header_count, w->iov, w->iov_count));
}

int psgi_reply_plain(pTHX_ struct psgi_worker *w, SV *res)
{
    int rc;
    AV *av = plain_array(res, &rc);
    if (!av || AvFILLp(av) != 2)
        return PSGI_SLOW; /* code, or a mistake */
    SV *body = item(aTHX_ av, 2);
    if (!is_array(body) || SvGMAGICAL(body) || SvOBJECT(SvRV(body)))
        return PSGI_SLOW;
    rc = take_status(aTHX_ w, item(aTHX_ av, 0));
    if (rc == PSGI_DONE)
        rc = take_headers(aTHX_ w, item(aTHX_ av, 1));
    if (rc != PSGI_DONE)
        return rc;
    rc = reply_named(w);
    return rc == PSGI_SLOW ? reply_strings(aTHX_ w, body) : rc;
}

int psgi_reply_headers(pTHX_ struct psgi_worker *w, SV *status, SV *headers)
{
    headers = sv_mortalcopy(headers); /* holds the array while code of the status runs */
    status = psgi_settled(aTHX_ status);
    int rc = take_headers(aTHX_ w, headers);
    if (rc == PSGI_SLOW)
        rc = take_headers(aTHX_ w, copied_array(aTHX_ headers));
    return rc == PSGI_DONE ? take_status(aTHX_ w, status) : rc;
}

/* A mortal copy: what reads or prints the others may let go of this one. */
static SV *element(pTHX_ AV *av, SSize_t i)
{
    SV **slot = av_fetch(av, i, 0);
    return slot ? sv_mortalcopy(*slot) : &PL_sv_undef;
}

/* The array itself if it can be read without running Perl code, else a copy. */
static SV *settled_array(pTHX_ struct psgi_worker *w, SV *body)
{
    int rc;
    AV *av = plain_array(body, &rc);
    if (av)
        rc = take_strings(aTHX_ w, av);
    return rc == PSGI_SLOW ? copied_array(aTHX_ body) : body;
}

/* [status, headers, body], or with `streaming` also [status, headers], which begins a stream.
 *
 * What the body says by Perl code is asked before the headers are looked at: that code may change the strings that
 * they point to, or send an interim answer, whose headers are converted in the same place. */
static int reply_array(pTHX_ struct psgi_worker *w, AV *av, bool streaming)
{
    sv_2mortal(SvREFCNT_inc_simple_NN((SV *)av));
    SSize_t len = av_len(av) + 1;
    if (len != 3 && !(streaming && len == 2))
        return bad(w, "the response has %d elements, not 3", (int)len);
    SV *status = element(aTHX_ av, 0);
    SV *headers = element(aTHX_ av, 1);
    SV *body = len == 3 ? element(aTHX_ av, 2) : NULL;
    SV *path = NULL;
    if (body)
        psgi_body_keep(aTHX_ w, body); /* before anything can go wrong */
    bool reads = body && psgi_body_reads(aTHX_ body);
    bool strings = body && !reads && is_array(body);
    if (body && !reads && !strings)
        return bad(w, "the body is neither an array reference nor a handle, nor has it a getline method");
    if (strings)
        body = settled_array(aTHX_ w, body);
    else if (body)
        path = psgi_body_path(aTHX_ body);
    int rc = psgi_reply_headers(aTHX_ w, status, headers);
    if (rc != PSGI_DONE)
        return rc;
    rc = reply_named(w);
    if (rc != PSGI_SLOW)
        return rc;
    if (!body)
        return psgi_stream_begin(w);
    if (!strings)
        return psgi_body_send(aTHX_ w, body, path);
    rc = reply_strings(aTHX_ w, body);
    return rc == PSGI_SLOW ? bad(w, "the headers have changed the body while they were read") : rc;
}

/* --- delayed answers --- */

XS_INTERNAL(psgi_xs_respond);
XS_INTERNAL(psgi_xs_respond)
{
    dXSARGS;
    struct psgi_worker *w = psgi_bound(aTHX_(SV *) cv);
    if (!w)
        croak("Oribi: this responder's request has ended");
    if (w->responded)
        croak("Oribi: the responder was called twice");
    w->responded = true;
    SV *res = items > 0 ? ST(0) : &PL_sv_undef;
    SvGETMAGIC(res);
    if (!SvROK(res) || SvTYPE(SvRV(res)) != SVt_PVAV)
        croak("Oribi: the responder wants an array reference");
    psgi_socket_back(w);
    if (reply_array(aTHX_ w, (AV *)SvRV(res), true) != PSGI_DONE)
        croak("Oribi: bad response%s%s", w->reason[0] ? ": " : "", w->reason);
    if (w->state == PSGI_NONE) {
        psgi_after(w);
        XSRETURN_EMPTY;
    }
    ST(0) = sv_2mortal(psgi_writer(aTHX_ w));
    sv_setsv(w->writer, ST(0));
    XSRETURN(1);
}

/* Is more of the body to be expected? It died under an eval of the application, or somebody beside us holds the writer.
 * A client would take what was sent so far for the whole. */
static bool is_cut_short(const struct psgi_worker *w)
{
    return (!SvROK(w->writer) || SvREFCNT(SvRV(w->writer)) > 1) && !w->req->head->is_head &&
           oribi_status_has_body(w->status);
}

/* Calls the application's second half. When it returns, the answer must have been given: this process has nothing
 * that would call it again. */
static int reply_delayed(pTHX_ struct psgi_worker *w, SV *code)
{
    dSP;
    CV *responder = newXS(NULL, psgi_xs_respond, __FILE__);
    SV *ref = sv_2mortal(newRV_noinc((SV *)responder));
    psgi_bind(aTHX_ w, (SV *)responder);
    if (!w->writer)
        w->writer = newSV(0);
    sv_setsv(w->writer, &PL_sv_undef);
    PUSHMARK(SP);
    XPUSHs(ref);
    PUTBACK;
    call_sv(code, G_VOID | G_DISCARD);
    if (w->state == PSGI_STREAMING && is_cut_short(w))
        return bad(w, SvROK(w->writer) ? "the writer was kept and not closed" : "its body has died");
    if (w->state == PSGI_STREAMING || w->state == PSGI_GONE) {
        psgi_stream_end(w);
        return PSGI_DONE;
    }
    if (w->state == PSGI_NONE)
        return PSGI_DONE;
    if (w->looked_at[PSGI_LAZY_IO]) {
        psgi_detach(w);
        return PSGI_DONE;
    }
    return bad(w, "the delayed response returned without calling its responder");
}

/* Code, or an object that can be called as such. */
static bool is_code(pTHX_ SV *res)
{
    if (!SvROK(res))
        return false;
    return SvTYPE(SvRV(res)) == SVt_PVCV || (SvOBJECT(SvRV(res)) && gv_fetchmeth(SvSTASH(SvRV(res)), "(&{}", 4, 0));
}

int psgi_reply_any(pTHX_ struct psgi_worker *w, SV *res)
{
    SvGETMAGIC(res);
    if (SvROK(res) && SvTYPE(SvRV(res)) == SVt_PVAV)
        return reply_array(aTHX_ w, (AV *)SvRV(res), false);
    if (is_code(aTHX_ res))
        return reply_delayed(aTHX_ w, res);
    if (!SvOK(res))
        return bad(w, "the application returned nothing");
    if (SvROK(res))
        return bad(w, "the response is a reference to %s, neither an array nor code", sv_reftype(SvRV(res), 1));
    return bad(w, "the response is no reference");
}
