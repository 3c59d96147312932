/* A request's part in a WebSocket: the record of a handshake that was accepted, or the actions of a call. */
#ifndef ORIBI_WORKER_SOCKET_PRIVATE_H
#define ORIBI_WORKER_SOCKET_PRIVATE_H

#include "oribi/worker/socket.h"

struct oribi__exchange;
struct oribi_thread;

/* Field of the answer to a handshake that was accepted; the record is the answer's body. */
#define ORIBI__SOCKET_FIELD "oribi-websocket"

/* Answers a handshake that was accepted. As oribi_reply(). */
int oribi__socket_reply_accept(struct oribi__exchange *exchange, const struct oribi_header *headers,
                               uint32_t header_count);

/* At the end of a call. Its memory stays for the next one of its thread, until that is forgotten. */
void oribi__socket_free(struct oribi__exchange *exchange);
void oribi__socket_forget(struct oribi_thread *thread);

#endif
