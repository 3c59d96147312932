/* Oribi::Form and Oribi::Cookie: strings to pairs and hashes, and back. lib/oribi/form.rb and cookie.rb have what users
 * see, with their options; what is defined here takes them by place. */
#include "ext.h"

#include "oribi/form/cookie.h"
#include "oribi/form/urlencoded.h"
#include "oribi/form/nested.h"

static VALUE form_error;
static rb_encoding *utf8;

NORETURN(static void fail(int status, const char *text));
static void fail(int status, const char *text)
{
    VALUE arguments[] = {rb_utf8_str_new_cstr(text), INT2FIX(status)};
    rb_exc_raise(rb_class_new_instance(2, arguments, form_error));
}

static VALUE text_of(struct oribi_slice slice)
{
    return rb_enc_str_new(slice.p, (long)slice.n, utf8);
}

/* A frozen String, one for equal bytes: a Hash would make it of a key anyway. */
static VALUE key_of(struct oribi_slice slice)
{
    return rb_enc_interned_str(slice.p, (long)slice.n, utf8);
}

static VALUE value_of(const struct oribi_form_pair *pair)
{
    return pair->bare ? Qnil : text_of(pair->value);
}

/* --- forms --- */

/* A form being read. No code of the application's runs meanwhile, so the String stays what it is. */
struct reading {
    struct oribi_form form;
    VALUE source; /* a String, or rack.input */
    struct oribi_slice bytes;
    VALUE holder;
    uint32_t depth_max;
};

size_t ext_size(VALUE number)
{
    long size = NUM2LONG(number);
    if (size < 0)
        rb_raise(rb_eArgError, "a maximum is negative: %ld", size);
    return (size_t)size;
}

uint32_t ext_maximum(VALUE number)
{
    size_t size = ext_size(number);
    if (size > UINT32_MAX)
        rb_raise(rb_eRangeError, "a maximum is too large: %zu", size);
    return (uint32_t)size;
}

NORETURN(static void fail_form(const struct oribi_form *form));
static void fail_form(const struct oribi_form *form)
{
    char text[ORIBI_ERROR_TEXT_CAP];
    oribi_form_explain(form, text);
    fail(oribi_form_status(form), text);
}

/* Before the bytes are looked at: a number may be an object with code of its own. */
static struct oribi_form_limits limits_of(VALUE pairs, VALUE key_bytes, VALUE bytes)
{
    struct oribi_form_limits limits;
    limits.pairs_max = ext_size(pairs);
    limits.key_bytes_max = ext_size(key_bytes);
    limits.bytes_max = ext_size(bytes);
    return limits;
}

/* `room` has as many bytes as there are to be read. */
static void begin(struct reading *reading, char *room, VALUE semicolon, const struct oribi_form_limits *limits)
{
    unsigned rules = ORIBI_FORM_RACK | (RTEST(semicolon) ? ORIBI_FORM_SEMICOLON : 0);
    if (oribi_form_begin(&reading->form, reading->bytes, room, rules, limits) < 0)
        fail_form(&reading->form);
}

static bool next_pair(struct reading *reading, struct oribi_form_pair *pair)
{
    int code = oribi_form_next(&reading->form, pair);
    if (code < 0)
        fail_form(&reading->form);
    return code > 0;
}

static VALUE form_pairs(VALUE self, VALUE string, VALUE semicolon, VALUE pairs_max, VALUE key_bytes, VALUE bytes)
{
    struct reading reading = {.source = string};
    struct oribi_form_pair pair;
    const struct oribi_form_limits limits = limits_of(pairs_max, key_bytes, bytes);
    VALUE pairs = rb_ary_new();
    reading.bytes = ext_input_bytes(&reading.source);
    char *room = ALLOCV_N(char, reading.holder, reading.bytes.n + 1);
    begin(&reading, room, semicolon, &limits);
    while (next_pair(&reading, &pair)) {
        VALUE key = text_of(pair.key);
        rb_ary_push(pairs, rb_assoc_new(key, value_of(&pair)));
    }
    ALLOCV_END(reading.holder);
    RB_GC_GUARD(reading.source);
    return pairs;
}

NORETURN(static void fail_kind(const char *wanted, VALUE found, VALUE key));
static void fail_kind(const char *wanted, VALUE found, VALUE key)
{
    char text[ORIBI_ERROR_TEXT_CAP];
    snprintf(text, sizeof(text), "expected %s (got %s) for the parameter '%.*s'", wanted, rb_obj_classname(found),
             (int)(RSTRING_LEN(key) > 80 ? 80 : RSTRING_LEN(key)), RSTRING_PTR(key));
    fail(400, text);
}

static VALUE hash_at(VALUE hash, VALUE key)
{
    VALUE found = rb_hash_lookup(hash, key);
    if (NIL_P(found)) {
        found = rb_hash_new();
        rb_hash_aset(hash, key, found);
    }
    if (!RB_TYPE_P(found, T_HASH))
        fail_kind("Hash", found, key);
    return found;
}

static VALUE array_at(VALUE hash, VALUE key)
{
    VALUE found = rb_hash_lookup(hash, key);
    if (NIL_P(found)) {
        found = rb_ary_new();
        rb_hash_aset(hash, key, found);
    }
    if (!RB_TYPE_P(found, T_ARRAY))
        fail_kind("Array", found, key);
    return found;
}

/* Has the hash what the path leads to? */
static bool leads_somewhere(VALUE hash, struct oribi_slice path)
{
    struct oribi_slice part;
    VALUE at = hash;
    while (oribi_nested_part(&path, &part)) {
        at = RB_TYPE_P(at, T_HASH) ? rb_hash_lookup2(at, key_of(part), Qundef) : Qundef;
        if (at == Qundef)
            return false;
    }
    return true;
}

static VALUE element_of(VALUE array, const struct oribi_nested_step *step)
{
    VALUE last = rb_ary_entry(array, -1);
    if (RB_TYPE_P(last, T_HASH) && (step->shared || !leads_somewhere(last, step->path)))
        return last;
    last = rb_hash_new();
    rb_ary_push(array, last);
    return last;
}

/* Where the name leads, and what is missing on the way, is made. */
static void place(VALUE hash, struct oribi_slice name, VALUE value, uint32_t depth_max)
{
    struct oribi_nested nested;
    struct oribi_nested_step step;
    int code;
    oribi_nested_begin(&nested, name, depth_max);
    while ((code = oribi_nested_next(&nested, &step)) > 0) {
        VALUE key = key_of(step.key);
        switch (step.kind) {
        case ORIBI_NESTED_SET:
            rb_hash_aset(hash, key, value);
            break;
        case ORIBI_NESTED_APPEND:
            rb_ary_push(array_at(hash, key), value);
            break;
        case ORIBI_NESTED_HASH:
            hash = hash_at(hash, key);
            break;
        case ORIBI_NESTED_ELEMENT:
            hash = element_of(array_at(hash, key), &step);
            break;
        case ORIBI_NESTED_LIST: {
            VALUE array = array_at(hash, key);
            if (!RB_TYPE_P(rb_ary_entry(array, -1), T_HASH))
                rb_ary_push(array, rb_ary_new_from_args(1, value));
            break;
        }
        }
    }
    if (code < 0) {
        char text[ORIBI_ERROR_TEXT_CAP];
        snprintf(text, sizeof(text), "a key of the form is nested more than %u deep", depth_max);
        fail(413, text);
    }
}

static VALUE form_nested(VALUE self, VALUE string, VALUE semicolon, VALUE pairs_max, VALUE key_bytes, VALUE bytes,
                         VALUE depth)
{
    struct reading reading = {.source = string, .depth_max = ext_maximum(depth)};
    struct oribi_form_pair pair;
    const struct oribi_form_limits limits = limits_of(pairs_max, key_bytes, bytes);
    VALUE params = rb_hash_new();
    reading.bytes = ext_input_bytes(&reading.source);
    char *room = ALLOCV_N(char, reading.holder, reading.bytes.n + 1);
    begin(&reading, room, semicolon, &limits);
    while (next_pair(&reading, &pair))
        place(params, pair.key, value_of(&pair), reading.depth_max);
    ALLOCV_END(reading.holder);
    RB_GC_GUARD(reading.source);
    return params;
}

static VALUE form_escape(VALUE self, VALUE text)
{
    VALUE holder;
    VALUE string = rb_obj_as_string(text);
    char *dst = ALLOCV_N(char, holder, ORIBI_FORM_GROWTH *(size_t)RSTRING_LEN(string) + 1);
    char *end = oribi_form_escape(dst, ext_slice(string), ORIBI_ESCAPE_WHATWG, true);
    VALUE escaped = rb_usascii_str_new(dst, end - dst);
    ALLOCV_END(holder);
    RB_GC_GUARD(string);
    return escaped;
}

/* --- cookies --- */

static VALUE cookie_parse(VALUE self, VALUE header)
{
    struct oribi_cookies cookies;
    struct oribi_form_pair pair;
    VALUE holder;
    VALUE parsed = rb_hash_new();
    int code;
    if (NIL_P(header))
        return parsed;
    StringValue(header);
    char *room = ALLOCV_N(char, holder, (size_t)RSTRING_LEN(header) + 1);
    code = oribi_cookies_begin(&cookies, ext_slice(header), room, ORIBI_COOKIE_RACK);
    while (code == 0 && (code = oribi_cookies_next(&cookies, &pair)) > 0) {
        VALUE key = key_of(pair.key);
        if (rb_hash_lookup2(parsed, key, Qundef) == Qundef)
            rb_hash_aset(parsed, key, value_of(&pair));
        code = 0;
    }
    ALLOCV_END(holder);
    RB_GC_GUARD(header);
    if (code < 0)
        fail(413, "the cookies are too many or too long");
    return parsed;
}

static struct oribi_slice attribute_of(VALUE string)
{
    return NIL_P(string) ? oribi_slice(NULL, 0) : ext_slice(StringValue(string));
}

static VALUE baked(const struct oribi_cookie *cookie)
{
    VALUE holder;
    const char *wrong;
    ssize_t room = oribi_cookie_room(cookie);
    if (room < 0)
        rb_raise(rb_eArgError, "the cookie has more than %d bytes", ORIBI_COOKIE_BYTES_MAX);
    char *dst = ALLOCV_N(char, holder, (size_t)room);
    ssize_t n = oribi_cookie_bake(cookie, ORIBI_BAKE_RACK, dst, &wrong);
    VALUE text = n < 0 ? Qnil : rb_utf8_str_new(dst, n);
    ALLOCV_END(holder);
    if (n < 0)
        rb_raise(rb_eArgError, "the cookie cannot be baked: %s", wrong);
    return text;
}

/* name, values, domain, path, expires, max_age (Strings or nil), same_site (the core's number), secure, http_only,
 * partitioned. lib/oribi/cookie.rb has made Strings of all. */
static VALUE cookie_bake(int argc, VALUE *argv, VALUE self)
{
    VALUE holder;
    rb_check_arity(argc, 10, 10);
    Check_Type(argv[1], T_ARRAY);
    long count = RARRAY_LEN(argv[1]);
    struct oribi_slice *values = ALLOCV_N(struct oribi_slice, holder, (size_t)count + 1);
    for (long i = 0; i < count; i++) {
        VALUE value = RARRAY_AREF(argv[1], i);
        Check_Type(value, T_STRING);
        values[i] = ext_slice(value);
    }
    struct oribi_cookie cookie = {
        .name = attribute_of(argv[0]),
        .values = values,
        .value_count = (size_t)count,
        .domain = attribute_of(argv[2]),
        .path = attribute_of(argv[3]),
        .expires = attribute_of(argv[4]),
        .max_age = attribute_of(argv[5]),
        .same_site = (enum oribi_same_site)NUM2INT(argv[6]),
        .secure = RTEST(argv[7]),
        .http_only = RTEST(argv[8]),
        .partitioned = RTEST(argv[9]),
    };
    VALUE text = baked(&cookie);
    ALLOCV_END(holder);
    return text;
}

static VALUE cookie_date(VALUE self, VALUE seconds)
{
    char text[ORIBI_COOKIE_DATE_CAP];
    ssize_t n = oribi_cookie_date(NUM2LL(seconds), ' ', text);
    if (n < 0)
        rb_raise(rb_eArgError, "expires is in no year of four digits");
    return rb_usascii_str_new(text, n);
}

static void constant(VALUE module, const char *name, long number)
{
    rb_define_const(module, name, LONG2NUM(number));
}

void ext_form_setup(void)
{
    VALUE form = rb_define_module_under(ext_module, "Form");
    VALUE cookie = rb_define_module_under(ext_module, "Cookie");
    form_error = rb_const_get(form, rb_intern("Error"));
    rb_gc_register_mark_object(form_error);
    utf8 = rb_utf8_encoding();
    constant(form, "PAIRS_MAX", ORIBI_FORM_PAIRS_DEFAULT);
    constant(form, "KEY_BYTES_MAX", ORIBI_FORM_KEY_BYTES_DEFAULT);
    constant(form, "BYTES_MAX", ORIBI_FORM_BYTES_DEFAULT);
    constant(form, "DEPTH_MAX", ORIBI_FORM_DEPTH_DEFAULT);
    rb_define_private_method(rb_singleton_class(form), "read_pairs", form_pairs, 5);
    rb_define_private_method(rb_singleton_class(form), "read_nested", form_nested, 6);
    rb_define_private_method(rb_singleton_class(form), "escape", form_escape, 1);
    rb_define_singleton_method(cookie, "parse", cookie_parse, 1);
    rb_define_private_method(rb_singleton_class(cookie), "bake_parts", cookie_bake, -1);
    rb_define_private_method(rb_singleton_class(cookie), "date", cookie_date, 1);
}
