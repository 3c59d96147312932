/* Listeners: new clients, room for them at connections_max, and the deadlines of those that arrive (arrive.c). */
#include "door/arrive.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum {
    ACCEPT_BATCH = 64,
    PAUSE_MS = 100,      /* without descriptors, or beyond connections_max */
    LOOK_EVERY_MS = 250, /* at deadlines */
    ROOM_LOOKS_MAX = 16, /* clients that turn out not to rest */
};

static void set_address(struct oribi__peer *peer, const struct sockaddr_storage *from)
{
    char text[INET6_ADDRSTRLEN] = "";
    uint16_t port = 0;
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)from;
        (void)inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text)); /* cannot fail: family and room are right */
        port = ntohs(in->sin_port);
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)from;
        (void)inet_ntop(AF_INET6, &in->sin6_addr, text, sizeof(text));
        port = ntohs(in->sin6_port);
    } else {
        return;
    }
    char digits[ORIBI_CONN_PORT_CAP + 1];
    peer->addr_len = (uint8_t)strnlen(text, ORIBI_CONN_ADDR_CAP);
    memcpy(peer->addr, text, peer->addr_len);
    peer->port_len = (uint8_t)snprintf(digits, sizeof(digits), "%u", port);
    memcpy(peer->port, digits, peer->port_len);
}

static void arrive(struct oribi__door *door, uint32_t index, int fd, const struct sockaddr_storage *from)
{
    const struct oribi_door_listener *listener = &door->config->listeners[index];
    const struct oribi_options *options = door->config->options;
    struct oribi__arrival *arrival = oribi_mem_try_alloc(1, sizeof(*arrival));
    if (!arrival) {
        oribi_os_close(fd);
        return;
    }
    arrival->door = door;
    arrival->peer = (struct oribi__peer){.fd = fd, .listener = index};
    arrival->watch.handler = oribi__arrival_on_ready;
    set_address(&arrival->peer, from);
    int64_t patience_ms = listener->tls ? options->head_timeout_ms : options->idle_timeout_ms;
    arrival->deadline_ms = patience_ms ? door->reactor.now_ms + patience_ms : INT64_MAX;
    arrival->proxy_awaited = (listener->listener.proxy || options->proxy_protocol) &&
                             oribi_trust_has(&door->trust, oribi_slice(arrival->peer.addr, arrival->peer.addr_len));
    bool tls = listener->tls && !arrival->proxy_awaited;
    if (tls)
        arrival->session = oribi_tls_accept(listener->contexts, fd);
    if ((tls && !arrival->session) ||
        oribi_loop_add(door->reactor.loop, &arrival->watch, fd, ORIBI_WATCH_PEER, ORIBI_READ) < 0) {
        oribi_tls_session_destroy(arrival->session);
        oribi_os_close(fd);
        oribi_mem_free(arrival);
        return;
    }
    arrival->since_ms = door->reactor.now_ms;
    arrival->next = door->arrivals;
    *(door->arrivals ? &door->arrivals->prev : &door->arrivals_last) = arrival;
    door->arrivals = arrival;
    door->arrival_count++;
    oribi_door_slot_count(&door->slot->connection_count, 1);
    oribi__arrival_go_on(arrival); /* what the client has sent is often there */
}

static uint32_t held(const struct oribi__door *door)
{
    return door->reactor.conn_count + door->client_count + door->arrival_count + door->tunnel_count;
}

/* Closes, for a new one, the connection that has brought nothing for the longest time: between two requests, or before
 * its first. False: there is none that may be closed, as oribi_reactor_make_room() has it. */
static bool make_room(struct oribi__door *door)
{
    struct oribi_room room;
    for (int looks = 0; looks < ROOM_LOOKS_MAX; looks++) {
        int64_t h1_ms = oribi_reactor_rested_ms(&door->reactor);
        int64_t h2_ms = oribi__h2_rested_ms(door);
        int64_t new_ms = door->arrivals_last ? door->reactor.now_ms - door->arrivals_last->since_ms : -1;
        if (h1_ms >= h2_ms && h1_ms >= new_ms)
            return oribi_reactor_make_room(&door->reactor, &room);
        if (h2_ms < ORIBI_ROOM_IDLE_MS_MIN && new_ms < ORIBI_ROOM_IDLE_MS_MIN)
            return false;
        if (new_ms >= h2_ms) {
            oribi__arrival_drop(door->arrivals_last);
            return true;
        }
        if (oribi__h2_make_room(door))
            return true;
    }
    return false;
}

static void pause_accepting(struct oribi__door *door)
{
    for (uint32_t i = 0; i < door->config->listener_count; i++)
        (void)oribi_loop_remove(door->reactor.loop, &door->listener_watches[i]);
    door->accepting = false;
    door->accept_pause_until_ms = door->reactor.now_ms + PAUSE_MS;
}

static void on_listener(void *self, struct oribi_watch *watch)
{
    struct oribi__door *door = self;
    uint32_t index = (uint32_t)(watch - door->listener_watches);
    uint32_t max = door->config->options->connections_max;
    for (int i = 0; i < ACCEPT_BATCH && door->accepting; i++) {
        struct sockaddr_storage from;
        socklen_t len = sizeof(from);
        int fd;
        if (max && held(door) >= max) {
            if (!make_room(door)) {
                pause_accepting(door);
                return;
            }
            oribi_door_slot_count(&door->slot->evicted_count, 1);
        }
        int code = oribi_os_accept(watch->fd, &fd, &from, &len);
        if (code == ORIBI_ECLOSED)
            continue;
        if (code == ORIBI_AGAIN)
            return;
        if (code < 0) {
            if (oribi_log_limit_allows(&door->log_limit, door->reactor.now_ms))
                oribi_log(ORIBI_LOG_ERROR, "door: cannot accept from %s: %s",
                          door->config->listeners[index].listener.text, oribi_os_error_text());
            pause_accepting(door);
            return;
        }
        arrive(door, index, fd, &from);
    }
}

static int listen_on(struct oribi__door *door)
{
    door->accepting = true;
    for (uint32_t i = 0; i < door->config->listener_count; i++) {
        door->listener_watches[i].handler = on_listener;
        if (oribi_loop_add(door->reactor.loop, &door->listener_watches[i], door->config->listeners[i].listener.fd,
                           ORIBI_WATCH_LISTENER, ORIBI_READ) < 0)
            return ORIBI_ESYS;
    }
    return 0;
}

int oribi__arrive_init(struct oribi__door *door)
{
    return listen_on(door);
}

static void free_closed(struct oribi__door *door)
{
    while (door->closed_arrivals) {
        struct oribi__arrival *arrival = door->closed_arrivals;
        door->closed_arrivals = arrival->next;
        oribi_mem_free(arrival);
    }
}

void oribi__arrive_turn(struct oribi__door *door)
{
    int64_t now_ms = door->reactor.now_ms;
    free_closed(door);
    if (!door->accepting && !door->draining && now_ms >= door->accept_pause_until_ms)
        (void)listen_on(door); /* tried again with the next pause */
    if (now_ms < door->arrivals_look_ms)
        return;
    door->arrivals_look_ms = now_ms + LOOK_EVERY_MS;
    struct oribi__arrival *next;
    for (struct oribi__arrival *arrival = door->arrivals; arrival; arrival = next) {
        next = arrival->next;
        if (now_ms < arrival->deadline_ms)
            continue;
        if (oribi__arrival_listener(arrival)->tls)
            oribi_door_slot_count(&door->slot->unshaken[ORIBI_DOOR_LATE], 1);
        oribi_door_slot_count(&door->slot->timeouts[ORIBI_TIMEOUT_FIRST], 1);
        oribi__arrival_drop(arrival);
    }
}

int64_t oribi__arrive_wait_ms(const struct oribi__door *door)
{
    if (!door->accepting && !door->draining)
        return PAUSE_MS;
    return door->arrivals ? LOOK_EVERY_MS : -1;
}

void oribi__arrive_stop(struct oribi__door *door)
{
    if (door->accepting)
        for (uint32_t i = 0; i < door->config->listener_count; i++)
            (void)oribi_loop_remove(door->reactor.loop, &door->listener_watches[i]);
    door->accepting = false;
    for (uint32_t i = 0; i < door->config->listener_count; i++) {
        oribi_os_close(door->config->listeners[i].listener.fd);
        door->config->listeners[i].listener.fd = -1;
    }
}

void oribi__arrive_close_all(struct oribi__door *door)
{
    while (door->arrivals)
        oribi__arrival_drop(door->arrivals);
    free_closed(door);
}
