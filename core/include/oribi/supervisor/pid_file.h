/* The pid file. A write lock on it shows that its supervisor lives: a file left behind by a crash prevents no start, a
 * reused pid does not count, and a user who may only read the file cannot keep a server from starting.
 * What is at the path is replaced only if it is a stale pid file of ours: a regular file of our user with one name
 * and nothing in it but a pid. Symbolic links are not followed. */
#ifndef ORIBI_SUPERVISOR_PID_FILE_H
#define ORIBI_SUPERVISOR_PID_FILE_H

struct oribi_pid_file {
    int fd;       /* holds the lock; -1: none. Forked children that live on close it */
    char *path;   /* absolute: where the file is */
    char *wanted; /* absolute: where it will be once it is written; NULL: it is there */
};

/* Makes a locked file of another name beside the path, so that the path never shows an empty file. 0, or ORIBI_ELIMIT
 * when a live process holds the one that is there, ORIBI_ESYS when that is not to be replaced or nothing can be made;
 * one line in `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi_pid_file_lock(struct oribi_pid_file *file, const char *path, char *error);

/* Would a lock be given, as far as what is at the path tells? Nothing is written. Same results. */
int oribi_pid_file_look(const char *path, char *error);

/* Writes the calling process's id and gives the file its name, replacing a stale one. 0, or with a line in
 * `error` and nothing of ours left behind: ORIBI_ELIMIT when another process was faster since the lock, ORIBI_ESYS. */
int oribi_pid_file_write(struct oribi_pid_file *file, char *error);

/* Gives it another name, or takes the old one back; the lock stays. 0, or ORIBI_ESYS, also when something else than
 * a stale pid file has that name. */
int oribi_pid_file_rename(struct oribi_pid_file *file, const char *path);

/* Name that it has, or will have: borrowed until the next call. */
const char *oribi_pid_file_name(const struct oribi_pid_file *file);

/* Removes the file if it is still ours, and closes it. */
void oribi_pid_file_remove(struct oribi_pid_file *file);

/* In a child: closes the descriptor, touches nothing else. */
void oribi_pid_file_forget(struct oribi_pid_file *file);

#endif
