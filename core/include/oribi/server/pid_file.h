/* The pid file: one supervisor per file, told by a lock on it, so that a file left behind by a crash stands in nobody's way and a reused pid
 * deceives nobody. */
#ifndef ORIBI_SERVER_PID_FILE_H
#define ORIBI_SERVER_PID_FILE_H

struct oribi_pid_file {
    int fd;       /* holds the lock; -1: none. Forked children that live on close it */
    char *path;   /* absolute: where the file is */
    char *wanted; /* absolute: where it will be once it is written; NULL: it is there */
};

/* Locks the file; where there is none, one of another name beside it, so that nobody ever finds it empty. 0, or ORIBI_ELIMIT when a live process holds it,
 * ORIBI_ESYS; one line in `error` (ORIBI_OPTIONS_ERROR_CAP). A file without a lock is stale and taken over. */
int oribi_pid_file_lock(struct oribi_pid_file *file, const char *path, char *error);

/* Writes the calling process's id, and gives the file its name. 0, or with a line in `error` and nothing of ours left behind: ORIBI_ELIMIT when another
 * process was faster since the lock, ORIBI_ESYS. */
int oribi_pid_file_write(struct oribi_pid_file *file, char *error);

/* Gives it another name, or takes the old one back; the lock stays. 0 or ORIBI_ESYS. */
int oribi_pid_file_rename(struct oribi_pid_file *file, const char *path);

/* What it is, or will be, called: borrowed until the next call. */
const char *oribi_pid_file_name(const struct oribi_pid_file *file);

/* Removes the file if it is still ours, and lets go of it. */
void oribi_pid_file_remove(struct oribi_pid_file *file);

/* In a child: closes the descriptor, touches nothing else. */
void oribi_pid_file_forget(struct oribi_pid_file *file);

#endif
