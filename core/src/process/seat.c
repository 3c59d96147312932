/* A worker's ties to its supervisor: signals, its place in the scoreboard, what it reports. */
#include "process/mold.h"
#include "process/host_private.h"
#include "process/process_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/process/prefork.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { REOPEN = 1, MOLD = 2 };

struct oribi_seat {
    struct oribi__ties ties;
    pid_t pid;
    uint32_t index;
    uint32_t ticket;
    uint32_t generation;
    struct oribi_wake wake;
    /* Read by the signal handler, so written in the order that suits it. */
    _Atomic(struct oribi_worker *) worker;
    _Atomic bool serving;      /* until then a stop ends the process in the handler */
    _Atomic bool left;         /* from then on it has nothing left to stop */
    _Atomic bool stop_asked;   /* set by the handler */
    _Atomic uint32_t asked;    /* likewise: REOPEN, MOLD; one load tells the worker's loop of both */
    int wait_fd;               /* oribi_seat_wake_fd; -1: not asked for yet */
    uint64_t jobs_limit;       /* 0: none */
    int64_t titled_ms;         /* oribi_seat_job_title */
    bool titled_busy;
    bool leaving_told;
    bool worker_has_sockets;   /* listeners and hand-off socket: its own fork handler closes them (worker_life.c) */
    struct oribi_listeners *spare;      /* duplicates for a mold made of this worker, while it is forked */
    struct oribi_handoff spare_handoff; /* likewise */
    char title[160];
};

static void on_signal(void *self, int number)
{
    struct oribi_seat *seat = self;
    bool stop = number == SIGTERM || number == SIGQUIT;
    struct oribi_worker *worker = atomic_load(&seat->worker);
    if (stop && atomic_load(&seat->left))
        return; /* told twice, as by a signal to the whole process group and then by the supervisor */
    if (seat->ties.prefork && (number == SIGINT || (stop && !atomic_load(&seat->serving)))) {
        oribi_signals_yield(number);
        return;
    }
    if (number == SIGINT || (stop && !atomic_load(&seat->serving)))
        _exit(0);
    if (stop) {
        atomic_store(&seat->stop_asked, true);
        if (worker)
            oribi_worker_stop_signalled(worker);
    } else if (number == SIGUSR1 || number == SIGUSR2) {
        (void)atomic_fetch_or(&seat->asked, number == SIGUSR1 ? REOPEN : MOLD);
        if (worker)
            oribi_worker_wake(worker);
    } else {
        return;
    }
    oribi_wake_notify(&seat->wake);
}

void oribi_seat_signal(struct oribi_seat *seat, int number)
{
    on_signal(seat, number);
}

static void tell(struct oribi_seat *seat, enum oribi_message_kind kind, const char *text, size_t len)
{
    struct oribi_message message = {
        .kind = kind, .generation = seat->generation, .slot = seat->index, .ticket = seat->ticket, .pid = seat->pid};
    oribi_message_set_text(&message, text, len);
    (void)oribi_message_send(seat->ties.message_fd, &message,
                             1); /* fails when the supervisor is gone, which life_fd tells */
}

/* In a child that the application has forked. An abandoned worker looks at life_fd no more. */
static void let_go(void *owner)
{
    struct oribi_seat *seat = owner;
    oribi__ties_let_go(&seat->ties, !seat->worker_has_sockets);
    oribi_wake_destroy(&seat->wake);
    seat->wake = (struct oribi_wake){-1, -1};
    oribi__close(&seat->wait_fd);
}

struct oribi_seat *oribi_seat_enter(struct oribi_mold *mold)
{
    struct oribi_seat *seat = oribi__seat_new(&mold->ties, mold->slot, mold->ticket, mold->generation);
    oribi_os_close(mold->socket_fd);
    oribi_wake_destroy(&mold->wake);
    oribi_mem_free(mold);
    return seat;
}

struct oribi_seat *oribi_seat_enter_host(struct oribi_host *host, char *error)
{
    struct oribi_action spawn = host->spawn;
    bool dies_with_parent = !host->can_outlive_thread;
    struct oribi__ties ties = host->ties;
    oribi__host_forget(host, -1);
    struct oribi_seat *seat = oribi__seat_new(&ties, spawn.slot, spawn.ticket, spawn.generation);
    if (oribi_process_switch_user(ties.options->user, ties.options->group, error) < 0) {
        oribi_seat_failed(seat, error, strlen(error));
        return NULL;
    }
    /* After the change of user, which takes it back (prctl(2)). */
    if (dies_with_parent && oribi_os_signal_on_parent_death(SIGTERM, ties.supervisor) == ORIBI_ECLOSED)
        (void)raise(SIGTERM); /* it was faster than we */
    return seat;
}

struct oribi_seat *oribi__seat_new(const struct oribi__ties *ties, uint32_t index, uint32_t ticket, uint32_t generation)
{
    static const int stops[] = {SIGTERM, SIGQUIT, SIGINT, SIGUSR1};
    struct oribi_seat *seat = oribi_mem_alloc(1, sizeof(*seat));
    seat->ties = *ties;
    seat->pid = getpid();
    seat->wait_fd = -1;
    seat->index = index;
    seat->ticket = ticket;
    seat->generation = generation;
    if (ties->prefork)
        oribi_signals_choose(stops, sizeof(stops) / sizeof(stops[0]) - ties->usr1_foreign);
    struct oribi_slot *slot = oribi_seat_slot(seat);
    atomic_store(&slot->pid, seat->pid);
    atomic_store(&slot->generation, seat->generation);
    if (oribi_wake_create(&seat->wake) < 0) {
        seat->wake = (struct oribi_wake){-1, -1};
        oribi_log(ORIBI_LOG_WARN, "worker %u: no descriptor to be woken by: %s", seat->index, oribi_os_error_text());
    }
    /* The intermediate reports us too. Whoever comes first is heard; and if it was killed, there is still us. */
    tell(seat, ORIBI_MESSAGE_WORKER_FORKED, "", 0);
    oribi__children_let_go(let_go, seat);
    oribi_signals_install(on_signal, seat, 0);
    oribi_signals_release(); /* held back by the mold before the fork: a stop sent meanwhile strikes here */
    return seat;
}

void oribi_seat_setup(struct oribi_seat *seat, struct oribi_worker_setup *setup)
{
    *setup = (struct oribi_worker_setup){
        .options = seat->ties.options,
        .listeners = seat->ties.listeners,
        .slot = oribi_seat_slot(seat),
        .board = &seat->ties.board,
        .handoff = &seat->ties.handoff,
        .access_log = seat->ties.access_log,
        .report_fd = seat->ties.message_fd,
        .life_fd = seat->ties.life_fd,
    };
    seat->worker_has_sockets = true;
}

const struct oribi_options *oribi_seat_options(const struct oribi_seat *seat)
{
    return seat->ties.options;
}

struct oribi_slot *oribi_seat_slot(struct oribi_seat *seat)
{
    return &seat->ties.board.slots[seat->index];
}

struct oribi_listeners *oribi_seat_listeners(struct oribi_seat *seat)
{
    return seat->ties.listeners;
}

uint32_t oribi_seat_index(const struct oribi_seat *seat)
{
    return seat->index;
}

uint32_t oribi_seat_generation(const struct oribi_seat *seat)
{
    return seat->generation;
}

int oribi_seat_life_fd(const struct oribi_seat *seat)
{
    return seat->ties.life_fd;
}

void oribi_seat_ready(struct oribi_seat *seat, struct oribi_worker *worker)
{
    atomic_store(&seat->worker, worker);
    atomic_store(&seat->serving, true);
    atomic_store(&oribi_seat_slot(seat)->state, ORIBI_SLOT_IDLE);
    tell(seat, ORIBI_MESSAGE_WORKER_READY, "", 0);
}

void oribi_seat_failed(struct oribi_seat *seat, const char *text, size_t len)
{
    tell(seat, ORIBI_MESSAGE_WORKER_FAILED, text, len);
}

/* A worker that drains though nobody asked it to (requests_max) says so, and gets its successor while it drains. */
static bool leaving(const struct oribi_seat *seat)
{
    struct oribi_worker *worker = atomic_load_explicit(&seat->worker, memory_order_relaxed);
    return !seat->leaving_told && worker && oribi_worker_stopping(worker);
}

bool oribi_process_due(const struct oribi_process *p)
{
    const struct oribi_seat *seat = p ? p->seat : NULL;
    return seat && (atomic_load_explicit(&seat->asked, memory_order_relaxed) || leaving(seat));
}

/* True: a mold is to be made of this worker. */
static bool turn(struct oribi_seat *seat)
{
    uint32_t asked = atomic_exchange(&seat->asked, 0);
    if (asked & REOPEN)
        oribi__reopen_logs(&seat->ties);
    if (leaving(seat)) {
        seat->leaving_told = true;
        if (!atomic_load(&seat->stop_asked))
            tell(seat, ORIBI_MESSAGE_WORKER_LEAVING, "", 0);
    }
    return asked & MOLD;
}

bool oribi_process_turn(struct oribi_process *p)
{
    p->refork |= turn(p->seat);
    return p->refork;
}

bool oribi_seat_stop_soon(const struct oribi_seat *seat)
{
    return atomic_load(&seat->ties.board.slots[seat->index].stop_soon) != 0;
}

/* --- a mold made of this worker --- */

static void close_spare(struct oribi_seat *seat)
{
    for (uint32_t i = 0; seat->spare && i < seat->spare->count; i++)
        oribi_os_close(seat->spare->items[i].fd);
    oribi_mem_free(seat->spare);
    seat->spare = NULL;
    oribi_handoff_close(&seat->spare_handoff);
}

void oribi_seat_before_fork(struct oribi_seat *seat)
{
    const struct oribi_listeners *listeners = seat->ties.listeners;
    seat->spare = oribi_mem_alloc(1, sizeof(*seat->spare));
    *seat->spare = *listeners;
    for (uint32_t i = 0; i < listeners->count; i++)
        seat->spare->items[i].fd = oribi_os_dup(listeners->items[i].fd);    /* negative: seen by promote */
    seat->spare_handoff.take_fd = oribi_os_dup(seat->ties.handoff.take_fd); /* likewise */
    seat->spare_handoff.give_fd = oribi_os_dup(seat->ties.handoff.give_fd);
    oribi__children_ours(true);
    oribi_signals_hold();
}

void oribi_seat_after_fork(struct oribi_seat *seat, pid_t pid)
{
    int status;
    if (pid < 0) {
        (void)oribi_os_fail(); /* keeps the reason's words */
        oribi_log(ORIBI_LOG_WARN, "refork: no process: %s", oribi_os_error_text());
    }
    oribi__children_ours(false);
    oribi_signals_release();
    if (pid > 0)
        (void)oribi_process_reap(pid, true, &status); /* it only forks; an error means somebody reaped it before us */
    close_spare(seat);
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

struct oribi_mold *oribi_seat_promote(struct oribi_seat *seat)
{
    int fds[2];
    struct oribi_mold *mold = oribi_mem_alloc(1, sizeof(*mold));
    mold->ties = seat->ties;
    mold->ties.listeners = seat->spare;
    mold->ties.handoff = seat->spare_handoff;
    oribi_access_log_discard(mold->ties.access_log); /* the worker's to write */
    mold->generation = seat->generation;
    atomic_store(&mold->loaded, true);
    oribi_wake_destroy(&seat->wake);
    oribi__children_let_go(NULL, NULL);
    bool failed =
        !all_open(seat->spare, &seat->spare_handoff) || oribi__mold_take_post(mold) < 0 || oribi_message_pair(fds) < 0;
    oribi_signals_release();
    if (failed) {
        oribi_log(ORIBI_LOG_WARN, "refork: no descriptors for a mold: %s", oribi_os_error_text());
        return NULL;
    }
    oribi_mem_free(seat);
    mold->socket_fd = fds[1];
    struct oribi_message message = {
        .kind = ORIBI_MESSAGE_MOLD_PROMOTED, .generation = mold->generation, .pid = mold->pid};
    (void)oribi_message_send_fd(mold->ties.message_fd, &message,
                                fds[0]); /* if it fails, the socket below is at its end */
    oribi_os_close(fds[0]);
    return mold;
}

/* Nothing is ever written to life_fd, so readable means its end. */
static bool supervisor_gone(const struct oribi_seat *seat)
{
    char byte;
    ssize_t n = oribi_os_read(seat->ties.life_fd, &byte, 1);
    return n == 0;
}

bool oribi_seat_stopping(struct oribi_seat *seat)
{
    return atomic_load(&seat->stop_asked) || supervisor_gone(seat);
}

/* A loop of its own may look at nothing else, so that the supervisor's end shows here as well. */
int oribi_seat_wake_fd(struct oribi_seat *seat)
{
    if (seat->wait_fd < 0 && oribi_os_either(seat->wake.read_fd, seat->ties.life_fd, &seat->wait_fd) < 0)
        return seat->wake.read_fd;
    return seat->wait_fd;
}

/* Between two calls a worker that has more to do does not say that it is idle. */
static const char *state_text(const struct oribi_slot *slot, bool prefork)
{
    if (prefork && atomic_load(&slot->state) == ORIBI_SLOT_STARTING)
        return "running";
    switch (atomic_load(&slot->state)) {
    case ORIBI_SLOT_IDLE:
    case ORIBI_SLOT_BUSY:
        return atomic_load(&slot->call_started_us) ? "busy" : "idle";
    case ORIBI_SLOT_DRAINING:
        return "draining";
    default:
        return "starting";
    }
}

size_t oribi_seat_title(struct oribi_seat *seat, char *dst, size_t cap)
{
    char title[sizeof(seat->title)];
    struct oribi_slot *slot = oribi_seat_slot(seat);
    (void)snprintf(title, sizeof(title), "%s worker %u, generation %u, %s, %llu %s", seat->ties.program, seat->index,
                   seat->generation, state_text(slot, seat->ties.prefork),
                   (unsigned long long)atomic_load(&slot->request_count),
                   seat->ties.prefork ? "jobs" : "requests"); /* cut when longer: still a title */
    return oribi__title_changed(title, seat->title, sizeof(seat->title), dst, cap);
}

/* --- a loop that is no HTTP worker: prefork.h --- */

/* A worker of a mold becomes the supervisor's child when the process between is gone, which it is after its next few instructions; only then
 * can the kernel be asked to tell of the supervisor's end. Should that last, oribi_seat_asked() still sees the end of life_fd. */
static void wait_for_parent(const struct oribi_seat *seat)
{
    enum { PATIENCE_MS = 10000 };
    int64_t end_ms = oribi_clock_ms() + PATIENCE_MS;
    while (getppid() != seat->ties.supervisor && oribi_clock_ms() < end_ms)
        oribi_process_poll(&seat->ties.life_fd, 1, 1);
    if (getppid() == seat->ties.supervisor &&
        oribi_os_signal_on_parent_death(SIGTERM, seat->ties.supervisor) == ORIBI_ECLOSED)
        (void)raise(SIGTERM); /* it was faster than we */
}

void oribi_seat_begin(struct oribi_seat *seat)
{
    seat->jobs_limit = oribi_options_draw_limit(seat->ties.options);
    tell(seat, ORIBI_MESSAGE_WORKER_READY, "", 0);
    if (getppid() != seat->ties.supervisor)
        wait_for_parent(seat);
}

void oribi_seat_heed(struct oribi_seat *seat)
{
    if (atomic_exchange(&seat->serving, true))
        return;
    atomic_store(&oribi_seat_slot(seat)->state, ORIBI_SLOT_IDLE);
}

bool oribi_seat_asked(struct oribi_seat *seat)
{
    oribi_seat_heed(seat);
    if (atomic_load(&seat->asked) & REOPEN) {
        (void)oribi_wake_clear(&seat->wake);
        (void)turn(seat);
        if (atomic_load(&seat->stop_asked)) /* it may have come just before the wake was cleared */
            oribi_wake_notify(&seat->wake);
    }
    return oribi_seat_stopping(seat);
}

void oribi_seat_job_begin(struct oribi_seat *seat, const char *text, size_t len)
{
    struct oribi_slot *slot = oribi_seat_slot(seat);
    size_t n = len < sizeof(slot->line) ? len : sizeof(slot->line) - 1;
    oribi_seat_heed(seat);
    memcpy(slot->line, text, n);
    slot->line[n] = '\0';
    atomic_store(&slot->state, ORIBI_SLOT_BUSY);
    atomic_store_explicit(&slot->call_started_us, oribi_clock_us(), memory_order_release);
}

void oribi_seat_job_end(struct oribi_seat *seat)
{
    struct oribi_slot *slot = oribi_seat_slot(seat);
    int64_t started_us = atomic_load(&slot->call_started_us);
    if (!started_us)
        return; /* none had begun */
    uint64_t count = atomic_load(&slot->request_count) + 1;
    atomic_store(&slot->call_us_sum, atomic_load(&slot->call_us_sum) + (uint64_t)(oribi_clock_us() - started_us));
    atomic_store(&slot->request_count, count);
    atomic_store_explicit(&slot->call_started_us, 0, memory_order_release);
    atomic_store(&slot->state, ORIBI_SLOT_IDLE);
    if (!seat->jobs_limit || count < seat->jobs_limit || atomic_exchange(&seat->stop_asked, true))
        return;
    tell(seat, ORIBI_MESSAGE_WORKER_LEAVING, "", 0);
    oribi_wake_notify(&seat->wake);
}

size_t oribi_seat_job_title(struct oribi_seat *seat, bool rest, char *dst, size_t cap)
{
    enum { EVERY_MS = 1000 };
    int64_t now_ms = oribi_clock_ms();
    bool busy = atomic_load(&oribi_seat_slot(seat)->call_started_us) != 0;
    if (!rest && seat->titled_ms && now_ms - seat->titled_ms < EVERY_MS && (busy || !seat->titled_busy))
        return 0;
    seat->titled_ms = now_ms;
    seat->titled_busy = busy;
    return oribi_seat_title(seat, dst, cap);
}

/* The handlers stay while the language runs its own exit handlers, which a second stop must not cut. The seat stays too, because they look at it: it goes
 * with the process. */
void oribi_seat_leave(struct oribi_seat *seat)
{
    atomic_store(&seat->left, true);
    atomic_store(&seat->worker, NULL);
}
