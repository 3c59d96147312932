/* Rows of WebSockets for `ctl sockets` (oribi/worker/frontend_socket_rows.h). */
#include "frontend/websocket_private.h"

#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/worker/frontend_socket_rows.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static uint8_t put(char *dst, size_t cap, struct oribi_slice text)
{
    size_t n = text.n < cap ? text.n : cap;
    if (n)
        memcpy(dst, text.p, n);
    return (uint8_t)n;
}

static uint8_t state_of(const struct oribi__websocket *socket)
{
    if (socket->life >= ORIBI__WEBSOCKET_CLOSING)
        return socket->life == ORIBI__WEBSOCKET_CLOSING ? ORIBI_FRONTEND_SOCKET_CLOSING : ORIBI_FRONTEND_SOCKET_ENDED;
    return socket->call ? ORIBI_FRONTEND_SOCKET_CALLED : ORIBI_FRONTEND_SOCKET_OPEN;
}

static void put_row(struct oribi_frontend_socket_row *row, const struct oribi__websocket *socket)
{
    const struct oribi__peer *peer = &socket->peer;
    char address[sizeof(row->address) + 1] = "";
    bool v6 = memchr(peer->addr, ':', peer->addr_len) != NULL;
    if (peer->addr_len)
        (void)snprintf(address, sizeof(address), "%s%.*s%s:%.*s", v6 ? "[" : "", peer->addr_len, peer->addr,
                       v6 ? "]" : "", peer->port_len, peer->port); /* cut when longer */
    *row = (struct oribi_frontend_socket_row){
        .age_ms = (socket->frontend->reactor.now_us - socket->opened_us) / 1000,
        .messages = {socket->messages[0], socket->messages[1]},
        .bytes = {socket->bytes[0], socket->bytes[1]},
        .waiting_bytes = socket->out.len,
        .state = state_of(socket),
        .http2 = socket->over_h2,
    };
    memcpy(row->id, socket->id, sizeof(row->id));
    row->address_len = put(row->address, sizeof(row->address), oribi_slice(address, strlen(address)));
    row->path_len = put(row->path, sizeof(row->path), path_of(socket));
    row->handler_len = put(row->handler, sizeof(row->handler), handler_of(socket));
    row->protocol_len = put(row->protocol, sizeof(row->protocol), protocol_of(socket));
}

/* Nothing is said where memory is out or the file takes nothing: the supervisor tells that we are silent. */
bool oribi__websockets_write_rows(const struct oribi__frontend *frontend, int fd)
{
    struct oribi_frontend_socket_rows *rows = oribi_mem_try_alloc(1, sizeof(*rows));
    if (!rows)
        return false;
    for (const struct oribi__websocket *socket = frontend->websockets->first; socket; socket = socket->next) {
        if (rows->count++ < ORIBI_FRONTEND_SOCKET_ROWS_MAX)
            put_row(&rows->rows[rows->shown++], socket);
    }
    size_t n = offsetof(struct oribi_frontend_socket_rows, rows) + rows->shown * sizeof(rows->rows[0]);
    bool written = oribi_os_write(fd, rows, n) == (ssize_t)n;
    oribi_mem_free(rows);
    return written;
}
