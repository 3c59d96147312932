/* The worker: its object, and the loop that takes requests and has call.c serve them. Reading order: run_loop,
 * ext_worker_rest, ext_worker_open. */
#include "ext.h"

#include "oribi/base/clock.h"

static ID id_start;
static VALUE stat_count; /* keys of GC.stat; Qnil: this Ruby has no such number */
static VALUE stat_time;
static VALUE stat_live;
static VALUE stat_pages;

/* --- the object --- */

/* Calls `visit` with the address of every reference. */
static void each_reference(struct ext_worker *worker, void (*visit)(VALUE *))
{
    visit(&worker->self);
    visit(&worker->result);
    visit(&worker->ended);
    visit(&worker->first.thread);
    visit(&worker->first.fiber);
    for (uint32_t i = 0; worker->threads != &worker->first && i < worker->thread_count; i++) {
        visit(&worker->threads[i].thread);
        visit(&worker->threads[i].fiber);
    }
    visit(&worker->app);
    visit(&worker->options);
    visit(&worker->listeners);
    visit(&worker->access_log);
    visit(&worker->constants);
    visit(&worker->server_name);
    visit(&worker->server_port);
    visit(&worker->remote_addr);
    visit(&worker->tls_version);
    visit(&worker->cipher);
    visit(&worker->sni);
    visit(&worker->tie_class);
    visit(&worker->handler_name);
    for (int i = 0; i < EXT_PORTS; i++)
        visit(&worker->ports[i]);
    for (int i = 0; i < ORIBI_FIELD_COUNT; i++)
        visit(&worker->values[i]);
    for (int i = 0; i < EXT_KEYS; i++)
        visit(&worker->keys[i]);
    for (int i = 0; i < ORIBI_SHAPES; i++)
        visit(&worker->templates[i]);
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

struct waiting {
    struct ext_worker *worker;
    int64_t ms;
};

static void *wait_events(void *p)
{
    struct waiting *waiting = p;
    oribi_worker_wait_for(waiting->worker->core, waiting->ms);
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

/* --- methods --- */

static VALUE worker_alloc(VALUE class)
{
    struct ext_worker *worker;
    VALUE self = TypedData_Make_Struct(class, struct ext_worker, &worker_type, worker);
    worker->self = self;
    worker->first = (struct ext_thread){.worker = worker, .thread = Qnil, .fiber = Qnil};
    worker->threads = &worker->first;
    worker->thread_count = 1;
    worker->result = worker->ended = Qnil;
    worker->app = worker->options = worker->listeners = worker->access_log = Qnil;
    worker->constants = worker->tie_class = Qnil;
    worker->server_name = worker->server_port = worker->remote_addr = Qnil;
    worker->tls_version = worker->cipher = worker->sni = Qnil;
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

/* --- what the status listener tells of the collector --- */

static uint64_t gc_stat(VALUE key)
{
    return NIL_P(key) ? 0 : rb_gc_stat(key);
}

void ext_worker_note_gc(struct ext_worker *worker)
{
    struct oribi_gc now = {
        .count = gc_stat(stat_count),
        .us = gc_stat(stat_time) * 1000,
        .live_objects = gc_stat(stat_live),
        .heap_pages = gc_stat(stat_pages),
    };
    oribi_worker_note_gc(worker->core, &now);
}

/* rb_gc_stat() raises for names that it does not know: Ruby before 3.1 has no time, and other collectors may have no
 * slots. Symbols of C are never collected. */
static VALUE stat_key(VALUE all, const char *name)
{
    VALUE key = ID2SYM(rb_intern(name));
    return NIL_P(rb_hash_lookup(all, key)) ? Qnil : key;
}

static void find_stats(void)
{
    VALUE all = rb_hash_new();
    (void)rb_gc_stat(all); /* fills it, and gives 0 */
    stat_count = stat_key(all, "count");
    stat_time = stat_key(all, "time");
    stat_live = stat_key(all, "heap_live_slots");
    stat_pages = stat_key(all, "heap_allocated_pages");
}

void ext_worker_open(struct ext_worker *worker, const struct oribi_worker_setup *setup, VALUE environment)
{
    if (worker->core)
        rb_raise(ext_error, "the worker is open already");
    Check_Type(environment, T_HASH);
    worker->threads_wanted = setup->options->threads;
    ext_env_prepare(worker, setup->options, environment);
    RB_OBJ_WRITE(worker->self, &worker->tie_class, ext_tie_class_new(worker));
    plan_collections(worker, setup->options);
    worker->early_hints = setup->options->early_hints;
    worker->request_ids = setup->options->request_id;
    worker->sendfile = setup->options->sendfile_root.count + setup->options->sendfile_map.count > 0;
    struct oribi_worker_setup with_signal = *setup;
    if (setup->options->call_timeout_ms || oribi_options_cancels_any(setup->options))
        with_signal.deadline_signal = ext_deadline_watch(worker);
    int result = oribi_worker_create(&with_signal, &worker->core);
    if (result < 0) {
        worker->core = NULL;
        rb_raise(ext_error, "cannot start a worker: %s", oribi_error_text(result));
    }
    ext_frames_show(worker);
    ext_worker_note_gc(worker);
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
    return oribi_shorter(title_ms ? title_ms : FOR_EVER, collect(worker, count, now_ms));
}

/* nil at the end, :fork_mold when the supervisor wants a mold made of this worker. */
static VALUE run_loop(VALUE self)
{
    struct ext_worker *worker = ext_worker_get(self);
    struct waiting waiting = {.worker = worker};
    for (;;) {
        if (ext_process_leaves(worker))
            return ID2SYM(rb_intern("fork_mold"));
        struct oribi_req *req = oribi_worker_take(worker->core);
        if (RB_UNLIKELY(oribi_worker_gc_due(worker->core)))
            ext_worker_note_gc(worker);
        if (req) {
            if (RB_UNLIKELY(oribi_title_in_call(&worker->title)))
                ext_process_show_title(worker);
            int tag = ext_call_serve(&worker->first, req);
            if (RB_UNLIKELY(tag))
                rb_jump_tag(tag);
        } else {
            if (oribi_worker_done(worker->core)) {
                if (oribi_worker_abandoned(worker->core)) /* forked by a trap */
                    rb_exit(EXIT_SUCCESS);
                return Qnil;
            }
            waiting.ms = ext_worker_rest(worker);
            ext_without_lock(wait_events, &waiting, ext_thread_wake, &worker->first);
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
    ext_worker_note_gc(worker); /* what came after the last time; some workers do not live for a second */
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
    RB_OBJ_WRITE(self, &worker->first.fiber, rb_fiber_current());
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

/* After the #run of a worker that Process#open has made in a mold.
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
    id_start = rb_intern("start");
    find_stats();
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
