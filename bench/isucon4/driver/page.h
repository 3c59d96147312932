/* Looks into HTML as far as the checks need it: elements by attribute, the text of an element by its id. */
#ifndef DRIVER_PAGE_H
#define DRIVER_PAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether there is a tag `name` with attribute="value". */
bool page_has(const char *html, size_t len, const char *name, const char *attribute, const char *value);

/* Writes the text of the element with that id, blanks at its ends left out, the five usual entities decoded. Returns
 * its length, or -1 when there is no such element; a text that does not fit is cut. */
int page_text(const char *html, size_t len, const char *id, char *text, size_t text_bytes);

/* Writes the value of the attribute `wanted` of the first tag `name` with attribute="value". Returns its length or
 * -1. */
int page_value(const char *html, size_t len, const char *name, const char *attribute, const char *value,
               const char *wanted, char *text, size_t text_bytes);

#endif
