/* The scalars of an environment, used again. A request that leaves the environment as it was made (env.c) leaves most
 * of its values so, too: plain scalars that nothing else refers to. They stay in the table, and the next request writes
 * its own value into each, or finds there what it would write: for SERVER_NAME, say, or psgi.run_once. To free one
 * scalar and to make another takes ten times as long.
 *
 * What "as it was made" means is compared, not listed: psgi_values_init() notes the flags of scalars that were just
 * made. Magic (ties, pos(), taint, weak references), blessing, read-only, text that is shared with a copy, a number
 * that was read from a text: all of that shows in the flags. A text that was changed in place does not, but its
 * bytes are written for each request. Included by env.c alone. */
#ifndef ORIBI_PERL_VALUES_H
#define ORIBI_PERL_VALUES_H

#include "xs/binding.h"

enum { PSGI_KEPT_TEXT_MAX = 512 }; /* bytes of memory of a text that stays; longer ones are freed with their request */

static void psgi_values_init(pTHX_ struct psgi_worker *w)
{
    SV *text = newSVpvs("text");
    SV *shared = newSVhek(SvSHARED_HEK_FROM_PV(SvPVX_const(w->empty)));
    SV *number = newSViv(1);
    SV *reference = newRV_inc(number);
    w->made.text = SvFLAGS(text);
    w->made.shared = SvFLAGS(shared);
    w->made.number = SvFLAGS(number);
    w->made.reference = SvFLAGS(reference);
    SvROK_off(reference);
    w->made.vacant = SvFLAGS(reference);
    SvREFCNT_dec(SvRV(reference));
    SvRV_set(reference, NULL);
    SvREFCNT_dec(reference);
    SvREFCNT_dec(number);
    SvREFCNT_dec(shared);
    SvREFCNT_dec(text);
}

/* --- at the end of a request --- */

/* True for a scalar that stays as it is, to be written to by psgi_put_…(). */
static inline bool psgi_value_stays(const struct psgi_made *made, const SV *value)
{
    U32 flags = SvFLAGS(value);
    if (SvREFCNT(value) != 1)
        return false;
    if (flags == made->number)
        return true;
    if (flags == made->shared)
        return SvLEN(value) == 0;
    return flags == made->text && SvLEN(value) > 0 && SvLEN(value) <= PSGI_KEPT_TEXT_MAX;
}

/* For any other, which is in no table any more: a plain reference lets go of what it refers to, and true; or the value
 * is freed. May run a destructor of the application's. */
static inline bool psgi_value_leave(pTHX_ const struct psgi_made *made, SV *value)
{
    if (SvREFCNT(value) != 1 || SvFLAGS(value) != made->reference) {
        SvREFCNT_dec_NN(value);
        return false;
    }
    SV *referred = SvRV(value);
    SvROK_off(value);
    SvRV_set(value, NULL);
    SvREFCNT_dec_NN(referred);
    return true;
}

/* --- for the next one --- */

/* Each takes `old`, a value that was left or NULL, and gives the value of the new request, which is the same scalar
 * where that can be. */

static inline SV *psgi_put(pTHX_ SV *old, SV *value)
{
    SvREFCNT_dec(old);
    return value;
}

/* `old` has this text already, and shares it with the table of keys, so that nobody can have changed it. */
static inline bool psgi_has_shared(const struct psgi_worker *w, const SV *old, struct oribi_slice slice)
{
    return old && SvFLAGS(old) == w->made.shared && SvCUR(old) == slice.n &&
           memcmp(SvPVX_const(old), slice.p, slice.n) == 0;
}

/* A text with the text of `shared`, which came from newSVpvn_share(). */
static inline SV *psgi_put_shared(pTHX_ const struct psgi_worker *w, SV *old, SV *shared)
{
    if (old && SvFLAGS(old) == w->made.shared && SvPVX_const(old) == SvPVX_const(shared) && SvCUR(old) == SvCUR(shared))
        return old;
    return psgi_put(aTHX_ old, newSVhek(SvSHARED_HEK_FROM_PV(SvPVX_const(shared))));
}

static inline SV *psgi_put_text(pTHX_ const struct psgi_worker *w, SV *old, struct oribi_slice slice)
{
    if (!old || SvFLAGS(old) != w->made.text || SvLEN(old) <= slice.n)
        return psgi_put(aTHX_ old, newSVpvn(slice.p ? slice.p : "", slice.n));
    if (slice.n)
        memcpy(SvPVX(old), slice.p, slice.n);
    SvPVX(old)[slice.n] = '\0';
    SvCUR_set(old, slice.n);
    return old;
}

static inline SV *psgi_put_number(pTHX_ const struct psgi_worker *w, SV *old, IV number)
{
    if (!old || SvFLAGS(old) != w->made.number)
        return psgi_put(aTHX_ old, newSViv(number));
    SvIV_set(old, number);
    return old;
}

/* A reference to `referred`, whose count goes up. */
static inline SV *psgi_put_reference(pTHX_ const struct psgi_worker *w, SV *old, SV *referred)
{
    if (!old || SvFLAGS(old) != w->made.vacant)
        return psgi_put(aTHX_ old, newRV_inc(referred));
    SvRV_set(old, SvREFCNT_inc_simple_NN(referred));
    SvROK_on(old);
    return old;
}

#endif
