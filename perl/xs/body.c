/* Bodies that are handles or objects, and the writer of a streamed answer.
 *
 * A handle on a regular file whose bytes are what reading it would give goes out by sendfile(2), and so does an
 * object that names such a file with path(). Everything else is read record by record with getline(), $/ being a
 * reference to 65536. close() is owed to each body from the moment the response is looked at: psgi_body_keep() notes
 * it, psgi_body_close() pays. */
#include "xs/binding.h"

#include "oribi/http/status.h"

#include <perliol.h>
#include <unistd.h>

enum { RECORD_BYTES = 65536 };

static SV *method_of(pTHX_ SV *object, const char *name)
{
    if (!SvROK(object) || !SvOBJECT(SvRV(object)))
        return NULL;
    GV *gv = gv_fetchmethod_autoload(SvSTASH(SvRV(object)), name, FALSE);
    return gv && GvCV(gv) ? (SV *)GvCV(gv) : NULL;
}

/* The answer of the object's own can(). Perl code, which may die. */
static bool ask_can(pTHX_ SV *object, const char *name)
{
    dSP;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    EXTEND(SP, 2);
    PUSHs(object);
    mPUSHp(name, strlen(name));
    PUTBACK;
    (void)call_method("can", G_SCALAR);
    SPAGAIN;
    SV *said = POPs;
    bool can = SvTRUE(said);
    PUTBACK;
    FREETMPS;
    LEAVE;
    return can;
}

/* True for an object whose class has the method, or whose can() says so: Plack::Util::inline_object() makes bodies
 * that have nothing but can() and AUTOLOAD. Of a class that leaves can() as it is, AUTOLOAD alone counts only with
 * `by_autoload`. May die. */
static bool responds_to(pTHX_ SV *object, const char *name, bool by_autoload)
{
    if (method_of(aTHX_ object, name))
        return true;
    if (!SvROK(object) || !SvOBJECT(SvRV(object)))
        return false;
    if (method_of(aTHX_ object, "can") != (SV *)get_cv("UNIVERSAL::can", 0))
        return ask_can(aTHX_ object, name);
    return by_autoload && gv_fetchmethod_autoload(SvSTASH(SvRV(object)), name, TRUE);
}

static IO *io_of(SV *body)
{
    SV *sv = SvROK(body) ? SvRV(body) : body;
    if (isGV_with_GP(sv))
        return GvIO((GV *)sv);
    return SvTYPE(sv) == SVt_PVIO ? (IO *)sv : NULL;
}

/* --- close --- */

void psgi_body_keep(pTHX_ struct psgi_worker *w, SV *body)
{
    if (!SvROK(body) && !io_of(body))
        return;
    if (SvROK(body) && SvTYPE(SvRV(body)) == SVt_PVAV && !SvOBJECT(SvRV(body)))
        return;
    SvREFCNT_dec(w->open_body);
    w->open_body = newSVsv(body);
}

/* Oribi::Worker::_close(body): called inside an eval. */
XS_INTERNAL(psgi_xs_close);
XS_INTERNAL(psgi_xs_close)
{
    dXSARGS;
    PERL_UNUSED_VAR(items);
    SV *body = ST(0);
    SP -= 1;
    PUTBACK;
    if (io_of(body) || responds_to(aTHX_ body, "close", true)) {
        PUSHMARK(SP);
        XPUSHs(body);
        PUTBACK;
        call_method("close", G_VOID | G_DISCARD);
    }
    XSRETURN_EMPTY;
}

SV *psgi_body_closer(pTHX)
{
    return newRV_noinc((SV *)newXS(NULL, psgi_xs_close, __FILE__));
}

void psgi_body_close(pTHX_ struct psgi_worker *w)
{
    SV *body = w->open_body;
    w->open_body = NULL;
    if (!body)
        return;
    psgi_after(w);
    dSP;
    ENTER;
    SAVETMPS;
    PUSHMARK(SP);
    XPUSHs(body);
    PUTBACK;
    call_sv(w->close, G_VOID | G_DISCARD | G_EVAL);
    psgi_leave_child(aTHX_ w);
    if (SvROK(ERRSV) || SvCUR(ERRSV) > 0)
        psgi_log_failure(aTHX_ w, ORIBI_LOG_ERROR, "close of the body died");
    FREETMPS;
    LEAVE;
    SvREFCNT_dec(body);
}

/* --- files --- */

/* True if reading through the handle gives the file's bytes unchanged: no layer but Perl's own buffer and the
 * system's, no tie. */
static bool is_transparent(pTHX_ IO *io, PerlIO *fp)
{
    if (SvRMAGICAL((SV *)io) && mg_find((SV *)io, PERL_MAGIC_tiedscalar))
        return false;
    for (PerlIO *layer = fp; PerlIOValid(layer); layer = PerlIONext(layer)) {
        const char *name = PerlIOBase(layer)->tab->name;
        if (PerlIOBase(layer)->flags & (PERLIO_F_UTF8 | PERLIO_F_CRLF))
            return false;
        if (strcmp(name, "perlio") != 0 && strcmp(name, "unix") != 0 && strcmp(name, "stdio") != 0)
            return false;
    }
    return true;
}

/* A class that reads through a getline() of its own may give other bytes than its file descriptor. */
static bool has_own_getline(pTHX_ SV *body)
{
    SV *own = method_of(aTHX_ body, "getline");
    return own && own != (SV *)get_cv("IO::Handle::getline", 0);
}

static int sent_file(struct psgi_worker *w, int result)
{
    return result == 1 ? PSGI_SLOW : psgi_replied(w, result);
}

/* From where the handle stands. PSGI_SLOW: not a file of that kind. */
static int send_handle(pTHX_ struct psgi_worker *w, SV *body)
{
    IO *io = io_of(body);
    PerlIO *fp = io ? IoIFP(io) : NULL;
    if (!PerlIOValid(fp) || PerlIO_fileno(fp) < 0 || has_own_getline(aTHX_ body) || !is_transparent(aTHX_ io, fp))
        return PSGI_SLOW;
    Off_t offset = PerlIO_tell(fp);
    if (offset < 0)
        return PSGI_SLOW;
    int fd = PerlIO_fileno(fp);
    return sent_file(w, oribi_reply_rest_of_file(w->req, w->status, w->headers, w->header_count, fd, offset));
}

SV *psgi_body_path(pTHX_ SV *body)
{
    if (io_of(body) || !responds_to(aTHX_ body, "path", false))
        return NULL;
    dSP;
    PUSHMARK(SP);
    XPUSHs(body);
    PUTBACK;
    (void)call_method("path", G_SCALAR);
    SPAGAIN;
    SV *said = POPs;
    PUTBACK;
    said = psgi_settled(aTHX_ said);
    if (!SvOK(said))
        return NULL;
    STRLEN n;
    const char *p = SvPV_nomg(said, n);
    return newSVpvn_flags(p, n, SVs_TEMP);
}

/* --- streams --- */

int psgi_stream_begin(struct psgi_worker *w)
{
    int rc = oribi_reply_begin(w->req, w->status, w->headers, w->header_count, -1);
    if (rc != 0)
        return psgi_replied(w, rc);
    w->state = PSGI_STREAMING;
    return PSGI_DONE;
}

bool psgi_stream_write(pTHX_ struct psgi_worker *w, const char *p, STRLEN n)
{
    if (w->state != PSGI_STREAMING)
        return false;
    struct iovec iov = {(void *)p, n};
    UV serial = w->serial;
    psgi_socket_back(w);
    int rc = n > 0 ? oribi_reply_write(w->req, &iov, 1) : 0;
    while (rc == 1) {
        PERL_ASYNC_CHECK();
        if (w->state != PSGI_STREAMING || w->serial != serial)
            return true; /* a signal handler has used the writer, up to its end; these bytes were the core's before */
        if (psgi_wait_begin(aTHX_ psgi_wake_worker, w->core))
            rc = oribi_reply_wait(w->req);
        psgi_wait_end();
    }
    if (rc == 0)
        return true;
    if (rc == ORIBI_EAPP)
        croak("Oribi: the answer says Transfer-Encoding: chunked, but its body is not framed so");
    w->state = PSGI_GONE;
    return false;
}

void psgi_stream_end(struct psgi_worker *w)
{
    if (w->state == PSGI_STREAMING)
        (void)oribi_reply_end(w->req); /* a peer that left meanwhile is no news */
    else
        oribi_reply_abort(w->req);
    psgi_call_ended(w);
}

void psgi_detach(struct psgi_worker *w)
{
    int fd;
    struct oribi_slice rest;
    if (oribi_req_detach(w->req, &fd, &rest) == 0) {
        oribi_req_detached(w->req);
        (void)close(fd); /* the application holds its own duplicate, or wants the connection gone */
    }
    psgi_call_ended(w);
}

/* One record, NULL at the end. May die. */
static SV *getline_of(pTHX_ SV *body)
{
    dSP;
    PUSHMARK(SP);
    XPUSHs(body);
    PUTBACK;
    (void)call_method("getline", G_SCALAR);
    SPAGAIN;
    SV *record = POPs;
    PUTBACK;
    SvGETMAGIC(record);
    return SvOK(record) ? record : NULL;
}

/* Bytes of a record; dies for what is none. */
static const char *record_bytes(pTHX_ struct psgi_worker *w, SV *record, STRLEN *n, const char *what, IV index)
{
    const char *p = NULL;
    if (psgi_runs_code(record))
        record = psgi_settled(aTHX_ record);
    if (psgi_bytes(aTHX_ w, record, &p, n, what, index) != PSGI_DONE)
        croak("Oribi: %s", w->reason);
    return p;
}

/* local $/ = \65536, seen by Perl's readline and by objects that look at $/ alike. Until the caller's LEAVE. */
static void localize_record_size(pTHX)
{
    GV *gv = gv_fetchpvs("/", GV_ADD, SVt_PV);
    save_scalar(gv);
    sv_setsv_mg(GvSVn(gv), sv_2mortal(newRV_noinc(newSViv(RECORD_BYTES))));
}

static int send_records(pTHX_ struct psgi_worker *w, SV *body)
{
    ENTER;
    localize_record_size(aTHX);
    int rc = psgi_stream_begin(w);
    bool wanted =
        rc == PSGI_DONE && w->state == PSGI_STREAMING && !w->req->head->is_head && oribi_status_has_body(w->status);
    for (IV index = 0; wanted; index++) {
        ENTER;
        SAVETMPS;
        SV *record = getline_of(aTHX_ body);
        STRLEN n = 0;
        const char *p = record ? record_bytes(aTHX_ w, record, &n, "record", index) : NULL;
        wanted = record && psgi_stream_write(aTHX_ w, p, n);
        FREETMPS;
        LEAVE;
    }
    if (rc == PSGI_DONE && w->state != PSGI_NONE)
        psgi_stream_end(w);
    LEAVE;
    return rc;
}

bool psgi_body_reads(pTHX_ SV *body)
{
    bool is_array = SvROK(body) && SvTYPE(SvRV(body)) == SVt_PVAV;
    return io_of(body) || responds_to(aTHX_ body, "getline", !is_array);
}

int psgi_body_send(pTHX_ struct psgi_worker *w, SV *body, SV *path)
{
    int rc = send_handle(aTHX_ w, body);
    if (rc == PSGI_SLOW && path)
        rc = sent_file(w, oribi_reply_path(w->req, w->status, w->headers, w->header_count, SvPVX_const(path)));
    return rc == PSGI_SLOW ? send_records(aTHX_ w, body) : rc;
}

/* --- the writer --- */

XS_INTERNAL(psgi_xs_writer_write);
XS_INTERNAL(psgi_xs_writer_write)
{
    dXSARGS;
    if (items < 1 || items > 2)
        croak("Usage: $writer->write($bytes)");
    SV *bytes = items == 2 ? ST(1) : &PL_sv_undef; /* a filter around the writer may have had nothing to give */
    struct psgi_worker *w = SvROK(ST(0)) ? psgi_bound(aTHX_ SvRV(ST(0))) : NULL;
    if (!w)
        croak("Oribi: write to a closed writer");
    STRLEN n = 0;
    SvGETMAGIC(bytes);
    ENTER;
    const char *p = SvOK(bytes) ? record_bytes(aTHX_ w, bytes, &n, "write", w->write_count++) : NULL;
    bool sent = psgi_stream_write(aTHX_ w, p, n);
    LEAVE;
    if (!sent)
        croak("Oribi: the client closed the connection");
    XSRETURN_YES;
}

XS_INTERNAL(psgi_xs_writer_close);
XS_INTERNAL(psgi_xs_writer_close)
{
    dXSARGS;
    struct psgi_worker *w = items > 0 && SvROK(ST(0)) ? psgi_bound(aTHX_ SvRV(ST(0))) : NULL;
    if (w) {
        psgi_stream_end(w);
        psgi_after(w);
    }
    XSRETURN_EMPTY;
}

void psgi_writer_boot(pTHX)
{
    newXS("Oribi::Writer::write", psgi_xs_writer_write, __FILE__);
    newXS("Oribi::Writer::close", psgi_xs_writer_close, __FILE__);
}

SV *psgi_writer(pTHX_ struct psgi_worker *w)
{
    SV *object = newSV(0);
    psgi_bind(aTHX_ w, object);
    return sv_bless(newRV_noinc(object), gv_stashpvs("Oribi::Writer", GV_ADD));
}
