/* Shared by the C files of Oribi::Redis. Protocol, sockets, time limits and what a connection is owed are the core's
 * (oribi/redis/conn.h). Suggested reading order:
 *
 *   exchange.c   an operation: begin, send, read replies, end; what follows from each failure
 *   arguments.c  Perl's values to a command's bytes
 *   reply.c      the core's events to Perl's values
 *   names.c      what must be known of a command by its name
 *   client.c     the object
 *   waiting.c    signal handlers in the middle of a wait, TLS, and Sentinels
 *   ../Redis.xs  the methods
 *
 * An object is a blessed hash with magic that holds a struct redis_client. Perl code may die at every place that can
 * run it: signal handlers, magic and overloading of arguments, TLS. An operation that is left that way is noticed by a
 * destructor on perl's save stack, which closes the connection: a reply that was not read is nobody's. */
#ifndef ORIBI_REDIS_PERL_H
#define ORIBI_REDIS_PERL_H

#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

/* Of perls before 5.36. */
#ifndef G_LIST
#define G_LIST G_ARRAY
#endif
#ifndef TAINTING_get
#define TAINTING_get (PL_tainting)
#endif
#ifndef is_utf8_invariant_string
#define is_utf8_invariant_string(p, n) is_ascii_string(p, n)
#endif

#include <stdbool.h>
#include <stdint.h>

#include "oribi/base/clock.h"
#include "oribi/redis/conn.h"
#include "oribi/redis/retry.h"
#include "oribi/redis/sentinel.h"

/* Ours alone: nothing but the entry that perl looks for is exported. */
#pragma GCC visibility push(hidden)

enum {
    REDIS_APART_BYTES = 32 * 1024,  /* an argument this long is sent from where it lies */
    REDIS_RESERVE_BYTES = 16 << 20, /* reserved at first for an announced value; the rest when so much has come */
    REDIS_SLICE_MS = 1000,          /* a signal that comes right before a wait is seen after this time */
    REDIS_TEXT_BYTES = 256,         /* of what has failed */
};

/* Why an operation failed; names the class of the error. */
enum redis_failure {
    REDIS_FINE,
    REDIS_CONNECTION, /* refused, reset, closed by the server */
    REDIS_TIMEOUT,
    REDIS_PROTOCOL, /* not a reply, or a reply that nobody asked for */
    REDIS_USAGE,    /* the caller's mistake; nothing was sent */
};

enum redis_stage { REDIS_CONNECTING, REDIS_SENDING, REDIS_READING };

/* Commands after which a connection is not what it was. */
enum redis_special {
    REDIS_ORDINARY,
    REDIS_KEEPS_HELLO, /* sent again on each new connection, in this order */
    REDIS_KEEPS_AUTH,
    REDIS_KEEPS_SELECT,
    REDIS_PINS, /* a new connection would not do until it is … */
    REDIS_UNPINS,
    REDIS_REFUSED, /* its replies are not one for each command */
};

enum { REDIS_KEPT_COUNT = REDIS_KEEPS_SELECT + 1 };

/* An argument that is sent from where it lies, behind the first `at` bytes of the request. */
struct redis_apart {
    size_t at;
    SV *sv; /* a copy of ours (most often perl's copy on write), so that no signal handler changes it meanwhile */
};

struct redis_sentinels {
    struct oribi_redis_sentinels list;
    char service[ORIBI_REDIS_SERVICE_MAX + 1];
    char user[ORIBI_REDIS_USER_MAX + 1]; /* "": none */
    char password[ORIBI_REDIS_PASSWORD_MAX + 1];
};

struct redis_options {
    struct oribi_redis_place place;
    int64_t read_ms;                   /* conn.read_ms, but for one command */
    struct oribi_redis_tries tries;    /* none used */
    bool utf8;                         /* arguments are characters, and so are replies that are UTF-8 */
    struct redis_sentinels *sentinels; /* say where the server is; ours, or NULL */
    bool lax;                          /* without utf8: characters that are no bytes are sent as UTF-8 (Jet) */
    SV *hello;                         /* the bytes sent first on each connection, or NULL */
    int64_t hello_count;               /* commands in there */
};

struct redis_client {
    struct oribi_redis_conn conn;
    struct redis_options options;
    HV *self; /* borrowed: the object that owns us */
    HV *held; /* a reference during an operation */
    SV *tls;  /* IO::Socket::SSL, or NULL */

    bool busy;     /* an operation is under way */
    bool complete; /* the operation has left nothing behind */
    bool pinned;   /* within a transaction */
    bool pins;     /* within a transaction behind the request that is being made */

    struct oribi_buf request; /* kept for another try; conn.out is not used */
    struct redis_apart *apart;
    size_t apart_count, apart_cap;
    struct {
        char *p; /* a command that new connections repeat, or NULL */
        size_t n;
    } kept[REDIS_KEPT_COUNT];

    pid_t pid;       /* who made the connection */
    uint64_t quiet;  /* commands of noreply() since settle() */
    uint64_t unread; /* those of `quiet` whose replies had not come when the last operation ended */
    uint64_t lost;   /* those of `quiet` whose replies had not come before the connection ended */

    enum redis_failure failure;
    enum redis_stage stage;
    char text[REDIS_TEXT_BYTES]; /* what has failed */
};

/* client.c */
struct redis_client *redis_client_create(void);
struct redis_client *redis_client_like(pTHX_ const struct redis_client *old);
void redis_client_attach(pTHX_ HV *self, struct redis_client *c);
struct redis_client *redis_client_of(pTHX_ SV *object);

/* exchange.c. Replies are mortal; NULL, or fewer of them than commands: c->failure says why. */
SV *redis_command(pTHX_ struct redis_client *c, SV **args, SSize_t count, int64_t read_ms);
AV *redis_pipeline(pTHX_ struct redis_client *c, SV **commands, SSize_t count);
int redis_noreply(pTHX_ struct redis_client *c, SV **args, SSize_t count, bool one);
int redis_settle(pTHX_ struct redis_client *c);
int redis_listen(pTHX_ struct redis_client *c, SV **args, SSize_t count);
SV *redis_next_push(pTHX_ struct redis_client *c, int64_t limit_ms);
int redis_connect(pTHX_ struct redis_client *c);
void redis_close(pTHX_ struct redis_client *c);
SV *redis_failure_new(pTHX_ const struct redis_client *c);
SV *redis_jet_failure_new(pTHX_ const struct redis_client *c);
void redis_must_be_free(struct redis_client *c);
__attribute__((noreturn)) void redis_throw(pTHX_ const struct redis_client *c);
__attribute__((noreturn, format(printf, 1, 2))) void redis_throw_usage(const char *format, ...);
__attribute__((noreturn)) void redis_throw_refused(pTHX_ SV *name);

/* arguments.c */
SV **redis_looked_at(pTHX_ struct redis_client *c, SV **args, SSize_t count);
void redis_put_command(pTHX_ struct redis_client *c, SV **args, SSize_t count);
void redis_put_commands(pTHX_ struct redis_client *c, SV **commands, SSize_t count);
void redis_forget_request(pTHX_ struct redis_client *c);

/* reply.c. A reply is mortal; NULL with a code of the core's in *code. */
SV *redis_reply(pTHX_ struct redis_client *c, int *code, bool *push);
void redis_pass_push(pTHX_ struct redis_client *c, const struct oribi_redis_event *event, int *code);
SV *redis_error_new(pTHX_ const char *class, const char *text, STRLEN n);
bool redis_is_error(pTHX_ SV *reply);
SV *redis_error_text(pTHX_ SV *error);
bool redis_parse(pTHX_ SV *bytes, AV *messages, bool utf8, IV *used);

/* names.c */
bool redis_request_repeats(const struct redis_client *c);
enum redis_special redis_special_of(SV **args, SSize_t count);

/* waiting.c */
extern const struct oribi_redis_transport redis_plain;
void redis_wait_readable(pTHX_ const struct redis_client *c, int timeout_ms);
void redis_pause(pTHX_ int64_t ms);
int redis_start_tls(pTHX_ struct redis_client *c);
int redis_ask_sentinels(pTHX_ struct redis_client *c);

#pragma GCC visibility pop

#endif
