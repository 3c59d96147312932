/* The files that an application was loaded from, watched in development: when one changes, the application is loaded
 * anew. Folders are watched, not files, because editors save by renaming; after a report, and a pause in which there
 * is no further one, the files of that folder are looked at, and what counts is another inode, size or time of change.
 *
 *   oribi__watch_begin(&watch, &options->watch);
 *   oribi__watch_files(&watch, list, len);    // what a process has loaded; again whenever there is more
 *   while (…) {
 *       poll(oribi__watch_fd(&watch), until oribi__watch_deadline(&watch));
 *       if ((path = oribi__watch_turn(&watch, now_ms)))
 *           reload
 *   }
 *
 * Without inotify, or where its watches are used up, all files are polled once a second, and a line says so.
 *
 * A watch of one file that is touched (oribi__watch_begin_touch) does both: inotify tells at once, and the look once a
 * second sees what inotify does not: the file behind a symbolic link, a folder of the path that is a link and now leads
 * elsewhere, a file system that others write to over the network. */
#ifndef ORIBI_DEVELOP_WATCH_H
#define ORIBI_DEVELOP_WATCH_H

#include "oribi/base/os/os_watch.h"
#include "oribi/config/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oribi_buf;

enum {
    ORIBI__WATCH_FILES_MAX = 20000,
    ORIBI__WATCH_FOLDERS_MAX = 4000,
    ORIBI__WATCH_PAUSE_MS = 100,      /* without a report, before files are looked at */
    ORIBI__WATCH_PAUSE_MS_MAX = 1000, /* after the first report, files are looked at in any case */
    ORIBI__WATCH_POLL_MS = 1000,
    ORIBI__WATCH_LIST_BYTES_MAX = 8 * 1024 * 1024, /* of one list */
};

/* State of a file when it was looked at; all 0: there was none. */
struct oribi__watched_state {
    uint64_t device;
    uint64_t inode;
    int64_t size;
    int64_t mtime_ns;
};

struct oribi__watched_file {
    char *path;
    uint32_t folder;
    struct oribi__watched_state state;
};

struct oribi__watched_folder {
    char *path;
    char *pattern;    /* of names in it that count, files that are new too; NULL: files of the list alone */
    bool is_deep;     /* folders that are made in it are watched likewise */
    bool dirty;       /* something may have changed */
    int number;       /* of its reports; 0: it is not watched */
    uint64_t listing; /* names and states of those that count */
};

struct oribi__watch {
    bool on;
    bool polls;
    bool touches; /* of the time of change alone, of a file that is there */
    bool told;    /* that inotify is not to be had */
    bool full;    /* a maximum was told of */
    struct oribi_os_watch os;
    struct oribi__watched_file *files; /* sorted by path */
    size_t count;
    size_t capacity;
    struct oribi__watched_folder *folders;
    size_t folder_count;
    size_t lost_count; /* folders that are not there */
    int64_t first_ms;  /* of the reports that wait; 0: there are none */
    int64_t due_ms;
    int64_t poll_ms;
    char changed[1024];   /* path of the first file that has changed */
    size_t changed_count; /* how many have */
};

/* All 0 is a watch that is off; every function may be called with it. */

/* `patterns`: files, folders (with everything below), and patterns: of names in the last part ("config" and then
 * "*.yml"), two stars as a part for all folders below. Borrowed. */
void oribi__watch_begin(struct oribi__watch *watch, const struct oribi_text_list *patterns);
void oribi__watch_end(struct oribi__watch *watch);

/* A watch of one file, absolute and shorter than 1024 bytes, that need not be there, nor its folder. The file has
 * changed when it has another time of change than the last one seen (at the beginning: than now): removed is no change,
 * nor made again with its old time, nor is another inode with that time, since network file systems forget inodes. A
 * folder of that name has no time. Borrowed. */
void oribi__watch_begin_touch(struct oribi__watch *watch, const char *path);

/* Adds paths, each followed by NUL, of files that are there or may come into a folder that is there; those that are
 * known stay as they are. */
void oribi__watch_files(struct oribi__watch *watch, const char *list, size_t len);

/* For a program that is started anew: appends the files as they were when they were last looked at; and watches them as
 * that tells (borrows bytes), so that the next turn reports what has changed since. Bytes that break off count as
 * far as they are whole. */
void oribi__watch_export(const struct oribi__watch *watch, struct oribi_buf *out);
void oribi__watch_import(struct oribi__watch *watch, const char *bytes, size_t len);

/* Readable when there are reports; -1: none, or the time to look at them is set already (oribi__watch_deadline()). */
int oribi__watch_fd(const struct oribi__watch *watch);

/* When there is something to do at the latest, on oribi_clock_ms(); INT64_MAX: never. */
int64_t oribi__watch_deadline(const struct oribi__watch *watch);

/* The path of a file that has changed (watch->changed_count says how many have), NULL: none has. */
const char *oribi__watch_turn(struct oribi__watch *watch, int64_t now_ms);

/* `restart_file`: a file of the operator's, tmp/restart.txt as a rule, that asks for a reload when it is touched. The
 * supervisor watches it with inotify and looks at it once a second besides. It does not look while a reload
 * or an upgrade is under way, nor before the server is up: touches of that time make one reload afterwards. So a storm
 * of touches makes one reload at a time, and the next one at the earliest when the one before has ended. */
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
