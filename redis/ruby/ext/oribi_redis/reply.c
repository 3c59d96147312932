/* Values: String in UTF-8 (binary where the bytes are none), Integer, Float, true and false, nil, Array (sets too),
 * Hash; an error of the server is what `errors` makes of its text, in its place. */
#include "link.h"

#include <ruby/encoding.h>

#include <math.h>

enum {
    ASCII_STEP = 32,          /* bytes looked at together */
    ASCII_BLOCK = 4096,       /* ... before it is known whether to go on */
    RESERVE_BYTES = 16 << 20, /* reserved at first for an announced text; the rest when so much has come */
    TOGETHER = 16,            /* elements of an array put there at once */
};

static uint64_t word_at(const char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
    return word;
}

#define HIGH_BITS 0x8080808080808080

static bool is_ascii(const char *p, size_t n)
{
    while (n >= ASCII_STEP) {
        uint64_t all[ASCII_STEP / sizeof(uint64_t)] = {0};
        size_t block = n < ASCII_BLOCK ? n & ~(size_t)(ASCII_STEP - 1) : ASCII_BLOCK;
        for (const char *end = p + block; p < end; p += ASCII_STEP)
            for (size_t i = 0; i < ASCII_STEP / sizeof(uint64_t); i++)
                all[i] |= word_at(p + i * sizeof(uint64_t));
        n -= block;
        if ((all[0] | all[1] | all[2] | all[3]) & HIGH_BITS)
            return false;
    }
    uint64_t all = 0;
    for (; n >= sizeof(all); p += sizeof(all), n -= sizeof(all))
        all |= word_at(p);
    for (; n > 0; p++, n--)
        all |= (unsigned char)*p;
    return (all & HIGH_BITS) == 0;
}

/* A new string, binary as it is: UTF-8, unless its bytes are none. Most are ASCII, which is known here faster than
 * Ruby's own look at them. */
static VALUE text_of(VALUE text)
{
    RB_ENCODING_SET_INLINED(text, rb_utf8_encindex());
    if (is_ascii(RSTRING_PTR(text), (size_t)RSTRING_LEN(text)))
        ENC_CODERANGE_SET(text, ENC_CODERANGE_7BIT);
    else if (rb_enc_str_coderange(text) == ENC_CODERANGE_BROKEN)
        rb_enc_associate(text, rb_ascii8bit_encoding());
    return text;
}

static VALUE new_text(struct oribi_slice slice)
{
    return text_of(rb_str_new(slice.p, (long)slice.n));
}

/* The reader has seen that it is one; strtod(3) would look at the locale. */
static VALUE float_of(struct oribi_slice text)
{
    bool minus = text.n && text.p[0] == '-';
    struct oribi_slice rest = minus ? oribi_slice(text.p + 1, text.n - 1) : text;
    if (oribi_slice_equal(rest, ORIBI_SLICE("inf")))
        return DBL2NUM(minus ? -INFINITY : INFINITY);
    if (oribi_slice_equal(rest, ORIBI_SLICE("nan")))
        return DBL2NUM(NAN);
    return DBL2NUM(rb_str_to_dbl(rb_str_new(text.p, (long)text.n), 0));
}

static VALUE error_of(struct link *link, struct oribi_slice text)
{
    return rb_funcall(link->errors, rb_intern("parse"), 1, new_text(text));
}

/* Straight to where it will lie. Room for all of it is made when a part has come. */
static VALUE long_text(struct link *link, uint64_t n, int *code)
{
    size_t room = n < RESERVE_BYTES ? (size_t)n : RESERVE_BYTES;
    VALUE text = rb_str_new(NULL, (long)room);
    for (size_t have = 0; have < n; room = n - have < have ? (size_t)n : 2 * have) {
        if (have > 0)
            rb_str_resize(text, (long)room);
        *code = oribi_redis_conn_body(&link->conn, RSTRING_PTR(text) + have, room - have);
        if (*code)
            return Qundef;
        have = room;
    }
    return text_of(text);
}

static VALUE build(struct link *link, const struct oribi_redis_event *event, int *code);

static VALUE next_value(struct link *link, int *code)
{
    struct oribi_redis_event event;
    *code = oribi_redis_conn_next(&link->conn, &event);
    return *code ? Qundef : build(link, &event, code);
}

static VALUE array_of(struct link *link, uint64_t count, int *code)
{
    VALUE array = rb_ary_new_capa((long)oribi_redis_likely(&link->conn.reader, count));
    VALUE some[TOGETHER]; /* seen by the collector, as all of the stack is */
    int n = 0;
    for (uint64_t i = 0; i < count; i++) {
        VALUE value = next_value(link, code);
        if (value == Qundef)
            return Qundef;
        some[n++] = value;
        if (n == TOGETHER || i + 1 == count) {
            rb_ary_cat(array, some, n);
            n = 0;
        }
    }
    return array;
}

static VALUE hash_of(struct link *link, uint64_t count, int *code)
{
    VALUE hash = rb_hash_new();
    for (uint64_t i = 0; i < count; i++) {
        VALUE key = next_value(link, code);
        VALUE value = key == Qundef ? Qundef : next_value(link, code);
        if (value == Qundef)
            return Qundef;
        if (RB_TYPE_P(key, T_STRING))
            rb_obj_freeze(key); /* a hash would make a copy of it */
        rb_hash_aset(hash, key, value);
        RB_GC_GUARD(key);
    }
    return hash;
}

/* Depth is the reader's to limit: ORIBI_REDIS_DEPTH_MAX. */
static VALUE build(struct link *link, const struct oribi_redis_event *event, int *code)
{
    switch (event->kind) {
    case ORIBI_REDIS_NULL:
        return Qnil;
    case ORIBI_REDIS_BOOLEAN:
        return event->integer ? Qtrue : Qfalse;
    case ORIBI_REDIS_INTEGER:
        return LL2NUM(event->integer);
    case ORIBI_REDIS_DOUBLE:
        return float_of(event->text);
    case ORIBI_REDIS_BIG:
        return rb_str_to_inum(rb_str_new(event->text.p, (long)event->text.n), 10, 0);
    case ORIBI_REDIS_ERROR:
        return error_of(link, event->text);
    case ORIBI_REDIS_STATUS: /* nearly always "OK": one frozen object */
        return rb_enc_interned_str(event->text.p, (long)event->text.n, rb_utf8_encoding());
    case ORIBI_REDIS_LONG:
        return long_text(link, event->count, code);
    case ORIBI_REDIS_MAP:
        return hash_of(link, event->count, code);
    case ORIBI_REDIS_ARRAY:
    case ORIBI_REDIS_SET:
    case ORIBI_REDIS_PUSH:
        return array_of(link, event->count, code);
    default:
        return new_text(event->text);
    }
}

void link_pass_push(struct link *link, const struct oribi_redis_event *event, int *code)
{
    (void)build(link, event, code);
}

VALUE link_reply(struct link *link, int *code, bool *is_push)
{
    for (;;) {
        struct oribi_redis_event event;
        *code = oribi_redis_conn_next(&link->conn, &event);
        if (*code)
            return Qundef;
        bool push = event.kind == ORIBI_REDIS_PUSH;
        if (is_push)
            *is_push = push;
        if (!push || is_push)
            return build(link, &event, code);
        link_pass_push(link, &event, code);
        if (*code)
            return Qundef;
    }
}
