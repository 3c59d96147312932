/* Reads a mount's line. Reading order: oribi_mount_read, read_setting, then what each setting takes. */
#include "oribi/files/mount.h"

#include "oribi/base/error.h"
#include "oribi/files/root.h"
#include "oribi/http/syntax.h"
#include "oribi/http/scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The line, and what of the mount's room is used. */
struct reading {
    const char *text;
    struct oribi_mount *mount;
    size_t used;
    bool fallthrough_given;
    char *error;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reading *r, const char *format, ...)
{
    char what[128];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args); /* our own words and a name that was cut: they fit */
    va_end(args);
    (void)snprintf(r->error, ORIBI_ERROR_TEXT_CAP, "static \"%.100s\" %s", r->text, what); /* a long line is cut */
    return ORIBI_EINVAL;
}

/* --- texts --- */

/* Copies into the mount's room. NULL when it is full. */
static char *keep(struct reading *r, struct oribi_slice in)
{
    if (in.n >= sizeof(r->mount->room) - r->used)
        return NULL;
    char *copy = r->mount->room + r->used;
    memcpy(copy, in.p, in.n);
    copy[in.n] = '\0';
    r->used += in.n + 1;
    return copy;
}

/* Copies the text, decoded; no NUL may come of it. */
static int keep_decoded(struct reading *r, struct oribi_slice in, char **text)
{
    char *copy = keep(r, in);
    if (!copy)
        return refuse(r, "is too long");
    ssize_t n = oribi_percent_decode(oribi_slice(copy, in.n), copy);
    if (n < 0)
        return refuse(r, "has a %% without two hex digits behind it: write %%25");
    copy[n] = '\0';
    if (strlen(copy) != (size_t)n)
        return refuse(r, "has a NUL byte");
    *text = copy;
    return 0;
}

static bool is_name(struct oribi_slice text, const char *name)
{
    return text.n == strlen(name) && memcmp(text.p, name, text.n) == 0;
}

/* --- settings --- */

static int read_switch(const struct reading *r, const char *name, struct oribi_slice value, bool *on)
{
    *on = is_name(value, "on");
    if (!*on && !is_name(value, "off"))
        return refuse(r, "needs %s to be on or off", name);
    return 0;
}

/* Text without control characters but TAB, and without white space at the ends (RFC 9110 5.5). */
static bool is_value(const char *text)
{
    size_t n = strlen(text);
    if (n > ORIBI_MOUNT_VALUE_MAX || (n && (strchr(" \t", text[0]) || strchr(" \t", text[n - 1]))))
        return false;
    return oribi_scan_active->text(text, n) == n;
}

static int add_header(struct reading *r, const char *name, const char *value)
{
    struct oribi_mount *mount = r->mount;
    if (mount->header_count == ORIBI_MOUNT_HEADERS_MAX)
        return refuse(r, "has more than %d headers", ORIBI_MOUNT_HEADERS_MAX);
    if (!oribi_scan_is_token(name, strlen(name)))
        return refuse(r, "has a header whose name is none");
    if (!is_value(value))
        return refuse(r, "has a header whose value no answer may have: %.40s", name);
    mount->headers[mount->header_count++] = (struct oribi_mount_header){name, value};
    return 0;
}

static int read_cache(struct reading *r, struct oribi_slice value)
{
    char *text;
    int code = keep_decoded(r, value, &text);
    return code < 0 ? code : add_header(r, "Cache-Control", text);
}

/* NAME:TEXT, with or without spaces behind the colon. */
static int read_header(struct reading *r, struct oribi_slice value)
{
    char *name;
    int code = keep_decoded(r, value, &name);
    if (code < 0)
        return code;
    char *colon = strchr(name, ':');
    if (!colon)
        return refuse(r, "needs header to be NAME:TEXT");
    *colon = '\0';
    return add_header(r, name, colon + 1 + strspn(colon + 1, " \t"));
}

static int read_index(struct reading *r, struct oribi_slice value)
{
    char *text;
    int code = keep_decoded(r, value, &text);
    if (code < 0)
        return code;
    if (!*text || *text == '.' || strchr(text, '/') || strlen(text) > ORIBI_MOUNT_INDEX_MAX)
        return refuse(r, "needs index to be a file's name, as index.html");
    r->mount->index = text;
    return 0;
}

static int read_links(struct reading *r, struct oribi_slice value)
{
    char *text;
    int code = keep_decoded(r, value, &text);
    if (code < 0)
        return code;
    if (!*text)
        return refuse(r, "needs symlinks to be a folder");
    if (r->mount->link_count == ORIBI_MOUNT_LINKS_MAX)
        return refuse(r, "has more than %d symlinks", ORIBI_MOUNT_LINKS_MAX);
    r->mount->links[r->mount->link_count++] = text;
    return 0;
}

static int read_etag(struct reading *r, struct oribi_slice value)
{
    r->mount->etag_content = is_name(value, "content");
    if (!r->mount->etag_content && !is_name(value, "time"))
        return refuse(r, "needs etag to be content or time");
    return 0;
}

static int read_setting(struct reading *r, struct oribi_slice name, struct oribi_slice value)
{
    struct oribi_mount *mount = r->mount;
    if (is_name(name, "cache"))
        return read_cache(r, value);
    if (is_name(name, "header"))
        return read_header(r, value);
    if (is_name(name, "index"))
        return read_index(r, value);
    if (is_name(name, "etag"))
        return read_etag(r, value);
    if (is_name(name, "symlinks"))
        return read_links(r, value);
    if (is_name(name, "html"))
        return read_switch(r, "html", value, &mount->html);
    if (is_name(name, "nosniff"))
        return read_switch(r, "nosniff", value, &mount->nosniff);
    if (is_name(name, "fallthrough")) {
        r->fallthrough_given = true;
        return read_switch(r, "fallthrough", value, &mount->fallthrough);
    }
    return refuse(r,
                  "has an unknown setting \"%.*s\" (known: cache, header, index, html, fallthrough, symlinks, nosniff, "
                  "etag)",
                  name.n > 24 ? 24 : (int)name.n, name.p);
}

/* Settings from `p` on, joined with ampersands. */
static int read_settings(struct reading *r, const char *p)
{
    while (*p) {
        size_t n = strcspn(p, "&");
        size_t name_n = strcspn(p, "=&");
        struct oribi_slice value = name_n < n ? oribi_slice(p + name_n + 1, n - name_n - 1) : oribi_slice(p + n, 0);
        int code = read_setting(r, oribi_slice(p, name_n), value);
        if (code < 0)
            return code;
        p += n + (p[n] == '&');
    }
    return 0;
}

/* --- the line --- */

/* PREFIX=, where the line begins with a slash and an equals sign comes before the settings. A folder with an equals
 * sign in its name, and no prefix, is written with `/=` before it. */
static int read_prefix(struct reading *r, const char **rest)
{
    const char *text = r->text;
    size_t n = strcspn(text, "=?");
    struct oribi_slice prefix = oribi_slice("", 0);
    if (text[0] == '/' && text[n] == '=') {
        if (oribi_mount_prefix_read(oribi_slice(text, n), &prefix) < 0)
            return refuse(r, "needs a prefix that a path can begin with, as /assets");
        if (prefix.n > ORIBI_MOUNT_PREFIX_MAX)
            return refuse(r, "has a prefix of more than %d bytes", ORIBI_MOUNT_PREFIX_MAX);
        *rest = text + n + 1;
    }
    r->mount->prefix = keep(r, prefix); /* it fits: the room is empty */
    return 0;
}

int oribi_mount_read(const char *text, struct oribi_mount *mount, char *error)
{
    struct reading r = {.text = text, .mount = mount, .error = error};
    const char *rest = text;
    memset(mount, 0, offsetof(struct oribi_mount, room));
    mount->nosniff = true;
    int code = read_prefix(&r, &rest);
    if (code < 0)
        return code;
    size_t folder_n = strcspn(rest, "?");
    if (folder_n == 0)
        return refuse(&r, "needs a folder, as /assets=public/assets");
    if (folder_n >= PATH_MAX)
        return refuse(&r, "has a folder of more than %d bytes", PATH_MAX - 1);
    mount->folder = keep(&r, oribi_slice(rest, folder_n)); /* it fits */
    if (rest[folder_n] == '?')
        code = read_settings(&r, rest + folder_n + 1);
    if (code == 0 && !r.fallthrough_given)
        mount->fallthrough = mount->prefix[0] == '\0';
    return code;
}

int oribi_mount_map_read(const char *name, const char *text, struct oribi_slice *prefix, const char **folder,
                         char *error)
{
    const char *fault = NULL;
    size_t n = strcspn(text, "=");
    if (text[n] == '\0' || oribi_mount_prefix_read(oribi_slice(text, n), prefix) < 0)
        fault = "needs a prefix that a path can begin with and a folder, as /private=/srv/private";
    else if (prefix->n > ORIBI_MOUNT_PREFIX_MAX)
        fault = "has a prefix of more than 255 bytes";
    else if (text[n + 1] == '\0')
        fault = "needs a folder, as /private=/srv/private";
    else if (strlen(text + n + 1) >= PATH_MAX)
        fault = "has a folder of more than 4095 bytes";
    if (fault) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s \"%.100s\" %s", name, text, fault);
        return ORIBI_EINVAL;
    }
    *folder = text + n + 1;
    return 0;
}
