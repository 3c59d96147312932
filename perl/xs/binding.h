/* Shared by the C files of the Perl binding. A binding converts: request to env, the application's answer to a reply of
 * the core.
 *
 *   worker.c  the loop: take, call the application, answer; every way out of a call
 *   env.c     the PSGI environment of a request; values.h: its scalars, used again
 *   lent.c    its handles and arrays, lent to one environment after the other
 *   lazy.c    psgix.io, psgix.informational, oribi.extend_deadline and oribi.gone?, made when they are first looked
 *             at; how closures find their call
 *   reply.c   a response of any shape becomes a reply
 *   body.c    bodies that are handles or objects, and the writer of streamed answers
 *   failure.c what is said of a failed call: log, and in development a page
 *   frames.c  where a call stands that has to be given up
 *   loading.c where an application stands that takes long to load
 *   signals.c the program's own handlers, the traps of a manager, and the deadline's signal
 *   metrics.c the application's own metrics
 *   multipart.c bodies of multipart/form-data, a library for applications
 *
 * Perl code may die or exit at any line that can run it: Perl then jumps over our frames. No core function is ever
 * among them, since the core calls nobody back, and whatever must be undone afterwards stands in struct psgi_worker,
 * where worker.c finds it. */
#ifndef ORIBI_PERL_BINDING_H
#define ORIBI_PERL_BINDING_H

#define PERL_NO_GET_CONTEXT
#include "EXTERN.h"
#include "perl.h"
#include "XSUB.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/worker/placement/threads.h"
#include "oribi/supervisor/process.h"
#include "oribi/supervisor/title.h"
#include "oribi/worker/worker.h"
#include "oribi/worker/req.h"
#include "oribi/worker/shape.h"

#include "xs/env_keys.h"
#include "xs/template.h"

/* Ours alone: nothing but the entry that perl looks for is exported. */
#pragma GCC visibility push(hidden)

enum psgi_key {
#define PSGI_KEY_ENUM(id, key, when, value) PSGI_KEY_##id,
    PSGI_KEYS(PSGI_KEY_ENUM)
#undef PSGI_KEY_ENUM
        PSGI_KEY_COUNT
};

/* Methods whose name is shared between environments; others are copied. */
#define PSGI_METHODS "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"

enum { PSGI_METHOD_COUNT = sizeof(const char *[]){PSGI_METHODS} / sizeof(const char *) };

enum psgi_lazy_kind { PSGI_LAZY_IO, PSGI_LAZY_INFORMATIONAL, PSGI_LAZY_EXTEND, PSGI_LAZY_GONE, PSGI_LAZY_COUNT };

/*        take               reply, reply_file, detach
 *  NONE ──────► OPEN ───────────────────────────────────► NONE
 *                │ begin                                   ▲
 *                ▼            end, abort                   │
 *             STREAMING ───────────────────────────────────┤
 *                │ the peer has left                       │
 *                ▼            abort                        │
 *               GONE ──────────────────────────────────────┘        */
enum psgi_state { PSGI_NONE, PSGI_OPEN, PSGI_STREAMING, PSGI_GONE };

/* Values that hardly ever differ between two requests. */
enum psgi_followed {
    PSGI_FOLLOWED_NAME,
    PSGI_FOLLOWED_PORT,
    PSGI_FOLLOWED_SCHEME,
    PSGI_FOLLOWED_ADDR,
    PSGI_FOLLOWED_TLS_VERSION,
    PSGI_FOLLOWED_CIPHER,
    PSGI_FOLLOWED_SNI,
    PSGI_FOLLOWED_COUNT,
};

/* lent.c: what is lent to one environment after the other, with what it is compared with before it is lent again. */
struct psgi_glob {
    GV *glob;
    U32 flags;
    GP body;
};

struct psgi_array {
    AV *array;
    U32 flags;
};

struct psgi_input {
    struct psgi_glob glob;
    XPVIO io_body;
    U32 io_flags;
    void *layer; /* the only one of the handle */
    U32 layer_flags;
    SV *data; /* the empty string that it reads */
    U32 data_flags;
};

struct psgi_lent {
    struct psgi_input input;
    struct psgi_glob errors;
    struct psgi_array version;
    U32 version_flags; /* of its two numbers */
    struct psgi_array cleanup_handlers;
    SV *lazy[PSGI_LAZY_COUNT]; /* magical */
};

struct psgi_worker {
    struct oribi_worker *core;
    struct oribi_process *process; /* link to the supervisor; NULL for a worker that has none */
    struct oribi_title title;      /* of the process */
    struct oribi_warmup *warmup;   /* while it lasts, else NULL */
    bool early_hints;              /* psgix.informational is offered */
    bool request_ids;              /* each request has one: request_id */
    bool sendfile;                 /* an answer may name a file in a header */
    const char *sendfile_type;     /* plack.xsendfile.type, or NULL */
    char *accel_mapping;           /* what X-Accel-Mapping would say, or NULL */
    SV *self;                      /* the scalar that owns this struct; not counted */
    SV *app;                       /* the code reference; counted */
    SV *answer;                    /* code of ours that is called inside an eval; counted */
    SV *signals;                   /* the same */
    SV *close;                     /* the same */
    SV *failure_page;              /* in development: Perl code that gives the page of an error; counted */
    SV *die_handler;               /* code that keeps the frames of a die; counted. NULL: production */
    void *interpreter;
    void *stack;       /* the PERL_SI on which it calls the application */
    char stands[4096]; /* where the call stood when its deadline passed, innermost first */
    size_t stands_len; /* its bytes; 0: nothing is known */

    /* the current call */
    struct oribi_req *req; /* NULL in state NONE */
    enum psgi_state state;
    UV serial;                       /* of the call: closures of an earlier one are stale */
    bool looked_at[PSGI_LAZY_COUNT]; /* what the application has read of lazy.c's values */
    unsigned classes_loaded;         /* bits of lazy.c's socket_classes, of this interpreter */
    bool responded;                  /* the responder of a delayed answer was called */
    bool told_gone;                  /* it dies, or has died, because its client has gone */
    SV *writer;                      /* refers to the one of a delayed answer; counted. NULL: there was none yet */
    IV write_count;                  /* calls of its writer */
    bool harakiri;                   /* the application asked for this worker's end */
    bool harakiri_unclear;           /* its value died when it was asked, so it is not known; of this call */
    bool after;                      /* the request has ended, and the application runs on */
    struct {
        GV *glob;     /* psgi.input of a body in memory; both counted */
        SV *data;     /* the body's bytes, which are the core's; NULL: none, or no longer */
        bool feeding; /* its parts are being read */
        int error;    /* errno, when the body's file cannot be given to the application; 0 */
    } input;
    SV *open_body; /* an object whose close() is owed; counted */

    /* env.c */
    /* of our keys alone: whether the client has an address, whether a few fields have room or a browser's */
    struct psgi_template templates[ORIBI_SHAPE_CLIENTS][2];
    struct oribi_shapes shapes;
    struct psgi_template shape_templates[ORIBI_SHAPES]; /* of these shapes */
    struct psgi_template *used;                         /* whose copy the last environment is; NULL: none */
    uint32_t small_fields;                              /* so many fields have room in a table of SMALL_ROOM */
    bool multiprocess;
    SV *keys[PSGI_KEY_COUNT];
    SV *field_keys[ORIBI_FIELD_COUNT];
    SV *methods[PSGI_METHOD_COUNT];
    SV *protocols[3];
    SV *on;
    SV *empty;
    SV *followed[PSGI_FOLLOWED_COUNT]; /* as in the last request; shared texts */
    struct psgi_made made;
    struct psgi_lent lent;

    /* reply.c: grown, never shrunk */
    struct oribi_header *headers;
    size_t headers_cap;
    uint32_t header_count;
    int status;
    struct iovec *iov;
    size_t iov_cap;
    size_t iov_count;
    char reason[256]; /* after PSGI_BAD: what is wrong with the answer */
};

/* Results of the conversions below. */
enum {
    PSGI_DONE = 0,
    PSGI_SLOW = 1, /* needs Perl code (overloading, ties, objects): call the function that may die */
    PSGI_BAD = -1, /* not a PSGI response; w->reason says why, empty when the core has logged it */
};

/* --- worker.c --- */

/* Serves until the core says that it is done: then false. True in between, when a mold is to be forked off this
 * worker; then call it again. */
bool psgi_worker_run(pTHX_ struct psgi_worker *w);

/* Makes this the process's title and leaves the value of $0 alone. */
void psgi_title(pTHX_ const char *text);

/* Gives a worker around the core's, which it takes, as its options say. `self` is the scalar that will hold it. Dies
 * if there is no memory. */
struct psgi_worker *psgi_worker_new(pTHX_ struct oribi_worker *core, const struct oribi_options *options, SV *self,
                                    SV *app, bool multiprocess);

/* Frees w and destroys the core's worker. */
void psgi_worker_free(pTHX_ struct psgi_worker *w);

/* True: the last eval has died. Asks no object, whose code might die outside of an eval. */
static inline bool psgi_exception_pending(pTHX)
{
    return SvROK(ERRSV) || (SvPOK(ERRSV) && SvCUR(ERRSV) > 0);
}

/* In a child that the application forked, after an eval: ends it as a script ends, by exit() or by what it died of.
 * Elsewhere it does nothing. */
void psgi_leave_child(pTHX_ struct psgi_worker *w);

/* The request has ended in the core. */
void psgi_call_ended(struct psgi_worker *w);

/* The request has ended, and application code follows, which has a deadline of its own. A second call does nothing. */
void psgi_after(struct psgi_worker *w);

/* "GET /path" of the current or last request, for log lines. */
const char *psgi_line(const struct psgi_worker *w);

/* --- env.c --- */

void psgi_env_init(pTHX_ struct psgi_worker *w, bool multiprocess);
void psgi_env_deinit(pTHX_ struct psgi_worker *w);

/* Gives the environment of a request; NULL for a path with a bad percent escape, which the core has answered. Runs
 * no Perl code. */
HV *psgi_env_build(pTHX_ struct psgi_worker *w, struct oribi_req *req);

/* The request has ended. Keeps the environment for the next one if it is a copy of the template (NULL: of none), and
 * only the caller has a reference to it: then the values that something else refers to, or that the application has
 * changed, end now. */
void psgi_env_end(pTHX_ struct psgi_worker *w, struct psgi_template *template, HV *env);

/* The value of one of our keys in an environment, or NULL. */
SV *psgi_env_get(pTHX_ struct psgi_worker *w, HV *env, enum psgi_key key);

/* --- lent.c --- */

void psgi_lent_init(pTHX_ struct psgi_worker *w);
void psgi_lent_deinit(pTHX_ struct psgi_worker *w);

/* The glob for the psgi.input of a request without a body; the caller counts its own reference. */
static inline SV *psgi_lent_input(const struct psgi_worker *w)
{
    return (SV *)w->lent.input.glob.glob;
}

/* After the environment was freed, or kept by the application: whatever it has changed, or still holds, is replaced. */
void psgi_lent_recycle(pTHX_ struct psgi_worker *w);

/* --- input.c --- */

/* psgi.input of a request with a body, counted; undef when a descriptor cannot be had. */
SV *psgi_input_new(pTHX_ struct psgi_worker *w, const struct oribi_req *req);

/* Before the answer: the bytes of a body in memory are about to end. The application gets a copy where it can still
 * read its input; `keeps`: it may, whatever can be seen. */
void psgi_input_settle(pTHX_ struct psgi_worker *w, bool keeps);

/* Settles the input as psgi_input_settle() does, when the application has returned `res`. */
void psgi_input_answered(pTHX_ struct psgi_worker *w, SV *env, SV *res);

/* Of an Oribi::PartedInput (a reference): the request, while its body is in parts; else NULL. And a new descriptor of
 * the whole body in a file, -1: there is none, or no longer. */
struct oribi_req *psgi_input_parts(pTHX_ SV *object);
struct psgi_worker *psgi_input_worker(pTHX_ SV *object);
int psgi_input_join(pTHX_ SV *object);

/* A glob with a handle that reads: of `fp`, which it takes (NULL gives NULL), and of a string, which it shares. */
GV *psgi_input_handle(pTHX_ PerlIO *fp);
GV *psgi_input_on_string(pTHX_ SV *data);

/* A reference, mortal, to the bytes of a psgi.input in memory, wherever the handle stands. Of ours, which nobody can
 * change, and which live until the application returns; or of a plain string of the program's. NULL: it is neither, or
 * has layers. */
SV *psgi_input_lies(pTHX_ SV *input);

/* Is `data`, which psgi_input_lies() refers to, bytes of ours? Is it bytes of the program's, some, without code behind
 * them? */
bool psgi_input_is_ours(pTHX_ SV *data);
bool psgi_input_is_plain(SV *data);

/* The descriptor (borrowed) of a plain handle on a regular file, else -1. */
int psgi_input_file(pTHX_ SV *input);

/* --- lazy.c --- */

/* Gives a scalar whose value is made, for the call of that moment, when it is first read. */
SV *psgi_lazy_new(pTHX_ struct psgi_worker *w, enum psgi_lazy_kind kind);

/* Takes it back, if there is one; other holders of it read undef from then on. */
void psgi_lazy_part(pTHX_ SV *sv);

/* Before an answer, and before each part of one: what the application did with psgix.io is over. The connection
 * closes behind the answer, and the socket is non-blocking again. Nothing to do when the application did not look
 * at it. */
void psgi_socket_back(struct psgi_worker *w);

/* True while the scalar is unwritten, nothing was made, and nothing but the caller knows it: it may be lent to
 * the next environment. */
bool psgi_lazy_fresh(const SV *sv);

/* Binds `sv` (a code reference's code, an object's scalar) to the current call; keeps the worker alive. */
void psgi_bind(pTHX_ struct psgi_worker *w, SV *sv);

/* The worker whose current call `sv` was bound to; NULL when that call is over: answered, or with `running` when the
 * application has returned as well. */
struct psgi_worker *psgi_bound(pTHX_ SV *sv);
struct psgi_worker *psgi_bound_running(pTHX_ SV *sv);

/* --- reply.c --- */

/* Answers with `res` without running Perl code: PSGI_SLOW if that cannot be done, and nothing has happened then. */
int psgi_reply_plain(pTHX_ struct psgi_worker *w, SV *res);

/* Answers with `res`, whatever it is. May die. */
int psgi_reply_any(pTHX_ struct psgi_worker *w, SV *res);

/* Converts status and headers into w->status and w->headers. May run Perl code. PSGI_DONE or PSGI_BAD. */
int psgi_reply_headers(pTHX_ struct psgi_worker *w, SV *status, SV *headers);

/* Does reading this value run Perl code? Overloading and magic do, but not that which only says that a value is
 * tainted. */
static inline bool psgi_runs_code(SV *sv)
{
    if (LIKELY(!SvGMAGICAL(sv) && !(SvROK(sv) && SvAMAGIC(sv))))
        return false;
    if (SvROK(sv) && SvAMAGIC(sv))
        return true;
    const MAGIC *magic = SvMAGIC(sv);
    return !magic || magic->mg_type != PERL_MAGIC_taint || magic->mg_moremagic;
}

/* A mortal scalar with what `sv` says: tied values are read, overloaded objects printed. Runs Perl code, which may free
 * `sv`. */
SV *psgi_settled(pTHX_ SV *sv);

/* Bytes of a plain scalar. PSGI_SLOW: reading it runs code. PSGI_BAD: w->reason starts with `what`. An undefined
 * value gives NULL. */
int psgi_bytes(pTHX_ struct psgi_worker *w, SV *sv, const char **p, STRLEN *n, const char *what, IV index);

/* After a reply call of the core: PSGI_DONE, the call has ended; PSGI_BAD, it is open still, and the core has logged
 * why. */
int psgi_replied(struct psgi_worker *w, int result);

/* --- body.c --- */

/* Remembers that close() is owed to this body, unless it is a plain array. */
void psgi_body_keep(pTHX_ struct psgi_worker *w, SV *body);

/* Code that closes a body; counted, the caller's. */
SV *psgi_body_closer(pTHX);

/* Calls close() on what was kept, once. Never dies. */
void psgi_body_close(pTHX_ struct psgi_worker *w);

/* True for a handle, and for an object that is read by its getline(), as it says itself. May die. */
bool psgi_body_reads(pTHX_ SV *body);

/* The file that a body stands for which is no handle, as it says itself: mortal, or NULL. May die. */
SV *psgi_body_path(pTHX_ SV *body);

/* Answers with w->status, w->headers and a body that is read; `path` as above. May die. */
int psgi_body_send(pTHX_ struct psgi_worker *w, SV *body, SV *path);

/* Starts a streamed answer with w->status and w->headers. PSGI_DONE or PSGI_BAD. */
int psgi_stream_begin(struct psgi_worker *w);

/* Writes; blocks while too much is queued. False when the peer has left. May die (a signal handler of the
 * application). */
bool psgi_stream_write(pTHX_ struct psgi_worker *w, const char *p, STRLEN n);

/* Ends the stream; after the peer has left only the call. */
void psgi_stream_end(struct psgi_worker *w);

/* Takes the connection out of the core: it lives on in the handles that the application made from psgix.io. */
void psgi_detach(struct psgi_worker *w);

/* Gives the object that a responder returns for a streamed answer. */
SV *psgi_writer(pTHX_ struct psgi_worker *w);

/* Defines the writer's methods. */
void psgi_writer_boot(pTHX);

/* --- frames.c: for oribi_worker_show_frames() --- */

size_t psgi_frames(void *worker, uint32_t hand, bool own_thread, char *dst, size_t cap);

/* Writes the frames of a call that is told of its deadline to worker->stands, in the handler of that signal. */
void psgi_note_frames(struct psgi_worker *worker);

/* --- loading.c --- */

struct psgi_loading;

/* From here to the end of the watch the supervisor hears of what takes long to load where it stands. NULL: it does
 * not. In a mold, by the interpreter's thread; end takes the watch, or NULL. */
struct psgi_loading *psgi_loading_watch(pTHX_ struct oribi_process *process);
void psgi_loading_end(pTHX_ struct psgi_loading *loading);

/* --- signals.c --- */

struct oribi_prefork;

/* Gives the handlers of all signals that the core may take, as bytes in a scalar; restore puts them back, that of
 * SIGCHLD only with `child`, and dies for any other scalar. */
SV *psgi_signals_keep(pTHX);
void psgi_signals_restore(pTHX_ SV *kept, bool child);

/* When this module is loaded: from here on Perl's own handler ends a wait between psgi_wait_begin() and
 * psgi_wait_end(). */
void psgi_signals_boot(pTHX);

/* In a worker of a server: what the application does to %SIG leaves the handlers of the core in force. */
void psgi_signals_guard(pTHX);

/* The deadline's signal is about the calls of this worker; NULL: of none. */
void psgi_signals_watch(struct psgi_worker *w);

/* True while a call runs that is over call_timeout: what the handler of the core's deadline_signal asks. */
bool psgi_worker_overdue(const struct psgi_worker *w);

/* True once for a call whose client has gone and which is to end for that (cancel_gone): the same handler asks. */
bool psgi_worker_take_gone(struct psgi_worker *w);

/* Was the call that has died of Oribi::ClientGone told so, or has its client gone indeed? */
bool psgi_cancelled(const struct psgi_worker *w);

/* Around a wait in the core, which `wake` ends, and which may be entered only after true: after false a handler of
 * Perl's is to run first. */
bool psgi_wait_begin(pTHX_ void (*wake)(void *), void *argument);
void psgi_wait_end(void);
void psgi_wake_worker(void *worker);
void psgi_wake_process(void *process);

/* Adds what a manager was told: [traps, left]. A trap is [signal, what the workers get or "", seconds between two of
 * them]; left are names of signals that the program handles itself. Dies for what cannot be trapped or does not
 * exist. */
void psgi_signals_trap(pTHX_ struct oribi_prefork *prefork, AV *manager);

/* metrics.c: objects of Oribi::Metrics::Metric. Mistakes of the program croak. Arguments are borrowed, results new;
 * `options` are count names and values. */
enum psgi_metric_fact { PSGI_METRIC_NAME, PSGI_METRIC_HELP, PSGI_METRIC_TYPE, PSGI_METRIC_LABELS };
SV *psgi_metric_make(pTHX_ SV *kind, SV *name, SV *help, SV *labels, SV *buckets, SV *aggregate);
SV *psgi_metric_with(pTHX_ SV *self, SV **pairs, I32 count);
void psgi_metric_increment(pTHX_ SV *self, SV **options, I32 count);

/* change: enum oribi_app_change; value NULL: what the option `by` says, or 1. */
void psgi_metric_change(pTHX_ SV *self, int change, SV *value, SV **options, I32 count);
SV *psgi_metric_get(pTHX_ SV *self, SV **options, I32 count);
SV *psgi_metric_about(pTHX_ SV *self, int fact);
void psgi_metric_free(pTHX_ SV *self);

/* form.c: dies with an Oribi::Form::Error, as its `throw` makes it for the place of the call. */
__attribute__((noreturn)) void psgi_form_fail(pTHX_ int status, const char *text);

/* The status of an Oribi::Form::Error, which says that the request was at fault: 400 to 499. 0: `error` is none. */
int psgi_form_error_status(pTHX_ SV *error);

/* --- failure.c --- */

/* Logs $@, which is not empty: "GET /path: what: text". Empties $@ where printing it needs Perl code. */
void psgi_log_failure(pTHX_ const struct psgi_worker *w, enum oribi_log_level level, const char *what);

/* The text of an exception or any other value, never dying: an object that cannot be printed is named by its class.
 * Mortal. */
SV *psgi_text(pTHX_ SV *sv);

/* From here on failed calls of this worker are answered with pages: `page` gives them, `die_handler` is $SIG{__DIE__}
 * of each call. */
void psgi_failure_show(pTHX_ struct psgi_worker *w, SV *page, SV *die_handler);

/* $SIG{__DIE__} until the end of the scope. Call it where failure_page is set. */
void psgi_failure_watch(pTHX_ struct psgi_worker *w);

/* Answers the call, which has not begun its answer, with the page of this error and ends it; without an environment,
 * as the call of a WebSocket that it is, with the reason of its close. False: it does not, and the log knows why. Call
 * it where failure_page is set. */
bool psgi_failure_answer(pTHX_ struct psgi_worker *w, SV *error, SV *env, int status);

/* multipart.c: objects of Oribi::Multipart::Reader. Mistakes of the body die with an Oribi::Form::Error, which must be
 * loaded. `open` is a code reference that takes a file name, and for an upload that is a file already its descriptor;
 * it gives a handle and the name of its file. Arguments are borrowed, results new. */
SV *psgi_reader_new(pTHX_ SV *boundary, UV parts_max, UV files_max, UV head_max, UV memory_max, SV *open);
void psgi_reader_feed(pTHX_ SV *self, SV *piece);

/* The first n bytes of a plain handle on a file, not through the handle, which stays where it is. False: it is none, or
 * has fewer, and some may have been taken. */
bool psgi_reader_feed_file(pTHX_ SV *self, SV *input, UV n);

/* The body of an Oribi::PartedInput. False: it is no longer in parts. */
bool psgi_reader_feed_parts(pTHX_ SV *self, SV *object);
void psgi_reader_finish(pTHX_ SV *self);
SV *psgi_reader_list(pTHX_ SV *self, int uploads); /* a reference to the array of fields, or of uploads */
void psgi_reader_free(pTHX_ SV *self);
SV *psgi_multipart_boundary(pTHX_ SV *content_type); /* undef: none */

/* form.c: defines the functions of Oribi::Form and Oribi::Cookie. */
void psgi_form_boot(pTHX);

/* http_parser.c: defines the functions of Oribi::HTTPParser. */
void psgi_http_parser_boot(pTHX);

/* The bytes of a scalar; of an undefined one none. Croaks for wide characters, and may run Perl code. */
static inline struct oribi_slice psgi_octets(pTHX_ SV *sv)
{
    STRLEN n;
    if (!SvOK(sv))
        return oribi_slice(NULL, 0);
    const char *p = SvPVbyte(sv, n);
    return oribi_slice(p, n);
}

/* events.c */
void psgi_events_boot(pTHX);

/* A request that asks for an event stream gets oribi.events. */
void psgi_events_offer(pTHX_ struct psgi_worker *w, HV *env, struct oribi_req *req);

/* websocket.c */
void psgi_websocket_boot(pTHX);

/* A handshake gets oribi.websocket. For a head with `upgrade`. */
void psgi_websocket_offer(pTHX_ struct psgi_worker *w, HV *env, struct oribi_req *req);

/* Calls the handler of a socket. False: it has died, with $@. `known`: there is such a handler. */
bool psgi_websocket_call(pTHX_ struct psgi_worker *w, bool *known);

#pragma GCC visibility pop

#endif
