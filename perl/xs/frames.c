/* Where a call stands, read from the interpreter's memory while Perl is stopped in the middle of an operation: in a
 * signal handler, or while its thread waits in the kernel. So what is on its stacks is whole; only what is there
 * already is looked at, and nothing is made. */
#include "xs/binding.h"

#include "oribi/base/fault.h"

#include <stdio.h>

enum { DEPTH = 10000 }; /* contexts looked at: a recursion may be what the call is stuck in */

struct writing {
    char *dst;
    size_t n;
    size_t cap;
    int shown;
};

static const char *name_of_stash(const HV *stash)
{
    return stash && SvTYPE((const SV *)stash) == SVt_PVHV && SvOOK(stash) ? HvNAME_get(stash) : NULL;
}

/* "package::sub", without the package that Plack makes for each .psgi file. */
static void put_frame(struct writing *w, const char *package, const char *name, const COP *place)
{
    const char *file = place ? CopFILE(place) : NULL;
    if (package && strncmp(package, "Plack::Sandbox::", 16) == 0)
        package = NULL;
    size_t room = w->cap - w->n;
    int n = snprintf(w->dst + w->n, room, "%.200s%s%.200s at %.500s line %lu\n", package ? package : "",
                     package ? "::" : "", name, file ? file : "?", place ? (unsigned long)CopLINE(place) : 0);
    if (n > 0 && (size_t)n < room)
        w->n += (size_t)n;
    w->shown++;
}

/* A context that is being pushed may still have the sub of the one before it, which may be gone. */
static void put_sub(struct writing *w, const CV *cv, const COP *place)
{
    if (cv && (SvTYPE((const SV *)cv) != SVt_PVCV || SvREFCNT((const SV *)cv) == 0))
        cv = NULL;
    const HV *stash = cv ? CvSTASH(cv) : NULL;
    const char *name = NULL;
#ifdef CvNAMED
    if (cv && CvNAMED(cv)) {
        put_frame(w, name_of_stash(stash), HEK_KEY(CvNAME_HEK((CV *)cv)), place);
        return;
    }
    const GV *gv = cv ? ((XPVCV *)SvANY(cv))->xcv_gv_u.xcv_gv : NULL; /* CvGV() may make one */
#else
    const GV *gv = cv ? CvGV(cv) : NULL;
#endif
    if (gv && isGV_with_GP(gv)) {
        name = GvNAME(gv);
        stash = GvSTASH(gv);
    }
    put_frame(w, name_of_stash(stash), name ? name : "__ANON__", place);
}

/* An eval of a block is no frame of its own. */
static bool is_frame(const PERL_CONTEXT *cx)
{
    return CxTYPE(cx) == CXt_SUB || CxTYPE(cx) == CXt_FORMAT || (CxTYPE(cx) == CXt_EVAL && CxREALEVAL(cx));
}

/* From the innermost sub to the application's, which this file's worker has called on a stack of its own. */
size_t psgi_frames(void *self, uint32_t hand, bool own_thread, char *dst, size_t cap)
{
    const struct psgi_worker *worker = (const struct psgi_worker *)self;
    struct writing w = {dst, 0, cap, 0};
    PERL_UNUSED_ARG(hand);
    PERL_UNUSED_ARG(own_thread);
    dTHXa(worker->interpreter);
    const COP *place = PL_curcop;
    int looked = 0;
    for (const PERL_SI *si = PL_curstackinfo; si; si = si->si_prev) {
        for (I32 i = si->si_cxix; i >= 0 && looked++ < DEPTH && w.shown < ORIBI_FRAMES_MAX; i--) {
            const PERL_CONTEXT *cx = &si->si_cxstack[i];
            if (!is_frame(cx))
                continue;
            if (CxTYPE(cx) == CXt_EVAL)
                put_frame(&w, NULL, "(eval)", place);
            else
                put_sub(&w, cx->blk_sub.cv, place);
            place = cx->blk_oldcop;
        }
        if (si == worker->stack)
            break;
    }
    return w.n;
}

static void note_frames(void *self)
{
    struct psgi_worker *worker = (struct psgi_worker *)self;
    worker->stands_len = psgi_frames(worker, 0, true, worker->stands, sizeof worker->stands);
}

void psgi_note_frames(struct psgi_worker *worker)
{
    worker->stands_len = 0;
    if (!oribi_fault_guard(note_frames, worker))
        worker->stands_len = 0;
}
