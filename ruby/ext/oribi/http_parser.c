/* Oribi::HTTPParser: heads of requests and responses that a program has as Strings. lib/oribi/http_parser.rb has what
 * users see. The environment has the keys of the pico_http_parser gem; the grammar is the server's. */
#include "ext.h"

#include "oribi/http/fields.h"
#include "oribi/http/response_head.h"
#include "oribi/http/syntax.h"
#include "oribi/http/scan.h"

/* Entries that every environment has. */
enum { KEY_METHOD, KEY_URI, KEY_SCRIPT, KEY_PATH, KEY_QUERY, KEY_PROTOCOL, KEY_COUNT };

enum { HEADERS_NONE, HEADERS_HASH, HEADERS_PAIRS };

static const char *const key_texts[KEY_COUNT] = {"REQUEST_METHOD", "REQUEST_URI",  "SCRIPT_NAME",
                                                 "PATH_INFO",      "QUERY_STRING", "SERVER_PROTOCOL"};
static const char *const method_names[] = {"GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"};

enum { METHODS = sizeof(method_names) / sizeof(method_names[0]) };

static VALUE keys[KEY_COUNT];
static VALUE field_keys[ORIBI_FIELD_COUNT];
static VALUE methods[METHODS];
static VALUE protocols[2];
static VALUE text_empty;

static VALUE interned(const char *text)
{
    VALUE string = rb_enc_interned_str_cstr(text, rb_utf8_encoding());
    rb_gc_register_mark_object(string);
    return string;
}

/* Values are binary, whether they are made or kept. */
static VALUE interned_value(const char *text)
{
    VALUE string = rb_enc_interned_str_cstr(text, rb_ascii8bit_encoding());
    rb_gc_register_mark_object(string);
    return string;
}

static VALUE value_of(const struct oribi_field *field)
{
    return rb_str_new(field->value, field->value_len);
}

/* --- requests --- */

/* A request being turned into an environment. */
struct filling {
    struct oribi_head head;
    VALUE env;
    VALUE path_info;
};

/* Decoded once. Qfalse: it cannot be. */
static VALUE path_info_of(struct oribi_slice path)
{
    VALUE text = rb_str_new(path.p, (long)path.n);
    if (path.n == 0 || !memchr(path.p, '%', path.n))
        return text;
    ssize_t n = oribi_percent_decode(path, RSTRING_PTR(text));
    if (n < 0)
        return Qfalse;
    rb_str_set_len(text, n);
    return text;
}

static VALUE method_of(struct oribi_slice method)
{
    for (int i = 0; i < METHODS; i++)
        if ((size_t)RSTRING_LEN(methods[i]) == method.n && memcmp(RSTRING_PTR(methods[i]), method.p, method.n) == 0)
            return methods[i];
    return ext_bytes(method);
}

static VALUE key_of(const struct oribi_field *field)
{
    char text[ORIBI_FIELD_NAME_BYTES_MAX + 5];
    if (field->id != ORIBI_FIELD_OTHER)
        return field_keys[field->id];
    return rb_enc_interned_str(text, (long)oribi_field_write_env_key(field, text), rb_utf8_encoding());
}

/* All entries at once where nothing can be in the way. */
static void set_all(VALUE env, long count, const VALUE *entries)
{
    if (RHASH_SIZE(env) == 0) {
        rb_hash_bulk_insert(count, entries, env);
        return;
    }
    for (long i = 0; i < count; i += 2)
        rb_hash_aset(env, entries[i], entries[i + 1]);
}

static VALUE fill(VALUE arg)
{
    struct filling *filling = (struct filling *)arg;
    const struct oribi_head *head = &filling->head;
    VALUE entries[2 * (KEY_COUNT + ORIBI_STRING_FIELDS_MAX + 1)]; /* and a Host field of the target */
    long count = 2 * KEY_COUNT;
    for (int i = 0; i < KEY_COUNT; i++)
        entries[2 * i] = keys[i];
    entries[2 * KEY_METHOD + 1] = method_of(head->method);
    entries[2 * KEY_URI + 1] = ext_bytes(head->target);
    entries[2 * KEY_SCRIPT + 1] = text_empty;
    entries[2 * KEY_PATH + 1] = filling->path_info;
    entries[2 * KEY_QUERY + 1] = head->query.n ? ext_bytes(head->query) : text_empty;
    entries[2 * KEY_PROTOCOL + 1] = protocols[head->minor];
    for (uint32_t i = 0; i < head->field_count; i++) {
        entries[count] = key_of(&head->fields[i]);
        entries[count + 1] = value_of(&head->fields[i]);
        count += 2;
    }
    set_all(filling->env, count, entries);
    return Qnil;
}

static VALUE release(VALUE arg)
{
    oribi_head_release((struct oribi_head *)arg);
    return Qnil;
}

/* No code of the application's runs meanwhile, so the String stays what it is. */
static VALUE parse_request(VALUE self, VALUE string, VALUE env)
{
    struct filling filling;
    StringValue(string);
    Check_Type(env, T_HASH);
    rb_check_frozen(env);
    ssize_t result = oribi_from_string_request(RSTRING_PTR(string), (size_t)RSTRING_LEN(string), &filling.head);
    if (result > 0) {
        filling.env = env;
        filling.path_info = path_info_of(filling.head.path);
        if (filling.path_info == Qfalse) {
            result = ORIBI_STRING_BROKEN;
            oribi_head_release(&filling.head);
        } else if (filling.head.joined) {
            rb_ensure(fill, (VALUE)&filling, release, (VALUE)&filling.head);
        } else {
            fill((VALUE)&filling);
        }
    }
    RB_GC_GUARD(string);
    return LONG2FIX(result);
}

/* --- responses --- */

static VALUE lower_case_name(const struct oribi_field *field)
{
    char text[ORIBI_FIELD_NAME_BYTES_MAX];
    for (uint32_t i = 0; i < field->name_len; i++) {
        char c = field->name[i];
        text[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    return rb_enc_interned_str(text, field->name_len, rb_utf8_encoding());
}

/* A name that comes again has an Array of its values. */
static void add_to_hash(VALUE hash, VALUE name, VALUE value)
{
    VALUE known = rb_hash_lookup2(hash, name, Qundef);
    if (known == Qundef)
        rb_hash_aset(hash, name, value);
    else if (RB_TYPE_P(known, T_ARRAY))
        rb_ary_push(known, value);
    else
        rb_hash_aset(hash, name, rb_assoc_new(known, value));
}

/* The headers in the form that is wanted; those that `special` has keys of are stored there too. */
static VALUE headers_of(const struct oribi_response_head *head, int form, VALUE special)
{
    VALUE headers = form == HEADERS_HASH ? rb_hash_new() : form == HEADERS_PAIRS ? rb_ary_new() : Qnil;
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (form == HEADERS_NONE && NIL_P(special))
            break;
        VALUE name = lower_case_name(&head->fields[i]);
        VALUE value = value_of(&head->fields[i]);
        if (!NIL_P(special) && rb_hash_lookup2(special, name, Qundef) != Qundef)
            rb_hash_aset(special, name, form == HEADERS_NONE ? value : rb_str_dup(value));
        if (form == HEADERS_HASH)
            add_to_hash(headers, name, value);
        else if (form == HEADERS_PAIRS)
            rb_ary_push(headers, rb_assoc_new(name, value));
    }
    return headers;
}

static VALUE parse_response(VALUE self, VALUE string, VALUE form, VALUE special)
{
    struct oribi_response_head head;
    StringValue(string);
    if (!NIL_P(special)) {
        Check_Type(special, T_HASH);
        rb_check_frozen(special);
    }
    ssize_t result = oribi_from_string_response(RSTRING_PTR(string), (size_t)RSTRING_LEN(string), &head);
    if (result < 0)
        return LONG2FIX(result);
    VALUE parts[] = {LONG2FIX(result), INT2FIX(head.minor), INT2FIX(head.status), ext_bytes(head.reason),
                     headers_of(&head, NUM2INT(form), special)};
    RB_GC_GUARD(string);
    return rb_ary_new_from_values(5, parts);
}

void ext_http_parser_setup(void)
{
    VALUE parser = rb_define_module_under(ext_module, "HTTPParser");
    for (int i = 0; i < KEY_COUNT; i++)
        keys[i] = interned(key_texts[i]);
    for (int id = 1; id < ORIBI_FIELD_COUNT; id++)
        field_keys[id] = interned(oribi_field_env_key((enum oribi_field_id)id));
    for (int i = 0; i < METHODS; i++)
        methods[i] = interned_value(method_names[i]);
    protocols[0] = interned_value("HTTP/1.0");
    protocols[1] = interned_value("HTTP/1.1");
    text_empty = interned_value("");
    rb_define_const(parser, "BROKEN", INT2FIX(ORIBI_STRING_BROKEN));
    rb_define_const(parser, "INCOMPLETE", INT2FIX(ORIBI_STRING_INCOMPLETE));
    rb_define_singleton_method(parser, "parse_request", parse_request, 2);
    rb_define_singleton_method(parser, "parse_http_request", parse_request, 2);
    rb_define_private_method(rb_singleton_class(parser), "read_response", parse_response, 3);
}
