/* Texts that a frontend and a worker exchange about a WebSocket: the record of a socket, and the actions that answer a
 * call. doc/internals/websocket-calls.md has the protocol. Pure: bytes in, slices out. */
#ifndef ORIBI_HTTP_SOCKET_CALL_H
#define ORIBI_HTTP_SOCKET_CALL_H

#include "oribi/base/buf.h"
#include "oribi/http/websocket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORIBI_SOCKET_ID_BYTES = 36,
    ORIBI_SOCKET_HANDLER_BYTES_MAX = 255,
    ORIBI_SOCKET_PROTOCOL_BYTES_MAX = 255,
    ORIBI_SOCKET_STATE_BYTES_MAX = 4096,
    ORIBI_SOCKET_KEPT_BYTES_MAX = 4096,
    ORIBI_SOCKET_CHANNELS_BYTES_MAX = 65535,          /* of an accepted record */
    ORIBI_SOCKET_ANSWER_BYTES_MAX = 16 * 1024 * 1024, /* all actions of a call */
    ORIBI_SOCKET_RECORD_BYTES_MAX = 16 + ORIBI_SOCKET_ID_BYTES + ORIBI_SOCKET_HANDLER_BYTES_MAX +
                                    ORIBI_SOCKET_PROTOCOL_BYTES_MAX + ORIBI_SOCKET_STATE_BYTES_MAX +
                                    ORIBI_SOCKET_KEPT_BYTES_MAX + ORIBI_SOCKET_CHANNELS_BYTES_MAX,
    ORIBI_CHANNEL_NAME_BYTES_MAX = 256,        /* at least 1 */
    ORIBI_CHANNEL_EVENT_BYTES_MAX = 64,        /* of the name of an event */
    ORIBI_CHANNEL_MESSAGE_BYTES_MAX = 1 << 20, /* of what is published */
    ORIBI_CHANNELS_OF_ONE_MAX = 256,           /* that a socket, or an event stream, has subscribed to */
    ORIBI_CHANNEL_MARK_BYTES = 4,
    ORIBI_POSITION_TEXT_CAP = 48, /* "EPOCH-OFFSET" */
};

/* Bits of the code of an accepted record, and the last one of the records of calls too. */
enum {
    ORIBI_SOCKET_WANTS_OPEN = 1,  /* the handler has on_open */
    ORIBI_SOCKET_WANTS_CLOSE = 2, /* it has on_close */
    ORIBI_SOCKET_WITH_IDS = 4,    /* messages of channels are sent as JSON, with their positions */
};

/* Why a worker hears of a socket. */
enum oribi_socket_event {
    ORIBI_SOCKET_OFFERED = 'O',  /* a handshake that may be accepted; only `event` counts */
    ORIBI_SOCKET_ACCEPTED = 'A', /* from the worker: all but the id count, `code` is bits */
    ORIBI_SOCKET_OPEN = 'o',
    ORIBI_SOCKET_TEXT = 't', /* the request's body is the message */
    ORIBI_SOCKET_BINARY = 'b',
    ORIBI_SOCKET_CLOSE = 'c', /* `code`; the request's body is the reason */
};

struct oribi_socket_record {
    enum oribi_socket_event event;
    uint16_t code;
    struct oribi_slice id;
    struct oribi_slice handler;  /* name of a class, module or package */
    struct oribi_slice protocol; /* as negotiated; n 0: none */
    struct oribi_slice state;    /* JSON; n 0: empty */
    struct oribi_slice kept;     /* JSON of what `keep` has named; n 0: nothing */
    struct oribi_slice channels; /* of an accepted one: subscriptions; of a call: marks of the socket's channels */
};

/* Appends the record. 0, ORIBI_ENOMEM, or ORIBI_ELIMIT where a part is longer than its maximum. */
int oribi_socket_record_write(struct oribi_buf *out, const struct oribi_socket_record *record);

/* Reads one that fills [p, p+n); slices point into p. 0 or ORIBI_EBAD. */
int oribi_socket_record_read(struct oribi_slice text, struct oribi_socket_record *record);

/* Actions of a call's answer, in the order in which they happen. Each is its type, the length of the rest as four
 * bytes, big endian, and the rest. */
enum oribi_socket_action_type {
    ORIBI_SOCKET_SEND_TEXT = 't',
    ORIBI_SOCKET_SEND_BINARY = 'b',
    ORIBI_SOCKET_SET_STATE = 's',   /* JSON */
    ORIBI_SOCKET_DO_CLOSE = 'c',    /* code, two bytes, big endian, and the reason */
    ORIBI_SOCKET_SUBSCRIBE = 'S',   /* a subscription */
    ORIBI_SOCKET_UNSUBSCRIBE = 'U', /* a channel's name */
    ORIBI_SOCKET_PUBLISH = 'P', /* 1 where it is binary, else 0; a channel's name; the event's length, one byte, and its
                                   name; the rest is the message */
};

struct oribi_socket_action {
    enum oribi_socket_action_type type;
    uint16_t code;           /* of a close */
    bool binary;             /* of a message that is published; as are the next two */
    struct oribi_slice data; /* of a close: the reason; of a subscription: the position since which, n 0: none */
    struct oribi_slice event;
    struct oribi_slice channel;
};

/* Appends an action. 0, ORIBI_ENOMEM, or ORIBI_ELIMIT where the answer would be longer than
 * ORIBI_SOCKET_ANSWER_BYTES_MAX or a part longer than its maximum; nothing is appended then. */
int oribi_socket_action_write(struct oribi_buf *out, const struct oribi_socket_action *action);

/* Takes the first action off [text->p, text->p + text->n). 1; 0: there is none; ORIBI_EBAD. */
int oribi_socket_action_read(struct oribi_slice *text, struct oribi_socket_action *action);

/* Names of channels as records and actions have them: each its length, two bytes, big endian, and its bytes. Writing
 * appends one: 0, ORIBI_ENOMEM, or ORIBI_ELIMIT where it has no byte or more than ORIBI_CHANNEL_NAME_BYTES_MAX. Reading
 * takes the first off: 1; 0: there is none; ORIBI_EBAD. */
int oribi_channel_name_write(struct oribi_buf *out, struct oribi_slice name);
int oribi_channel_name_read(struct oribi_slice *list, struct oribi_slice *name);

/* A mark stands in the record of a call for each channel that the socket has subscribed to, so that a worker can count
 * them: ORIBI_CHANNEL_MARK_BYTES, big endian. Two channels may have one mark. */
uint32_t oribi_channel_mark(struct oribi_slice name);
void oribi_channel_mark_write(char out[ORIBI_CHANNEL_MARK_BYTES], uint32_t mark);
uint32_t oribi_channel_mark_read(const char p[ORIBI_CHANNEL_MARK_BYTES]);

/* UTF-8 without control characters, so that it can stand in a line. */
bool oribi_channel_name_is_valid(struct oribi_slice name);
bool oribi_channel_event_is_valid(struct oribi_slice event); /* n 0 too: none */

/* Subscriptions: a channel's name, the length of the text of a position, one byte, and this text. Writing appends one:
 * 0, ORIBI_ENOMEM, or ORIBI_ELIMIT. A text that is too long for a position is written as one that is none. Reading
 * takes the first off: 1; 0: there is none; ORIBI_EBAD. */
int oribi_subscription_write(struct oribi_buf *out, struct oribi_slice channel, struct oribi_slice since);
int oribi_subscription_read(struct oribi_slice *list, struct oribi_slice *channel, struct oribi_slice *since);

#endif
