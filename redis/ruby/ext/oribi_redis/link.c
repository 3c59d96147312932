/* Oribi::Redis::Link: a connection with as little of Ruby around it as will do. Its operations begin, send, read and
 * end; `failed` (Ruby's) raises what a failure is to its user. */
#include "link.h"

#include <ruby/thread.h>

/* --- the object --- */

static void link_mark(void *p)
{
    struct link *link = p;
    rb_gc_mark(link->errors);
    rb_gc_mark(link->io);
    rb_gc_mark(link->waiter);
    rb_gc_mark(link->kept);
}

static void link_free(void *p)
{
    struct link *link = p;
    if (!NIL_P(link->io))
        link->conn.fd = -1; /* the SSLSocket's, which ends by itself */
    link->conn.transport = NULL;
    oribi_redis_conn_deinit(&link->conn);
    xfree(link->apart);
    xfree(link);
}

static size_t link_size(const void *p)
{
    const struct link *link = p;
    return sizeof(*link) + link->conn.out.cap + link->conn.reader.in.cap + link->apart_cap * sizeof(*link->apart);
}

static const rb_data_type_t link_type = {.wrap_struct_name = "Oribi::Redis::Link",
                                         .function = {.dmark = link_mark, .dfree = link_free, .dsize = link_size},
                                         .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED};

struct link *link_of(VALUE self)
{
    return rb_check_typeddata(self, &link_type);
}

static VALUE link_alloc(VALUE class)
{
    struct link *link;
    VALUE self = TypedData_Make_Struct(class, struct link, &link_type, link);
    oribi_redis_conn_init(&link->conn, 0);
    link->errors = link->io = link->waiter = link->kept = Qnil;
    link->self = self;
    link->conn.context = link;
    link->conn.transport = &link_plain;
    RB_OBJ_WRITE(self, &link->kept, rb_ary_new());
    return self;
}

static VALUE link_initialize(VALUE self, VALUE errors)
{
    struct link *link = link_of(self);
    RB_OBJ_WRITE(self, &link->errors, errors);
    return self;
}

/* --- failures --- */

static VALUE kind_of(const struct link *link, int code, bool sending)
{
    const char *name = "connection";
    if (code == ORIBI_ETIMEOUT)
        name = sending ? "write_timeout" : "read_timeout";
    else if (code == ORIBI_EBAD || code == ORIBI_ELIMIT)
        name = "protocol";
    return ID2SYM(rb_intern(name));
}

/* Does not return: failed(kind, text) raises. */
VALUE link_fail(struct link *link, int code, bool sending)
{
    if (code == ORIBI_ENOMEM)
        rb_raise(rb_eNoMemError, "no memory for a reply");
    const char *why = oribi_redis_conn_why(&link->conn);
    link->failed.code = code;
    link->failed.sent = link->conn.sent;
    rb_funcall(link->self, rb_intern("failed"), 2, kind_of(link, code, sending),
               rb_utf8_str_new_cstr(*why ? why : "not connected"));
    rb_raise(rb_eRuntimeError, "failed did not raise");
}

/* --- connecting --- */

struct connecting {
    struct oribi_redis_conn *conn;
    const struct oribi_redis_place *place;
    int code;
};

static void *connect_unlocked(void *p)
{
    struct connecting *connecting = p;
    connecting->code = oribi_redis_conn_connect(connecting->conn, connecting->place);
    return NULL;
}

int link_connect_to(struct link *link, const struct oribi_redis_place *place)
{
    oribi_redis_conn_close(&link->conn);
    link->conn.transport = &link_plain;
    link->conn.sent = false;
    link->waiter = Qnil;
    struct connecting connecting = {&link->conn, place, 0};
    rb_thread_call_without_gvl(connect_unlocked, &connecting, NULL, NULL);
    return connecting.code;
}

static void put_path(char *to, size_t cap, VALUE text, const char *what)
{
    const char *p = StringValueCStr(text);
    if (strlen(p) >= cap)
        rb_raise(rb_eArgError, "the %s is longer than %d bytes", what, (int)cap - 1);
    memcpy(to, p, strlen(p) + 1);
}

/* connect(path, host, port, milliseconds): path or host is nil. Raises by failed. */
static VALUE link_connect(VALUE self, VALUE path, VALUE host, VALUE port, VALUE limit_ms)
{
    struct link *link = link_of(self);
    struct oribi_redis_place place;
    oribi_redis_place_init(&place);
    if (NIL_P(path)) {
        put_path(place.host, sizeof(place.host), host, "host");
        place.port = (uint16_t)NUM2USHORT(port);
    } else {
        put_path(place.path, sizeof(place.path), path, "path of a unix socket");
    }
    link->conn.connect_ms = NUM2LL(limit_ms);
    int code = link_connect_to(link, &place);
    if (code)
        link_fail(link, code, true);
    return Qnil;
}

/* attach(socket): an SSLSocket whose handshake is done. */
static VALUE link_attach(VALUE self, VALUE io)
{
    struct link *link = link_of(self);
    int fd = NUM2INT(rb_funcall(rb_funcall(io, rb_intern("to_io"), 0), rb_intern("fileno"), 0));
    oribi_redis_conn_close(&link->conn);
    link->conn.transport = &link_tls;
    RB_OBJ_WRITE(self, &link->io, io);
    oribi_redis_conn_attach(&link->conn, fd);
    return Qnil;
}

static VALUE link_close(VALUE self)
{
    oribi_redis_conn_close(&link_of(self)->conn);
    return Qnil;
}

/* --- operations --- */

/* Passes over pushes that came in between. 0, or the error of oribi_redis_conn_begin() or of reading them. */
static int begin(struct link *link)
{
    int code = oribi_redis_conn_begin(&link->conn);
    while (code == 1) {
        struct oribi_redis_event event;
        code = oribi_redis_conn_next(&link->conn, &event);
        if (code == 0)
            link_pass_push(link, &event, &code);
        if (code == 0)
            code = oribi_redis_conn_push(&link->conn);
    }
    return code;
}

static void begin_or_fail(struct link *link)
{
    link->conn.sent = false;
    link->failed.stage = link->opening ? ORIBI_REDIS_OPENING : ORIBI_REDIS_BEGINNING;
    int code = begin(link);
    if (code)
        link_fail(link, code, true);
    link->failed.stage = link->opening ? ORIBI_REDIS_OPENING : ORIBI_REDIS_ASKING;
}

/* call(command): its reply; an error of the server is a value. */
static VALUE link_call(VALUE self, VALUE command)
{
    struct link *link = link_of(self);
    begin_or_fail(link);
    link_forget_request(link);
    link_put_command(link, command);
    int code = link_send(link, 0, 1);
    if (code)
        return link_fail(link, code, true);
    VALUE reply = link_reply(link, &code, NULL);
    if (reply == Qundef)
        return link_fail(link, code, false);
    oribi_redis_conn_end(&link->conn);
    return reply;
}

static void put_commands(struct link *link, VALUE commands)
{
    Check_Type(commands, T_ARRAY);
    link_forget_request(link);
    for (long i = 0; i < RARRAY_LEN(commands); i++)
        link_put_command(link, RARRAY_AREF(commands, i));
}

/* call_all(commands, limits): their replies; limits: nil, or a time limit in milliseconds for each, nil being the
 * usual. */
static VALUE link_call_all(VALUE self, VALUE commands, VALUE limits)
{
    struct link *link = link_of(self);
    begin_or_fail(link);
    put_commands(link, commands);
    long count = RARRAY_LEN(commands);
    VALUE replies = rb_ary_new_capa(count);
    if (count == 0)
        return replies;
    int code = link_send(link, 0, (uint64_t)count);
    if (code)
        return link_fail(link, code, true);
    int64_t usual_ms = link->conn.read_ms;
    for (long i = 0; i < count; i++) {
        VALUE limit = NIL_P(limits) ? Qnil : rb_ary_entry(limits, i);
        link->conn.read_ms = NIL_P(limit) ? usual_ms : NUM2LL(limit);
        VALUE reply = link_reply(link, &code, NULL);
        link->conn.read_ms = usual_ms;
        if (reply == Qundef)
            return link_fail(link, code, false);
        rb_ary_push(replies, reply);
    }
    oribi_redis_conn_end(&link->conn);
    return replies;
}

/* send_quietly(commands): their replies will be read and counted by later operations. */
static VALUE link_send_quietly(VALUE self, VALUE commands)
{
    struct link *link = link_of(self);
    begin_or_fail(link);
    put_commands(link, commands);
    int code = link_send(link, (uint64_t)RARRAY_LEN(commands), 0);
    if (code)
        return link_fail(link, code, true);
    oribi_redis_conn_end(&link->conn);
    return Qnil;
}

/* settle: reads what quiet commands are still owed. */
static VALUE link_settle(VALUE self)
{
    struct link *link = link_of(self);
    struct oribi_redis_event event;
    begin_or_fail(link);
    int code = 0;
    while (code == 0 && (code = oribi_redis_conn_settle(&link->conn, &event)) == 1) {
        code = 0;
        link_pass_push(link, &event, &code);
        if (code)
            break;
    }
    if (code)
        return link_fail(link, code, false);
    oribi_redis_conn_end(&link->conn);
    return Qnil;
}

/* quiet_errors: [how many there were, texts of the first of them], which are forgotten. */
static VALUE link_quiet_errors(VALUE self)
{
    struct link *link = link_of(self);
    VALUE texts = rb_ary_new();
    for (uint32_t i = 0; i < link->conn.errors_kept; i++)
        rb_ary_push(texts, rb_utf8_str_new_cstr(link->conn.errors[i]));
    VALUE found = rb_ary_new_from_args(2, ULL2NUM(link->conn.quiet_errors), texts);
    oribi_redis_conn_forget_errors(&link->conn);
    return found;
}

/* listen(command): SUBSCRIBE and the like, whose answers are pushes. */
static VALUE link_listen(VALUE self, VALUE command)
{
    struct link *link = link_of(self);
    if (!link->conn.subscribed)
        begin_or_fail(link);
    link->conn.subscribed = true;
    link_forget_request(link);
    link_put_command(link, command);
    int code = link_send(link, 0, 0);
    if (code)
        return link_fail(link, code, true);
    return Qnil;
}

/* next_push: what the server sent without being asked; a time limit raises by failed. */
static VALUE link_next_push(VALUE self)
{
    struct link *link = link_of(self);
    int code = 0;
    bool is_push;
    link->conn.sent = false;
    VALUE push = link_reply(link, &code, &is_push);
    return push == Qundef ? link_fail(link, code, false) : push;
}

/* push?: whether one can be read. Does not wait, and a connection on which nothing came stays usable. */
static VALUE link_has_push(VALUE self)
{
    struct link *link = link_of(self);
    link->conn.sent = false;
    int code = oribi_redis_conn_push(&link->conn);
    return code < 0 ? link_fail(link, code, false) : code ? Qtrue : Qfalse;
}

/* --- what is so --- */

static VALUE link_is_open(VALUE self)
{
    return link_of(self)->conn.state != ORIBI_REDIS_CLOSED ? Qtrue : Qfalse;
}

static VALUE link_is_busy(VALUE self)
{
    return link_of(self)->conn.state == ORIBI_REDIS_BUSY ? Qtrue : Qfalse;
}

static VALUE link_quiet(VALUE self)
{
    return ULL2NUM(link_of(self)->conn.quiet);
}

static VALUE link_fileno(VALUE self)
{
    return INT2NUM(link_of(self)->conn.fd);
}

static VALUE link_set_read_ms(VALUE self, VALUE ms)
{
    link_of(self)->conn.read_ms = NUM2LL(ms);
    return ms;
}

static VALUE link_read_ms(VALUE self)
{
    return LL2NUM(link_of(self)->conn.read_ms);
}

static VALUE link_set_write_ms(VALUE self, VALUE ms)
{
    link_of(self)->conn.write_ms = NUM2LL(ms);
    return ms;
}

/* follows = true: a server that says it is no master is left before the next command (conn.h). */
static VALUE link_set_follows(VALUE self, VALUE follows)
{
    link_of(self)->conn.follows = RTEST(follows);
    return follows;
}

/* Link.parse_url(text): [tls, host or nil, port, path or nil, user, password, db]; raises ArgumentError. */
static VALUE link_parse_url(VALUE class, VALUE text)
{
    struct oribi_redis_place place;
    StringValue(text);
    oribi_redis_place_init(&place);
    const char *why = oribi_redis_place_read(&place, oribi_slice(RSTRING_PTR(text), (size_t)RSTRING_LEN(text)));
    if (why)
        rb_raise(rb_eArgError, "url: %s", why);
    VALUE words[] = {place.tls ? Qtrue : Qfalse,
                     place.path[0] ? Qnil : rb_utf8_str_new_cstr(place.host),
                     INT2FIX(place.port),
                     place.path[0] ? rb_utf8_str_new_cstr(place.path) : Qnil,
                     place.user[0] ? rb_utf8_str_new_cstr(place.user) : Qnil,
                     place.has_password ? rb_utf8_str_new_cstr(place.password) : Qnil,
                     INT2NUM(place.db)};
    return rb_ary_new_from_values(7, words);
}

/* May the command be carried out twice? retry.h. */
static bool is_repeatable(VALUE command)
{
    Check_Type(command, T_ARRAY);
    VALUE name = RARRAY_LEN(command) ? rb_obj_as_string(RARRAY_AREF(command, 0)) : rb_str_new(NULL, 0);
    struct oribi_slice first = oribi_slice(RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    bool found = oribi_redis_repeatable(&first, (uint64_t)RARRAY_LEN(command));
    RB_GC_GUARD(name);
    return found;
}

/* --- what follows from failures (retry.h) --- */

/* set_tries(attempts, delay_ms, delay_max_ms, resend), the last one 0 for never, 1 for safe, 2 for always. */
static VALUE link_set_tries(VALUE self, VALUE attempts, VALUE delay_ms, VALUE delay_max_ms, VALUE resend)
{
    int which = NUM2INT(resend);
    if (which < ORIBI_REDIS_RESEND_NEVER || which > ORIBI_REDIS_RESEND_ALWAYS)
        rb_raise(rb_eArgError, "resend is 0, 1 or 2");
    link_of(self)->tries = (struct oribi_redis_tries){.max = NUM2LL(attempts),
                                                      .delay_ms = NUM2LL(delay_ms),
                                                      .delay_max_ms = NUM2LL(delay_max_ms),
                                                      .resend = (enum oribi_redis_resend)which};
    return Qnil;
}

/* A new operation: all of its attempts are before it. */
static VALUE link_forget_tries(VALUE self)
{
    link_of(self)->tries.used = 0;
    return Qnil;
}

/* opening = true, and false when the connection is ready. Failures in between that Ruby raises count as the link's. */
static VALUE link_set_opening(VALUE self, VALUE opening)
{
    struct link *link = link_of(self);
    link->opening = RTEST(opening);
    if (link->opening) {
        link->failed.stage = ORIBI_REDIS_OPENING;
        link->failed.code = ORIBI_ESYS;
    }
    return opening;
}

/* again_ms(commands, pinned, random): milliseconds until the operation of these commands is made again after the last
 * failure; nil: not at all; a String: the same, and what is said instead. */
static VALUE link_again_ms(VALUE self, VALUE commands, VALUE pinned, VALUE random)
{
    struct link *link = link_of(self);
    Check_Type(commands, T_ARRAY);
    link->failed.pinned = RTEST(pinned);
    link->failed.repeats = true;
    for (long i = 0; i < RARRAY_LEN(commands) && link->failed.sent; i++)
        link->failed.repeats = link->failed.repeats && is_repeatable(RARRAY_AREF(commands, i));
    int64_t wait_ms = oribi_redis_tries_after(&link->tries, &link->failed, NUM2UINT(random));
    if (wait_ms == ORIBI_REDIS_TRANSACTION_LOST)
        return rb_utf8_str_new_cstr(oribi_redis_transaction_lost);
    return wait_ms < 0 ? Qnil : LL2NUM(wait_ms);
}

#pragma GCC visibility push(default)
void Init_oribi_redis(void);
#pragma GCC visibility pop

void Init_oribi_redis(void)
{
    rb_ext_ractor_safe(true); /* no state but each object's */
    VALUE redis = rb_define_class_under(rb_define_module("Oribi"), "Redis", rb_cObject);
    VALUE link = rb_define_class_under(redis, "Link", rb_cObject);
    rb_define_alloc_func(link, link_alloc);
    rb_define_method(link, "initialize", link_initialize, 1);
    rb_define_method(link, "connect", link_connect, 4);
    rb_define_method(link, "attach", link_attach, 1);
    sentinel_define(redis, link);
    rb_define_method(link, "close", link_close, 0);
    rb_define_method(link, "call", link_call, 1);
    rb_define_method(link, "call_all", link_call_all, 2);
    rb_define_method(link, "send_quietly", link_send_quietly, 1);
    rb_define_method(link, "settle", link_settle, 0);
    rb_define_method(link, "quiet_errors", link_quiet_errors, 0);
    rb_define_method(link, "listen", link_listen, 1);
    rb_define_method(link, "next_push", link_next_push, 0);
    rb_define_method(link, "push?", link_has_push, 0);
    rb_define_method(link, "open?", link_is_open, 0);
    rb_define_method(link, "busy?", link_is_busy, 0);
    rb_define_method(link, "quiet", link_quiet, 0);
    rb_define_method(link, "fileno", link_fileno, 0);
    rb_define_method(link, "read_ms", link_read_ms, 0);
    rb_define_method(link, "read_ms=", link_set_read_ms, 1);
    rb_define_method(link, "write_ms=", link_set_write_ms, 1);
    rb_define_method(link, "follows=", link_set_follows, 1);
    rb_define_singleton_method(link, "any_named?", link_any_named, 2);
    rb_define_singleton_method(link, "parse_url", link_parse_url, 1);
    rb_define_method(link, "set_tries", link_set_tries, 4);
    rb_define_method(link, "forget_tries", link_forget_tries, 0);
    rb_define_method(link, "opening=", link_set_opening, 1);
    rb_define_method(link, "again_ms", link_again_ms, 3);
}
