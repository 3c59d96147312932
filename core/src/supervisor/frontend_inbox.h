/* Sockets by which publications travel (frontend/publish.h has what frontends do with them). The supervisor keeps both
 * ends of all, so that nothing is lost while a frontend is started again; its successor gets the inbox with both ends,
 * and the end at which this server's frontends are asked:
 *
 *   ORIBI_INBOX  "read write joins", descriptors, in the environment of a successor */
#ifndef ORIBI_SUPERVISOR_FRONTEND_INBOX_H
#define ORIBI_SUPERVISOR_FRONTEND_INBOX_H

#include <stddef.h>

struct oribi__process_context;

struct oribi__frontend_inbox {
    int read_fd;        /* the other end is in the process context; -1: none */
    int joins[2];       /* frontends ask the first one here for their feed: the read end, the other */
    int predecessor_fd; /* that other end of the server that this one replaces */
};

enum { ORIBI__FRONTEND_INBOX_TEXT_CAP = 64, ORIBI__FRONTEND_INBOX_FDS = 5 };

void oribi__frontend_inbox_init(struct oribi__frontend_inbox *inbox);

/* Reads ORIBI_INBOX, and clears it. */
void oribi__frontend_inbox_inherit(struct oribi__frontend_inbox *inbox, struct oribi__process_context *process);

/* Makes what was not inherited; publishers of this process write there from now on. 0 or a code of os.h. */
int oribi__frontend_inbox_make(struct oribi__frontend_inbox *inbox, struct oribi__process_context *process);

/* A process has shut the inbox: makes another one. 0, ORIBI_AGAIN: it is not shut; or a code of os.h. */
int oribi__frontend_inbox_renew(struct oribi__frontend_inbox *inbox, struct oribi__process_context *process);

/* Appends the five numbers for ORIBI_FRONTEND, " inbox inbox_write joins joins_write predecessor", and the descriptors
 * to keep open for that process: `keep` has room for ORIBI__FRONTEND_INBOX_FDS. Gives how many they are. */
size_t oribi__frontend_inbox_give(const struct oribi__frontend_inbox *inbox,
                                  const struct oribi__process_context *process, int first, char *text, size_t cap,
                                  int *keep);

/* Its counterpart for a successor: writes ORIBI_INBOX=…, which is empty where there is no inbox. */
size_t oribi__frontend_inbox_hand_over(const struct oribi__frontend_inbox *inbox,
                                       const struct oribi__process_context *process,
                                       char text[ORIBI__FRONTEND_INBOX_TEXT_CAP], int *keep);

/* Closes all but what the process context has. */
void oribi__frontend_inbox_close(struct oribi__frontend_inbox *inbox);

#endif
