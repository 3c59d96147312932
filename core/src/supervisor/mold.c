/* The mold forks workers at its supervisor's commands, until its command socket ends. */
#include "supervisor/mold.h"

#include "oribi/policy/signal_table.h"
#include "supervisor/announced.h"
#include "supervisor/module.h"
#include "supervisor/generation.h"
#include "supervisor/logs.h"
#include "supervisor/start.h"
#include "supervisor/supervisor.h"
#include "oribi/config/options.h"
#include "oribi/supervisor/message.h"
#include "oribi/supervisor/title.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os_process.h"
#include "oribi/worker/app_metrics.h"
#include "oribi/worker/inbox.h"
#include "oribi/worker/logs/access_log.h"
#include "oribi/base/signals.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* While the application loads, language code runs and no loop looks at flags: a stop ends the process here. Afterwards
 * the loop sees it. */
static void on_signal(void *self, int number)
{
    struct oribi_mold *mold = self;
    switch (oribi__signal_effect(number, ORIBI__IN_MOLD)) {
    case ORIBI__ENDS:
        if (!atomic_load(&mold->loaded))
            _exit(1);
        atomic_store(&mold->exit_asked, true);
        break;
    case ORIBI__REOPENS:
        atomic_store(&mold->reopen_asked, true);
        break;
    default:
        return;
    }
    oribi_wake_notify(&mold->wake);
}

static void tell(struct oribi_mold *mold, enum oribi_message_kind kind, pid_t pid, const char *text, size_t len)
{
    struct oribi_message message = {
        .kind = kind, .generation = mold->generation, .slot = mold->slot, .ticket = mold->ticket, .pid = pid};
    oribi_message_set_text(&message, text, len);
    (void)oribi_message_send(mold->context.message_fd, &message,
                             1); /* fails when the supervisor is gone, which the socket tells */
}

static int fail(struct oribi_mold *mold, int code, const char *error)
{
    oribi_mold_failed(mold, error, strlen(error));
    return code;
}

/* In a child that the application has forked while it loaded, or in before_fork. */
static void let_go(void *owner)
{
    struct oribi_mold *mold = owner;
    oribi__process_context_close(&mold->context, true);
    oribi__close(&mold->socket_fd);
    oribi_wake_destroy(&mold->wake);
    mold->wake = (struct oribi_wake){-1, -1};
}

int oribi__mold_take_post(struct oribi_mold *mold)
{
    mold->pid = getpid();
    oribi_log_identify(-1, mold->generation);
    if (oribi_wake_create(&mold->wake) < 0)
        return ORIBI_ESYS;
    oribi__children_let_go(let_go, mold);
    oribi_signals_install(on_signal, mold, 0);
    return 0;
}

static void note_own(struct oribi_mold *mold)
{
    const struct oribi__process_context *context = &mold->context;
    oribi__fd_guard_add(&mold->fd_guard, mold->socket_fd, "commands of the supervisor");
    oribi__fd_guard_add_wake(&mold->fd_guard, &mold->wake, "wake");
    oribi__fd_guard_add(&mold->fd_guard, context->message_fd, "reports to the supervisor");
    oribi__fd_guard_add(&mold->fd_guard, context->life_fd, "supervisor's end");
    oribi__fd_guard_add(&mold->fd_guard, context->handoff.take_fd, "connections of siblings");
    oribi__fd_guard_add(&mold->fd_guard, context->handoff.give_fd, "connections for siblings");
    for (uint32_t i = 0; i < context->listeners->count; i++)
        oribi__fd_guard_add(&mold->fd_guard, context->listeners->items[i].fd, context->listeners->items[i].text);
}

/* Steps that a forked and a started mold have in common. */
static int settle(struct oribi_mold *mold, pid_t parent, char *error)
{
    const struct oribi_options *options = mold->context.options;
    if (oribi__mold_take_post(mold) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "mold: no descriptors: %s", oribi_os_error_text());
        return fail(mold, ORIBI_ESYS, error);
    }
    int code = oribi_process_switch_user(options->user, options->group, error);
    if (code == 0)
        code = oribi_options_check_files(options, error); /* as the user that the workers are */
    if (code < 0)
        return fail(mold, code, error);
    /* After the change of user, which takes it back (prctl(2)). */
    if (oribi_os_signal_on_parent_death(SIGTERM, parent) == ORIBI_ECLOSED) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "mold: the supervisor is gone");
        return ORIBI_ECLOSED;
    }
    note_own(mold);
    return 0;
}

int oribi_mold_enter(struct oribi_supervisor *supervisor, struct oribi_mold **out, char *error)
{
    struct oribi_mold *mold = oribi_mem_alloc(1, sizeof(*mold));
    struct oribi__context *context = oribi__supervisor_context(supervisor);
    mold->context = *oribi__supervisor_process(supervisor);
    pid_t parent = mold->context.supervisor;
    mold->socket_fd = oribi__mold_take_over(context, &mold->generation);
    oribi__supervisor_forget(supervisor);
    int code = settle(mold, parent, error);
    if (code == 0)
        *out = mold;
    return code;
}

/* --- a mold that was started by exec: ORIBI_MOLD, which generation.c writes --- */

bool oribi_mold_inherited(void)
{
    const char *text = getenv("ORIBI_MOLD");
    return text && *text;
}

int oribi__handed_down_read(struct oribi__handed_down *from, char *error)
{
    unsigned layout = 0;
    long parent = 0;
    const char *text = getenv("ORIBI_MOLD");
    char handoff[24] = "";
    int n = sscanf(text ? text : "", "%u %u %d %d %d %d %u %ld %d %23s", &layout, &from->generation, &from->socket_fd,
                   &from->message_fd, &from->life_fd, &from->board_fd, &from->board_count, &parent, &from->inbox_fd,
                   handoff);
    (void)unsetenv("ORIBI_MOLD"); /* fails for names with `=` only */
    from->parent = (pid_t)parent;
    if (n >= 1 && layout != (unsigned)ORIBI__LAYOUT) {
        (void)snprintf(
            error, ORIBI_ERROR_TEXT_CAP,
            "the running server is of another version: an upgrade (USR2) replaces it, a reload (HUP) cannot");
        return ORIBI_EINVAL;
    }
    const int fds[] = {from->socket_fd, from->message_fd, from->life_fd, from->board_fd};
    for (size_t i = 0; n == 10 && i < sizeof(fds) / sizeof(fds[0]); i++)
        if (oribi_os_set_cloexec(fds[i], true) < 0)
            n = 0;
    if (n == 10 && from->inbox_fd >= 0 && oribi_os_set_cloexec(from->inbox_fd, true) < 0)
        n = 0;
    if (n == 10 && oribi_handoff_import(&from->handoff, handoff) < 0)
        n = 0;
    if (n == 10 && from->board_count > 0 && from->board_count <= ORIBI_SLOTS_MAX)
        return 0;
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "ORIBI_MOLD cannot be read: \"%.80s\"", text ? text : "");
    return ORIBI_EINVAL;
}

int oribi_mold_inherit(const struct oribi_supervisor_setup *setup, struct oribi_mold **out, char *error)
{
    struct oribi__handed_down from;
    int code = oribi__handed_down_read(&from, error);
    if (code < 0)
        return code;
    struct oribi_mold *mold = oribi_mem_alloc(1, sizeof(*mold));
    mold->started_by_exec = true;
    mold->generation = from.generation;
    mold->socket_fd = from.socket_fd;
    mold->context = (struct oribi__process_context){.options = setup->options,
                                                    .listeners = setup->listeners,
                                                    .program = setup->program,
                                                    .supervisor = from.parent,
                                                    .prefork = setup->prefork != NULL,
                                                    .handoff = from.handoff,
                                                    .message_fd = from.message_fd,
                                                    .inbox_fd = from.inbox_fd,
                                                    .life_fd = from.life_fd};
    if (!mold->context.listeners) /* lives as long as the process */
        mold->context.listeners = oribi_mem_alloc(1, sizeof(*mold->context.listeners));
    oribi__app_store_inherit(&mold->context.app);
    if (oribi_scoreboard_attach(&mold->context.board, from.board_count, from.board_fd) < 0) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "cannot map the scoreboard: %s", oribi_os_error_text());
        code = fail(mold, ORIBI_ENOMEM, error);
    }
    if (code == 0)
        oribi_app_metrics_enter(&mold->context.app.view, from.generation, ORIBI_METRIC_NOBODY);
    oribi_publisher_enter(from.inbox_fd, setup->options->control);
    if (code == 0 && (code = oribi__open_logs(&mold->context, error)) < 0)
        code = fail(mold, code, error);
    if (code == 0)
        code = settle(mold, from.parent, error);
    if (code == 0) {
        oribi_options_warn_of_files(setup->options);
        *out = mold;
    }
    return code;
}

bool oribi__mold_start_failed(const char *text)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi__handed_down from;
    if (oribi__handed_down_read(&from, error) < 0)
        return false; /* the supervisor sees this process end */
    struct oribi_message message = {.kind = ORIBI_MESSAGE_MOLD_FAILED, .generation = from.generation, .pid = getpid()};
    oribi_message_set_text(&message, text, strlen(text));
    return oribi_message_send(from.message_fd, &message, 1) == 0;
}

/* --- loading --- */

const struct oribi_options *oribi_mold_options(const struct oribi_mold *mold)
{
    return mold->context.options;
}

struct oribi_listeners *oribi_mold_listeners(struct oribi_mold *mold)
{
    return mold->context.listeners;
}

void oribi_mold_loaded_with(struct oribi_mold *mold, const char *text, size_t len)
{
    (void)snprintf(mold->frameworks, sizeof(mold->frameworks), "%.*s", (int)len, text);
}

/* The supervisor may be gone, or have much to read: then a later place tells. */
void oribi_mold_loading_at(struct oribi_mold *mold, const char *text, size_t len)
{
    struct oribi_message message = {.kind = ORIBI_MESSAGE_MOLD_AT, .generation = mold->generation, .pid = mold->pid};
    oribi_message_set_text(&message, text, len < ORIBI_MOLD_PLACE_MAX ? len : ORIBI_MOLD_PLACE_MAX);
    (void)oribi_message_send(mold->context.message_fd, &message, 0);
}

/* Workers would have what the mold has, so an application that closes while it loads what is not its own has not
 * loaded. */
static void check_own(struct oribi_mold *mold)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    const struct oribi__fd_guard_item *lost = oribi__fd_guard_lost(&mold->fd_guard);
    if (!lost)
        return;
    (void)snprintf(error, sizeof(error),
                   "the application has closed descriptor %d (%s) while it was loaded, which is the server's", lost->fd,
                   lost->what);
    if (oribi__fd_guard_has(&mold->fd_guard, mold->context.message_fd))
        oribi_mold_failed(mold, error, strlen(error));
    else
        oribi_log(ORIBI_LOG_ERROR, "%s", error);
    _exit(ORIBI_EXIT_DESCRIPTORS);
}

void oribi_mold_ready(struct oribi_mold *mold)
{
    check_own(mold);
    (void)oribi_os_signal_on_parent_death(0, getppid()); /* from here on the socket tells */
    atomic_store(&mold->loaded, true);
    oribi_os_fill_standard_streams(); /* the application may have closed them */
    oribi_os_trim_memory();           /* loading leaves much behind that the workers would copy bit by bit */
    if (mold->started_by_exec)
        oribi__announce(&mold->context, mold->generation);
    tell(mold, ORIBI_MESSAGE_MOLD_READY, mold->pid, mold->frameworks, strlen(mold->frameworks));
}

/* Socket files of addresses that only this generation would have had. */
static void remove_fresh_files(struct oribi_listeners *listeners)
{
    for (uint32_t i = 0; i < listeners->count; i++) {
        struct oribi_listener *item = &listeners->items[i];
        if (item->fresh && item->path)
            oribi_listen_unlink(item->path, &item->file);
    }
}

void oribi_mold_failed(struct oribi_mold *mold, const char *text, size_t len)
{
    if (mold->started_by_exec)
        remove_fresh_files(mold->context.listeners);
    tell(mold, ORIBI_MESSAGE_MOLD_FAILED, mold->pid, text, len);
}

enum oribi_mold_action oribi_mold_take(struct oribi_mold *mold)
{
    (void)oribi_wake_clear(&mold->wake); /* what it woke us for is in the flags */
    oribi_log_flush();
    if (atomic_exchange(&mold->reopen_asked, false))
        oribi__reopen_logs(&mold->context);
    if (atomic_load(&mold->exit_asked))
        return ORIBI_MOLD_EXIT;
    struct oribi_message message;
    int got = oribi_message_receive(mold->socket_fd, &message, NULL);
    if (got == 0)
        return ORIBI_MOLD_NONE;
    if (got < 0 || message.kind != ORIBI_MESSAGE_SPAWN || message.slot >= mold->context.board.count)
        return ORIBI_MOLD_EXIT;
    mold->slot = message.slot;
    mold->ticket = message.ticket;
    return ORIBI_MOLD_SPAWN;
}

uint32_t oribi_mold_worker_index(const struct oribi_mold *mold)
{
    return mold->slot;
}

void oribi_mold_wait(struct oribi_mold *mold)
{
    const int fds[] = {mold->socket_fd, mold->wake.read_fd};
    oribi_process_poll(fds, 2, oribi_log_waits() ? ORIBI_LOG_RETRY_MS : -1);
}

void oribi_mold_wake(struct oribi_mold *mold)
{
    oribi_wake_notify(&mold->wake);
}

void oribi_mold_before_fork(struct oribi_mold *mold)
{
    oribi__children_ours(true);
    oribi_signals_hold();
}

static void tell_fork(struct oribi_mold *mold, pid_t pid)
{
    if (pid < 0)
        (void)oribi_os_fail(); /* keeps the reason's words */
    const char *text = pid < 0 ? oribi_os_error_text() : "";
    tell(mold, ORIBI_MESSAGE_WORKER_FORKED, pid < 0 ? -1 : pid, text, strlen(text));
}

void oribi_mold_intermediate(struct oribi_mold *mold, pid_t pid)
{
    tell_fork(mold, pid);
}

/* The intermediate has nothing to do but to fork and to report, so that waiting for it is short; a reaper stays. */
void oribi_mold_after_fork(struct oribi_mold *mold, pid_t pid)
{
    int status;
    if (pid < 0)
        tell_fork(mold, pid);
    oribi__children_ours(false);
    oribi_signals_release();
    if (pid > 0 && !oribi_os_adopts_orphans())
        oribi__reapers_add(&mold->reapers, pid);
    else if (pid > 0)
        (void)oribi_process_reap(pid, true,
                                 &status); /* it reported its result; an error means that it is reaped already */
}

size_t oribi_mold_title(struct oribi_mold *mold, char *dst, size_t cap)
{
    char title[sizeof(mold->title)];
    (void)snprintf(title, sizeof(title), "%s mold, generation %u%s", mold->context.program, mold->generation,
                   atomic_load(&mold->loaded) ? "" : ", loading");
    return oribi__title_changed(title, mold->title, sizeof(mold->title), dst, cap);
}

void oribi_mold_destroy(struct oribi_mold *mold)
{
    oribi_signals_end(0);
    oribi__children_let_go(NULL, NULL);
    oribi_os_close(mold->socket_fd);
    oribi_os_close(mold->context.message_fd);
    oribi_os_close(mold->context.life_fd);
    oribi_handoff_close(&mold->context.handoff);
    oribi_wake_destroy(&mold->wake);
    oribi__reapers_free(&mold->reapers);
    oribi_access_log_forget(mold->context.access_log); /* a mold that was a worker has lines that the worker writes */
    oribi_mem_free(mold);
    oribi_log_drain(ORIBI_LOG_DRAIN_MS);
}
