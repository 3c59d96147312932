/* A worker's link to its supervisor: signals, its slot on the scoreboard, what it reports. */
#include "supervisor/mold.h"
#include "supervisor/process_private.h"
#include "oribi/policy/signal_table.h"
#include "supervisor/module.h"
#include "supervisor/logs.h"
#include "supervisor/manager.h"
#include "supervisor/start.h"
#include "oribi/supervisor/message.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/app_metrics.h"
#include "oribi/worker/inbox.h"
#include "oribi/worker/worker.h"
#include "oribi/supervisor/prefork.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { REOPEN = 1, MOLD = 2 };

/* Requests of a server's worker, or jobs of a manager's (prefork.h). */
struct work {
    enum oribi__signalled column; /* of the table of signals */
    enum oribi__effect early;     /* of a stop before the worker serves */
    bool at_terminal;             /* Ctrl-C may go to all processes */
    const char *begins;           /* state in the title */
    const char *unit;
    void (*choose_signals)(bool usr1_foreign);
};

struct oribi_link {
    const struct work *work;
    struct oribi__process_context context;
    pid_t pid;
    uint32_t index;
    uint32_t ticket;
    uint32_t generation;
    struct oribi_wake wake;
    /* Read by the signal handler, so written in the order that suits it. */
    _Atomic(struct oribi_worker *) worker;
    _Atomic bool serving;     /* until then a stop ends the process in the handler */
    _Atomic bool left;        /* from then on it has nothing left to stop */
    _Atomic bool stop_asked;  /* set by the handler */
    bool at_terminal;         /* whose Ctrl-C goes to all processes: the first one drains */
    _Atomic bool interrupted; /* by that first one; set by the handler */
    _Atomic uint32_t asked;   /* likewise: REOPEN, MOLD; one load tells the worker's loop of both */
    int wait_fd;              /* oribi_link_wake_fd; -1: not asked for yet */
    uint64_t jobs_limit;      /* 0: none */
    int64_t titled_ms;        /* oribi_link_job_title */
    bool titled_busy;
    bool leaving_reported;
    bool alone;                    /* this process is the whole server */
    bool worker_has_sockets;       /* listeners and hand-off socket: its own fork handler closes them (worker_life.c) */
    struct oribi_listeners *spare; /* duplicates for a mold made of this worker, while it is forked */
    struct oribi_handoff spare_handoff; /* likewise */
    char title[160];
};

static void on_signal(void *self, int number)
{
    struct oribi_link *child = self;
    enum oribi__effect effect = oribi__signal_effect(number, child->work->column);
    struct oribi_worker *worker = atomic_load(&child->worker);
    if (number == SIGINT && child->at_terminal && !atomic_exchange(&child->interrupted, true))
        effect = ORIBI__DRAINS;
    if (effect == ORIBI__DRAINS && atomic_load(&child->left))
        return; /* sent twice, as by a signal to the whole process group and then by the supervisor */
    if (effect == ORIBI__DRAINS && !atomic_load(&child->serving))
        effect = child->work->early;
    switch (effect) {
    case ORIBI__RAISES:
        oribi_signals_yield(number);
        return;
    case ORIBI__ENDS:
        _exit(0);
    case ORIBI__DRAINS:
        atomic_store(&child->stop_asked, true);
        if (worker)
            oribi_worker_stop_signalled(worker);
        break;
    case ORIBI__REOPENS:
    case ORIBI__MOLDS:
        (void)atomic_fetch_or(&child->asked, effect == ORIBI__REOPENS ? REOPEN : MOLD);
        if (worker)
            oribi_worker_wake(worker);
        break;
    default:
        return;
    }
    oribi_wake_notify(&child->wake);
}

void oribi_link_signal(struct oribi_link *child, int number)
{
    on_signal(child, number);
}

static void tell(struct oribi_link *child, enum oribi_message_kind kind, const char *text, size_t len)
{
    struct oribi_message message = {.kind = kind,
                                    .generation = child->generation,
                                    .slot = child->index,
                                    .ticket = child->ticket,
                                    .pid = child->pid};
    oribi_message_set_text(&message, text, len);
    (void)oribi_message_send(child->context.message_fd, &message,
                             1); /* fails when the supervisor is gone, which life_fd tells */
}

/* In a child that the application has forked. An abandoned worker looks at life_fd no more. */
void oribi__link_let_go(void *owner)
{
    struct oribi_link *child = owner;
    oribi__process_context_close(&child->context, !child->worker_has_sockets);
    oribi_wake_destroy(&child->wake);
    child->wake = (struct oribi_wake){-1, -1};
    oribi__close(&child->wait_fd);
}

struct oribi_link *oribi_link_enter(struct oribi_mold *mold)
{
    struct oribi_link *child = oribi__link_new(&mold->context, mold->slot, mold->ticket, mold->generation);
    oribi_os_close(mold->socket_fd);
    oribi_wake_destroy(&mold->wake);
    oribi__reapers_free(&mold->reapers);
    oribi_mem_free(mold);
    return child;
}

struct oribi_link *oribi_link_enter_managed(struct oribi_supervisor *supervisor, char *error)
{
    struct oribi_policy_action spawn;
    bool dies_with_parent = oribi__prefork_spawned(oribi__supervisor_context(supervisor), &spawn);
    struct oribi__process_context context = *oribi__supervisor_process(supervisor);
    oribi__supervisor_forget(supervisor);
    struct oribi_link *child = oribi__link_new(&context, spawn.slot, spawn.ticket, spawn.generation);
    if (oribi_process_switch_user(context.options->user, context.options->group, error) < 0) {
        oribi_link_failed(child, error, strlen(error));
        return NULL;
    }
    /* After the change of user, which takes it back (prctl(2)). */
    if (dies_with_parent && oribi_os_signal_on_parent_death(SIGTERM, context.supervisor) == ORIBI_ECLOSED)
        (void)raise(SIGTERM); /* it was faster than we */
    return child;
}

/* A manager's worker handles what its column of the table has, without USR1 where that is the program's own. */
static void choose_signals(bool usr1_foreign)
{
    int numbers[ORIBI__SIGNALS_MAX];
    size_t count = 0;
    size_t handled = oribi__signals_handled(ORIBI__IN_JOB_WORKER, numbers);
    for (size_t i = 0; i < handled; i++)
        if (numbers[i] != SIGUSR1 || !usr1_foreign)
            numbers[count++] = numbers[i];
    oribi_signals_choose(numbers, count);
}

static void choose_all(bool usr1_foreign)
{
    (void)usr1_foreign;
}

static const struct work requests = {.column = ORIBI__IN_WORKER,
                                     .early = ORIBI__ENDS,
                                     .at_terminal = true,
                                     .begins = "starting",
                                     .unit = "requests",
                                     .choose_signals = choose_all};
static const struct work jobs = {.column = ORIBI__IN_JOB_WORKER,
                                 .early = ORIBI__RAISES,
                                 .begins = "running",
                                 .unit = "jobs",
                                 .choose_signals = choose_signals};

struct oribi_link *oribi__link_new(const struct oribi__process_context *context, uint32_t index, uint32_t ticket,
                                   uint32_t generation)
{
    struct oribi_link *child = oribi_mem_alloc(1, sizeof(*child));
    child->context = *context;
    child->pid = getpid();
    child->wait_fd = -1;
    child->index = index;
    child->ticket = ticket;
    child->generation = generation;
    child->work = context->prefork ? &jobs : &requests;
    child->at_terminal = child->work->at_terminal && oribi_options_at_terminal(context->options);
    child->work->choose_signals(context->usr1_foreign);
    struct oribi_slot *slot = oribi_link_slot(child);
    atomic_store(&slot->pid, child->pid);
    atomic_store(&slot->generation, child->generation);
    oribi_log_identify((int)child->index, child->generation);
    oribi_app_metrics_enter(&context->app.view, child->generation, (int32_t)child->index);
    oribi_publisher_enter(context->inbox_fd, context->options->control);
    if (oribi_wake_create(&child->wake) < 0) {
        child->wake = (struct oribi_wake){-1, -1};
        oribi_log(ORIBI_LOG_WARN, "worker %u: cannot make its wake descriptor: %s", child->index,
                  oribi_os_error_text());
    }
    /* The intermediate reports this worker too. The first report counts; if the intermediate was killed, this one. */
    tell(child, ORIBI_MESSAGE_WORKER_FORKED, "", 0);
    oribi__children_let_go(oribi__link_let_go, child);
    oribi_signals_install(on_signal, child, 0);
    oribi_signals_release(); /* held back before the fork: the handler runs here for a stop sent meanwhile */
    return child;
}

void oribi__link_alone(struct oribi_link *child)
{
    child->alone = true;
}

void oribi_link_setup(struct oribi_link *child, struct oribi_worker_setup *setup)
{
    *setup = (struct oribi_worker_setup){
        .options = child->context.options,
        .listeners = child->context.listeners,
        .slot = oribi_link_slot(child),
        .board = &child->context.board,
        .handoff = &child->context.handoff,
        .access_log = child->context.access_log,
        .report_fd = child->context.message_fd,
        .life_fd = child->context.life_fd,
        .shares_heap = child->alone,
    };
    child->worker_has_sockets = true;
}

const struct oribi_options *oribi_link_options(const struct oribi_link *child)
{
    return child->context.options;
}

struct oribi_slot *oribi_link_slot(struct oribi_link *child)
{
    return &child->context.board.slots[child->index];
}

struct oribi_listeners *oribi_link_listeners(struct oribi_link *child)
{
    return child->context.listeners;
}

uint32_t oribi_link_index(const struct oribi_link *child)
{
    return child->index;
}

uint32_t oribi_link_generation(const struct oribi_link *child)
{
    return child->generation;
}

int oribi_link_life_fd(const struct oribi_link *child)
{
    return child->context.life_fd;
}

void oribi_link_ready(struct oribi_link *child, struct oribi_worker *worker)
{
    atomic_store(&child->worker, worker);
    atomic_store(&child->serving, true);
    atomic_store(&oribi_link_slot(child)->state, ORIBI_SLOT_IDLE);
    tell(child, ORIBI_MESSAGE_WORKER_READY, "", 0);
}

void oribi_link_failed(struct oribi_link *child, const char *text, size_t len)
{
    tell(child, ORIBI_MESSAGE_WORKER_FAILED, text, len);
}

/* A worker that drains by itself (requests_max) reports that, so that its replacement is started while it drains. */
static bool leaving(const struct oribi_link *child)
{
    struct oribi_worker *worker = atomic_load_explicit(&child->worker, memory_order_relaxed);
    return !child->leaving_reported && worker && oribi_worker_stopping(worker);
}

bool oribi_process_due(const struct oribi_process *p)
{
    const struct oribi_link *child = p ? p->link : NULL;
    return child && (atomic_load_explicit(&child->asked, memory_order_relaxed) || leaving(child));
}

/* True: a mold is to be made of this worker. */
static bool turn(struct oribi_link *child)
{
    uint32_t asked = atomic_exchange(&child->asked, 0);
    if (asked & REOPEN)
        oribi__reopen_logs(&child->context);
    if (leaving(child)) {
        child->leaving_reported = true;
        if (!atomic_load(&child->stop_asked))
            tell(child, ORIBI_MESSAGE_WORKER_LEAVING, "", 0);
    }
    return asked & MOLD;
}

bool oribi_process_turn(struct oribi_process *p)
{
    p->refork |= turn(p->link);
    return p->refork;
}

bool oribi_link_stop_soon(const struct oribi_link *child)
{
    return atomic_load(&child->context.board.slots[child->index].stop_soon) != 0;
}

/* --- a mold made of this worker --- */

static void close_spare(struct oribi_link *child)
{
    for (uint32_t i = 0; child->spare && i < child->spare->count; i++)
        oribi_os_close(child->spare->items[i].fd);
    oribi_mem_free(child->spare);
    child->spare = NULL;
    oribi_handoff_close(&child->spare_handoff);
}

const struct oribi__process_context *oribi__link_context(const struct oribi_link *child)
{
    return &child->context;
}

void oribi_link_before_fork(struct oribi_link *child)
{
    const struct oribi_listeners *listeners = child->context.listeners;
    child->spare = oribi_mem_alloc(1, sizeof(*child->spare));
    *child->spare = *listeners;
    for (uint32_t i = 0; i < listeners->count; i++)
        child->spare->items[i].fd = oribi_os_dup(listeners->items[i].fd);        /* negative: seen by promote */
    child->spare_handoff.take_fd = oribi_os_dup(child->context.handoff.take_fd); /* likewise */
    child->spare_handoff.give_fd = oribi_os_dup(child->context.handoff.give_fd);
    oribi__children_ours(true);
    oribi_signals_hold();
}

void oribi_link_after_fork(struct oribi_link *child, pid_t pid)
{
    int status;
    if (pid < 0) {
        (void)oribi_os_fail(); /* keeps the reason's words */
        oribi_log(ORIBI_LOG_WARN, "refork: cannot fork a mold: %s; the mold before it stays", oribi_os_error_text());
    }
    oribi__children_ours(false);
    oribi_signals_release();
    if (pid > 0 && oribi_os_adopts_orphans())         /* a reaper stays as long as the mold does */
        (void)oribi_process_reap(pid, true, &status); /* it only forks; an error means that it is reaped already */
    close_spare(child);
}

static bool all_open(const struct oribi_listeners *listeners, const struct oribi_handoff *handoff)
{
    if (handoff->take_fd < 0 || handoff->give_fd < 0)
        return false;
    for (uint32_t i = 0; i < listeners->count; i++)
        if (listeners->items[i].fd < 0)
            return false;
    return true;
}

struct oribi_mold *oribi_link_promote(struct oribi_link *child)
{
    int fds[2];
    struct oribi_mold *mold = oribi_mem_alloc(1, sizeof(*mold));
    mold->context = child->context;
    mold->context.listeners = child->spare;
    mold->context.handoff = child->spare_handoff;
    oribi_access_log_discard(mold->context.access_log); /* the worker's to write */
    mold->generation = child->generation;
    oribi_app_metrics_enter(&mold->context.app.view, mold->generation, ORIBI_METRIC_NOBODY);
    atomic_store(&mold->loaded, true);
    oribi_wake_destroy(&child->wake);
    oribi__children_let_go(NULL, NULL);
    bool failed = !all_open(child->spare, &child->spare_handoff) || oribi__mold_take_post(mold) < 0 ||
                  oribi_message_pair(fds) < 0;
    oribi_signals_release();
    if (failed) {
        oribi_log(ORIBI_LOG_WARN, "refork: no descriptors for the new mold: %s; the mold before it stays",
                  oribi_os_error_text());
        return NULL;
    }
    oribi_mem_free(child);
    mold->socket_fd = fds[1];
    struct oribi_message message = {
        .kind = ORIBI_MESSAGE_MOLD_PROMOTED, .generation = mold->generation, .pid = mold->pid};
    (void)oribi_message_send_fd(mold->context.message_fd, &message,
                                fds[0]); /* if it fails, the socket below is at its end */
    oribi_os_close(fds[0]);
    return mold;
}

/* Nothing is ever written to life_fd, so readable means its end. */
static bool supervisor_gone(const struct oribi_link *child)
{
    char byte;
    ssize_t n = oribi_os_read(child->context.life_fd, &byte, 1);
    return n == 0;
}

bool oribi_link_stopping(struct oribi_link *child)
{
    return atomic_load(&child->stop_asked) || supervisor_gone(child);
}

/* A loop of its own may look at nothing else, so that the supervisor's end shows here as well. */
int oribi_link_wake_fd(struct oribi_link *child)
{
    if (child->wait_fd < 0 && oribi_os_either(child->wake.read_fd, child->context.life_fd, &child->wait_fd) < 0)
        return child->wake.read_fd;
    return child->wait_fd;
}

/* Between two calls a worker that has more to do does not say that it is idle. */
static const char *state_text(const struct oribi_slot *slot, const struct work *work)
{
    switch (atomic_load(&slot->state)) {
    case ORIBI_SLOT_IDLE:
    case ORIBI_SLOT_BUSY:
        return atomic_load(&slot->call_started_us) ? "busy" : "idle";
    case ORIBI_SLOT_DRAINING:
        return "draining";
    case ORIBI_SLOT_STARTING:
        return work->begins;
    default:
        return "starting";
    }
}

size_t oribi_link_title(struct oribi_link *child, char *dst, size_t cap)
{
    char title[sizeof(child->title)];
    struct oribi_slot *slot = oribi_link_slot(child);
    char role[24] = "single";
    if (!child->alone)
        (void)snprintf(role, sizeof(role), "worker %u", child->index); /* fits */
    (void)snprintf(title, sizeof(title), "%s %s, generation %u, %s, %llu %s", child->context.program, role,
                   child->generation, state_text(slot, child->work),
                   (unsigned long long)atomic_load(&slot->request_count),
                   child->work->unit); /* cut when longer: still a title */
    return oribi__title_changed(title, child->title, sizeof(child->title), dst, cap);
}

/* --- a manager's end (prefork.h) ---
 *
 * Whatever a worker's program does, the worker gets SIGTERM when its manager has ended. Linux sends that by itself;
 * elsewhere a thread of the worker waits for the end of life_fd. */

enum { END_STACK_BYTES = 64 * 1024 };

/* A worker of a mold becomes the supervisor's child when the process between is gone, which it is after its next few
 * instructions; only then can the kernel be asked to tell of the supervisor's end. */
static void ask_kernel_of_end(const struct oribi__process_context *context)
{
    enum { PATIENCE_MS = 10000 };
    int64_t end_ms = oribi_clock_ms() + PATIENCE_MS;
    while (getppid() != context->supervisor && oribi_clock_ms() < end_ms)
        oribi_process_poll(&context->life_fd, 1, 1);
    if (getppid() == context->supervisor &&
        oribi_os_signal_on_parent_death(SIGTERM, context->supervisor) == ORIBI_ECLOSED)
        (void)raise(SIGTERM); /* it was faster than we */
}

/* Ends without a signal if the application has closed the descriptor. */
static void *await_managers_end(void *arg)
{
    int life_fd = (int)(intptr_t)arg;
    char byte;
    ssize_t n;
    while ((n = oribi_os_read(life_fd, &byte, 1)) == ORIBI_AGAIN)
        oribi_process_poll(&life_fd, 1, -1);
    if (n == 0)
        (void)kill(getpid(), SIGTERM); /* of ours: cannot fail */
    return NULL;
}

static int start_end_thread(int life_fd)
{
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return ORIBI_ENOMEM;
    (void)pthread_attr_setstacksize(&attributes, END_STACK_BYTES);           /* a valid size */
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED); /* a valid state */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* handlers of the application belong to its own threads */
    int code = pthread_create(&thread, &attributes, await_managers_end, (void *)(intptr_t)life_fd);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    return code ? ORIBI_ESYS : 0;
}

/* In a worker that has just begun. May wait until the process between it and the manager is gone. Where nothing can be
 * arranged, oribi_link_stopping() still tells. */
static void expect_managers_end(const struct oribi__process_context *context)
{
    if (oribi_os_adopts_orphans()) {
        if (getppid() != context->supervisor) /* else it was asked at the fork */
            ask_kernel_of_end(context);
    } else if (start_end_thread(context->life_fd) < 0) {
        oribi_log(ORIBI_LOG_WARN, "cannot start a thread that waits for the manager's end: "
                                  "a worker that waits for something else will outlive the manager");
    }
}

/* --- a loop that is no HTTP worker: prefork.h --- */

void oribi_link_begin(struct oribi_link *child)
{
    child->jobs_limit = oribi_options_draw_limit(child->context.options);
    tell(child, ORIBI_MESSAGE_WORKER_READY, "", 0);
    expect_managers_end(&child->context);
}

void oribi_link_watch_signals(struct oribi_link *child)
{
    if (atomic_exchange(&child->serving, true))
        return;
    atomic_store(&oribi_link_slot(child)->state, ORIBI_SLOT_IDLE);
}

bool oribi_link_asked(struct oribi_link *child)
{
    oribi_link_watch_signals(child);
    if (atomic_load(&child->asked) & REOPEN) {
        (void)oribi_wake_clear(&child->wake);
        (void)turn(child);
        if (atomic_load(&child->stop_asked)) /* it may have come just before the wake was cleared */
            oribi_wake_notify(&child->wake);
    }
    return oribi_link_stopping(child);
}

void oribi_link_job_begin(struct oribi_link *child, const char *text, size_t len)
{
    struct oribi_slot *slot = oribi_link_slot(child);
    size_t n = len < sizeof(slot->line) ? len : sizeof(slot->line) - 1;
    oribi_link_watch_signals(child);
    memcpy(slot->line, text, n);
    slot->line[n] = '\0';
    atomic_store(&slot->state, ORIBI_SLOT_BUSY);
    atomic_store_explicit(&slot->call_started_us, oribi_clock_us(), memory_order_release);
}

void oribi_link_job_end(struct oribi_link *child)
{
    struct oribi_slot *slot = oribi_link_slot(child);
    int64_t started_us = atomic_load(&slot->call_started_us);
    if (!started_us)
        return; /* none had begun */
    uint64_t count = atomic_load(&slot->request_count) + 1;
    oribi_histogram_count(&slot->call_time, oribi_clock_us() - started_us);
    atomic_store(&slot->request_count, count);
    atomic_store_explicit(&slot->call_started_us, 0, memory_order_release);
    atomic_store(&slot->state, ORIBI_SLOT_IDLE);
    if (!child->jobs_limit || count < child->jobs_limit || atomic_exchange(&child->stop_asked, true))
        return;
    tell(child, ORIBI_MESSAGE_WORKER_LEAVING, "", 0);
    oribi_wake_notify(&child->wake);
}

size_t oribi_link_job_title(struct oribi_link *child, bool rest, char *dst, size_t cap)
{
    enum { EVERY_MS = 1000 };
    int64_t now_ms = oribi_clock_ms();
    bool busy = atomic_load(&oribi_link_slot(child)->call_started_us) != 0;
    if (!rest && child->titled_ms && now_ms - child->titled_ms < EVERY_MS && (busy || !child->titled_busy))
        return 0;
    child->titled_ms = now_ms;
    child->titled_busy = busy;
    return oribi_link_title(child, dst, cap);
}

/* The handlers stay while the language runs its own exit handlers, which a second stop must not cut. The child stays
 * too, because they look at it: it goes with the process. */
void oribi_link_leave(struct oribi_link *child)
{
    atomic_store(&child->left, true);
    atomic_store(&child->worker, NULL);
}
