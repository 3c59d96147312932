/* Shared by watch.c and watch_patterns.c. */
#ifndef ORIBI_DEVELOP_WATCH_PRIVATE_H
#define ORIBI_DEVELOP_WATCH_PRIVATE_H

#include "oribi/develop/watch.h"

#define ORIBI__WATCH_NO_FOLDER UINT32_MAX

/* State of the file that is there now; false, and all 0: there is none. Of folders only which one. */
bool oribi__watched_state(const char *path, struct oribi__watched_state *state);

/* Adds the folder, if it is not watched likewise. Its place; ORIBI__WATCH_NO_FOLDER: there is no room. */
uint32_t oribi__watch_folder(struct oribi__watch *watch, const char *path, const char *pattern, bool is_deep);

/* A sum over names and states of what counts in the folder. `newest` (1024 bytes, or NULL): path of the file in it that
 * was changed last. */
uint64_t oribi__watch_listing(const struct oribi__watched_folder *folder, char *newest);

/* Adds the folders below that folder, but hidden ones and node_modules. */
void oribi__watch_below(struct oribi__watch *watch, const char *path, const char *pattern);

void oribi__watch_pattern(struct oribi__watch *watch, const char *text);

#endif
