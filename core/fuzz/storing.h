/* Shared by the targets whose clients' bytes may go to files. */
#ifndef ORIBI_FUZZ_STORING_H
#define ORIBI_FUZZ_STORING_H

#include "oribi/event/conn.h"
#include "oribi/event/out.h"
#include "oribi/event/reactor.h"

/* The writer's thread has bytes of a connection: what it takes is no time of the target's clock. */
static bool is_storing(const struct oribi_reactor *reactor)
{
    for (const struct oribi_conn *conn = reactor->conns; conn; conn = conn->next) {
        const struct oribi_temp_file *answer = conn->out ? oribi_out_temp_file(conn->out) : NULL;
        if (conn->state == ORIBI_CONN_STORE || (answer && answer->busy))
            return true;
    }
    return false;
}

/* Returns when the files have what was meant for them, and the reactor knows. */
static void await_files(struct oribi_reactor *reactor)
{
    for (; is_storing(reactor); oribi_reactor_stored(reactor))
        oribi_writer_wait(reactor->writer, oribi_writer_ended(reactor->writer), 1);
}

#endif
