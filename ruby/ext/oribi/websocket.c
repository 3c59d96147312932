/* WebSockets: env["oribi.websocket"] at a handshake, and the calls of a socket, which are no requests and have no
 * environment. What an application sees is lib/oribi/websocket.rb; here is what that asks of the core. */
#include "ext.h"

#include "oribi/worker/socket.h"

static VALUE websocket_class;
static VALUE handshake_class;
static VALUE key_websocket;
static VALUE key_upgrade;
static VALUE key_may_upgrade;
static ID id_env;
static ID id_serve;
static ID id_socket_failure;
static ID id_upgrade;

static struct oribi_slice text_of(VALUE string)
{
    return NIL_P(string) ? oribi_slice(NULL, 0) : oribi_slice(RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

/* 0, which is none that may be sent, for what is no close code at all. */
static uint16_t code_of(VALUE number)
{
    long code = NUM2LONG(number);
    return code < 0 || code > UINT16_MAX ? 0 : (uint16_t)code;
}

static VALUE utf8(struct oribi_slice text)
{
    return rb_utf8_str_new(text.p, (long)text.n);
}

static struct ext_call *live_call(VALUE tie)
{
    struct ext_call *call = ext_tied_call(tie);
    if (!call || !call->req)
        rb_raise(ext_error, "the call has ended: nothing can be sent from outside of it");
    return call;
}

static void check(int code, const char *error)
{
    if (code == ORIBI_EINVAL)
        rb_raise(ext_error, "%s", error);
    if (code < 0)
        rb_memerror();
}

/* --- handshakes --- */

void ext_websocket_offer(struct ext_call *call)
{
    const struct oribi_head *head = call->req->head;
    if (!oribi_socket_asked(call->req))
        return;
    VALUE handshake = rb_obj_alloc(handshake_class);
    rb_ivar_set(handshake, id_env, call->env);
    rb_ivar_set(handshake, rb_intern("@tie"), call->tie);
    rb_ivar_set(handshake, rb_intern("@offered"), ext_bytes(oribi_socket_protocols(head)));
    rb_hash_aset(call->env, key_websocket, handshake);
    if (oribi_socket_offered(call->req))
        rb_hash_aset(call->env, key_may_upgrade, ID2SYM(rb_intern("websocket")));
}

bool ext_websocket_upgrades(struct ext_call *call)
{
    if (call->code >= 300 || !oribi_socket_offered(call->req))
        return false;
    VALUE handler = rb_hash_lookup(call->env, key_upgrade);
    if (!RTEST(handler))
        return false;
    rb_funcall(rb_hash_lookup(call->env, key_websocket), id_upgrade, 1, handler);
    return true;
}

/* handler, protocol, state, kept: Strings or nil; wants: bits; channels: pairs of Strings, one behind the other. */
static VALUE handshake_accept(VALUE self, VALUE handler, VALUE protocol, VALUE state, VALUE kept, VALUE wants,
                              VALUE channels)
{
    struct ext_call *call = live_call(rb_ivar_get(self, rb_intern("@tie")));
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_buf list = {0};
    int code = 0;
    for (long i = 0; i < RARRAY_LEN(channels); i++)
        Check_Type(RARRAY_AREF(channels, i), T_STRING);
    for (long i = 0; i + 1 < RARRAY_LEN(channels) && code == 0; i += 2)
        code = oribi_socket_add_channel(&list, text_of(RARRAY_AREF(channels, i)), text_of(RARRAY_AREF(channels, i + 1)),
                                        error);
    const struct oribi_socket_record record = {
        .handler = text_of(handler),
        .protocol = text_of(protocol),
        .state = text_of(state),
        .kept = text_of(kept),
        .channels = oribi_slice(list.p, list.len),
        .code = (uint16_t)NUM2UINT(wants),
    };
    code = code < 0 ? code : oribi_socket_accept(call->req, &record, error);
    oribi_buf_deinit(&list);
    check(code, error);
    RB_GC_GUARD(channels);
    RB_GC_GUARD(handler);
    RB_GC_GUARD(protocol);
    RB_GC_GUARD(state);
    RB_GC_GUARD(kept);
    return Qnil;
}

/* --- calls --- */

/* The constant that the handler's name stands for is looked up by Ruby code, each time: a reload has made it anew. */
void ext_websocket_serve(struct ext_call *call)
{
    struct oribi_socket_record record;
    struct oribi_slice data;
    struct oribi_req *req = call->req;
    if (oribi_socket_read(req, &record, &data) < 0) {
        call->req = NULL;
        oribi_reply_error(req, 503);
        return;
    }
    call->tie = ext_tie_new(call);
    char event[] = {(char)record.event, '\0'};
    VALUE arguments[] = {
        call->tie,
        rb_str_new_cstr(event),
        utf8(record.id),
        utf8(record.handler),
        utf8(record.protocol),
        utf8(record.state),
        utf8(record.kept),
        record.event == ORIBI_SOCKET_BINARY ? ext_bytes(data) : utf8(data),
        UINT2NUM(record.code),
    };
    VALUE known = rb_funcallv(websocket_class, id_serve, 9, arguments);
    if (!call->req)
        return;
    call->req = NULL;
    if (RTEST(known))
        (void)oribi_socket_reply(req); /* a frontend that has gone is nothing that the application could mend */
    else
        oribi_socket_unknown(req);
}

void ext_websocket_show_failure(struct ext_call *call)
{
    struct oribi_req *req = call->req;
    VALUE words = rb_funcallv(ext_module, id_socket_failure, 1, &call->error);
    if (NIL_P(words) || !call->req)
        return;
    VALUE text = rb_ary_entry(words, 0);
    VALUE place = rb_ary_entry(words, 1);
    Check_Type(text, T_STRING);
    Check_Type(place, T_STRING);
    call->req = NULL;
    oribi_socket_reply_failure(req, ext_reply_failure_status(call), ".", text_of(text), text_of(place));
    RB_GC_GUARD(text);
    RB_GC_GUARD(place);
}

static VALUE act(VALUE class, VALUE tie, VALUE type, VALUE code, VALUE data)
{
    struct ext_call *call = live_call(tie);
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi_socket_action action = {
        .type = (enum oribi_socket_action_type) * StringValuePtr(type),
        .code = code_of(code),
        .data = text_of(data),
    };
    check(oribi_socket_act(call->req, &action, error), error);
    RB_GC_GUARD(data);
    return Qnil;
}

/* A subscription, its end, or a message. All but binary: Strings or nil. */
static VALUE act_on_channel(VALUE class, VALUE tie, VALUE type, VALUE channel, VALUE event, VALUE data, VALUE binary)
{
    struct ext_call *call = live_call(tie);
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi_socket_action action = {
        .type = (enum oribi_socket_action_type) * StringValuePtr(type),
        .binary = RTEST(binary),
        .data = text_of(data),
        .event = text_of(event),
        .channel = text_of(channel),
    };
    check(oribi_socket_act(call->req, &action, error), error);
    RB_GC_GUARD(channel);
    RB_GC_GUARD(event);
    RB_GC_GUARD(data);
    return Qnil;
}

void ext_websocket_setup(void)
{
    key_websocket = rb_enc_interned_str_cstr("oribi.websocket", rb_utf8_encoding());
    key_upgrade = rb_enc_interned_str_cstr("rack.upgrade", rb_utf8_encoding());
    key_may_upgrade = rb_enc_interned_str_cstr("rack.upgrade?", rb_utf8_encoding());
    rb_gc_register_mark_object(key_websocket);
    rb_gc_register_mark_object(key_upgrade);
    rb_gc_register_mark_object(key_may_upgrade);
    id_env = rb_intern("@env");
    id_serve = rb_intern("serve");
    id_socket_failure = rb_intern("socket_failure");
    id_upgrade = rb_intern("upgrade");
    websocket_class = rb_define_class_under(ext_module, "WebSocket", rb_cObject);
    handshake_class = rb_define_class_under(websocket_class, "Handshake", rb_cObject);
    rb_gc_register_mark_object(websocket_class);
    rb_gc_register_mark_object(handshake_class);
    rb_define_private_method(handshake_class, "accept_as", handshake_accept, 6);
    rb_define_singleton_method(websocket_class, "act", act, 4);
    rb_define_singleton_method(websocket_class, "act_on_channel", act_on_channel, 6);
}
