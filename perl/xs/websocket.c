/* WebSockets: oribi.websocket in the environment of a handshake, and the calls of a socket, which are no requests and
 * have no environment. What an application sees is lib/Oribi/WebSocket.pm; here is what that asks of the core. */
#include "xs/binding.h"

#include "oribi/worker/socket.h"

/* 0, which is none that may be sent, for what is no close code at all. */
static uint16_t code_of(pTHX_ SV *sv)
{
    IV code = SvIV(sv);
    return code < 0 || code > UINT16_MAX ? 0 : (uint16_t)code;
}

static struct psgi_worker *live(pTHX_ SV *object)
{
    struct psgi_worker *w = SvROK(object) ? psgi_bound(aTHX_ SvRV(object)) : NULL;
    if (!w || w->state != PSGI_OPEN)
        croak("Oribi: the call of this WebSocket has ended: nothing can be sent from outside of it");
    return w;
}

static void check(pTHX_ int code, const char *error)
{
    if (code == ORIBI_EINVAL)
        croak("Oribi: %s", error);
    if (code < 0)
        croak("Oribi: out of memory");
}

/* A new object of this class, of the call that runs. */
static SV *bound_object(pTHX_ struct psgi_worker *w, const char *class)
{
    HV *hash = newHV();
    SV *object = sv_bless(newRV_noinc((SV *)hash), gv_stashpv(class, GV_ADD));
    psgi_bind(aTHX_ w, (SV *)hash);
    return object;
}

static SV *bytes(pTHX_ struct oribi_slice text)
{
    return newSVpvn(text.n ? text.p : "", text.n);
}

/* --- handshakes --- */

void psgi_websocket_offer(pTHX_ struct psgi_worker *w, HV *env, struct oribi_req *req)
{
    if (LIKELY(!oribi_socket_asked(req)))
        return;
    SV *object = bound_object(aTHX_ w, "Oribi::WebSocket::Handshake");
    SV *back = newRV_inc((SV *)env);
    sv_rvweaken(back); /* the environment holds the handshake */
    (void)hv_stores((HV *)SvRV(object), "env", back);
    (void)hv_stores((HV *)SvRV(object), "offered", bytes(aTHX_ oribi_socket_protocols(req->head)));
    if (!hv_stores(env, "oribi.websocket", object))
        SvREFCNT_dec(object);
}

/* Oribi::WebSocket::Handshake::_accept($handshake, $handler, $protocol, $state, $kept, $wants, $channel, $since, ...):
 * the names and positions are bytes. */
XS_INTERNAL(psgi_xs_accept);
XS_INTERNAL(psgi_xs_accept)
{
    dXSARGS;
    if (items < 6 || items % 2)
        croak("Usage: _accept(handshake, handler, protocol, state, kept, wants, channel, since, ...)");
    struct oribi_socket_record record = {
        .handler = psgi_octets(aTHX_ ST(1)),
        .protocol = psgi_octets(aTHX_ ST(2)),
        .state = psgi_octets(aTHX_ ST(3)),
        .kept = psgi_octets(aTHX_ ST(4)),
        .code = (uint16_t)SvUV(ST(5)),
    };
    struct psgi_worker *w = live(aTHX_ ST(0));
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_buf list = {0};
    int code = 0;
    for (I32 i = 6; i + 1 < items && code == 0; i += 2) /* the module has made bytes of them: nothing croaks */
        code = oribi_socket_add_channel(&list, psgi_octets(aTHX_ ST(i)), psgi_octets(aTHX_ ST(i + 1)), error);
    record.channels = oribi_slice(list.p, list.len);
    code = code < 0 ? code : oribi_socket_accept(w->req, &record, error);
    oribi_buf_deinit(&list);
    check(aTHX_ code, error);
    XSRETURN_EMPTY;
}

/* --- calls --- */

/* Oribi::WebSocket::_act($socket, $type, $code, $data) */
XS_INTERNAL(psgi_xs_act);
XS_INTERNAL(psgi_xs_act)
{
    dXSARGS;
    if (items != 4)
        croak("Usage: _act(socket, type, code, data)");
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi_socket_action action = {
        .type = (enum oribi_socket_action_type) * SvPV_nolen(ST(1)),
        .code = code_of(aTHX_ ST(2)),
        .data = psgi_octets(aTHX_ ST(3)),
    };
    check(aTHX_ oribi_socket_act(live(aTHX_ ST(0))->req, &action, error), error);
    XSRETURN_EMPTY;
}

static bool is_ascii(const char *p, STRLEN n)
{
    uint64_t high = 0;
    for (; n >= sizeof(high); p += sizeof(high), n -= sizeof(high)) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        high |= word;
    }
    for (; n > 0; p++, n--)
        high |= (uint8_t)*p;
    return !(high & 0x8080808080808080u);
}

/* Oribi::WebSocket::send($socket, $data, %how). A text whose bytes are what is sent is not copied; Perl code has the
 * rest. */
XS_INTERNAL(psgi_xs_send);
XS_INTERNAL(psgi_xs_send)
{
    dXSARGS;
    SV *data = items == 2 ? ST(1) : NULL;
    bool plain = data && SvPOK(data) && !SvROK(data) && !SvGMAGICAL(data);
    if (!plain || (!SvUTF8(data) && !is_ascii(SvPVX(data), SvCUR(data)))) {
        PUSHMARK(SP - items);
        call_pv("Oribi::WebSocket::_send_converted", G_VOID | G_DISCARD);
        XSRETURN_EMPTY;
    }
    struct psgi_worker *w = live(aTHX_ ST(0));
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi_socket_action action = {.type = ORIBI_SOCKET_SEND_TEXT,
                                               .data = oribi_slice(SvPVX(data), SvCUR(data))};
    check(aTHX_ oribi_socket_act(w->req, &action, error), error);
    XSRETURN_EMPTY;
}

/* Oribi::WebSocket::_act_on_channel($socket, $type, $channel, $event, $data, $binary) */
XS_INTERNAL(psgi_xs_act_on_channel);
XS_INTERNAL(psgi_xs_act_on_channel)
{
    dXSARGS;
    if (items != 6)
        croak("Usage: _act_on_channel(socket, type, channel, event, data, binary)");
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi_socket_action action = {
        .type = (enum oribi_socket_action_type) * SvPV_nolen(ST(1)),
        .binary = SvTRUE(ST(5)),
        .data = psgi_octets(aTHX_ ST(4)),
        .event = psgi_octets(aTHX_ ST(3)),
        .channel = psgi_octets(aTHX_ ST(2)),
    };
    check(aTHX_ oribi_socket_act(live(aTHX_ ST(0))->req, &action, error), error);
    XSRETURN_EMPTY;
}

/* The method of a package that is there as it stands; NULL: Perl code is to look. */
static CV *message_method(pTHX_ struct oribi_slice handler)
{
    HV *stash = gv_stashpvn(handler.p, handler.n, 0);
    GV *gv = stash ? gv_fetchmeth_pvn(stash, "on_message", sizeof("on_message") - 1, 0, 0) : NULL;
    CV *method = gv && isGV(gv) ? GvCV(gv) : NULL;
    return method && (CvROOT(method) || CvXSUB(method)) ? method : NULL;
}

/* False: it has died. */
static bool call_back(pTHX_ struct psgi_worker *w, SV *sub, I32 flags)
{
    call_sv(sub, flags | G_EVAL);
    psgi_leave_child(aTHX_ w);
    return !psgi_exception_pending(aTHX);
}

static bool call_message(pTHX_ struct psgi_worker *w, CV *method, struct oribi_slice handler, SV *object, SV *message,
                         bool binary)
{
    dSP;
    PUSHMARK(SP);
    EXTEND(SP, 4);
    mPUSHs(bytes(aTHX_ handler));
    PUSHs(sv_mortalcopy(object)); /* the method may assign to $_[1] */
    PUSHs(message);
    PUSHs(boolSV(binary));
    PUTBACK;
    errno = 0; /* as for any call */
    if (!call_back(aTHX_ w, (SV *)method, G_VOID | G_DISCARD))
        return false;
    if (!hv_exists((HV *)SvRV(object), "state", 5))
        return true;
    SPAGAIN;
    PUSHMARK(SP);
    XPUSHs(object);
    PUTBACK;
    return call_back(aTHX_ w, (SV *)get_cv("Oribi::WebSocket::_keep_state", 0), G_VOID | G_DISCARD);
}

/* All but messages of a handler that is easily found. */
static bool call_any(pTHX_ struct psgi_worker *w, const struct oribi_socket_record *record, SV *object, SV *message,
                     bool *known)
{
    char event[] = {(char)record->event, '\0'};
    dSP;
    PUSHMARK(SP);
    EXTEND(SP, 5);
    PUSHs(object);
    mPUSHs(bytes(aTHX_ record->handler));
    mPUSHs(newSVpv(event, 0));
    PUSHs(message);
    mPUSHu(record->code);
    PUTBACK;
    errno = 0;
    bool good = call_back(aTHX_ w, (SV *)get_cv("Oribi::WebSocket::_serve", 0), G_SCALAR);
    SPAGAIN;
    SV *result = POPs;
    *known = SvTRUE(result);
    PUTBACK;
    return good;
}

/* The object has the record's text, of which Perl code makes the values that are asked for. */
bool psgi_websocket_call(pTHX_ struct psgi_worker *w, bool *known)
{
    struct oribi_socket_record record;
    struct oribi_slice data;
    *known = true;
    if (oribi_socket_read(w->req, &record, &data) < 0) {
        oribi_reply_error(w->req, 503);
        psgi_call_ended(w);
        return true;
    }
    const char *text = w->req->client->websocket.p;
    SV *object = sv_2mortal(bound_object(aTHX_ w, "Oribi::WebSocket"));
    (void)hv_stores((HV *)SvRV(object), "record",
                    bytes(aTHX_ oribi_slice(text, (size_t)(record.kept.p + record.kept.n - text))));
    bool binary = record.event == ORIBI_SOCKET_BINARY;
    SV *message = sv_2mortal(bytes(aTHX_ data));
    if (!binary)
        SvUTF8_on(message); /* the frontend has checked it */
    CV *method = binary || record.event == ORIBI_SOCKET_TEXT ? message_method(aTHX_ record.handler) : NULL;
    if (method)
        return call_message(aTHX_ w, method, record.handler, object, message, binary);
    return call_any(aTHX_ w, &record, object, message, known);
}

void psgi_websocket_boot(pTHX)
{
    newXS("Oribi::WebSocket::Handshake::_accept", psgi_xs_accept, __FILE__);
    newXS("Oribi::WebSocket::send", psgi_xs_send, __FILE__);
    newXS("Oribi::WebSocket::_act", psgi_xs_act, __FILE__);
    newXS("Oribi::WebSocket::_act_on_channel", psgi_xs_act_on_channel, __FILE__);
}
