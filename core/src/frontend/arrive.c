/* Clients from the listener until it is known what they speak: TLS shakes hands, and without it the first bytes say
 * whether HTTP/2 is spoken by prior knowledge (RFC 9113 3.3). A PROXY header stands before either: nothing that is said
 * within TLS, or later, can be one. */
#include "frontend/arrive.h"
#include "frontend/accept.h"
#include "frontend/answers.h"
#include "frontend/clients_h2.h"
#include "frontend/count.h"
#include "frontend/frontend.h"
#include "frontend/peer.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/config/address.h"
#include "oribi/http/head.h"
#include "oribi/http/proxy.h"
#include "oribi/http/status.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
    FIRST_BYTES = 4096,
    ROOM_LOOKS_MAX = 16,  /* clients that turn out not to rest */
    PREFACE_BYTES = 24,   /* of HTTP/2, RFC 9113 3.4 */
    PLAIN_READS_MAX = 16, /* of FIRST_BYTES, behind the answer to who speaks no TLS */
    STEPS_A_TURN = 4,     /* of handshakes: one takes as long as ten requests of others, or a hundred */
    STEPS_WAITING = 64,   /* then those that come wait in the kernel, where they take no memory of ours */
};

_Static_assert((int)FIRST_BYTES >= (int)ORIBI_PROXY_BINARY_BYTES_MAX, "a PROXY header is read whole");
_Static_assert((int)FIRST_BYTES >= (int)ORIBI_PROXY_LINE_BYTES_MAX, "a PROXY line is read whole");

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
_Static_assert(sizeof(preface) - 1 == PREFACE_BYTES, "room for all of it");

struct oribi__arrival {
    struct oribi_watch watch; /* first: the handler casts */
    struct oribi__frontend *frontend;
    struct oribi__arrival *prev;
    struct oribi__arrival *next;
    struct oribi__peer peer;
    struct oribi_tls_session *session; /* NULL: without TLS, or its PROXY header has not come */
    bool shakes;                       /* the next step of its handshake waits for a turn: in the list of these */
    uint8_t steps;                     /* that it has made; not counted beyond two */
    struct oribi__arrival *shakes_prev;
    struct oribi__arrival *shakes_next;
    bool proxy_awaited;
    struct oribi_buf proxy; /* the part of the PROXY header that has come */
    int64_t since_ms;
    struct oribi_timer timer; /* it is dropped then */
    uint32_t len;             /* bytes of a preface that have come */
    char first[PREFACE_BYTES];
};

static const struct oribi_frontend_listener *listener_of(const struct oribi__arrival *arrival)
{
    return &arrival->frontend->config->listeners[arrival->peer.listener];
}

/* --- handshakes that wait for their turn --- */

/* Whose second step it is, which most often is the last, comes first, so that few are under way at a time; no third
 * one does, or clients who go on without end would leave no turn to others. */
static void await_step(struct oribi__arrival *arrival)
{
    struct oribi__arrivals *arrivals = arrival->frontend->arrivals;
    if (arrival->shakes)
        return;
    arrival->shakes = true;
    arrival->shakes_prev = arrival->steps == 1 ? NULL : arrivals->shakes_last;
    arrival->shakes_next = arrival->steps == 1 ? arrivals->shakes_first : NULL;
    *(arrival->shakes_prev ? &arrival->shakes_prev->shakes_next : &arrivals->shakes_first) = arrival;
    *(arrival->shakes_next ? &arrival->shakes_next->shakes_prev : &arrivals->shakes_last) = arrival;
    arrivals->shakes_count++;
}

static void end_wait(struct oribi__arrival *arrival)
{
    struct oribi__arrivals *arrivals = arrival->frontend->arrivals;
    if (!arrival->shakes)
        return;
    arrival->shakes = false;
    *(arrival->shakes_prev ? &arrival->shakes_prev->shakes_next : &arrivals->shakes_first) = arrival->shakes_next;
    *(arrival->shakes_next ? &arrival->shakes_next->shakes_prev : &arrivals->shakes_last) = arrival->shakes_prev;
    arrivals->shakes_count--;
}

/* --- life --- */

static void forget(struct oribi__arrival *arrival)
{
    struct oribi__frontend *frontend = arrival->frontend;
    (void)oribi_loop_remove(frontend->reactor.loop, &arrival->watch); /* ours */
    *(arrival->prev ? &arrival->prev->next : &frontend->arrivals->first) = arrival->next;
    *(arrival->next ? &arrival->next->prev : &frontend->arrivals->last) = arrival->prev;
    end_wait(arrival);
    oribi_timers_stop(&frontend->timers, &arrival->timer);
    arrival->watch.fd = -1;
    oribi_buf_deinit(&arrival->proxy);
    frontend->arrival_count--;
    arrival->next = frontend->arrivals->closed;
    frontend->arrivals->closed = arrival;
}

static void drop(struct oribi__arrival *arrival)
{
    oribi_tls_session_destroy(arrival->session);
    arrival->session = NULL;
    oribi_os_close(arrival->peer.fd);
    forget(arrival);
}

static void on_deadline(void *self)
{
    struct oribi__arrival *arrival = self;
    struct oribi_frontend_slot *slot = arrival->frontend->slot;
    if (listener_of(arrival)->tls)
        oribi_frontend_slot_count(&slot->handshake_failures[ORIBI_FRONTEND_LATE], 1);
    oribi_frontend_slot_count(&slot->timeouts[ORIBI_TIMEOUT_FIRST], 1);
    drop(arrival);
}

/* It has so long from now on. 0: without bound. */
static void set_timeout(struct oribi__arrival *arrival, int64_t timeout_ms)
{
    struct oribi__frontend *frontend = arrival->frontend;
    int64_t at_ms = timeout_ms ? frontend->reactor.now_ms + timeout_ms : INT64_MAX;
    oribi_timers_arm(&frontend->timers, &arrival->timer, at_ms);
}

static void become_h1(struct oribi__arrival *arrival, struct oribi_slice first)
{
    struct oribi__frontend *frontend = arrival->frontend;
    struct oribi__peer peer = arrival->peer;
    const struct oribi_frontend_listener *listener = &frontend->config->listeners[peer.listener];
    bool proxy_awaited = arrival->proxy_awaited;
    forget(arrival);
    struct oribi_conn *c = oribi_conn_open(&frontend->reactor, peer.fd, listener);
    if (!c) {
        if (peer.transport)
            peer.transport->release(peer.transport);
        return;
    }
    c->transport = peer.transport;
    c->addr_len = peer.addr_len;
    c->port_len = peer.port_len;
    memcpy(c->addr, peer.addr, sizeof(c->addr));
    memcpy(c->port, peer.port, sizeof(c->port));
    c->proxy_awaited = proxy_awaited;
    c->proxy_tls = peer.proxy_tls;
    if (first.n)
        oribi_conn_resume(&frontend->reactor, c, first, -1, 0, 0);
    if (c->state == ORIBI_CONN_IDLE || c->state == ORIBI_CONN_HEAD || c->state == ORIBI_CONN_BODY)
        oribi_conn_start(&frontend->reactor, c);
}

static void become_h2(struct oribi__arrival *arrival, struct oribi_slice first)
{
    struct oribi__peer peer = arrival->peer;
    struct oribi__frontend *frontend = arrival->frontend;
    forget(arrival);
    oribi__h2_begin(frontend, &peer, first);
}

/* --- the first bytes --- */

/* Reads behind the `len` bytes that are in `first`. 0: nothing has come, or the client is dropped. */
static size_t read_first(struct oribi__arrival *arrival, char first[FIRST_BYTES], size_t len)
{
    ssize_t n = oribi_os_read(arrival->peer.fd, first + len, FIRST_BYTES - len);
    if (n == ORIBI_AGAIN) {
        arrival->watch.ready &= (uint8_t)~ORIBI_READ;
        return 0;
    }
    if (n <= 0) {
        drop(arrival);
        return 0;
    }
    arrival->frontend->bytes_in += (uint64_t)n;
    return (size_t)n;
}

static void choose(struct oribi__arrival *arrival, struct oribi_slice first)
{
    size_t known = first.n < PREFACE_BYTES ? first.n : PREFACE_BYTES;
    if (memcmp(first.p, preface, known) != 0) {
        become_h1(arrival, first);
    } else if (known == PREFACE_BYTES) {
        become_h2(arrival, first);
    } else {
        memcpy(arrival->first, first.p, first.n);
        arrival->len = (uint32_t)first.n;
    }
}

static void look_at_first(struct oribi__arrival *arrival)
{
    char first[FIRST_BYTES];
    memcpy(first, arrival->first, arrival->len);
    size_t n = read_first(arrival, first, arrival->len);
    if (n > 0)
        choose(arrival, oribi_slice(first, arrival->len + n));
}

/* Its lines in both logs, as of any other that is refused. */
static void log_plain(const struct oribi__arrival *arrival, struct oribi_slice came, size_t head_bytes,
                      size_t body_bytes)
{
    const struct oribi__peer *peer = &arrival->peer;
    const struct oribi__refused refused = {
        .listener = &arrival->frontend->config->listeners[peer->listener].listener,
        .addr = oribi_slice(peer->addr, peer->addr_len),
        .port = oribi_slice(peer->port, peer->port_len),
        .closes = true,
        .status = 400,
        .refusal = ORIBI_REFUSAL_REQUEST_LINE,
        .reason = "HTTP without TLS at an address of tls://",
        .body_bytes = (int64_t)body_bytes,
        .bytes_in = (int64_t)came.n,
        .bytes_out = (int64_t)(head_bytes + body_bytes),
        .requests = 1,
    };
    oribi__count_refusal(arrival->frontend, 400, ORIBI_REFUSAL_REQUEST_LINE);
    oribi__answer_log_refused(arrival->frontend, NULL, oribi_parser_first_line(came.p, came.n), &refused);
}

static void answer_plain(const struct oribi__arrival *arrival)
{
    static const char head[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 58\r\n"
                               "Connection: close\r\n\r\n";
    static const char body[] = "This port speaks HTTPS: use https:// in front of its name\n";
    char rest[FIRST_BYTES];
    struct oribi_slice first = oribi_tls_first(arrival->session);
    first.n = first.n < sizeof(rest) ? first.n : sizeof(rest);
    memcpy(rest, first.p, first.n);
    ssize_t n = oribi_os_read(arrival->peer.fd, rest + first.n, sizeof(rest) - first.n);
    log_plain(arrival, oribi_slice(rest, first.n + (n > 0 ? (size_t)n : 0)), sizeof(head) - 1, sizeof(body) - 1);
    struct iovec vec[2] = {{(void *)head, sizeof(head) - 1}, {(void *)body, sizeof(body) - 1}};
    (void)oribi_os_send_vec(arrival->peer.fd, vec, 2); /* who has gone needs no answer */
    (void)shutdown(arrival->peer.fd, SHUT_WR);
    for (int i = 0; i < PLAIN_READS_MAX && oribi_os_read(arrival->peer.fd, rest, sizeof(rest)) > 0; i++)
        continue; /* unread bytes would reset the answer */
}

static void log_handshake_failure(const struct oribi__arrival *arrival, const char *reason)
{
    struct oribi__frontend *frontend = arrival->frontend;
    oribi_frontend_slot_count(&frontend->slot->handshake_failures[ORIBI_FRONTEND_REFUSED], 1);
    if (oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi_log(ORIBI_LOG_INFO, "frontend: a handshake with %.*s failed: %s",
                  arrival->peer.addr_len ? arrival->peer.addr_len : 4,
                  arrival->peer.addr_len ? arrival->peer.addr : "unix", reason);
}

static void shake_hands(struct oribi__arrival *arrival)
{
    struct oribi__frontend *frontend = arrival->frontend;
    switch (oribi_tls_handshake(arrival->session)) {
    case ORIBI_TLS_DONE:
        arrival->peer.tls = oribi_tls_info(arrival->session);
        oribi__count_handshake(frontend, arrival->peer.tls);
        arrival->peer.transport = oribi_tls_transport(arrival->session);
        arrival->session = NULL;
        if (arrival->peer.tls->h2)
            become_h2(arrival, oribi_slice(NULL, 0));
        else
            become_h1(arrival, oribi_slice(NULL, 0));
        return;
    case ORIBI_TLS_READS:
        arrival->watch.ready &= (uint8_t)~ORIBI_READ;
        oribi_loop_interest(frontend->reactor.loop, &arrival->watch, ORIBI_READ);
        return;
    case ORIBI_TLS_WRITES:
        arrival->watch.ready &= (uint8_t)~ORIBI_WRITE;
        oribi_loop_interest(frontend->reactor.loop, &arrival->watch, ORIBI_WRITE);
        return;
    case ORIBI_TLS_PLAIN:
        oribi_frontend_slot_count(&frontend->slot->handshake_failures[ORIBI_FRONTEND_PLAIN], 1);
        answer_plain(arrival);
        break;
    case ORIBI_TLS_FAILED:
        log_handshake_failure(arrival, oribi_tls_reason(arrival->session));
        break;
    case ORIBI_TLS_GONE:
        oribi_frontend_slot_count(&frontend->slot->handshake_failures[ORIBI_FRONTEND_ABANDONED], 1);
        break;
    }
    drop(arrival);
}

/* --- the PROXY header --- */

/* The handshake begins, with what has been read of it. */
static void begin_tls(struct oribi__arrival *arrival, struct oribi_slice early)
{
    arrival->session = oribi_tls_accept(listener_of(arrival)->contexts, arrival->peer.fd);
    if (arrival->session && oribi_tls_early(arrival->session, early) == 0)
        await_step(arrival);
    else
        drop(arrival);
}

/* Without TLS it is answered 400, as workers do. Within it no answer could be read. */
static void refuse_proxy(struct oribi__arrival *arrival, struct oribi_slice first, const char *reason)
{
    if (!listener_of(arrival)->tls) {
        become_h1(arrival, first);
        return;
    }
    oribi_frontend_slot_count(&arrival->frontend->slot->refusals[ORIBI_REFUSAL_PROXY_HEADER], 1);
    log_handshake_failure(arrival, reason);
    drop(arrival);
}

static void take_proxy(struct oribi__arrival *arrival, const struct oribi_proxy *proxy)
{
    struct oribi__peer *peer = &arrival->peer;
    arrival->proxy_awaited = false;
    oribi_buf_deinit(&arrival->proxy);
    if (!listener_of(arrival)->tls)
        set_timeout(arrival, arrival->frontend->config->options->idle_timeout_ms);
    peer->proxy_tls = proxy->tls;
    if (!proxy->known)
        return;
    memcpy(peer->addr, proxy->addr, proxy->addr_len);
    memcpy(peer->port, proxy->port, proxy->port_len);
    peer->addr_len = proxy->addr_len;
    peer->port_len = proxy->port_len;
}

/* It has come in part, and has the time of a head for the rest. False: out of memory. */
static bool keep_proxy(struct oribi__arrival *arrival, const char *p, size_t n)
{
    int64_t timeout_ms = arrival->frontend->config->options->head_timeout_ms;
    int64_t left_ms = oribi_timer_at(&arrival->timer) - arrival->frontend->reactor.now_ms;
    if (!arrival->proxy.len && timeout_ms && timeout_ms < left_ms)
        set_timeout(arrival, timeout_ms);
    return oribi_buf_try_append(&arrival->proxy, p, n) == 0;
}

static void read_proxy(struct oribi__arrival *arrival)
{
    char first[FIRST_BYTES];
    struct oribi_proxy proxy;
    size_t len = arrival->proxy.len;
    if (len)
        memcpy(first, arrival->proxy.p, len);
    for (;;) {
        size_t n = read_first(arrival, first, len);
        if (n == 0)
            return;
        ssize_t head = oribi_proxy_parse(first, len + n, &proxy);
        if (head != ORIBI_AGAIN) {
            len += n;
            if (head < 0) {
                refuse_proxy(arrival, oribi_slice(first, len), proxy.reason);
                return;
            }
            take_proxy(arrival, &proxy);
            struct oribi_slice rest = oribi_slice(first + head, len - (size_t)head);
            if (listener_of(arrival)->tls)
                begin_tls(arrival, rest);
            else if (rest.n)
                choose(arrival, rest);
            return;
        }
        if (!keep_proxy(arrival, first + len, n)) {
            drop(arrival);
            return;
        }
        len += n;
    }
}

static void go_on(struct oribi__arrival *arrival)
{
    if (arrival->proxy_awaited)
        read_proxy(arrival);
    else if (arrival->session)
        await_step(arrival);
    else
        look_at_first(arrival);
}

static void on_ready(void *self, struct oribi_watch *watch)
{
    if (watch->fd >= 0)
        go_on((struct oribi__arrival *)watch);
}

/* --- who has connected --- */

void oribi__arrive(struct oribi__frontend *frontend, uint32_t index, int fd, const struct sockaddr_storage *from)
{
    const struct oribi_frontend_listener *listener = &frontend->config->listeners[index];
    const struct oribi_options *options = frontend->config->options;
    struct oribi__arrival *arrival =
        oribi__frontend_reserve_timer(frontend) == 0 ? oribi_mem_try_alloc(1, sizeof(*arrival)) : NULL;
    if (!arrival) {
        oribi_os_close(fd);
        return;
    }
    arrival->frontend = frontend;
    arrival->peer = (struct oribi__peer){.fd = fd, .listener = index};
    arrival->watch.handler = on_ready;
    oribi_address_of_client(from, arrival->peer.addr, &arrival->peer.addr_len, arrival->peer.port,
                            &arrival->peer.port_len);
    arrival->timer = (struct oribi_timer){.expired = on_deadline, .owner = arrival};
    arrival->proxy_awaited = (listener->listener.proxy || options->proxy_protocol) &&
                             oribi_trust_has(&frontend->trust, oribi_slice(arrival->peer.addr, arrival->peer.addr_len));
    bool tls = listener->tls && !arrival->proxy_awaited;
    if (tls)
        arrival->session = oribi_tls_accept(listener->contexts, fd);
    if ((tls && !arrival->session) ||
        oribi_loop_add(frontend->reactor.loop, &arrival->watch, fd, ORIBI_WATCH_PEER, ORIBI_READ) < 0) {
        oribi_tls_session_destroy(arrival->session);
        oribi_os_close(fd);
        oribi_mem_free(arrival);
        return;
    }
    arrival->since_ms = frontend->reactor.now_ms;
    arrival->next = frontend->arrivals->first;
    *(frontend->arrivals->first ? &frontend->arrivals->first->prev : &frontend->arrivals->last) = arrival;
    frontend->arrivals->first = arrival;
    frontend->arrival_count++;
    set_timeout(arrival, listener->tls ? options->head_timeout_ms : options->idle_timeout_ms);
    oribi_frontend_slot_count(&frontend->slot->connection_count, 1);
    go_on(arrival); /* what the client has sent is often there */
}

uint32_t oribi__arrive_held(const struct oribi__frontend *frontend)
{
    return frontend->reactor.conn_count + frontend->client_count + frontend->arrival_count + frontend->tunnel_count +
           frontend->websocket_count - frontend->carried_count;
}

bool oribi__arrive_make_room(struct oribi__frontend *frontend)
{
    struct oribi_room room;
    for (int looks = 0; looks < ROOM_LOOKS_MAX; looks++) {
        int64_t h1_ms = oribi_reactor_rested_ms(&frontend->reactor);
        int64_t h2_ms = oribi__h2_rested_ms(frontend);
        int64_t new_ms = frontend->arrivals->last ? frontend->reactor.now_ms - frontend->arrivals->last->since_ms : -1;
        if (h1_ms >= h2_ms && h1_ms >= new_ms)
            return oribi_reactor_make_room(&frontend->reactor, &room);
        if (h2_ms < ORIBI_ROOM_IDLE_MS_MIN && new_ms < ORIBI_ROOM_IDLE_MS_MIN)
            return false;
        if (new_ms >= h2_ms) {
            drop(frontend->arrivals->last);
            return true;
        }
        if (oribi__h2_make_room(frontend))
            return true;
    }
    return false;
}

static void free_closed(struct oribi__frontend *frontend)
{
    while (frontend->arrivals->closed) {
        struct oribi__arrival *arrival = frontend->arrivals->closed;
        frontend->arrivals->closed = arrival->next;
        oribi_mem_free(arrival);
    }
}

/* A drain waits no longer than the grace for clients that have connected and not shown yet what they speak. */
static void drop_silent(struct oribi__frontend *frontend)
{
    struct oribi__arrival *next;
    for (struct oribi__arrival *arrival = frontend->arrivals->first; arrival; arrival = next) {
        next = arrival->next;
        int64_t begun_ms = arrival->since_ms > frontend->drain_since_ms ? arrival->since_ms : frontend->drain_since_ms;
        if (frontend->reactor.now_ms - begun_ms >= ORIBI__FRONTEND_GRACE_MS)
            drop(arrival);
    }
}

void oribi__arrive_turn(struct oribi__frontend *frontend)
{
    free_closed(frontend);
    oribi__frontend_accept_turn(frontend);
    if (frontend->draining)
        drop_silent(frontend);
}

bool oribi__arrive_is_full(const struct oribi__frontend *frontend, uint32_t index)
{
    return frontend->config->listeners[index].tls && frontend->arrivals->shakes_count >= STEPS_WAITING;
}

void oribi__arrive_shake(struct oribi__frontend *frontend)
{
    struct oribi__arrival *arrival;
    for (int i = 0; i < STEPS_A_TURN && (arrival = frontend->arrivals->shakes_first) != NULL; i++) {
        end_wait(arrival);
        arrival->steps += arrival->steps < 2;
        shake_hands(arrival);
    }
}

void oribi__arrive_close_all(struct oribi__frontend *frontend)
{
    while (frontend->arrivals->first)
        drop(frontend->arrivals->first);
    free_closed(frontend);
}
