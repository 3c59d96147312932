/* Files whose change is a reload: those of the application, in development (develop/watch.h), and restart_file when it
 * is touched (develop/restart_file.h). Nothing is watched before the server is up, nor while it stops. */
#ifndef ORIBI_SUPERVISOR_WATCHED_H
#define ORIBI_SUPERVISOR_WATCHED_H

#include <stddef.h>

struct oribi__context;
struct oribi_buf;
struct oribi_options;

/* Begins to watch what the options name. */
void oribi__watched_begin(struct oribi__context *context);

/* Takes the descriptor with the paths that an application was loaded from. */
void oribi__watch_message(struct oribi__context *context, int fd);

/* For the next program under this pid: the state of the files; and in it. */
void oribi__watched_export(const struct oribi__context *context, struct oribi_buf *out);
void oribi__watched_import(struct oribi__context *context, const char *bytes, size_t len);

enum { ORIBI__WATCHED_PATH_CAP = 1024 };

/* The path of restart_file by these options, absolute; "": none. */
void oribi__watched_restart_path(const struct oribi_options *options, char path[ORIBI__WATCHED_PATH_CAP]);

/* The file of a new generation, an absolute path; "": none. */
void oribi__restart_file_watch(struct oribi__context *context, const char *path);

/* The path of the file in force, for observe; "": none. */
const char *oribi__restart_file_path(const struct oribi__context *context);

#endif
