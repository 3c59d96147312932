/* A worker with several threads: each runs a loop with a thread of the core of its own, and waits for requests in
 * the core without the VM lock. The thread that has called #run makes no calls: it runs traps, among them the one
 * that raises CallTimeout in the thread whose call is overdue, and replaces threads that the application has ended.
 *
 * The threads begin and end with #run, so that a mold forked off the worker finds none. */
#include "ext.h"

static ID id_kill;
static ID id_name_set;
static ID id_join;
static ID id_abort_set;
static ID id_report_set;
static ID id_pop;
static ID id_push;

struct waiting {
    struct ext_thread *thread;
    int64_t ms;
    bool coming;
};

static void *wait_request(void *p)
{
    struct waiting *waiting = p;
    waiting->coming = oribi_thread_wait(waiting->thread->core_thread, waiting->ms);
    return NULL;
}

/* True if there is a request to take, unless another thread takes it while this one waits for the VM lock. */
static bool await_request(struct ext_thread *thread)
{
    struct ext_worker *worker = thread->worker;
    struct waiting waiting = {.thread = thread, .ms = -1};
    if (oribi_threads_busy(worker->core) == 0)
        waiting.ms = ext_worker_rest(worker);
    ext_without_lock(wait_request, &waiting, ext_thread_wake, thread);
    return waiting.coming;
}

/* All threads end after their calls. */
static void leave(struct ext_worker *worker, VALUE result)
{
    worker->leaving = true;
    RB_OBJ_WRITE(worker->self, &worker->result, result);
    for (uint32_t i = 0; i < worker->thread_count; i++)
        ext_thread_wake(&worker->threads[i]);
}

/* Where others are in calls, those that wait for the VM's lock have it before this thread's next call. */
static VALUE check_interrupts(VALUE others)
{
    if (RTEST(others))
        rb_thread_schedule();
    else
        rb_thread_check_ints();
    return Qnil;
}

/* A CallTimeout whose call has ended meanwhile is dropped. All other exceptions are the thread's: it ends with
 * it. */
static void run_interrupts(const struct ext_worker *worker)
{
    int state = 0;
    VALUE others = oribi_threads_busy(worker->core) > 1 ? Qtrue : Qfalse;
    do {
        rb_protect(check_interrupts, others, &state);
        VALUE exception = state ? rb_errinfo() : Qnil;
        if (state && (RB_SPECIAL_CONST_P(exception) || !RB_TYPE_P(exception, T_OBJECT) ||
                      !rb_obj_is_kind_of(exception, ext_call_timeout)))
            rb_jump_tag(state);
        rb_set_errinfo(Qnil);
    } while (state);
}

static bool is_fork_due(struct ext_worker *worker)
{
    return ext_process_leaves(worker);
}

static VALUE run_loop(VALUE arg)
{
    struct ext_thread *thread = (struct ext_thread *)arg;
    struct ext_worker *worker = thread->worker;
    RB_OBJ_WRITE(worker->self, &thread->fiber, rb_fiber_current());
    while (!worker->leaving) {
        run_interrupts(worker); /* before a request is taken: an exception may have come before the thread began */
        if (RB_UNLIKELY(is_fork_due(worker))) {
            leave(worker, ID2SYM(rb_intern("fork_mold")));
            break;
        }
        struct oribi_req *req = oribi_thread_take(thread->core_thread);
        if (RB_UNLIKELY(oribi_worker_gc_due(worker->core)))
            ext_worker_note_gc(worker);
        if (req) {
            if (RB_UNLIKELY(oribi_title_in_call(&worker->title)))
                ext_process_show_title(worker);
            int tag = ext_call_serve(thread, req);
            if (RB_UNLIKELY(tag))
                rb_jump_tag(tag);
        } else if (!await_request(thread) && oribi_thread_done(thread->core_thread)) {
            leave(worker, Qnil);
        }
    }
    return Qnil;
}

static VALUE loop_ended(VALUE arg)
{
    struct ext_thread *thread = (struct ext_thread *)arg;
    thread->call = NULL;
    thread->ended = true;
    rb_funcall(thread->worker->ended, id_push, 1, UINT2NUM((uint32_t)(thread - thread->worker->threads)));
    return Qnil;
}

static VALUE thread_main(void *arg)
{
    return rb_ensure(run_loop, (VALUE)arg, loop_ended, (VALUE)arg);
}

/* An exception that ends a thread concerns the process, as it does with one thread: it is raised again where #run was
 * called. */
static void start(struct ext_thread *thread, uint32_t number)
{
    struct ext_worker *worker = thread->worker;
    thread->ended = false;
    thread->core_thread = oribi_thread(worker->core, number);
    RB_OBJ_WRITE(worker->self, &thread->thread, rb_thread_create(thread_main, thread));
    rb_funcall(thread->thread, id_name_set, 1, rb_sprintf("oribi %u", number + 1));
    rb_funcall(thread->thread, id_report_set, 1, Qfalse);
    rb_funcall(thread->thread, id_abort_set, 1, Qtrue);
}

static bool all_ended(const struct ext_worker *worker)
{
    for (uint32_t i = 0; i < worker->thread_count; i++)
        if (!worker->threads[i].ended)
            return false;
    return true;
}

/* Traps run in the waiting. A thread that ends before its time was killed by the application. */
static VALUE watch(VALUE arg)
{
    struct ext_worker *worker = (struct ext_worker *)arg;
    for (uint32_t i = 0; i < worker->thread_count; i++)
        start(&worker->threads[i], i);
    while (!all_ended(worker)) {
        uint32_t number = NUM2UINT(rb_funcall(worker->ended, id_pop, 0));
        if (!worker->leaving)
            start(&worker->threads[number], number);
    }
    return worker->result;
}

static VALUE join(VALUE thread)
{
    return rb_funcall(thread, id_join, 0);
}

/* Threads that still run when an exception ends #run are ended too, before the worker may be closed. */
static VALUE watch_ended(VALUE arg)
{
    struct ext_worker *worker = (struct ext_worker *)arg;
    struct ext_thread *threads = worker->threads;
    if (oribi_worker_abandoned(worker->core))
        return Qnil;
    for (uint32_t i = 0; i < worker->thread_count; i++) {
        int state = 0;
        if (NIL_P(threads[i].thread) || threads[i].ended)
            continue;
        rb_funcall(threads[i].thread, id_abort_set, 1, Qfalse);
        rb_funcall(threads[i].thread, id_kill, 0);
        rb_protect(join, threads[i].thread, &state);
        if (state) /* how it ended is of no interest beside what ends the worker */
            rb_set_errinfo(Qnil);
    }
    oribi_threads_close(worker->core);
    worker->threads = &worker->first;
    worker->thread_count = 1;
    xfree(threads);
    return Qnil;
}

VALUE ext_threads_run(struct ext_worker *worker)
{
    uint32_t count = worker->threads_wanted;
    if (oribi_threads_open(worker->core, count) < 0)
        rb_raise(ext_error, "cannot start threads: no descriptors");
    struct ext_thread *threads = ALLOC_N(struct ext_thread, count);
    for (uint32_t i = 0; i < count; i++)
        threads[i] = (struct ext_thread){.worker = worker, .thread = Qnil, .fiber = Qnil};
    worker->leaving = false;
    RB_OBJ_WRITE(worker->self, &worker->result, Qnil);
    RB_OBJ_WRITE(worker->self, &worker->ended, rb_class_new_instance(0, NULL, rb_path2class("Thread::Queue")));
    worker->threads = threads;
    worker->thread_count = count;
    return rb_ensure(watch, (VALUE)worker, watch_ended, (VALUE)worker);
}

void ext_threads_setup(void)
{
    id_kill = rb_intern("kill");
    id_name_set = rb_intern("name=");
    id_join = rb_intern("join");
    id_abort_set = rb_intern("abort_on_exception=");
    id_report_set = rb_intern("report_on_exception=");
    id_pop = rb_intern("pop");
    id_push = rb_intern("push");
}
