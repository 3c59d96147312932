/* Answers from the application's return values.
 *
 *   Array           one writev straight from the strings; the same for a proxy around one, and where to_ary gives one
 *   File, to_path   sendfile; the same for a file that a header names, whatever the body is
 *   each            streamed, one write per part
 *   call            streamed through a Stream (stream.c), or called with the socket once rack.protocol has changed
 *                   the protocol
 *
 * The slices given to the core point into Ruby strings, and compaction moves embedded strings. So between collecting
 * a pointer and the core's return nothing here allocates a Ruby object or releases the VM lock: converting comes
 * first, then buffers, then pointers. */
#include "ext.h"

#include "oribi/base/os/os.h"
#include "oribi/http/status.h"
#include "oribi/worker/events.h"
#include "oribi/worker/socket.h"

enum { PARTS_STACK = 1024 }; /* 16 KiB */

static VALUE key_hijack;
static VALUE key_protocol;
static ID id_call;
static ID id_close;
static ID id_each;
static ID id_pack;
static ID id_pos;
static ID id_to_ary;
static ID id_to_i;
static ID id_to_path;

/* The core has refused the answer and logged why; the request ends with 500. */
static void refuse(struct ext_call *call)
{
    struct oribi_req *req = call->req;
    call->req = NULL;
    oribi_reply_error(req, 500);
    call->error = rb_exc_new_cstr(ext_error, "the status, a header or the framing of the answer is not valid");
}

/* Turns the result of a whole answer into the state of the call. */
static void settle(struct ext_call *call, int result)
{
    if (result == ORIBI_EAPP) {
        refuse(call);
        return;
    }
    call->req = NULL;
    call->gone = result < 0;
}

static bool has_no_body(const struct ext_call *call)
{
    return call->req->head->is_head || !oribi_status_has_body(call->code);
}

/* The parts of an Array body, all Strings: the Array itself when they are, as they are in nearly every answer. */
static VALUE string_parts(VALUE parts)
{
    long count = RARRAY_LEN(parts);
    for (long i = 0; i < count; i++) {
        if (RB_TYPE_P(RARRAY_AREF(parts, i), T_STRING))
            continue;
        VALUE texts = rb_ary_new_capa(count);
        for (long j = 0; j < RARRAY_LEN(parts); j++)
            rb_ary_push(texts, rb_obj_as_string(RARRAY_AREF(parts, j)));
        return texts;
    }
    return parts;
}

static size_t fill_parts(struct iovec *vec, size_t cap, VALUE parts)
{
    size_t count = 0;
    long len = RARRAY_LEN(parts) < (long)cap ? RARRAY_LEN(parts) : (long)cap;
    const VALUE *items = RARRAY_CONST_PTR(parts); /* nothing below runs Ruby code or allocates */
    for (long i = 0; i < len; i++) {
        if (!RB_TYPE_P(items[i], T_STRING))
            continue;
        vec[count].iov_base = RSTRING_PTR(items[i]);
        vec[count].iov_len = (size_t)RSTRING_LEN(items[i]);
        count += vec[count].iov_len > 0;
    }
    return count;
}

int ext_reply_begin(struct ext_call *call, int64_t body_len)
{
    struct ext_headers headers;
    ext_headers_collect(&headers, call->headers);
    int result = oribi_reply_begin(call->req, call->code, headers.items, headers.count, body_len);
    RB_GC_GUARD(headers.holder);
    RB_GC_GUARD(headers.strings);
    if (result < 0)
        refuse(call);
    else
        call->begun = true;
    return result;
}

/* HEAD, 204, 304 with a body whose length is not known without running it: the head alone. */
static void send_head_only(struct ext_call *call)
{
    if (ext_reply_begin(call, -1) == 0)
        ext_reply_finish(call);
}

/* False, and nothing has happened: the headers hijack the socket, if they are `asked` that. */
static bool send_array(struct ext_call *call, VALUE parts, bool asked)
{
    struct iovec stack[PARTS_STACK];
    struct iovec *vec = stack;
    size_t cap = PARTS_STACK;
    VALUE holder = Qnil;
    parts = string_parts(parts);
    if (RARRAY_LEN(parts) > PARTS_STACK) {
        cap = (size_t)RARRAY_LEN(parts);
        holder = rb_str_buf_new((long)(cap * sizeof(struct iovec)));
        vec = (struct iovec *)RSTRING_PTR(holder);
    }
    struct ext_headers headers;
    ext_headers_collect(&headers, call->headers);
    if (RB_UNLIKELY(asked && RTEST(headers.hijack)))
        return false;
    size_t count = fill_parts(vec, cap, parts);
    settle(call, oribi_reply(call->req, call->code, headers.items, headers.count, vec, count));
    RB_GC_GUARD(parts);
    RB_GC_GUARD(holder);
    RB_GC_GUARD(headers.holder);
    RB_GC_GUARD(headers.strings);
    return true;
}

/* Takes the result of oribi_reply_rest_of_file() or oribi_reply_path(). False: no file was sent. */
static bool sent_file(struct ext_call *call, int result)
{
    if (result == 1)
        return false;
    settle(call, result);
    return true;
}

/* A body that names a file. What cannot be opened, or is no regular file, is left to `each`, which gives the
 * application's own error. */
static bool try_send_path(struct ext_call *call)
{
    VALUE path = rb_funcallv(call->body, id_to_path, 0, NULL);
    if (!RB_TYPE_P(path, T_STRING))
        return false;
    (void)StringValueCStr(path); /* raises for a name with NUL */
    struct ext_headers headers;
    ext_headers_collect(&headers, call->headers);
    int result = oribi_reply_path(call->req, call->code, headers.items, headers.count, RSTRING_PTR(path));
    RB_GC_GUARD(path);
    RB_GC_GUARD(headers.holder);
    RB_GC_GUARD(headers.strings);
    return sent_file(call, result);
}

/* An open File sends from where it stands; a pipe or a socket, which are of this kind in Ruby too, stands nowhere. */
static bool try_send_io(struct ext_call *call)
{
    int64_t size;
    if (!oribi_os_is_file(rb_io_descriptor(call->body), &size))
        return false;
    int64_t offset = NUM2LL(rb_funcallv(call->body, id_pos, 0, NULL));
    struct ext_headers headers;
    ext_headers_collect(&headers, call->headers);
    int fd = rb_io_descriptor(call->body);
    int result = oribi_reply_rest_of_file(call->req, call->code, headers.items, headers.count, fd, offset);
    RB_GC_GUARD(headers.holder);
    RB_GC_GUARD(headers.strings);
    return sent_file(call, result);
}

/* A header that names a file, where the options allow it: the body is closed, and not looked at. */
static bool try_send_named(struct ext_call *call)
{
    struct ext_headers headers;
    ext_headers_collect(&headers, call->headers);
    int result = oribi_reply_named(call->req, call->code, headers.items, headers.count);
    RB_GC_GUARD(headers.holder);
    RB_GC_GUARD(headers.strings);
    return sent_file(call, result);
}

int ext_reply_write(struct ext_call *call, VALUE string)
{
    if (call->gone)
        return ORIBI_ECLOSED;
    if (RSTRING_LEN(string) == 0)
        return 0;
    if (!call->begun && ext_reply_begin(call, -1) < 0)
        rb_raise(ext_error, "the status or a header of the answer is not valid");
    struct iovec vec = {RSTRING_PTR(string), (size_t)RSTRING_LEN(string)};
    int result = oribi_reply_write(call->req, &vec, 1);
    RB_GC_GUARD(string);
    if (result == ORIBI_EAPP)
        rb_raise(ext_error, "the answer says Transfer-Encoding: chunked, but its body is not framed so");
    if (result == 1)
        result = ext_call_wait_room(call);
    if (result < 0)
        call->gone = true;
    return result;
}

void ext_reply_finish(struct ext_call *call)
{
    if (!call->req || (!call->begun && ext_reply_begin(call, -1) < 0))
        return;
    if (RB_UNLIKELY(call->away > 0))
        ext_call_gather(call);
    struct oribi_req *req = call->req;
    call->req = NULL;
    if (call->gone)
        oribi_reply_abort(req);
    else if (oribi_reply_end(req) < 0)
        call->gone = true;
}

/* A body may keep this block and call it from anywhere, also when the call is over. */
static VALUE write_part(RB_BLOCK_CALL_FUNC_ARGLIST(part, tie))
{
    if (!RB_TYPE_P(part, T_STRING))
        part = rb_obj_as_string(part);
    struct ext_call *call = ext_tied_call(tie);
    if (!call || !call->req)
        rb_raise(rb_eIOError, "the answer has ended, and its body still yields");
    /* Leaves `each` with its ensure clauses run: the client does not read what would follow. */
    if (ext_reply_write(call, part) < 0)
        rb_iter_break();
    return Qnil;
}

static void send_each(struct ext_call *call)
{
    if (ext_reply_begin(call, -1) < 0)
        return;
    rb_block_call(call->body, id_each, 0, NULL, write_part, call->tie);
    ext_reply_finish(call);
}

struct giving {
    VALUE taker;
    VALUE io;
};

static VALUE give(VALUE arg)
{
    struct giving *giving = (struct giving *)arg;
    return rb_funcallv(giving->taker, id_call, 1, &giving->io);
}

/* The head is ours, the rest of the connection the application's: `taker` is called with the socket. If that fails
 * nobody has it, and the client should not wait for the collector to close it. */
static void send_detached(struct ext_call *call, VALUE taker)
{
    if (ext_reply_begin(call, ORIBI_BODY_DETACHED) < 0)
        return;
    struct giving giving = {taker, ext_stream_detach(call)};
    int state = 0;
    rb_protect(give, (VALUE)&giving, &state);
    if (state) {
        rb_io_close(giving.io);
        rb_jump_tag(state);
    }
}

/* rack.protocol: the connection changes to a protocol that the client has offered, RFC 9110 7.8. The status is 101
 * whatever the application says, which may have been written for HTTP/2 as well, where it is 200. */
static void send_upgrade(struct ext_call *call, VALUE protocol)
{
    if (!RB_TYPE_P(protocol, T_STRING) || !RTEST(rb_ary_includes(ext_env_protocols(call->req->head), protocol)))
        rb_raise(ext_error, "rack.protocol is %" PRIsVALUE ", which the client has not offered", rb_inspect(protocol));
    if (!rb_respond_to(call->body, id_call))
        rb_raise(rb_eTypeError, "with rack.protocol the body is called with the stream, but it is %" PRIsVALUE,
                 rb_obj_class(call->body));
    call->code = 101;
    call->headers = rb_hash_dup(call->headers);
    rb_hash_aset(call->headers, rb_str_new_cstr("upgrade"), protocol);
    rb_hash_aset(call->headers, rb_str_new_cstr("connection"), rb_str_new_cstr("upgrade"));
    send_detached(call, call->body);
}

/* The head leaves with the first write, or with the socket, when the application passes the stream to a thread. */
static void send_stream(struct ext_call *call)
{
    call->stream = ext_stream_new(call);
    rb_funcallv(call->body, id_call, 1, &call->stream);
    ext_stream_leave(call);
}

/* A header that speaks to the server, or nil. */
static VALUE special_of(VALUE headers, VALUE key)
{
    return RB_TYPE_P(headers, T_HASH) ? rb_hash_lookup(headers, key) : Qnil;
}

static VALUE ask_array(VALUE body)
{
    return rb_funcallv(body, id_to_ary, 0, NULL);
}

static VALUE no_array(VALUE nothing, VALUE exception)
{
    return Qnil; /* what is wrong will be told by `each` */
}

static bool are_strings(VALUE parts)
{
    for (long i = 0; i < RARRAY_LEN(parts); i++)
        if (!RB_TYPE_P(RARRAY_AREF(parts, i), T_STRING))
            return false;
    return true;
}

static VALUE collect_part(RB_BLOCK_CALL_FUNC_ARGLIST(part, parts))
{
    return rb_ary_push(parts, part);
}

/* The parts of a body that has them all already, or nil.
 *
 * to_ary closes a body that can be closed (Rack 3), and many that respond to it give no Array: it is asked only where
 * nothing is lost then. A proxy around an Array, as Rails and most middleware give it, has the methods of an Array, and
 * its `each` waits for nothing: so its parts are collected, sent as a whole, and it is closed after that, once. All
 * others are streams. */
static VALUE known_parts(VALUE body)
{
    if (!rb_respond_to(body, id_to_ary))
        return Qnil;
    if (rb_respond_to(body, id_pack) && rb_respond_to(body, id_each)) {
        VALUE parts = rb_ary_new();
        rb_block_call(body, id_each, 0, NULL, collect_part, parts);
        return parts;
    }
    if (rb_respond_to(body, id_close))
        return Qnil;
    VALUE parts = rb_rescue2(ask_array, body, no_array, Qnil, rb_eStandardError, (VALUE)0);
    return RB_TYPE_P(parts, T_ARRAY) && are_strings(parts) ? parts : Qnil;
}

static void send_object(struct ext_call *call)
{
    VALUE body = call->body;
    if (rb_respond_to(body, id_to_path)) {
        if (RB_TYPE_P(body, T_FILE) ? try_send_io(call) : try_send_path(call))
            return;
    }
    VALUE parts = known_parts(body);
    if (!NIL_P(parts)) {
        (void)send_array(call, parts, false);
        return;
    }
    bool each = rb_respond_to(body, id_each);
    if (!each && !rb_respond_to(body, id_call))
        rb_raise(rb_eTypeError, "response body is %" PRIsVALUE ", which has neither each nor call", rb_obj_class(body));
    if (has_no_body(call))
        send_head_only(call);
    else if (each)
        send_each(call);
    else
        send_stream(call);
}

/* A status that is no Integer: "200", "200 OK", or what has to_i. */
static int read_status(struct ext_call *call)
{
    if (RB_TYPE_P(call->status, T_STRING)) {
        struct oribi_slice text = {RSTRING_PTR(call->status), (size_t)RSTRING_LEN(call->status)};
        int status = oribi_req_read_status(call->req, text);
        if (status >= 0)
            return status;
    }
    return NUM2INT(rb_funcallv(call->status, id_to_i, 0, NULL));
}

void ext_reply_send(struct ext_call *call)
{
    ext_input_settle(call);
    VALUE response = rb_check_array_type(call->response);
    if (NIL_P(response) || RARRAY_LEN(response) < 3)
        rb_raise(rb_eTypeError, "the application returned %" PRIsVALUE ", not [status, headers, body]",
                 rb_obj_class(call->response));
    call->status = RARRAY_AREF(response, 0);
    call->headers = RARRAY_AREF(response, 1);
    call->body = RARRAY_AREF(response, 2);
    call->code = FIXNUM_P(call->status) ? FIX2INT(call->status) : read_status(call);

    bool upgrade = call->req->head->upgrade;
    if (RB_UNLIKELY(upgrade) && ext_websocket_upgrades(call))
        call->code = 101;
    bool accepted = RB_UNLIKELY(upgrade) && call->code == 101 && oribi_socket_accepted(call->req);
    if (accepted || (RB_UNLIKELY(oribi_events_streams(call->req)) && call->code == 200)) {
        (void)send_array(call, rb_ary_new(), false); /* whatever middleware has made of the body */
        return;
    }
    if (RB_LIKELY(RB_TYPE_P(call->body, T_ARRAY) && !upgrade && !call->worker->sendfile) &&
        send_array(call, call->body, true))
        return;
    VALUE hijack = special_of(call->headers, key_hijack);
    VALUE protocol = RB_UNLIKELY(upgrade) ? special_of(call->headers, key_protocol) : Qnil;
    if (RB_UNLIKELY(RTEST(protocol)))
        send_upgrade(call, protocol);
    else if (RB_UNLIKELY(RTEST(hijack)))
        send_detached(call, hijack);
    else if (RB_UNLIKELY(call->code == 101) && rb_respond_to(call->body, id_call))
        send_detached(call, call->body); /* what follows is no answer's body: the stream is the connection */
    else if (RB_UNLIKELY(call->worker->sendfile) && try_send_named(call))
        return;
    else if (RB_TYPE_P(call->body, T_ARRAY))
        (void)send_array(call, call->body, false);
    else
        send_object(call);
}

void ext_reply_page(struct ext_call *call, VALUE type, VALUE page)
{
    struct oribi_req *req = call->req;
    const char *text = StringValueCStr(type);
    StringValue(page);
    call->req = NULL;
    oribi_reply_failure(req, ext_reply_failure_status(call), text,
                        oribi_slice(RSTRING_PTR(page), (size_t)RSTRING_LEN(page)));
    RB_GC_GUARD(type);
    RB_GC_GUARD(page);
}

int ext_reply_failure_status(const struct ext_call *call)
{
    return call->timed_out ? 504 : call->refused ? call->refused : 500;
}

void ext_reply_fail(struct ext_call *call)
{
    struct oribi_req *req = call->req;
    if (!req)
        return;
    call->req = NULL;
    if (call->cancelled)
        oribi_reply_gone(req);
    else
        oribi_reply_error(req, ext_reply_failure_status(call));
}

void ext_reply_setup(void)
{
    key_hijack = rb_enc_interned_str_cstr("rack.hijack", rb_utf8_encoding());
    rb_gc_register_mark_object(key_hijack);
    key_protocol = rb_enc_interned_str_cstr("rack.protocol", rb_utf8_encoding());
    rb_gc_register_mark_object(key_protocol);
    id_call = rb_intern("call");
    id_close = rb_intern("close");
    id_each = rb_intern("each");
    id_pack = rb_intern("pack");
    id_pos = rb_intern("pos");
    id_to_ary = rb_intern("to_ary");
    id_to_i = rb_intern("to_i");
    id_to_path = rb_intern("to_path");
}
