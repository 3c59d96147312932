/* The supervisor itself; for supervisor.c and start.c alone. */
#ifndef ORIBI_SUPERVISOR_SUPERVISOR_STATE_H
#define ORIBI_SUPERVISOR_SUPERVISOR_STATE_H

#include "oribi/config/listener.h"
#include "supervisor/context.h"

struct oribi_supervisor {
    struct oribi__context context;
    struct oribi_listeners no_listeners;
    bool begun;
    char title[160];
};

#endif
