/* The parser we are compared with. The Makefile links one implementation. */
#ifndef ORIBI_BENCH_PEER_H
#define ORIBI_BENCH_PEER_H

#include <stddef.h>

/* NULL: none on this machine. */
const char *peer_name(void);

/* Parses one whole head and keeps where names and values stand. */
void peer_parse(const char *text, size_t n);

#endif
