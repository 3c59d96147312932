/* Rows of WebSockets for `ctl sockets` (oribi/worker/frontend_socket_rows.h). */
#include "frontend/websocket_private.h"

#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/worker/frontend_socket_rows.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
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
    return socket->work && socket->work->call ? ORIBI_FRONTEND_SOCKET_CALLED : ORIBI_FRONTEND_SOCKET_OPEN;
}

static void put_row(struct oribi_frontend_socket_row *row, const struct oribi__websocket *socket)
{
    struct oribi_slice addr = address_of(socket);
    struct oribi_slice port = port_of(socket);
    char address[sizeof(row->address) + 1] = "";
    bool v6 = addr.n && memchr(addr.p, ':', addr.n) != NULL;
    if (addr.n)
        (void)snprintf(address, sizeof(address), "%s%.*s%s:%.*s", v6 ? "[" : "", (int)addr.n, addr.p, v6 ? "]" : "",
                       (int)port.n, port.p); /* cut when longer */
    *row = (struct oribi_frontend_socket_row){
        .age_ms = (socket->frontend->reactor.now_us - socket->opened_us) / 1000,
        .messages = {socket->messages[0], socket->messages[1]},
        .bytes = {socket->bytes[0], socket->bytes[1]},
        .waiting_bytes = oribi__websocket_waiting(socket),
        .state = state_of(socket),
        .http2 = socket->watch.fd < 0,
    };
    oribi__websocket_id(socket, row->id);
    row->address_len = put(row->address, sizeof(row->address), oribi_slice(address, strlen(address)));
    row->path_len = put(row->path, sizeof(row->path), path_of(socket));
    row->handler_len = put(row->handler, sizeof(row->handler), handler_of(socket));
    row->protocol_len = put(row->protocol, sizeof(row->protocol), protocol_of(socket));
}

static int newest_first(const void *a, const void *b)
{
    int64_t left_us = (*(const struct oribi__websocket *const *)a)->opened_us;
    int64_t right_us = (*(const struct oribi__websocket *const *)b)->opened_us;
    return left_us < right_us ? 1 : left_us > right_us ? -1 : 0;
}

/* All sockets, the newest first; *count of them. NULL: there is none, or no memory. */
static const struct oribi__websocket **sorted(const struct oribi__websockets *sockets, uint32_t *count)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < ORIBI__WEBSOCKETS_CLOSED; i++)
        for (const struct oribi__websocket *socket = sockets->lists[i].first; socket; socket = socket->next)
            n++;
    const struct oribi__websocket **all = n ? oribi_mem_try_alloc(n, sizeof(struct oribi__websocket *)) : NULL;
    *count = n;
    if (!all)
        return NULL;
    n = 0;
    for (uint32_t i = 0; i < ORIBI__WEBSOCKETS_CLOSED; i++)
        for (const struct oribi__websocket *socket = sockets->lists[i].first; socket; socket = socket->next)
            all[n++] = socket;
    qsort(all, n, sizeof(struct oribi__websocket *), newest_first);
    return all;
}

/* Nothing is said where memory is out or the file takes nothing: the supervisor tells that we are silent. */
bool oribi__websockets_write_rows(const struct oribi__frontend *frontend, int fd)
{
    struct oribi_frontend_socket_rows *rows = oribi_mem_try_alloc(1, sizeof(*rows));
    if (!rows)
        return false;
    const struct oribi__websocket **all = sorted(frontend->websockets, &rows->count);
    bool good = all || rows->count == 0;
    while (good && rows->shown < rows->count && rows->shown < ORIBI_FRONTEND_SOCKET_ROWS_MAX) {
        put_row(&rows->rows[rows->shown], all[rows->shown]);
        rows->shown++;
    }
    size_t n = offsetof(struct oribi_frontend_socket_rows, rows) + rows->shown * sizeof(rows->rows[0]);
    good = good && oribi_os_write(fd, rows, n) == (ssize_t)n;
    oribi_mem_free(all);
    oribi_mem_free(rows);
    return good;
}
