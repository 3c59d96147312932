/* The local content of a frontend; see the header. */
#include "oribi/worker/local/local_thread.h"

#include "worker/worker_private.h"
#include "worker/local/local_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum {
    NS_PER_S = 1000 * 1000 * 1000,
};

struct oribi_local_thread {
    struct oribi_local_setup setup;
    struct oribi_options options; /* without what is about calls */
    struct oribi_scoreboard board;
    struct oribi_handoff queue;
    struct oribi_access_log *access_log;
    struct oribi_worker *worker; /* its thread's, but for what never changes, and oribi_worker_wake() */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* result or ended */
    int result;             /* of the begin; ORIBI_AGAIN: not known yet */
    bool ended;
    atomic_bool ending;
    atomic_bool reopens;
    _Atomic int64_t busy_us;                        /* since when it has been at this turn; 0: it waits */
    _Atomic uint16_t at;                            /* the channel whose request it answers; 0: none */
    atomic_bool taken_back[ORIBI_CHANNELS_MAX + 1]; /* by channel */
    struct oribi_path path;                         /* of the request that is asked for */
};

/* --- its thread --- */

/* Nothing here answers it. */
static void pass(struct oribi_worker *w, struct oribi_conn_request *exchange)
{
    static const char line[] = "HTTP/1.1 199 Passed\r\n\r\n";
    struct iovec vec = {(void *)line, sizeof(line) - 1};
    struct oribi_conn *c = exchange->conn;
    bool sent = oribi_conn_send(&w->reactor, c, &vec, 1, false) == 0;
    oribi_conn_finish(&w->reactor, c, !sent);
}

static void reopen(struct oribi_local_thread *local)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    oribi_access_log_flush(local->access_log); /* what happened before belongs to the old file */
    if (oribi_access_log_follow_stdout(local->access_log, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s, going on with the old file", error);
}

/* The mark is behind what it tells of: the number may have been given to another channel since. */
static bool is_taken_back(struct oribi_local_thread *local, const struct oribi_conn *c, uint16_t number)
{
    return atomic_load_explicit(&local->taken_back[number], memory_order_relaxed) &&
           atomic_exchange_explicit(&local->taken_back[number], false, memory_order_relaxed) &&
           oribi_os_peer_gone(c->watch.fd);
}

/* The reactor's hook: whose request a disk holds up. */
static bool answer(void *self, struct oribi_conn *c)
{
    const struct oribi_worker *w = self;
    struct oribi_local_thread *local = w->local->thread;
    uint16_t number = c->channel ? c->channel->number : 0;
    if (is_taken_back(local, c, number))
        return false; /* others answer it, and have its line */
    atomic_store_explicit(&local->at, number, memory_order_relaxed);
    bool answered = oribi__local_answer(self, c);
    atomic_store_explicit(&local->at, 0, memory_order_relaxed);
    return answered;
}

static void serve(struct oribi_local_thread *local)
{
    struct oribi_worker *w = local->worker;
    if (w->local) {
        w->local->thread = local;
        w->reactor.hooks.answer = answer;
    }
    for (;;) {
        struct oribi_conn_request *exchange;
        atomic_store_explicit(&local->busy_us, oribi_clock_us(), memory_order_relaxed);
        oribi__turn(w);
        while ((exchange = oribi_reactor_pop(&w->reactor)))
            pass(w, exchange);
        if (atomic_exchange(&local->reopens, false))
            reopen(local);
        atomic_store_explicit(&local->busy_us, 0, memory_order_relaxed);
        if (atomic_load_explicit(&local->ending, memory_order_acquire))
            return; /* asked behind the turn, which takes a wake-up: one that comes later ends the wait */
        oribi_worker_wait_for(w, -1);
    }
}

static void tell(struct oribi_local_thread *local, int result, bool ended)
{
    (void)pthread_mutex_lock(&local->mutex); /* ours, and no recursion: cannot fail */
    local->result = result;
    local->ended = ended;
    (void)pthread_cond_signal(&local->changed);
    (void)pthread_mutex_unlock(&local->mutex);
}

static void *run(void *self)
{
    struct oribi_local_thread *local = self;
    const struct oribi_worker_setup setup = {.options = &local->options,
                                             .listeners = local->setup.listeners,
                                             .slot = local->board.slots,
                                             .board = &local->board,
                                             .workers = local->setup.workers,
                                             .handoff = &local->queue,
                                             .access_log = local->access_log,
                                             .life_fd = -1};
    oribi_os_thread_name("oribi-files");
    bool reads = local->options.mounts.count || local->options.error_pages.count; /* a sandbox forbids it otherwise */
    if (reads && local->setup.folder && oribi_os_thread_enter_dir(local->setup.folder) < 0)
        oribi_log(ORIBI_LOG_ERROR, "frontend: %s: %s", local->setup.folder, oribi_os_error_text());
    int result = oribi_worker_create(&setup, &local->worker);
    tell(local, result, result < 0);
    if (result < 0)
        return NULL;
    serve(local);
    (void)pthread_mutex_lock(&local->mutex); /* oribi_local_thread_end() still rings */
    (void)pthread_mutex_unlock(&local->mutex);
    oribi_worker_destroy(local->worker);
    tell(local, 0, true);
    return NULL;
}

/* --- life --- */

static void release(struct oribi_local_thread *local)
{
    if (local->access_log)
        oribi_access_log_close(local->access_log);
    oribi_handoff_close(&local->queue);
    if (local->board.slots)
        oribi_scoreboard_destroy(&local->board);
    (void)pthread_cond_destroy(&local->changed);
    (void)pthread_mutex_destroy(&local->mutex);
    oribi_mem_free(local);
}

static void open_log(struct oribi_local_thread *local)
{
    const struct oribi_options *options = &local->options;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (!options->access_log)
        return;
    if (oribi_access_log_open(options->access_log, options->access_log_format, NULL, &local->access_log, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s: requests for files are not logged", error);
    else
        oribi_access_log_choose(local->access_log, &options->access_log_skip, options->access_log_sample);
}

static int begin(struct oribi_local_thread *local)
{
    if (oribi_scoreboard_create(&local->board, 1) < 0)
        return ORIBI_ENOMEM;
    if (oribi_handoff_create(&local->queue) < 0)
        return ORIBI_ESYS;
    open_log(local);
    local->result = ORIBI_AGAIN;
    return pthread_create(&local->thread, NULL, run, local) == 0 ? 0 : ORIBI_ESYS;
}

static bool answers_any(const struct oribi_options *options)
{
    return options->mounts.count || options->answers.count || options->redirects.count || options->health ||
           options->error_pages.count;
}

int oribi_local_thread_start(const struct oribi_local_setup *setup, struct oribi_local_thread **out)
{
    const struct oribi_options *options = setup->options;
    *out = NULL;
    if (!answers_any(options))
        return 0;
    struct oribi_local_thread *local = oribi_mem_try_alloc(1, sizeof(*local));
    if (!local)
        return ORIBI_ENOMEM;
    local->setup = *setup;
    local->options = *options;
    local->options.queue_max = 0; /* what passes waits in the frontend */
    local->options.queue_time_max_ms = 0;
    local->options.call_timeout_ms = 0;
    local->options.cancel_gone = NULL;
    local->options.requests_max = (struct oribi_range){0};
    local->options.status = NULL;
    local->queue = (struct oribi_handoff){-1, -1};
    (void)pthread_mutex_init(&local->mutex, NULL); /* without attributes: cannot fail */
    (void)pthread_cond_init(&local->changed, NULL);
    int code = begin(local);
    if (code < 0) {
        release(local);
        return code;
    }
    *out = local;
    return 0;
}

int oribi_local_thread_result(struct oribi_local_thread *local, bool wait)
{
    (void)pthread_mutex_lock(&local->mutex);
    while (wait && local->result == ORIBI_AGAIN)
        (void)pthread_cond_wait(&local->changed, &local->mutex);
    int result = local->result;
    (void)pthread_mutex_unlock(&local->mutex);
    return result;
}

void oribi_local_thread_end(struct oribi_local_thread *local)
{
    (void)pthread_mutex_lock(&local->mutex);
    atomic_store_explicit(&local->ending, true, memory_order_release);
    if (local->result == 0 && !local->ended)
        oribi_worker_wake(local->worker);
    (void)pthread_mutex_unlock(&local->mutex);
}

bool oribi_local_thread_join(struct oribi_local_thread *local, int64_t ms)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until); /* cannot fail */
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000 * 1000;
    until.tv_sec += until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    (void)pthread_mutex_lock(&local->mutex);
    int code = 0;
    while (!local->ended && code == 0)
        code = pthread_cond_timedwait(&local->changed, &local->mutex, &until);
    bool ended = local->ended;
    (void)pthread_mutex_unlock(&local->mutex);
    if (!ended)
        return false;
    (void)pthread_join(local->thread, NULL); /* it is ours, and in its last lines */
    release(local);
    return true;
}

/* --- the frontend's side --- */

bool oribi_local_thread_claims(struct oribi_local_thread *local, const struct oribi_head *head)
{
    const struct oribi__local *own = local->worker->local;
    enum oribi_path_verdict verdict = own ? oribi_path_read(head->path, &local->path) : ORIBI_PATH_NUL;
    if (!own)
        return false;
    if (verdict == ORIBI_PATH_OK && own->fixed && oribi_fixed_find(own->fixed, &local->path))
        return true;
    if (own->count == 0 || !(head->is_head || oribi_slice_equal(head->method, ORIBI_SLICE("GET"))))
        return false;
    return verdict != ORIBI_PATH_OK || oribi_mount_find(own->prefixes, own->count, &local->path, -1) >= 0;
}

const struct oribi_error_pages *oribi_local_thread_pages(const struct oribi_local_thread *local)
{
    return local->worker->server_answers.pages;
}

bool oribi_local_thread_give(struct oribi_local_thread *local, int fd, uint16_t number)
{
    const struct oribi_handoff_item item = {.fd = fd, .body_fd = -1, .channel = number};
    int code = oribi_handoff_give(&local->queue, &item, NULL, 0);
    oribi_os_close(fd);
    return code == 0;
}

void oribi_local_thread_take_back(struct oribi_local_thread *local, uint16_t number)
{
    atomic_store_explicit(&local->taken_back[number], true, memory_order_relaxed);
}

int64_t oribi_local_thread_busy_us(const struct oribi_local_thread *local, uint16_t *number)
{
    *number = atomic_load_explicit(&local->at, memory_order_relaxed);
    return atomic_load_explicit(&local->busy_us, memory_order_relaxed);
}

void oribi_local_thread_reopen(struct oribi_local_thread *local)
{
    atomic_store(&local->reopens, true);
    oribi_worker_wake(local->worker);
}
