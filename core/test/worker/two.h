/* Two workers in one process with one listener and a hand-off queue between them, and the clients; which worker has its
 * turn is the choice of the test. */
#ifndef ORIBI_TEST_WORKER_TWO_H
#define ORIBI_TEST_WORKER_TWO_H

#include "worker/talk.h"

/* From now on so many descriptors more can be opened by this process; < 0: as many as before. */
void limit_descriptors(int room);

int open_fds(void); /* descriptors of this process */

struct two {
    struct site site; /* worker 0 with the clients */
    struct oribi_handoff handoff;
    struct oribi_worker *workers[2];
};

void set_idle(struct two *two, int i);

void two_open(struct two *two);

void two_close(struct two *two);

/* Worker 0 has accepted `count` clients and all have sent `text`, none was taken yet. */
void accept_all(struct two *two, struct client **clients, int count, const char *text);

#endif
