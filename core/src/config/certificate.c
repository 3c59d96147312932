/* The files of a certificate. */
#include "oribi/config/address.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"
#include "oribi/http/syntax.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static int refuse(char *error, const char *line, const char *format, ...)
{
    char what[128];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args); /* cut when longer */
    va_end(args);
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "certificate \"%.100s\" %s", line, what);
    return ORIBI_EINVAL;
}

static bool copy(struct oribi_slice text, char dst[PATH_MAX])
{
    if (text.n >= PATH_MAX)
        return false;
    memcpy(dst, text.p, text.n);
    dst[text.n] = '\0';
    return true;
}

static bool decode(struct oribi_slice text, char dst[PATH_MAX])
{
    ssize_t n = text.n < PATH_MAX ? oribi_percent_decode(text, dst) : -1;
    if (n <= 0 || memchr(dst, '\0', (size_t)n))
        return false;
    dst[n] = '\0';
    return true;
}

bool oribi_certificate_is_file(struct oribi_slice value)
{
    char ignored[PATH_MAX];
    return decode(value, ignored);
}

/* Without a key of its own it stands behind the certificate. */
static void complete(struct oribi_certificate_files *files)
{
    if (!files->key[0])
        memcpy(files->key, files->certificate, sizeof(files->key));
}

/* The setting at *p, which is moved behind it. */
static int read_setting(const char *line, const char **p, struct oribi_certificate_files *files, char *error)
{
    size_t n = strcspn(*p, "&");
    size_t name_n = strcspn(*p, "=&");
    struct oribi_slice name = {*p, name_n};
    struct oribi_slice value = {*p + name_n + (name_n < n), n - name_n - (name_n < n)};
    char *file = oribi_slice_equal(name, ORIBI_SLICE("key"))    ? files->key
                 : oribi_slice_equal(name, ORIBI_SLICE("ocsp")) ? files->ocsp
                                                                : NULL;
    if (!file)
        return refuse(error, line, "has an unknown setting \"%.*s\" (known: key, ocsp)", name_n > 24 ? 24 : (int)name_n,
                      *p);
    if (file[0])
        return refuse(error, line, "has two files for %.*s", (int)name_n, *p);
    if (!decode(value, file))
        return refuse(error, line, "needs a file for %.*s; a %% in its name is written %%25", (int)name_n, *p);
    *p += n + ((*p)[n] == '&');
    return 0;
}

int oribi_certificate_read(const char *line, struct oribi_certificate_files *files, char *error)
{
    size_t n = strcspn(line, "?");
    const char *p = line;
    char *const dst[] = {files->certificate, files->key, files->ocsp};
    files->certificate[0] = files->key[0] = files->ocsp[0] = '\0';
    for (int i = 0; i < 3 && p <= line + n; i++) {
        const char *comma = i < 2 ? memchr(p, ',', (size_t)(line + n - p)) : NULL;
        const char *end = comma ? comma : line + n;
        if (!copy(oribi_slice(p, (size_t)(end - p)), dst[i]))
            return refuse(error, line, "has a file of more than %d bytes", PATH_MAX - 1);
        p = end + 1;
    }
    if (!files->certificate[0])
        return refuse(error, line, "needs a file: CERT[,KEY[,OCSP]]");
    for (p = line + n + (line[n] == '?'); *p;) {
        int code = read_setting(line, &p, files, error);
        if (code < 0)
            return code;
    }
    complete(files);
    return 0;
}

int oribi_certificate_check(const char *line, char *error)
{
    struct oribi_certificate_files *files = oribi_mem_alloc(1, sizeof(*files));
    int code = oribi_certificate_read(line, files, error);
    oribi_mem_free(files);
    return code;
}

void oribi_certificate_of_address(const struct oribi_address *address, struct oribi_certificate_files *files)
{
    char *const dst[] = {files->certificate, files->key, files->ocsp};
    for (int i = 0; i < 3; i++)
        if (!address->files[i].n || !decode(address->files[i], dst[i]))
            dst[i][0] = '\0';
    complete(files);
}
