/* A frontend without a process: fake workers at the far ends of its channels, fake or real clients in front, a clock
 * that stands still until a test moves it. One thread, one frontend at a time.
 *
 *     static void test_...(void)
 *     {
 *         fake_begin((struct fake_setup){0});             one worker of one thread, no listener
 *         int call = fake_submit((struct fake_request){0});
 *         fake_dispatch();
 *         int far = fake_take(0);                         worker 0 takes the request from the hand-off queue
 *         fake_answers(far, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
 *         fake_turn();
 *         is_str(fake_heard(call), "+ - begin 200 ok. ");
 *         fake_end();                                     checks that nothing is left
 *     }
 *
 * fakes.c and fake_clients.c alone know how the frontend is set up and what its structs hold. */
#ifndef ORIBI_TEST_FRONTEND_FAKES_H
#define ORIBI_TEST_FRONTEND_FAKES_H

#include "oribi/worker/frontend_slot.h"
#include "oribi/worker/placement/scoreboard.h"
#include "tap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct oribi_options;
struct oribi__frontend;
struct oribi__upstream_request;
struct oribi__channel;
struct oribi__client;

enum {
    FAKE_WORKERS_MAX = 4,
    FAKE_FARS_MAX = 4096,
    FAKE_CALLS_MAX = 101 * 1000,
    FAKE_CLIENTS_MAX = 64,
    FAKE_HIGH = 256 * 1024, /* the marks of back-pressure, in bytes */
    FAKE_LOW = 128 * 1024,
};

struct fake_setup {
    uint32_t workers;   /* 0: one */
    uint32_t channels;  /* numbers of channels; 0: 64 */
    uint32_t queue_max; /* 0: no maximum */
    int64_t memory_max; /* of the budget; 0: no maximum */
    int64_t file_max;   /* likewise */
    uint32_t keepalive_requests_max;
    uint32_t left_max;    /* likewise of streams that were reset, and whose calls run on; 0: the default */
    uint32_t streams_max; /* of a connection of HTTP/2; 0: the default */
    bool local;           /* local content is opened, whose thread the test's own functions are */
};

/* fake_end() ends what the test has left open, and checks that the frontend gives back its memory and descriptors. */
void fake_begin(struct fake_setup setup);
void fake_end(void);

/* The frontend that was begun; its options, which may be changed until the next turn. */
struct oribi__frontend *fake_frontend(void);
struct oribi_options *fake_options(void);

void fake_body_max(int64_t bytes); /* of requests of HTTP/2 */

void fake_turn(void);     /* one turn of the loop */
void fake_settle(void);   /* turns until the frontend waits and no client has read anything new */
void fake_dispatch(void); /* the dispatcher alone */
void fake_channels(void); /* channels that a turn has not read to their end */
void fake_reads(struct oribi__channel *channel); /* as if the loop had told of bytes, or of the worker's end */
void fake_posts(struct oribi__channel *channel); /* as if this were one of them, and the only one */
struct oribi__channel *fake_idle_channel(void);  /* that was used last; NULL */
void fake_passes_ms(int64_t ms);
int64_t fake_now_us(void);
int64_t fake_wait_ms(void); /* so long the loop would wait; -1: until an event */
void fake_drains(void);     /* the supervisor's order */
void fake_gives_up(void);
void fake_reloads(void); /* with local content */

/* The next message to the supervisor; "": there is none. */
const char *fake_told(void);

/* Lines of the log since the last call. */
const char *fake_logged(void);

/* Things that the frontend holds now. */
enum fake_gauge {
    FAKE_OUT,         /* requests that workers have */
    FAKE_OUT_WAITING, /* of these, those in the hand-off queue */
    FAKE_QUEUED,
    FAKE_IDLE_CHANNELS,
    FAKE_CHANNELS,
    FAKE_ABANDONED,
    FAKE_LEFT_BY_STREAMS, /* of these, those whose stream waits for them */
    FAKE_FREE_NUMBERS,
    FAKE_SPARE_CALLS,
    FAKE_BLOCKED, /* calls whose channel is not read */
    FAKE_LISTED,  /* calls whose output waits for the client's socket */
    FAKE_WAITING_H1,
    FAKE_WAITING_H2,
    FAKE_CONNS_H1,
    FAKE_CLIENTS_H2,
    FAKE_RESTING_H2,
    FAKE_STREAMS,
    FAKE_MEMORY, /* bytes of the budget */
    FAKE_FILE,
    FAKE_TUNNELS,
    FAKE_FILES, /* of answers, which the frontend reads */
};
int64_t fake_gauge(enum fake_gauge gauge);
uint32_t fake_out_of(uint32_t worker); /* requests of ours that this worker has */

/* The frontend's counters; a worker's slot. */
struct oribi_frontend_slot *fake_counters(void);
struct oribi_slot *fake_slot(uint32_t worker);
uint64_t fake_closed_with(uint16_t code); /* WebSockets; 0: with a code that has no counter */
void fake_others_out(uint32_t calls);     /* requests of another frontend that workers have */
/* How long its calls take, as far as the frontend knows; UINT32_MAX: it does not. */
void fake_average_us(uint32_t worker, uint32_t us);
uint32_t fake_average_of(uint32_t worker);

/* --- workers: each far end of a channel has a number, -1: none --- */

int fake_take(uint32_t worker);       /* the worker takes the oldest request of the hand-off queue */
int fake_far_new(int fd);             /* takes the descriptor, which came by another way */
int fake_wakeups(void);               /* that the last fake_take() found in front of it, or alone */
uint32_t fake_waiting(void);          /* messages in the hand-off queue */
const char *fake_asked(int far);      /* what has come since the last call, without heads of channels; "" for nothing */
size_t fake_asked_len(void);          /* bytes of the last result, which may hold zeros */
const char *fake_asked_body(int far); /* the request's body that travelled in a file; NULL: none did */
bool fake_takes_files(int far);       /* may its worker hand over files? */
bool fake_is_over(int far);           /* the frontend has closed the channel, or its sending half */
void fake_answers(int far, const char *text);
void fake_replies(int far, const char *text); /* the same, and all settles */
void fake_answers_bytes(int far, const char *p, size_t n);
bool fake_tries_answer(int far, const char *text); /* the same without a check of its own */
size_t fake_floods(int far, size_t n);             /* n bytes 'x' as far as the socket takes them; returns how many */
/* Hands over this descriptor, which stays the caller's; whatever it is, as a hostile worker can. */
void fake_hands_over(int far, int fd, int64_t offset, int64_t n);
void fake_passes_file(int far, int fd, int64_t offset); /* the descriptor alone */
void fake_says_file(int far, int64_t n);                /* its record alone */
void fake_lends(int far);                               /* an application has had the descriptor */
void fake_far_shuts(int far);                           /* it sends no more */
void fake_far_closes(int far);                          /* its worker has ended the call, and tells so */
void fake_far_dies(int far);                            /* its worker is killed, and tells nothing */
void fake_far_passes(int far, uint32_t worker);         /* another worker has it */
void fake_far_unowned(int far); /* the worker tells that it has no channel any more, which stays open */

/* --- fake clients: upstream requests whose client is a transcript --- */

struct fake_request {
    const char *method; /* NULL: GET */
    const char *body;   /* NULL: none */
    size_t body_bytes;  /* a body of so many bytes 'b', in the place of `body` */
    bool in_file;       /* it lies in a file */
    bool chunked;       /* it is chunked, with the trailer `x: y` */
    size_t head_bytes;  /* more bytes in its head */
    bool upgrades;
    bool streams; /* the client counts what it has not taken, and blocks above FAKE_HIGH */
    bool keeps;   /* it is not ended with its answer, but by fake_goes() */
    bool feeds;   /* its worker sends 64 KiB more in each event of its body */
    char goes_in; /* the client goes in the event of this first letter: i, b, m, f, t; 0: in none */
};

#define FAKE_OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" /* the answer of a worker */

int fake_call(struct fake_request request);              /* made, and not submitted */
int fake_submit(struct fake_request request);            /* made and submitted */
int fake_out(struct fake_request request, int *far);     /* submitted, and begun by worker 0 */
int fake_befriend(uint32_t worker);                      /* a request that it has answered: its channel is idle */
struct oribi__upstream_request *fake_upstream(int call); /* NULL: it is over */
void fake_submits(int call);
struct oribi__upstream_request **fake_listed_at(void); /* where a walk over calls with output goes on */

/* Events, each followed by a space: + and - (it waits in the queue, no longer), "interim STATUS", "begin STATUS BODY",
 * "file" (the rest is read from one), "more BODY", "fail STATUS", "tunnel REST". A body of more than 40 bytes is its
 * number of bytes, "." stands for its end. */
const char *fake_heard(int call);
const char *fake_reason(int call); /* of its failure; NULL */
void fake_goes(int call);
void fake_takes(int call, int64_t bytes); /* the client takes so many bytes, and the frontend is told */
int64_t fake_untaken(int call);
uint32_t fake_events(int call); /* of its answer, so far */
bool fake_is_blocked(int call);
bool fake_is_queued(int call);
bool fake_is_out(int call);
void fake_sends_no_more(int call); /* the client has closed its sending half */

/* --- real clients, over a socket pair --- */

int fake_h1(void);
void fake_says(int client, const char *text);
void fake_says_bytes(int client, size_t n);   /* n bytes 'b', turning as needed */
const char *fake_hears(int client);           /* what has come since the last call, without Date */
size_t fake_hears_len(void);                  /* bytes of the last result */
size_t fake_hears_some(int client, size_t n); /* reads at most n bytes and drops them; returns how many */
void fake_silent(int client, bool silent);    /* it does not read, and fake_settle() does not read for it */
bool fake_is_ended(int client);               /* the frontend has closed the connection, seen when all was read */
bool fake_is_reset(int client);               /* with a reset */
void fake_shuts(int client);                  /* the client sends no more */
void fake_hangs_up(int client);

int fake_h2(void);         /* HTTP/2, by libnghttp2 */
int fake_h2_settled(void); /* one whose settings are exchanged, and with no frame to be read */
struct fake_ask {
    const char *method;  /* NULL: GET */
    const char *path;    /* NULL: / */
    const char *body;    /* NULL: none */
    bool open;           /* more of the body is to come */
    const char *expects; /* of Expect; NULL */
    const char *accept;  /* of Accept; NULL */
    const char *length;  /* of Content-Length; NULL */
    const char *trailer; /* value of the trailer x; NULL */
    const char *socket;  /* of :protocol, of an extended CONNECT; NULL: none is asked for */
    const char *version; /* of Sec-WebSocket-Version; NULL */
    const char *origin;  /* NULL: none */
};
int32_t fake_asks(int client, struct fake_ask ask);                                     /* the stream's id */
void fake_more_body(int client, int32_t stream, const char *text, size_t n, bool last); /* text NULL: bytes 'b' */
void fake_resets(int client, int32_t stream, uint32_t code);
void fake_window(int client, int32_t bytes);                /* initial windows of streams from now on */
void fake_opens(int client, int32_t stream, int32_t bytes); /* the stream's window */

void fake_sends_raw(int client, const char *p, size_t n); /* bytes beside libnghttp2 */
void fake_hashes(int client);                             /* DATA from now on, into a number: hash = hash * 31 + byte */
uint32_t fake_hash(int client);
const char *fake_data(int client); /* bytes of DATA since the last call; fake_hears_len() says how many */
struct oribi__client *fake_client_of(int client); /* the frontend's */
uint32_t fake_sessions_streams(int client);       /* streams that its session has, those that run on as well */
uint32_t fake_left_of(int client);                /* its streams that were reset, and whose calls run on */

/* Frames since the last call, each followed by a space: "H1=200" (with fields: "H1=200,name=value"), "D1+5" (DATA of
 * stream 1, joined), "E1" (its end), "T1,x=y" (trailers), "R1=8" (RST_STREAM), "G=0" (GOAWAY). */
const char *fake_frames(int client);

#endif
