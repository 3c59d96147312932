/* Values that are lent to one environment after the other, because making them anew would cost more than the rest of
 * a small request: the psgi.input without a body, psgi.errors, the arrays of psgi.version and
 * psgix.cleanup.handlers, and the three scalars of lazy.c.
 *
 * Applications may do with them what Perl lets them do: bless, tie, reopen, write to a glob's other slots, keep a
 * reference, even a weak one. So nothing is lent twice that is not exactly as it was made, with no reference to it
 * but ours; else it is made anew. What "as it was made" means is compared, not listed: a copy of a glob's and of a
 * handle's body is kept.
 *
 * psgi.errors has a glob of its own with STDERR's handle in it. The handle is the process's: to close it or to give
 * it a layer is a thing that an application does to its process, here as under other servers. */
#include "xs/binding.h"

#include <perliol.h>

/* --- globs --- */

/* A glob without a name in any package, as `open my $handle` makes them. */
static GV *new_glob(pTHX_ HV *stash, const char *name)
{
    GV *glob = (GV *)newSV(0);
    gv_init_pvn(glob, stash, name, strlen(name), 0);
    return glob;
}

static void note_glob(struct psgi_glob *kept, GV *glob)
{
    kept->glob = glob;
    kept->flags = SvFLAGS(glob);
    memcpy(&kept->body, GvGP(glob), sizeof kept->body); /* with its padding, since bytes are compared */
}

/* The body holds the slots and how many globs share it. A weak reference to a glob is magic of it. */
static inline bool glob_is_as_made(const struct psgi_glob *kept)
{
    return SvREFCNT(kept->glob) == 1 && SvFLAGS(kept->glob) == kept->flags && !SvMAGIC(kept->glob) &&
           memcmp(GvGP(kept->glob), &kept->body, sizeof kept->body) == 0;
}

/* --- psgi.input --- */

/* The empty string is ours as well. Nothing but the handle's layer has another reference to it, so that the count
 * tells whether that layer is still
 * there: an address alone does not, since another layer may have been allocated in its place. */
static void open_empty_input(pTHX_ struct psgi_input *input)
{
    SV *data = newSVpvs("");
    SvREADONLY_on(data);
    GV *glob = psgi_input_on_string(aTHX_ data);
    if (!glob)
        croak("Oribi: no in-memory file handle for psgi.input: %s", Strerror(errno));
    IO *io = GvIOp(glob);
    note_glob(&input->glob, glob);
    input->io_flags = SvFLAGS(io);
    memcpy(&input->io_body, SvANY(io), sizeof input->io_body);
    input->layer = *IoIFP(io);
    input->layer_flags = PerlIOBase(IoIFP(io))->flags;
    input->data = data;
    input->data_flags = SvFLAGS(data);
}

static bool layer_is_as_made(const struct psgi_input *input, PerlIO *fp)
{
    return SvREFCNT(input->data) == 2 && SvFLAGS(input->data) == input->data_flags && (void *)*fp == input->layer;
}

/* Is the input as it was made? Puts the traces of reading back first: the number of lines, the position, the end. */
static bool input_is_as_made(pTHX_ const struct psgi_input *input)
{
    if (!glob_is_as_made(&input->glob))
        return false;
    IO *io = GvIOp(input->glob.glob);
    IoFLAGS(io) &= ~IOf_NOLINE; /* else the second request to slurp it gets undef where the first got "" */
    IoLINES(io) = 0;
    if (SvREFCNT(io) != 1 || SvFLAGS(io) != input->io_flags ||
        memcmp(SvANY(io), &input->io_body, sizeof input->io_body) != 0 || !layer_is_as_made(input, IoIFP(io)))
        return false;
    PerlIO_rewind(IoIFP(io));
    return PerlIOBase(IoIFP(io))->flags == input->layer_flags;
}

static void drop_input(pTHX_ struct psgi_input *input)
{
    SvREFCNT_dec((SV *)input->glob.glob);
    SvREFCNT_dec(input->data);
}

/* --- psgi.errors --- */

static IO *stderr_io(pTHX)
{
    return PL_stderrgv ? GvIOp(PL_stderrgv) : NULL;
}

static void open_errors(pTHX_ struct psgi_glob *errors)
{
    GV *glob = new_glob(aTHX_ PL_defstash, "STDERR");
    GvIOp(glob) = (IO *)SvREFCNT_inc((SV *)stderr_io(aTHX));
    note_glob(errors, glob);
}

/* --- arrays --- */

static void note_array(struct psgi_array *kept, AV *array)
{
    kept->array = array;
    kept->flags = SvFLAGS(array);
}

static inline bool array_is_as_made(const struct psgi_array *kept, SSize_t last)
{
    return SvREFCNT(kept->array) == 1 && SvFLAGS(kept->array) == kept->flags && !SvMAGIC(kept->array) &&
           AvFILLp(kept->array) == last;
}

static void make_version(pTHX_ struct psgi_lent *lent)
{
    AV *array = newAV();
    av_push(array, newSViv(1));
    av_push(array, newSViv(1));
    note_array(&lent->version, array);
    lent->version_flags = SvFLAGS(AvARRAY(array)[0]);
}

static bool version_is_as_made(const struct psgi_lent *lent)
{
    if (!array_is_as_made(&lent->version, 1))
        return false;
    for (int i = 0; i < 2; i++) {
        SV *number = AvARRAY(lent->version.array)[i];
        if (!number || SvREFCNT(number) != 1 || SvFLAGS(number) != lent->version_flags || SvIVX(number) != 1)
            return false;
    }
    return true;
}

/* --- all of them --- */

void psgi_lent_init(pTHX_ struct psgi_worker *w)
{
    struct psgi_lent *lent = &w->lent;
    open_empty_input(aTHX_ & lent->input);
    open_errors(aTHX_ & lent->errors);
    make_version(aTHX_ lent);
    note_array(&lent->cleanup_handlers, newAV());
    for (int kind = 0; kind < PSGI_LAZY_COUNT; kind++)
        lent->lazy[kind] = psgi_lazy_new(aTHX_ w, (enum psgi_lazy_kind)kind);
}

void psgi_lent_deinit(pTHX_ struct psgi_worker *w)
{
    struct psgi_lent *lent = &w->lent;
    for (int kind = 0; kind < PSGI_LAZY_COUNT; kind++)
        psgi_lazy_part(aTHX_ lent->lazy[kind]);
    drop_input(aTHX_ & lent->input);
    SvREFCNT_dec((SV *)lent->errors.glob);
    SvREFCNT_dec((SV *)lent->version.array);
    SvREFCNT_dec((SV *)lent->cleanup_handlers.array);
}

static void recycle_lazy(pTHX_ struct psgi_worker *w, enum psgi_lazy_kind kind)
{
    SV **lazy = &w->lent.lazy[kind];
    if (psgi_lazy_fresh(*lazy))
        return;
    psgi_lazy_part(aTHX_ * lazy);
    *lazy = psgi_lazy_new(aTHX_ w, kind);
}

void psgi_lent_recycle(pTHX_ struct psgi_worker *w)
{
    struct psgi_lent *lent = &w->lent;
    if (UNLIKELY(!input_is_as_made(aTHX_ & lent->input))) {
        drop_input(aTHX_ & lent->input);
        open_empty_input(aTHX_ & lent->input);
    }
    if (UNLIKELY(!glob_is_as_made(&lent->errors) || GvIOp(lent->errors.glob) != stderr_io(aTHX))) {
        SvREFCNT_dec((SV *)lent->errors.glob);
        open_errors(aTHX_ & lent->errors);
    }
    if (UNLIKELY(!version_is_as_made(lent))) {
        SvREFCNT_dec((SV *)lent->version.array);
        make_version(aTHX_ lent);
    }
    if (UNLIKELY(!array_is_as_made(&lent->cleanup_handlers, -1))) {
        SvREFCNT_dec((SV *)lent->cleanup_handlers.array);
        note_array(&lent->cleanup_handlers, newAV());
    }
    for (int kind = 0; kind < PSGI_LAZY_COUNT; kind++)
        recycle_lazy(aTHX_ w, (enum psgi_lazy_kind)kind);
}
