/* Commands: arrays of String, Symbol, Integer and Float. Everything else is refused before a byte is sent. */
#include "link.h"

#include <strings.h>

void link_forget_request(struct link *link)
{
    link->conn.out.len = 0;
    link->apart_count = 0;
    if (RARRAY_LEN(link->kept) > 0)
        rb_ary_clear(link->kept);
}

static void refuse(struct link *link, size_t before, size_t apart_before, VALUE error, const char *text)
{
    link->conn.out.len = before;
    link->apart_count = apart_before;
    rb_raise(error, "%s", text);
}

/* A long text: its head into the buffer, itself later from where it lies. */
static int put_apart(struct link *link, VALUE text)
{
    int failed = oribi_redis_argument_head(&link->conn.out, (uint64_t)RSTRING_LEN(text));
    if (failed)
        return failed;
    if (link->apart_count == link->apart_cap) {
        size_t cap = link->apart_cap ? 2 * link->apart_cap : 8;
        REALLOC_N(link->apart, struct link_apart, cap);
        link->apart_cap = cap;
    }
    text = rb_str_new_frozen(text); /* shares the bytes: whoever changes the argument gets a copy */
    rb_ary_push(link->kept, text);
    link->apart[link->apart_count++] = (struct link_apart){link->conn.out.len, text};
    return oribi_redis_argument_end(&link->conn.out);
}

static int put_text(struct link *link, VALUE text)
{
    if (RSTRING_LEN(text) >= LINK_APART_BYTES)
        return put_apart(link, text);
    return oribi_redis_argument(&link->conn.out, oribi_slice(RSTRING_PTR(text), (size_t)RSTRING_LEN(text)));
}

/* 1: of no type that can be sent. */
static int put_argument(struct link *link, VALUE value)
{
    switch (rb_type(value)) {
    case T_STRING:
        return put_text(link, value);
    case T_SYMBOL:
        return put_text(link, rb_sym2str(value));
    case T_FIXNUM:
        return oribi_redis_argument_int(&link->conn.out, FIX2LONG(value));
    case T_BIGNUM:
        return put_text(link, rb_big2str(value, 10));
    case T_FLOAT:
        return put_text(link, rb_obj_as_string(value));
    default:
        return 1;
    }
}

void link_put_command(struct link *link, VALUE command)
{
    size_t before = link->conn.out.len;
    size_t apart_before = link->apart_count;
    Check_Type(command, T_ARRAY);
    int failed = oribi_redis_begin(&link->conn.out, (uint64_t)RARRAY_LEN(command));
    if (failed == ORIBI_EINVAL)
        refuse(link, before, apart_before, rb_eArgError, "a command has 1 to 1048576 words");
    /* RARRAY_LEN anew each time: what is called for an argument may change the array, which then is noticed below. */
    long count = RARRAY_LEN(command);
    for (long i = 0; i < count && !failed; i++) {
        VALUE value = i < RARRAY_LEN(command) ? RARRAY_AREF(command, i) : Qnil;
        failed = put_argument(link, value);
        if (failed == 1) {
            link->conn.out.len = before;
            link->apart_count = apart_before;
            rb_raise(rb_eTypeError, "%" PRIsVALUE " cannot be sent: only String, Symbol, Integer and Float can",
                     rb_obj_class(value));
        }
    }
    if (failed == ORIBI_EINVAL)
        refuse(link, before, apart_before, rb_eArgError, "an argument is longer than 512 MiB");
    if (failed)
        refuse(link, before, apart_before, rb_eNoMemError, "no memory for a command");
}

int link_send(struct link *link, uint64_t quiet, uint64_t replies)
{
    if (link->apart_count == 0)
        return oribi_redis_conn_send(&link->conn, quiet, replies);
    size_t count = 2 * link->apart_count + 1;
    VALUE held;
    struct iovec *pieces = ALLOCV_N(struct iovec, held, count);
    /* The buffer is sent in the pieces below; the connection is to send nothing else. */
    struct oribi_buf out = link->conn.out;
    size_t at = 0;
    size_t n = 0;
    for (size_t i = 0; i < link->apart_count; i++) {
        const struct link_apart *apart = &link->apart[i];
        pieces[n++] = (struct iovec){out.p + at, apart->at - at};
        pieces[n++] = (struct iovec){RSTRING_PTR(apart->text), (size_t)RSTRING_LEN(apart->text)};
        at = apart->at;
    }
    pieces[n++] = (struct iovec){out.p + at, out.len - at};
    link->conn.out.len = 0;
    int code = oribi_redis_conn_send_pieces(&link->conn, pieces, n, quiet, replies);
    ALLOCV_END(held);
    return code;
}

/* The name of a command; nil where it is none that can be said at once. */
static VALUE name_of(VALUE command)
{
    if (!RB_TYPE_P(command, T_ARRAY) || RARRAY_LEN(command) == 0)
        return Qnil;
    VALUE name = RARRAY_AREF(command, 0);
    return RB_TYPE_P(name, T_STRING) ? name : RB_TYPE_P(name, T_SYMBOL) ? rb_sym2str(name) : Qnil;
}

VALUE link_any_named(VALUE class, VALUE commands, VALUE names)
{
    Check_Type(commands, T_ARRAY);
    Check_Type(names, T_ARRAY);
    for (long i = 0; i < RARRAY_LEN(commands); i++) {
        VALUE name = name_of(RARRAY_AREF(commands, i));
        if (NIL_P(name))
            return Qtrue;
        for (long j = 0; j < RARRAY_LEN(names); j++) {
            VALUE one = RARRAY_AREF(names, j);
            Check_Type(one, T_STRING);
            if (RSTRING_LEN(one) == RSTRING_LEN(name) &&
                strncasecmp(RSTRING_PTR(one), RSTRING_PTR(name), (size_t)RSTRING_LEN(one)) == 0)
                return Qtrue;
        }
    }
    return Qfalse;
}
