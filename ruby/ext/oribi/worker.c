/* The loop: take a request, call the application, answer. This is the one place where Ruby code runs under
 * rb_protect, so that whatever it does (raise, throw, exit) comes back here and the request is ended properly. */
#include "ext.h"

#include "oribi/base/clock.h"
#include "oribi/base/log.h"

static ID id_call;
static ID id_close;
static ID id_log_exception;
static ID id_start;
static VALUE key_finished;

enum { FINISHED_MAX = 1024 }; /* callbacks of one request: each may add another */

/* --- the object --- */

/* Calls `visit` with the place of every reference. */
static void each_reference(struct ext_worker *worker, void (*visit)(VALUE *))
{
    visit(&worker->self);
    visit(&worker->result);
    visit(&worker->ended);
    visit(&worker->first.thread);
    for (uint32_t i = 0; worker->threads != &worker->first && i < worker->thread_count; i++)
        visit(&worker->threads[i].thread);
    visit(&worker->app);
    visit(&worker->options);
    visit(&worker->listeners);
    visit(&worker->access_log);
    visit(&worker->constants);
    visit(&worker->server_name);
    visit(&worker->server_port);
    visit(&worker->remote_addr);
    for (int i = 0; i < ORIBI_FIELD_COUNT; i++)
        visit(&worker->values[i]);
    for (int i = 0; i < EXT_KEYS; i++)
        visit(&worker->keys[i]);
    for (int i = 0; i < EXT_SHAPES; i++)
        visit(&worker->shapes[i].template);
}

static void mark(VALUE *reference)
{
    rb_gc_mark_movable(*reference); /* empty places are Qfalse and Qnil, which it passes over */
}

static void follow(VALUE *reference)
{
    *reference = rb_gc_location(*reference);
}

static void worker_mark(void *p)
{
    each_reference(p, mark);
}

static void worker_compact(void *p)
{
    each_reference(p, follow);
}

static void worker_free(void *p)
{
    struct ext_worker *worker = p;
    if (worker->core)
        oribi_worker_destroy(worker->core);
    xfree(worker);
}

static size_t worker_size(const void *p)
{
    return sizeof(struct ext_worker);
}

static const rb_data_type_t worker_type = {
    .wrap_struct_name = "Oribi::Worker",
    .function = {.dmark = worker_mark, .dfree = worker_free, .dsize = worker_size, .dcompact = worker_compact},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

struct ext_worker *ext_worker_get(VALUE self)
{
    return rb_check_typeddata(self, &worker_type);
}

static struct ext_worker *open_worker(VALUE self)
{
    struct ext_worker *worker = ext_worker_get(self);
    if (!worker->core)
        rb_raise(ext_error, "the worker is closed");
    return worker;
}

/* --- waiting without the VM lock --- */

struct blocking {
    struct ext_worker *worker;
    struct oribi_req *req;
    int result;
    int64_t wait_ms;
};

struct ext_call *ext_worker_call(const struct ext_worker *worker, uint64_t serial)
{
    for (uint32_t i = 0; i < worker->thread_count; i++) {
        struct ext_call *call = worker->threads[i].call;
        if (call && call->serial == serial)
            return call;
    }
    return NULL;
}

static void *wait_events(void *p)
{
    struct blocking *blocking = p;
    oribi_worker_wait_for(blocking->worker->core, blocking->wait_ms);
    return NULL;
}

static void *wait_room(void *p)
{
    struct blocking *blocking = p;
    blocking->result = oribi_reply_wait(blocking->req);
    return NULL;
}

void ext_thread_wake(void *p)
{
    const struct ext_thread *thread = p;
    if (thread->core_thread)
        oribi_thread_wake(thread->core_thread);
    else
        oribi_worker_wake(thread->worker->core);
}

void ext_without_lock(void *(*function)(void *), void *argument, void (*wake)(void *), void *wake_argument)
{
    rb_nogvl(function, argument, wake, wake_argument, RB_NOGVL_UBF_ASYNC_SAFE | RB_NOGVL_INTR_FAIL);
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
    if (!ext_worker_call(worker, serial) || !call->req || call->ending)
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
    oribi_thread_after(ext_thread_hand(call->thread));
}

int ext_worker_wait_room(struct ext_call *call)
{
    struct blocking blocking = {.worker = call->worker, .req = call->req};
    for (;;) {
        blocking.result = 1; /* stays when an interrupt was already waiting */
        ext_call_without_lock(call, wait_room, &blocking);
        if (blocking.result != 1)
            return blocking.result;
        if (call->ending)
            return 0; /* the core has these bytes already */
        ext_call_check_ints(call);
    }
}

/* --- one request --- */

static VALUE call_and_reply(VALUE arg)
{
    struct ext_call *call = (struct ext_call *)arg;
    ext_env_build(call);
    call->response = rb_funcallv(call->worker->app, id_call, 1, &call->env);
    if (RB_UNLIKELY(oribi_worker_abandoned(call->worker->core)))
        rb_exit(EXIT_SUCCESS); /* the application forked and came back here in the child, which has nothing to answer */
    if (!call->detached)
        ext_reply_send(call);
    return Qnil;
}

static VALUE gather(VALUE arg)
{
    ext_call_gather((struct ext_call *)arg);
    return Qnil;
}

/* Nearly every body, and one that nobody has to close. */
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

/* What rb_protect caught. Exceptions of the process (a signal, the interpreter's own fatal error, this thread being
 * killed) are no business of the application's request: they end the request and then the loop. All others, `exit`
 * among them, end the request only: one call must not take the connections of others down with it. In a child that
 * the application forked, every exception is the process's. Returns true for those that concern the process. */
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
    if (NIL_P(call->error))
        call->error = exception;
    if (rb_obj_is_kind_of(exception, ext_call_timeout))
        call->timed_out = true;
    if (call->gone && rb_obj_is_kind_of(exception, ext_disconnected))
        return false; /* a client that leaves is nobody's mistake */
    struct log_arguments log = {exception, oribi_thread_line(ext_thread_hand(call->thread)), what};
    int state = 0;
    rb_protect(log_exception, (VALUE)&log, &state);
    if (state) {
        rb_set_errinfo(Qnil);
        oribi_log(ORIBI_LOG_ERROR, "%s: %s: an exception of class %s that cannot be printed", log.line, what,
                  rb_obj_classname(exception));
    }
    return false;
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

/* Applications add to the Array that they find under rack.response_finished, or put another in its place. */
static VALUE finished_list(const struct ext_call *call)
{
    if (NIL_P(call->env)) /* it could not be made */
        return Qnil;
    VALUE list = rb_hash_lookup(call->env, key_finished);
    if (RB_LIKELY(RB_TYPE_P(list, T_ARRAY)))
        return list;
    if (!NIL_P(list))
        oribi_log(ORIBI_LOG_ERROR, "rack.response_finished has become a %s: what was in its Array is called",
                  rb_obj_classname(list));
    return call->finished;
}

/* The last that was added comes first; what callbacks add comes after all that were there. The Array is the
 * application's: it may be frozen, and change meanwhile. */
static void run_finished(struct ext_call *call, VALUE list)
{
    long done = 0;
    long count = 0;
    while (done < RARRAY_LEN(list)) {
        long from = done;
        done = RARRAY_LEN(list);
        for (long i = done - 1; i >= from; i--) {
            if (i >= RARRAY_LEN(list))
                continue;
            if (count++ == FINISHED_MAX) {
                oribi_log(ORIBI_LOG_ERROR,
                          "rack.response_finished: %d callbacks of one request have run, the others are left out",
                          FINISHED_MAX);
                return;
            }
            call->callback = RARRAY_AREF(list, i);
            protect(call_finished, call, "a rack.response_finished callback died");
        }
    }
}

int ext_worker_serve(struct ext_thread *thread, struct oribi_req *req)
{
    struct ext_worker *worker = thread->worker;
    struct ext_call call = {.worker = worker, .thread = thread, .req = req};
    call.env = call.input = call.finished = call.callback = call.response = Qnil;
    call.status = call.headers = call.body = call.tie = call.stream = call.error = call.pending = Qnil;
    call.serial = ++worker->serial;
    thread->call = &call;

    protect(call_and_reply, &call, "the application died");
    while (RB_UNLIKELY(call.away > 0))
        protect(gather, &call, "the end of the answer died");
    ext_reply_fail(&call); /* nothing to do when the request has been answered */
    if (!RB_TYPE_P(call.response, T_ARRAY) || !is_plain_array(call.body))
        protect(close_body, &call, "close of the body died");
    if (!NIL_P(call.input))
        protect(close_input, &call, "close of the input died");
    if (call.gone && NIL_P(call.error))
        call.error = rb_exc_new_cstr(ext_disconnected, "the client has left");
    VALUE finished = finished_list(&call);
    if (RB_UNLIKELY(RB_TYPE_P(finished, T_ARRAY) && RARRAY_LEN(finished) > 0))
        run_finished(&call, finished);
    if (call.after)
        oribi_thread_back(ext_thread_hand(thread));
    thread->call = NULL;
    if (RB_LIKELY(!call.tag))
        return 0;
    if (!FIXNUM_P(call.pending)) /* the mark of a killed thread is no exception and cannot be set */
        rb_set_errinfo(call.pending);
    return call.tag;
}

/* --- methods --- */

static VALUE worker_alloc(VALUE class)
{
    struct ext_worker *worker;
    VALUE self = TypedData_Make_Struct(class, struct ext_worker, &worker_type, worker);
    worker->self = self;
    worker->first = (struct ext_thread){.worker = worker, .thread = Qnil};
    worker->threads = &worker->first;
    worker->thread_count = 1;
    worker->result = worker->ended = Qnil;
    worker->app = worker->options = worker->listeners = worker->access_log = Qnil;
    worker->constants = Qnil;
    worker->server_name = worker->server_port = worker->remote_addr = Qnil;
    return self;
}

/* A worker draws its own number from the range, so that not all collect at once. */
static void plan_collections(struct ext_worker *worker, const struct oribi_options *options)
{
    const struct oribi_range *range = &options->oob_gc_requests;
    if (options->oob_gc && options->oob_gc_idle_ms)
        worker->gc_idle_ms = options->oob_gc_idle_ms;
    else if (options->oob_gc && range->max > 0)
        worker->gc_every = range->min + rb_genrand_ulong_limited(range->max - range->min);
}

void ext_worker_open(struct ext_worker *worker, const struct oribi_worker_setup *setup, VALUE environment)
{
    if (worker->core)
        rb_raise(ext_error, "the worker is open already");
    Check_Type(environment, T_HASH);
    worker->threads_wanted = setup->options->threads;
    ext_env_prepare(worker, environment);
    plan_collections(worker, setup->options);
    worker->early_hints = setup->options->early_hints;
    struct oribi_worker_setup with_signal = *setup;
    if (setup->options->call_timeout_ms)
        with_signal.deadline_signal = ext_deadline_watch(worker);
    int result = oribi_worker_create(&with_signal, &worker->core);
    if (result < 0) {
        worker->core = NULL;
        rb_raise(ext_error, "cannot start a worker: %s", oribi_error_text(result));
    }
    ext_frames_show(worker);
}

/* A worker over open listeners, for the calling process and thread.
 *
 * @param options [Oribi::Options]
 * @param listeners [Oribi::Listeners]
 * @param access_log [Oribi::AccessLog, nil]
 * @param environment [Hash] constant entries of every request's environment */
static VALUE worker_initialize(VALUE self, VALUE options, VALUE listeners, VALUE access_log, VALUE environment)
{
    struct ext_worker *worker = ext_worker_get(self);
    struct oribi_worker_setup setup = {
        .options = ext_options_get(options),
        .listeners = ext_listeners_get(listeners),
        .access_log = ext_access_log_get(access_log),
        .life_fd = -1,
    };
    RB_OBJ_WRITE(self, &worker->options, options);
    RB_OBJ_WRITE(self, &worker->listeners, listeners);
    RB_OBJ_WRITE(self, &worker->access_log, access_log);
    ext_worker_open(worker, &setup, environment);
    return self;
}

enum { FOR_EVER = -1 };

static int64_t sooner(int64_t a_ms, int64_t b_ms)
{
    return a_ms == FOR_EVER || (b_ms != FOR_EVER && b_ms < a_ms) ? b_ms : a_ms;
}

/* How long until garbage is to be collected, 0 when it has been: new requests may have come meanwhile. */
static int64_t collect(struct ext_worker *worker, uint64_t count, int64_t now_ms)
{
    if ((!worker->gc_every && !worker->gc_idle_ms) || count == worker->gc_count)
        return FOR_EVER;
    if (worker->gc_every && count - worker->gc_count < worker->gc_every)
        return FOR_EVER;
    int64_t due_ms = worker->rest_ms + worker->gc_idle_ms;
    if (worker->gc_idle_ms && now_ms < due_ms)
        return due_ms - now_ms;
    /* unlike rb_gc_start() it collects also where the application has disabled GC */
    rb_funcallv(rb_mGC, id_start, 0, NULL);
    worker->gc_count = count;
    return 0;
}

int64_t ext_worker_rest(struct ext_worker *worker)
{
    int64_t now_ms = oribi_clock_ms();
    uint64_t count = oribi_worker_request_count(worker->core);
    if (count != worker->rest_count) {
        worker->rest_count = count;
        worker->rest_ms = now_ms;
    }
    int64_t title_ms = oribi_title_at_rest(&worker->title, now_ms);
    if (title_ms == 0)
        ext_process_show_title(worker);
    return sooner(title_ms ? title_ms : FOR_EVER, collect(worker, count, now_ms));
}

/* nil at the end, :fork_mold when the supervisor wants a mold made of this worker. */
static VALUE run_loop(VALUE self)
{
    struct ext_worker *worker = ext_worker_get(self);
    struct blocking blocking = {.worker = worker};
    for (;;) {
        if (ext_process_leaves(worker))
            return ID2SYM(rb_intern("fork_mold"));
        struct oribi_req *req = oribi_worker_take(worker->core);
        if (req) {
            if (RB_UNLIKELY(oribi_title_in_call(&worker->title)))
                ext_process_show_title(worker);
            int tag = ext_worker_serve(&worker->first, req);
            if (RB_UNLIKELY(tag))
                rb_jump_tag(tag);
        } else {
            if (oribi_worker_done(worker->core)) {
                if (oribi_worker_abandoned(worker->core)) /* forked by a trap */
                    rb_exit(EXIT_SUCCESS);
                return Qnil;
            }
            blocking.wait_ms = ext_worker_rest(worker);
            ext_without_lock(wait_events, &blocking, ext_thread_wake, &worker->first);
        }
        /* Traps run here, and other threads get their turn even when requests never stop. */
        rb_thread_check_ints();
    }
}

static VALUE run_ended(VALUE self)
{
    struct ext_worker *worker = ext_worker_get(self);
    worker->running = false;
    worker->first.call = NULL;
    return Qnil;
}

/* A mold warms up with one thread: those of others would not be there after its forks. */
static VALUE run(VALUE self)
{
    struct ext_worker *worker = ext_worker_get(self);
    return worker->threads_wanted > 1 && !worker->warmup ? ext_threads_run(worker) : run_loop(self);
}

/* Serves requests with this application until told to stop and drained.
 *
 * @param app [#call] a Rack application
 * @return [nil, :fork_mold] :fork_mold in between, when a mold is to be forked off this worker; then call it again */
static VALUE worker_run(VALUE self, VALUE app)
{
    struct ext_worker *worker = open_worker(self);
    if (worker->running)
        rb_raise(ext_error, "the worker is running already");
    RB_OBJ_WRITE(self, &worker->app, app);
    RB_OBJ_WRITE(self, &worker->first.thread, rb_thread_current());
    worker->running = true;
    return rb_ensure(run, self, run_ended, self);
}

/* Starts a graceful stop; may be called from a trap handler and from any thread. */
static VALUE worker_stop(VALUE self)
{
    struct ext_worker *worker = open_worker(self);
    oribi_worker_stop(worker->core);
    oribi_worker_wake(worker->core);
    return self;
}

static VALUE worker_is_stopping(VALUE self)
{
    return oribi_worker_stopping(open_worker(self)->core) ? Qtrue : Qfalse;
}

/* Requests answered so far. */
static VALUE worker_request_count(VALUE self)
{
    return ULL2NUM(oribi_worker_request_count(open_worker(self)->core));
}

/* After the #run of a worker that Mold#warm_up has opened.
 *
 * @raise [Oribi::Error] the first request that was not answered as it should be */
static VALUE worker_warmed_up(VALUE self)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct ext_worker *worker = open_worker(self);
    struct oribi_warmup *warmup = worker->warmup;
    if (!warmup)
        rb_raise(ext_error, "the worker was not warming up");
    worker->warmup = NULL;
    if (oribi_warmup_end(warmup, error) < 0)
        rb_raise(ext_error, "%s", error);
    return self;
}

/* Closes every connection. Calling it again does nothing. */
static VALUE worker_close(VALUE self)
{
    struct ext_worker *worker = ext_worker_get(self);
    if (worker->running)
        rb_raise(ext_error, "the worker is running");
    struct oribi_worker *core = worker->core;
    worker->core = NULL;
    if (core)
        oribi_worker_destroy(core);
    return Qnil;
}

void ext_worker_setup(void)
{
    id_call = rb_intern("call");
    id_close = rb_intern("close");
    id_log_exception = rb_intern("log_exception");
    id_start = rb_intern("start");
    key_finished = rb_enc_interned_str_cstr("rack.response_finished", rb_utf8_encoding());
    rb_gc_register_mark_object(key_finished);
    VALUE class = rb_define_class_under(ext_module, "Worker", rb_cObject);
    rb_define_alloc_func(class, worker_alloc);
    rb_define_method(class, "initialize", worker_initialize, 4);
    rb_define_method(class, "run", worker_run, 1);
    rb_define_method(class, "warmed_up", worker_warmed_up, 0);
    rb_define_method(class, "stop", worker_stop, 0);
    rb_define_method(class, "stopping?", worker_is_stopping, 0);
    rb_define_method(class, "request_count", worker_request_count, 0);
    rb_define_method(class, "close", worker_close, 0);
}
