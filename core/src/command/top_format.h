/* Numbers for people, short enough for a column. top_format.c. */
#ifndef ORIBI_COMMAND_TOP_FORMAT_H
#define ORIBI_COMMAND_TOP_FORMAT_H

#include <stdint.h>

enum { ORIBI__TEXT_CAP = 32 };

/* Each writes its number to dst and returns dst. At most 8 columns. */

/* A time: "850 us", "12.3 ms", "1.20 s", "3 m 05 s", "2 h 05 m", "12 d 4 h", "4711 d". */
const char *oribi__text_duration(char dst[ORIBI__TEXT_CAP], uint64_t us);

/* How many: "123456", "12.3M". At most 7 columns. */
const char *oribi__text_count(char dst[ORIBI__TEXT_CAP], uint64_t count);

/* How often: "-" (negative: not known), "0", "0.3", "12.3", "1234", "12.3k", "1.2M". At most 6 columns. */
const char *oribi__text_rate(char dst[ORIBI__TEXT_CAP], double rate);

/* Bytes: "0 B", "12 KB", "1.2 MB", "512 MB", "1.5 GB"; of 1024 each. */
const char *oribi__text_bytes(char dst[ORIBI__TEXT_CAP], double bytes);

#endif
