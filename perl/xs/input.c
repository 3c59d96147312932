/* psgi.input of a request with a body: a handle on the core's unlinked file, or on the core's memory. The handle in
 * memory reads a scalar whose bytes are the core's, so that nothing is copied before the application reads, and a
 * parser of whole bodies finds them there: psgi_input_lies(). The bytes end with the request. Before its answer the
 * scalar gets a copy where the application can still reach it, else it becomes empty: psgi_input_settle().
 *
 * A thread of the application's has clones of scalars, and outlives the request: magic of the scalar gives the clone a
 * copy. */
#include "xs/binding.h"

#include <fcntl.h>
#include <perliol.h>
#include <sys/stat.h>

static void own_bytes(pTHX_ SV *data, const char *p, STRLEN n)
{
    SvPV_set(data, savepvn(p, n));
    SvCUR_set(data, n);
    SvLEN_set(data, n + 1);
}

/* mg_obj is the clone of the scalar that has this magic. */
static int clone_bytes(pTHX_ MAGIC *mg, CLONE_PARAMS *params)
{
    PERL_UNUSED_ARG(params);
    SV *data = mg->mg_obj;
    if (data && SvLEN(data) == 0)
        own_bytes(aTHX_ data, SvPVX(data), SvCUR(data));
    return 0;
}

static const MGVTBL body_magic = {.svt_dup = clone_bytes};

/* --- the handle --- */

GV *psgi_input_handle(pTHX_ PerlIO *fp)
{
    if (!fp)
        return NULL;
    GV *glob = (GV *)newSV(0); /* without a name in any package, as `open my $handle` makes them */
    gv_init_pvn(glob, gv_stashpvs("Oribi::Input", GV_ADD), "input", 5, 0);
    IO *io = GvIOn(glob);
    IoTYPE(io) = IoTYPE_RDONLY;
    IoIFP(io) = fp;
    return glob;
}

GV *psgi_input_on_string(pTHX_ SV *data)
{
    SV *ref = newRV_inc(data);
    PerlIO *fp = PerlIO_openn(aTHX_ NULL, "r", -1, 0, 0, NULL, 1, &ref);
    SvREFCNT_dec(ref);
    return psgi_input_handle(aTHX_ fp);
}

/* On the core's unlinked file, which stands at 0. The application may keep it longer than the request lives. */
static GV *on_file(pTHX_ int fd)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return NULL;
    return psgi_input_handle(aTHX_ PerlIO_fdopen(copy, "r"));
}

/* A scalar whose bytes it does not own: Perl neither frees them nor lets others share them. */
static SV *lying_bytes(pTHX_ struct oribi_slice bytes)
{
    SV *data = newSV_type(SVt_PVMG);
    SvPV_set(data, (char *)bytes.p);
    SvCUR_set(data, bytes.n);
    SvLEN_set(data, 0);
    SvPOK_only(data);
    SvREADONLY_on(data);
    MAGIC *mg = sv_magicext(data, data, PERL_MAGIC_ext, &body_magic, NULL, 0);
    mg->mg_flags |= MGf_DUP;
    return data;
}

/* A handle that is tied to an Oribi::PartedInput, which knows the call. */
static GV *on_parts(pTHX_ struct psgi_worker *w)
{
    GV *glob = (GV *)newSV(0);
    HV *self = newHV();
    SV *object = sv_bless(newRV_noinc((SV *)self), gv_stashpvs("Oribi::PartedInput", GV_ADD));
    psgi_bind(aTHX_ w, (SV *)self);
    gv_init_pvn(glob, gv_stashpvs("Oribi::Input", GV_ADD), "input", 5, 0);
    sv_magic((SV *)GvIOn(glob), object, PERL_MAGIC_tiedscalar, NULL, 0);
    SvREFCNT_dec(object);
    return glob;
}

struct psgi_worker *psgi_input_worker(pTHX_ SV *object)
{
    struct psgi_worker *w = SvROK(object) ? psgi_bound(aTHX_ SvRV(object)) : NULL;
    return w && w->req ? w : NULL;
}

struct oribi_req *psgi_input_parts(pTHX_ SV *object)
{
    struct psgi_worker *w = psgi_input_worker(aTHX_ object);
    return w && w->req->parted ? w->req : NULL;
}

/* While a parser reads the parts, they stay: code that runs meanwhile gets a copy. */
int psgi_input_join(pTHX_ SV *object)
{
    struct psgi_worker *w = psgi_input_worker(aTHX_ object);
    int fd = -1;
    if (!w)
        return -1;
    if (w->req->parted && w->input.feeding)
        return oribi_req_copy_body(w->req, &fd) < 0 ? -1 : fd;
    return oribi_req_join(w->req) < 0 ? -1 : fcntl(w->req->body_fd, F_DUPFD_CLOEXEC, 3);
}

SV *psgi_input_new(pTHX_ struct psgi_worker *w, const struct oribi_req *req)
{
    GV *glob;
    if (req->parted) {
        glob = on_parts(aTHX_ w);
    } else if (req->body_fd >= 0) {
        glob = on_file(aTHX_ req->body_fd);
    } else {
        SV *data = lying_bytes(aTHX_ req->body);
        glob = psgi_input_on_string(aTHX_ data);
        w->input.data = data;
        w->input.glob = (GV *)SvREFCNT_inc((SV *)glob);
    }
    w->input.error = glob ? 0 : errno;
    return glob ? newRV_noinc((SV *)glob) : newSV(0);
}

/* Can the application reach the bytes when its environment is gone? Our own references count, and the handle's. */
static bool is_kept(const struct psgi_worker *w)
{
    GV *glob = w->input.glob;
    if (!glob || SvREFCNT(glob) > 2 || SvREFCNT(w->input.data) > 2)
        return SvREFCNT(w->input.data) > 1;
    return !isGV_with_GP(glob) || GvREFCNT(glob) > 1 || (GvIOp(glob) && SvREFCNT(GvIOp(glob)) > 1);
}

void psgi_input_settle(pTHX_ struct psgi_worker *w, bool keeps)
{
    SV *data = w->input.data;
    if (LIKELY(!data))
        return;
    if (keeps || is_kept(w)) {
        own_bytes(aTHX_ data, SvPVX(data), SvCUR(data));
    } else {
        SvPV_set(data, (char *)"");
        SvCUR_set(data, 0);
    }
    w->input.data = NULL;
    SvREFCNT_dec((SV *)w->input.glob);
    SvREFCNT_dec(data);
}

/* No code of the application's runs before the request ends, nor afterwards with its environment. */
static bool is_last_of_it(pTHX_ struct psgi_worker *w, SV *env, SV *res)
{
    HV *hash = (HV *)SvRV(env);
    if (SvREFCNT(hash) > 1 || SvRMAGICAL((SV *)hash) || !SvROK(res) || SvTYPE(SvRV(res)) != SVt_PVAV)
        return false;
    SV **body = SvRMAGICAL(SvRV(res)) ? NULL : av_fetch((AV *)SvRV(res), 2, 0);
    if (!body || !SvROK(*body) || SvOBJECT(SvRV(*body)) || SvTYPE(SvRV(*body)) != SVt_PVAV)
        return false;
    SV *handlers = psgi_env_get(aTHX_ w, hash, PSGI_KEY_CLEANUP_HANDLERS);
    return handlers && SvROK(handlers) && SvTYPE(SvRV(handlers)) == SVt_PVAV && !SvRMAGICAL(SvRV(handlers)) &&
           av_len((AV *)SvRV(handlers)) < 0;
}

void psgi_input_answered(pTHX_ struct psgi_worker *w, SV *env, SV *res)
{
    if (UNLIKELY(w->input.data))
        psgi_input_settle(aTHX_ w, !is_last_of_it(aTHX_ w, env, res));
}

/* --- for parsers --- */

static PerlIO *plain_layer(pTHX_ SV *input, const char *name)
{
    SV *glob = SvROK(input) ? SvRV(input) : input;
    IO *io = isGV_with_GP(glob) ? GvIO((GV *)glob) : NULL;
    PerlIO *fp = io && !SvRMAGICAL((SV *)io) ? IoIFP(io) : NULL;
    if (!PerlIOValid(fp) || (PerlIOBase(fp)->flags & (PERLIO_F_UTF8 | PERLIO_F_CRLF)))
        return NULL;
    return strcmp(PerlIOBase(fp)->tab->name, name) == 0 ? fp : NULL;
}

bool psgi_input_is_ours(pTHX_ SV *data)
{
    return SvTYPE(data) >= SVt_PVMG && mg_findext(data, PERL_MAGIC_ext, &body_magic);
}

bool psgi_input_is_plain(SV *data)
{
    return SvPOK(data) && !SvUTF8(data) && !SvROK(data) && !SvMAGICAL(data) && SvCUR(data) > 0;
}

SV *psgi_input_lies(pTHX_ SV *input)
{
    PerlIO *fp = plain_layer(aTHX_ input, "scalar");
    if (!fp)
        return NULL;
    SV *ref = PerlIOBase(fp)->tab->Getarg(aTHX_ fp, NULL, 0);
    if (!ref)
        return NULL;
    sv_2mortal(ref);
    return SvROK(ref) && (psgi_input_is_ours(aTHX_ SvRV(ref)) || psgi_input_is_plain(SvRV(ref))) ? ref : NULL;
}

int psgi_input_file(pTHX_ SV *input)
{
    struct stat status;
    PerlIO *fp = plain_layer(aTHX_ input, "perlio");
    PerlIO *below = fp ? PerlIONext(fp) : NULL;
    if (!PerlIOValid(below) || strcmp(PerlIOBase(below)->tab->name, "unix") != 0)
        return -1;
    int fd = PerlIO_fileno(fp);
    return fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? fd : -1;
}
