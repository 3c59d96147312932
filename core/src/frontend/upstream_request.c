/* Calls: a complete request from a client to a channel, and its answer back. */
#include "frontend/upstream_request.h"
#include "frontend/answers.h"
#include "frontend/channel.h"
#include "frontend/channel_answer.h"
#include "frontend/count.h"
#include "frontend/dispatch.h"
#include "frontend/events.h"
#include "frontend/frontend.h"
#include "frontend/websocket.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <string.h>

enum {
    SPARE_MAX = 256,
    SPARE_HEAD_BYTES = 16 * 1024,
    QUEUE_MAX = 100 * 1000, /* requests that wait; beyond it 503 */
};

struct oribi__upstream_request *oribi__upstream_create(struct oribi__frontend *frontend,
                                                       const struct oribi__upstream_ops *ops, void *owner)
{
    struct oribi__upstream_request *call = frontend->upstream->spare;
    struct oribi_buf head = {0};
    if (call) {
        frontend->upstream->spare = call->next;
        frontend->upstream->spare_count--;
        head = call->head;
        head.len = 0;
    } else if (!(call = oribi_mem_try_alloc(1, sizeof(*call)))) {
        return NULL;
    }
    memset(call, 0, sizeof(*call));
    call->head = head;
    call->frontend = frontend;
    call->ops = ops;
    call->owner = owner;
    call->body_fd = -1;
    return call;
}

void oribi__upstream_trim(struct oribi__frontend *frontend)
{
    while (frontend->upstream->spare) {
        struct oribi__upstream_request *call = frontend->upstream->spare;
        frontend->upstream->spare = call->next;
        oribi_buf_deinit(&call->head);
        oribi_mem_free(call);
    }
    frontend->upstream->spare_count = 0;
}

static void unblock(struct oribi__upstream_request *call)
{
    struct oribi__upstream_request **at = &call->frontend->upstream->blocked;
    if (!call->blocked)
        return;
    while (*at != call)
        at = &(*at)->blocked_next;
    *at = call->blocked_next;
    call->blocked = false;
}

void oribi__upstream_destroy(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = call->frontend;
    unblock(call);
    oribi__upstream_unlist(call);
    if (__builtin_expect(call->stream != NULL, 0))
        oribi__events_discard(call);
    if (__builtin_expect(call->accepted != NULL, 0))
        oribi__websocket_discard(call->accepted);
    if (call->of_local && call->state == ORIBI__CALL_OUT)
        oribi__count_local(call, 0); /* its client has gone */
    if (call->state == ORIBI__CALL_QUEUED)
        oribi__dispatch_remove(call);
    if (call->channel)
        oribi__channel_abandon(call->channel);
    oribi__answer_file_end(call);
    oribi_buf_deinit(&call->tail);
    if (frontend->upstream->spare_count >= SPARE_MAX || call->head.cap > SPARE_HEAD_BYTES) {
        oribi_buf_deinit(&call->head);
        oribi_mem_free(call);
        return;
    }
    call->next = frontend->upstream->spare;
    frontend->upstream->spare = call;
    frontend->upstream->spare_count++;
}

static struct oribi_slice tls_of(const struct oribi_tls_info *tls, size_t offset)
{
    return tls ? *(const struct oribi_slice *)((const char *)tls + offset) : oribi_slice(NULL, 0);
}

#define OF(field) tls_of(peer->tls, offsetof(struct oribi_tls_info, field))

int oribi__upstream_about(struct oribi__upstream_request *call, const struct oribi__peer *peer,
                          const struct oribi_head *head, uint8_t protocol, bool keeps)
{
    char id[ORIBI__ID_LEN];
    const struct oribi_frontend_listener *listener = &call->frontend->config->listeners[peer->listener];
    struct oribi_channel_head about = {
        .addr_len = peer->addr_len,
        .port_len = peer->port_len,
        .protocol = protocol,
        .keeps = keeps,
        .tls = peer->tls || peer->proxy_tls,
        .listener = (uint16_t)listener->index,
        .listener_hash = listener->hash,
        .complete_us = call->frontend->reactor.now_us,
        .request_id = oribi__answer_id(call->frontend, head, oribi_slice(peer->addr, peer->addr_len), id),
        .alpn = OF(alpn),
        .sni = OF(sni),
        .tls_version = OF(version),
        .cipher = OF(cipher),
        .verify = OF(verify),
        .subject = OF(subject),
        .issuer = OF(issuer),
        .serial = OF(serial),
        .begins = OF(begins),
        .ends = OF(ends),
        .pem = OF(pem),
        .websocket = call->websocket,
    };
    memcpy(about.addr, peer->addr, peer->addr_len);
    memcpy(about.port, peer->port, peer->port_len);
    size_t room = 256 + about.request_id.n + about.sni.n + about.subject.n + about.issuer.n + about.serial.n +
                  about.pem.n + about.verify.n + about.begins.n + about.ends.n + about.alpn.n + about.tls_version.n +
                  about.cipher.n + about.websocket.n;
    char *p = oribi_buf_try_reserve(&call->head, room);
    size_t n = p ? oribi_channel_head_write(&about, p, room) : 0;
    if (p && n == 0) { /* a certificate that is too long to be told */
        about.pem = oribi_slice(NULL, 0);
        n = oribi_channel_head_write(&about, p, room);
    }
    call->head.len += n;
    call->listener = peer->listener;
    return n ? 0 : ORIBI_ENOMEM;
}

void oribi__upstream_submit(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = call->frontend;
    call->complete_us = frontend->reactor.now_us;
    uint32_t max = frontend->config->options->queue_max;
    if (frontend->queue_len >= QUEUE_MAX || (max && frontend->queue_len >= max + oribi__dispatch_capacity(frontend))) {
        oribi__upstream_failed(call, 503, ORIBI_REFUSAL_QUEUE, "too many requests wait");
        return;
    }
    oribi__dispatch_add(call, false);
}

void oribi__upstream_failed(struct oribi__upstream_request *call, int status, enum oribi_refusal refusal,
                            const char *reason)
{
    struct oribi__frontend *frontend = call->frontend;
    if (!call->begun)
        oribi__count_failed(call, status, refusal);
    else if (call->of_local)
        oribi__count_local(call, 0);
    unblock(call);
    if (call->state == ORIBI__CALL_QUEUED)
        oribi__dispatch_remove(call);
    call->state = ORIBI__CALL_ENDED;
    /* else nobody misses it */
    if (!call->finished && oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi__answer_say_failed(call, status, refusal, reason);
    call->refusal = (uint8_t)refusal;
    call->ops->fail(call, status, reason);
}

void oribi__upstream_block(struct oribi__upstream_request *call)
{
    if (call->blocked || (call->state != ORIBI__CALL_OUT && call->state != ORIBI__CALL_FILE))
        return;
    call->blocked = true;
    call->blocked_next = call->frontend->upstream->blocked;
    call->frontend->upstream->blocked = call;
}

void oribi__upstream_list(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = call->frontend;
    if (call->listed)
        return;
    call->listed = true;
    call->listed_prev = NULL;
    call->listed_next = frontend->upstream->listed;
    if (frontend->upstream->listed)
        frontend->upstream->listed->listed_prev = call;
    frontend->upstream->listed = call;
}

void oribi__upstream_unlist(struct oribi__upstream_request *call)
{
    struct oribi__frontend *frontend = call->frontend;
    if (!call->listed)
        return;
    call->listed = false;
    if (frontend->upstream->listed_at == call)
        frontend->upstream->listed_at = call->listed_next;
    *(call->listed_prev ? &call->listed_prev->listed_next : &frontend->upstream->listed) = call->listed_next;
    if (call->listed_next)
        call->listed_next->listed_prev = call->listed_prev;
}

void oribi__upstream_taken(struct oribi__upstream_request *call)
{
    int64_t low = call->state == ORIBI__CALL_FILE ? ORIBI__ANSWER_FILE_LOW_BYTES : ORIBI__FRONTEND_LOW_BYTES;
    if (!call->blocked || call->ops->pending(call) > low)
        return;
    unblock(call);
    if (call->channel)
        oribi__channel_read(call->channel);
    else if (call->state == ORIBI__CALL_FILE)
        oribi__answer_file_go_on(call);
}
