/* Answers of the frontend's own, and their lines in both logs. */
#ifndef ORIBI_FRONTEND_ANSWERS_H
#define ORIBI_FRONTEND_ANSWERS_H

#include "frontend/peer.h"
#include "oribi/config/options.h"
#include "oribi/files/fixed.h"
#include "oribi/http/response.h"
#include "oribi/http/status.h"
#include "oribi/worker/logs/access_log.h"
#include "oribi/worker/logs/request_log.h"
#include "oribi/worker/server_answers.h"

struct oribi__frontend;
struct oribi__upstream_request;

enum { ORIBI__OWN_REASON_CAP = 320 }; /* of a line */

struct oribi__answers {
    struct oribi_added *added;             /* headers of the operator's; or NULL */
    const struct oribi_error_pages *pages; /* pages of the operator's, which the local content has; or NULL */
    struct oribi_access_log *access_log;   /* of what no worker has answered; NULL: off */
    struct oribi__id_source ids;
    bool names_requests; /* each has an id: request_id, or a log shows it */
    char hsts[32];
    struct oribi_header extra_tls; /* Strict-Transport-Security; name NULL: none */
};

/* Seeds the ids, and makes the header of options->hsts_s. */
void oribi__answers_init(struct oribi__frontend *frontend);

/* Takes the headers and the access log of these options, and these pages (NULL: none), in the place of those that it
 * has. Borrows both until the next ones come. */
void oribi__answer_open(struct oribi__frontend *frontend, const struct oribi_options *options,
                        const struct oribi_error_pages *pages);
void oribi__answer_close(struct oribi__frontend *frontend);
void oribi__answer_reopen(struct oribi__frontend *frontend);

/* A hook of the reactor. */
struct oribi_slice oribi__answer_page_of(void *frontend, int status, struct oribi_slice *type);

/* The body of an answer of the frontend's own: its page, or a short text in `text`. */
struct oribi_slice oribi__answer_text(struct oribi__frontend *frontend, int status, char text[ORIBI__OWN_TEXT_CAP],
                                      struct oribi_slice *type);

/* The operator's headers; returns their number. */
uint32_t oribi__answer_fields(const struct oribi__frontend *frontend, struct oribi_field *fields, uint32_t room);

/* The id of a request from this address: the one that a trusted proxy has put into its head (NULL: the head is
 * refused), else a new one, written to `room`. n 0: requests have none. */
struct oribi_slice oribi__answer_id(struct oribi__frontend *frontend, const struct oribi_head *head,
                                    struct oribi_slice addr, char room[ORIBI__ID_LEN]);

/* The access log's line of a request whose head is complete, and that no worker answers. */
void oribi__answer_log(struct oribi__upstream_request *call, int status, int64_t body_bytes);

/* Writes the error log's line of a request that fails, or is refused for this, as a worker would write it. */
void oribi__answer_say_failed(struct oribi__upstream_request *call, int status, enum oribi_refusal refusal,
                              const char *reason);

/* The access log's line of an event stream that has ended. */
void oribi__answer_log_stream(struct oribi__upstream_request *call, int64_t body_bytes, int64_t messages);

/* Writes a line of the error log about the client of an event stream. */
void oribi__answer_say_stream(struct oribi__upstream_request *call, const char *what);

/* Writes the error log's line of a request whose answer breaks off, since the rest cannot be kept until the client
 * takes it. `error` is a code of error.h. */
void oribi__own_say_cut(struct oribi__upstream_request *call, int error);

/* Writes the reason why such a rest cannot be kept, for a line. */
void oribi__own_why_unkept(int error, char reason[ORIBI__OWN_REASON_CAP]);

struct oribi__refused {
    const struct oribi_listener *listener;
    struct oribi_slice addr; /* of the client, as is the port */
    struct oribi_slice port;
    bool tls;
    bool closes;
    int status; /* 0: no answer, and no line */
    enum oribi_refusal refusal;
    const char *reason;
    const struct oribi_fault *fault; /* NULL: no byte or field of its head */
    int64_t body_bytes, bytes_in, bytes_out;
    uint32_t requests;
    bool http2;
};

/* Writes the lines of a refused request: with what is known of its head, or, without a method, with its first line. */
void oribi__answer_log_refused(struct oribi__frontend *frontend, const struct oribi_head *head,
                               struct oribi_slice raw_line, const struct oribi__refused *refused);

/* Writes the lines of a refused request of HTTP/2, whose connection goes on. */
void oribi__answer_log_refused_h2(struct oribi__frontend *frontend, const struct oribi__peer *peer,
                                  const struct oribi_head *head, struct oribi_slice line, int status,
                                  enum oribi_refusal refusal, const char *reason, const struct oribi_fault *fault);

/* A WebSocket that has ended. */
struct oribi__socket_end {
    struct oribi_slice path;
    struct oribi_slice id;
    const struct oribi__peer *peer;
    int64_t opened_us;
    uint64_t messages[2]; /* from the client, to it; as are the next */
    uint64_t bytes[2];
    uint16_t code;
    bool over_h2;
};

/* Writes its line in the access log: the method WEBSOCKET, the close code in the place of the status. */
void oribi__answer_log_socket(struct oribi__frontend *frontend, const struct oribi__socket_end *end);

#endif
