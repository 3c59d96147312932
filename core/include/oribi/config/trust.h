/* Which peers may say on whose behalf they speak: the addresses of trusted_proxies. */
#ifndef ORIBI_CONFIG_TRUST_H
#define ORIBI_CONFIG_TRUST_H

#include "oribi/base/buf.h"
#include "oribi/config/options.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ORIBI_TRUST_RANGES_MAX = 128,
    ORIBI_TRUST_CLIENT_CAP = 16, /* INET_ADDRSTRLEN */
};

struct oribi_trust_range {
    uint8_t addr[16]; /* IPv6; IPv4 as ::ffff:a.b.c.d */
    uint8_t bits;     /* 0 to 128 */
};

/* All-zero trusts no peer. */
struct oribi_trust {
    struct oribi_trust_range ranges[ORIBI_TRUST_RANGES_MAX];
    uint32_t count;
    bool unix_peers;
};

/* Reads items of a list, each one or more of ADDRESS, ADDRESS/BITS or the word unix, with commas or spaces between.
 * 0, or ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi_trust_parse(const struct oribi_text_list *list, struct oribi_trust *trust, char *error);

/* Whether the numeric address `addr` is trusted; the empty one is a peer on a unix socket. False for text that is no
 * address. */
bool oribi_trust_has(const struct oribi_trust *trust, struct oribi_slice addr);

/* The client of a request from a trusted peer: the last address in `forwarded_for` (a value of X-Forwarded-For) that
 * is not trusted itself, or the first when all are. A port behind it is cut off, empty elements do
 * not count, and ::ffff:a.b.c.d is written a.b.c.d, in `room`. An element that is no address ends the walk, since its
 * writer is not known: the one to its right is it then. Empty when there is none at all. The slice is a part of
 * `forwarded_for` or of `room`. */
struct oribi_slice oribi_trust_client(const struct oribi_trust *trust, struct oribi_slice forwarded_for,
                                      char room[ORIBI_TRUST_CLIENT_CAP]);

#endif
