/* Bytes that clients and workers of WebSockets say, for tests of both transports: frames, accepted records, answers of
 * calls. */
#ifndef ORIBI_TEST_FRONTEND_FAKE_SOCKET_H
#define ORIBI_TEST_FRONTEND_FAKE_SOCKET_H

#include "fakes.h"

#include "oribi/base/buf.h"
#include "oribi/http/socket_call.h"

#include <stdio.h>
#include <string.h>

enum { FAKE_FRAME_CAP = 256, FAKE_ANSWER_CAP = 96 * 1024 };

static char fake_answer[FAKE_ANSWER_CAP]; /* a worker's, from one of the functions below */

/* The frame of a client with fewer than 126 bytes; its mask is zeros, so that it is text but for its head. */
static inline size_t fake_frame(char frame[FAKE_FRAME_CAP], int opcode, const char *data)
{
    size_t n = strlen(data);
    frame[0] = (char)(0x80 | opcode);
    frame[1] = (char)(0x80 | n);
    memcpy(frame + 2, "\0\0\0\0", 4);
    memcpy(frame + 6, data, n);
    return n + 6;
}

/* An answer of a worker: the head, and a body that may hold zeros. */
static inline size_t fake_answer_of(const char *fields, const struct oribi_buf *body)
{
    int n =
        snprintf(fake_answer, FAKE_ANSWER_CAP, "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n", fields, body->len);
    if (body->len)
        memcpy(fake_answer + n, body->p, body->len);
    return (size_t)n + body->len;
}

/* The answer that accepts with a record of the handler Room. `channels`: of its record. */
static inline size_t fake_accepted(const char *fields, uint16_t wants, struct oribi_slice state,
                                   struct oribi_slice channels)
{
    struct oribi_buf body = {0};
    const struct oribi_socket_record record = {.event = ORIBI_SOCKET_ACCEPTED,
                                               .code = wants,
                                               .handler = ORIBI_SLICE("Room"),
                                               .state = state,
                                               .channels = channels};
    ok_eq(oribi_socket_record_write(&body, &record), 0);
    size_t n = fake_answer_of(fields, &body);
    oribi_buf_deinit(&body);
    return n;
}

/* Is this what a client has heard? */
static inline bool fake_is(const char *got, const char *p, size_t n)
{
    return fake_hears_len() == n && memcmp(got, p, n) == 0;
}

#endif
