/* WebSockets as the bindings see them. The frontend holds the socket; a worker hears of it by requests:
 *
 *   the handshake      oribi_socket_offered(): the application may accept it by oribi_socket_accept(), and answers
 *                      with the status 101 then; any other answer refuses it
 *   open, message,     oribi_socket_called(): the binding calls the handler, which may add actions, and answers by
 *   close              oribi_socket_reply(); a refusal, an exception or a time-out is answered as that of any request
 *
 * doc/internals/websocket-calls.md says what the frontend makes of each answer. Threads: as in req.h. */
#ifndef ORIBI_WORKER_SOCKET_H
#define ORIBI_WORKER_SOCKET_H

#include "oribi/http/socket_call.h"
#include "oribi/worker/req.h"

/* A call of a socket, and no request of a client? */
static inline bool oribi_socket_called(const struct oribi_req *req)
{
    return __builtin_expect(req->client != NULL, 0) && req->client->websocket.n > 1;
}

/* Is this request a handshake that the frontend has checked, so that it may be accepted? */
static inline bool oribi_socket_offered(const struct oribi_req *req)
{
    return req->client && req->client->websocket.n == 1;
}

/* Does it ask for a WebSocket? True also where no frontend holds the client, so that accepting says what is missing. */
bool oribi_socket_asked(const struct oribi_req *req);

/* The protocols that the client offers, for oribi_websocket_protocol_next(); n 0: none. As long as the request. */
struct oribi_slice oribi_socket_protocols(const struct oribi_head *head);

/* Appends a subscription to the channels of a record that is accepted next. 0; ORIBI_EINVAL, and `error` says why: no
 * name of a channel, or too many of them. ORIBI_ENOMEM. */
int oribi_socket_add_channel(struct oribi_buf *channels, struct oribi_slice channel, struct oribi_slice since,
                             char *error);

/* Accepts the handshake: all of `record` but its event and id counts. 0; ORIBI_EINVAL, and `error`
 * (ORIBI_ERROR_TEXT_CAP) says why: no frontend holds this client, the request is no handshake, the client has not
 * offered the protocol, or a part is too long. ORIBI_ENOMEM. Accepting twice replaces the first time. */
int oribi_socket_accept(struct oribi_req *req, const struct oribi_socket_record *record, char *error);

/* Is it accepted? Then an answer with 101 has no body. */
bool oribi_socket_accepted(const struct oribi_req *req);

/* Gives what a call is about: slices live as long as the request; `data` is the message, or the reason of a close. 0,
 * ORIBI_EBAD, ORIBI_ENOMEM or ORIBI_ESYS: answer 503 then. */
int oribi_socket_read(struct oribi_req *req, struct oribi_socket_record *record, struct oribi_slice *data);

/* Adds an action to the answer of a call. 0, or ORIBI_EINVAL, and `error` says why: a part is too long, a code that no
 * application may send, no name of a channel, a position for a socket without ids, or the request is no call.
 * ORIBI_ENOMEM. */
int oribi_socket_act(struct oribi_req *req, const struct oribi_socket_action *action, char *error);

/* Answers a call with its actions. As oribi_reply(). */
int oribi_socket_reply(struct oribi_req *req);

/* Answers a call that has failed, in development: the frontend closes with 1011 and, as its reason, the handler, the
 * method, `text` (UTF-8, cut so that all fits into a reason) and `place` (n 0: not known); "Room.on_message: KeyError:
 * no such key (room.rb:12)". `joint` stands between handler and method. In production answer by oribi_reply_error(). */
void oribi_socket_reply_failure(struct oribi_req *req, int status, const char *joint, struct oribi_slice text,
                                struct oribi_slice place);

/* Answers a call whose handler is unknown to this generation of the application: the frontend closes with 1012. Logs
 * it. */
void oribi_socket_unknown(struct oribi_req *req);

#endif
