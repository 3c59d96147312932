/* Records between supervisor, molds and workers, over SOCK_SEQPACKET unix sockets: a record arrives whole or
 * not at all, and the end of a process is the end of its socket. All of them run the same build of this library;
 * records of another one are refused. */
#ifndef ORIBI_SUPERVISOR_MESSAGE_H
#define ORIBI_SUPERVISOR_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum oribi_message_kind {
    ORIBI_MESSAGE_MOLD_READY = 1, /* pid, text: frameworks that the application has loaded; or empty */
    ORIBI_MESSAGE_MOLD_FAILED,    /* pid, text */
    ORIBI_MESSAGE_WORKER_FORKED,  /* slot, ticket, pid; pid < 0: text */
    ORIBI_MESSAGE_WORKER_READY,   /* slot, ticket, pid */
    ORIBI_MESSAGE_WORKER_FAILED,  /* slot, ticket, pid, text */
    ORIBI_MESSAGE_WORKER_LEAVING, /* slot, ticket, pid */
    /* pid, text: what the command line and config of a new generation say, "name=value" lines */
    ORIBI_MESSAGE_MOLD_OPTIONS,
    /* pid, text: spec of a listener of a new generation; with a descriptor when it has opened it */
    ORIBI_MESSAGE_MOLD_LISTENER,
    ORIBI_MESSAGE_MOLD_PROMOTED,     /* pid; with our end of its command socket */
    ORIBI_MESSAGE_SPAWN,             /* to a mold: slot, ticket */
    ORIBI_MESSAGE_MOLD_AT,           /* pid, text: where loading stands */
    ORIBI_MESSAGE_MOLD_DIFFERING,    /* pid, text: a part of what oribi_options_differing() says of a new generation */
    ORIBI_MESSAGE_FILES,             /* pid; with a descriptor of memory: paths of what was loaded, each with NUL */
    ORIBI_MESSAGE_MOLD_RESTART_FILE, /* pid, text: restart_file of a new generation as an absolute path, "" for none */
    ORIBI_MESSAGE_MOLD_LOCAL,        /* pid; with a descriptor of oribi__frontend_text_local() of a new generation */
    ORIBI_MESSAGE_ENDED,             /* pid, ticket: status as waitpid(2) gives it; reaper.c */
};

enum { ORIBI_MESSAGE_TEXT_MAX = 3072 };

struct oribi_message {
    uint32_t magic; /* set by send */
    uint32_t kind;
    uint32_t generation;
    uint32_t slot;
    uint32_t ticket;
    int32_t pid;
    uint32_t text_len;
    char text[ORIBI_MESSAGE_TEXT_MAX + 1]; /* NUL-terminated after receive */
};

/* Two connected ends, CLOEXEC. 0 or ORIBI_ESYS, ORIBI_ELIMIT. */
int oribi_message_pair(int fds[2]);

/* Copies text into the message, cut at ORIBI_MESSAGE_TEXT_MAX. */
void oribi_message_set_text(struct oribi_message *message, const char *text, size_t len);

/* Sends one record, waiting for room if `wait` is set. 0, ORIBI_AGAIN, ORIBI_ECLOSED or ORIBI_ESYS. */
int oribi_message_send(int fd, struct oribi_message *message, int wait);

/* Sends a record with a copy of the descriptor `passed`, which is borrowed. */
int oribi_message_send_fd(int fd, struct oribi_message *message, int passed);

/* Takes one record without waiting. 1, 0 when there is none, ORIBI_ECLOSED at the end, ORIBI_ESYS, ORIBI_EBAD for a
 * record of another build. Gives the descriptor that came with it, CLOEXEC, or -1; with `passed` NULL it is closed. */
int oribi_message_receive(int fd, struct oribi_message *message, int *passed);

#endif
