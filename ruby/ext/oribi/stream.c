/* Ways around the ordinary answer: hijacking the socket, 103 Early Hints, and the output behind the Stream of a
 * callable body.
 *
 * Applications may keep these objects and use them after their request has ended, from any thread. Each therefore
 * remembers its worker and the serial number of its request, and does nothing for another one. */
#include "ext.h"

static VALUE tie_class;
static VALUE early_hints_class;
static VALUE output_class;
static VALUE stream_class;
static VALUE tcp_class;
static VALUE unix_class;
static VALUE key_hijack_io;
static ID id_worker; /* not valid as a name in Ruby, so that only we see these variables */
static ID id_serial;
static ID id_for_fd;
static ID id_leave;

static VALUE tie(VALUE class, struct ext_call *call)
{
    VALUE object = rb_obj_alloc(class);
    rb_ivar_set(object, id_worker, call->worker->self);
    rb_ivar_set(object, id_serial, ULL2NUM(call->serial));
    return object;
}

/* Each request has one of these, so it is the cheapest object that Ruby has: the serial number stands in the place of
 * the pointer, and its class, which is the worker's own, knows the worker. */
static const rb_data_type_t tie_type = {
    .wrap_struct_name = "Oribi::Call",
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE tie_alloc(VALUE class)
{
    return rb_data_typed_object_wrap(class, NULL, &tie_type); /* of no request, or a copy */
}

static VALUE tie_initialize_copy(VALUE self, VALUE original)
{
    if (rb_typeddata_is_kind_of(original, &tie_type))
        RTYPEDDATA_DATA(self) = RTYPEDDATA_DATA(original);
    return self;
}

VALUE ext_tie_class_new(const struct ext_worker *worker)
{
    VALUE class = rb_class_new_instance(1, &tie_class, rb_cClass);
    rb_ivar_set(class, id_worker, worker->self);
    rb_set_class_path(class, ext_module, "Call");
    return class;
}

struct ext_call *ext_tied_call(VALUE tied)
{
    if (rb_typeddata_is_kind_of(tied, &tie_type)) {
        const struct ext_worker *worker = ext_worker_get(rb_ivar_get(rb_obj_class(tied), id_worker));
        return ext_call_find(worker, (uintptr_t)RTYPEDDATA_DATA(tied));
    }
    struct ext_worker *worker = ext_worker_get(rb_ivar_get(tied, id_worker));
    uint64_t serial = NUM2ULL(rb_ivar_get(tied, id_serial));
    return ext_call_find(worker, serial);
}

VALUE ext_tie_new(struct ext_call *call)
{
    return rb_data_typed_object_wrap(call->worker->tie_class, (void *)(uintptr_t)call->serial, &tie_type);
}

VALUE ext_early_hints_new(struct ext_call *call)
{
    return tie(early_hints_class, call);
}

VALUE ext_stream_new(struct ext_call *call)
{
    VALUE input = NIL_P(call->input) ? rb_hash_lookup(call->env, rb_str_new_cstr("rack.input")) : call->input;
    VALUE arguments[] = {tie(output_class, call), input};
    return rb_class_new_instance(2, arguments, stream_class);
}

void ext_stream_leave(struct ext_call *call)
{
    rb_funcallv(call->stream, id_leave, 0, NULL);
}

struct detaching {
    struct ext_call *call;
    struct oribi_slice rest;
    int fd;
    int result;
    bool done;
};

static void *detach_blocking(void *p)
{
    struct detaching *detaching = p;
    detaching->result = oribi_req_detach(detaching->call->req, &detaching->fd, &detaching->rest);
    detaching->done = true;
    return NULL;
}

VALUE ext_stream_detach(struct ext_call *call)
{
    struct detaching detaching = {.call = call};
    bool is_unix = oribi_req_is_unix(call->req);
    ext_input_part(call);
    for (;;) { /* without the VM lock: earlier answers on this connection may have to be taken by the peer first */
        ext_call_without_lock(call, detach_blocking, &detaching);
        if (detaching.done)
            break;
        ext_call_check_ints(call);
    }
    struct oribi_req *req = call->req;
    call->req = NULL;
    if (detaching.result < 0) {
        call->gone = true;
        rb_raise(ext_disconnected, "the client has left");
    }
    VALUE unread = ext_bytes(detaching.rest);
    oribi_req_detached(req);
    call->detached = true;
    ext_call_after(call);
    rb_update_max_fd(detaching.fd);
    VALUE io = rb_funcall(is_unix ? unix_class : tcp_class, id_for_fd, 1, INT2NUM(detaching.fd));
    if (RSTRING_LEN(unread) > 0)
        rb_io_ungetbyte(io, unread);
    return io;
}

static VALUE hijack(struct ext_call *call)
{
    if (call && call->detached)
        return rb_hash_lookup(call->env, key_hijack_io);
    if (!call || !call->req || call->begun)
        rb_raise(ext_error, "the request is over: its socket cannot be taken any more");
    VALUE io = ext_stream_detach(call);
    rb_hash_aset(call->env, key_hijack_io, io);
    return io;
}

/* Two keys of the environment share this object, since each request has one anyway.
 *
 *   io = env["rack.hijack"].call
 *   env["oribi.extend_deadline"].call(300)
 *
 * The first takes the socket over: the server forgets the connection, and whatever the application returns is
 * ignored. The second gives the call so many seconds from now instead of what is left of call_timeout, from any
 * thread, and does nothing when the call is over.
 *
 * @param seconds [Numeric] more than 0, a day at most
 * @return [TCPSocket, UNIXSocket, nil] the socket; bytes already received are read from it first
 * @raise [Oribi::Error] when the request has been answered or is over
 * @raise [Oribi::DisconnectError] when the client has left
 * @raise [ArgumentError] for what are no seconds */
static VALUE tie_call(int argc, VALUE *argv, VALUE self)
{
    rb_check_arity(argc, 0, 1);
    struct ext_call *call = ext_tied_call(self);
    if (argc == 0)
        return hijack(call);
    ext_call_extend(call, argv[0]);
    return Qnil;
}

/* Sends 103 Early Hints with these headers. Nothing is sent to HTTP/1.0 clients or once the request is over.
 *
 *   env["rack.early_hints"].call("link" => "</app.css>; rel=preload; as=style")
 *
 * @param headers [Hash]
 * @raise [Oribi::Error] for a header that must not be sent */
static VALUE early_hints_call(VALUE self, VALUE headers)
{
    struct ext_call *call = ext_tied_call(self);
    if (!call || !call->req || call->begun)
        return Qnil;
    struct ext_headers list;
    ext_headers_collect(&list, headers);
    int result = oribi_req_inform(call->req, 103, list.items, list.count);
    RB_GC_GUARD(list.holder);
    RB_GC_GUARD(list.strings);
    if (result == ORIBI_EAPP)
        rb_raise(ext_error, "early hints hold a header that is not valid");
    return Qnil;
}

static struct ext_call *open_call(VALUE self)
{
    struct ext_call *call = ext_tied_call(self);
    if (!call || !call->req || call->ending) /* a thread that was called back would otherwise wait again */
        rb_raise(rb_eIOError, "closed stream");
    return call;
}

static VALUE output_write(VALUE self, VALUE string)
{
    StringValue(string); /* runs Ruby code, which may take so long that the call is over */
    struct ext_call *call = open_call(self);
    if (ext_reply_write(call, string) < 0)
        rb_raise(ext_disconnected, "the client has left");
    return LONG2NUM(RSTRING_LEN(string));
}

static VALUE output_flush(VALUE self)
{
    struct ext_call *call = open_call(self);
    if (!call->begun && ext_reply_begin(call, -1) < 0)
        rb_raise(ext_error, "the status or a header of the answer is not valid");
    if (!call->gone && oribi_reply_flush(call->req) < 0)
        call->gone = true;
    return self;
}

static VALUE output_finish(VALUE self)
{
    struct ext_call *call = ext_tied_call(self);
    if (!call)
        return Qnil;
    ext_reply_finish(call);
    if (!call->req)
        ext_call_after(call); /* the body goes on with something else */
    return Qnil;
}

/* Sends the head and gives the socket away; possible as long as nothing else was sent. */
static VALUE output_detach(VALUE self)
{
    struct ext_call *call = open_call(self);
    if (call->begun || ext_reply_begin(call, ORIBI_BODY_DETACHED) < 0)
        rb_raise(rb_eIOError, "closed stream");
    return ext_stream_detach(call);
}

/* Nothing of the answer was sent yet. */
static VALUE output_untouched(VALUE self)
{
    struct ext_call *call = ext_tied_call(self);
    return call && call->req && !call->begun ? Qtrue : Qfalse;
}

static VALUE private_class(const char *name)
{
    VALUE class = rb_define_class_under(ext_module, name, rb_cObject);
    rb_undef_method(CLASS_OF(class), "new");
    return class;
}

void ext_stream_setup(void)
{
    id_worker = rb_intern("worker");
    id_serial = rb_intern("serial");
    id_for_fd = rb_intern("for_fd");
    id_leave = rb_intern("leave");
    key_hijack_io = rb_enc_interned_str_cstr("rack.hijack_io", rb_utf8_encoding());
    rb_gc_register_mark_object(key_hijack_io);

    rb_require("socket");
    tcp_class = rb_const_get(rb_cObject, rb_intern("TCPSocket"));
    unix_class = rb_const_get(rb_cObject, rb_intern("UNIXSocket"));
    rb_gc_register_mark_object(tcp_class);
    rb_gc_register_mark_object(unix_class);

    tie_class = private_class("Call");
    rb_define_alloc_func(tie_class, tie_alloc);
    rb_define_method(tie_class, "initialize_copy", tie_initialize_copy, 1);
    rb_define_method(tie_class, "call", tie_call, -1);
    early_hints_class = private_class("EarlyHints");
    rb_define_method(early_hints_class, "call", early_hints_call, 1);
    output_class = private_class("Output");
    rb_define_method(output_class, "write", output_write, 1);
    rb_define_method(output_class, "flush", output_flush, 0);
    rb_define_method(output_class, "finish", output_finish, 0);
    rb_define_method(output_class, "detach", output_detach, 0);
    rb_define_method(output_class, "untouched?", output_untouched, 0);
    stream_class = rb_const_get(ext_module, rb_intern("Stream"));
    rb_gc_register_mark_object(stream_class);
}
