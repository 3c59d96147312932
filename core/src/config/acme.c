/* The option `acme` as values, and when a certificate is asked for. Reading order: oribi_acme_read and the checks of
 * its parts, oribi_acme_check, places, when. */
#include "oribi/config/acme.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/config/options.h"
#include "oribi/http/syntax.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LABEL_MAX = 63, /* bytes of a host name's label, RFC 1035 2.3.4 */
    HOUR_S = 3600,
    DAY_S = 24 * HOUR_S,
};

__attribute__((format(printf, 3, 4))) static int refuse(char *error, const char *line, const char *format, ...)
{
    char what[160];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args); /* cut when longer */
    va_end(args);
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "acme \"%.80s\" %s", line, what);
    return ORIBI_EINVAL;
}

/* --- a line --- */

/* RFC 1123 2.1: letters, digits and hyphens, no hyphen at either end of a label. */
static bool is_label(const char *p, size_t n)
{
    if (n == 0 || n > LABEL_MAX || p[0] == '-' || p[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!((p[i] >= 'a' && p[i] <= 'z') || (p[i] >= '0' && p[i] <= '9') || p[i] == '-'))
            return false;
    return true;
}

static bool is_host(const char *name)
{
    for (const char *p = name;;) {
        size_t n = strcspn(p, ".");
        if (!is_label(p, n))
            return false;
        if (!p[n])
            return true;
        p += n + 1;
    }
}

static bool is_address(const char *name)
{
    unsigned char room[sizeof(struct in6_addr)];
    return strchr(name, ':') || name[0] == '[' || inet_pton(AF_INET, name, room) == 1;
}

static int check_name(const struct oribi_acme_line *acme, const char *line, const char *name, char *error)
{
    if (strlen(name) > ORIBI_ACME_NAME_MAX)
        return refuse(error, line, "has a name of more than %d bytes", ORIBI_ACME_NAME_MAX);
    if (strchr(name, '@'))
        return refuse(error, line, "has \"%.60s\" among its names: it is an email address, the setting email", name);
    if (strchr(name, '*'))
        return refuse(error, line, "has a wildcard: an authority checks %.60s by DNS only; use certificate", name);
    if (is_address(name))
        return refuse(error, line, "has the address %.60s: certificates are for names", name);
    const char *last = strrchr(name, '.');
    if (last && last[1] >= '0' && last[1] <= '9') /* no top-level domain does, RFC 3696 2 */
        return refuse(error, line, "has the number %.60s: certificates are for names", name);
    if (acme->count == 0 && strlen(name) > ORIBI_ACME_FIRST_NAME_MAX)
        return refuse(error, line, "begins with a name of more than %d bytes, which names files",
                      ORIBI_ACME_FIRST_NAME_MAX);
    if (!is_host(name))
        return refuse(error, line, "has \"%.60s\", which is no host name (other scripts: write xn--...)", name);
    for (uint32_t i = 0; i < acme->count; i++)
        if (strcmp(acme->names[i], name) == 0)
            return refuse(error, line, "has the name %.60s twice", name);
    return 0;
}

/* One `@` with something on both sides, printable, without a space: the authority says the rest. */
static bool is_mail(const char *text)
{
    const char *at = strchr(text, '@');
    for (const char *p = text; *p; p++)
        if (*p <= ' ' || *p >= 0x7f)
            return false;
    return at && at > text && at[1] && !strchr(at + 1, '@') && *text != '-';
}

static int read_setting(const char *line, const char **p, struct oribi_acme_line *acme, char *error)
{
    size_t n = strcspn(*p, "&");
    size_t name_n = strcspn(*p, "=&");
    struct oribi_slice value = {*p + name_n + (name_n < n), n - name_n - (name_n < n)};
    char text[3 * ORIBI_ACME_MAIL_MAX + 1];
    if (!oribi_slice_equal(oribi_slice(*p, name_n), ORIBI_SLICE("email")))
        return refuse(error, line, "has an unknown setting \"%.*s\" (known: email)", name_n > 24 ? 24 : (int)name_n,
                      *p);
    if (acme->email[0])
        return refuse(error, line, "has two email addresses");
    ssize_t len = value.n < sizeof(text) ? oribi_percent_decode(value, text) : -1;
    if (len <= 0 || len > ORIBI_ACME_MAIL_MAX || memchr(text, '\0', (size_t)len))
        return refuse(error, line, "needs an email address of at most %d bytes", ORIBI_ACME_MAIL_MAX);
    memcpy(acme->email, text, (size_t)len);
    acme->email[len] = '\0';
    if (!is_mail(acme->email))
        return refuse(error, line, "has \"%.60s\", which is no email address", acme->email);
    *p += n + ((*p)[n] == '&');
    return 0;
}

/* A dot behind the last label says that the name is whole, as all are here. */
static int read_name(const char *line, const char *p, size_t n, struct oribi_acme_line *acme, char **room, char *error)
{
    while (n > 0 && (*p == ' ' || *p == '\t')) {
        p++;
        n--;
    }
    while (n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'))
        n--;
    if (n > 1 && p[n - 1] == '.')
        n--;
    if (n == 0)
        return refuse(error, line, "needs a name: example.org[,www.example.org]");
    if (acme->count == ORIBI_ACME_NAMES_MAX)
        return refuse(error, line, "has more than %d names", ORIBI_ACME_NAMES_MAX);
    if (n > ORIBI_ACME_NAME_MAX)
        return refuse(error, line, "has a name of more than %d bytes", ORIBI_ACME_NAME_MAX);
    char *name = *room;
    for (size_t i = 0; i < n; i++)
        name[i] = oribi_lower(p[i]);
    name[n] = '\0';
    int code = check_name(acme, line, name, error);
    if (code < 0)
        return code;
    acme->names[acme->count++] = name;
    *room += n + 1;
    return 0;
}

int oribi_acme_read(const char *line, struct oribi_acme_line *acme, char *error)
{
    size_t end = strcspn(line, "?");
    char *room = acme->text;
    acme->count = 0;
    acme->email[0] = '\0';
    for (size_t at = 0; at <= end;) {
        size_t n = strcspn(line + at, ",?");
        int code = read_name(line, line + at, n, acme, &room, error);
        if (code < 0)
            return code;
        at += n + 1;
    }
    for (const char *p = line + end + (line[end] == '?'); *p;) {
        int code = read_setting(line, &p, acme, error);
        if (code < 0)
            return code;
    }
    return 0;
}

int oribi_acme_check_line(const char *line, char *error)
{
    struct oribi_acme_line *acme = oribi_mem_alloc(1, sizeof(*acme));
    int code = oribi_acme_read(line, acme, error);
    oribi_mem_free(acme);
    return code;
}

/* --- all lines --- */

bool oribi_acme_wanted(const struct oribi_options *options)
{
    return options->acme.count > 0;
}

static int say(char *error, const char *text)
{
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s", text);
    return ORIBI_EINVAL;
}

/* The first name is that of the files. */
static int check_first_names(const struct oribi_options *options, char *error)
{
    struct oribi_acme_line *lines = oribi_mem_alloc(2, sizeof(*lines));
    int code = 0;
    for (size_t i = 0; i < options->acme.count && code == 0; i++) {
        code = oribi_acme_read(options->acme.items[i], &lines[0], error);
        for (size_t k = 0; k < i && code == 0; k++) {
            (void)oribi_acme_read(options->acme.items[k], &lines[1], error); /* it was read before */
            if (strcmp(lines[0].names[0], lines[1].names[0]) == 0)
                code = refuse(error, options->acme.items[i], "begins with the same name as another acme");
        }
    }
    oribi_mem_free(lines);
    return code;
}

int oribi_acme_check(const struct oribi_options *options, char *error)
{
    if (!oribi_acme_wanted(options))
        return 0;
    if (options->acme.count > ORIBI_ACME_CERTIFICATES_MAX) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "acme is given more than %d times", ORIBI_ACME_CERTIFICATES_MAX);
        return ORIBI_EINVAL;
    }
    if (!options->acme_terms)
        return say(error, "acme needs acme_terms on: read the authority's terms of service and agree to them (Let's "
                          "Encrypt: https://letsencrypt.org/repository/)");
    if (strncmp(options->acme_directory, "https://", 8) != 0 || !options->acme_directory[8] ||
        strpbrk(options->acme_directory, " \t\"\\"))
        return say(error, "acme_directory must be an https:// address");
    if (!isalnum((unsigned char)options->acme_directory[8]) && options->acme_directory[8] != '[')
        return say(error, "acme_directory needs the name of a host"); /* the account's folder has that name */
    if (!options->acme_command[strspn(options->acme_command, " \t")])
        return say(error, "acme_command is empty");
    if (options->acme_dir && options->acme_dir[0] != '/')
        return say(error, "acme_dir must be an absolute path");
    return check_first_names(options, error);
}

void oribi_acme_print_names(struct oribi_buf *out, const struct oribi_acme_line *acme)
{
    for (uint32_t i = 0; i < acme->count; i++)
        oribi_buf_print(out, "%s%s", i ? "," : "", acme->names[i]);
}

/* --- places --- */

bool oribi_acme_dir(const struct oribi_options *options, char *dst, size_t cap)
{
    const char *state = getenv("STATE_DIRECTORY");
    int n;
    if (options->acme_dir)
        n = snprintf(dst, cap, "%s", options->acme_dir);
    else if (state && *state == '/')
        n = snprintf(dst, cap, "%.*s/acme", (int)strcspn(state, ":"), state);
    else
        n = snprintf(dst, cap, "/var/lib/oribi/acme");
    return n > 0 && (size_t)n < cap;
}

bool oribi_acme_file(const char *dir, const struct oribi_acme_line *acme, char *dst, size_t cap)
{
    int n = snprintf(dst, cap, "%s/%s.pem", dir, acme->names[0]);
    return n > 0 && (size_t)n < cap;
}

/* --- challenges --- */

bool oribi_acme_is_challenge(const char *token, const char *authorization)
{
    static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t n = strspn(token, base64url);
    const char *thumb = authorization + n + 1;
    return n > 0 && n <= ORIBI_ACME_TOKEN_MAX && !token[n] && strlen(authorization) <= ORIBI_ACME_AUTHORIZATION_MAX &&
           strncmp(authorization, token, n) == 0 && authorization[n] == '.' && *thumb &&
           !thumb[strspn(thumb, base64url)];
}

/* --- when --- */

int64_t oribi_acme_backoff_s(uint32_t failures, int64_t life_s)
{
    bool brief = life_s > 0 && life_s < DAY_S;
    int64_t wait_s = brief ? life_s / 24 : HOUR_S;
    int64_t most_s = brief ? life_s : DAY_S;
    if (wait_s < 1)
        wait_s = 1;
    for (uint32_t i = 1; i < failures && wait_s < most_s; i++)
        wait_s *= 2;
    return wait_s < most_s ? wait_s : most_s;
}

int64_t oribi_acme_due_s(const struct oribi_acme_facts *facts, uint32_t seed)
{
    int64_t life_s = facts->expires_s - facts->begins_s;
    int64_t due_s = 0;
    if (facts->expires_s > 0 && life_s > 0) {
        int64_t quarter_s = life_s / 12; /* of the last third */
        due_s = facts->expires_s - life_s / 3 + (quarter_s > 0 ? (int64_t)(seed % (uint64_t)quarter_s) : 0);
    }
    if (facts->failures > 0) {
        int64_t again_s = facts->tried_s + oribi_acme_backoff_s(facts->failures, due_s ? life_s : 0);
        due_s = due_s > again_s ? due_s : again_s;
    }
    return due_s;
}

/* FNV-1a. */
uint32_t oribi_acme_seed(const struct oribi_acme_line *acme)
{
    uint32_t hash = 2166136261u;
    for (uint32_t i = 0; i < acme->count; i++)
        for (const char *p = acme->names[i];; p++) {
            hash = (hash ^ (unsigned char)*p) * 16777619u;
            if (!*p)
                break;
        }
    return hash;
}
