/* Values of headers that an application gives not quite right and that can be sent safely: other servers send them, or
 * something like them, and clients live with it. What could be read as more than one header is no such value. */
#ifndef ORIBI_HTTP_MEND_H
#define ORIBI_HTTP_MEND_H

#include "oribi/http/response.h"

/* Puts the value right. Returns bits of enum oribi_mended, 0 when it was right; or -1 for a control character that must
 * not be sent: CR or LF that end no line of a folded value (RFC 9112 5.2), NUL, and all others but TAB. Borrows `room`,
 * which holds header->value_len bytes: a folded value is written there, and header->value points to it then. With
 * ORIBI_MENDED_UNDEFINED there is no value, and the header is not to be sent. */
int oribi_mend_value(struct oribi_header *header, char *room);

/* The length of a value without the white space and line ends at its end. */
uint32_t oribi_mend_trimmed(const char *value, uint32_t len);

#endif
