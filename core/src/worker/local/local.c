/* Local content of a worker: no application answers. Reading order: oribi__local_answer, oribi__local_create. */
#include "worker/local/local_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/config/options.h"
#include "oribi/http/fields.h"
#include "oribi/http/response.h"
#include "oribi/http/status.h"

#include <stdio.h>
#include <string.h>

/* --- an answer: its bytes, its count and its line in the access log --- */

void oribi__local_add(struct oribi__local_answer *a, const char *name, const char *value, size_t n)
{
    a->headers[a->header_count++] = (struct oribi_header){name, value, (uint32_t)strlen(name), (uint32_t)n};
}

void oribi__local_add_text(struct oribi__local_answer *a, const char *name, const char *value)
{
    oribi__local_add(a, name, value, strlen(value));
}

struct oribi_slice oribi__local_field(const struct oribi__local_answer *a, enum oribi_field_id id)
{
    const struct oribi_field *field = oribi_head_field(&a->c->exchange->head, id);
    return field ? oribi_slice(field->value, field->value_len) : oribi_slice(NULL, 0);
}

/* Sets what oribi__on_unkept() and oribi__body_taken() read when the answer breaks off. */
static void begin(struct oribi__local_answer *a, int64_t head_bytes)
{
    struct oribi__exchange *exchange = (struct oribi__exchange *)a->c->exchange;
    exchange->thread = NULL;
    exchange->phase = ORIBI_PHASE_STARTED;
    exchange->sent_before = a->c->sent_bytes + oribi_conn_pending(a->c);
    exchange->overhead = head_bytes;
    oribi__logged_head(exchange, oribi_slice(a->w->reactor.scratch, (size_t)head_bytes));
}

static void log_access(struct oribi__local_answer *a, int status, int64_t body_bytes, bool cut, bool closes)
{
    struct oribi__exchange *exchange = (struct oribi__exchange *)a->c->exchange;
    exchange->req.head = &exchange->base.head;
    oribi__peer_of(exchange);
    struct oribi_access_entry entry = oribi__logged_entry(exchange, cut, oribi_clock_us());
    entry.status = status;
    entry.closes = closes;
    entry.body_bytes = cut ? oribi__body_taken(exchange) : body_bytes;
    entry.bytes_out = entry.body_bytes + exchange->overhead;
    oribi_access_log_add(a->w->setup.access_log, &entry);
    oribi__logged_end(exchange);
}

/* A part of it is on its way to a file: whether it breaks off is not known yet. */
static void note_later(struct oribi__local_answer *a, int status, int64_t body_bytes, bool closes)
{
    struct oribi__exchange *exchange = (struct oribi__exchange *)a->c->exchange;
    exchange->req.head = &exchange->base.head;
    exchange->req.queue_us = 0;
    oribi__peer_of(exchange);
    exchange->aborted = false;
    exchange->body_sent = body_bytes;
    exchange->closes = closes;
    exchange->started_us = a->w->reactor.now_us; /* there is no call */
    oribi__exchange_unstored(exchange, status);
}

static void note(struct oribi__local_answer *a, int status, int64_t body_bytes, bool closes)
{
    struct oribi_worker *w = a->w;
    bool cut = a->c->broken;
    oribi__count(&w->slot->uncalled_count, 1);
    if (a->c->unstored && !cut) {
        note_later(a, status, body_bytes, closes);
        return;
    }
    oribi_slot_count_answer(w->slot, a->c->exchange->head.method, cut ? 0 : status);
    if (w->setup.access_log)
        log_access(a, status, body_bytes, cut, closes);
}

void oribi__local_send_body(struct oribi__local_answer *a, int status, const struct oribi__local_body *body)
{
    static const struct oribi__local_body empty;
    struct oribi_reactor *r = &a->w->reactor;
    struct oribi__exchange *exchange = (struct oribi__exchange *)a->c->exchange;
    if (!body)
        body = &empty;
    struct oribi_response res = {
        .status = status,
        .headers = a->headers,
        .header_count = a->header_count,
        .minor = a->c->exchange->head.minor,
        .is_head = a->c->exchange->head.is_head,
        .keep_alive = oribi__conn_keeps(a->w, a->c),
        .body_len = body->len,
        .date = oribi_reactor_date(r),
        .server = r->config.server,
        .added = r->config.added,
        .reason_index = UINT32_MAX,
    };
    if (a->w->options->request_id_header)
        res.extra = oribi__id_header(exchange);
    ssize_t n = oribi_response_head(&res, r->scratch, ORIBI_SCRATCH_BYTES); /* heads of ours fit */
    begin(a, n > 0 ? n : 0);
    bool bodyless = res.framing == ORIBI_FRAMING_NONE || body->len == 0;
    bool from_source = !bodyless && body->source;
    uint32_t count = bodyless || from_source ? 0 : body->vec_count;
    struct iovec vec[1 + ORIBI__LOCAL_VECS_MAX];
    vec[0] = (struct iovec){r->scratch, n > 0 ? (size_t)n : 0};
    for (uint32_t i = 0; i < count; i++)
        vec[1 + i] = body->vec[i];
    int result = oribi_conn_send(r, a->c, vec, 1 + count, from_source);
    if (result == 0 && from_source)
        (void)oribi_conn_send_source(r, a->c, body->source, body->pieces, body->piece_count); /* a->c->broken tells */
    note(a, status, bodyless ? 0 : body->len, res.closes || n <= 0);
    oribi_conn_finish(r, a->c, res.closes || n <= 0);
}

void oribi__local_send(struct oribi__local_answer *a, int status, struct oribi_slice memory)
{
    const struct iovec vec = {(void *)memory.p, memory.n};
    oribi__local_send_body(a, status,
                           &(struct oribi__local_body){.len = (int64_t)memory.n, .vec_count = 1, .vec = &vec});
}

void oribi__local_send_error(struct oribi__local_answer *a, int status)
{
    char text[ORIBI__OWN_TEXT_CAP];
    struct oribi_slice type;
    struct oribi_slice body = oribi__server_body(a->w, status, text, &type);
    a->header_count = 0;
    oribi__local_add(a, "Content-Type", type.p, type.n);
    if (status == 405)
        oribi__local_add_text(a, "Allow", "GET, HEAD");
    if (status == 503)
        oribi__local_add_text(a, "Retry-After", "1");
    oribi__local_send(a, status, body);
}

/* --- requests that did not come by HTTPS, where they should (https_redirect) --- */

enum { HTTPS_PORT = 443 };

/* Certificate authorities ask there by HTTP, RFC 8555 8.3. */
static bool is_challenge(const struct oribi__local *local)
{
    static const char prefix[] = "/.well-known/acme-challenge/";
    return strncmp(local->path.text, prefix, sizeof(prefix) - 1) == 0;
}

/* Balancers ask for their health by HTTP. */
static bool is_health(const struct oribi__local *local)
{
    const struct oribi_fixed *fixed = local->fixed ? oribi_fixed_find(local->fixed, &local->path) : NULL;
    return fixed && fixed->kind == ORIBI_FIXED_HEALTH;
}

/* Did the request come by HTTP, where it should not? Sets the exchange's peer and local->path. */
static bool wants_https(struct oribi_worker *w, struct oribi_conn *c)
{
    struct oribi__local *local = w->local;
    struct oribi__exchange *exchange = (struct oribi__exchange *)c->exchange;
    if (!w->options->https_redirect)
        return false;
    exchange->worker = w;
    exchange->req.head = &exchange->base.head;
    oribi__peer_of(exchange);
    if (!oribi_slice_equal(exchange->req.scheme, ORIBI_SLICE("http")))
        return false;
    return oribi_path_read(exchange->base.head.path, &local->path) != ORIBI_PATH_OK ||
           (!is_challenge(local) && !is_health(local));
}

/* Other methods than GET keep theirs, and their body, with 308 alone (RFC 9110 15.4.9). */
static int status_for(const struct oribi_head *head)
{
    return head->is_head || oribi_slice_equal(head->method, ORIBI_SLICE("GET")) ? 301 : 308;
}

/* Sends the client to the same address by HTTPS. */
static void send_https(struct oribi__local_answer *a)
{
    const struct oribi_head *head = &a->c->exchange->head;
    char port[8] = "";
    bool is_path = head->path.n && head->path.p[0] == '/'; /* OPTIONS * has none */
    if (a->w->options->https_redirect != HTTPS_PORT)
        (void)snprintf(port, sizeof(port), ":%u", a->w->options->https_redirect); /* fits */
    if (!head->host.n) {
        oribi__local_send_error(a, 400);
        return;
    }
    int n = snprintf(a->local->location, sizeof(a->local->location), "https://%.*s%s%.*s%s%.*s", (int)head->host.n,
                     head->host.p, port, is_path ? (int)head->path.n : 1, is_path ? head->path.p : "/",
                     head->query.n ? "?" : "", (int)head->query.n, head->query.p ? head->query.p : "");
    if (n < 0 || (size_t)n >= sizeof(a->local->location)) {
        oribi__local_send_error(a, 414);
        return;
    }
    oribi__local_add(a, "Location", a->local->location, (size_t)n);
    oribi__local_send(a, status_for(head), oribi_slice(NULL, 0));
}

/* --- which part answers --- */

bool oribi__local_claims(void *self, struct oribi_conn *c)
{
    struct oribi__local *local = ((struct oribi_worker *)self)->local;
    const struct oribi_head *head = &c->exchange->head;
    if (c->channel && c->channel->head.websocket.n > 1)
        return false; /* a call of a WebSocket, whatever its path */
    if (wants_https(self, c))
        return true;
    if (local->count > 0 && (head->is_head || oribi_slice_equal(head->method, ORIBI_SLICE("GET"))))
        return true;
    return local->fixed && oribi_path_read(head->path, &local->path) == ORIBI_PATH_OK &&
           oribi_fixed_find(local->fixed, &local->path) != NULL;
}

bool oribi__local_answer(void *self, struct oribi_conn *c)
{
    struct oribi_worker *w = self;
    struct oribi__local *local = w->local;
    struct oribi__local_answer a; /* field by field: clearing its headers would cost each answer 672 bytes */
    a.w = w;
    a.local = local;
    a.c = c;
    a.mount = NULL;
    a.now = (struct oribi_cache_now){0};
    a.passes = false;
    a.header_count = 0;
    struct oribi__exchange *exchange = (struct oribi__exchange *)c->exchange;
    exchange->worker = w;
    oribi__logged_begin(exchange);
    if (wants_https(w, c)) {
        send_https(&a);
        return true;
    }
    enum oribi_path_verdict verdict = oribi_path_read(c->exchange->head.path, &local->path);
    const struct oribi_fixed *fixed =
        local->fixed && verdict == ORIBI_PATH_OK ? oribi_fixed_find(local->fixed, &local->path) : NULL;
    if (fixed) {
        oribi__local_answer_fixed(&a, fixed);
        return true;
    }
    if (verdict == ORIBI_PATH_OK && c->channel && c->channel->head.websocket.n > 0)
        return false; /* a WebSocket's handshake: a file is no answer to it, and would hide the application's path */
    a.now = (struct oribi_cache_now){.ms = w->reactor.now_ms, .wall_s = oribi_clock_wall_s()};
    return verdict == ORIBI_PATH_OK ? oribi__local_answer_file(&a) : oribi__local_refuse_path(&a, verdict);
}

/* --- life --- */

_Static_assert((int)ORIBI_OPTION_ITEMS_MAX <= (int)ORIBI_MOUNTS_MAX, "as many mounts as the option static takes");

static int open_mount(struct oribi__local_mount *mount, const char *text, char *error)
{
    int bad = -1;
    int code = oribi_mount_read(text, &mount->spec, error);
    if (code < 0)
        return code;
    code = oribi_root_create(&mount->root, mount->spec.folder, mount->spec.links, mount->spec.link_count, &bad);
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "static %.80s: %.100s: %s", text,
                       bad < 0 ? mount->spec.folder : mount->spec.links[bad], oribi_os_error_text());
    return code;
}

struct oribi__local *oribi__local_create(const struct oribi_options *options)
{
    const struct oribi_cache_limits limits = {options->static_open_max, ORIBI_CACHE_MISSING_DEFAULT,
                                              (uint64_t)options->static_memory_max};
    const struct oribi_fixed_lines lines = oribi_options_fixed_lines(options);
    struct oribi_fixed_set *fixed = NULL;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (oribi_fixed_set_create(&lines, &fixed, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s; this worker does without fixed answers", error);
    if (options->mounts.count == 0 && !fixed && !options->https_redirect)
        return NULL;
    struct oribi__local *local = oribi_mem_alloc(1, sizeof(*local) + options->mounts.count * sizeof(local->mounts[0]));
    local->types = oribi_types_create("utf-8");
    (void)oribi_types_read_file(local->types, ORIBI_TYPES_SYSTEM_FILE); /* where there is one */
    local->cache = oribi_cache_create(&limits, local->types);
    local->fixed = fixed;
    for (size_t i = 0; i < options->mounts.count; i++) {
        struct oribi__local_mount *mount = &local->mounts[local->count];
        if (open_mount(mount, options->mounts.items[i], error) < 0) {
            oribi_log(ORIBI_LOG_ERROR, "%s; this worker does without the mount", error);
            continue;
        }
        local->prefixes[local->count++] = oribi_slice(mount->spec.prefix, strlen(mount->spec.prefix));
    }
    return local;
}

void oribi__local_abandon(struct oribi__local *local)
{
    if (!local)
        return;
    oribi_cache_abandon(local->cache);
    for (uint32_t i = 0; i < local->count; i++)
        oribi_root_abandon(local->mounts[i].root);
}

void oribi__local_destroy(struct oribi__local *local)
{
    if (!local)
        return;
    oribi_cache_destroy(local->cache);
    oribi_types_destroy(local->types);
    oribi_fixed_set_destroy(local->fixed);
    for (uint32_t i = 0; i < local->count; i++)
        oribi_root_destroy(local->mounts[i].root);
    oribi_mem_free(local);
}
