/* Media types by the extension of a file's name (RFC 9110 8.3). Filled before workers are forked, and only read then.
 *
 * Three layers, each over the one before: a built-in table, files in the format of mime.types(5), single types of the
 * operator. */
#ifndef ORIBI_FILES_TYPES_H
#define ORIBI_FILES_TYPES_H

#include "oribi/base/buf.h"

enum {
    ORIBI_TYPES_MAX = 8192,                   /* extensions */
    ORIBI_TYPE_EXTENSION_BYTES_MAX = 32,      /* of a longer one nothing is known */
    ORIBI_TYPE_BYTES_MAX = 255,               /* type, subtype and parameters; RFC 6838 4.2 allows two names of 127 */
    ORIBI_TYPE_CHARSET_BYTES_MAX = 40,        /* IANA's names are not longer (RFC 2978 2.3) */
    ORIBI_TYPES_FILE_BYTES_MAX = 1024 * 1024, /* a file of types; Debian's has 72 KiB */
};

#define ORIBI_TYPES_SYSTEM_FILE "/etc/mime.types"
#define ORIBI_TYPE_UNKNOWN      "application/octet-stream"

struct oribi_types;

/* Gives the built-in types. charset: what text is said to be written in, "utf-8" if in doubt; NULL or empty: nothing
 * is said. Borrows it. NULL when the charset is no token (RFC 9110 5.6.2) or has more than ORIBI_TYPE_CHARSET_BYTES_MAX
 * bytes. End it with oribi_types_destroy(), which takes NULL too. */
struct oribi_types *oribi_types_create(const char *charset);
void oribi_types_destroy(struct oribi_types *types);

/* Reads `path` over what is there: lines of a type and its extensions, the first type of an extension counts; lines
 * that are none are passed over. Gives how many extensions it has set, a code of os.h when it cannot be read or is no
 * regular file, or ORIBI_ELIMIT when it is larger than ORIBI_TYPES_FILE_BYTES_MAX, and then nothing has changed. */
int oribi_types_read_file(struct oribi_types *types, const char *path);

/* Sets the operator's type of an extension, with or without its dot, in any case; of files without a known extension
 * when it is empty. A type with parameters is sent as it is; text without gets the charset. 0, ORIBI_EINVAL for what is
 * no extension (also one with a dot in it: only what follows the last dot counts) or no type, ORIBI_ELIMIT for one
 * more than ORIBI_TYPES_MAX. */
int oribi_types_set(struct oribi_types *types, const char *extension, const char *type);

/* The value of Content-Type for a file of this path: what follows the last dot of its name decides, in any case; a dot
 * at the front of the name is none. Never empty. Lives until the types are changed or destroyed. */
struct oribi_slice oribi_types_find(const struct oribi_types *types, const char *path);

#endif
