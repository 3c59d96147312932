/* Secrets that a failure page does not show: values under names that speak of secrets, values of cookies, and such
 * parameters within addresses. A name too many hides a value that was harmless; one too few is seen over a shoulder. */
#include "develop/failure_private.h"

#include "oribi/base/os/os.h"

#include <string.h>

static const char hidden[] = "[hidden]";

/* Anywhere in a name, in lower case and without the dashes and underscores between words. */
static const char *const secrets[] = {
    "password", "passwd",    "passphrase", "pwd",     "secret",     "token",      "credential",
    "authoriz", "authent",   "oauth",      "session", "csrf",       "xsrf",       "cookie",
    "jwt",      "signature", "bearer",     "private", "creditcard", "cardnumber",
};

/* Names of secrets as a word by itself, between bytes that are no letters. */
static const char *const secret_words[] = {"auth", "pass", "pin", "otp", "nonce", "cvv", "cvc", "iban", "ssn"};

enum { NAME_BYTES_MAX = 256 };

/* In lower case, NUL-terminated; `joined`: without what stands between the words. */
static void copy_name(struct oribi_slice name, bool joined, char dst[NAME_BYTES_MAX])
{
    size_t n = 0;
    for (size_t i = 0; i < name.n && n < NAME_BYTES_MAX - 1; i++) {
        char c = name.p[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c | 0x20);
        if (!joined || (c != '_' && c != '-' && c != '.' && c != ' '))
            dst[n++] = c;
    }
    dst[n] = '\0';
}

static bool is_letter(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool has_word(const char *name, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = name; (at = strstr(at, word)); at += n)
        if ((at == name || !is_letter(at[-1])) && !is_letter(at[n]))
            return true;
    return false;
}

/* A word that ends in "key" or "keys": api_key, X-Api-Key, keys[aws]; no keyboard. */
static bool names_a_key(const char *name)
{
    for (const char *at = name; (at = strstr(at, "key")); at += 3) {
        const char *end = at + 3 + (at[3] == 's');
        if (!is_letter(*end))
            return true;
    }
    return false;
}

bool oribi__failure_is_secret(struct oribi_slice name)
{
    char text[NAME_BYTES_MAX];
    if (name.n >= NAME_BYTES_MAX) /* no name that a developer has chosen */
        return true;
    copy_name(name, true, text);
    for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++)
        if (strstr(text, secrets[i]))
            return true;
    copy_name(name, false, text);
    for (size_t i = 0; i < sizeof(secret_words) / sizeof(secret_words[0]); i++)
        if (has_word(text, secret_words[i]))
            return true;
    return names_a_key(text);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* p%61ssword is one, too. */
static bool is_secret_encoded(struct oribi_slice name)
{
    char plain[NAME_BYTES_MAX];
    size_t n = 0;
    if (name.n >= NAME_BYTES_MAX)
        return true;
    for (size_t i = 0; i < name.n; i++) {
        bool escaped = name.p[i] == '%' && i + 2 < name.n && digit(name.p[i + 1]) >= 0 && digit(name.p[i + 2]) >= 0;
        plain[n++] = escaped ? (char)(digit(name.p[i + 1]) * 16 + digit(name.p[i + 2])) : name.p[i];
        i += escaped ? 2 : 0;
    }
    return oribi__failure_is_secret(oribi_slice(plain, n));
}

static void append(struct oribi_buf *out, const char *p, size_t n)
{
    (void)oribi_buf_try_append(out, p, n);
}

/* "a=1; b=2" and "a=1&b=2", with the separators that they have. */
static void show_pairs(struct oribi_slice text, const char *separators, bool all, struct oribi_buf *out)
{
    size_t pos = 0;
    while (pos < text.n) {
        size_t end = pos;
        while (end < text.n && !strchr(separators, text.p[end]))
            end++;
        const char *equals = memchr(text.p + pos, '=', end - pos);
        size_t name_end = equals ? (size_t)(equals - text.p) : end;
        bool hide = all ? true : equals && is_secret_encoded(oribi_slice(text.p + pos, name_end - pos));
        size_t shown = !hide ? end : equals ? name_end + 1 : pos; /* a cookie without a name is a value */
        append(out, text.p + pos, shown - pos);
        if (hide && end > pos)
            append(out, hidden, sizeof(hidden) - 1);
        pos = end;
        while (pos < text.n && strchr(separators, text.p[pos]))
            append(out, text.p + pos++, 1);
    }
}

/* Everything behind the first `?` is a query, and so is what stands behind a `#`, where some put tokens. The name and
 * password of https://name:password@host are none of a page's. */
static void show_address(struct oribi_slice text, struct oribi_buf *out)
{
    const char *scheme = oribi_os_memmem(text.p, text.n, "://", 3);
    if (scheme) {
        size_t from = (size_t)(scheme - text.p) + 3;
        size_t end = from;
        while (end < text.n && !strchr("/?#", text.p[end]))
            end++;
        const char *at = oribi_os_memrchr(text.p + from, '@', end - from);
        if (at) {
            append(out, text.p, from);
            append(out, hidden, sizeof(hidden) - 1);
            text = oribi_slice(at, text.n - (size_t)(at - text.p));
        }
    }
    size_t query = 0;
    while (query < text.n && text.p[query] != '?' && text.p[query] != '#')
        query++;
    query += query < text.n;
    append(out, text.p, query);
    show_pairs(oribi_slice(text.p + query, text.n - query), "&;#", false, out);
}

/* Is this a value in which libraries keep a body that they have read? Parameters are facts of their own. */
static bool holds_a_body(struct oribi_slice name)
{
    static const char *const starts[] = {"rack.request.", "plack.request.", "RAW_POST_DATA",
                                         "action_dispatch.request."};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (name.n >= strlen(starts[i]) && memcmp(name.p, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

static bool is_one_of(struct oribi_slice name, const char *const *list)
{
    for (; *list; list++)
        if (name.n == strlen(*list) && memcmp(name.p, *list, name.n) == 0)
            return true;
    return false;
}

void oribi__failure_show(struct oribi_slice name, struct oribi_slice value, struct oribi_buf *out)
{
    static const char *const cookies[] = {"cookie", "HTTP_COOKIE", NULL};
    static const char *const queries[] = {"query", "QUERY_STRING", NULL};
    if (value.n == 0)
        return;
    if (is_one_of(name, cookies))
        show_pairs(value, "; ", true, out);
    else if (oribi__failure_is_secret(name) || holds_a_body(name))
        append(out, hidden, sizeof(hidden) - 1);
    else if (is_one_of(name, queries))
        show_pairs(value, "&;", false, out);
    else if (oribi_os_memmem(value.p, value.n, "://", 3) || memchr(value.p, '?', value.n))
        show_address(value, out);
    else
        append(out, value.p, value.n);
}
