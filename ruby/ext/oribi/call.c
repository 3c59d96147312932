/* One request: the application is called, its answer given to the core, and what it left open is closed. This is the
 * one place where Ruby code runs under rb_protect, so that whatever it does (raise, throw, exit) comes back here and
 * the request is ended properly. Reading order: ext_call_serve, call_and_reply, protect. */
#include "ext.h"

#include "oribi/base/log.h"
#include "oribi/worker/socket.h"

static ID id_call;
static ID id_close;
static ID id_failure_page;
static ID id_log_exception;

enum { FINISHED_MAX = 1024 }; /* callbacks of one request: each may add another */

/* --- the call, seen from other sources and threads --- */

struct ext_call *ext_call_find(const struct ext_worker *worker, uint64_t serial)
{
    for (uint32_t i = 0; i < worker->thread_count; i++) {
        struct ext_call *call = worker->threads[i].call;
        if (call && call->serial == serial)
            return call;
    }
    return NULL;
}

struct waiting {
    struct oribi_req *req;
    int result;
};

static void *wait_room(void *p)
{
    struct waiting *waiting = p;
    waiting->result = oribi_reply_wait(waiting->req);
    return NULL;
}

void ext_call_without_lock(struct ext_call *call, void *(*function)(void *), void *argument)
{
    call->away++;
    ext_without_lock(function, argument, ext_thread_wake, call->thread);
    call->away--;
}

void ext_call_check_ints(struct ext_call *call)
{
    const struct ext_worker *worker = call->worker;
    uint64_t serial = call->serial;
    rb_thread_check_ints();
    if (!ext_call_find(worker, serial) || !call->req || call->ending)
        rb_raise(rb_eIOError, "closed stream");
}

void ext_call_gather(struct ext_call *call)
{
    call->ending = true;
    while (call->away > 0) {
        ext_thread_wake(call->thread);
        rb_thread_schedule();
    }
}

void ext_call_after(struct ext_call *call)
{
    if (call->after || oribi_worker_abandoned(call->worker->core))
        return;
    call->after = true;
    oribi_thread_after(ext_thread_core(call->thread));
}

int ext_call_wait_room(struct ext_call *call)
{
    struct waiting waiting = {.req = call->req};
    for (;;) {
        waiting.result = 1; /* stays when an interrupt was already waiting */
        ext_call_without_lock(call, wait_room, &waiting);
        if (waiting.result != 1)
            return waiting.result;
        if (call->ending)
            return 0; /* the core has these bytes already */
        ext_call_check_ints(call);
    }
}

/* --- one request --- */

static VALUE call_and_reply(VALUE arg)
{
    struct ext_call *call = (struct ext_call *)arg;
    if (RB_UNLIKELY(oribi_socket_called(call->req))) {
        ext_websocket_serve(call);
        return Qnil;
    }
    ext_env_build(call);
    call->response = rb_funcallv(call->worker->app, id_call, 1, &call->env);
    if (RB_UNLIKELY(oribi_worker_abandoned(call->worker->core)))
        rb_exit(EXIT_SUCCESS); /* the application forked and came back here in the child, which has nothing to answer */
    if (!call->detached)
        ext_reply_send(call);
    return Qnil;
}

static VALUE run_interrupts(VALUE arg)
{
    rb_thread_check_ints();
    return Qnil;
}

static VALUE settle_input(VALUE arg)
{
    ext_input_settle((struct ext_call *)arg);
    return Qnil;
}

static VALUE gather(VALUE arg)
{
    ext_call_gather((struct ext_call *)arg);
    return Qnil;
}

/* Nearly every body is one, and needs no close. */
static bool is_plain_array(VALUE body)
{
    return RB_TYPE_P(body, T_ARRAY) && RBASIC_CLASS(body) == rb_cArray;
}

static VALUE close_body(VALUE arg)
{
    struct ext_call *call = (struct ext_call *)arg;
    /* After a full hijack nothing has looked at what the application returned. */
    if (NIL_P(call->body) && RB_TYPE_P(call->response, T_ARRAY) && RARRAY_LEN(call->response) >= 3)
        call->body = RARRAY_AREF(call->response, 2);
    if (NIL_P(call->body) || !rb_respond_to(call->body, id_close))
        return Qnil;
    ext_call_after(call);
    rb_funcallv(call->body, id_close, 0, NULL);
    return Qnil;
}

static VALUE close_input(VALUE arg)
{
    ext_env_close((struct ext_call *)arg);
    return Qnil;
}

static VALUE call_finished(VALUE arg)
{
    struct ext_call *call = (struct ext_call *)arg;
    ext_call_after(call);
    VALUE arguments[] = {call->env, call->status, call->headers, call->error};
    return rb_funcallv(call->callback, id_call, 4, arguments);
}

static VALUE call_after_reply(VALUE arg)
{
    struct ext_call *call = (struct ext_call *)arg;
    ext_call_after(call);
    return rb_funcallv(call->callback, id_call, 0, NULL);
}

struct log_arguments {
    VALUE exception;
    const char *line;
    const char *what;
};

static VALUE log_exception(VALUE arg)
{
    struct log_arguments *log = (struct log_arguments *)arg;
    VALUE arguments[] = {log->exception, rb_str_new_cstr(log->line), rb_str_new_cstr(log->what)};
    return rb_funcallv(ext_module, id_log_exception, 3, arguments);
}

/* Notes the exception that rb_protect caught. Exceptions of the process (a signal, the interpreter's own fatal error,
 * this thread being killed) are no business of the application's request: they end the request and then the loop. All
 * others, `exit` among them, end the request only: one call must not take the connections of others down with it. In a
 * child that the application forked, every exception is the process's. Returns true for those that concern the
 * process. */
static bool note_failure(struct ext_call *call, const char *what)
{
    VALUE exception = rb_errinfo();
    if (FIXNUM_P(exception))
        return true; /* Thread#kill */
    rb_set_errinfo(Qnil);
    if (RB_SPECIAL_CONST_P(exception) || RB_BUILTIN_TYPE(exception) == T_IMEMO) {
        /* throw to a tag, break or return beyond the loop: the VM keeps no exception object for these. */
        exception = rb_exc_new_cstr(ext_error, "throw, break or return out of the application");
    }
    if (rb_obj_is_kind_of(exception, rb_eSignal) || rb_obj_is_kind_of(exception, rb_eFatal) ||
        oribi_worker_abandoned(call->worker->core)) {
        rb_set_errinfo(exception);
        return true;
    }
    if (rb_obj_is_kind_of(exception, ext_client_gone)) {
        if (call->told_gone && !call->req)
            return false; /* it came when the answer was complete */
        /* the application may raise it as well */
        call->cancelled = call->told_gone || (call->req && oribi_req_gone(call->req));
    }
    if (NIL_P(call->error))
        call->error = exception;
    if (call->cancelled)
        return false; /* a client that leaves is no mistake of the application */
    if (rb_obj_is_kind_of(exception, ext_call_timeout))
        call->timed_out = true;
    if (call->gone && rb_obj_is_kind_of(exception, ext_disconnected))
        return false; /* a client that leaves is no mistake of the application */
    struct log_arguments log = {exception, oribi_thread_line(ext_thread_core(call->thread)), what};
    int state = 0;
    oribi_thread_log_about(ext_thread_core(call->thread));
    VALUE status = rb_protect(log_exception, (VALUE)&log, &state);
    if (state) {
        rb_set_errinfo(Qnil);
        oribi_log(ORIBI_LOG_ERROR, "%s: %s: an exception of class %s that cannot be printed", log.line, what,
                  rb_obj_classname(exception));
    } else if (FIXNUM_P(status)) {
        call->refused = FIX2INT(status);
    }
    oribi_thread_log_about(NULL);
    return false;
}

/* In development a failed call is answered with a page (lib/oribi/development.rb), that of a WebSocket with the reason
 * of its close. Nil: it is not. */
static VALUE show_failure(VALUE arg)
{
    struct ext_call *call = (struct ext_call *)arg;
    if (oribi_socket_called(call->req)) {
        ext_websocket_show_failure(call);
        return Qnil;
    }
    VALUE arguments[] = {call->error, call->env};
    VALUE page = rb_funcallv(ext_module, id_failure_page, 2, arguments);
    if (!NIL_P(page) && call->req)
        ext_reply_page(call, rb_ary_entry(page, 0), rb_ary_entry(page, 1));
    return Qnil;
}

static bool can_show_failure(const struct ext_call *call)
{
    return call->req && !call->cancelled && !call->refused && !call->gone &&
           (!NIL_P(call->env) || oribi_socket_called(call->req)) &&
           RTEST(rb_obj_is_kind_of(call->error, rb_eException));
}

static VALUE exit_quietly(VALUE nothing)
{
    rb_exit(EXIT_SUCCESS);
    return nothing;
}

/* A process that the application forked wherever we ran its code came back from there: it ends as a program does, by
 * what it raised or by `exit`, and with nothing more of the request. */
static void leave_child(struct ext_call *call)
{
    call->thread->call = NULL;
    if (!call->tag)
        rb_protect(exit_quietly, Qnil, &call->tag);
    else if (!FIXNUM_P(call->pending))
        rb_set_errinfo(call->pending);
    rb_jump_tag(call->tag);
}

/* Runs one step; the first failure that concerns the process is kept until the request has been put away. */
static void protect(VALUE (*step)(VALUE), struct ext_call *call, const char *what)
{
    int state = 0;
    rb_protect(step, (VALUE)call, &state);
    if (RB_UNLIKELY(state) && note_failure(call, what) && !call->tag) {
        call->tag = state;
        call->pending = rb_errinfo();
    }
    if (RB_UNLIKELY(oribi_worker_abandoned(call->worker->core)))
        leave_child(call);
}

/* Callables that an application leaves in the environment, for the time after the answer. */
struct callbacks {
    const char *key;
    VALUE (*step)(VALUE);
    const char *what; /* a line of the log: one has failed */
    bool last_first;  /* those that are there together: the last that was added comes first */
};

static const struct callbacks finished = {"rack.response_finished", call_finished,
                                          "a rack.response_finished callback died", true};
static const struct callbacks after_reply = {"rack.after_reply", call_after_reply, "a rack.after_reply callback died",
                                             false};

/* Applications add to the Array that they find under the key, or put another in its place. */
static VALUE list_of(const struct callbacks *kind, VALUE list, VALUE ours)
{
    if (RB_LIKELY(RB_TYPE_P(list, T_ARRAY)))
        return list;
    if (!NIL_P(list))
        oribi_log(ORIBI_LOG_ERROR, "%s is a %s, not an Array: calling what was in the server's own Array", kind->key,
                  rb_obj_classname(list));
    return ours;
}

/* Callbacks that callbacks add run after all that were there. The Array is the application's: it may be frozen, and
 * change meanwhile. */
static void run_callbacks(struct ext_call *call, const struct callbacks *kind, VALUE list)
{
    long done = 0;
    long count = 0;
    while (done < RARRAY_LEN(list)) {
        long from = done;
        done = RARRAY_LEN(list);
        for (long i = from; i < done; i++) {
            long at = kind->last_first ? done - 1 - (i - from) : i;
            if (at >= RARRAY_LEN(list))
                continue;
            if (count++ == FINISHED_MAX) {
                oribi_log(ORIBI_LOG_ERROR, "%s: %d callbacks of one request have run, the others are left out",
                          kind->key, FINISHED_MAX);
                return;
            }
            call->callback = RARRAY_AREF(list, at);
            protect(kind->step, call, kind->what);
        }
    }
}

static void run_finished(struct ext_call *call)
{
    if (NIL_P(call->env)) /* it could not be made */
        return;
    VALUE list = list_of(&finished, ext_env_finished(call), call->finished);
    if (RB_UNLIKELY(RB_TYPE_P(list, T_ARRAY) && RARRAY_LEN(list) > 0))
        run_callbacks(call, &finished, list);
    list = list_of(&after_reply, ext_env_after_reply(call), call->after_reply);
    if (RB_UNLIKELY(RB_TYPE_P(list, T_ARRAY) && RARRAY_LEN(list) > 0))
        run_callbacks(call, &after_reply, list);
}

int ext_call_serve(struct ext_thread *thread, struct oribi_req *req)
{
    struct ext_worker *worker = thread->worker;
    struct ext_call call = {.worker = worker, .thread = thread, .req = req};
    call.env = call.input = call.finished = call.after_reply = call.callback = call.response = Qnil;
    call.status = call.headers = call.body = call.tie = call.stream = call.error = call.pending = Qnil;
    call.serial = ++worker->serial;
    thread->call = &call;

    protect(call_and_reply, &call, "the application died");
    if (RB_UNLIKELY(call.told_gone)) /* it may not have met the exception: what follows must not */
        protect(run_interrupts, &call, "an interrupt of the application died");
    while (RB_UNLIKELY(call.away > 0))
        protect(gather, &call, "the end of the answer died");
    if (RB_UNLIKELY(call.req))
        protect(settle_input, &call, "reading the body died");
    if (RB_UNLIKELY(call.req) && can_show_failure(&call))
        protect(show_failure, &call, "the page of this error cannot be made");
    ext_reply_fail(&call);                                    /* nothing to do when the request has been answered */
    bool called = !NIL_P(call.response) || !NIL_P(call.body); /* else it was the call of a socket, or has died */
    if (called && (!RB_TYPE_P(call.response, T_ARRAY) || !is_plain_array(call.body)))
        protect(close_body, &call, "close of the body died");
    if (RB_UNLIKELY(RB_TYPE_P(call.input, T_DATA) || RB_TYPE_P(call.input, T_FILE))) /* not one without a body */
        protect(close_input, &call, "close of the input died");
    if (call.gone && NIL_P(call.error))
        call.error = rb_exc_new_cstr(ext_disconnected, "the client has left");
    run_finished(&call);
    if (call.after)
        oribi_thread_back(ext_thread_core(thread));
    thread->call = NULL;
    if (RB_LIKELY(!call.tag))
        return 0;
    if (!FIXNUM_P(call.pending)) /* the mark of a killed thread is no exception and cannot be set */
        rb_set_errinfo(call.pending);
    return call.tag;
}

void ext_call_setup(void)
{
    id_call = rb_intern("call");
    id_close = rb_intern("close");
    id_failure_page = rb_intern("failure_page");
    id_log_exception = rb_intern("log_exception");
}
