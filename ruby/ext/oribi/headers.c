/* The application's headers in the core's form, without copying: slices into Ruby's strings. Nothing is judged here;
 * the core validates. */
#include "ext.h"

#include <ruby/st.h>

static ID id_each;
static VALUE key_hijack;

#ifdef HAVE_RB_HASH_STLIKE_FOREACH
int rb_hash_stlike_foreach(VALUE hash, st_foreach_callback_func *function, st_data_t argument); /* internal/hash.h */
#endif

static void add_line(struct ext_headers *list, VALUE name, const char *value, size_t len)
{
    if (list->count < list->cap) {
        struct oribi_header *item = &list->items[list->count];
        item->name = RSTRING_PTR(name);
        item->name_len = (uint32_t)RSTRING_LEN(name);
        item->value = value;
        item->value_len = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len;
    }
    list->count++;
}

/* The next newline that stands between two values: not one behind CR or before white space, which is a matter for the
 * core. */
static const char *next_separator(const char *p, const char *end)
{
    const char *newline = p;
    while (newline < end && (newline = memchr(newline, '\n', (size_t)(end - newline)))) {
        bool folds = newline + 1 < end && (newline[1] == ' ' || newline[1] == '\t');
        if (!folds && (newline == p || newline[-1] != '\r'))
            return newline;
        newline++;
    }
    return NULL;
}

/* Rack 2 joins several values of one name with newlines; empty pieces are no values. */
static void add_value(struct ext_headers *list, VALUE name, VALUE value)
{
    const char *p = RSTRING_PTR(value);
    const char *end = p + RSTRING_LEN(value);
    const char *newline = next_separator(p, end);
    if (!newline) {
        add_line(list, name, p, (size_t)(end - p));
        return;
    }
    while (newline) {
        if (newline > p)
            add_line(list, name, p, (size_t)(newline - p));
        p = newline + 1;
        newline = next_separator(p, end);
    }
    if (p < end)
        add_line(list, name, p, (size_t)(end - p));
}

/* Adds one value that is a String, or nil: the core leaves it out and says so. False for any other. */
static bool add_item(struct ext_headers *list, VALUE name, VALUE value)
{
    if (NIL_P(value))
        add_line(list, name, NULL, 0);
    else if (RB_TYPE_P(value, T_STRING))
        add_line(list, name, RSTRING_PTR(value), (size_t)RSTRING_LEN(value));
    else
        return false;
    return true;
}

/* Names that begin with "rack." speak to the server and are not sent. */
static bool is_special(VALUE name)
{
    return RSTRING_LEN(name) >= 5 && memcmp(RSTRING_PTR(name), "rack.", 5) == 0;
}

static int stop_unplain(struct ext_headers *list)
{
    list->plain = false;
    return ST_STOP;
}

/* Runs no Ruby code and allocates nothing. */
static int collect_pair(VALUE name, VALUE value, VALUE arg)
{
    struct ext_headers *list = (struct ext_headers *)arg;
    if (!RB_TYPE_P(name, T_STRING))
        return stop_unplain(list);
    if (is_special(name)) {
        list->special = true;
        return ST_CONTINUE;
    }
    if (RB_TYPE_P(value, T_STRING)) {
        add_value(list, name, value);
        return ST_CONTINUE;
    }
    if (!RB_TYPE_P(value, T_ARRAY))
        return add_item(list, name, value) ? ST_CONTINUE : stop_unplain(list);
    for (long i = 0; i < RARRAY_LEN(value); i++)
        if (!add_item(list, name, RARRAY_AREF(value, i)))
            return stop_unplain(list);
    return ST_CONTINUE;
}

static void collect_all(struct ext_headers *list, VALUE headers)
{
    list->count = 0;
    list->plain = true;
    if (list->strings == Qnil) {
#ifdef HAVE_RB_HASH_STLIKE_FOREACH
        rb_hash_stlike_foreach(headers, collect_pair, (st_data_t)list);
#else
        rb_hash_foreach(headers, collect_pair, (VALUE)list);
#endif
        return;
    }
    for (long i = 0; i < RARRAY_LEN(list->strings); i += 2)
        collect_pair(RARRAY_AREF(list->strings, i), RARRAY_AREF(list->strings, i + 1), (VALUE)list);
}

static VALUE text_or_nil(VALUE value)
{
    return NIL_P(value) ? Qnil : rb_obj_as_string(value);
}

static VALUE convert_pair(RB_BLOCK_CALL_FUNC_ARGLIST(yielded, strings))
{
    VALUE name = argc > 0 ? argv[0] : Qnil;
    VALUE value = argc > 1 ? argv[1] : Qnil;
    if (argc == 1 && RB_TYPE_P(name, T_ARRAY)) {
        value = rb_ary_entry(name, 1);
        name = rb_ary_entry(name, 0);
    }
    name = rb_obj_as_string(name);
    if (is_special(name))
        return Qnil;
    if (RB_TYPE_P(value, T_ARRAY)) {
        VALUE texts = rb_ary_new_capa(RARRAY_LEN(value));
        for (long i = 0; i < RARRAY_LEN(value); i++)
            rb_ary_push(texts, text_or_nil(RARRAY_AREF(value, i)));
        value = texts;
    } else {
        value = text_or_nil(value);
    }
    rb_ary_push(strings, name);
    rb_ary_push(strings, value);
    return Qnil;
}

void ext_headers_collect(struct ext_headers *list, VALUE headers)
{
    list->items = list->stack;
    list->cap = EXT_HEADERS_STACK;
    list->holder = Qnil;
    list->strings = Qnil;
    list->hijack = Qnil;
    list->special = false;
    list->plain = RB_TYPE_P(headers, T_HASH);
    if (list->plain) {
        collect_all(list, headers);
        if (RB_UNLIKELY(list->special || !list->plain))
            list->hijack = rb_hash_lookup(headers, key_hijack);
    }
    if (!list->plain) {
        if (!rb_respond_to(headers, id_each))
            rb_raise(rb_eTypeError, "response headers are %" PRIsVALUE ", not a Hash", rb_obj_class(headers));
        VALUE strings = rb_ary_new();
        rb_block_call(headers, id_each, 0, NULL, convert_pair, strings);
        list->strings = strings;
        collect_all(list, headers);
    }
    if (list->count <= list->cap)
        return;
    /* Too many for the stack: a second pass into a buffer that the collector owns. */
    uint32_t count = list->count;
    list->holder = rb_str_buf_new((long)(count * sizeof(struct oribi_header)));
    list->items = (struct oribi_header *)RSTRING_PTR(list->holder);
    list->cap = count;
    collect_all(list, headers);
}

void ext_headers_setup(void)
{
    id_each = rb_intern("each");
    key_hijack = rb_enc_interned_str_cstr("rack.hijack", rb_utf8_encoding());
    rb_gc_register_mark_object(key_hijack);
}
