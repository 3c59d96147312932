/* Event streams: oribi.events in the environment of a GET that accepts text/event-stream. What an application sees is
 * lib/Oribi/Events.pm; here is what that asks of the core. */
#include "xs/binding.h"

#include "oribi/http/event_stream.h"
#include "oribi/worker/events.h"

void psgi_events_offer(pTHX_ struct psgi_worker *w, HV *env, struct oribi_req *req)
{
    struct oribi_slice last = oribi_events_last_id(req);
    HV *hash = newHV();
    SV *object = sv_bless(newRV_noinc((SV *)hash), gv_stashpvs("Oribi::Events", GV_ADD));
    psgi_bind(aTHX_ w, (SV *)hash);
    (void)hv_stores(hash, "last", last.n ? newSVpvn(last.p, last.n) : newSV(0));
    if (!hv_stores(env, "oribi.events", object))
        SvREFCNT_dec(object);
}

/* Oribi::Events::_stream($events, $retry, $since, @channels) */
XS_INTERNAL(psgi_xs_stream);
XS_INTERNAL(psgi_xs_stream)
{
    dXSARGS;
    struct oribi_slice names[ORIBI_EVENT_CHANNELS_MAX];
    char error[ORIBI_ERROR_TEXT_CAP];
    if (items < 3)
        croak("Usage: _stream(events, retry, since, channels...)");
    struct psgi_worker *w = SvROK(ST(0)) ? psgi_bound(aTHX_ SvRV(ST(0))) : NULL;
    if (!w || w->state != PSGI_OPEN)
        croak("Oribi: the call has ended: no event stream can begin outside of it");
    for (int i = 3; i < items && i - 3 < ORIBI_EVENT_CHANNELS_MAX; i++)
        names[i - 3] = psgi_octets(aTHX_ ST(i));
    const struct oribi_events_wish wish = {
        .channels = names,
        .channel_count = (uint32_t)(items - 3),
        .retry_ms = !SvOK(ST(1))      ? -1
                    : SvIV(ST(1)) < 0 ? -2
                                      : (int64_t)SvIV(ST(1)),
        .since = psgi_octets(aTHX_ ST(2)),
    };
    int code = oribi_events_stream(w->req, &wish, error);
    if (code == ORIBI_EINVAL)
        croak("Oribi: %s", error);
    if (code < 0)
        croak("Oribi: out of memory");
    XSRETURN_EMPTY;
}

void psgi_events_boot(pTHX)
{
    newXS("Oribi::Events::_stream", psgi_xs_stream, __FILE__);
}
