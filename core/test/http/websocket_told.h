/* Feeds one direction of a WebSocket to a parser, cut in any way, and writes down what it tells: for tests and fuzz
 * targets. Every promise of oribi_websocket_feed() is checked on the way. */
#ifndef ORIBI_TEST_WEBSOCKET_TOLD_H
#define ORIBI_TEST_WEBSOCKET_TOLD_H

#include "guard.h"
#include "oribi/base/buf.h"
#include "oribi/base/mem.h"
#include "oribi/http/websocket.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOLD_LOOK = 256 }; /* bytes behind the used ones that are compared after each event */

/* All-zero at the start; the caller frees both buffers with told_deinit(). */
struct told {
    struct oribi_buf events; /* a line each: "TEXT …", "PING …", "CLOSE 1000 …", "FAULT 1002"; a message when it ends */
    struct oribi_buf open; /* payload of a message that has not ended */
    const char *reason;    /* of a FAULT */
    size_t left;           /* bytes that the parser has left unused */
    uint16_t fault;        /* its code; 0: none */
    const char *broken;    /* a promise that did not hold; NULL: all did */
};

__attribute__((unused)) static void told_deinit(struct told *told)
{
    oribi_buf_deinit(&told->events);
    oribi_buf_deinit(&told->open);
}

/* Adds a line. Payloads may hold line ends: only whole texts are compared. */
__attribute__((unused)) static void told_line(struct oribi_buf *events, const char *word, const char *p, size_t n)
{
    oribi_buf_append(events, word, strlen(word));
    oribi_buf_append(events, " ", 1);
    oribi_buf_append(events, p, n);
    oribi_buf_append(events, "\n", 1);
}

static void told_piece(struct told *told, const struct oribi_websocket_event *event)
{
    oribi_buf_append(&told->open, event->payload.p, event->payload.n);
    if (!event->ends)
        return;
    told_line(&told->events, event->binary ? "BINARY" : "TEXT", told->open.p, told->open.len);
    told->open.len = 0;
}

static void told_event(struct told *told, const struct oribi_websocket_event *event)
{
    char word[32];
    switch (event->type) {
    case ORIBI_WEBSOCKET_EVENT_PIECE:
        told_piece(told, event);
        break;
    case ORIBI_WEBSOCKET_EVENT_PING:
    case ORIBI_WEBSOCKET_EVENT_PONG:
        told_line(&told->events, event->type == ORIBI_WEBSOCKET_EVENT_PING ? "PING" : "PONG", event->payload.p,
                  event->payload.n);
        break;
    case ORIBI_WEBSOCKET_EVENT_CLOSE:
        (void)snprintf(word, sizeof(word), "CLOSE %u", event->code);
        told_line(&told->events, word, event->payload.p, event->payload.n);
        break;
    case ORIBI_WEBSOCKET_EVENT_FAULT:
        (void)snprintf(word, sizeof(word), "FAULT %u", event->code);
        told_line(&told->events, word, "", 0);
        told->fault = event->code;
        told->reason = event->reason;
        break;
    case ORIBI_WEBSOCKET_EVENT_AGAIN:
        break;
    }
}

/* Which promise the call has not kept; NULL: none. `copy` is what stood at `p` before. */
static const char *told_unkept(const struct oribi_websocket *socket, const struct oribi_websocket_event *event,
                               const char *p, const char *copy, size_t n, size_t used)
{
    bool told = event->type != ORIBI_WEBSOCKET_EVENT_AGAIN && event->type != ORIBI_WEBSOCKET_EVENT_FAULT;
    bool piece = event->type == ORIBI_WEBSOCKET_EVENT_PIECE;
    struct oribi_slice payload = event->payload;
    if (used > n)
        return "more bytes used than given";
    if (told && used == 0)
        return "an event without a byte";
    if (used < n && memcmp(p + used, copy + used, n - used < TOLD_LOOK ? n - used : TOLD_LOOK) != 0)
        return "unused bytes changed";
    if (payload.n > 0 && (payload.p < p || payload.p + payload.n > p + used))
        return "payload outside the bytes used";
    if (payload.n == 0 && piece && !event->ends)
        return "an empty piece";
    if (!piece && payload.n > ORIBI_WEBSOCKET_CONTROL_BYTES_MAX)
        return "a control frame that is too long";
    if (!told && payload.n > 0)
        return "payload of nothing";
    if ((event->reason != NULL) != (event->type == ORIBI_WEBSOCKET_EVENT_FAULT))
        return "a reason without a fault, or the reverse";
    if (event->type == ORIBI_WEBSOCKET_EVENT_AGAIN && n - used > ORIBI_WEBSOCKET_REST_MAX)
        return "too much left";
    if (piece && event->ends && (socket->message != 0 || socket->message_bytes != 0 || socket->frame_left != 0))
        return "a message that goes on behind its end";
    if (piece && !event->ends && socket->message != (event->binary ? ORIBI_WEBSOCKET_BINARY : ORIBI_WEBSOCKET_TEXT))
        return "a message of another kind";
    if (event->type != ORIBI_WEBSOCKET_EVENT_FAULT && socket->message_bytes > socket->message_bytes_max)
        return "a message over the maximum";
    return NULL;
}

/* Feeds what is there until AGAIN or FAULT; returns how many bytes were used. */
static size_t told_feed(struct told *told, struct oribi_websocket *socket, char *p, const char *copy, size_t n)
{
    struct oribi_websocket_event event = {.type = ORIBI_WEBSOCKET_EVENT_PIECE};
    size_t used = 0;
    while (!told->broken && event.type != ORIBI_WEBSOCKET_EVENT_AGAIN && event.type != ORIBI_WEBSOCKET_EVENT_FAULT) {
        size_t more = oribi_websocket_feed(socket, p + used, n - used, &event);
        told->broken = told_unkept(socket, &event, p + used, copy + used, n - used, more);
        told_event(told, &event);
        used += more;
        if (told->open.len > socket->message_bytes_max)
            told->broken = "more payload than the maximum";
    }
    return used;
}

/* Feeds nothing and one byte more to a parser that has told a fault: it tells it again. */
static void told_stays(struct told *told, struct oribi_websocket *socket)
{
    char byte = 0;
    struct oribi_websocket_event event;
    for (size_t n = 0; n < 2; n++) {
        (void)oribi_websocket_feed(socket, &byte, n, &event);
        if (event.type != ORIBI_WEBSOCKET_EVENT_FAULT || event.code != told->fault || event.reason != told->reason)
            told->broken = "a fault that does not stay";
    }
}

/* Feeds [p, p+n): `cut` bytes, then `step` at a time, behind what the parser has left; all against the guard page of
 * `arena`, which holds n + ORIBI_WEBSOCKET_REST_MAX bytes. */
__attribute__((unused)) static struct told told_all(enum oribi_websocket_role role, uint64_t message_bytes_max,
                                                    const char *p, size_t n, size_t cut, size_t step,
                                                    struct guard *arena)
{
    struct told told = {0};
    struct oribi_websocket socket;
    size_t used = 0;
    size_t fed = 0;
    oribi_websocket_init(&socket, role, message_bytes_max);
    while (fed < n && !told.fault && !told.broken) {
        size_t piece = fed == 0 ? cut : step;
        fed += n - fed < piece ? n - fed : piece;
        used += told_feed(&told, &socket, guard_place(arena, p + used, fed - used), p + used, fed - used);
    }
    told.left = fed - used;
    if (told.fault && !told.broken)
        told_stays(&told, &socket);
    return told;
}

/* Do both tell the same? Where a fault ends it, how much of an unfinished message was told depends on the cuts: one
 * must be the begin of the other. */
__attribute__((unused)) static bool told_equal(const struct told *a, const struct told *b)
{
    size_t open = a->open.len < b->open.len ? a->open.len : b->open.len;
    bool lengths = a->fault || a->open.len == b->open.len;
    bool left = a->fault || a->left == b->left;
    return !a->broken && !b->broken && a->fault == b->fault && a->reason == b->reason && lengths && left &&
           oribi_slice_equal(oribi_slice(a->events.p, a->events.len), oribi_slice(b->events.p, b->events.len)) &&
           oribi_slice_equal(oribi_slice(a->open.p, open), oribi_slice(b->open.p, open));
}

#endif
