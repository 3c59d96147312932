/* `oribi check` and `oribi-psgi check`: everything that is wrong or risky, as a list of findings.
 *
 *   check [--json] [--strict] [options of the server] [application]
 *
 *   code = oribi_check_parse(&options, argc, argv, &asked, error);     // argv: what follows the word check
 *   if (options.help)
 *       return print(oribi_check_help());
 *   read the configuration file; each mistake is a finding "configuration"
 *   if (finish succeeds)
 *       oribi_check_machine(check, &options);                          // the core's part, before the application runs
 *   load the application; what keeps it from loading is a finding "application"
 *   return oribi_check_report(check, &out, asked, ...);                // text or JSON, and the exit code
 *
 * A look starts nothing, listens on nothing and writes no file. */
#ifndef ORIBI_COMMAND_CHECK_H
#define ORIBI_COMMAND_CHECK_H

#include "oribi/base/buf.h"
#include "oribi/config/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ORIBI_CHECK_FINDINGS_MAX = 100, /* further ones are counted only */
    ORIBI_CHECK_ID_CAP = 32,
    ORIBI_CHECK_WHAT_CAP = 1024,
    ORIBI_CHECK_TEXT_CAP = 320,
};

enum oribi_check_level {
    ORIBI_CHECK_WRONG, /* the server does not start so, or cannot do what it is told to */
    ORIBI_CHECK_RISK,  /* it serves, until something happens */
    ORIBI_CHECK_NOTE,  /* nothing is wrong: not counted */
};

/* Texts are one line each, without a full stop at the end. */
struct oribi_finding {
    enum oribi_check_level level;
    char id[ORIBI_CHECK_ID_CAP];     /* does not change from version to version: "address-in-use" */
    char what[ORIBI_CHECK_WHAT_CAP]; /* with the figure, the path or the address */
    char why[ORIBI_CHECK_TEXT_CAP];  /* what follows from it */
    char todo[ORIBI_CHECK_TEXT_CAP]; /* what to do */
};

struct oribi_check {
    struct oribi_finding findings[ORIBI_CHECK_FINDINGS_MAX];
    size_t count;
    size_t dropped; /* findings for which there was no room */
    size_t wrong;   /* dropped ones included */
    size_t risks;
};

struct oribi_check_asked {
    bool json;
    bool strict; /* risks count as wrong for the exit code */
};

/* Versions of what runs, for the report: "oribi" "0.1.0", "ruby" "3.1.2". Borrowed. */
struct oribi_check_version {
    const char *name;
    const char *text;
};

/* "wrong", "risk" and "note", and back; any other word is ORIBI_CHECK_RISK. */
const char *oribi_check_level_name(enum oribi_check_level level);
enum oribi_check_level oribi_check_level_named(const char *name);

/* An empty list. Ends the process when memory is out. */
struct oribi_check *oribi_check_create(void);
void oribi_check_destroy(struct oribi_check *check);

/* Adds a finding; texts that are too long are cut, line ends become blanks. Borrows them. */
void oribi_check_add(struct oribi_check *check, enum oribi_check_level level, const char *id, const char *what,
                     const char *why, const char *todo);

/* Reads the command line behind the word check: --json, --strict, @NAME of a packaged server, whose environment and
 * working directory this process then has, and what a start takes. 0, or ORIBI_EINVAL with one
 * line in `error` (ORIBI_ERROR_TEXT_CAP). */
int oribi_check_parse(struct oribi_options *options, size_t argc, const char *const *argv,
                      struct oribi_check_asked *asked, char *error);

/* Appends the text of `check --help`. */
void oribi_check_help(struct oribi_buf *out, const char *program);

/* Adds what is to be said of the machine, its limits, the folders and the addresses, and of settings that do not fit
 * together. `options` after oribi_options_finish(). */
void oribi_check_machine(struct oribi_check *check, const struct oribi_options *options);

/* For --check: users that are not there, and what is wrong with tls:// addresses and their certificates, are an error,
 * what is risky a line of advice each, appended with its newline. 0, or ORIBI_EINVAL with one line in `error`. Runs
 * oribi-frontend, and the command for passwords of keys. */
int oribi_check_certificates(const struct oribi_options *options, struct oribi_buf *advice, char *error);

/* Versions of the libraries of oribi-frontend, "OpenSSL 3.0.15, nghttp2 1.52.0", or "none" if there is no such program.
 * Runs oribi-frontend. */
void oribi_check_frontend(char *dst, size_t cap);

/* Appends the report, as text or as one line of JSON, and gives the exit code: 0 nothing is wrong, 1 something is. */
int oribi_check_report(const struct oribi_check *check, struct oribi_buf *out, struct oribi_check_asked asked,
                       const char *program, const struct oribi_check_version *versions, size_t version_count);

#endif
