/* Shared by the C files of Oribi::Redis::Link. Suggested reading order:
 *
 *   link.c       the class: an operation from its beginning to its end, and what becomes of failures
 *   request.c    Ruby's values to a command's bytes
 *   reply.c      the reader's events to Ruby's values
 *   sentinel.c   where the master is
 *   transport.c  waiting with the VM's lock given up, fibers of a scheduler, TLS
 *
 * A link is one connection. Ruby code may raise at every place that can run it: interrupts of a wait, methods of
 * arguments. An operation that is left so leaves the connection busy, and Oribi::Redis::Link closes it. */
#ifndef ORIBI_REDIS_RUBY_LINK_H
#define ORIBI_REDIS_RUBY_LINK_H

#include <ruby.h>

#include "oribi/redis/conn.h"
#include "oribi/redis/retry.h"

#include <stdbool.h>

/* Ours alone: nothing but Init_ is exported. */
#pragma GCC visibility push(hidden)

enum {
    LINK_APART_BYTES = 32 * 1024, /* an argument this long is sent from where it lies */
};

/* An argument that is sent from where it lies, behind conn.out.p[0, at). */
struct link_apart {
    size_t at;
    VALUE text; /* frozen */
};

struct link {
    struct oribi_redis_conn conn; /* conn.context: this */
    VALUE self;
    VALUE errors; /* whose parse(text) makes the value of an error */
    VALUE io;     /* of TLS, an OpenSSL::SSL::SSLSocket; nil: a plain socket */
    VALUE waiter; /* IO over the descriptor, for a scheduler; nil: none was needed */
    VALUE kept;   /* Array: the texts of apart[] */
    struct oribi_redis_tries tries;
    struct oribi_redis_failed failed; /* the last failure; `stage` is kept up to date */
    bool opening;                     /* what is sent belongs to a new connection's beginning */
    struct link_apart *apart;
    size_t apart_count, apart_cap;
};

/* link.c. link_fail() does not return. */
struct link *link_of(VALUE self);
VALUE link_fail(struct link *link, int code, bool sending);
/* As oribi_redis_conn_connect(), with the VM's lock given up; what was open is closed. */
int link_connect_to(struct link *link, const struct oribi_redis_place *place);

/* sentinel.c. Defines Oribi::Redis::Sentinel, and what asks it. */
void sentinel_define(VALUE redis, VALUE link);

/* request.c. Appends a command, an Array, to conn.out. Raises TypeError or ArgumentError with conn.out as it was. */
void link_put_command(struct link *link, VALUE command);
void link_forget_request(struct link *link);
/* Sends what was put; as oribi_redis_conn_send(). */
int link_send(struct link *link, uint64_t quiet, uint64_t replies);

/* Link.any_named?(commands, names): whether one of the commands, an Array, has one of these names, an Array of String,
 * in any case. True also of what is no command, or whose name is neither String nor Symbol. Raises TypeError. */
VALUE link_any_named(VALUE class, VALUE commands, VALUE names);

/* reply.c. The next reply, or with is_push also a push; Qundef after a failure, whose code is in *code. Other pushes
 * before it are passed over: nobody here asks for them, and they are no replies. */
VALUE link_reply(struct link *link, int *code, bool *is_push);
/* Reads the rest of a push whose first event is known. */
void link_pass_push(struct link *link, const struct oribi_redis_event *event, int *code);

/* transport.c */
extern const struct oribi_redis_transport link_plain;
extern const struct oribi_redis_transport link_tls;

#pragma GCC visibility pop

#endif
