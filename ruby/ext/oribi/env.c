/* A parsed request becomes a Rack environment.
 *
 * The hot path copies a template Hash that already holds every constant entry, with its table sized for what follows, and then sets only what
 * differs: each entry left alone saves a hash lookup and an allocation. Keys are interned once; values are new binary strings, because
 * applications may change them in place. */
#include "ext.h"

#include <unistd.h>

enum {
    ENV_SMALL = 32, /* entries for which the small template has room: st tables grow in powers of two */
    ENV_LARGE = 64,
    ENV_METHODS = 8,
};

static VALUE field_keys[ORIBI_FIELD_COUNT];
static VALUE key_request_method;
static VALUE key_request_uri;
static VALUE key_path_info;
static VALUE key_query_string;
static VALUE key_script_name;
static VALUE key_server_name;
static VALUE key_server_port;
static VALUE key_server_protocol;
static VALUE key_http_version;
static VALUE key_remote_addr;
static VALUE key_remote_port;
static VALUE key_url_scheme;
static VALUE key_input;
static VALUE key_hijack;
static VALUE key_early_hints;
static VALUE key_finished;

static VALUE text_empty;
static VALUE text_http10;
static VALUE text_http11;
static VALUE text_https;
static VALUE text_localhost;
static VALUE method_texts[ENV_METHODS];
static const char *const method_names[ENV_METHODS] = {"GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"};

static VALUE empty_input;
static VALUE string_io_class;
static ID id_for_fd;

/* A frozen, interned string that lives as long as the process. */
static VALUE intern_text(const char *text)
{
    VALUE string = rb_enc_interned_str_cstr(text, rb_utf8_encoding());
    rb_gc_register_mark_object(string);
    return string;
}

static bool text_is(VALUE string, struct oribi_slice slice)
{
    return (size_t)RSTRING_LEN(string) == slice.n && memcmp(RSTRING_PTR(string), slice.p, slice.n) == 0;
}

static VALUE frozen_bytes(struct oribi_slice slice)
{
    return rb_obj_freeze(ext_bytes(slice));
}

static VALUE method_text(struct oribi_slice method)
{
    for (int i = 0; i < ENV_METHODS; i++) {
        if (text_is(method_texts[i], method))
            return method_texts[i];
    }
    return ext_bytes(method);
}

/* The key of a field outside the core's table. Peers choose these names, so what is kept of them is a cache of fixed size: a
 * name that is not there costs one lookup in the VM's table of interned strings, and a displaced one can be collected. */
static VALUE other_key(struct ext_worker *worker, const struct oribi_field *field)
{
    char text[ORIBI_FIELD_NAME_BYTES_MAX + 5];
    size_t len = oribi_field_write_env_key(field, text);
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;

    VALUE *slot = &worker->keys[(hash ^ (hash >> 16)) & (EXT_KEYS - 1)];
    if (*slot != Qfalse && text_is(*slot, oribi_slice(text, len)))
        return *slot;
    VALUE key = rb_enc_interned_str(text, (long)len, rb_utf8_encoding());
    RB_OBJ_WRITE(worker->self, slot, key);
    return key;
}

static void set_fields(struct ext_worker *worker, VALUE env, const struct oribi_head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        VALUE key = field->id ? field_keys[field->id] : other_key(worker, field);
        /* A field called "Version" would shadow what older Rack calls the protocol's version. */
        if (RB_UNLIKELY(key == key_http_version))
            continue;
        rb_hash_aset(env, key, rb_str_new(field->value, field->value_len));
    }
}

/* rack.input for a body: a StringIO over its bytes, or a File over a descriptor of its own; both binary and rewindable. */
static VALUE input_for(const struct oribi_req *req)
{
    if (req->body_fd < 0) {
        VALUE bytes = ext_bytes(req->body);
        return rb_class_new_instance(1, &bytes, string_io_class);
    }
    int fd = rb_cloexec_dup(req->body_fd);
    if (fd < 0)
        rb_sys_fail("request body");
    rb_update_max_fd(fd);
    return rb_funcall(rb_cFile, id_for_fd, 2, INT2NUM(fd), rb_str_new_cstr("rb"));
}

/* Where a request differs from the one before in what is nearly always the same, the templates learn the new value. */
static void follow(struct ext_worker *worker, VALUE env, VALUE *known, VALUE key, VALUE value)
{
    RB_OBJ_WRITE(worker->self, known, value);
    rb_hash_aset(worker->template_small, key, value);
    rb_hash_aset(worker->template_large, key, value);
    rb_hash_aset(env, key, value);
}

static void set_addresses(struct ext_worker *worker, VALUE env, const struct oribi_req *req)
{
    if (!text_is(worker->server_name, req->server_name))
        follow(worker, env, &worker->server_name, key_server_name, frozen_bytes(req->server_name));
    if (!text_is(worker->server_port, req->server_port))
        follow(worker, env, &worker->server_port, key_server_port, frozen_bytes(req->server_port));
    if (req->remote_addr.n == 0) {
        /* A peer on a unix socket has no address; frameworks expect one, and it is on this machine. */
        if (worker->remote_addr != text_localhost)
            follow(worker, env, &worker->remote_addr, key_remote_addr, text_localhost);
        return;
    }
    if (!text_is(worker->remote_addr, req->remote_addr))
        follow(worker, env, &worker->remote_addr, key_remote_addr, frozen_bytes(req->remote_addr));
    rb_hash_aset(env, key_remote_port, ext_bytes(req->remote_port));
}

void ext_env_build(struct ext_call *call)
{
    struct ext_worker *worker = call->worker;
    const struct oribi_req *req = call->req;
    const struct oribi_head *head = req->head;
    bool small = RHASH_SIZE(worker->template_small) + 6 + head->field_count <= ENV_SMALL;
    VALUE env = rb_hash_dup(small ? worker->template_small : worker->template_large);
    call->env = env;

    if (!text_is(method_texts[0], head->method))
        rb_hash_aset(env, key_request_method, method_text(head->method));
    rb_hash_aset(env, key_path_info, ext_bytes(head->path));
    rb_hash_aset(env, key_request_uri, ext_bytes(head->target));
    if (head->query.n)
        rb_hash_aset(env, key_query_string, ext_bytes(head->query));
    if (head->minor == 0) {
        rb_hash_aset(env, key_server_protocol, text_http10);
        if (rb_hash_lookup2(env, key_http_version, Qundef) != Qundef)
            rb_hash_aset(env, key_http_version, text_http10);
    }
    if (req->scheme.n == 5)
        rb_hash_aset(env, key_url_scheme, text_https);
    set_addresses(worker, env, req);
    set_fields(worker, env, head);

    if (req->body_len > 0) {
        call->input = input_for(req);
        rb_hash_aset(env, key_input, call->input);
    }
    call->finished = rb_ary_new();
    rb_hash_aset(env, key_finished, call->finished);
    rb_hash_aset(env, key_hijack, ext_hijack_new(call));
    if (worker->early_hints)
        rb_hash_aset(env, key_early_hints, ext_early_hints_new(call));
}

void ext_env_close(struct ext_call *call)
{
    if (RB_TYPE_P(call->input, T_FILE))
        rb_io_close(call->input); /* closing twice is allowed: the application may have done it */
}

static int copy_entry(VALUE key, VALUE value, VALUE template)
{
    rb_hash_aset(template, key, value);
    return ST_CONTINUE;
}

/* A Hash of the constant entries whose table has room for `room` entries. Ruby has no public call for this before 3.2; inserting an existing key
 * many times in bulk makes the table grow without adding anything. */
static VALUE make_template(VALUE constants, long room)
{
    VALUE template = rb_hash_new();
    rb_hash_foreach(constants, copy_entry, template);
    long missing = room - (long)RHASH_SIZE(template);
    if (missing <= 0)
        return template;
    VALUE pairs = rb_ary_new_capa(2 * missing);
    VALUE value = rb_hash_aref(template, key_script_name);
    for (long i = 0; i < missing; i++) {
        rb_ary_push(pairs, key_script_name);
        rb_ary_push(pairs, value);
    }
    rb_hash_bulk_insert(RARRAY_LEN(pairs), RARRAY_CONST_PTR(pairs), template);
    RB_GC_GUARD(pairs);
    return template;
}

void ext_env_prepare(struct ext_worker *worker, VALUE extra)
{
    VALUE constants = rb_hash_new();
    rb_hash_aset(constants, key_request_method, method_texts[0]);
    rb_hash_aset(constants, key_script_name, text_empty);
    rb_hash_aset(constants, key_path_info, text_empty);
    rb_hash_aset(constants, key_query_string, text_empty);
    rb_hash_aset(constants, key_server_name, text_localhost);
    rb_hash_aset(constants, key_server_port, text_empty);
    rb_hash_aset(constants, key_server_protocol, text_http11);
    rb_hash_aset(constants, key_remote_addr, text_localhost);
    rb_hash_aset(constants, key_request_uri, text_empty);
    rb_hash_aset(constants, key_url_scheme, intern_text("http"));
    rb_hash_aset(constants, key_input, empty_input);
    rb_hash_aset(constants, intern_text("rack.multithread"), Qfalse);
    rb_hash_aset(constants, intern_text("rack.multiprocess"), Qtrue);
    rb_hash_aset(constants, intern_text("rack.run_once"), Qfalse);
    rb_hash_aset(constants, intern_text("rack.hijack?"), Qtrue);
    rb_hash_foreach(extra, copy_entry, constants);

    RB_OBJ_WRITE(worker->self, &worker->server_name, text_localhost);
    RB_OBJ_WRITE(worker->self, &worker->server_port, text_empty);
    RB_OBJ_WRITE(worker->self, &worker->remote_addr, text_localhost);
    RB_OBJ_WRITE(worker->self, &worker->template_small, make_template(constants, ENV_SMALL));
    RB_OBJ_WRITE(worker->self, &worker->template_large, make_template(constants, ENV_LARGE));
}

void ext_env_setup(void)
{
    for (int id = 1; id < ORIBI_FIELD_COUNT; id++)
        field_keys[id] = intern_text(oribi_field_env_key((enum oribi_field_id)id));
    for (int i = 0; i < ENV_METHODS; i++)
        method_texts[i] = intern_text(method_names[i]);
    key_request_method = intern_text("REQUEST_METHOD");
    key_request_uri = intern_text("REQUEST_URI");
    key_path_info = intern_text("PATH_INFO");
    key_query_string = intern_text("QUERY_STRING");
    key_script_name = intern_text("SCRIPT_NAME");
    key_server_name = intern_text("SERVER_NAME");
    key_server_port = intern_text("SERVER_PORT");
    key_server_protocol = intern_text("SERVER_PROTOCOL");
    key_http_version = intern_text("HTTP_VERSION");
    key_remote_addr = intern_text("REMOTE_ADDR");
    key_remote_port = intern_text("REMOTE_PORT");
    key_url_scheme = intern_text("rack.url_scheme");
    key_input = intern_text("rack.input");
    key_hijack = intern_text("rack.hijack");
    key_early_hints = intern_text("rack.early_hints");
    key_finished = intern_text("rack.response_finished");
    text_empty = intern_text("");
    text_http10 = intern_text("HTTP/1.0");
    text_http11 = intern_text("HTTP/1.1");
    text_https = intern_text("https");
    text_localhost = intern_text("127.0.0.1");

    id_for_fd = rb_intern("for_fd");
    rb_require("stringio");
    string_io_class = rb_const_get(rb_cObject, rb_intern("StringIO"));
    rb_gc_register_mark_object(string_io_class);
    empty_input = rb_class_new_instance(0, NULL, rb_const_get(ext_module, rb_intern("EmptyInput")));
    rb_gc_register_mark_object(empty_input);
}
