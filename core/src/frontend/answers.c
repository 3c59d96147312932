/* Answers of the frontend's own: refusals, and what it says where no worker has answered. Their headers and pages are
 * the operator's, as in a worker, and each has its line in the access log; so have requests whose client went before a
 * worker had them (499). */
#include "frontend/answers.h"
#include "frontend/canonical.h"
#include "frontend/frontend.h"
#include "frontend/upstream_request.h"
#include "frontend/websocket.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/head.h"
#include "oribi/worker/logs/request_log.h"

#include <stdio.h>
#include <string.h>

void oribi__answers_init(struct oribi__frontend *frontend)
{
    struct oribi__answers *answers = frontend->answers;
    uint32_t hsts_s = frontend->config->options->hsts_s;
    oribi__ids_seed(&answers->ids);
    if (!hsts_s)
        return;
    int n = snprintf(answers->hsts, sizeof(answers->hsts), "max-age=%u", hsts_s); /* fits */
    answers->extra_tls = (struct oribi_header){"strict-transport-security", answers->hsts, 25, (uint32_t)n};
}

void oribi__answer_open(struct oribi__frontend *frontend, const struct oribi_options *options,
                        const struct oribi_error_pages *pages)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_trust trust = {0};
    oribi__answer_close(frontend);
    if (oribi_trust_parse(&options->trusted_proxies, &trust, error) == 0) /* the supervisor has read it */
        frontend->trust = trust;
    if (oribi_added_create(options->headers.items, options->headers.count, &frontend->answers->added, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "frontend: %s", error);
    frontend->answers->pages = pages;
    frontend->reactor.config.added = frontend->answers->added;
    if (oribi_access_log_open(options->access_log, options->access_log_format, NULL, &frontend->answers->access_log,
                              error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "frontend: %s: no access log lines for its own answers", error);
    oribi_access_log_choose(frontend->answers->access_log, &options->access_log_skip, options->access_log_sample);
    frontend->answers->names_requests =
        options->request_id || options->request_id_header || oribi_log_is_json() ||
        (oribi_access_log_wants(frontend->answers->access_log) & ORIBI_ACCESS_WANTS_ID) != 0;
}

void oribi__answer_close(struct oribi__frontend *frontend)
{
    oribi_access_log_close(frontend->answers->access_log);
    oribi_mem_free(frontend->answers->added);
    frontend->answers->access_log = NULL;
    frontend->answers->added = NULL;
    frontend->answers->pages = NULL;
    frontend->reactor.config.added = NULL;
}

void oribi__answer_reopen(struct oribi__frontend *frontend)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    oribi_access_log_flush(frontend->answers->access_log); /* what happened before belongs to the old file */
    if (oribi_access_log_follow_stdout(frontend->answers->access_log, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "frontend: %s, going on with the old file", error);
}

struct oribi_slice oribi__answer_page_of(void *self, int status, struct oribi_slice *type)
{
    const struct oribi__frontend *frontend = self;
    return oribi_error_page_find(frontend->answers->pages, status, type);
}

struct oribi_slice oribi__answer_text(struct oribi__frontend *frontend, int status, char text[ORIBI__OWN_TEXT_CAP],
                                      struct oribi_slice *type)
{
    return oribi_error_page_or_text(frontend->answers->pages, status, text, type);
}

uint32_t oribi__answer_fields(const struct oribi__frontend *frontend, struct oribi_field *fields, uint32_t room)
{
    uint32_t count = 0;
    for (uint32_t i = 0; frontend->answers->added && i < frontend->answers->added->count && count < room; i++) {
        const struct oribi_header *header = &frontend->answers->added->headers[i];
        fields[count++] = (struct oribi_field){.name = header->name,
                                               .value = header->value,
                                               .name_len = (uint16_t)header->name_len,
                                               .value_len = header->value_len};
    }
    return count;
}

/* --- lines --- */

static void add_line(struct oribi__frontend *frontend, struct oribi_access_entry *entry,
                     const struct oribi_listener *listener, int64_t complete_us)
{
    bool tls = ((const struct oribi_frontend_listener *)listener)->tls; /* its first member */
    char room[ORIBI_ADDRESS_TEXT_CAP];
    const char *shown = oribi_address_shown(listener->text, tls, room);
    const char *colon = listener->is_unix ? NULL : strrchr(listener->text, ':');
    const char *port = colon ? colon + 1 : "";
    entry->port = oribi_slice(port, strlen(port));
    entry->listener = oribi_slice(shown, strlen(shown));
    entry->upstream_us = -1;
    entry->wall_ms = oribi_clock_wall_ms();
    entry->total_us = complete_us ? oribi_clock_us() - complete_us : 0;
    entry->queue_us = entry->is_socket ? 0 : entry->total_us;
    oribi_access_log_add(frontend->answers->access_log, entry);
}

struct oribi_slice oribi__answer_id(struct oribi__frontend *frontend, const struct oribi_head *head,
                                    struct oribi_slice addr, char room[ORIBI__ID_LEN])
{
    if (!frontend->answers->names_requests)
        return oribi_slice("", 0);
    struct oribi_slice given = head ? oribi__id_trusted(&frontend->trust, head, addr) : oribi_slice("", 0);
    if (given.n)
        return given;
    oribi__id_make(&frontend->answers->ids, frontend->reactor.now_us, room);
    return oribi_slice(room, ORIBI__ID_LEN);
}

/* The head that goes out with a call; returns the length of the channel head in front of it, 0: there was no memory for
 * it. The framing of HTTP/2 comes when the body is whole: until then one stands there for the parser alone. */
static size_t read_call(struct oribi__upstream_request *call, struct oribi_channel_head *about, struct oribi_head *head)
{
    size_t len = call->head.len;
    for (int i = 0; i < 2; i++) {
        struct oribi_parser parser = {0};
        ssize_t n = oribi_channel_head_read(call->head.p, call->head.len, about);
        if (n <= 0)
            break;
        ssize_t code = oribi_parser_head(&parser, &call->frontend->answer_limits, call->head.p + n,
                                         call->head.len - (size_t)n, head);
        call->head.len = len;
        if (code > 0)
            return (size_t)n;
        if (code != ORIBI_AGAIN || oribi_canonical_framing(&call->head, -1, false) < 0)
            break;
    }
    call->head.len = len;
    return 0;
}

static void log_answer(struct oribi__upstream_request *call, int status, int64_t body_bytes, int64_t messages)
{
    struct oribi__frontend *frontend = call->frontend;
    struct oribi_channel_head about;
    struct oribi_head head;
    size_t n = frontend->answers->access_log ? read_call(call, &about, &head) : 0;
    if (n == 0)
        return;
    struct oribi_access_entry entry = {
        .head = &head,
        .remote_addr = oribi_slice(about.addr, about.addr_len),
        .remote_port = oribi_slice(about.port, about.port_len),
        .scheme = about.tls ? ORIBI_SLICE("https") : ORIBI_SLICE("http"),
        .client = &about,
        .status = status,
        .body_bytes = body_bytes,
        .bytes_out = body_bytes,
        .bytes_in = (int64_t)(call->head.len - n) + call->body_len,
        .request_id = about.request_id,
        .refused = call->refusal != ORIBI_REFUSAL_OTHER ? oribi_refusal_name((enum oribi_refusal)call->refusal) : NULL,
        .is_socket = messages >= 0,
        .messages_out = messages,
        .connection_requests = 1};
    add_line(frontend, &entry, &frontend->config->listeners[call->listener].listener, call->complete_us);
}

void oribi__answer_log(struct oribi__upstream_request *call, int status, int64_t body_bytes)
{
    log_answer(call, status, body_bytes, -1);
}

void oribi__answer_log_stream(struct oribi__upstream_request *call, int64_t body_bytes, int64_t messages)
{
    log_answer(call, 200, body_bytes, messages);
}

static struct oribi_slice trace_of(const struct oribi__frontend *frontend, const struct oribi_head *head)
{
    return head && frontend->answers->names_requests ? oribi__trace_id(head) : oribi_slice("", 0);
}

void oribi__answer_say_failed(struct oribi__upstream_request *call, int status, enum oribi_refusal refusal,
                              const char *reason)
{
    struct oribi__frontend *frontend = call->frontend;
    struct oribi_channel_head about = {0};
    struct oribi_head head;
    char line[ORIBI_SLOT_LINE_CAP] = "a request";
    size_t n = read_call(call, &about, &head);
    struct oribi_slice addr = about.addr_len ? oribi_slice(about.addr, about.addr_len) : ORIBI_SLICE("a unix socket");
    struct oribi_slice trace = n ? trace_of(frontend, &head) : oribi_slice("", 0);
    if (!call->begun && refusal != ORIBI_REFUSAL_OTHER && !call->of_socket) {
        const struct oribi__refusal_line refused = {
            .addr = addr,
            .status = status,
            .reason = reason,
            .first_line = n ? oribi_parser_first_line(call->head.p + n, call->head.len - n) : oribi_slice("", 0),
            .id = about.request_id,
            .trace_id = trace};
        oribi__refused_say(&refused);
        return;
    }
    if (n)
        oribi__note_line(line, &head);
    oribi_log_about(about.request_id, trace);
    if (call->of_socket)
        oribi_log(status == 503 ? ORIBI_LOG_WARN : ORIBI_LOG_ERROR,
                  "frontend: %s from %.*s: %s; closing the WebSocket with %u", line, (int)addr.n, addr.p, reason,
                  oribi__websocket_code_of(status));
    else if (call->begun)
        oribi_log(ORIBI_LOG_ERROR, "frontend: %s from %.*s: %s: the answer breaks off", line, (int)addr.n, addr.p,
                  reason);
    else
        oribi_log(status == 503 ? ORIBI_LOG_WARN : ORIBI_LOG_ERROR, "frontend: %s from %.*s: %s; answering with %d",
                  line, (int)addr.n, addr.p, reason, status);
    oribi_log_about(oribi_slice("", 0), oribi_slice("", 0));
}

void oribi__answer_say_stream(struct oribi__upstream_request *call, const char *what)
{
    struct oribi__frontend *frontend = call->frontend;
    struct oribi_channel_head about = {0};
    struct oribi_head head;
    char line[ORIBI_SLOT_LINE_CAP] = "a request";
    bool known = read_call(call, &about, &head) > 0;
    struct oribi_slice addr = about.addr_len ? oribi_slice(about.addr, about.addr_len) : ORIBI_SLICE("a unix socket");
    if (known)
        oribi__note_line(line, &head);
    oribi_log_about(about.request_id, known ? trace_of(frontend, &head) : oribi_slice("", 0));
    oribi_log(ORIBI_LOG_INFO, "frontend: %s from %.*s: %s", line, (int)addr.n, addr.p, what);
    oribi_log_about(oribi_slice("", 0), oribi_slice("", 0));
}

void oribi__own_why_unkept(int error, char reason[ORIBI__OWN_REASON_CAP])
{
    if (error == ORIBI_ENOMEM)
        (void)snprintf(reason, ORIBI__OWN_REASON_CAP, "no memory for the rest");
    else if (error == ORIBI_ELIMIT)
        (void)snprintf(reason, ORIBI__OWN_REASON_CAP, "no room for the rest: buffers_file_max is used up");
    else
        (void)snprintf(reason, ORIBI__OWN_REASON_CAP, "the rest cannot be stored in %.100s: %s", oribi_os_temp_dir(),
                       oribi_os_error_text());
}

void oribi__own_say_cut(struct oribi__upstream_request *call, int error)
{
    char reason[ORIBI__OWN_REASON_CAP];
    oribi__own_why_unkept(error, reason);
    if (oribi_log_limit_allows(&call->frontend->log_limit, call->frontend->reactor.now_ms))
        oribi__answer_say_failed(call, 502, ORIBI_REFUSAL_OTHER, reason);
}

void oribi__answer_log_refused(struct oribi__frontend *frontend, const struct oribi_head *head,
                               struct oribi_slice raw_line, const struct oribi__refused *refused)
{
    static const struct oribi_head nothing;
    static const struct oribi_channel_head http2 = {.protocol = 20};
    char room[ORIBI__ID_LEN];
    struct oribi_slice id = oribi__answer_id(frontend, head, refused->addr, room);
    const struct oribi__refusal_line line = {.addr = refused->addr,
                                             .status = refused->status,
                                             .reason = refused->reason,
                                             .fault = refused->fault,
                                             .first_line = raw_line,
                                             .id = id,
                                             .trace_id = trace_of(frontend, head),
                                             .closes = refused->closes};
    if (oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi__refused_say(&line);
    if (!frontend->answers->access_log || refused->status == 0)
        return;
    struct oribi_access_entry entry = {.head = head ? head : &nothing,
                                       .raw_line = raw_line,
                                       .remote_addr = refused->addr,
                                       .remote_port = refused->port,
                                       .scheme = refused->tls ? ORIBI_SLICE("https") : ORIBI_SLICE("http"),
                                       .client = refused->http2 ? &http2 : NULL,
                                       .status = refused->status,
                                       .refused = oribi_refusal_name(refused->refusal),
                                       .request_id = id,
                                       .closes = refused->closes,
                                       .body_bytes = refused->body_bytes,
                                       .bytes_in = refused->bytes_in,
                                       .bytes_out = refused->bytes_out,
                                       .connection_requests = refused->requests};
    add_line(frontend, &entry, refused->listener, 0);
}

void oribi__answer_log_refused_h2(struct oribi__frontend *frontend, const struct oribi__peer *peer,
                                  const struct oribi_head *head, struct oribi_slice line, int status,
                                  enum oribi_refusal refusal, const char *reason, const struct oribi_fault *fault)
{
    struct oribi_fault field = fault ? *fault : (struct oribi_fault){0};
    if (!field.field.p)
        field.at = NULL; /* bytes of a field block have no columns */
    const struct oribi__refused refused = {.listener = &frontend->config->listeners[peer->listener].listener,
                                           .addr = oribi_slice(peer->addr, peer->addr_len),
                                           .port = oribi_slice(peer->port, peer->port_len),
                                           .tls = peer->tls || peer->proxy_tls,
                                           .status = status,
                                           .refusal = refusal,
                                           .reason = reason,
                                           .fault = &field,
                                           .requests = 1,
                                           .http2 = true};
    oribi__answer_log_refused(frontend, head, line, &refused);
}

void oribi__answer_log_socket(struct oribi__frontend *frontend, const struct oribi__socket_end *end)
{
    const struct oribi__peer *peer = end->peer;
    bool tls = peer->tls || peer->proxy_tls;
    struct oribi_head *head = frontend->answers->access_log ? oribi_mem_try_alloc(1, sizeof(*head)) : NULL;
    if (!head)
        return;
    head->method = ORIBI_SLICE("WEBSOCKET");
    head->target = head->path = end->path;
    const struct oribi_channel_head client = {.protocol = end->over_h2 ? 20 : 11};
    struct oribi_access_entry entry = {.head = head,
                                       .remote_addr = oribi_slice(peer->addr, peer->addr_len),
                                       .remote_port = oribi_slice(peer->port, peer->port_len),
                                       .scheme = tls ? ORIBI_SLICE("https") : ORIBI_SLICE("http"),
                                       .client = &client,
                                       .status = end->code,
                                       .close_code = end->code,
                                       .body_bytes = (int64_t)end->bytes[1],
                                       .bytes_in = (int64_t)end->bytes[0],
                                       .bytes_out = (int64_t)end->bytes[1],
                                       .messages_in = (int64_t)end->messages[0],
                                       .messages_out = (int64_t)end->messages[1],
                                       .is_socket = true,
                                       .request_id = end->id,
                                       .connection_requests = 1};
    add_line(frontend, &entry, &frontend->config->listeners[peer->listener].listener, end->opened_us);
    oribi_mem_free(head);
}
