/* Opens log files as root without writing into a file of another user. A server that begins as root and serves as
 * another user opens its logs in folders which that user may write: the log's name there may be a link to any file, or
 * another name of one.
 *
 *   /dev/stdout, /dev/stderr, /dev/fd/N, /proc/self/fd/N   the open descriptor itself, whatever it is: how
 *                                                          containers name their logs
 *   a symbolic link                                        followed only if it is root's (and to root only in a folder
 *                                                          that root alone may write), or our own
 *   a regular file                                         as root: with one name, of root or of the workers' user
 *   a named pipe, a terminal, a device                     taken; a named pipe needs its reader to be there
 *
 * Root opens as the workers' user would. Only where that user may not (a folder of root's, /var/log) does it open as
 * root, if that user can change nothing on the way there, and gives the file to that user through the descriptor. */
#ifndef ORIBI_BASE_LOG_FILE_H
#define ORIBI_BASE_LOG_FILE_H

#include <stdbool.h>
#include <sys/types.h>

/* The user that the workers run as, who owns the log files. */
struct oribi_log_owner {
    const char *user; /* borrowed; its name, for the supplementary groups; NULL: it has none */
    uid_t uid;        /* -1: as it is */
    gid_t gid;        /* -1: as it is */
};

/* Gives `path` opened for appending (blocking, CLOEXEC, above 2), made with mode 0644 if it is not there. `owner`
 * may be NULL; it counts for root only. *stream: it is the copy of a descriptor by name, and opening it again would
 * give nothing new. 0 or a code of os.h with words. */
int oribi_log_file_open(const char *path, const struct oribi_log_owner *owner, int *fd, bool *stream);

#endif
