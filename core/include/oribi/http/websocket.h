/* WebSocket (RFC 6455): frames read (websocket.c) and written (websocket_write.c), and the values of the opening
 * handshake (websocket_handshake.c). Pure: no allocation, no socket, no clock. No extension is spoken. */
#ifndef ORIBI_HTTP_WEBSOCKET_H
#define ORIBI_HTTP_WEBSOCKET_H

#include "oribi/base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* RFC 6455 5.2 and 11.8. */
enum oribi_websocket_opcode {
    ORIBI_WEBSOCKET_CONTINUATION = 0,
    ORIBI_WEBSOCKET_TEXT = 1,
    ORIBI_WEBSOCKET_BINARY = 2,
    ORIBI_WEBSOCKET_CLOSE = 8,
    ORIBI_WEBSOCKET_PING = 9,
    ORIBI_WEBSOCKET_PONG = 10,
};

/* Close codes, RFC 6455 7.4.1 and the IANA registry: those that the server uses itself, and the two that stand for what
 * no frame may say. */
enum oribi_websocket_code {
    ORIBI_WEBSOCKET_CODE_NORMAL = 1000,
    ORIBI_WEBSOCKET_CODE_GOING_AWAY = 1001, /* the server stops, a page is left */
    ORIBI_WEBSOCKET_CODE_PROTOCOL = 1002,   /* frames that are none */
    ORIBI_WEBSOCKET_CODE_ABSENT = 1005,     /* never sent: a Close frame without a code */
    ORIBI_WEBSOCKET_CODE_ABNORMAL = 1006,   /* never sent: the connection ended without a Close frame */
    ORIBI_WEBSOCKET_CODE_NO_TEXT = 1007,    /* text that is not UTF-8 */
    ORIBI_WEBSOCKET_CODE_POLICY = 1008,     /* against a rule of the server */
    ORIBI_WEBSOCKET_CODE_TOO_BIG = 1009,    /* a message over the maximum */
    ORIBI_WEBSOCKET_CODE_INTERNAL = 1011,   /* the application failed */
    ORIBI_WEBSOCKET_CODE_RESTART = 1012,    /* connect again: the server is replaced, or the handler is gone */
    ORIBI_WEBSOCKET_CODE_TRY_LATER = 1013,  /* the client reads too slowly, or the server has no room */
};

enum {
    ORIBI_WEBSOCKET_CONTROL_BYTES_MAX = 125,    /* payload of a control frame, 5.5 */
    ORIBI_WEBSOCKET_REASON_BYTES_MAX = 125 - 2, /* of a Close frame, behind its code, 5.5.1 */
    ORIBI_WEBSOCKET_HEAD_CAP = 14,              /* room for the longest head, masked */
    ORIBI_WEBSOCKET_REST_MAX = 2 + 4 + ORIBI_WEBSOCKET_CONTROL_BYTES_MAX - 1, /* bytes that AGAIN may leave */
    /* Frames without payload that a message may have beside its last one. Frames with payload need no limit of their
     * own: each of them has a byte of the message. */
    ORIBI_WEBSOCKET_EMPTY_FRAMES_MAX = 1024,
};

/* ---- reading ---- */

/* Reads the frames of one direction of one connection:
 *
 *     bytes ─► feed ─► PIECE*, the last with `ends` ─► …         a message, in pieces as its bytes come
 *                 ├──► PING, PONG                                 also between the pieces of a message, 5.4
 *                 ├──► CLOSE                                      nothing behind it counts: it is dropped
 *                 ├──► FAULT                                      no way on: every call gives it again
 *                 └──► AGAIN                                      no whole event is left in these bytes
 *
 * Bytes may be cut anywhere: what is told does not depend on the cuts, but for where pieces end. After a FAULT the
 * pieces of a message that had not ended are void; how many of its bytes were told depends on the cuts. */

enum oribi_websocket_role {
    ORIBI_WEBSOCKET_SERVER, /* reads what a client sends: every frame must be masked, 5.1 */
    ORIBI_WEBSOCKET_CLIENT, /* reads what a server sends: no frame may be masked */
};

struct oribi_websocket {
    uint64_t message_bytes_max; /* payload of all frames of a message; may be changed between two calls */
    uint64_t frame_left;        /* bytes of the data frame at hand that are still to come; 0 between frames */
    uint64_t message_bytes;     /* of the message at hand, as far as frame heads have announced them */
    uint8_t message;            /* ORIBI_WEBSOCKET_TEXT or _BINARY: the message at hand has begun; 0 between messages */
    /* private */
    uint8_t role;
    uint8_t state;
    bool fin;             /* the frame at hand is the last of its message */
    uint8_t mask[4];      /* of the frame at hand, beginning with its next byte */
    uint8_t character[3]; /* first bytes of a character whose others are still to come */
    uint8_t character_len;
    uint16_t empty_frames; /* of the message at hand */
    uint16_t fault_code;
    const char *fault_reason;
};

enum oribi_websocket_event_type {
    ORIBI_WEBSOCKET_EVENT_AGAIN,
    ORIBI_WEBSOCKET_EVENT_PIECE,
    ORIBI_WEBSOCKET_EVENT_PING,
    ORIBI_WEBSOCKET_EVENT_PONG,
    ORIBI_WEBSOCKET_EVENT_CLOSE,
    ORIBI_WEBSOCKET_EVENT_FAULT,
};

struct oribi_websocket_event {
    enum oribi_websocket_event_type type;
    /* Unmasked, within the bytes that were fed; lives as long as they do.
     * - PIECE: the next bytes of the message. Empty only where `ends` is set.
     * - PING, PONG: the whole payload, at most ORIBI_WEBSOCKET_CONTROL_BYTES_MAX. A Pong answers with it, 5.5.3.
     * - CLOSE: the reason, UTF-8, at most ORIBI_WEBSOCKET_REASON_BYTES_MAX.
     * - else empty. */
    struct oribi_slice payload;
    bool
        binary; /* PIECE: of a binary message; else of a text, whose pieces together are UTF-8 (one alone may not be) */
    bool ends;  /* PIECE: the last one of its message */
    uint16_t code;      /* CLOSE: the peer's code, valid by 7.4, or _CODE_ABSENT. FAULT: the code to close with */
    const char *reason; /* FAULT: a few words for the log and the Close frame, static; else NULL */
};

/* Makes *socket read a new connection. */
void oribi_websocket_init(struct oribi_websocket *socket, enum oribi_websocket_role role, uint64_t message_bytes_max);

/* Reads on in [bytes, bytes+n) up to the next event, and unmasks its payload in place. Returns how many bytes were
 * used. Call it again with the bytes behind them, until AGAIN: keep what AGAIN leaves (at most
 * ORIBI_WEBSOCKET_REST_MAX bytes, the front of a head or of a control frame, untouched), and feed it again with more
 * bytes behind it. Every event but AGAIN and FAULT uses bytes, so the loop ends. n may be 0. Behind a CLOSE all bytes
 * are used, and only AGAIN is told.
 *
 * FAULT has event->code:
 * - 1002: a reserved bit or opcode (5.2); a mask that is missing, or is there (5.1); a length that is not written in
 *   the fewest bytes, or has its top bit set (5.2); a control frame that is fragmented or over 125 bytes (5.5); a
 *   continuation of nothing, or a new message within another (5.4); a Close frame of one byte, or with a code that
 *   oribi_websocket_code_is_valid() refuses (5.5.1, 7.4).
 * - 1007: text, or the reason of a Close frame, that is not UTF-8 (8.1, 5.5.1): with the piece that has the wrong byte,
 *   and where a message ends within a character.
 * - 1008: more than ORIBI_WEBSOCKET_EMPTY_FRAMES_MAX empty frames in a message.
 * - 1009: a frame that brings its message over message_bytes_max: with its head, before its payload.
 * Each of a head's first two bytes is judged as it comes, the length with its last byte. */
size_t oribi_websocket_feed(struct oribi_websocket *socket, char *bytes, size_t n, struct oribi_websocket_event *event);

/* May a Close frame have this code? RFC 6455 7.4.2 and the IANA registry: 1000-1003, 1007-1014, 3000-4999. */
bool oribi_websocket_code_is_valid(unsigned code);

/* ---- writing ---- */

/* Writes the head of a frame with n bytes of payload, n < 2^63. `mask`: NULL for a server's frame; else a client's four
 * random bytes (5.3), with which the caller masks the payload. `fin`: the message ends with this frame (a control
 * frame's always). Returns the length: 2, 4 or 10, with a mask 4 more. */
size_t oribi_websocket_write_head(char dst[ORIBI_WEBSOCKET_HEAD_CAP], enum oribi_websocket_opcode opcode, bool fin,
                                  uint64_t n, const uint8_t mask[4]);

/* Masks or unmasks (5.3) in place [bytes, bytes+n), which begins at the byte `offset` of its payload. */
void oribi_websocket_mask(char *bytes, size_t n, const uint8_t mask[4], uint64_t offset);

/* Writes the payload of a Close frame: the code in two bytes, the reason. _CODE_ABSENT and no reason: nothing. Returns
 * the length; ORIBI_EINVAL: no frame may have this code, or the reason is not UTF-8; ORIBI_ELIMIT: the reason is over
 * ORIBI_WEBSOCKET_REASON_BYTES_MAX. Borrows `reason`. */
ssize_t oribi_websocket_write_close(char dst[ORIBI_WEBSOCKET_CONTROL_BYTES_MAX], unsigned code,
                                    struct oribi_slice reason);

/* Is [p, p+n) UTF-8 (RFC 3629 4)? Nothing is. An application's text is checked by it before it is sent. */
bool oribi_websocket_is_text(const char *p, size_t n);

/* ---- handshake ---- */

/* Values of fields, without the white space around them, as parsers of heads give them. */

enum { ORIBI_WEBSOCKET_ACCEPT_LEN = 28 };

/* Sec-WebSocket-Key: base64 of 16 bytes (4.2.1)? */
bool oribi_websocket_key_is_valid(struct oribi_slice value);

/* Writes Sec-WebSocket-Accept for a key that is valid (4.2.2): base64 of the SHA-1 of the key and the RFC's GUID. A
 * client compares with it. Borrows `key`. */
void oribi_websocket_accept(char dst[ORIBI_WEBSOCKET_ACCEPT_LEN], struct oribi_slice key);

/* Sec-WebSocket-Version: 13 (4.2.1)? Any other is answered with 426 and `Sec-WebSocket-Version: 13` (4.4). */
bool oribi_websocket_version_is_valid(struct oribi_slice value);

/* Upgrade: does the list name websocket, in any case (4.2.1)? */
bool oribi_websocket_is_upgrade(struct oribi_slice value);

/* Sec-WebSocket-Protocol of a client, repeats joined by commas: one or more tokens, none twice (4.1, 11.3.4)? Empty
 * elements are skipped (RFC 9110 5.6.1.2). At most ORIBI_WEBSOCKET_PROTOCOLS_MAX. */
bool oribi_websocket_protocols_are_valid(struct oribi_slice list);
enum { ORIBI_WEBSOCKET_PROTOCOLS_MAX = 64 };

/* Is `protocol` one of the list's (case counts)? What a server answers must be (4.2.2, 5.). */
bool oribi_websocket_protocol_is_offered(struct oribi_slice list, struct oribi_slice protocol);

/* Takes the next protocol off a list that is valid; false at the end. */
bool oribi_websocket_protocol_next(struct oribi_slice *list, struct oribi_slice *protocol);

#endif
