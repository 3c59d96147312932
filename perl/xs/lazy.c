/* Values of the environment that are made when the application first reads them, and closures that know which call
 * they belong to.
 *
 * psgix.io costs a descriptor and a handle object, psgix.informational, oribi.extend_deadline and oribi.gone? a
 * closure each; nearly no request uses any of them. Their scalars in the environment carry "get" magic: the first
 * read makes the value. Reading is not using, so a psgix.io that was looked at leaves the connection where it is:
 * the application's answer is sent as always. Since the core does not know what was said on the socket meanwhile,
 * the connection closes after it; not so when psgix.informational was read too, which is what code does that copies
 * or prints a whole environment. The connection leaves the core when a delayed response returns without having
 * called its responder. */
#include "xs/binding.h"

#include "oribi/base/os/os.h"

#include <fcntl.h>

struct lazy {
    struct psgi_worker *w; /* NULL: the worker has parted with the scalar, reading it gives undef */
    enum psgi_lazy_kind kind;
    bool made; /* the value is there, ours or what the application stored */
    U32 flags; /* of the scalar, as it was made */
};

/* Threads and forked children of the application have copies of our scalars; the worker is not theirs. */
static bool foreign(pTHX_ const struct psgi_worker *w)
{
    return w->interpreter != (void *)PERL_GET_THX || oribi_worker_abandoned(w->core);
}

/* --- psgix.io --- */

static const char *const socket_classes[] = {"IO::Socket", "IO::Socket::UNIX", "IO::Socket::INET", "IO::Socket::IP"};

static unsigned socket_class(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return 0;
    return address.ss_family == AF_UNIX ? 1 : address.ss_family == AF_INET6 ? 3 : 2;
}

/* Core modules since Perl 5.20, loaded only when wanted; asking each time would cost more than the handle. Dies if
 * that fails. */
static HV *socket_stash(pTHX_ struct psgi_worker *w, unsigned class)
{
    if (!(w->classes_loaded & 1U << class))
        load_module(PERL_LOADMOD_NOIMPORT, newSVpv(socket_classes[class], 0), NULL);
    w->classes_loaded |= 1U << class;
    return gv_stashpv(socket_classes[class], GV_ADD);
}

/* A duplicate of the connection's socket as a read-write handle; NULL if it cannot be had. Dies if the class cannot
 * be loaded. */
static SV *socket_handle(pTHX_ struct psgi_worker *w)
{
    oribi_thread_never_gone(oribi_thread(w->core, 0));
    oribi_req_lend_fd(w->req);
    HV *stash = socket_stash(aTHX_ w, socket_class(oribi_req_fd(w->req)));
    int fd = fcntl(oribi_req_fd(w->req), F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return NULL;
    GV *glob = (GV *)newSV(0);
    gv_init_pvn(glob, stash, "socket", 6, 0);
    IO *io = GvIOn(glob);
    IoTYPE(io) = IoTYPE_SOCKET;
    IoIFP(io) = PerlIO_fdopen(fd, "r");
    IoOFP(io) = PerlIO_fdopen(fd, "w");
    IoFLAGS(io) |= IOf_FLUSH;
    /* Reading must go on where the request ends. This holds for what reads through Perl's buffer; for sysread there
     * is oribi.unread. */
    struct oribi_slice behind = oribi_req_behind(w->req);
    if (behind.n > 0 && IoIFP(io))
        (void)PerlIO_unread(IoIFP(io), behind.p, behind.n);
    return sv_bless(newRV_noinc((SV *)glob), stash);
}

void psgi_socket_back(struct psgi_worker *w)
{
    if (LIKELY(!w->looked_at[PSGI_LAZY_IO]))
        return;
    if (!w->looked_at[PSGI_LAZY_INFORMATIONAL])
        oribi_req_close_after(w->req);
    (void)oribi_os_set_nonblock(oribi_req_fd(w->req), true); /* fails only for a socket that is gone */
}

/* --- psgix.informational --- */

XS_INTERNAL(psgi_xs_inform);
XS_INTERNAL(psgi_xs_inform)
{
    dXSARGS;
    if (items != 2)
        croak("Usage: $env->{'psgix.informational'}->($status, \\@headers)");
    struct psgi_worker *w = psgi_bound(aTHX_(SV *) cv);
    if (!w || w->state != PSGI_OPEN)
        XSRETURN_EMPTY; /* the final answer has begun: an interim one has no place any more */
    if (psgi_reply_headers(aTHX_ w, ST(0), ST(1)) != PSGI_DONE)
        croak("Oribi: psgix.informational: %s", w->reason);
    int rc = oribi_req_inform(w->req, w->status, w->headers, w->header_count);
    if (rc == ORIBI_EAPP)
        croak("Oribi: psgix.informational: status %d or its headers cannot be sent", w->status);
    XSRETURN_EMPTY;
}

/* --- oribi.extend_deadline --- */

XS_INTERNAL(psgi_xs_extend);
XS_INTERNAL(psgi_xs_extend)
{
    dXSARGS;
    if (items != 1)
        croak("Usage: $env->{'oribi.extend_deadline'}->($seconds)");
    int64_t ms = oribi_extension_ms((double)SvNV(ST(0)));
    if (ms < 0)
        croak("Oribi: a deadline is extended by more than 0 and at most %d seconds", ORIBI_EXTENSION_S_MAX);
    struct psgi_worker *w = psgi_bound_running(aTHX_(SV *) cv);
    if (w)
        oribi_thread_extend_deadline(oribi_thread(w->core, 0), ms);
    XSRETURN_EMPTY;
}

/* --- oribi.gone? --- */

XS_INTERNAL(psgi_xs_gone);
XS_INTERNAL(psgi_xs_gone)
{
    dXSARGS;
    PERL_UNUSED_VAR(items);
    const struct psgi_worker *w = psgi_bound(aTHX_(SV *) cv);
    bool gone = w && (w->state == PSGI_GONE || oribi_req_gone(w->req));
    ST(0) = boolSV(gone);
    XSRETURN(1);
}

/* --- the magic --- */

static SV *closure(pTHX_ struct psgi_worker *w, XSUBADDR_t code)
{
    CV *cv = newXS(NULL, code, __FILE__);
    psgi_bind(aTHX_ w, (SV *)cv);
    return newRV_noinc((SV *)cv);
}

static SV *make(pTHX_ struct psgi_worker *w, enum psgi_lazy_kind kind)
{
    if (kind == PSGI_LAZY_IO)
        return socket_handle(aTHX_ w);
    return closure(aTHX_ w, kind == PSGI_LAZY_EXTEND ? psgi_xs_extend
                            : kind == PSGI_LAZY_GONE ? psgi_xs_gone
                                                     : psgi_xs_inform);
}

static struct lazy *lazy_in(const MAGIC *mg)
{
    return (struct lazy *)SvPVX(mg->mg_obj);
}

static int lazy_get(pTHX_ SV *sv, MAGIC *mg)
{
    struct lazy *lazy = lazy_in(mg);
    struct psgi_worker *w = lazy->w;
    bool lasts = lazy->kind == PSGI_LAZY_EXTEND || lazy->kind == PSGI_LAZY_GONE; /* once the answer has begun */
    if (lazy->made || !w || foreign(aTHX_ w) || (w->state != PSGI_OPEN && !lasts))
        return 0;
    lazy->made = true; /* before anything that reads the scalar again */
    SV *value = make(aTHX_ w, lazy->kind);
    w->looked_at[lazy->kind] = true;
    if (value)
        sv_setsv(sv, sv_2mortal(value));
    return 0;
}

static int lazy_set(pTHX_ SV *sv, MAGIC *mg)
{
    PERL_UNUSED_ARG(sv);
    lazy_in(mg)->made = true;
    return 0;
}

static const MGVTBL lazy_vtbl = {lazy_get, lazy_set, NULL, NULL, NULL, NULL, NULL, NULL};

static struct lazy *lazy_of(pTHX_ SV *sv)
{
    MAGIC *mg = SvTYPE(sv) >= SVt_PVMG ? mg_findext(sv, PERL_MAGIC_ext, &lazy_vtbl) : NULL;
    return mg ? lazy_in(mg) : NULL;
}

/* The state stands in a scalar of its own: `local` copies the magic to a second scalar, and both must see the same. */
SV *psgi_lazy_new(pTHX_ struct psgi_worker *w, enum psgi_lazy_kind kind)
{
    struct lazy lazy = {w, kind, false, 0};
    SV *state = newSVpvn((const char *)&lazy, sizeof lazy);
    SV *sv = newSV(0);
    sv_magicext(sv, state, PERL_MAGIC_ext, &lazy_vtbl, NULL, 0);
    ((struct lazy *)SvPVX(state))->flags = SvFLAGS(sv);
    SvREFCNT_dec(state);
    return sv;
}

void psgi_lazy_part(pTHX_ SV *sv)
{
    struct lazy *lazy = sv ? lazy_of(aTHX_ sv) : NULL;
    if (lazy)
        lazy->w = NULL;
    SvREFCNT_dec(sv);
}

bool psgi_lazy_fresh(const SV *sv)
{
    MAGIC *mg = SvREFCNT(sv) == 1 && SvTYPE(sv) == SVt_PVMG ? SvMAGIC(sv) : NULL;
    if (!mg || mg->mg_virtual != &lazy_vtbl || mg->mg_moremagic)
        return false;
    const struct lazy *lazy = lazy_in(mg);
    return !lazy->made && SvFLAGS(sv) == lazy->flags;
}

/* --- closures and their call --- */

static const MGVTBL bound_vtbl = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};

void psgi_bind(pTHX_ struct psgi_worker *w, SV *sv)
{
    /* The object keeps the worker's scalar alive; length 0 stores the serial in the pointer's place. */
    sv_magicext(sv, w->self, PERL_MAGIC_ext, &bound_vtbl, INT2PTR(char *, w->serial), 0);
}

struct psgi_worker *psgi_bound_running(pTHX_ SV *sv)
{
    MAGIC *mg = SvTYPE(sv) >= SVt_PVMG ? mg_findext(sv, PERL_MAGIC_ext, &bound_vtbl) : NULL;
    if (!mg || !SvIOK(mg->mg_obj))
        return NULL;
    struct psgi_worker *w = INT2PTR(struct psgi_worker *, SvIVX(mg->mg_obj));
    if (!w || foreign(aTHX_ w) || w->serial != PTR2UV(mg->mg_ptr))
        return NULL;
    return w;
}

struct psgi_worker *psgi_bound(pTHX_ SV *sv)
{
    struct psgi_worker *w = psgi_bound_running(aTHX_ sv);
    return w && w->state != PSGI_NONE ? w : NULL;
}
