/* How a worker begins, forks and ends. Reading order: oribi_worker_create, watch_all, the fork handlers,
 * oribi_worker_destroy. */
#include "worker/call.h"
#include "worker/compress.h"
#include "worker/exchange.h"
#include "worker/logs/exchange_log.h"
#include "worker/placement/helper.h"
#include "worker/placement/ownership.h"
#include "worker/reply.h"
#include "worker/socket.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/ring.h"
#include "oribi/base/signals.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
    LOG_BURST = 20,   /* lines about bad requests, each 10 s */
    MENDED_BURST = 5, /* the same about answers that were put right: an application gives them again and again */
    SPARE_FDS = 512,  /* beside the connections: spooled bodies, and what the application opens */
};

/* The worker of this process, for the fork handlers and the deadline's signal, which have no argument. Written by
 * its owner thread in create and destroy. */
struct oribi_worker *oribi__own_worker;

void oribi_worker_abandon(struct oribi_worker *w)
{
    if (w->abandoned)
        return;
    w->abandoned = true;
    oribi_reactor_abandon(&w->reactor);
    oribi__local_abandon(w->local);
    oribi__sendfile_abandon(w->sendfile);
    for (uint32_t i = 0; i < w->acceptor.watch_count; i++)
        if (!w->acceptor.watches[i].closed)
            oribi_os_close(w->acceptor.watches[i].listener->fd);
    oribi_handoff_close(&w->placement.queue);
    oribi__threads_forget(w);
    oribi_helper_forget(w);
    oribi_wake_destroy(&w->wake);
}

bool oribi_worker_abandoned(const struct oribi_worker *w)
{
    return w->abandoned;
}

/* A copy of the reactor made in the middle of a helper's step could not even be abandoned. */
static void before_fork(void)
{
    struct oribi_worker *w = oribi__own_worker;
    bool ours = w && atomic_load_explicit(&w->owner, memory_order_relaxed) == ORIBI_OWNER_MAIN;
    if (!w || (!oribi__shared(w) && (!w->helper || ours)))
        return;
    oribi__enter(w);
    w->forking = true;
}

static void after_fork_in_parent(void)
{
    if (oribi__own_worker && oribi__own_worker->forking) {
        oribi__own_worker->forking = false;
        oribi__leave(oribi__own_worker);
    }
}

static void after_fork_in_child(void)
{
    struct oribi_worker *w = oribi__own_worker;
    oribi__own_worker = NULL;
    if (!w)
        return;
    oribi_os_restore_descriptors();
    oribi_worker_abandon(w);
    if (w->forking)
        oribi__leave(w); /* or what the child still asks of its request would wait for ever */
}

static void register_fork_handler(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent,
                         after_fork_in_child); /* fails only without memory at start */
}

/* The system call that failed says enough: sendfile(2) knows no MSG_NOSIGNAL, and a body or a log may meet the limit
 * of file sizes. A handler that does nothing, unlike SIG_IGN, is not inherited by programs the application starts. */
static void do_nothing(int signal_number)
{
}

static void defuse(int number)
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
        action = (struct sigaction){.sa_handler = do_nothing, .sa_flags = SA_RESTART};
        (void)sigaction(number, &action, NULL); /* arguments are right */
    }
}

static void set_config(const struct oribi_options *options, struct oribi_reactor_config *config)
{
    *config = (struct oribi_reactor_config){
        .limits = options->limits,
        .head_timeout_ms = options->head_timeout_ms,
        .body_timeout_ms = options->body_timeout_ms,
        .idle_timeout_ms = options->idle_timeout_ms,
        .write_timeout_ms = options->write_timeout_ms,
        .body_rate_min = options->body_rate_min,
        .multipart_stream = options->multipart_stream,
        .response_memory_max = options->response_memory_max,
        .buffers_memory_max = options->buffers_memory_max,
        .buffers_file_max = options->buffers_file_max,
        .exchange_bytes = sizeof(struct oribi__exchange),
    };
    if (options->server_header)
        config->server = oribi_slice(options->server_header, strlen(options->server_header));
}

static int watch_all(struct oribi_worker *w)
{
    int code = oribi_wake_create(&w->wake);
    if (code < 0)
        return code;
    oribi__worker_handlers(w);
    code = oribi_loop_add(w->reactor.loop, &w->wake_watch, w->wake.read_fd, ORIBI_WATCH_SIGNAL, ORIBI_READ);
    if (code == 0 && w->setup.life_fd >= 0)
        code = oribi_loop_add(w->reactor.loop, &w->life_watch, w->setup.life_fd, ORIBI_WATCH_SIGNAL, ORIBI_READ);
    if (code < 0)
        return code;
    uint32_t count = w->setup.listeners ? w->setup.listeners->count : 0;
    w->acceptor.watches = oribi_mem_alloc(count ? count : 1, sizeof(*w->acceptor.watches));
    for (uint32_t i = 0; i < count; i++)
        if (w->setup.listeners->items[i].frontend)
            w->has_frontends = true;
        else
            w->acceptor.watches[w->acceptor.watch_count++].listener = &w->setup.listeners->items[i];
    if (w->has_frontends) {
        oribi_asleep_end(&w->slot->asleep);
        w->reactor.asleep = &w->slot->asleep;
    }
    oribi__fd_guard_begin(w);
    oribi__listener_watches_open(w);
    oribi__handoff_watch(w, true);
    return 0;
}

static void free_worker(struct oribi_worker *w)
{
    if (w->own_board.slots)
        oribi_scoreboard_destroy(&w->own_board);
    oribi_mem_free(w->acceptor.watches);
    oribi_mem_free(w->placement.buf);
    oribi__local_destroy(w->local);
    oribi__server_answers_close(&w->server_answers);
    oribi__compression_destroy(w->compression);
    oribi__sendfile_destroy(w->sendfile);
    oribi__socket_forget(&w->threads.single);
    oribi_mem_free(w);
}

/* An operator hears at the start, and not with the first long upload, that none can be taken. Once for all workers:
 * by the first one, as the user that they run as. */
static void try_temp_dir(const struct oribi_worker *w)
{
    int fd = -1;
    if (!w->setup.board || w->slot != w->setup.board->slots)
        return;
    if (oribi_os_temp_file(&fd) < 0)
        oribi_log(ORIBI_LOG_WARN,
                  "no file can be made in %s: %s; request bodies over body_memory_max (%u bytes) are refused with %d",
                  oribi_os_temp_dir(), oribi_os_error_text(), w->options->limits.body_memory_max,
                  oribi_error_status(oribi_os_store_failed()));
    oribi_os_close(fd);
}

uint64_t oribi_worker_descriptors(const struct oribi_options *options)
{
    bool has_local = options->mounts.count || options->answers.count || options->redirects.count || options->health;
    return (uint64_t)options->connections_max + SPARE_FDS + (has_local ? options->static_open_max : 0);
}

/* Opens the worker's parts for answers, each NULL or empty where the options ask for none. */
static void open_answers(struct oribi_worker *w)
{
    w->local = oribi__local_create(w->options);
    w->compression = oribi__compression_create(w->options);
    w->sendfile = oribi__sendfile_create(w->options);
    oribi__server_answers_open(&w->server_answers, w->options);
}

/* After open_answers(), on which its hooks depend. */
static int open_reactor(struct oribi_worker *w)
{
    struct oribi_reactor_config config;
    const struct oribi_reactor_hooks hooks = oribi__worker_hooks(w);
    set_config(w->options, &config);
    config.added = w->server_answers.added;
    int result = oribi_reactor_init(&w->reactor, &config, &hooks, ORIBI_LOOP_BEST);
    if (result == 0)
        oribi_timeouts_count_in(&w->reactor.timeouts, w->slot->armed);
    return result;
}

int oribi_worker_create(const struct oribi_worker_setup *setup, struct oribi_worker **out)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int64_t blocks_before = oribi_mem_blocks();
    oribi_os_fill_standard_streams(); /* the application may have closed them while it was loaded */
    struct oribi_worker *w = oribi_mem_alloc(1, sizeof(*w));
    w->blocks_before = blocks_before;
    w->setup = *setup;
    w->options = setup->options;
    if (!setup->slot && oribi_scoreboard_create(&w->own_board, 1) < 0) {
        oribi_mem_free(w);
        return ORIBI_ENOMEM;
    }
    w->slot = setup->slot ? setup->slot : w->own_board.slots;
    w->placement.queue = setup->handoff && setup->board ? *setup->handoff : (struct oribi_handoff){-1, -1};
    oribi__way_init(w);
    w->placement.skipped = true; /* as long as this worker has not said that it is idle */
    if (w->placement.queue.take_fd >= 0)
        w->placement.buf = oribi_mem_alloc(1, ORIBI_HANDOFF_BUF_BYTES);
    w->wake = (struct oribi_wake){-1, -1};
    w->owner_pid = getpid();
    oribi__threads_init(w);
    w->request_limit = oribi_options_draw_limit(w->options);
    oribi__ids_seed(&w->ids);
    w->log_wants = oribi_access_log_wants(setup->access_log);
    w->names_requests = w->options->request_id || oribi_log_is_json() || (w->log_wants & ORIBI_ACCESS_WANTS_ID) != 0;
    w->cancels_gone = oribi_options_cancels_any(w->options);
    w->refuse_log_limit.burst = LOG_BURST;
    w->app_log_limit.burst = LOG_BURST;
    w->mended_log_limit.burst = MENDED_BURST;
    w->slow_log_limit.burst = w->slow_end_limit.burst = ORIBI__SLOW_BURST;
    w->stacks = oribi__stacks_open(w);
    char ignored[ORIBI_ERROR_TEXT_CAP];
    (void)oribi_trust_parse(&w->options->trusted_proxies, &w->trust,
                            ignored); /* oribi_options_finish() has checked it */
    open_answers(w);
    int result = open_reactor(w);
    if (result < 0) {
        free_worker(w);
        return result;
    }
    /* Soft limits are low (1024) for the sake of programs that use select(2); running out is lived with, see
     * out_of_descriptors(). */
    oribi_os_allow_descriptors(oribi_worker_descriptors(w->options));
    result = watch_all(w);
    if (result < 0) {
        oribi_worker_destroy(w);
        return result;
    }
    *out = w;
    if (setup->workers) /* signals and forks are the frontend's */
        return 0;
    defuse(SIGPIPE);
    defuse(SIGXFSZ);
    try_temp_dir(w);
    (void)pthread_once(&once, register_fork_handler);
    oribi__own_worker = w;
    if (w->options->call_timeout_ms || w->cancels_gone)
        oribi_deadline_install(w);
    oribi__sample_install();
    oribi_signals_keep_not(); /* a worker without a supervisor is stopped as its program likes */
    return 0;
}

void oribi_worker_destroy(struct oribi_worker *w)
{
    if (!w->setup.workers && oribi__own_worker == w)
        oribi__own_worker = NULL;
    if (w->owner_pid != getpid()) { /* forked past the handler, or by it: memory goes with the process */
        oribi_worker_abandon(w);
        return;
    }
    oribi_threads_close(w);
    oribi_helper_stop(w);
    oribi__say_who_is_cut(w);
    oribi_access_log_drain(w->setup.access_log, ORIBI_LOG_DRAIN_MS);
    oribi_reactor_deinit(&w->reactor);
    oribi_wake_destroy(&w->wake);
    bool alone = w->setup.life_fd >= 0 && !w->setup.shares_heap; /* the only user of this heap since it was created */
    int64_t blocks_before = w->blocks_before;
    free_worker(w);
    if (alone && oribi_mem_blocks() > blocks_before) /* fewer: an interpreter at its end frees in any order */
        oribi_log(ORIBI_LOG_WARN, "memory leak: %lld blocks were not freed",
                  (long long)(oribi_mem_blocks() - blocks_before));
    if (alone)
        oribi_log_drain(ORIBI_LOG_DRAIN_MS);
}
