/* A small HTTP/1.1 client for many simulated browsers in one process and one thread: connections are kept alive, two
 * idle ones a browser as Go's transport has them, everything else is closed. Answers are taken whole:
 * Content-Length, chunked, or until the connection's end. */
#ifndef DRIVER_HTTP_H
#define DRIVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>

/* Slices live until the callback returns. */
struct http_response {
    int status;
    const char *head;
    size_t head_len;
    const char *body;
    size_t body_len;
};

/* `response` is NULL when there was no whole answer: refused, cut off, or its deadline passed. */
typedef void (*http_done)(void *self, int owner, int tag, const struct http_response *response);

struct http;

/* `address` is host:port (an IPv4 address) or the path of a unix socket. Gives the client; it lives as long as the
 * process. */
struct http *http_create(const char *address, int owners, http_done done, void *self);

/* Sends a request of `owner` (0 to owners - 1), on an idle connection of its own or on a new one. Borrows `bytes`.
 * Returns 0, or -1 when no connection could be begun; the callback is not called then. At most HTTP_OPEN_MAX of an
 * owner may be under way. */
int http_send(struct http *http, int owner, int tag, const char *bytes, size_t len, double deadline_s);

/* Drops what the owner has under way; no callback. */
void http_abort(struct http *http, int owner);

/* Gives every exchange under way at most until `deadline_s`. */
void http_hurry(struct http *http, double deadline_s);

/* Waits for events at most `wait_s`, and handles them. */
void http_turn(struct http *http, double wait_s);

/* Finds a field in a response's head, by its name in any case. Returns the value's length, or -1. */
int http_field(const struct http_response *response, const char *name, const char **value);

/* How many connections were opened. */
size_t http_opened(const struct http *http);

/* CLOCK_MONOTONIC in seconds. */
double now_s(void);

enum { HTTP_OPEN_MAX = 6, HTTP_IDLE_MAX = 2 };

#endif
