/* A worker's ties to its supervisor: signals, its place in the scoreboard, what it reports. */
#include "oribi/server/mold.h"
#include "server/host_private.h"

#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/server/signals.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct oribi_seat {
    struct oribi__ties ties;
    pid_t pid;
    uint32_t index;
    uint32_t ticket;
    uint32_t generation;
    struct oribi_wake wake;
    /* Read by the signal handler, so written in the order that suits it. */
    _Atomic(struct oribi_worker *) worker;
    _Atomic bool serving;      /* until then, and after leaving, a stop ends the process in the handler */
    _Atomic bool stop_asked;   /* set by the handler */
    _Atomic bool reopen_asked; /* likewise */
    char title[160];
};

static void on_signal(void *self, int number)
{
    struct oribi_seat *seat = self;
    bool stop = number == SIGTERM || number == SIGQUIT;
    struct oribi_worker *worker = atomic_load(&seat->worker);
    if (number == SIGINT || (stop && !atomic_load(&seat->serving)))
        _exit(0);
    if (stop) {
        atomic_store(&seat->stop_asked, true);
        if (worker)
            oribi_worker_stop(worker);
    } else if (number == SIGUSR1) {
        atomic_store(&seat->reopen_asked, true);
        if (worker)
            oribi_worker_wake(worker);
    } else {
        return;
    }
    oribi_wake_notify(&seat->wake);
}

static void tell(struct oribi_seat *seat, enum oribi_message_kind kind, const char *text, size_t len)
{
    struct oribi_message message = {.kind = kind,
                                    .generation = seat->generation,
                                    .slot = seat->index,
                                    .ticket = seat->ticket,
                                    .pid = seat->pid};
    oribi_message_set_text(&message, text, len);
    (void)oribi_message_send(seat->ties.message_fd, &message, 1); /* fails when the supervisor is gone, which life_fd tells */
}

struct oribi_seat *oribi_seat_enter(struct oribi_mold *mold)
{
    struct oribi_seat *seat = oribi_mem_alloc(1, sizeof(*seat));
    seat->ties = mold->ties;
    seat->pid = getpid();
    seat->index = mold->slot;
    seat->ticket = mold->ticket;
    seat->generation = mold->generation;
    oribi_os_close(mold->socket_fd);
    oribi_wake_destroy(&mold->wake);
    oribi_mem_free(mold);

    struct oribi_slot *slot = oribi_seat_slot(seat);
    atomic_store(&slot->pid, seat->pid);
    atomic_store(&slot->generation, seat->generation);
    if (oribi_wake_create(&seat->wake) < 0) {
        seat->wake = (struct oribi_wake){-1, -1};
        oribi_log(ORIBI_LOG_WARN, "worker %u: no descriptor to be woken by: %s", seat->index, oribi_os_error_text());
    }
    /* The intermediate reports us too. Whoever comes first is heard; and if it was killed, there is still us. */
    tell(seat, ORIBI_MESSAGE_WORKER_FORKED, "", 0);
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
        .access_log = seat->ties.access_log,
        .life_fd = seat->ties.life_fd,
    };
}

struct oribi_slot *oribi_seat_slot(struct oribi_seat *seat)
{
    return &seat->ties.board.slots[seat->index];
}

const struct oribi_options *oribi_seat_options(const struct oribi_seat *seat)
{
    return seat->ties.options;
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
    tell(seat, ORIBI_MESSAGE_WORKER_READY, "", 0);
}

void oribi_seat_failed(struct oribi_seat *seat, const char *text, size_t len)
{
    tell(seat, ORIBI_MESSAGE_WORKER_FAILED, text, len);
}

bool oribi_seat_due(const struct oribi_seat *seat)
{
    return atomic_load_explicit(&seat->reopen_asked, memory_order_relaxed);
}

void oribi_seat_turn(struct oribi_seat *seat)
{
    if (atomic_exchange(&seat->reopen_asked, false))
        oribi__reopen_logs(&seat->ties);
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

int oribi_seat_wake_fd(struct oribi_seat *seat)
{
    return seat->wake.read_fd;
}

static const char *state_text(uint32_t state)
{
    switch (state) {
    case ORIBI_SLOT_IDLE:
        return "idle";
    case ORIBI_SLOT_BUSY:
        return "busy";
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
    (void)snprintf(title, sizeof(title), "%s worker %u, generation %u, %s, %llu requests", seat->ties.program, seat->index,
                   seat->generation, state_text(atomic_load(&slot->state)),
                   (unsigned long long)atomic_load(&slot->request_count)); /* cut when longer: still a title */
    return oribi__title_changed(title, seat->title, sizeof(seat->title), dst, cap);
}

/* The handlers stay, and with `serving` off they end the process, also while the language runs its own exit handlers. The seat stays too,
 * because they look at it: it goes with the process. */
void oribi_seat_leave(struct oribi_seat *seat)
{
    atomic_store(&seat->serving, false);
    atomic_store(&seat->worker, NULL);
}
