/* A file whose touch is a reload: its path, and its watch. */
#include "oribi/develop/restart_file.h"

#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os_process.h"

#include <stdio.h>
#include <string.h>

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
