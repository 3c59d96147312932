/* The pid file: one supervisor per file, told by a lock on it, so that a file left behind by a crash stands in nobody's way and a reused pid
 * deceives nobody. */
#ifndef ORIBI_SERVER_PID_FILE_H
#define ORIBI_SERVER_PID_FILE_H

struct oribi_pid_file {
    int fd;     /* holds the lock; -1: none. Forked children that live on close it */
    char *path; /* absolute */
};

/* Locks the file, creating it if need be. 0, or ORIBI_ELIMIT when a live process holds it, ORIBI_ESYS; one line in `error`
 * (ORIBI_OPTIONS_ERROR_CAP). A file without a lock is stale and taken over. */
int oribi_pid_file_lock(struct oribi_pid_file *file, const char *path, char *error);

/* Writes the calling process's id. 0, or ORIBI_ESYS with a line in `error` and the file removed. */
int oribi_pid_file_write(struct oribi_pid_file *file, char *error);

/* Gives it another name, or takes the old one back; the lock stays. 0 or ORIBI_ESYS. */
int oribi_pid_file_rename(struct oribi_pid_file *file, const char *path);

/* Removes the file if it is still ours, and lets go of it. */
void oribi_pid_file_remove(struct oribi_pid_file *file);

/* In a child: closes the descriptor, touches nothing else. */
void oribi_pid_file_forget(struct oribi_pid_file *file);

#endif
