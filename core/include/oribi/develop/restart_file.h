/* `restart_file`: a file of the operator's, tmp/restart.txt as a rule, that asks for a reload when it is touched. The
 * supervisor watches it with inotify and looks at it once a second besides (watch.h). It does not look while a reload
 * or an upgrade is under way, nor before the server is up: touches of that time make one reload afterwards. So a storm
 * of touches makes one reload at a time, and the next one at the earliest when the one before has ended. */
#ifndef ORIBI_DEVELOP_RESTART_FILE_H
#define ORIBI_DEVELOP_RESTART_FILE_H

#include "oribi/config/options.h"
#include "oribi/develop/watch.h"

enum { ORIBI__RESTART_PATH_CAP = 1024 };

struct oribi__restart_file {
    struct oribi__watch watch;
    char path[ORIBI__RESTART_PATH_CAP]; /* absolute; "": none is watched */
};

/* The option as an absolute path, "" for none, by the names of the application's folder (`chdir`, PWD) and not by where
 * symbolic links lead now: a release behind a switched link has its own file. A path that does not fit is none, and a
 * line in the log. */
void oribi__restart_path(const struct oribi_options *options, char path[ORIBI__RESTART_PATH_CAP]);

/* From now on this file, which a text of at most ORIBI__RESTART_PATH_CAP names; nothing changes for the one that is
 * watched already. Without any there is no inotify instance. */
void oribi__restart_watch(struct oribi__restart_file *restart, const char *path);
void oribi__restart_end(struct oribi__restart_file *restart);

#endif
