/* "Did you mean": how far two short words are apart. */
#ifndef ORIBI_CONFIG_SUGGEST_H
#define ORIBI_CONFIG_SUGGEST_H

#include <stdbool.h>
#include <stdint.h>

enum { ORIBI_SUGGEST_WORD_MAX = 48 };

/* Edits that turn `a` into `b`: insert, remove or replace a character, swap two neighbours. UINT32_MAX when a word
 * is longer than ORIBI_SUGGEST_WORD_MAX. */
uint32_t oribi_suggest_distance(const char *a, const char *b);

/* Is `distance` small enough for a word like `typed` to be a slip of the pen? */
bool oribi_suggest_likely(const char *typed, uint32_t distance);

#endif
