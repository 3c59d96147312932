/* A worker and its clients in one process and one thread, so that a test decides what happens when: pump() gives the
 * worker a turn, answers the requests that it takes, and lets the clients read. Nothing sleeps; pump_until() waits for
 * a condition with a deadline.
 *
 *     static void test_...(void)
 *     {
 *         struct site site;
 *         site_init(&site);                     options may be changed now
 *         site_open(&site, app);
 *         struct client *c = client_open(&site);
 *         client_send(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
 *         ok(next_answer(c, &answer));
 *         site_close(&site);                    also checks that everything was given back
 *     }
 *
 * run_everywhere() runs a test over TCP and over a unix socket, with epoll and with poll(2). */
#ifndef ORIBI_TEST_WORKER_CLIENT_H
#define ORIBI_TEST_WORKER_CLIENT_H

#include "worker/exchange.h"

#include "base/clock_ahead.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS_MAX = 320, PUMP_MS_MAX = 20000 };

struct client {
    int fd;
    char *got; /* everything received */
    size_t got_len;
    size_t got_cap;
    size_t pos;   /* answers before this were taken by next_answer() */
    bool paused;  /* a reader that does not read */
    bool eof;     /* the server closed in good order */
    int error;    /* errno of a read that failed: ECONNRESET after a reset */
    size_t slice; /* bytes a pump at most; 0: any */
};

struct site {
    struct oribi_options options;
    struct oribi_listeners listeners;
    struct oribi_slot slot;
    struct oribi_scoreboard board; /* siblings; none unless a test adds them */
    struct oribi_access_log *access_log;
    struct oribi_worker *worker;
    int life_fd;
    void (*app)(struct oribi_req *req);
    uint32_t calls;
    struct client *clients[CLIENTS_MAX];
    uint32_t client_count;
};

/* Where the tests run now, see run_everywhere(). */
extern bool over_unix;
extern const char *where_name;
extern char unix_path[108];

void site_init(struct site *site);

void site_open(struct site *site, void (*app)(struct oribi_req *req));

/* ---- clients ---- */

int connect_socket(const struct site *site);

struct client *client_open(struct site *site);

/* Lets the kernel hold only little for the client, and tell the sender of room after little was read. */
void client_hold_little(struct client *c);

void client_close(struct site *site, struct client *c);

/* Reads what is there, once or until the slice is used up. True when something was new. */
bool client_read(struct client *c);

/* ---- turns ---- */

/* One go: the worker's turn and calls, then the clients'. Waits a few ms when nothing happened at all. */
void pump(struct site *site);

#define pump_until(site, condition)                                                                                    \
    ({                                                                                                                 \
        int64_t deadline_ = real_ms() + PUMP_MS_MAX;                                                                   \
        bool met_;                                                                                                     \
        while (!(met_ = (condition)) && real_ms() < deadline_)                                                         \
            pump(site);                                                                                                \
        met_;                                                                                                          \
    })

/* Gives the worker everything that is already on its way, without a wait. */
void settle(struct site *site);

/* Sends all of it, pumping while the socket is full. False when the server does not take it. */
bool client_send_bytes(struct site *site, struct client *c, const char *p, size_t n);

bool client_send(struct site *site, struct client *c, const char *text);

/* ---- answers ---- */

struct answer {
    int status;
    bool closes; /* said Connection: close */
    bool chunked;
    int64_t content_length; /* -1: none */
    const char *head;       /* all pointers into the client's bytes: until the next pump */
    size_t head_len;
    char *body; /* chunked ones are decoded in place */
    size_t body_len;
};

/* True if the head has this field line, exactly as written. */
bool has_line(const struct answer *answer, const char *line);

/* Looks at the next complete answer without waiting. `bodiless`: the request was HEAD. */
bool peek_answer(struct client *c, bool bodiless, struct answer *answer, size_t *len);

/* Pumps until the next answer is there and takes it. False when the connection ends or the time runs out before. */
bool next_answer_to(struct site *site, struct client *c, bool bodiless, struct answer *answer);

#define next_answer(site, c, answer) next_answer_to(site, c, false, answer)

/* The body of the next answer is this text and the status 200. */
#define ok_answer(site, c, want_status, want_body)                                                                     \
    ({                                                                                                                 \
        struct answer answer_ = {0};                                                                                   \
        bool there_ = next_answer(site, c, &answer_);                                                                  \
        bool good_ = ok_named(there_ && answer_.status == (want_status), "%s: line %d: answer %d", where_name,         \
                              __LINE__, (want_status));                                                                \
        if (there_ && !good_)                                                                                          \
            diag("status %d", answer_.status);                                                                         \
        const char *body_ = (want_body);                                                                               \
        if (there_ && body_)                                                                                           \
            is_bytes(answer_.body, answer_.body_len, body_, strlen(body_));                                            \
        answer_;                                                                                                       \
    })

/* The server has closed, in good order, and said nothing more. */
bool closed_after(struct site *site, struct client *c);

bool nothing_open(struct site *site);

/* Ends the clients and the worker, and checks that nothing was kept. */
void site_close(struct site *site);

void run_everywhere(void (*test)(void));

/* ---- an application ---- */

bool path_is(const struct oribi_req *req, const char *path);

/* The number behind a path that begins with `prefix`, or -1. */
long path_number(const struct oribi_req *req, const char *prefix);

static const struct oribi_header text_type = {"Content-Type", "text/plain", 12, 10};

void reply_text(struct oribi_req *req, int status, const char *text);

char big_byte(size_t i);

char *big_text(size_t n);

bool is_big_text(const char *p, size_t n);

/* Answers with the request's body, and for /place says in a header where it was kept. */
void reply_echo(struct oribi_req *req);

void reply_parts(struct oribi_req *req, size_t count);

/* /hello, /echo and /place (the body back), /path (the target back), /big/N (N bytes, freed at once), /parts/N (as N
 * pieces), /status/N. */
void route(struct oribi_req *req);

/* Bad requests and broken applications log; a test's output stays readable. */
void quiet_log(void);

#endif
