/* Starting a mold: the first by the language's fork, later ones by exec so that new code counts. A command that is
 * started by exec finds its process context in its environment:
 *
 *   ORIBI_MOLD     "layout generation socket message life board board_count parent inbox take give": it is to become a
 *                  mold; inbox -1: there is none
 *   ORIBI_METRICS  the application's metrics (context.h)
 *   ORIBI_LISTEN   the listening sockets, for a successor too (listener.h, upgrade.h)
 *
 * Reading order: oribi__start_mold, oribi__mold_started; mold.c goes on in the new process. */
#include "supervisor/generation.h"

#include "supervisor/context.h"
#include "supervisor/module.h"
#include "supervisor/manager.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/config/listener.h"
#include "supervisor/mold.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct mold {
    int32_t pid;
    int fd; /* our end of its command socket; -1: no mold */
};

/* A mold that is being started: from the action to oribi__mold_started(). */
struct next {
    int fds[2]; /* its command socket, our end first; -1: none is being started */
    uint32_t generation;
};

struct oribi__molds {
    struct mold items[ORIBI_MOLDS_MAX];
    struct next next;
};

/* --- command sockets --- */

static struct mold *mold_of(struct oribi__context *context, int32_t pid)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (context->molds->items[i].fd >= 0 && context->molds->items[i].pid == pid)
            return &context->molds->items[i];
    return NULL;
}

void oribi__mold_socket_close(struct oribi__context *context, int32_t pid)
{
    struct mold *mold = mold_of(context, pid);
    if (!mold)
        return;
    oribi_os_close(mold->fd);
    *mold = (struct mold){.fd = -1};
}

bool oribi__mold_has_socket(struct oribi__context *context, int32_t pid)
{
    return mold_of(context, pid) != NULL;
}

bool oribi__mold_send(struct oribi__context *context, int32_t pid, struct oribi_message *message)
{
    const struct mold *mold = mold_of(context, pid);
    return mold && oribi_message_send(mold->fd, message, 0) == 0;
}

/* --- starting --- */

static struct oribi_policy_event mold_started(uint32_t generation, pid_t pid, const char *text)
{
    return (struct oribi_policy_event){
        .type = ORIBI_EVENT_MOLD_STARTED, .generation = generation, .pid = pid, .text = text};
}

/* Takes fd. There is always room: the policy keeps no more molds than this array. */
static void keep_socket(struct oribi__context *context, int32_t pid, int fd)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        if (context->molds->items[i].fd >= 0)
            continue;
        context->molds->items[i] = (struct mold){.pid = pid, .fd = fd};
        return;
    }
    oribi_os_close(fd); /* the mold takes it for the order to leave */
}

struct oribi_policy_event oribi__mold_started(struct oribi__context *context, pid_t pid)
{
    struct next *next = &context->molds->next;
    const char *text = pid < 0 ? oribi_os_error_text() : NULL;
    if (pid >= 0)
        keep_socket(context, pid, next->fds[0]);
    else
        oribi_os_close(next->fds[0]);
    oribi_os_close(next->fds[1]);
    next->fds[0] = next->fds[1] = -1;
    return mold_started(next->generation, pid < 0 ? -1 : pid, text);
}

/* ORIBI_LISTEN names the listeners of service managers too, so the callers empty the variables of those. */
size_t oribi__listeners_to_keep(struct oribi__context *context, char *listen, size_t cap, int *keep)
{
    int n = snprintf(listen, cap, "ORIBI_LISTEN=");
    (void)oribi_inherited_format(context->process.listeners, listen + n, cap - (size_t)n);
    size_t count = 0;
    for (uint32_t i = 0; i < context->process.listeners->count; i++)
        keep[count++] = context->process.listeners->items[i].fd;
    return count;
}

static int exec_mold(struct oribi__context *context, pid_t *pid)
{
    char listen[ORIBI_INHERITED_TEXT_CAP + 16];
    char mold[160];
    char handoff[24];
    char metrics[ORIBI__APP_STORE_TEXT_CAP];
    int keep[ORIBI_LISTENERS_MAX + 8];
    size_t count = oribi__listeners_to_keep(context, listen, sizeof(listen), keep);
    oribi_handoff_export(&context->process.handoff, handoff, sizeof(handoff));
    (void)snprintf(mold, sizeof(mold), "ORIBI_MOLD=%u %u %d %d %d %d %u %ld %d %s", (unsigned)ORIBI__LAYOUT,
                   context->molds->next.generation, context->molds->next.fds[1], context->process.message_fd,
                   context->process.life_fd,
                   /* eleven numbers fit */
                   context->process.board.fd, context->process.board.count, (long)context->pid,
                   context->process.inbox_fd, handoff);
    keep[count++] = context->molds->next.fds[1];
    keep[count++] = context->process.message_fd;
    keep[count++] = context->process.life_fd;
    keep[count++] = context->process.board.fd;
    keep[count++] = context->process.handoff.take_fd;
    keep[count++] = context->process.handoff.give_fd;
    if (context->process.app.fd >= 0)
        keep[count++] = context->process.app.fd;
    if (context->process.inbox_fd >= 0)
        keep[count++] = context->process.inbox_fd;
    oribi__app_store_text(&context->process.app, metrics);
    char *extra[] = {mold,
                     listen,
                     metrics,
                     (char *)"LISTEN_FDS=",
                     (char *)"LISTEN_PID=",
                     (char *)"ORIBI_UPGRADE=",
                     (char *)"ORIBI_INBOX=",
                     (char *)"ORIBI_UPGRADE_WORKERS=",
                     (char *)"ORIBI_TOTALS=",
                     (char *)"ORIBI_SINGLE=",
                     (char *)"ORIBI_CONTROL_PATH=",
                     NULL};
    oribi__children_ours(true);
    int code = oribi_start_again(&context->start, extra, keep, count, pid);
    oribi__children_ours(false);
    return code;
}

/* A manager is its own mold: nothing is to be forked or loaded. Every other first mold is forked by the language; a
 * fresh one is started by exec. */
bool oribi__start_mold(struct oribi__context *context, uint32_t generation, bool fresh,
                       struct oribi_policy_event *event)
{
    pid_t pid = -1;
    context->molds->next.generation = generation;
    if (!fresh && context->kind->is_own_mold) {
        *event = mold_started(generation, context->pid, NULL);
        return true;
    }
    if (oribi_message_pair(context->molds->next.fds) < 0) {
        context->molds->next.fds[0] = context->molds->next.fds[1] = -1;
        *event = mold_started(generation, -1, oribi_os_error_text());
        return true;
    }
    if (!fresh) {
        context->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_FORK_MOLD};
        return false;
    }
    *event = oribi__mold_started(context, exec_mold(context, &pid) < 0 ? -1 : pid);
    return true;
}

bool oribi__mold_promoted(struct oribi__context *context, const struct oribi_message *message, int passed)
{
    if (passed < 0)
        return false;
    keep_socket(context, message->pid, passed);
    return true;
}

bool oribi__mold_is_starting(const struct oribi__context *context)
{
    return context->molds->next.fds[0] >= 0;
}

int oribi__mold_take_over(struct oribi__context *context, uint32_t *generation)
{
    int fd = context->molds->next.fds[1];
    *generation = context->molds->next.generation;
    context->molds->next.fds[1] = -1;
    return fd;
}

/* --- the module --- */

static void init(struct oribi__context *context)
{
    context->molds->next.fds[0] = context->molds->next.fds[1] = -1;
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        context->molds->items[i].fd = -1;
}

static void let_go(struct oribi__context *context)
{
    oribi__close(&context->molds->next.fds[0]);
    oribi__close(&context->molds->next.fds[1]);
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        oribi__close(&context->molds->items[i].fd);
}

const struct oribi__module oribi__molds_module = {
    .bytes = sizeof(struct oribi__molds),
    .init = init,
    .let_go = let_go,
    .end = let_go,
};
