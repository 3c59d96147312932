/* Clients of HTTP/2: bytes between their sockets and their sessions (h2.h), and their deadlines. */
#include "frontend/clients_h2.h"
#include "frontend/channel.h"
#include "frontend/frontend.h"
#include "frontend/streams_h2.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/clock.h"

#include <string.h>
#include <sys/socket.h>

enum {
    READS_MAX = 4,          /* a turn */
    READ_BYTES = 16 * 1024, /* a record of TLS */
    SEND_BYTES = 64 * 1024,
    SENDS_MAX = 8,         /* a turn */
    ASLEEP_AFTER_MS = 500, /* of rest */
};

/* --- life --- */

void oribi__h2_init(struct oribi__frontend *frontend)
{
    const struct oribi_options *options = frontend->config->options;
    struct oribi_h2_limits *limits = &frontend->h2->limits;
    oribi_h2_limits_init(limits);
    limits->http = options->limits;
    limits->head_timeout_ms = options->head_timeout_ms;
    limits->write_timeout_ms = options->write_timeout_ms;
    limits->sleeps = true;
    limits->connects_sockets = true;
    frontend->h2->trusted = *limits;
    frontend->h2->trusted.trusted = true;
}

void oribi__client_dirty(struct oribi__client *client)
{
    if (client->dirty)
        return;
    client->dirty = true;
    client->dirty_next = client->frontend->h2->dirty;
    client->frontend->h2->dirty = client;
}

static void unlist_resting(struct oribi__client *client)
{
    struct oribi__frontend *frontend = client->frontend;
    if (!client->rests)
        return;
    client->rests = false;
    frontend->resting_count--;
    *(client->rest_prev ? &client->rest_prev->rest_next : &frontend->h2->resting_first) = client->rest_next;
    *(client->rest_next ? &client->rest_next->rest_prev : &frontend->h2->resting_last) = client->rest_prev;
}

void oribi__client_rests(struct oribi__client *client)
{
    struct oribi__frontend *frontend = client->frontend;
    unlist_resting(client);
    if (client->streams)
        return;
    client->idle_since_ms = frontend->reactor.now_ms;
    client->rests = true;
    frontend->resting_count++;
    client->rest_prev = frontend->h2->resting_last;
    client->rest_next = NULL;
    *(frontend->h2->resting_last ? &frontend->h2->resting_last->rest_next : &frontend->h2->resting_first) = client;
    frontend->h2->resting_last = client;
}

static void end_session(struct oribi__client *client)
{
    while (client->streams)
        oribi__stream_destroy(client->streams);
    if (client->left_count)
        oribi__channels_forget(client->frontend, client->h2);
    client->left_count = 0;
    oribi_h2_destroy(client->h2);
    client->h2 = NULL;
}

static void close_client(struct oribi__client *client)
{
    struct oribi__frontend *frontend = client->frontend;
    if (client->watch.fd < 0)
        return;
    end_session(client);
    unlist_resting(client);
    oribi_timers_stop(&frontend->timers, &client->timer);
    (void)oribi_loop_remove(frontend->reactor.loop, &client->watch); /* ours */
    client->watch.fd = -1;
    oribi__peer_close(&client->peer, !client->lingers);
    *(client->prev ? &client->prev->next : &frontend->h2->first) = client->next;
    if (client->next)
        client->next->prev = client->prev;
    frontend->client_count--;
    oribi__client_dirty(client); /* freed by the next turn, when nothing names it any more */
}

void oribi__client_waits(struct oribi__client *client)
{
    bool waits = client->waiting_count > 0 && client->waiting_count == client->stream_count;
    if (waits != client->waits)
        client->frontend->waiting_h2 += waits ? 1 : (uint32_t)-1;
    client->waits = waits;
    bool holds = client->open_count > 0 && client->open_count == client->stream_count;
    if (holds != client->holds)
        client->frontend->holding_h2 += holds ? 1 : (uint32_t)-1;
    client->holds = holds;
}

/* --- bytes --- */

/* Gives the session what it is to be given now, and closes what is over. False: it is closed. */
static bool feed(struct oribi__client *client, const char *p, size_t n)
{
    int code = oribi_h2_feed(client->h2, p, n, client->frontend->reactor.now_ms);
    client->asleep = false;
    client->over |= code == ORIBI_ECLOSED;
    oribi__client_dirty(client);
    return !client->over;
}

static void read_client(struct oribi__client *client)
{
    struct oribi__frontend *frontend = client->frontend;
    char *buf = frontend->reactor.scratch;
    for (int i = 0; i < READS_MAX && (client->watch.ready & ORIBI_READ) && !client->over; i++) {
        if (!oribi_h2_wants_input(client->h2))
            return;
        ssize_t n = oribi__peer_read(&client->peer, buf, READ_BYTES);
        if (n == ORIBI_AGAIN) {
            client->watch.ready &= (uint8_t)~ORIBI_READ;
            return;
        }
        if (n <= 0) {
            close_client(client);
            return;
        }
        frontend->bytes_in += (uint64_t)n;
        if (n < READ_BYTES && !(client->watch.ready & ORIBI_HANGUP))
            client->watch.ready &= (uint8_t)~ORIBI_READ;
        if (!feed(client, buf, (size_t)n))
            return;
    }
}

static void log_error(struct oribi__client *client)
{
    const char *reason;
    struct oribi__frontend *frontend = client->frontend;
    uint32_t code = oribi_h2_error(client->h2, &reason);
    if (code && reason && oribi_log_limit_allows(&frontend->log_limit, frontend->reactor.now_ms))
        oribi_log(ORIBI_LOG_WARN, "frontend: ended a connection of %.*s: %s (error %u of HTTP/2)",
                  client->peer.addr_len ? client->peer.addr_len : 4, client->peer.addr_len ? client->peer.addr : "unix",
                  reason, code);
}

/* Sends what there is. False: the client is closed. */
static bool send_client(struct oribi__client *client)
{
    struct oribi__frontend *frontend = client->frontend;
    int64_t now_ms = frontend->reactor.now_ms;
    for (int i = 0; i < SENDS_MAX; i++) {
        struct oribi_slice output = oribi_h2_output(client->h2, SEND_BYTES, now_ms);
        if (output.n == 0) {
            client->stuck_since_ms = 0;
            oribi_loop_interest(frontend->reactor.loop, &client->watch, ORIBI_READ);
            return true;
        }
        struct iovec vec = {(void *)output.p, output.n};
        ssize_t sent = oribi__peer_send(&client->peer, &vec, 1);
        if (sent == ORIBI_AGAIN) {
            client->watch.ready &= (uint8_t)~ORIBI_WRITE;
            oribi_loop_interest(frontend->reactor.loop, &client->watch, ORIBI_READ | ORIBI_WRITE);
            if (!client->stuck_since_ms)
                client->stuck_since_ms = now_ms;
            return true;
        }
        if (sent < 0) {
            close_client(client);
            return false;
        }
        client->stuck_since_ms = 0;
        frontend->bytes_out += (uint64_t)sent;
        oribi_h2_sent(client->h2, (size_t)sent);
    }
    oribi__client_dirty(client); /* others first */
    return true;
}

/* Everything is sent, and its end. What the client had sent before it read that would have the kernel reset the
 * connection and the client lose what it has not read yet (RFC 9112 9.6); so it is read first. */
static void linger(struct oribi__client *client)
{
    int64_t now_ms = client->frontend->reactor.now_ms;
    end_session(client);
    if (client->peer.transport)
        client->peer.transport->shut(client->peer.transport);
    (void)shutdown(client->peer.fd, SHUT_WR); /* fails where the client has gone, which its read tells */
    client->lingers = true;
    client->linger_since_ms = now_ms;
    client->linger_until_ms = now_ms + ORIBI_LINGER_SILENCE_MS_MAX;
    client->linger_left = ORIBI_LINGER_BYTES_MAX;
    oribi_loop_interest(client->frontend->reactor.loop, &client->watch, ORIBI_READ);
}

/* Encrypted bytes are dropped as they are. */
static void drop_rest(struct oribi__client *client)
{
    struct oribi__frontend *frontend = client->frontend;
    for (int i = 0; i < READS_MAX && (client->watch.ready & ORIBI_READ); i++) {
        ssize_t n = oribi_os_read(client->peer.fd, frontend->reactor.scratch, READ_BYTES);
        if (n == ORIBI_AGAIN) {
            client->watch.ready &= (uint8_t)~ORIBI_READ;
            return;
        }
        if (n <= 0 || (size_t)n >= client->linger_left) {
            close_client(client);
            return;
        }
        client->linger_left -= (uint32_t)n;
        client->linger_until_ms = oribi_earlier(frontend->reactor.now_ms + ORIBI_LINGER_SILENCE_MS_MAX,
                                                client->linger_since_ms + ORIBI_LINGER_MS_MAX);
    }
}

static void on_deadline(void *self);

static void on_ready(void *self, struct oribi_watch *watch)
{
    struct oribi__client *client = (struct oribi__client *)watch;
    if (watch->fd < 0)
        return;
    if (client->lingers) {
        oribi__client_dirty(client);
        return;
    }
    if (watch->ready & ORIBI_WRITE)
        oribi__client_dirty(client);
    if (watch->ready & ORIBI_READ)
        read_client(client);
}

void oribi__h2_begin(struct oribi__frontend *frontend, struct oribi__peer *peer, struct oribi_slice first)
{
    struct oribi__client *client =
        oribi__frontend_reserve_timer(frontend) == 0 ? oribi_mem_try_alloc(1, sizeof(*client)) : NULL;
    if (!client) {
        oribi__peer_close(peer, false);
        return;
    }
    client->frontend = frontend;
    client->peer = *peer;
    client->watch.handler = on_ready;
    client->timer = (struct oribi_timer){.expired = on_deadline, .owner = client};
    client->next = frontend->h2->first;
    if (frontend->h2->first)
        frontend->h2->first->prev = client;
    frontend->h2->first = client;
    frontend->client_count++;
    oribi__client_rests(client);
    client->watch.fd = peer->fd;
    bool trusted = oribi_trust_has(&frontend->trust, oribi_slice(peer->addr, peer->addr_len));
    client->h2 = oribi_h2_create(trusted ? &frontend->h2->trusted : &frontend->h2->limits, &oribi__stream_events,
                                 client, frontend->reactor.now_ms);
    if (!client->h2 ||
        oribi_loop_add(frontend->reactor.loop, &client->watch, peer->fd, ORIBI_WATCH_PEER, ORIBI_READ) < 0) {
        close_client(client);
        return;
    }
    if (frontend->draining)
        oribi_h2_shutdown(client->h2, frontend->reactor.now_ms);
    client->watch.ready |= ORIBI_READ; /* what came with the handshake is not reported again */
    oribi__client_dirty(client);
    if (first.n && !feed(client, first.p, first.n))
        return;
    read_client(client);
}

/* --- turns --- */

/* When the client is to be looked at again; ends what is late. */
static int64_t next_deadline(struct oribi__client *client)
{
    const struct oribi_options *options = client->frontend->config->options;
    int64_t now_ms = client->frontend->reactor.now_ms;
    if (client->lingers)
        return client->linger_until_ms;
    int64_t deadline_ms = oribi__streams_deadline(client, now_ms);
    deadline_ms = oribi_earlier(deadline_ms, oribi_h2_deadline(client->h2));
    if (client->stuck_since_ms && options->write_timeout_ms)
        deadline_ms = oribi_earlier(deadline_ms, client->stuck_since_ms + options->write_timeout_ms);
    if (client->streams)
        return deadline_ms;
    if (options->idle_timeout_ms)
        deadline_ms = oribi_earlier(deadline_ms, client->idle_since_ms + options->idle_timeout_ms);
    if (!client->asleep)
        deadline_ms = oribi_earlier(deadline_ms, client->idle_since_ms + ASLEEP_AFTER_MS);
    return deadline_ms;
}

static bool is_late(int64_t since_ms, int64_t timeout_ms, int64_t now_ms)
{
    return timeout_ms && now_ms >= since_ms + timeout_ms;
}

/* settle() arms its timer again. */
static void on_deadline(void *self)
{
    struct oribi__client *client = self;
    const struct oribi_options *options = client->frontend->config->options;
    int64_t now_ms = client->frontend->reactor.now_ms;
    if (client->lingers) {
        if (now_ms >= client->linger_until_ms)
            close_client(client);
        oribi__client_dirty(client);
        return;
    }
    oribi_h2_tick(client->h2, now_ms);
    if (client->stuck_since_ms && is_late(client->stuck_since_ms, options->write_timeout_ms, now_ms)) {
        oribi_frontend_slot_count(&client->frontend->slot->timeouts[ORIBI_TIMEOUT_WRITE], 1);
        close_client(client);
        return;
    }
    if (!client->streams && is_late(client->idle_since_ms, options->idle_timeout_ms, now_ms)) {
        oribi_frontend_slot_count(&client->frontend->slot->timeouts[ORIBI_TIMEOUT_IDLE], 1);
        client->idle_since_ms = now_ms; /* a request on its way is answered until then */
        oribi_h2_shutdown(client->h2, now_ms);
    } else if (!client->streams && !client->asleep && now_ms >= client->idle_since_ms + ASLEEP_AFTER_MS) {
        client->asleep = true; /* or will not: then there is something to do, which is looked at by itself */
        (void)oribi_h2_sleep(client->h2);
    }
    oribi__client_dirty(client);
}

/* A deadline that has become later is found out when the timer expires. */
static void arm(struct oribi__client *client)
{
    int64_t deadline_ms = next_deadline(client);
    if (deadline_ms < oribi_timer_at(&client->timer))
        oribi_timers_arm(&client->frontend->timers, &client->timer, deadline_ms);
}

static void settle_lingering(struct oribi__client *client)
{
    drop_rest(client);
    if (client->watch.fd < 0)
        return;
    if (client->watch.ready & ORIBI_READ)
        oribi__client_dirty(client); /* others first */
    arm(client);
}

/* Sends, and lets go of what is over. */
static void settle(struct oribi__client *client)
{
    if (client->watch.fd < 0) {
        oribi_mem_free(client);
        return;
    }
    if (client->lingers) {
        settle_lingering(client);
        return;
    }
    if (!send_client(client))
        return;
    oribi__streams_turn(client);
    if (oribi_h2_is_over(client->h2))
        client->over = true;
    if (client->over && !client->stuck_since_ms && !client->dirty) {
        log_error(client);
        linger(client);
        settle_lingering(client);
        return;
    }
    if ((client->watch.ready & ORIBI_READ) && !client->over && oribi_h2_wants_input(client->h2))
        read_client(client);
    if (client->watch.fd < 0)
        return;
    arm(client);
}

int64_t oribi__h2_rested_ms(const struct oribi__frontend *frontend)
{
    return frontend->h2->resting_first ? frontend->reactor.now_ms - frontend->h2->resting_first->idle_since_ms : -1;
}

bool oribi__h2_make_room(struct oribi__frontend *frontend)
{
    struct oribi__client *client = frontend->h2->resting_first;
    if (!client->lingers && !client->over) {
        client->watch.ready |= ORIBI_READ; /* a request that has come since is answered */
        read_client(client);
        if (client->watch.fd >= 0 && client->streams)
            return false;
        if (client->watch.fd >= 0) {
            oribi_h2_fail(client->h2, ORIBI_H2_NO_ERROR);
            (void)send_client(client);
        }
    }
    close_client(client);
    return true;
}

void oribi__h2_turn(struct oribi__frontend *frontend)
{
    struct oribi__client *client = frontend->h2->dirty;
    frontend->h2->dirty = NULL;
    while (client) {
        struct oribi__client *next = client->dirty_next;
        client->dirty = false;
        settle(client);
        client = next;
    }
}

void oribi__h2_drain(struct oribi__frontend *frontend)
{
    for (struct oribi__client *client = frontend->h2->first; client; client = client->next) {
        if (client->lingers)
            continue;
        oribi_h2_shutdown(client->h2, frontend->reactor.now_ms);
        oribi__client_dirty(client);
    }
}

void oribi__h2_close_all(struct oribi__frontend *frontend)
{
    while (frontend->h2->first)
        close_client(frontend->h2->first);
    oribi__h2_turn(frontend);
}
