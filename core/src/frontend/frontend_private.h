/* The frontend as its sources share it. One process, one thread, one reactor: clients of HTTP/1.1 are the reactor's own
 * connections, those of HTTP/2 and those that still shake hands are watched beside them, and so are the channels.
 *
 *   main.c               the program: config, user, signals
 *   frontend.c           create, turn, drain, end
 *   accept.c             listeners
 *   arrive.c             a client until it is known what it speaks
 *   clients_h1.c         HTTP/1.1: requests of the reactor become calls, answers go to its connections
 *   clients_h2.c         HTTP/2: sessions (h2.h) over their sockets
 *   streams_h2.c         streams of HTTP/2 as calls
 *   stream_life_h2.c     streams of HTTP/2: until when
 *   stream_bytes_h2.c    streams of HTTP/2: the bytes of answers
 *   upstream_request.c   calls: what both protocols have in common
 *   dispatch.c           the queue of complete requests, and which channel gets the next one
 *   channel.c            a channel: its life, the request out
 *   channel_answer.c     a channel: the answer in
 *   local.c              files and fixed answers, which need no worker
 *   answers.c            answers of the frontend's own, and their lines in the access log
 *   count.c              what a frontend counts
 *   tunnel.c             bytes both ways, after 101
 *   canonical.c          a request head written anew
 *   tls*.c               TLS
 *   config.c             what the supervisor says */
#ifndef ORIBI_FRONTEND_FRONTEND_PRIVATE_H
#define ORIBI_FRONTEND_FRONTEND_PRIVATE_H

#include "frontend/config.h"
#include "frontend/h2.h"
#include "frontend/tls.h"
#include "oribi/base/buf.h"
#include "oribi/base/log.h"
#include "oribi/config/trust.h"
#include "oribi/event/reactor.h"
#include "oribi/http/response_head.h"
#include "oribi/http/proxy.h"
#include "oribi/http/chunked.h"
#include "oribi/files/fixed.h"
#include "oribi/http/response.h"
#include "oribi/worker/logs/access_log.h"
#include "oribi/worker/frontend_slot.h"
#include "oribi/worker/local/local_thread.h"
#include "oribi/worker/server_answers.h"
#include "oribi/worker/logs/request_log.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    ORIBI__FRONTEND_SCRATCH_BYTES = 64 * 1024, /* of an answer, at a time */
    ORIBI__FRONTEND_INLINE_BYTES = 128 * 1024, /* of a request's body, beyond it the body goes to a file */
    /* of a streamed answer that the client has not taken: the answer's worker waits above HIGH, until LOW is left */
    ORIBI__FRONTEND_HIGH_BYTES = 256 * 1024,
    ORIBI__FRONTEND_LOW_BYTES = 128 * 1024,
    ORIBI__FRONTEND_RETRY_MS = 5,           /* a full hand-off queue is tried again */
    ORIBI__FRONTEND_QUEUE_MAX = 100 * 1000, /* requests that wait; beyond it 503 */
    ORIBI__FRONTEND_CLOSED_KEEP = 64,       /* pooled structs */
    ORIBI__OWN_REASON_CAP = 320,            /* of a line */
    ORIBI__FRONTEND_PAUSE_MS = 100,         /* of accepting, without descriptors or beyond connections_max */
    ORIBI__FRONTEND_GRACE_MS = 1000,        /* of a drain, for requests that are on their way */
};

struct oribi__frontend;
struct oribi__upstream_request;
struct oribi__channel;
struct oribi__frontend_local; /* local.c */

/* Functions of a call's client, which get the answer. */
struct oribi__upstream_ops {
    void (*interim)(struct oribi__upstream_request *call, const struct oribi_answer *answer);
    /* The head, and the first bytes of the body; last: all of it. headers are borrowed and may be changed. */
    void (*begin)(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice body,
                  bool last);
    /* More of it. last: the call ends with this; call->channel is gone then. */
    void (*more)(struct oribi__upstream_request *call, struct oribi_slice body, bool last);
    /* There is no answer: the client gets this status (502, 503, 504); or, where the answer had begun (call->begun),
     * sees that its end is missing. Ends the call. */
    void (*fail)(struct oribi__upstream_request *call, int status, const char *reason);
    /* Bytes of the answer that the client has not taken: the channel is read while they are few. */
    int64_t (*pending)(const struct oribi__upstream_request *call);
    /* It waits in the queue now (1), or does no longer (-1). */
    void (*waits)(struct oribi__upstream_request *call, int change);
    /* The answer is 101: gives the client's connection to a tunnel; the head is sent. `rest` stands behind it. */
    void (*tunnel)(struct oribi__upstream_request *call, struct oribi_answer *answer, struct oribi_slice rest);
};

enum oribi__upstream_state {
    ORIBI__CALL_NEW,
    ORIBI__CALL_QUEUED, /* in the queue of complete requests */
    ORIBI__CALL_OUT,    /* on its channel */
    ORIBI__CALL_ENDED,
};

/* A complete request and its answer. Made and freed by its client; memory is pooled with the buffer of its head. */
struct oribi__upstream_request {
    struct oribi__frontend *frontend;
    const struct oribi__upstream_ops *ops;
    void *owner; /* the client's */
    struct oribi__upstream_request *prev;
    struct oribi__upstream_request *next;
    struct oribi__channel *channel; /* while it is out */
    struct oribi_buf head;          /* the channel head and the request's head, as they go out */
    struct oribi_slice body;        /* in memory, borrowed from the client */
    int body_fd;                    /* the body in a file, borrowed as well; -1: none */
    int64_t body_len;
    struct oribi_buf tail; /* behind the body: trailers of a chunked one */
    char chunk[ORIBI_CHUNK_HEAD_CAP];
    uint8_t chunk_len; /* in front of the body, when chunked */
    uint8_t state;
    uint8_t tries;
    bool is_head;
    bool safe;    /* to be made twice */
    bool begun;   /* the client has the answer's head */
    bool blocked; /* the channel is not read until the client has taken more */
    bool upgrades;
    bool finished;     /* the client will send no more */
    bool streams;      /* the answer's length was not known at its begin */
    bool closes;       /* the client's connection, after it */
    bool of_local;     /* the local content is asked: it holds no worker, however slow its client is */
    bool listed;       /* clients_h1.c: its output waits for the socket */
    uint8_t framing;   /* towards the client */
    uint8_t method;    /* enum oribi_slot_method */
    uint8_t refusal;   /* enum oribi_refusal; OTHER: it was not refused */
    uint16_t status;   /* of the answer that the local content has begun */
    uint32_t listener; /* in config->listeners */
    int64_t complete_us;
    uint64_t path_hash; /* local.c */
    struct oribi__upstream_request *blocked_next;
    struct oribi__upstream_request *listed_prev;
    struct oribi__upstream_request *listed_next;
};

enum oribi__channel_state {
    ORIBI__CHANNEL_IDLE,
    ORIBI__CHANNEL_HEAD, /* the request is out, the answer's head is awaited */
    ORIBI__CHANNEL_BODY,
    ORIBI__CHANNEL_ABANDONED, /* its client has gone, and its worker runs on: it counts until that has ended */
    ORIBI__CHANNEL_CLOSED,
};

struct oribi__channel {
    struct oribi_watch watch; /* first: the handler casts */
    struct oribi__frontend *frontend;
    struct oribi__channel *prev; /* idle ones, the last used first; and those that are left */
    struct oribi__channel *next;
    struct oribi__channel *posted_next;
    struct oribi__upstream_request *call;
    struct oribi__frontend_local *local; /* whose its far end is; NULL: a worker's */
    struct oribi_buf unsent;             /* of a request */
    struct oribi_buf read;               /* the begin of an answer's head */
    struct oribi_chunked chunked;
    int64_t left; /* of a body with a length */
    int64_t sent_us;
    int32_t left_pid;                /* whose worker runs on */
    struct oribi_h2_stream *left_by; /* the stream that has left it; NULL: of HTTP/1.1, or gone */
    uint16_t number;
    uint16_t owner; /* slot + 1 that its calls count for in frontend->out, 0: none */
    uint8_t state;
    uint8_t framing;
    bool closes;   /* after this answer */
    bool finished; /* its client will send no more, and it was told so */
    bool posted;   /* in frontend->posted_channels */
    bool answered; /* a byte of this answer has come */
};

struct oribi__arrival; /* arrive.c */
struct oribi__client;  /* clients_h2.c */
struct oribi__tunnel;

struct oribi__frontend {
    struct oribi_reactor reactor;
    struct oribi_frontend_config *config;
    struct oribi_h2_limits h2_limits;
    struct oribi_h2_limits h2_trusted; /* the same of balancers, which trusted_proxies names */
    struct oribi_limits answer_limits; /* of chunked answers: no maximum of the body */
    struct oribi_watch control_watch;
    struct oribi_watch listener_watches[ORIBI_LISTENERS_MAX];
    bool accepting;
    bool draining;
    bool gives_up; /* no worker takes a request any more: the supervisor is gone, or time is over */
    int64_t accept_pause_until_ms;
    int64_t drain_since_ms;
    int64_t drain_until_ms; /* 0: no bound */
    struct oribi_log_limit log_limit;
    struct oribi__id_source ids;
    bool names_requests;                /* each has an id: request_id, or a log shows it */
    struct oribi_frontend_slot *slot;   /* its counters */
    struct oribi_frontend_slot no_slot; /* for a frontend that no supervisor has given a slot */
    uint64_t bytes_in;
    uint64_t bytes_out;
    _Atomic uint32_t armed[ORIBI_TIMEOUT_CLASSES]; /* of the reactor's timeouts */
    char hsts[32];
    struct oribi_header extra_tls; /* Strict-Transport-Security; name NULL: none */

    /* calls */
    struct oribi__upstream_request *spare_calls;
    uint32_t spare_call_count;
    struct oribi__upstream_request *queue_first;
    struct oribi__upstream_request *queue_last;
    uint32_t queue_len;
    uint32_t calls_out;
    struct oribi__upstream_request *blocked;
    struct oribi__upstream_request *listed;
    struct oribi__upstream_request *listed_at; /* where oribi__h1_turn() goes on */

    /* channels */
    struct oribi__channel *idle_first;
    struct oribi__channel *idle_last;
    uint32_t idle_count;
    uint32_t channel_count;
    struct oribi__channel *left_first;
    struct oribi__channel *posted_channels; /* a turn has not read all that is there */
    uint16_t *free_numbers;
    uint32_t free_number_count;
    uint8_t *out;                          /* calls of ours, by the slot that has their channel */
    int64_t *shunned_until_ms;             /* it has ended in a call of ours: nothing is given to it until then */
    uint32_t *average_us;                  /* of its calls, as far as they were ours; UINT32_MAX: not known */
    int64_t *ended_us;                     /* when the last of them ended, oribi_clock_us() */
    uint32_t out_waiting;                  /* calls of ours in the hand-off queue, as far as we know */
    struct oribi_added *added;             /* headers of the operator's; or NULL */
    const struct oribi_error_pages *pages; /* pages of the operator's, which the local content has; or NULL */
    struct oribi_access_log *access_log;   /* of what no worker has answered; NULL: off */
    struct oribi__frontend_local *local;
    struct oribi__frontend_local *local_next; /* of a reload: it takes the place when it has opened its folders */
    struct oribi__frontend_local *retired_locals;
    struct oribi__channel *closed_channels; /* freed at the end of the turn */
    struct oribi_header headers[ORIBI_RESPONSE_FIELDS_MAX];
    struct oribi_field fields[ORIBI_RESPONSE_FIELDS_MAX + 1];
    struct oribi_trust trust;
    char *scratch; /* ORIBI__FRONTEND_SCRATCH_BYTES: what comes from a channel */
    char *text;    /* ORIBI_RESPONSE_HEAD_BYTES_MAX: heads of answers */

    /* clients */
    struct oribi__arrival *arrivals; /* the newest first */
    struct oribi__arrival *arrivals_last;
    uint32_t arrival_count;
    int64_t arrivals_look_ms; /* when deadlines are looked at again */
    struct oribi__arrival *closed_arrivals;
    struct oribi__client *clients;
    struct oribi__client *dirty;         /* have something to send, or to be looked at */
    struct oribi__client *resting_first; /* without a stream, the one that has rested longest first */
    struct oribi__client *resting_last;
    uint32_t resting_count;
    uint32_t waiting_h1; /* connections of HTTP/1.1 whose request waits for a worker */
    uint32_t waiting_h2; /* connections of HTTP/2 of which each request waits for a worker */
    uint32_t client_count;
    uint32_t stream_count;
    struct oribi__client **heap; /* by deadline */
    uint32_t heap_len;
    uint32_t heap_cap;
    struct oribi__tunnel *tunnels;
    struct oribi__tunnel *closed_tunnels;
    uint32_t tunnel_count;
    bool posted_tunnels; /* one has more to move than a turn may */
};

/* A client's socket, with or without TLS. */
struct oribi__peer {
    int fd;
    struct oribi_transport *transport;
    const struct oribi_tls_info *tls; /* of the transport's session; NULL: none */
    uint32_t listener;                /* in config->listeners */
    bool proxy_tls;                   /* a PROXY header has said that the client speaks TLS */
    uint8_t addr_len;
    uint8_t port_len;
    char addr[ORIBI_CONN_ADDR_CAP];
    char port[ORIBI_CONN_PORT_CAP];
};

ssize_t oribi__peer_read(const struct oribi__peer *peer, void *dst, size_t n);
ssize_t oribi__peer_send(const struct oribi__peer *peer, const struct iovec *vec, size_t count);
void oribi__peer_close(struct oribi__peer *peer, bool shut);

/* --- upstream_request.c --- */

/* NULL: out of memory. */
struct oribi__upstream_request *oribi__upstream_create(struct oribi__frontend *frontend,
                                                       const struct oribi__upstream_ops *ops, void *owner);

/* Takes it from the queue or closes its channel, if need be, and frees it. No ops are called. */
void oribi__upstream_destroy(struct oribi__upstream_request *call);

/* Writes the channel head to call->head, which is empty. 0 or ORIBI_ENOMEM. */
int oribi__upstream_about(struct oribi__upstream_request *call, const struct oribi__peer *peer,
                          const struct oribi_head *head, uint8_t protocol, bool keeps);

/* Puts the request, which is complete, into the queue. What of it does not fit fails at once (503). */
void oribi__upstream_submit(struct oribi__upstream_request *call);

/* The client has taken some of the answer. */
void oribi__upstream_taken(struct oribi__upstream_request *call);

/* The client does not take the answer as fast as it comes: its channel is left alone until it has. */
void oribi__upstream_block(struct oribi__upstream_request *call);

/* Its output waits for the client's socket, or no longer. */
void oribi__upstream_list(struct oribi__upstream_request *call);
void oribi__upstream_unlist(struct oribi__upstream_request *call);

/* There will be no answer, or none of its rest. It counts as refused for this; OTHER: as answered with the status. */
void oribi__upstream_failed(struct oribi__upstream_request *call, int status, enum oribi_refusal refusal,
                            const char *reason);

/* --- dispatch.c --- */

void oribi__dispatch_add(struct oribi__upstream_request *call, bool first);
void oribi__dispatch_remove(struct oribi__upstream_request *call);

void oribi__dispatch_give_up(struct oribi__frontend *frontend); /* answers all that wait with 503 */

/* Gives requests that wait to workers that are free. */
void oribi__dispatch(struct oribi__frontend *frontend);

/* The channel's call is over, and another may go out on it. */
void oribi__dispatch_idle(struct oribi__channel *channel);

/* Calls that workers can make now and soon. */
uint32_t oribi__dispatch_capacity(const struct oribi__frontend *frontend);

/* Is there any worker that serves? */
bool oribi__dispatch_serves(const struct oribi__frontend *frontend);

/* --- answers.c --- */

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
};

/* Writes the lines of a refused request: with its head, or, where that is not well-formed, with its first line. */
void oribi__answer_log_refused(struct oribi__frontend *frontend, const struct oribi_head *head,
                               struct oribi_slice raw_line, const struct oribi__refused *refused);

/* Writes the lines of a refused request of HTTP/2, whose connection goes on. */
void oribi__answer_log_refused_h2(struct oribi__frontend *frontend, const struct oribi__peer *peer,
                                  struct oribi_slice line, int status, enum oribi_refusal refusal, const char *reason,
                                  const struct oribi_fault *fault);

/* --- count.c --- */

void oribi__count_init(struct oribi__frontend *frontend);
void oribi__count_turn(struct oribi__frontend *frontend); /* what there is now */
void oribi__count_handshake(struct oribi__frontend *frontend, const struct oribi_tls_info *info);

/* A head has come, which is a request's. Notes the method in the call. */
void oribi__count_request(struct oribi__upstream_request *call, struct oribi_slice method, bool h2);

/* The local content has answered; status 0: its answer was cut. */
void oribi__count_local(const struct oribi__upstream_request *call, int status);
void oribi__count_refusal(struct oribi__frontend *frontend, int status, enum oribi_refusal refusal);
void oribi__count_failed(const struct oribi__upstream_request *call, int status, enum oribi_refusal refusal);

/* --- local.c --- */

/* Takes config->local, and makes local content of it in the place of the one before, which ends when it has answered
 * what it has begun. The first one is waited for, until its folders are open; others take their place in a later turn.
 * 0 or ORIBI_ENOMEM: nothing has changed. */
int oribi__frontend_local_open(struct oribi__frontend *frontend);
void oribi__frontend_local_close(struct oribi__frontend *frontend);
void oribi__frontend_local_close_idle(struct oribi__frontend *frontend);
void oribi__frontend_local_reopen(struct oribi__frontend *frontend); /* its log */
/* takes one that has begun, frees those that have ended */
void oribi__frontend_local_turn(struct oribi__frontend *frontend);
int64_t oribi__frontend_local_wait_ms(const struct oribi__frontend *frontend); /* until that; -1: for nothing */

/* May the local content answer? Notes the path in the call. */
bool oribi__frontend_local_claims(struct oribi__frontend *frontend, struct oribi__upstream_request *call,
                                  const struct oribi_head *head);

/* Asks it, in the place of oribi__upstream_submit(). False: it cannot be asked now. */
bool oribi__frontend_local_submit(struct oribi__upstream_request *call);

/* It has no answer: a worker is asked. */
void oribi__frontend_local_passed(struct oribi__channel *channel);

/* Its channels: one rests, rests no longer; its call begins, has bytes of its answer, ends. */
void oribi__frontend_local_idle(struct oribi__channel *channel);
void oribi__frontend_local_unlink(struct oribi__channel *channel);
void oribi__frontend_local_begins(struct oribi__channel *channel);
void oribi__frontend_local_heard(const struct oribi__channel *channel);
void oribi__frontend_local_ends(struct oribi__channel *channel);

/* --- channel.c --- */

int oribi__channels_init(struct oribi__frontend *frontend);
void oribi__channels_close_idle(struct oribi__frontend *frontend); /* before the reactor ends */
void oribi__channels_deinit(struct oribi__frontend *frontend);     /* when no channel is left */

/* Opens a channel: to `local`, which needs no number, or to a worker (NULL). Gives its far end in *far_fd. Returns NULL
 * without descriptors, memory or numbers. */
struct oribi__channel *oribi__channel_open(struct oribi__frontend *frontend, struct oribi__frontend_local *local,
                                           int *far_fd);

/* Makes the call this idle channel's, and sends the request (send: false where it travels with the far end). False: the
 * channel has ended, and the call is still the caller's. */
bool oribi__channel_call(struct oribi__channel *channel, struct oribi__upstream_request *call, bool send);

void oribi__channel_ended(struct oribi__channel *channel);   /* its worker has closed it, or is dead */
void oribi__channels_turn(struct oribi__frontend *frontend); /* reads on where the last turn has stopped */
void oribi__channel_read(struct oribi__channel *channel);    /* goes on with an answer */

/* Closes it; its call is forgotten, not told. */
void oribi__channel_close(struct oribi__channel *channel);

/* abandoned.c. Closes it for a worker, which finds its client gone. But while the call runs on, in a worker that has
 * begun it, it counts as out: a client that gives up requests gets no more workers by that. */
void oribi__channel_abandon(struct oribi__channel *channel);
void oribi__channel_look(struct oribi__channel *channel);    /* closes it if the call has ended */
void oribi__channels_look(struct oribi__frontend *frontend); /* all of them */
void oribi__channels_forget(struct oribi__frontend *frontend, const struct oribi_h2 *h2); /* its streams go */
void oribi__channels_close_abandoned(struct oribi__frontend *frontend);
void oribi__channel_unlink_abandoned(struct oribi__channel *channel); /* of oribi__channel_release() only */

/* Its client will send no more: the worker sees the end of what comes. */
void oribi__channel_finish(struct oribi__channel *channel);

/* Ends the channel as oribi__channel_close(), but gives its descriptor to the caller. */
int oribi__channel_release(struct oribi__channel *channel);
void oribi__channels_free_closed(struct oribi__frontend *frontend);

/* Counts the channel's call for the worker that has it. */
void oribi__channel_count(struct oribi__channel *channel);
void oribi__channel_uncount(struct oribi__channel *channel);
uint16_t oribi__channel_owner(const struct oribi__channel *channel);

/* An application has had its descriptor, and may write there after its answer: nothing more may be asked on it. */
bool oribi__channel_is_lent(const struct oribi__channel *channel);

/* --- clients --- */

struct oribi_reactor_hooks oribi__h1_hooks(struct oribi__frontend *frontend);
void oribi__h1_turn(struct oribi__frontend *frontend); /* requests that are complete become calls; output that waits */

/* Takes peer. `first`: bytes that were read from it. */
void oribi__h2_begin(struct oribi__frontend *frontend, struct oribi__peer *peer, struct oribi_slice first);
void oribi__h2_turn(struct oribi__frontend *frontend);
int64_t oribi__h2_wait_ms(const struct oribi__frontend *frontend); /* -1: no bound */

/* How long the client without a stream that has rested longest has; -1: there is none. */
int64_t oribi__h2_rested_ms(const struct oribi__frontend *frontend);

/* Closes that client for a new one, with a GOAWAY. False: it had sent a request. */
bool oribi__h2_make_room(struct oribi__frontend *frontend);
void oribi__h2_drain(struct oribi__frontend *frontend);
void oribi__h2_close_all(struct oribi__frontend *frontend);

/* The call that a stream has left (oribi__channel_abandon) has ended in its worker. */
void oribi__h2_left_ended(struct oribi_h2_stream *h2);

/* --- arrive.c --- */

void oribi__arrive_turn(struct oribi__frontend *frontend);
void oribi__arrive(struct oribi__frontend *frontend, uint32_t index, int fd,
                   const struct sockaddr_storage *from);             /* takes fd */
uint32_t oribi__arrive_held(const struct oribi__frontend *frontend); /* connections of all kinds */
/* Closes the one that has rested longest. False: none may be closed, as oribi_reactor_make_room() has it. */
bool oribi__arrive_make_room(struct oribi__frontend *frontend);
void oribi__arrive_close_all(struct oribi__frontend *frontend);
int64_t oribi__arrive_wait_ms(const struct oribi__frontend *frontend);

/* --- accept.c --- */

int oribi__frontend_accept_init(struct oribi__frontend *frontend);
void oribi__frontend_accept_turn(struct oribi__frontend *frontend);
/* Accepts no new clients. `last`: except those that have connected to addresses which end with the server. */
void oribi__frontend_accept_stop(struct oribi__frontend *frontend, bool last);
/* Accepts no new clients, without a supervisor: clients that have connected are still accepted, and the addresses are
 * free for the next server. */
void oribi__frontend_accept_end(struct oribi__frontend *frontend);
bool oribi__frontend_accept_listens(const struct oribi__frontend *frontend); /* one of them is not over yet */

/* tunnel.c. Takes the peer and the channel's descriptor. */
void oribi__tunnel_begin(struct oribi__frontend *frontend, struct oribi__peer *peer, int channel_fd,
                         struct oribi_slice to_peer, struct oribi_slice to_channel);
void oribi__tunnel_turn(struct oribi__frontend *frontend);
void oribi__tunnel_close_all(struct oribi__frontend *frontend);

/* --- frontend.c --- */

/* Gives a frontend in the caller's zeroed memory. */
int oribi__frontend_init(struct oribi__frontend *frontend, struct oribi_frontend_config *config, char *error);
void oribi__frontend_run(struct oribi__frontend *frontend); /* until it has drained */
void oribi__frontend_deinit(struct oribi__frontend *frontend);

#endif
