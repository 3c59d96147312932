/* The fakes' sources among themselves. */
#ifndef ORIBI_TEST_FRONTEND_FAKES_PRIVATE_H
#define ORIBI_TEST_FRONTEND_FAKES_PRIVATE_H

#include "fakes.h"

/* Ends the program where a step of the fakes themselves fails. */
void fake_must(bool holds, const char *what);

/* Real clients read what has come; returns whether any has read something. Ends all of them. */
bool fake_clients_read(void);
void fake_clients_end(void);

#endif
