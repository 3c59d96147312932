/* The files of certificates, as records of a frontend's text. Reading order: oribi__frontend_text_certificates,
 * of_listener, add_certificate, add_managed. */
#include "supervisor/frontend_passwords.h"

#include "oribi/base/error.h"
#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/config/acme.h"
#include "oribi/config/listener.h"
#include "oribi/config/options.h"
#include "oribi/base/os/os.h"
#include "oribi/config/address.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define PASSWORD_OF "password of " /* a key's path: what that is kept by */

struct reading {
    const struct oribi_options *options;
    const struct oribi__frontend_files *from;   /* instead of the disk; NULL: none */
    const struct oribi__frontend_files *served; /* where a file of acme cannot be read; NULL: none */
    struct oribi__frontend_files *keep;         /* gets what is read; NULL: nothing is kept */
    struct oribi_buf *out;
    char *error;
    struct oribi__passwords *passwords;   /* unless it is `from` */
    struct oribi_certificate_files files; /* of the certificate that is read */
};

static int complain(const struct reading *reading, const char *path, const char *why)
{
    (void)snprintf(reading->error, ORIBI_ERROR_TEXT_CAP, "cannot read %.140s: %s", path, why);
    return ORIBI_EINVAL;
}

/* --- a file --- */

static int read_kept(const struct reading *reading, const char *path, struct oribi_buf *text)
{
    struct oribi_slice kept;
    if (!oribi__frontend_files_find(reading->from, path, &kept))
        return complain(reading, path, "it is not among those that served last");
    return oribi_buf_try_append(text, kept.p, kept.n) < 0 ? complain(reading, path, "out of memory") : 0;
}

/* Gives what the file holds in `text`, the caller's, who wipes it. */
static int read_file(const struct reading *reading, const char *path, struct oribi_buf *text)
{
    int64_t size = 0;
    if (reading->from)
        return read_kept(reading, path, text);
    int fd;
    if (oribi_os_open_read(path, &fd) < 0)
        return complain(reading, path, oribi_os_error_text());
    int code = 0;
    if (!oribi_os_is_file(fd, &size))
        code = complain(reading, path, "it is not a regular file");
    else if (size == 0 || size > ORIBI_FRONTEND_FILE_MAX)
        code = complain(reading, path, size ? "it is longer than 1 MiB" : "it is empty");
    else if (!oribi_buf_try_reserve(text, (size_t)size))
        code = complain(reading, path, "out of memory");
    else if (oribi_os_read_at(fd, text->p, (size_t)size, 0) != size)
        code = complain(reading, path, "it changes while it is read");
    else
        text->len = (size_t)size;
    oribi_os_close(fd);
    if (code == 0 && reading->keep && !oribi__frontend_files_add(reading->keep, path, oribi_slice(text->p, text->len)))
        code = complain(reading, path, "out of memory");
    return code;
}

static int add(const struct reading *reading, const char *name, const char *path, struct oribi_slice text)
{
    if (reading->out->len + text.n + ORIBI_FRONTEND_FILE_MAX > ORIBI_FRONTEND_TEXT_MAX)
        return complain(reading, path, "all files together are too long");
    return oribi__frontend_add(reading->out, name, text.p, text.n) < 0 ? complain(reading, path, "out of memory") : 0;
}

/* Names are relative to the folder that the server was started in, as all files' are. */
static int add_file(const struct reading *reading, const char *name, const char *path)
{
    struct oribi_buf text = {0};
    int code = read_file(reading, path, &text);
    if (code == 0)
        code = add(reading, name, path, oribi_slice(text.p, text.len));
    oribi__frontend_wipe(&text);
    return code;
}

/* --- keys --- */

/* RFC 7468 11, RFC 1421 4.6.1.1. */
static bool is_encrypted(const struct oribi_buf *key)
{
    static const char *const marks[] = {"-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"};
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (oribi_os_memmem(key->p, key->len, marks[i], strlen(marks[i])))
            return true;
    return false;
}

static int keep_password(const struct reading *reading, const char *path, struct oribi_slice password)
{
    char name[ORIBI_FRONTEND_WORD_MAX + sizeof(PASSWORD_OF)];
    (void)snprintf(name, sizeof(name), PASSWORD_OF "%s", path); /* paths are shorter (frontend_passwords.c) */
    return !reading->keep || oribi__frontend_files_add(reading->keep, name, password) ? 0 : ORIBI_ENOMEM;
}

static int find_kept(const struct reading *reading, const char *path, struct oribi_slice *password)
{
    char name[ORIBI_FRONTEND_WORD_MAX + sizeof(PASSWORD_OF)];
    (void)snprintf(name, sizeof(name), PASSWORD_OF "%s", path);
    return oribi__frontend_files_find(reading->from, name, password)
               ? 0
               : complain(reading, path, "its password is not among those that served last");
}

static int add_password(const struct reading *reading, const char *path)
{
    struct oribi_slice password;
    int code = reading->from
                   ? find_kept(reading, path, &password)
                   : oribi__password_of(reading->passwords, reading->options, path, &password, reading->error);
    if (code == 0)
        code = add(reading, "password", path, password);
    if (code == 0 && keep_password(reading, path, password) < 0)
        code = complain(reading, path, "out of memory");
    return code;
}

static int add_key(const struct reading *reading, const char *path)
{
    struct oribi_buf text = {0};
    int code = read_file(reading, path, &text);
    if (code == 0)
        code = add(reading, "key", path, oribi_slice(text.p, text.len));
    if (code == 0 && is_encrypted(&text))
        code = add_password(reading, path);
    oribi__frontend_wipe(&text);
    return code;
}

/* --- certificates --- */

static int add_certificate(const struct reading *reading, uint32_t listener)
{
    const struct oribi_certificate_files *files = &reading->files;
    char name[32];
    (void)snprintf(name, sizeof(name), "certificate %u", listener);
    int code = add(reading, name, files->certificate, oribi_slice(files->certificate, strlen(files->certificate)));
    if (code == 0)
        code = add_file(reading, "chain", files->certificate);
    if (code == 0)
        code = add_key(reading, files->key);
    if (code == 0 && files->ocsp[0])
        code = add_file(reading, "ocsp", files->ocsp);
    return code;
}

/* --- certificates of acme: there may be none yet --- */

/* Reads the file, or gives what it held when frontends took it last. False: a placeholder is to serve. */
static bool read_managed(const struct reading *reading, const char *path, struct oribi_buf *text)
{
    struct oribi_slice kept;
    if (read_file(reading, path, text) == 0)
        return true;
    if (!reading->served || !oribi__frontend_files_find(reading->served, path, &kept)) {
        reading->error[0] = '\0';
        return false;
    }
    oribi_log(ORIBI_LOG_WARN, "%s: the certificate that served last serves on", reading->error);
    reading->error[0] = '\0';
    oribi__frontend_wipe(text);
    return oribi_buf_try_append(text, kept.p, kept.n) == 0 &&
           (!reading->keep || oribi__frontend_files_add(reading->keep, path, kept));
}

/* One file holds chain and key. `names`: of the certificate, with commas between them. */
static int add_managed(const struct reading *reading, uint32_t listener, const char *path, struct oribi_slice names)
{
    struct oribi_buf text = {0};
    char name[32];
    bool there = read_managed(reading, path, &text);
    (void)snprintf(name, sizeof(name), "certificate %u", listener);
    int code = add(reading, name, path, oribi_slice(path, strlen(path)));
    if (code == 0)
        code = add(reading, there ? "managed" : "placeholder", path, names);
    if (code == 0 && there)
        code = add(reading, "chain", path, oribi_slice(text.p, text.len));
    if (code == 0 && there)
        code = add(reading, "key", path, oribi_slice(text.p, text.len));
    oribi__frontend_wipe(&text);
    return code;
}

static int add_line(const struct reading *reading, uint32_t listener, const char *dir,
                    const struct oribi_acme_line *line)
{
    struct oribi_buf names = {0};
    char path[PATH_MAX];
    if (!oribi_acme_file(dir, line, path, sizeof(path)))
        return complain(reading, dir, "the path of a certificate in it is too long");
    oribi_acme_print_names(&names, line);
    int code = add_managed(reading, listener, path, oribi_slice(names.p, names.len));
    oribi_buf_deinit(&names);
    return code;
}

static bool is_more(const struct reading *reading, uint32_t *count)
{
    if (++*count <= ORIBI_FRONTEND_CERTIFICATES_MAX)
        return false;
    (void)snprintf(reading->error, ORIBI_ERROR_TEXT_CAP, "a tls:// address has more than %d certificates",
                   ORIBI_FRONTEND_CERTIFICATES_MAX);
    return true;
}

static int of_acme(const struct reading *reading, uint32_t index, uint32_t *count)
{
    const struct oribi_options *options = reading->options;
    char dir[PATH_MAX];
    if (!oribi_acme_wanted(options))
        return 0;
    if (!oribi_acme_dir(options, dir, sizeof(dir)))
        return complain(reading, "acme_dir", "its path is too long");
    struct oribi_acme_line *line = oribi_mem_alloc(1, sizeof(*line));
    int code = 0;
    for (size_t i = 0; i < options->acme.count && code == 0; i++) {
        code = oribi_acme_read(options->acme.items[i], line, reading->error);
        if (code == 0)
            code = is_more(reading, count) ? ORIBI_EINVAL : add_line(reading, index, dir, line);
    }
    oribi_mem_free(line);
    return code;
}

/* Those of the address, in whichever bind it stands, then those for all, those of acme last. `text`, `spec`: how the
 * address is written. */
static int of_listener(struct reading *reading, uint32_t index, const char *text, const char *spec)
{
    const struct oribi_options *options = reading->options;
    uint32_t count = 0;
    int code = 0;
    for (size_t i = 0; i < options->bind.count && code == 0; i++) {
        struct oribi_address address;
        char ignored[ORIBI_ERROR_TEXT_CAP];
        if (oribi_address_parse(options->bind.items[i], &address, ignored) < 0 || address.files[0].n == 0 ||
            (strcmp(address.text, spec) != 0 && strcmp(address.text, text) != 0))
            continue;
        oribi_certificate_of_address(&address, &reading->files);
        code = is_more(reading, &count) ? ORIBI_EINVAL : add_certificate(reading, index);
    }
    for (size_t i = 0; i < options->certificates.count && code == 0; i++) {
        code = oribi_certificate_read(options->certificates.items[i], &reading->files, reading->error);
        if (code == 0)
            code = is_more(reading, &count) ? ORIBI_EINVAL : add_certificate(reading, index);
    }
    if (code == 0)
        code = of_acme(reading, index, &count);
    if (code < 0 || count > 0)
        return code;
    (void)snprintf(reading->error, ORIBI_ERROR_TEXT_CAP,
                   "tls://%.100s needs a certificate: ?certificate=FILE&key=FILE, or the option certificate",
                   strncmp(text, "tcp://", 6) == 0 ? text + 6 : text);
    return ORIBI_EINVAL;
}

/* --- all --- */

static struct reading *begin(const struct oribi_options *options, struct oribi__passwords *passwords,
                             struct oribi_buf *out, char *error)
{
    struct reading *reading = oribi_mem_alloc(1, sizeof(*reading));
    reading->options = options;
    reading->out = out;
    reading->error = error;
    reading->passwords = passwords;
    return reading;
}

static int add_authorities(const struct reading *reading, const char *path)
{
    int code = add_file(reading, "client_ca", path);
    return code < 0 ? code : add(reading, "client_ca_name", path, oribi_slice(path, strlen(path)));
}

/* client_verify without client_ca would ask no client for a certificate: an error. `code`: so far. */
static int end(struct reading *reading, int code, bool any)
{
    if (code == 0 && any && reading->options->client_ca)
        code = add_authorities(reading, reading->options->client_ca);
    const struct oribi_option *verify = oribi_options_find("client_verify");
    if (code == 0 && any && !reading->options->client_ca &&
        oribi_options_source(reading->options, verify) != ORIBI_FROM_DEFAULT) {
        (void)snprintf(reading->error, ORIBI_ERROR_TEXT_CAP,
                       "client_verify needs client_ca, the authorities whose certificates are good");
        code = ORIBI_EINVAL;
    }
    oribi_mem_free(reading);
    return code;
}

int oribi__frontend_text_certificates(const struct oribi_options *options, const struct oribi_listeners *listeners,
                                      const struct oribi__frontend_files *from,
                                      const struct oribi__frontend_files *served, struct oribi__frontend_files *keep,
                                      struct oribi__passwords *passwords, struct oribi_buf *out, char *error)
{
    struct reading *reading = begin(options, passwords, out, error);
    reading->from = from;
    reading->served = served;
    reading->keep = keep;
    uint32_t index = 0; /* among those of frontends, in their order */
    int code = 0;
    bool any = false;
    for (uint32_t i = 0; i < listeners->count && code == 0; i++) {
        const struct oribi_listener *item = &listeners->items[i];
        if (item->tls)
            code = of_listener(reading, index, item->text, item->spec);
        any |= item->tls;
        index += item->frontend;
    }
    return end(reading, code, any);
}

static int read_named(const struct oribi_options *options, struct oribi__passwords *passwords, struct oribi_buf *out,
                      char *error)
{
    struct reading *reading = begin(options, passwords, out, error);
    uint32_t index = 0;
    int code = 0;
    for (size_t i = 0; i < options->bind.count && code == 0 && index < ORIBI_LISTENERS_MAX; i++) {
        struct oribi_address address;
        char ignored[ORIBI_ERROR_TEXT_CAP]; /* command/check_ports.c tells of it */
        if (oribi_address_parse(options->bind.items[i], &address, ignored) == 0 && address.tls)
            code = of_listener(reading, index++, address.text, address.text);
    }
    return end(reading, code, index > 0);
}

int oribi__frontend_text_certificates_named(const struct oribi_options *options, struct oribi_buf *out, char *error)
{
    struct oribi__passwords passwords = {.runs = false};
    size_t before = out->len;
    int code;
    while ((code = read_named(options, &passwords, out, error)) == ORIBI_AGAIN) {
        oribi__passwords_await(&passwords);
        explicit_bzero(out->p + before, out->len - before);
        out->len = before;
    }
    oribi__passwords_end(&passwords, false);
    return code;
}
