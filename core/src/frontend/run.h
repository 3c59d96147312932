/* Life of a frontend, from its begin to the end of its drain. The program is main.c. */
#ifndef ORIBI_FRONTEND_RUN_H
#define ORIBI_FRONTEND_RUN_H

#include "frontend/config.h"

struct oribi__frontend;

/* Gives a frontend with all its modules, which serves from its first turn on; config is borrowed. NULL: `error`
 * (ORIBI_ERROR_TEXT_CAP) says why; the process is to end then. */
struct oribi__frontend *oribi__frontend_create(struct oribi_frontend_config *config, char *error);

void oribi__frontend_run(struct oribi__frontend *frontend); /* until it has drained */

/* Closes all that it holds. */
void oribi__frontend_destroy(struct oribi__frontend *frontend);

#endif
