/* The fakes' sources among themselves. */
#ifndef ORIBI_TEST_FRONTEND_FAKES_PRIVATE_H
#define ORIBI_TEST_FRONTEND_FAKES_PRIVATE_H

#include "fakes.h"

/* Ends the program where a step of the fakes themselves fails. */
void fake_must(bool holds, const char *what);

enum { FAKE_FILLER_BYTES = 256 * 1024 }; /* more than a turn reads at a time */
const char *fake_filler(void);           /* so many bytes 'x' */

int fake_last_far(void); /* that was made */
void fake_calls_end(void);

/* Real clients read what has come; returns whether any has read something. Ends all of them. */
bool fake_clients_read(void);
void fake_clients_end(void);

#endif
