/* A tunnel: bytes both ways between a client and its worker, after 101. Its end is that of either side; one that only
 * has no more to say is told on. A worker that has closed its end is at the end, whatever its client does. */
#include "frontend/tunnel.h"
#include "frontend/frontend.h"
#include "frontend/peer.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"

#include <string.h>
#include <sys/socket.h>

enum { READS_MAX = 4, PIECE_BYTES = 16 * 1024 };

/* One direction. */
struct way {
    struct oribi_buf waits; /* read and not sent */
    bool ended;             /* the source has no more */
    bool told;              /* the other side knows that */
};

struct oribi__tunnel {
    struct oribi_watch peer_watch;
    struct oribi_watch channel_watch;
    struct oribi__frontend *frontend;
    struct oribi__tunnel *prev;
    struct oribi__tunnel *next;
    struct oribi__peer peer;
    struct way to_peer;
    struct way to_channel;
};

static void close_tunnel(struct oribi__tunnel *tunnel)
{
    struct oribi__frontend *frontend = tunnel->frontend;
    if (tunnel->channel_watch.fd < 0)
        return;
    oribi__peer_unwatch(&tunnel->peer, frontend->reactor.loop, &tunnel->peer_watch);
    (void)oribi_loop_remove(frontend->reactor.loop, &tunnel->channel_watch);
    oribi_os_close(tunnel->channel_watch.fd);
    oribi__peer_close(&tunnel->peer, true);
    tunnel->channel_watch.fd = -1;
    oribi_buf_deinit(&tunnel->to_peer.waits);
    oribi_buf_deinit(&tunnel->to_channel.waits);
    *(tunnel->prev ? &tunnel->prev->next : &frontend->tunnels->first) = tunnel->next;
    if (tunnel->next)
        tunnel->next->prev = tunnel->prev;
    frontend->tunnel_count--;
    tunnel->next = frontend->tunnels->closed;
    frontend->tunnels->closed = tunnel;
}

static ssize_t read_from(struct oribi__tunnel *tunnel, bool peer, char *p, size_t n)
{
    ssize_t read = peer ? oribi__peer_read(&tunnel->peer, p, n) : oribi_os_read(tunnel->channel_watch.fd, p, n);
    tunnel->frontend->bytes_in += peer && read > 0 && tunnel->peer.fd >= 0 ? (uint64_t)read : 0;
    return read;
}

static ssize_t send_to(struct oribi__tunnel *tunnel, bool peer, struct iovec vec)
{
    ssize_t sent =
        peer ? oribi__peer_send(&tunnel->peer, &vec, 1) : oribi_os_send_vec(tunnel->channel_watch.fd, &vec, 1);
    tunnel->frontend->bytes_out += peer && sent > 0 && tunnel->peer.fd >= 0 ? (uint64_t)sent : 0;
    return sent;
}

static void await(struct oribi__tunnel *tunnel, struct oribi_watch *watch, uint8_t interest)
{
    struct oribi_loop *loop = tunnel->frontend->reactor.loop;
    if (watch == &tunnel->peer_watch)
        oribi__peer_await(&tunnel->peer, loop, watch, interest);
    else
        oribi_loop_interest(loop, watch, interest);
}

/* Moves what can be moved. False: the tunnel is at its end. */
static bool move(struct oribi__tunnel *tunnel, struct way *way, bool to_peer)
{
    struct oribi_watch *source = to_peer ? &tunnel->channel_watch : &tunnel->peer_watch;
    struct oribi_watch *sink = to_peer ? &tunnel->peer_watch : &tunnel->channel_watch;
    for (int i = 0; i < READS_MAX; i++) {
        while (way->waits.len) {
            ssize_t n = send_to(tunnel, to_peer, (struct iovec){way->waits.p, way->waits.len});
            if (n == ORIBI_AGAIN) {
                sink->ready &= (uint8_t)~ORIBI_WRITE;
                await(tunnel, sink, ORIBI_READ | ORIBI_WRITE);
                return true;
            }
            if (n < 0)
                return false;
            oribi_buf_consume(&way->waits, (size_t)n);
        }
        oribi_buf_deinit(&way->waits);
        if (sink->interest & ORIBI_WRITE)
            await(tunnel, sink, ORIBI_READ);
        if (way->ended)
            break;
        char *p = oribi_buf_try_reserve(&way->waits, PIECE_BYTES);
        ssize_t n = p ? read_from(tunnel, !to_peer, p, PIECE_BYTES) : ORIBI_ENOMEM;
        if (n == ORIBI_AGAIN) {
            source->ready &= (uint8_t)~ORIBI_READ;
            oribi_buf_deinit(&way->waits);
            return true;
        }
        if (n < 0)
            return false;
        way->ended = n == 0;
        way->waits.len += (size_t)n;
    }
    if (!way->ended) {
        tunnel->frontend->tunnels->posted = true;
        return true;
    }
    if (!way->told && way->waits.len == 0) {
        way->told = true;
        if (to_peer)
            oribi__peer_shut(&tunnel->peer);
        else
            (void)shutdown(sink->fd, SHUT_WR); /* fails only if it is gone, which is told elsewhere */
    }
    if (to_peer && way->told && oribi_os_peer_state(source->fd) == ORIBI_PEER_GONE)
        return false;
    return !(tunnel->to_peer.told && tunnel->to_channel.told);
}

static void go_on(struct oribi__tunnel *tunnel)
{
    if (tunnel->channel_watch.fd >= 0 &&
        (!move(tunnel, &tunnel->to_peer, true) || !move(tunnel, &tunnel->to_channel, false)))
        close_tunnel(tunnel);
}

static void on_peer(void *self, struct oribi_watch *watch)
{
    go_on((struct oribi__tunnel *)watch);
}

static void on_channel(void *self, struct oribi_watch *watch)
{
    go_on((struct oribi__tunnel *)((char *)watch - offsetof(struct oribi__tunnel, channel_watch)));
}

void oribi__tunnel_begin(struct oribi__frontend *frontend, struct oribi__peer *peer, int channel_fd,
                         struct oribi_slice to_peer, struct oribi_slice to_channel)
{
    struct oribi__tunnel *tunnel = oribi_mem_try_alloc(1, sizeof(*tunnel));
    if (!tunnel) {
        oribi__peer_close(peer, false);
        oribi_os_close(channel_fd);
        return;
    }
    tunnel->frontend = frontend;
    tunnel->peer = *peer;
    tunnel->peer_watch.handler = on_peer;
    tunnel->channel_watch.handler = on_channel;
    tunnel->next = frontend->tunnels->first;
    if (frontend->tunnels->first)
        frontend->tunnels->first->prev = tunnel;
    frontend->tunnels->first = tunnel;
    frontend->tunnel_count++;
    tunnel->channel_watch.fd = channel_fd;
    if (oribi_buf_try_append(&tunnel->to_peer.waits, to_peer.p, to_peer.n) < 0 ||
        oribi_buf_try_append(&tunnel->to_channel.waits, to_channel.p, to_channel.n) < 0 ||
        oribi__peer_watch(peer, frontend->reactor.loop, &tunnel->peer_watch) < 0 ||
        oribi_loop_add(frontend->reactor.loop, &tunnel->channel_watch, channel_fd, ORIBI_WATCH_PEER, ORIBI_READ) < 0)
        close_tunnel(tunnel);
    else
        go_on(tunnel);
}

void oribi__tunnel_turn(struct oribi__frontend *frontend)
{
    bool again = frontend->tunnels->posted;
    frontend->tunnels->posted = false;
    struct oribi__tunnel *next;
    for (struct oribi__tunnel *tunnel = again ? frontend->tunnels->first : NULL; tunnel; tunnel = next) {
        next = tunnel->next;
        go_on(tunnel);
    }
    while (frontend->tunnels->closed) {
        struct oribi__tunnel *tunnel = frontend->tunnels->closed;
        frontend->tunnels->closed = tunnel->next;
        oribi_mem_free(tunnel);
    }
}

void oribi__tunnel_close_all(struct oribi__frontend *frontend)
{
    while (frontend->tunnels->first)
        close_tunnel(frontend->tunnels->first);
    oribi__tunnel_turn(frontend);
}
