/* Rows of a frontend's WebSockets, as it writes them for `ctl sockets` into memory of its supervisor's. */
#ifndef ORIBI_WORKER_FRONTEND_SOCKET_ROWS_H
#define ORIBI_WORKER_FRONTEND_SOCKET_ROWS_H

#include "oribi/http/socket_call.h"

#include <stdint.h>

enum { ORIBI_FRONTEND_SOCKET_ROWS_MAX = 1000 };

enum oribi_frontend_socket_state {
    ORIBI_FRONTEND_SOCKET_OPEN,
    ORIBI_FRONTEND_SOCKET_CALLED,  /* a call of it is out, or waits */
    ORIBI_FRONTEND_SOCKET_CLOSING, /* our Close frame is sent */
    ORIBI_FRONTEND_SOCKET_ENDED,   /* on_close is called */
};

/* Texts are cut at their room. */
struct oribi_frontend_socket_row {
    int64_t age_ms;
    uint64_t messages[2]; /* from the client, to it; as are the next */
    uint64_t bytes[2];
    uint64_t waiting_bytes; /* that the client has not taken */
    uint8_t state;          /* enum oribi_frontend_socket_state */
    uint8_t http2;          /* 0 or 1 */
    uint8_t address_len;
    uint8_t path_len;
    uint8_t handler_len;
    uint8_t protocol_len;
    char id[ORIBI_SOCKET_ID_BYTES];
    char address[54]; /* and the port; empty: a unix socket */
    char path[200];
    char handler[128];
    char protocol[64];
};

struct oribi_frontend_socket_rows {
    uint32_t count; /* of WebSockets */
    uint32_t shown; /* of rows, the newest first */
    struct oribi_frontend_socket_row rows[ORIBI_FRONTEND_SOCKET_ROWS_MAX];
};

#endif
