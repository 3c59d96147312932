/* Starting a mold: the first by the language's fork, later ones by exec so that new code counts. A command that is
 * started by exec finds its process context in its environment:
 *
 *   ORIBI_MOLD     "layout generation socket message life board board_count parent take give": it is to become a mold
 *   ORIBI_METRICS  the application's metrics (app_store.h)
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

struct oribi__mold_socket *oribi__mold_socket_of(struct oribi_supervisor *supervisor, int32_t pid)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++)
        if (supervisor->molds[i].fd >= 0 && supervisor->molds[i].pid == pid)
            return &supervisor->molds[i];
    return NULL;
}

void oribi__mold_socket_close(struct oribi_supervisor *supervisor, int32_t pid)
{
    struct oribi__mold_socket *mold = oribi__mold_socket_of(supervisor, pid);
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
static void keep_socket(struct oribi_supervisor *supervisor, int32_t pid, int fd)
{
    for (uint32_t i = 0; i < ORIBI_MOLDS_MAX; i++) {
        if (supervisor->molds[i].fd >= 0)
            continue;
        supervisor->molds[i] = (struct oribi__mold_socket){.pid = pid, .fd = fd};
        return;
    }
    oribi_os_close(fd); /* the mold takes it for the order to leave */
}

struct oribi_policy_event oribi__mold_started(struct oribi_supervisor *supervisor, pid_t pid)
{
    struct oribi__next_mold *next = &supervisor->next_mold;
    const char *text = pid < 0 ? oribi_os_error_text() : NULL;
    if (pid >= 0)
        keep_socket(supervisor, pid, next->fds[0]);
    else
        oribi_os_close(next->fds[0]);
    oribi_os_close(next->fds[1]);
    next->fds[0] = next->fds[1] = -1;
    return mold_started(next->generation, pid < 0 ? -1 : pid, text);
}

/* ORIBI_LISTEN names the listeners of service managers too, so the callers empty the variables of those. */
size_t oribi__listeners_to_keep(struct oribi_supervisor *supervisor, char *listen, size_t cap, int *keep)
{
    int n = snprintf(listen, cap, "ORIBI_LISTEN=");
    (void)oribi_inherited_format(supervisor->context.listeners, listen + n, cap - (size_t)n);
    size_t count = 0;
    for (uint32_t i = 0; i < supervisor->context.listeners->count; i++)
        keep[count++] = supervisor->context.listeners->items[i].fd;
    return count;
}

static int exec_mold(struct oribi_supervisor *supervisor, pid_t *pid)
{
    char listen[ORIBI_INHERITED_TEXT_CAP + 16];
    char mold[160];
    char handoff[24];
    char metrics[ORIBI__APP_STORE_TEXT_CAP];
    int keep[ORIBI_LISTENERS_MAX + 7];
    size_t count = oribi__listeners_to_keep(supervisor, listen, sizeof(listen), keep);
    oribi_handoff_export(&supervisor->context.handoff, handoff, sizeof(handoff));
    (void)snprintf(mold, sizeof(mold), "ORIBI_MOLD=%u %u %d %d %d %d %u %ld %s", (unsigned)ORIBI__LAYOUT,
                   supervisor->next_mold.generation, supervisor->next_mold.fds[1], supervisor->context.message_fd,
                   supervisor->context.life_fd,
                   /* ten numbers fit */
                   supervisor->context.board.fd, supervisor->context.board.count, (long)supervisor->pid, handoff);
    keep[count++] = supervisor->next_mold.fds[1];
    keep[count++] = supervisor->context.message_fd;
    keep[count++] = supervisor->context.life_fd;
    keep[count++] = supervisor->context.board.fd;
    keep[count++] = supervisor->context.handoff.take_fd;
    keep[count++] = supervisor->context.handoff.give_fd;
    if (supervisor->context.app.fd >= 0)
        keep[count++] = supervisor->context.app.fd;
    oribi__app_store_text(&supervisor->context.app, metrics);
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
    int code = oribi_start_again(&supervisor->start, extra, keep, count, pid);
    oribi__children_ours(false);
    return code;
}

/* A manager is its own mold: nothing is to be forked or loaded. Every other first mold is forked by the language; a
 * fresh one is started by exec. */
bool oribi__start_mold(struct oribi_supervisor *supervisor, uint32_t generation, bool fresh,
                       struct oribi_policy_event *event)
{
    pid_t pid = -1;
    supervisor->next_mold.generation = generation;
    if (!fresh && supervisor->context.prefork) {
        *event = mold_started(generation, supervisor->pid, NULL);
        return true;
    }
    if (oribi_message_pair(supervisor->next_mold.fds) < 0) {
        supervisor->next_mold.fds[0] = supervisor->next_mold.fds[1] = -1;
        *event = mold_started(generation, -1, oribi_os_error_text());
        return true;
    }
    if (!fresh) {
        supervisor->action = (struct oribi_supervisor_action){.type = ORIBI_SUPERVISOR_FORK_MOLD};
        return false;
    }
    *event = oribi__mold_started(supervisor, exec_mold(supervisor, &pid) < 0 ? -1 : pid);
    return true;
}

bool oribi__mold_promoted(struct oribi_supervisor *supervisor, const struct oribi_message *message, int passed)
{
    if (passed < 0)
        return false;
    keep_socket(supervisor, message->pid, passed);
    return true;
}
