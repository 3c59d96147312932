/* Starting a mold: the first by the language's fork, later ones by exec so that new code counts. A command that is
 * started by exec finds its process context in its environment:
 *
 *   ORIBI_MOLD     "layout generation socket message life board board_count parent take give": it is to become a mold
 *   ORIBI_METRICS  the application's metrics (context.h)
 *   ORIBI_LISTEN   the listening sockets, for a successor too (listener.h, upgrade.h)
 *
 * Reading order: oribi__start_mold, oribi__mold_started; mold.c goes on in the new process. */
#include "supervisor/supervisor_private.h"

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

/* --- starting --- */

struct oribi__mold_socket *oribi__mold_socket_of(struct oribi__context *context, int32_t pid)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (context->molds[i].fd >= 0 && context->molds[i].pid == pid)
            return &context->molds[i];
    return NULL;
}

void oribi__mold_socket_close(struct oribi__context *context, int32_t pid)
{
    struct oribi__mold_socket *mold = oribi__mold_socket_of(context, pid);
    if (!mold)
        return;
    oribi_os_close(mold->fd);
    *mold = (struct oribi__mold_socket){.fd = -1};
}

static struct oribi_policy_event mold_started(uint32_t generation, pid_t pid, const char *text)
{
    return (struct oribi_policy_event){
        .type = ORIBI_EVENT_MOLD_STARTED, .generation = generation, .pid = pid, .text = text};
}

/* Takes fd. There is always room: the policy keeps no more molds than this array. */
static void keep_socket(struct oribi__context *context, int32_t pid, int fd)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        if (context->molds[i].fd >= 0)
            continue;
        context->molds[i] = (struct oribi__mold_socket){.pid = pid, .fd = fd};
        return;
    }
    oribi_os_close(fd); /* the mold takes it for the order to leave */
}

struct oribi_policy_event oribi__mold_started(struct oribi__context *context, pid_t pid)
{
    struct oribi__next_mold *next = &context->next_mold;
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
    int keep[ORIBI_LISTENERS_MAX + 7];
    size_t count = oribi__listeners_to_keep(context, listen, sizeof(listen), keep);
    oribi_handoff_export(&context->process.handoff, handoff, sizeof(handoff));
    (void)snprintf(mold, sizeof(mold), "ORIBI_MOLD=%u %u %d %d %d %d %u %ld %s", (unsigned)ORIBI__LAYOUT,
                   context->next_mold.generation, context->next_mold.fds[1], context->process.message_fd,
                   context->process.life_fd,
                   /* ten numbers fit */
                   context->process.board.fd, context->process.board.count, (long)context->pid, handoff);
    keep[count++] = context->next_mold.fds[1];
    keep[count++] = context->process.message_fd;
    keep[count++] = context->process.life_fd;
    keep[count++] = context->process.board.fd;
    keep[count++] = context->process.handoff.take_fd;
    keep[count++] = context->process.handoff.give_fd;
    if (context->process.app.fd >= 0)
        keep[count++] = context->process.app.fd;
    oribi__app_store_text(&context->process.app, metrics);
    char *extra[] = {mold,
                     listen,
                     metrics,
                     (char *)"LISTEN_FDS=",
                     (char *)"LISTEN_PID=",
                     (char *)"ORIBI_UPGRADE=",
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
    context->next_mold.generation = generation;
    if (!fresh && context->process.prefork) {
        *event = mold_started(generation, context->pid, NULL);
        return true;
    }
    if (oribi_message_pair(context->next_mold.fds) < 0) {
        context->next_mold.fds[0] = context->next_mold.fds[1] = -1;
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
