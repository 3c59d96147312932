/* A parsed request becomes a Rack environment.
 *
 * A Hash is costly: hashing and finding 30 keys takes longer than all else in the binding. But clients of one
 * kind send the same fields in the same order, so each worker keeps Hashes by shape (which known fields, in which
 * order) and copies one, hashes and all. The entries that differ from request to request stand first, in a fixed
 * order, and are set in one pass by their number:
 *
 *   REQUEST_METHOD PATH_INFO ... rack.hijack | HTTP_HOST HTTP_ACCEPT ... | rack.errors rack.multithread ...
 *   always, ENV_KEYS                         | the shape's fields        | constant
 *
 * Fields that are not in the core's table, and requests whose shape is not kept, go the ordinary way, key by key.
 * Keys are interned once; values are new binary strings, because applications may change them in place. What is the
 * same object in two requests is frozen: nothing that one does can be seen by the next. */
#include "entries.h"

#include "oribi/worker/events.h"

#include <unistd.h>

enum {
    ENV_SHARED_BYTES_MIN = 24, /* shorter strings live inside their object on every Ruby */
};

/* The entries that are set anew for each request, in this order: name here and key. Their values are in fill_values().
 * REMOTE_PORT is absent for peers on unix sockets, HTTPS unless that is the scheme, those behind it for clients without
 * TLS: they have shapes of their own. REQUEST_ID and EARLY_HINTS are absent unless their options are on. */
#define ENV_KEYS(X)                                                                                                    \
    X(METHOD, "REQUEST_METHOD")                                                                                        \
    X(PATH_INFO, "PATH_INFO")                                                                                          \
    X(REQUEST_URI, "REQUEST_URI")                                                                                      \
    X(QUERY_STRING, "QUERY_STRING")                                                                                    \
    X(PROTOCOL, "SERVER_PROTOCOL")                                                                                     \
    X(SERVER_NAME, "SERVER_NAME")                                                                                      \
    X(SERVER_PORT, "SERVER_PORT")                                                                                      \
    X(REMOTE_ADDR, "REMOTE_ADDR")                                                                                      \
    X(REMOTE_PORT, "REMOTE_PORT")                                                                                      \
    X(INPUT, "rack.input")                                                                                             \
    X(FINISHED, "rack.response_finished")                                                                              \
    X(AFTER_REPLY, "rack.after_reply")                                                                                 \
    X(HIJACK, "rack.hijack")                                                                                           \
    X(EXTEND, "oribi.extend_deadline")                                                                                 \
    X(QUEUE_US, "oribi.queue_us")                                                                                      \
    X(REQUEST_ID, "oribi.request_id")                                                                                  \
    X(EARLY_HINTS, "rack.early_hints")                                                                                 \
    X(HTTPS, "HTTPS")                                                                                                  \
    X(TLS_VERSION, "SSL_PROTOCOL")                                                                                     \
    X(CIPHER, "SSL_CIPHER")                                                                                            \
    X(SNI, "SSL_TLS_SNI")

enum env_index {
#define ENV_INDEX(name, key) ENV_##name,
    ENV_KEYS(ENV_INDEX)
#undef ENV_INDEX
        ENV_COUNT
};

static const char *const env_key_texts[ENV_COUNT] = {
#define ENV_KEY_TEXT(name, key) [ENV_##name] = key,
    ENV_KEYS(ENV_KEY_TEXT)
#undef ENV_KEY_TEXT
};

static const char *const method_names[] = {"GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"};

enum { METHODS = sizeof(method_names) / sizeof(method_names[0]) };

static VALUE env_keys[ENV_COUNT];
static VALUE field_keys[ORIBI_FIELD_COUNT];
static VALUE key_http_version;
static VALUE key_url_scheme;
static VALUE key_trailers;
static VALUE key_protocols;

static VALUE text_empty;
static VALUE text_https;
static VALUE text_on;
static VALUE protocol_texts[3]; /* by oribi_req_protocol() */
static VALUE text_localhost;
static VALUE method_texts[METHODS];

static VALUE empty_input_class;
static rb_alloc_func_t alloc_empty_input;
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

/* --- values --- */

static VALUE method_text(struct oribi_slice method)
{
    for (int i = 0; i < METHODS; i++) {
        if (text_is(method_texts[i], method))
            return method_texts[i];
    }
    return ext_bytes(method);
}

/* A String that hardly changes from one request to the next is kept, frozen. Of clients' ports there is one for each
 * connection, so several are kept. */
static VALUE kept_new(struct ext_worker *worker, VALUE *kept, struct oribi_slice slice)
{
    RB_OBJ_WRITE(worker->self, kept, rb_obj_freeze(ext_bytes(slice)));
    return *kept;
}

static VALUE kept_text(struct ext_worker *worker, VALUE *kept, struct oribi_slice slice)
{
    return text_is(*kept, slice) ? *kept : kept_new(worker, kept, slice);
}

static VALUE port_text(struct ext_worker *worker, struct oribi_slice port)
{
    uint32_t number = 0;
    for (size_t i = 0; i < port.n; i++)
        number = number * 10 + (unsigned char)port.p[i];
    VALUE *kept = &worker->ports[(number ^ number >> 8) & (EXT_PORTS - 1)];
    return *kept == Qfalse ? kept_new(worker, kept, port) : kept_text(worker, kept, port);
}

/* The value of a known field. Long ones come again and again (User-Agent, Accept, cookies of a busy client), and a
 * copy of a kept String shares its bytes until the application writes to it. The request's id is one String under its
 * two keys. To be kept, a value must be met on a 16th
 * request: learning each would cost what it saves. */
static VALUE field_value(struct ext_call *call, const struct oribi_field *field)
{
    struct ext_worker *worker = call->worker;
    if (field->value_len < ENV_SHARED_BYTES_MIN)
        return rb_str_new(field->value, field->value_len);
    if (field->id == ORIBI_FIELD_X_REQUEST_ID) /* no two are alike */
        return call->request_id != Qundef ? call->request_id : rb_str_new(field->value, field->value_len);
    VALUE *kept = &worker->values[field->id];
    struct oribi_slice slice = {field->value, field->value_len};
    if (*kept == Qfalse || !text_is(*kept, slice)) {
        VALUE value = ext_bytes(slice);
        if (worker->serial % 16 == 0)
            RB_OBJ_WRITE(worker->self, kept, rb_str_new_frozen(value));
        return value;
    }
    return rb_str_dup(*kept);
}

/* rack.input for a body: an Oribi::Input over the bytes in the core, or a File over a descriptor of its own; both
 * binary and rewindable. */
static VALUE input_for(struct ext_call *call)
{
    const struct oribi_req *req = call->req;
    if (req->body_len == 0)
        return alloc_empty_input(
            empty_input_class); /* one of its own: an application may do with it what Ruby allows */
    if (req->body_fd < 0)
        return ext_input_new(call);
    int fd = rb_cloexec_dup(req->body_fd);
    if (fd < 0)
        rb_sys_fail("request body");
    rb_update_max_fd(fd);
    return rb_funcall(rb_cFile, id_for_fd, 2, INT2NUM(fd), rb_str_new_cstr("rb"));
}

static void fill_tls(struct ext_worker *worker, const struct oribi_req *req, VALUE *values)
{
    uint32_t client = oribi_req_client(req);
    values[ENV_HTTPS] = client & ORIBI_SHAPE_HTTPS ? text_on : Qundef;
    values[ENV_TLS_VERSION] = values[ENV_CIPHER] = values[ENV_SNI] = Qundef;
    if (RB_LIKELY(!(client & ORIBI_SHAPE_TLS)))
        return;
    values[ENV_TLS_VERSION] = kept_text(worker, &worker->tls_version, req->client->tls_version);
    values[ENV_CIPHER] = kept_text(worker, &worker->cipher, req->client->cipher);
    if (client & ORIBI_SHAPE_SNI)
        values[ENV_SNI] = kept_text(worker, &worker->sni, req->client->sni);
}

static void fill_values(struct ext_call *call, VALUE *values)
{
    struct ext_worker *worker = call->worker;
    const struct oribi_req *req = call->req;
    const struct oribi_head *head = req->head;
    call->finished = rb_ary_new();
    call->after_reply = rb_ary_new();
    call->input = input_for(call);
    values[ENV_METHOD] = method_text(head->method);
    values[ENV_PATH_INFO] = ext_bytes(head->path);
    values[ENV_REQUEST_URI] = ext_bytes(head->target);
    values[ENV_QUERY_STRING] = head->query.n ? ext_bytes(head->query) : text_empty;
    values[ENV_PROTOCOL] = protocol_texts[oribi_req_protocol(req)];
    values[ENV_SERVER_NAME] = kept_text(worker, &worker->server_name, req->server_name);
    values[ENV_SERVER_PORT] = kept_text(worker, &worker->server_port, req->server_port);
    values[ENV_INPUT] = call->input;
    values[ENV_FINISHED] = call->finished;
    values[ENV_AFTER_REPLY] = call->after_reply;
    values[ENV_HIJACK] = values[ENV_EXTEND] = call->tie = ext_tie_new(call);
    values[ENV_QUEUE_US] = LL2NUM(req->queue_us);
    values[ENV_REQUEST_ID] = call->request_id = worker->request_ids ? ext_bytes(req->request_id) : Qundef;
    values[ENV_EARLY_HINTS] = worker->early_hints ? ext_early_hints_new(call) : Qundef;
    if (req->remote_addr.n) {
        values[ENV_REMOTE_ADDR] = kept_text(worker, &worker->remote_addr, req->remote_addr);
        values[ENV_REMOTE_PORT] = port_text(worker, req->remote_port);
    } else { /* a peer on a unix socket has no address; frameworks expect one, and it is on this machine */
        values[ENV_REMOTE_ADDR] = text_localhost;
        values[ENV_REMOTE_PORT] = Qundef;
    }
    fill_tls(worker, req, values);
}

/* --- fields outside the core's table --- */

/* Peers choose these names, so what is kept of them is a cache of fixed size: a name that is not there costs one
 * lookup in the VM's table of interned strings, and a displaced one can be collected. */
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

static void set_others(struct ext_worker *worker, VALUE env, const struct oribi_head *head)
{
    for (uint32_t i = 0; i < head->field_count; i++) {
        const struct oribi_field *field = &head->fields[i];
        if (field->id)
            continue;
        VALUE key = other_key(worker, field);
        if (worker->versions || key != key_http_version)
            rb_hash_aset(env, key, rb_str_new(field->value, field->value_len));
    }
}

/* Fields behind a chunked body: in a Hash of their own, so that none can pass for one of the head. */
static VALUE trailers_of(const struct oribi_req *req)
{
    VALUE trailers = rb_hash_new();
    for (uint32_t i = 0; i < req->trailer_count; i++) {
        const struct oribi_field *field = &req->trailers[i];
        rb_hash_aset(trailers, rb_str_new(field->name, field->name_len), rb_str_new(field->value, field->value_len));
    }
    return trailers;
}

static struct oribi_slice trimmed(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    while (p < end && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return oribi_slice(p, (size_t)(end - p));
}

VALUE ext_env_protocols(const struct oribi_head *head)
{
    VALUE protocols = rb_ary_new();
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->fields[i].id != ORIBI_FIELD_UPGRADE)
            continue;
        const char *p = head->fields[i].value;
        const char *end = p + head->fields[i].value_len;
        while (p < end) {
            const char *comma = memchr(p, ',', (size_t)(end - p));
            struct oribi_slice name = trimmed(p, comma ? comma : end);
            if (name.n > 0)
                rb_ary_push(protocols, ext_bytes(name));
            p = comma ? comma + 1 : end;
        }
    }
    return protocols;
}

static int copy_entry(VALUE key, VALUE value, VALUE template)
{
    rb_hash_aset(template, key, value);
    return ST_CONTINUE;
}

/* --- shapes --- */

#ifdef HAVE_RB_HASH_TBL

/* True for an entry that this environment has. */
static bool has_entry(const struct ext_worker *worker, int index, uint32_t client)
{
    if (index == ENV_HTTPS)
        return (client & ORIBI_SHAPE_HTTPS) != 0;
    if (index > ENV_HTTPS)
        return (client & (index == ENV_SNI ? ORIBI_SHAPE_SNI : ORIBI_SHAPE_TLS)) != 0;
    return (index != ENV_REMOTE_PORT || (client & ORIBI_SHAPE_ADDRESSED)) &&
           (index != ENV_EARLY_HINTS || worker->early_hints) && (index != ENV_REQUEST_ID || worker->request_ids);
}

/* The Hash of a shape: our entries, fields, constants, with values still to be set for the first two. Qfalse where this
 * Ruby's entries lie otherwise. */
static VALUE make_template(const struct ext_worker *worker, const struct oribi_shape *shape, uint32_t client)
{
    VALUE keys[ENV_COUNT + ORIBI_SHAPE_FIELDS_MAX];
    uint32_t count = 0;
    for (int i = 0; i < ENV_COUNT; i++) {
        if (has_entry(worker, i, client))
            keys[count++] = env_keys[i];
    }
    for (uint32_t i = 0; i < shape->field_count; i++)
        keys[count++] = field_keys[shape->ids[i]];
    VALUE template = rb_hash_new();
    for (uint32_t i = 0; i < count; i++)
        rb_hash_aset(template, keys[i], Qnil);
    rb_hash_foreach(worker->constants, copy_entry, template);
    VALUE copy = rb_hash_dup(template);
    return ext_entries_are(template, keys, count) && ext_entries_are(copy, keys, count) ? template : Qfalse;
}

/* The template for this request, or Qfalse. */
static VALUE find_template(struct ext_worker *worker, const struct oribi_req *req)
{
    bool met;
    uint32_t client = oribi_req_client(req);
    int slot = worker->plain ? -1 : oribi_shapes_find(&worker->shapes, req->head, client, &met);
    if (slot < 0)
        return Qfalse;
    VALUE *template = &worker->templates[slot];
    if (!met)
        *template = Qfalse;
    else if (*template == Qfalse)
        RB_OBJ_WRITE(worker->self, template, make_template(worker, &worker->shapes.slots[slot], client));
    worker->plain = met && *template == Qfalse;
    return *template;
}

/* Copies the template and sets its first entries in order. */
static VALUE fill_template(struct ext_call *call, VALUE template)
{
    const struct oribi_head *head = call->req->head;
    VALUE values[ENV_COUNT + ORIBI_SHAPE_FIELDS_MAX];
    fill_values(call, values);
    uint32_t count = ENV_REMOTE_PORT;
    for (int i = ENV_REMOTE_PORT; i < ENV_COUNT; i++) { /* those before are never absent */
        if (values[i] != Qundef)
            values[count++] = values[i];
    }
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->fields[i].id)
            values[count++] = field_value(call, &head->fields[i]);
    }
    VALUE env = rb_hash_dup(template);
    ext_entries_fill(env, values, count);
    return env;
}

#else /* a Ruby that does not show a Hash's table: key by key always */

static VALUE find_template(struct ext_worker *worker, const struct oribi_req *req)
{
    return Qfalse;
}

static VALUE fill_template(struct ext_call *call, VALUE template)
{
    return Qundef; /* never called */
}

#endif

/* Key by key. */
static VALUE build_plainly(struct ext_call *call)
{
    const struct oribi_head *head = call->req->head;
    VALUE values[ENV_COUNT];
    fill_values(call, values);
    VALUE env = rb_hash_dup(call->worker->constants);
    for (int i = 0; i < ENV_COUNT; i++) {
        if (values[i] != Qundef)
            rb_hash_aset(env, env_keys[i], values[i]);
    }
    for (uint32_t i = 0; i < head->field_count; i++) {
        if (head->fields[i].id)
            rb_hash_aset(env, field_keys[head->fields[i].id], field_value(call, &head->fields[i]));
    }
    return env;
}

/* Variables about a client's certificate. */
static void set_client(const struct ext_call *call, VALUE env)
{
    struct oribi_variable variables[ORIBI_CLIENT_VARIABLES_MAX];
    uint32_t count = oribi_req_client_variables(call->req, variables);
    for (uint32_t i = 0; i < count; i++)
        rb_hash_aset(env, rb_enc_interned_str_cstr(variables[i].name, rb_utf8_encoding()),
                     ext_bytes(variables[i].value));
}

void ext_env_build(struct ext_call *call)
{
    struct ext_worker *worker = call->worker;
    const struct oribi_head *head = call->req->head;
    VALUE template = find_template(worker, call->req);
    VALUE env = template == Qfalse ? build_plainly(call) : fill_template(call, template);
    call->env = env;
    set_others(worker, env, head);
    int protocol = oribi_req_protocol(call->req);
    if (RB_UNLIKELY(protocol != 1) && rb_hash_lookup2(worker->constants, key_http_version, Qundef) != Qundef)
        rb_hash_aset(env, key_http_version, protocol_texts[protocol]);
    if (RB_UNLIKELY(oribi_req_is_https(call->req)))
        rb_hash_aset(env, key_url_scheme, text_https);
    if (RB_UNLIKELY(oribi_req_certificate_asked(call->req)))
        set_client(call, env);
    if (RB_UNLIKELY(call->req->trailer_count > 0))
        rb_hash_aset(env, key_trailers, trailers_of(call->req));
    if (RB_UNLIKELY(head->upgrade)) {
        rb_hash_aset(env, key_protocols, ext_env_protocols(head));
        ext_websocket_offer(call);
    }
    if (oribi_events_asked(call->req))
        ext_events_offer(call);
}

void ext_env_close(struct ext_call *call)
{
    ext_input_close(call);
}

/* For entries with one absent key before them at most. */
static VALUE early_entry(const struct ext_call *call, uint32_t index)
{
    VALUE key = env_keys[index];
#ifdef HAVE_RB_HASH_TBL
    for (uint32_t number = index; number + 1 >= index; number--) {
        VALUE value = ext_entries_at(call->env, number, key);
        if (value != Qundef)
            return value;
    }
#endif
    return rb_hash_lookup(call->env, key);
}

VALUE ext_env_finished(const struct ext_call *call)
{
    return early_entry(call, ENV_FINISHED);
}

VALUE ext_env_after_reply(const struct ext_call *call)
{
    return early_entry(call, ENV_AFTER_REPLY);
}

/* Sets the keys that Rack::Sendfile looks for. Rack::Sendfile takes the mapping only where the application has given
 * it "X-Accel-Redirect", so that a server with maps alone announces no type. */
static void announce_sendfile(VALUE constants, const struct oribi_options *options)
{
    char mapping[ORIBI_SENDFILE_MAPPING_CAP];
    if (options->sendfile_root.count > 0)
        rb_hash_aset(constants, intern_text("sendfile.type"), intern_text("X-Sendfile"));
    if (oribi_sendfile_mapping(options, true, mapping, sizeof(mapping)))
        rb_hash_aset(constants, intern_text("HTTP_X_ACCEL_MAPPING"), intern_text(mapping));
}

void ext_env_prepare(struct ext_worker *worker, const struct oribi_options *options, VALUE extra)
{
    VALUE constants = rb_hash_new();
    rb_hash_aset(constants, intern_text("SCRIPT_NAME"), text_empty);
    rb_hash_aset(constants, key_url_scheme, intern_text("http"));
    rb_hash_aset(constants, intern_text("rack.multithread"), worker->threads_wanted > 1 ? Qtrue : Qfalse);
    /* One worker is not alone: at a reload the next one serves beside it. */
    rb_hash_aset(constants, intern_text("rack.multiprocess"), options->single ? Qfalse : Qtrue);
    rb_hash_aset(constants, intern_text("rack.run_once"), Qfalse);
    rb_hash_aset(constants, intern_text("rack.hijack?"), Qtrue);
    rb_hash_aset(constants, intern_text("oribi.gone?"), ext_gone_new(worker));
    announce_sendfile(constants, options);
    rb_hash_foreach(extra, copy_entry, constants);
    worker->versions = NIL_P(rb_hash_lookup(constants, key_http_version)) &&
                       RTEST(rb_funcall(rb_const_get(ext_module, rb_intern("Environment")), rb_intern("versions?"), 0));
    RB_OBJ_WRITE(worker->self, &worker->constants, constants);
    RB_OBJ_WRITE(worker->self, &worker->server_name, text_localhost);
    RB_OBJ_WRITE(worker->self, &worker->server_port, text_empty);
    RB_OBJ_WRITE(worker->self, &worker->remote_addr, text_localhost);
    RB_OBJ_WRITE(worker->self, &worker->tls_version, text_empty);
    RB_OBJ_WRITE(worker->self, &worker->cipher, text_empty);
    RB_OBJ_WRITE(worker->self, &worker->sni, text_empty);
}

void ext_env_setup(void)
{
    for (int i = 0; i < ENV_COUNT; i++)
        env_keys[i] = intern_text(env_key_texts[i]);
    for (int id = 1; id < ORIBI_FIELD_COUNT; id++)
        field_keys[id] = intern_text(oribi_field_env_key((enum oribi_field_id)id));
    for (int i = 0; i < METHODS; i++)
        method_texts[i] = intern_text(method_names[i]);
    key_http_version = intern_text("HTTP_VERSION");
    key_url_scheme = intern_text("rack.url_scheme");
    key_trailers = intern_text("oribi.trailers");
    key_protocols = intern_text("rack.protocol");
    text_empty = intern_text("");
    protocol_texts[0] = intern_text("HTTP/1.0");
    protocol_texts[1] = intern_text("HTTP/1.1");
    protocol_texts[2] = intern_text("HTTP/2");
    text_on = intern_text("on");
    text_https = intern_text("https");
    text_localhost = intern_text("127.0.0.1");

    id_for_fd = rb_intern("for_fd");
    rb_require("stringio");
    empty_input_class = rb_const_get(ext_module, rb_intern("EmptyInput"));
    rb_gc_register_mark_object(empty_input_class);
    alloc_empty_input = rb_get_alloc_func(empty_input_class);
}
