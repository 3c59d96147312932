/* Certificates that an authority issues by ACME (RFC 8555): the option `acme` as values, and when a certificate is
 * asked for. Pure functions; the program that asks is frontend/acme/, the supervisor's part supervisor/acme.h. */
#ifndef ORIBI_CONFIG_ACME_H
#define ORIBI_CONFIG_ACME_H

#include "oribi/base/buf.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct oribi_options;

enum {
    ORIBI_ACME_CERTIFICATES_MAX = 32,
    ORIBI_ACME_NAMES_MAX = 100,      /* of a certificate, as Let's Encrypt has it */
    ORIBI_ACME_NAME_MAX = 253,       /* bytes, RFC 1035 2.3.4 */
    ORIBI_ACME_FIRST_NAME_MAX = 240, /* it has "-cert.pem" behind it, and files have names of 255 bytes */
    ORIBI_ACME_TOKEN_MAX = 200,      /* bytes; RFC 8555 8.1: base64url of at least 128 bits */
    ORIBI_ACME_AUTHORIZATION_MAX = 300,
    ORIBI_ACME_MAIL_MAX = 254,
    ORIBI_ACME_TEXT_MAX = ORIBI_ACME_NAMES_MAX * (ORIBI_ACME_NAME_MAX + 1),
};

/* One line of the option: "example.org,www.example.org?email=me@example.org". */
struct oribi_acme_line {
    uint32_t count;
    const char *names[ORIBI_ACME_NAMES_MAX]; /* lower case, in `text`; the first one names the files */
    char email[ORIBI_ACME_MAIL_MAX + 1];     /* "": none */
    char text[ORIBI_ACME_TEXT_MAX];          /* private */
};

/* Reads a line. 0; or ORIBI_EINVAL with one line in `error` (ORIBI_ERROR_TEXT_CAP): no name, no host name (RFC 1123
 * 2.1; letters of other scripts are written as xn--), a wildcard, for which http-01 cannot answer (RFC 8555 8.3), a
 * number of IPv4 or IPv6, a name twice, too many, an address of mail that has none of `@`, an unknown setting. */
int oribi_acme_read(const char *line, struct oribi_acme_line *acme, char *error);

/* Reads a line, and gives its error alone. */
int oribi_acme_check_line(const char *line, char *error);

/* True: the option is set at all. */
bool oribi_acme_wanted(const struct oribi_options *options);

/* All lines together: as above, and a name in two lines with equal first names, too many lines, `acme_terms` not said,
 * `acme_directory` that is no https:// address. */
int oribi_acme_check(const struct oribi_options *options, char *error);

/* Writes the folder of keys, certificates and account: acme_dir; else `acme` in the first folder of STATE_DIRECTORY
 * (systemd.exec(5)); else /var/lib/oribi/acme. False: longer than cap. */
bool oribi_acme_dir(const struct oribi_options *options, char *dst, size_t cap);

/* Writes "DIR/FIRST-NAME.pem", the chain and the key of the certificate. False: longer than cap. */
bool oribi_acme_file(const char *dir, const struct oribi_acme_line *acme, char *dst, size_t cap);

/* Appends the names with commas between them. */
void oribi_acme_print_names(struct oribi_buf *out, const struct oribi_acme_line *acme);

/* Is this a token, and what it is answered with (RFC 8555 8.1, 8.3)? */
bool oribi_acme_is_challenge(const char *token, const char *authorization);

/* --- when --- */

/* Facts of one certificate, seconds since 1970. */
struct oribi_acme_facts {
    int64_t begins_s; /* of the certificate in the file; both 0: there is none that can be used */
    int64_t expires_s;
    uint32_t failures; /* in a row */
    int64_t tried_s;   /* when the last order began; 0: never */
};

/* When the certificate is asked for: now (0) where there is none; else in the last third of its life, at a moment of
 * that third's first quarter that `seed` chooses (a hash of its names: two servers do not ask at once, and a restart
 * chooses the same); after failures not before the back-off of the last order: 1 h, 2 h, 4 h … a day. With a
 * certificate that lives for less than a day, the back-off is a twenty-fourth of its life, doubled, up to its life. */
int64_t oribi_acme_due_s(const struct oribi_acme_facts *facts, uint32_t seed);

/* The back-off after so many failures (from 1 on). `life_s` 0: of no certificate yet. */
int64_t oribi_acme_backoff_s(uint32_t failures, int64_t life_s);

uint32_t oribi_acme_seed(const struct oribi_acme_line *acme);

#endif
