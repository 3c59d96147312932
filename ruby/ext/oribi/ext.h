/* Shared by the sources of the extension. Reading order: worker.c (the loop), threads.c (the same with several
 * threads), call.c (one request), env.c (request to Ruby), input.c (bodies in memory), reply.c (Ruby to answer),
 * headers.c and stream.c (parts of an answer), websocket.c (handshakes and calls of sockets), events.c (event streams),
 * deadline.c (calls that take too long, and those whose client has gone), frames.c (where calls stand), settings.c
 * (options, listeners, logs), texts.c (what the command prints), process.c, prefork.c and fork.c (process control),
 * form.c, http_parser.c, multipart.c, metrics.c and publish.c (libraries for applications), ext.c (setup).
 *
 * The core never calls into Ruby, so no core frame ever lies under a Ruby frame and exceptions unwind freely. Ruby
 * code is run under rb_protect in one place, call.c. */
#ifndef ORIBI_EXT_H
#define ORIBI_EXT_H

#include <ruby.h>
#include <ruby/encoding.h>
#include <ruby/io.h>
#include <ruby/thread.h>

#include "oribi/base/error.h"
#include "oribi/http/fields.h"
#include "oribi/worker/placement/threads.h"
#include "oribi/supervisor/process.h"
#include "oribi/supervisor/title.h"
#include "oribi/worker/worker.h"
#include "oribi/worker/req.h"
#include "oribi/worker/shape.h"

enum {
    EXT_PORTS = 256, /* clients' ports whose text is kept; a power of two */
    EXT_KEYS = 256,  /* environment keys kept for fields that are not in the core's table; a power of two */
};

struct ext_worker;
struct ext_call;

/* One thread that makes calls; worker.c has the first, threads.c those of a worker with several. */
struct ext_thread {
    struct ext_worker *worker;
    struct oribi_thread *core_thread; /* NULL: the worker's only thread */
    struct ext_call *call;            /* the request being served, or NULL */
    VALUE thread;
    VALUE fiber; /* that serves */
    bool ended;  /* of several: it is to be replaced, or the worker is done */
};

/* One request on its way. Lives on the stack of call.c's ext_call_serve(), so the collector finds and pins every
 * VALUE in it. */
struct ext_call {
    struct ext_worker *worker;
    struct ext_thread *thread;
    struct oribi_req *req; /* NULL once the request has ended in the core */
    VALUE env;
    VALUE input;       /* rack.input */
    VALUE finished;    /* rack.response_finished, as we made it */
    VALUE after_reply; /* rack.after_reply, as we made it */
    VALUE request_id;  /* in env, which holds it; Qundef: none */
    VALUE callback;    /* one of them, being called */
    VALUE response;
    VALUE status;
    VALUE headers;
    VALUE body;
    VALUE tie;     /* tells the call from others: what outlives the call holds on to this, not to us */
    VALUE stream;  /* of a body that responds to call */
    VALUE error;   /* for rack.response_finished: what went wrong, or nil */
    VALUE pending; /* the failure that concerns the process and not the request */
    int tag;       /* how that failure left the application: the loop ends with it. 0: none */
    uint64_t serial;
    int code;        /* status as a number */
    bool begun;      /* oribi_reply_begin succeeded */
    bool gone;       /* the peer left */
    bool detached;   /* the socket is the application's */
    bool timed_out;  /* it failed with CallTimeout */
    int refused;     /* it failed with an error of the request that has this status; else 0 */
    bool told_gone;  /* ClientGone was raised in it, perhaps by another thread, and may be on its way */
    bool cancelled;  /* it failed with ClientGone */
    bool after;      /* the request has ended, and the application runs on */
    int64_t told_us; /* the deadline for which another thread has raised CallTimeout in this one */
    bool feeding;    /* the parts of its body are being read */
    bool joining;    /* the parts of its body are being put together without the VM lock */
    bool ending;     /* the answer ends: threads that wait for room come back */
    uint32_t away;   /* threads that are in the core for this call without the VM lock */
};

struct ext_worker {
    struct oribi_worker *core; /* NULL after close */
    struct ext_thread first;
    struct ext_thread *threads; /* &first, or those of a worker with several */
    uint32_t thread_count;
    uint32_t threads_wanted;       /* the option */
    bool leaving;                  /* of several threads: each is to end after its call */
    VALUE result;                  /* the reason to leave: what #run returns */
    VALUE ended;                   /* a Thread::Queue of the numbers of threads that have ended */
    struct oribi_process *process; /* process.c; NULL for a worker without a supervisor */
    struct oribi_title title;      /* of the process */
    struct oribi_warmup *warmup;   /* while it lasts, else NULL */
    uint64_t gc_every;   /* requests between two collections while no request waits; 0: the VM collects when it must */
    int64_t gc_idle_ms;  /* or so long after the last request; 0: not so */
    uint64_t gc_count;   /* request count at the last one */
    int64_t rest_ms;     /* when the worker came to rest */
    uint64_t rest_count; /* requests that it had taken by then */
    uint64_t serial;     /* of the request taken last: objects that outlive their request compare it */
    VALUE self;
    VALUE app;
    VALUE options;
    VALUE listeners;
    VALUE access_log;
    VALUE constants;   /* entries that all environments share */
    VALUE server_name; /* of the request before, and so on */
    VALUE server_port;
    VALUE remote_addr;
    VALUE tls_version;
    VALUE cipher;
    VALUE sni;
    VALUE tie_class;                 /* of this worker: what ext_tie_new() makes */
    VALUE handler_name;              /* of the WebSocket's call before; Qfalse: none */
    VALUE ports[EXT_PORTS];          /* Qfalse: none */
    VALUE values[ORIBI_FIELD_COUNT]; /* long values of known fields; Qfalse: none */
    VALUE keys[EXT_KEYS];            /* Qfalse: empty */
    struct oribi_shapes shapes;
    VALUE templates[ORIBI_SHAPES]; /* environments of these shapes; Qfalse: none */
    bool plain; /* environments are made key by key, since this Ruby's entries lie otherwise than entries.h says */
    bool running;
    bool early_hints; /* offered to the application */
    bool request_ids; /* each request has one: request_id */
    bool versions;    /* a client's "Version" is in the environment like any field */
    bool sendfile;    /* an answer may name a file in a header */
};

/* ext.c */
extern VALUE ext_module;
extern VALUE ext_error;        /* Oribi::Error: what the operator or the application did wrong */
extern VALUE ext_disconnected; /* Oribi::DisconnectError: the peer left */

/* worker.c */
void ext_worker_setup(void);
struct ext_worker *ext_worker_get(VALUE self);

/* Opens the core's worker. Raises Oribi::Error. `environment` is a Hash of constant entries. */
void ext_worker_open(struct ext_worker *worker, const struct oribi_worker_setup *setup, VALUE environment);

/* Nothing waits, and no call runs: the time for what would keep a request waiting. Returns for how many ms the
 * worker may sleep, -1: for ever. */
int64_t ext_worker_rest(struct ext_worker *worker);

/* Tells the core what Ruby's collector has done: when a worker begins and ends, and when oribi_worker_gc_due() says so.
 * Allocates nothing, calls no Ruby
 * code and keeps the VM lock. */
void ext_worker_note_gc(struct ext_worker *worker);

/* Runs `function` without the VM lock; `wake` ends it from any thread and is async-signal-safe: without saying so
 * Ruby would start a thread of its own for every wait. */
void ext_without_lock(void *(*function)(void *), void *argument, void (*wake)(void *), void *wake_argument);

/* Ends what `thread` waits for in the core. For ext_without_lock(). */
void ext_thread_wake(void *thread);

/* call.c */
void ext_call_setup(void);

/* Serves one request. 0, or how it ended when that concerns the process: for rb_jump_tag(). */
int ext_call_serve(struct ext_thread *thread, struct oribi_req *req);

/* The call with this serial number, or NULL when it is over. */
struct ext_call *ext_call_find(const struct ext_worker *worker, uint64_t serial);

/* Blocks without the VM lock until a streamed answer may go on. 0, or ORIBI_ECLOSED. Runs interrupts, so it may
 * raise. */
int ext_call_wait_room(struct ext_call *call);

/* Runs `function` for this call without the VM lock. */
void ext_call_without_lock(struct ext_call *call, void *(*function)(void *), void *argument);

/* Runs interrupts; raises also when the call has ended meanwhile, which it can when this is not its own thread. */
void ext_call_check_ints(struct ext_call *call);

/* The request has ended in the core, and application code follows, which has a deadline of its own; again: nothing. */
void ext_call_after(struct ext_call *call);

/* Before the request ends: other threads that are in the core for it come back. May raise, and is to be called again
 * then. */
void ext_call_gather(struct ext_call *call);

/* threads.c: the loop of a worker with several threads; what #run returns. Raises what ends the process. */
VALUE ext_threads_run(struct ext_worker *worker);
void ext_threads_setup(void);

/* env.c */
void ext_env_setup(void);

/* Fills the worker's templates; `extra` is a Hash of further constant entries. */
void ext_env_prepare(struct ext_worker *worker, const struct oribi_options *options, VALUE extra);

/* Gives the environment of call->req and fills call->env, input and finished. */
void ext_env_build(struct ext_call *call);

/* A new Array of the protocols that a client offers to change to, for a head with `upgrade`. */
VALUE ext_env_protocols(const struct oribi_head *head);

/* input.c */
void ext_input_setup(void);

/* rack.input of a call whose body is in memory. */
VALUE ext_input_new(struct ext_call *call);

/* Before the request ends: an input that nobody has read gets its copy, since the application may have kept it. */
void ext_input_settle(struct ext_call *call);

/* Gives the input its copy before the core is asked, without the VM lock, for something that may end the request:
 * nothing is read there from now on. */
void ext_input_part(struct ext_call *call);

/* True for a rack.input whose body lies in the core and of which nothing was read: `bytes` are all of it, and it
 * stands at its end from now on. They live until Ruby code runs; with ext_input_stays() before it, until the caller
 * returns. */
bool ext_input_lies(VALUE object, struct oribi_slice *bytes);

/* True when that is so, and the request cannot end before the caller has returned, whatever Ruby code the caller
 * runs. */
bool ext_input_stays(VALUE object);

/* The call, for oribi_req_piece(), of a rack.input that was taken apart and of which nothing was read; else NULL. It
 * stands at its end from now on, and the request does not end before the caller has returned. While call->feeding is
 * set, the parts stay. */
struct ext_call *ext_input_parts(VALUE object);

/* At the call's end: closes the File that rack.input is, or has become. */
void ext_input_close(struct ext_call *call);

/* Reads the input of a parser of whole bodies: a String, or a rack.input (or another object that can read), which is
 * read to its end. Gives the bytes, which live until Ruby code runs; a String may take the object's place. Raises
 * TypeError for what is neither. */
struct oribi_slice ext_input_bytes(VALUE *object);

/* The value of rack.response_finished, or of rack.after_reply, in the environment of a call that has one; nil: none. */
VALUE ext_env_finished(const struct ext_call *call);
VALUE ext_env_after_reply(const struct ext_call *call);

/* Closes what ext_env_build opened. */
void ext_env_close(struct ext_call *call);

/* A new binary String of these bytes. */
static inline VALUE ext_bytes(struct oribi_slice slice)
{
    return rb_str_new(slice.p, (long)slice.n);
}

/* The bytes of a String; they live until Ruby code runs. */
static inline struct oribi_slice ext_slice(VALUE string)
{
    return oribi_slice(RSTRING_PTR(string), (size_t)RSTRING_LEN(string));
}

/* Those of a String or nil, which has none. Raises TypeError for anything else: an object's to_s may give it. */
static inline struct oribi_slice ext_text(VALUE string)
{
    if (NIL_P(string))
        return oribi_slice(NULL, 0);
    Check_Type(string, T_STRING);
    return ext_slice(string);
}

/* headers.c */
enum { EXT_HEADERS_STACK = 48 };

struct ext_headers {
    struct oribi_header *items;
    uint32_t count;
    uint32_t cap;
    VALUE hijack;  /* under rack.hijack in a Hash; nil: nothing */
    bool special;  /* private: a name that is not sent was met */
    bool plain;    /* private: every name and value met so far is a String (or an Array of them) */
    VALUE holder;  /* private: keeps `items` when they do not fit on the stack */
    VALUE strings; /* private: keeps converted names and values */
    struct oribi_header stack[EXT_HEADERS_STACK];
};

/* Turns the application's headers into the core's form. The slices point into Ruby strings: hand them to the core
 * before anything allocates a Ruby object. Raises for headers that cannot be iterated. */
void ext_headers_collect(struct ext_headers *list, VALUE headers);
void ext_headers_setup(void);

/* metrics.c: the application's own */
void ext_metrics_setup(void);

/* publish.c */
void ext_publish_setup(void);

/* reply.c */
void ext_reply_setup(void);

/* Answers call->req with call->response, or raises; then call->req may still be open. */
void ext_reply_send(struct ext_call *call);

/* Ends the request after a failure: 500, after a CallTimeout 504, after a ClientGone no answer, or the connection is
 * cut when part of the answer was sent. Nothing to do when it has ended. */
void ext_reply_fail(struct ext_call *call);

/* Ends the request after a failure with a page and its content type, both Strings. May raise before the request has
 * ended. */
void ext_reply_page(struct ext_call *call, VALUE type, VALUE page);

/* The status of an answer after a failure. */
int ext_reply_failure_status(const struct ext_call *call);

/* Begins a streamed answer with call->code and call->headers; body_len as for oribi_reply_begin(). 0, or ORIBI_EAPP:
 * it was answered with 500. */
int ext_reply_begin(struct ext_call *call, int64_t body_len);

/* Writes one string of a streamed body, beginning the answer if need be and waiting for room. 0 or ORIBI_ECLOSED;
 * may raise. */
int ext_reply_write(struct ext_call *call, VALUE string);

/* Ends a streamed answer, also one of which nothing was written. */
void ext_reply_finish(struct ext_call *call);

/* stream.c */
void ext_stream_setup(void);

/* Objects that tie an application to its call: rack.hijack and oribi.extend_deadline. Their class belongs to the
 * worker. */
VALUE ext_tie_class_new(const struct ext_worker *worker);
VALUE ext_tie_new(struct ext_call *call);

/* The call that an object of this file belongs to, or NULL when it is over. */
struct ext_call *ext_tied_call(VALUE tied);
VALUE ext_early_hints_new(struct ext_call *call);
VALUE ext_stream_new(struct ext_call *call);

/* The body's call has returned: what it left open is ended, or given away with the socket. */
void ext_stream_leave(struct ext_call *call);

/* Takes the socket out of the core as a Ruby IO and ends the request; raises Oribi::DisconnectError when the peer
 * has left. */
VALUE ext_stream_detach(struct ext_call *call);

static inline struct oribi_thread *ext_thread_core(const struct ext_thread *thread)
{
    return thread->core_thread ? thread->core_thread : oribi_thread(thread->worker->core, 0);
}

/* websocket.c */
void ext_websocket_setup(void);

/* A handshake gets oribi.websocket in its environment. */
void ext_websocket_offer(struct ext_call *call);

/* Has the application left a handler in rack.upgrade? It has accepted the handshake then, and the answer is 101. May
 * raise. */
bool ext_websocket_upgrades(struct ext_call *call);

/* Serves a call of a socket, in the place of the application. May raise; then call->req is still open. */
void ext_websocket_serve(struct ext_call *call);

/* In development: answers a call of a WebSocket that has failed with its reason. May raise before it has. */
void ext_websocket_show_failure(struct ext_call *call);

/* events.c */
void ext_events_setup(void);

/* A request that asks for an event stream gets oribi.events. */
void ext_events_offer(struct ext_call *call);

/* deadline.c */
extern VALUE ext_call_timeout; /* Oribi::CallTimeout */
extern VALUE ext_client_gone;  /* Oribi::ClientGone */
void ext_deadline_setup(void);

/* Sets the trap that raises CallTimeout and ClientGone. Gives the signal for the core's deadline_signal; 0 on another
 * thread than the main one, which runs the traps. */
int ext_deadline_watch(struct ext_worker *worker);

/* The value of oribi.gone? in every environment of this worker: frozen, one object for all requests. */
VALUE ext_gone_new(struct ext_worker *worker);

/* oribi.extend_deadline. Raises ArgumentError for what are no seconds. */
void ext_call_extend(struct ext_call *call, VALUE seconds);

/* frames.c: from here on a call that has to be given up shows where it stands. */
void ext_frames_show(struct ext_worker *worker);

/* texts.c: what Oribi::Options can print. */
void ext_texts_init(VALUE options);
void ext_check_init(VALUE options);

/* settings.c */

/* A list of texts in C, and NULL behind them: `texts` lie in `holder`, their bytes in `copies`. */
struct ext_words {
    VALUE copies;
    VALUE holder;
    size_t count;
    const char **texts;
};

/* From an Array; to be kept by RB_GC_GUARD of both Strings while the texts are read. */
void ext_words_take(struct ext_words *words, VALUE argv);

void ext_settings_setup(void);
struct oribi_options *ext_options_get(VALUE self);
struct oribi_listeners *ext_listeners_get(VALUE self);
struct oribi_access_log *ext_access_log_get(VALUE self); /* nil: NULL */

/* fork.c */
void ext_fork_setup(void);

/* form.c: Oribi::Form and Oribi::Cookie. lib/oribi.rb has defined Oribi::Form::Error. */
void ext_form_setup(void);

/* A maximum that a program gives. Raises for what is no number, negative or, of ext_maximum(), beyond 32 bits. */
size_t ext_size(VALUE number);
uint32_t ext_maximum(VALUE number);

/* http_parser.c: Oribi::HTTPParser. */
void ext_http_parser_setup(void);

/* for_rack.c: what `require "oribi/rack"` puts in the place of Rack's parsers. */
void ext_for_rack_setup(void);

/* failure.c */
void ext_failure_setup(void);

/* process.c */
void ext_process_setup(void);

/* True when a signal wants the worker to leave its loop for a while. Cheap when there is nothing to do. */
static inline bool ext_process_leaves(const struct ext_worker *worker)
{
    return RB_UNLIKELY(oribi_process_due(worker->process)) && oribi_process_turn(worker->process);
}

void ext_process_show_title(struct ext_worker *worker);

/* prefork.c */
struct oribi_prefork;
void ext_prefork_setup(void);

/* multipart.c */

/* Defines Oribi::Multipart::Reader. lib/oribi.rb has defined Oribi::Form::Error. */
void ext_multipart_setup(void);

/* Adds what a manager was told: [traps, left]. traps [Array<Array(String, String|nil, Numeric)>]: signal, what the
 * workers get, seconds between two of them; left [Array<String>]: signals that the program handles itself. Raises
 * Oribi::Error. */
void ext_prefork_fill(struct oribi_prefork *prefork, VALUE manager);

#endif
