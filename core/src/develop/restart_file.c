/* A file whose touch is a reload, as an event of the supervisor. */
#include "oribi/develop/restart_file.h"

#include "oribi/base/clock.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os_process.h"
#include "supervisor/supervisor_private.h"

#include <stdio.h>
#include <string.h>

/* --- which file --- */

void oribi__restart_path(const struct oribi_options *options, char path[ORIBI__RESTART_PATH_CAP])
{
    const char *file = options->restart_file;
    const char *below = options->chdir && options->start_dir ? options->chdir : "";
    path[0] = '\0';
    if (!file || !*file)
        return;
    char *here = below[0] || file[0] == '/' ? NULL : oribi_process_dir();
    const char *start = here ? here : options->start_dir;
    int n = file[0] == '/'    ? snprintf(path, ORIBI__RESTART_PATH_CAP, "%s", file)
            : below[0] == '/' ? snprintf(path, ORIBI__RESTART_PATH_CAP, "%s/%s", below, file)
            : below[0]        ? snprintf(path, ORIBI__RESTART_PATH_CAP, "%s/%s/%s", start, below, file)
                              : snprintf(path, ORIBI__RESTART_PATH_CAP, "%s/%s", start, file);
    oribi_mem_free(here);
    if (n >= 0 && n < ORIBI__RESTART_PATH_CAP)
        return;
    path[0] = '\0';
    oribi_log(ORIBI_LOG_WARN, "restart_file: the absolute path is longer than %d bytes; it is not watched",
              ORIBI__RESTART_PATH_CAP - 1);
}

void oribi__restart_watch(struct oribi__restart_file *restart, const char *path)
{
    if (strcmp(restart->path, path) == 0)
        return;
    oribi__restart_end(restart);
    (void)snprintf(restart->path, sizeof(restart->path), "%s", path); /* fits */
    if (restart->path[0])
        oribi__watch_begin_touch(&restart->watch, restart->path);
}

void oribi__restart_end(struct oribi__restart_file *restart)
{
    oribi__watch_end(&restart->watch);
    restart->path[0] = '\0';
}

/* --- when it is touched --- */

static bool looks(const struct oribi_supervisor *supervisor)
{
    const struct oribi_policy *policy = &supervisor->policy;
    return supervisor->restart_file.watch.on && policy->up && !policy->stopping && !policy->stop_at &&
           !policy->next_generation && !policy->rolling && !policy->upgrade_pid;
}

bool oribi__restart_event(struct oribi_supervisor *supervisor, struct oribi_policy_event *event)
{
    if (!looks(supervisor) || !oribi__watch_turn(&supervisor->restart_file.watch, oribi_clock_ms()))
        return false;
    oribi_log(ORIBI_LOG_INFO, "%s was touched: reloading", supervisor->restart_file.path);
    *event = (struct oribi_policy_event){.type = ORIBI_EVENT_RELOAD};
    return true;
}

int64_t oribi__restart_deadline(const struct oribi_supervisor *supervisor)
{
    return looks(supervisor) ? oribi__watch_deadline(&supervisor->restart_file.watch) : INT64_MAX;
}

int oribi__restart_fd(const struct oribi_supervisor *supervisor)
{
    return looks(supervisor) ? oribi__watch_fd(&supervisor->restart_file.watch) : -1;
}
