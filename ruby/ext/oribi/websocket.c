/* WebSockets: env["oribi.websocket"] at a handshake, and the calls of a socket, which are no requests and have no
 * environment. What an application sees is lib/oribi/websocket.rb; here is what that asks of the core. */
#include "ext.h"

#include "oribi/worker/socket.h"

static VALUE websocket_class;
static VALUE handshake_class;
static VALUE handlers_module;
static VALUE key_websocket;
static VALUE key_upgrade;
static VALUE key_may_upgrade;
static ID id_env;
static ID id_find;
static ID id_keep_state;
static ID id_on_message;
static ID id_send_converted;
static ID id_serve;
static ID id_socket_failure;
static ID id_upgrade;

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

static struct ext_call *check_live(struct ext_call *call)
{
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
    struct oribi_socket_record record = {
        .handler = ext_text(handler),
        .protocol = ext_text(protocol),
        .state = ext_text(state),
        .kept = ext_text(kept),
        .code = (uint16_t)NUM2UINT(wants),
    };
    struct ext_call *call = check_live(ext_tied_call(rb_ivar_get(self, rb_intern("@tie"))));
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_buf list = {0};
    int code = 0;
    for (long i = 0; i < RARRAY_LEN(channels); i++)
        Check_Type(RARRAY_AREF(channels, i), T_STRING);
    /* Nothing raises from here until the list is freed. */
    for (long i = 0; i + 1 < RARRAY_LEN(channels) && code == 0; i += 2)
        code = oribi_socket_add_channel(&list, ext_slice(RARRAY_AREF(channels, i)),
                                        ext_slice(RARRAY_AREF(channels, i + 1)), error);
    record.channels = oribi_slice(list.p, list.len);
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

/* --- the object of a call --- */

/* An Oribi::WebSocket: a message costs this block, its object and that of its data. Applications may keep it beyond its
 * call, so it has copies; their Strings are made when they are asked for. */
enum { TEXT_ID, TEXT_PROTOCOL, TEXT_SAVED, TEXT_KEPT, TEXTS };

struct socket {
    VALUE worker;
    VALUE state; /* as the application has it; nil: it has not been asked for */
    VALUE env;
    uint64_t serial; /* of its call */
    uint16_t lens[TEXTS];
    char texts[]; /* one behind the other */
};

static void socket_mark(void *p)
{
    const struct socket *socket = p;
    rb_gc_mark_movable(socket->worker);
    rb_gc_mark_movable(socket->state);
    rb_gc_mark_movable(socket->env);
}

static void socket_compact(void *p)
{
    struct socket *socket = p;
    socket->worker = rb_gc_location(socket->worker);
    socket->state = rb_gc_location(socket->state);
    socket->env = rb_gc_location(socket->env);
}

static size_t texts_len(const struct socket *socket)
{
    size_t n = 0;
    for (int i = 0; i < TEXTS; i++)
        n += socket->lens[i];
    return n;
}

static size_t socket_size(const void *p)
{
    return sizeof(struct socket) + texts_len(p);
}

static const rb_data_type_t socket_type = {
    .wrap_struct_name = "Oribi::WebSocket",
    .function = {.dmark = socket_mark, .dfree = RUBY_DEFAULT_FREE, .dsize = socket_size, .dcompact = socket_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

/* Of no call. */
static VALUE socket_alloc(VALUE class)
{
    struct socket *socket;
    VALUE self = TypedData_Make_Struct(class, struct socket, &socket_type, socket);
    socket->worker = socket->state = socket->env = Qnil;
    return self;
}

static struct socket *socket_of(VALUE self)
{
    return rb_check_typeddata(self, &socket_type);
}

/* Gives the object another block, for texts of n bytes. The old one stays until that is there: this may collect
 * garbage. */
static struct socket *resize(VALUE self, size_t n)
{
    struct socket *old = RTYPEDDATA_DATA(self);
    struct socket *socket = xmalloc(sizeof(*socket) + n);
    socket->worker = socket->state = socket->env = Qnil;
    memset(socket->lens, 0, sizeof(socket->lens));
    RTYPEDDATA_DATA(self) = socket;
    xfree(old);
    return socket;
}

static VALUE socket_new(struct ext_call *call, const struct oribi_socket_record *record)
{
    const struct oribi_slice texts[TEXTS] = {record->id, record->protocol, record->state, record->kept};
    VALUE self = rb_data_typed_object_wrap(websocket_class, NULL, &socket_type);
    struct socket *socket = resize(self, record->id.n + record->protocol.n + record->state.n + record->kept.n);
    char *at = socket->texts;
    for (int i = 0; i < TEXTS; i++) {
        socket->lens[i] = (uint16_t)texts[i].n;
        if (texts[i].n)
            memcpy(at, texts[i].p, texts[i].n);
        at += texts[i].n;
    }
    socket->serial = call->serial;
    RB_OBJ_WRITE(self, &socket->worker, call->worker->self);
    return self;
}

static VALUE socket_initialize_copy(VALUE self, VALUE original)
{
    const struct socket *from = socket_of(original);
    size_t n = texts_len(from);
    if (self == original)
        return self;
    rb_check_frozen(self);
    struct socket *socket = resize(self, n);
    memcpy(socket->lens, from->lens, sizeof(from->lens));
    memcpy(socket->texts, from->texts, n);
    socket->serial = from->serial;
    RB_OBJ_WRITE(self, &socket->worker, from->worker);
    RB_OBJ_WRITE(self, &socket->state, from->state);
    RB_OBJ_WRITE(self, &socket->env, from->env);
    return self;
}

static struct ext_call *live_call(VALUE self)
{
    const struct socket *socket = socket_of(self);
    return check_live(NIL_P(socket->worker) ? NULL : ext_call_find(ext_worker_get(socket->worker), socket->serial));
}

static VALUE text_at(VALUE self, int which)
{
    const struct socket *socket = socket_of(self);
    size_t at = 0;
    for (int i = 0; i < which; i++)
        at += socket->lens[i];
    return utf8(oribi_slice(socket->texts + at, socket->lens[which]));
}

static VALUE socket_id(VALUE self)
{
    return text_at(self, TEXT_ID);
}

static VALUE socket_protocol(VALUE self)
{
    return socket_of(self)->lens[TEXT_PROTOCOL] ? text_at(self, TEXT_PROTOCOL) : Qnil;
}

static VALUE socket_saved(VALUE self)
{
    return text_at(self, TEXT_SAVED);
}

static VALUE socket_kept(VALUE self)
{
    return text_at(self, TEXT_KEPT);
}

static VALUE socket_own_state(VALUE self)
{
    return socket_of(self)->state;
}

static VALUE socket_set_state(VALUE self, VALUE state)
{
    rb_check_frozen(self);
    RB_OBJ_WRITE(self, &socket_of(self)->state, state);
    return state;
}

static VALUE socket_own_env(VALUE self)
{
    return socket_of(self)->env;
}

static VALUE socket_set_env(VALUE self, VALUE env)
{
    RB_OBJ_WRITE(self, &socket_of(self)->env, env);
    return env;
}

/* --- calls --- */

/* Of the sockets of one handler the name is one String. */
static VALUE handler_name(struct ext_worker *worker, struct oribi_slice name)
{
    VALUE kept = worker->handler_name;
    if (kept != Qfalse && (size_t)RSTRING_LEN(kept) == name.n && memcmp(RSTRING_PTR(kept), name.p, name.n) == 0)
        return kept;
    VALUE text = rb_obj_freeze(utf8(name));
    RB_OBJ_WRITE(worker->self, &worker->handler_name, text);
    return text;
}

static void call_on_message(VALUE target, VALUE socket, VALUE data)
{
    if (!rb_respond_to(target, id_on_message))
        return;
    VALUE arguments[] = {socket, data};
    (void)rb_funcallv_public(target, id_on_message, 2, arguments);
    if (RTEST(socket_of(socket)->state))
        (void)rb_funcallv(socket, id_keep_state, 0, NULL);
}

/* The constant that the handler's name stands for is looked up by Ruby code, each time: a reload has made it anew. */
void ext_websocket_serve(struct ext_call *call)
{
    struct oribi_socket_record record;
    struct oribi_slice bytes;
    struct oribi_req *req = call->req;
    if (oribi_socket_read(req, &record, &bytes) < 0) {
        call->req = NULL;
        oribi_reply_error(req, 503);
        return;
    }
    char event[] = {(char)record.event, '\0'};
    bool binary = record.event == ORIBI_SOCKET_BINARY;
    VALUE socket = socket_new(call, &record);
    VALUE data = binary ? ext_bytes(bytes) : utf8(bytes);
    VALUE name = handler_name(call->worker, record.handler);
    VALUE target = rb_funcallv(handlers_module, id_find, 1, &name);
    if (!call->req)
        return;
    if (NIL_P(target)) {
        call->req = NULL;
        oribi_socket_unknown(req);
        return;
    }
    if (binary || record.event == ORIBI_SOCKET_TEXT)
        call_on_message(target, socket, data);
    else
        (void)rb_funcall(socket, id_serve, 4, target, rb_str_new_cstr(event), data, UINT2NUM(record.code));
    if (!call->req)
        return;
    call->req = NULL;
    (void)oribi_socket_reply(req); /* a frontend that has gone is nothing that the application could mend */
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
    oribi_socket_reply_failure(req, ext_reply_failure_status(call), ".", ext_slice(text), ext_slice(place));
    RB_GC_GUARD(text);
    RB_GC_GUARD(place);
}

static VALUE act(VALUE self, VALUE type, VALUE code, VALUE data)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi_socket_action action = {
        .type = (enum oribi_socket_action_type) * StringValuePtr(type),
        .code = code_of(code),
        .data = ext_text(data),
    };
    check(oribi_socket_act(live_call(self)->req, &action, error), error);
    RB_GC_GUARD(data);
    return Qnil;
}

/* Sends a message: binary where the String's encoding is BINARY, else text. It leaves when the call has returned. A
 * String whose bytes are what is sent needs no other object; for the rest, also the reason of a refusal, there is Ruby
 * code.
 *
 * @raise [Oribi::Error] text that is not valid in its encoding, or more than 16 MiB in one call */
static VALUE socket_send(VALUE self, VALUE data)
{
    int encoding = RB_TYPE_P(data, T_STRING) ? rb_enc_get_index(data) : -1;
    bool binary = encoding == rb_ascii8bit_encindex();
    if (!binary && encoding != rb_utf8_encindex())
        return rb_funcallv(self, id_send_converted, 1, &data);
    struct ext_call *call = live_call(self);
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi_socket_action action = {
        .type = binary ? ORIBI_SOCKET_SEND_BINARY : ORIBI_SOCKET_SEND_TEXT,
        .data = ext_text(data),
    };
    int code = oribi_socket_act(call->req, &action, error);
    if (code == ORIBI_EINVAL && !binary)
        return rb_funcallv(self, id_send_converted, 1, &data);
    check(code, error);
    RB_GC_GUARD(data);
    return Qnil;
}

/* A subscription, its end, or a message. All but binary: Strings or nil. */
static VALUE act_on_channel(VALUE self, VALUE type, VALUE channel, VALUE event, VALUE data, VALUE binary)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi_socket_action action = {
        .type = (enum oribi_socket_action_type) * StringValuePtr(type),
        .binary = RTEST(binary),
        .data = ext_text(data),
        .event = ext_text(event),
        .channel = ext_text(channel),
    };
    check(oribi_socket_act(live_call(self)->req, &action, error), error);
    RB_GC_GUARD(channel);
    RB_GC_GUARD(event);
    RB_GC_GUARD(data);
    return Qnil;
}

static void setup_object(void)
{
    rb_define_alloc_func(websocket_class, socket_alloc);
    rb_define_method(websocket_class, "initialize_copy", socket_initialize_copy, 1);
    rb_define_method(websocket_class, "id", socket_id, 0);
    rb_define_method(websocket_class, "protocol", socket_protocol, 0);
    rb_define_method(websocket_class, "send", socket_send, 1);
    rb_define_method(websocket_class, "write", socket_send, 1);
    rb_define_method(websocket_class, "state=", socket_set_state, 1);
    rb_define_private_method(websocket_class, "saved", socket_saved, 0);
    rb_define_private_method(websocket_class, "kept", socket_kept, 0);
    rb_define_private_method(websocket_class, "own_state", socket_own_state, 0);
    rb_define_private_method(websocket_class, "own_env", socket_own_env, 0);
    rb_define_private_method(websocket_class, "own_env=", socket_set_env, 1);
    rb_define_private_method(websocket_class, "act", act, 3);
    rb_define_private_method(websocket_class, "act_on_channel", act_on_channel, 5);
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
    id_find = rb_intern("find");
    id_keep_state = rb_intern("keep_state");
    id_on_message = rb_intern("on_message");
    id_send_converted = rb_intern("send_converted");
    id_serve = rb_intern("serve");
    id_socket_failure = rb_intern("socket_failure");
    id_upgrade = rb_intern("upgrade");
    websocket_class = rb_define_class_under(ext_module, "WebSocket", rb_cObject);
    handshake_class = rb_define_class_under(websocket_class, "Handshake", rb_cObject);
    rb_gc_register_mark_object(websocket_class);
    handlers_module = rb_define_module_under(websocket_class, "Handlers");
    rb_gc_register_mark_object(handshake_class);
    rb_gc_register_mark_object(handlers_module);
    rb_define_private_method(handshake_class, "accept_as", handshake_accept, 6);
    setup_object();
}
