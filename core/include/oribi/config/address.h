/* Addresses to listen on (address.c), and the files of their certificates (certificate.c). */
#ifndef ORIBI_CONFIG_ADDRESS_H
#define ORIBI_CONFIG_ADDRESS_H

#include "oribi/base/buf.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/* ---- address ---- */

/* The grammar of a listening address.
 *
 *   tcp://host:port  host:port  [::1]:port  tcp://:port  :port  port  port 0: any free one; no host: all of IPv4
 *   [::]:port                                                          all of IPv6 and of IPv4; ?ipv6only=on
 *   unix:///path  unix://relative  /path  ./path  dir/path                 options: ?umask=007  ?mode=660
 *   fd://3  fd://name                                                      name: one of LISTEN_FDNAMES
 *
 *   tls://host:port                        ?certificate=FILE ?key=FILE ?ocsp=FILE, as the option certificate has them
 *
 * tcp and unix take ?frontend=on: a frontend holds the clients, which may speak HTTP/2 then. All but fd take
 * ?backlog=N, all take ?proxy=on (a PROXY header is expected from trusted peers); several options are joined with
 * `&`. */

enum {
    ORIBI_ADDRESS_TEXT_CAP = 128,
    ORIBI_ADDRESS_HOST_MAX = 100, /* bytes of a host name or numeric address, zone included */
    /* Longest path in a sockaddr_un, beside its NUL: 107 on Linux (unix(7)), 103 on the BSDs. */
    ORIBI_ADDRESS_PATH_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1,
    ORIBI_ADDRESS_BACKLOG_MAX = INT32_MAX,
};

enum oribi_address_type { ORIBI_ADDRESS_TCP, ORIBI_ADDRESS_UNIX, ORIBI_ADDRESS_FD };

struct oribi_address {
    enum oribi_address_type type;
    uint16_t port; /* tcp */
    char name[ORIBI_ADDRESS_PATH_MAX +
              1];     /* host without brackets, path, or number or name of a descriptor; NUL-terminated */
    uint32_t umask;   /* unix; 0 unless given: the file is as open as the directory around it */
    uint32_t backlog; /* 0 when not given */
    bool proxy;
    bool ipv6_only;                    /* [::] without IPv4 */
    bool frontend;                     /* tls, or frontend=on */
    bool tls;                          /* tls://; type and text are those of tcp:// */
    struct oribi_slice files[3];       /* certificate, key, ocsp: parts of the text that was parsed; n 0: not given */
    char text[ORIBI_ADDRESS_TEXT_CAP]; /* canonical, without options: two spellings of one address are equal here */
};

/* Parses `text`. 0, or ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP) saying what is wrong with it. */
int oribi_address_parse(const char *text, struct oribi_address *address, char *error);

/* Whether it is [::], which stands for every address of the machine. */
bool oribi_address_is_every(const struct oribi_address *address);

/* `text` as it was asked for: "tls://…" in `room` where TLS is spoken, else text itself. */
const char *oribi_address_shown(const char *text, bool tls, char room[ORIBI_ADDRESS_TEXT_CAP]);

/* Writes "tcp://host:port", with brackets around an IPv6 host, to dst. Returns the length, cut at cap. */
size_t oribi_address_format_tcp(const char *host, uint16_t port, char *dst, size_t cap);

/* The numbers of a TCP address that a socket is bound to or that a name stands for: the host, with the zone of one that
 * has a zone, and the port. False: it is of another kind. */
bool oribi_address_numbers(const struct sockaddr *address, socklen_t n, char host[ORIBI_ADDRESS_HOST_MAX + 1],
                           uint16_t *port);

/* A client's address as applications and logs have it: a mapped IPv4 address as the IPv4 address, no zone. Writes to
 * `addr`, which has INET6_ADDRSTRLEN bytes, and to `port`, which has five. Nothing for a unix socket. */
void oribi_address_of_client(const struct sockaddr_storage *from, char *addr, uint8_t *addr_len, char *port,
                             uint8_t *port_len);

/* Is the host of an address this machine's own, in numbers or as localhost? (options_status.c) */
bool oribi__options_is_loopback(const char *host);

/* ---- certificate ---- */

/* The files of a certificate, as the option `certificate` and the options of a tls:// address name them:
 *
 *   CERT[,KEY[,OCSP]]   CERT[,KEY]?key=KEY&ocsp=OCSP   tls://…?certificate=CERT&key=KEY&ocsp=OCSP
 *
 * Behind the question mark a byte may be written as %XX. */

struct oribi_certificate_files {
    char certificate[PATH_MAX]; /* with its chain */
    char key[PATH_MAX];         /* that of the certificate where none is named */
    char ocsp[PATH_MAX];        /* "": none */
};

/* Reads a value of the option. 0, or ORIBI_EINVAL with one line in `error`. */
int oribi_certificate_read(const char *line, struct oribi_certificate_files *files, char *error);

/* Checks a value as oribi_certificate_read() does, and gives no files. */
int oribi_certificate_check(const char *line, char *error);

/* The files of an address that has a certificate (files[0].n > 0) and was parsed. */
void oribi_certificate_of_address(const struct oribi_address *address, struct oribi_certificate_files *files);

/* Could this be the value of such an option of an address? Escapes are right, and it is no longer than a path. */
bool oribi_certificate_is_file(struct oribi_slice value);

#endif
