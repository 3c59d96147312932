/* Parents of workers that the supervisor cannot have for its children. */
#include "supervisor/mold.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/base/os/os_process.h"
#include "oribi/supervisor/message.h"

#include <signal.h>
#include <string.h>

enum {
    DESCRIPTORS_MAX = 1024, /* what an application has opened above stays open until the worker ends */
};

/* --- the reaper --- */

/* The supervisor must not take a pid for a worker's that another process may have: so it is told before the pid is
 * given back. */
void oribi__reaper_keep(int message_fd, pid_t pid)
{
    int status = 0;
    struct oribi_message message = {.kind = ORIBI_MESSAGE_ENDED, .pid = pid};
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL); /* what is sent to the process group is for the worker */
    for (int fd = 0; fd < DESCRIPTORS_MAX; fd++)
        if (fd != message_fd)
            oribi_os_close(fd);
    oribi_os_fill_standard_streams();
    if (!oribi_process_await(pid, &status))
        return; /* it is no child of ours: the supervisor finds it gone */
    message.ticket = (uint32_t)status;
    (void)oribi_message_send(message_fd, &message, 1); /* fails when the supervisor is gone */
    (void)oribi_process_reap(pid, true, &status);
}

/* --- the mold --- */

static void reap(struct oribi__reapers *reapers)
{
    int status;
    uint32_t left = 0;
    for (uint32_t i = 0; i < reapers->count; i++)
        if (oribi_process_reap(reapers->pids[i], false, &status) == 0)
            reapers->pids[left++] = reapers->pids[i];
    reapers->count = left;
}

/* Without memory the reaper is reaped when the mold is gone. */
void oribi__reapers_add(struct oribi__reapers *reapers, pid_t pid)
{
    reap(reapers);
    if (reapers->count == reapers->cap) {
        uint32_t cap = reapers->cap ? 2 * reapers->cap : 16;
        pid_t *pids = oribi_mem_try_resize(reapers->pids, cap, sizeof(*pids));
        if (!pids)
            return;
        reapers->pids = pids;
        reapers->cap = cap;
    }
    reapers->pids[reapers->count++] = pid;
}

void oribi__reapers_free(struct oribi__reapers *reapers)
{
    oribi_mem_free(reapers->pids);
    *reapers = (struct oribi__reapers){0};
}
