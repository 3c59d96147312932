/* What host.c, mold.c and seat.c share: the ties that a process keeps when it is forked from supervisor to mold to worker. */
#ifndef ORIBI_SERVER_HOST_PRIVATE_H
#define ORIBI_SERVER_HOST_PRIVATE_H

#include "oribi/base/os.h"
#include "oribi/server/access_log.h"
#include "oribi/server/host.h"
#include "oribi/server/message.h"
#include "oribi/server/pid_file.h"
#include "oribi/server/process.h"
#include "oribi/server/scoreboard.h"
#include "oribi/server/supervisor.h"

#include <stdatomic.h>
#include <stdbool.h>

struct oribi__ties {
    const struct oribi_options *options;
    struct oribi_listeners *listeners; /* never NULL */
    const char *program;
    struct oribi_scoreboard board;
    struct oribi_access_log *access_log; /* NULL: off */
    int message_fd;                      /* to the supervisor; shared by all its molds and workers */
    int life_fd;                         /* never written to: at its end the supervisor is dead */
};

struct oribi__mold_socket {
    int32_t pid;
    int fd; /* our end */
};

struct oribi_host {
    struct oribi__ties ties;
    pid_t pid;
    struct oribi_start start;
    struct oribi_supervisor sup;
    struct oribi_listeners no_listeners;
    struct oribi__mold_socket molds[ORIBI_MOLDS_MAX];
    int message_fd;       /* our end of ties.message_fd */
    int life_write_fd;    /* the last copy goes with us */
    int signal_fds[2];    /* one byte per signal, 0 to wake */
    int daemon_fds[2];    /* from the daemon to the process that waits for it */
    int terminal_fd;      /* standard error of before the daemon's detachment, for its first lines */
    struct oribi_pid_file pid_file;
    bool daemonize; /* still to be done */
    bool begun;
    /* between ORIBI_HOST_FORK_MOLD and oribi_host_forked() */
    int next_mold_fds[2];
    uint32_t next_generation;
    /* what the next take tells the supervisor */
    bool has_started;
    struct oribi_event started;
    bool has_dead;
    struct oribi_event dead;
    /* what take returned */
    struct oribi_host_action action;
    char reason[128];
    char title[160];
};

/* Log level and error log as the options say. 0 or ORIBI_EINVAL with one line in `error`. */
int oribi__open_logs(struct oribi__ties *ties, char *error);

/* After a rotation. */
void oribi__reopen_logs(struct oribi__ties *ties);

/* Copies title to dst unless it is what `last` (of `last_cap` bytes) holds; remembers it there. */
size_t oribi__title_changed(const char *title, char *last, size_t last_cap, char *dst, size_t cap);

/* In a child: closes what belongs to the supervisor alone and frees it. `keep_fd` stays open. */
void oribi__host_forget(struct oribi_host *host, int keep_fd);

struct oribi_mold {
    struct oribi__ties ties;
    pid_t pid;
    uint32_t generation;
    int socket_fd; /* commands from the supervisor */
    struct oribi_wake wake;
    _Atomic bool loaded;      /* read by the signal handler */
    _Atomic bool exit_asked;  /* set by the signal handler */
    _Atomic bool reopen_asked;/* likewise */
    uint32_t slot;            /* of the spawn being carried out */
    uint32_t ticket;
    char title[160];
};

#endif
