/* A part's head, for the parser of bodies (multipart.c). */
#ifndef ORIBI_FORM_PART_H
#define ORIBI_FORM_PART_H

#include "oribi/form/multipart.h"

/* Fills `part` from a whole head, without its last line end and the empty line, and borrows from it. 0, or
 * ORIBI_EHEAD: it has more fields than ORIBI_FORM_DATA_FIELDS_MAX. */
int oribi__part_read(struct oribi_part *part, struct oribi_slice head);

#endif
