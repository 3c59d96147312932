/* The page of the status listener: page.html, which is part of the binary. It holds no data; its script asks for
 * /status.json and /history.json. */
#ifndef ORIBI_OBSERVE_PAGE_H
#define ORIBI_OBSERVE_PAGE_H

#include "oribi/base/buf.h"

enum { ORIBI__PAGE_NONCE_CAP = 33 };

/* Makes a nonce of 128 random bits, in hexadecimal and NUL-terminated: with it the page's own script and style may run,
 * and no other (Content Security Policy 3, section 7.1). 0, or ORIBI_ESYS. */
int oribi__page_nonce(char nonce[ORIBI__PAGE_NONCE_CAP]);

/* Appends the page with this nonce. Where memory is out the rest is missing. */
void oribi__page(const char *nonce, struct oribi_buf *out);

#endif
