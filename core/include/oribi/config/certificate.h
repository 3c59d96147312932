/* The files of a certificate, as the option `certificate` and the options of a tls:// address name them:
 *
 *   CERT[,KEY[,OCSP]]   CERT[,KEY]?key=KEY&ocsp=OCSP   tls://…?certificate=CERT&key=KEY&ocsp=OCSP
 *
 * Behind the question mark a byte may be written as %XX. */
#ifndef ORIBI_CONFIG_CERTIFICATE_H
#define ORIBI_CONFIG_CERTIFICATE_H

#include "oribi/config/address.h"

#include <limits.h>

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
