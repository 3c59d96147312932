/* Fixed answers. Reading order: oribi_fixed_read (a line), oribi_fixed_set_create (all of them), oribi_fixed_find,
 * oribi_fixed_location.
 *
 *     set   exact: sorted by length and bytes          stars: sorted the same, by what stands before the star */
#include "oribi/files/fixed.h"

#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oribi_fixed_set {
    size_t exact_count;
    size_t star_count;
    struct oribi_fixed **exact;
    struct oribi_fixed **stars; /* behind the exact ones */
    struct oribi_fixed *all[];
};

static const char *const kind_names[] = {
    [ORIBI_FIXED_ANSWER] = "answer", [ORIBI_FIXED_REDIRECT] = "redirect", [ORIBI_FIXED_HEALTH] = "health"};

/* --- a line --- */

struct reading {
    const char *line;
    char *error;
    enum oribi_fixed_kind kind;
    int status;
    bool has_star;
    bool takes_rest;
    struct oribi_slice text;
    struct oribi_slice fragment;
    struct oribi_path path;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct reading *r, const char *format, ...)
{
    char what[140];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args); /* our own words: they fit */
    va_end(args);
    (void)snprintf(r->error, ORIBI_ERROR_TEXT_CAP, "%s \"%.*s\" %s", kind_names[r->kind],
                   (int)strcspn(r->line, "\n") > 90 ? 90 : (int)strcspn(r->line, "\n"), r->line, what);
    return ORIBI_EINVAL;
}

/* A star alone in the last segment. */
static bool ends_in_star(struct oribi_slice text)
{
    return text.n >= 2 && text.p[text.n - 1] == '*' && text.p[text.n - 2] == '/';
}

static int read_path(struct reading *r, struct oribi_slice text)
{
    if (text.n > ORIBI_FIXED_PATH_MAX)
        return refuse(r, "has a path of more than %d bytes", ORIBI_FIXED_PATH_MAX);
    r->has_star = r->kind == ORIBI_FIXED_REDIRECT && ends_in_star(text);
    if (r->has_star)
        text.n--;
    enum oribi_path_verdict verdict = oribi_path_read(text, &r->path);
    if (verdict == ORIBI_PATH_NOT_ROOTED)
        return refuse(r, "needs a path that begins with a slash");
    if (verdict != ORIBI_PATH_OK)
        return refuse(r, "has a path that no request gets here with: %s", oribi_path_verdict_text(verdict));
    if (memchr(text.p, '?', text.n) || memchr(text.p, '#', text.n))
        return refuse(r, "needs a path without a query");
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] <= ' ' || text.p[i] == 0x7f)
            return refuse(r, "has a space or a control character in its path: write %%20");
    if (r->kind == ORIBI_FIXED_REDIRECT && memchr(text.p, '*', text.n))
        return refuse(r, "has a star that is not its path's last segment: write %%2A for the character");
    return 0;
}

/* Three digits, with the end of the line or a colon behind them. Takes them and the colon off. */
static bool take_status(const char **p, int *status)
{
    size_t n = strspn(*p, "0123456789");
    if (n != 3 || ((*p)[3] && (*p)[3] != ':'))
        return false;
    *status = ((*p)[0] - '0') * 100 + ((*p)[1] - '0') * 10 + ((*p)[2] - '0');
    *p += (*p)[3] ? 4 : 3;
    return true;
}

static int read_answer(struct reading *r, const char *rest)
{
    if (!take_status(&rest, &r->status))
        return refuse(r, "needs a status behind its path, as /robots.txt=200:TEXT");
    if (r->status >= 300 && r->status < 400)
        return refuse(r, "has a status of redirects: see redirect");
    if (r->status < 200 || r->status > 599 || r->status == 206)
        return refuse(r, "needs a status from 200 to 299 or from 400 to 599, and not 206");
    r->text = oribi_slice(rest, strlen(rest));
    if (r->text.n > ORIBI_FIXED_TEXT_MAX)
        return refuse(r, "has a text of more than %d bytes", ORIBI_FIXED_TEXT_MAX);
    if (r->text.n && (r->status == 204 || r->status == 205))
        return refuse(r, "has a text, and an answer of %d has no body", r->status);
    return 0;
}

/* Bytes that a URL may have (RFC 3986 2): what else there is, must be escaped. A backslash is a slash to browsers. */
static bool is_url(struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char byte = (unsigned char)text.p[i];
        if (byte <= ' ' || byte > '~' || strchr("\"<>\\^`{|}", byte))
            return false;
    }
    return true;
}

static bool begins_with(struct oribi_slice text, const char *prefix)
{
    size_t n = strlen(prefix);
    return text.n >= n && memcmp(text.p, prefix, n) == 0;
}

static bool has_place(struct oribi_slice to)
{
    size_t scheme_n = begins_with(to, "http://") ? 7 : begins_with(to, "https://") ? 8 : 0;
    if (scheme_n == 0)
        return begins_with(to, "/") && !begins_with(to, "//");
    return to.n > scheme_n && !strchr("/?#*:", to.p[scheme_n]);
}

static int read_redirect(struct reading *r, const char *rest)
{
    static const int statuses[] = {301, 302, 303, 307, 308};
    bool known = false;
    r->status = 301;
    (void)take_status(&rest, &r->status);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        known |= r->status == statuses[i];
    if (!known)
        return refuse(r, "needs a status of 301, 302, 303, 307 or 308");
    struct oribi_slice to = oribi_slice(rest, strlen(rest));
    if (!has_place(to))
        return refuse(r, "needs a path or an http(s) URL to lead to, as /old=/new");
    if (to.n > ORIBI_FIXED_TO_MAX)
        return refuse(r, "leads to more than %d bytes", ORIBI_FIXED_TO_MAX);
    if (!is_url(to))
        return refuse(r, "leads to what is no URL: other bytes are written as %%20");
    r->takes_rest = ends_in_star(to);
    if (r->takes_rest && !r->has_star)
        return refuse(r, "has a star in what it leads to, and none in its path");
    const char *hash = memchr(to.p, '#', to.n);
    to.n -= r->takes_rest;
    r->text = hash ? oribi_slice(to.p, (size_t)(hash - to.p)) : to;
    if (r->takes_rest && (hash || memchr(to.p, '?', to.n)))
        return refuse(r, "has a star behind its path");
    if (hash)
        r->fragment = oribi_slice(hash, to.n - r->text.n);
    return 0;
}

static struct oribi_slice copy(char **room, struct oribi_slice text)
{
    char *p = *room;
    if (text.n)
        memcpy(p, text.p, text.n);
    p[text.n] = '\0';
    *room += text.n + 1;
    return oribi_slice(p, text.n);
}

static struct oribi_fixed *make(const struct reading *r)
{
    size_t n = r->path.n + r->text.n + r->fragment.n + 3; /* each has a maximum */
    struct oribi_fixed *fixed = oribi_mem_alloc(1, sizeof(*fixed) + n);
    char *room = (char *)(fixed + 1);
    *fixed = (struct oribi_fixed){
        .kind = r->kind, .status = r->status, .has_star = r->has_star, .takes_rest = r->takes_rest};
    fixed->path = copy(&room, oribi_slice(r->path.text, r->path.n));
    fixed->text = copy(&room, r->text);
    fixed->fragment = copy(&room, r->fragment);
    return fixed;
}

int oribi_fixed_read(enum oribi_fixed_kind kind, const char *line, struct oribi_fixed **fixed, char *error)
{
    struct reading r;
    memset(&r, 0, offsetof(struct reading, path));
    r.line = line;
    r.error = error;
    r.kind = kind;
    size_t n = kind == ORIBI_FIXED_HEALTH ? strlen(line) : strcspn(line, "=");
    int code = read_path(&r, oribi_slice(line, n));
    if (code < 0)
        return code;
    const char *rest = line + n + (line[n] == '=');
    if (kind == ORIBI_FIXED_ANSWER)
        code = read_answer(&r, rest);
    else if (kind == ORIBI_FIXED_REDIRECT)
        code = read_redirect(&r, rest);
    if (code == 0)
        *fixed = make(&r);
    return code;
}

/* --- all of them --- */

static int compare_bytes(struct oribi_slice a, struct oribi_slice b)
{
    if (a.n != b.n)
        return a.n < b.n ? -1 : 1;
    return memcmp(a.p, b.p, a.n);
}

/* Those with a star behind those without. */
static int compare_entries(const void *left, const void *right)
{
    const struct oribi_fixed *a = *(struct oribi_fixed *const *)left;
    const struct oribi_fixed *b = *(struct oribi_fixed *const *)right;
    if (a->has_star != b->has_star)
        return a->has_star ? 1 : -1;
    return compare_bytes(a->path, b->path);
}

static int compare_key(const void *key, const void *entry)
{
    return compare_bytes(*(const struct oribi_slice *)key, (*(struct oribi_fixed *const *)entry)->path);
}

static const struct oribi_fixed *search(struct oribi_fixed *const *entries, size_t count, struct oribi_slice key)
{
    struct oribi_fixed *const *found =
        count ? bsearch(&key, entries, count, sizeof(struct oribi_fixed *), compare_key) : NULL;
    return found ? *found : NULL;
}

const struct oribi_fixed *oribi_fixed_find(const struct oribi_fixed_set *set, const struct oribi_path *path)
{
    const struct oribi_fixed *fixed = search(set->exact, set->exact_count, oribi_slice(path->text, path->n));
    if (fixed || set->star_count == 0)
        return fixed;
    for (size_t n = path->n; n > 0 && !fixed; n--)
        if (path->text[n - 1] == '/')
            fixed = search(set->stars, set->star_count, oribi_slice(path->text, n));
    return fixed;
}

/* Where the redirect leads on this server. False: elsewhere, or to no path that can be read. */
static bool target_of(const struct oribi_fixed *fixed, struct oribi_path *path)
{
    char text[ORIBI_FIXED_TO_MAX + 2];
    size_t n = fixed->text.n;
    const char *query = memchr(fixed->text.p, '?', n);
    if (query)
        n = (size_t)(query - fixed->text.p);
    memcpy(text, fixed->text.p, n);
    if (fixed->takes_rest)
        text[n++] = 'x'; /* any */
    return oribi_path_read(oribi_slice(text, n), path) == ORIBI_PATH_OK;
}

static int check_loop(const struct oribi_fixed_set *set, const struct oribi_fixed *start, size_t count, char *error)
{
    struct oribi_path *path = oribi_mem_alloc(1, sizeof(*path));
    const struct oribi_fixed *at = start;
    for (size_t hops = 0; at && at->kind == ORIBI_FIXED_REDIRECT && hops < count; hops++) {
        at = target_of(at, path) ? oribi_fixed_find(set, path) : NULL;
        if (at == start)
            break;
    }
    oribi_mem_free(path);
    if (at != start)
        return 0;
    (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "redirect %.80s%s leads back to itself, by %.80s", start->path.p,
                   start->has_star ? "*" : "", start->text.p);
    return ORIBI_EINVAL;
}

static int check_set(const struct oribi_fixed_set *set, char *error)
{
    size_t count = set->exact_count + set->star_count;
    for (size_t i = 1; i < count; i++) {
        const struct oribi_fixed *a = set->all[i - 1];
        const struct oribi_fixed *b = set->all[i];
        if (a->has_star != b->has_star || compare_bytes(a->path, b->path) != 0)
            continue;
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%.120s%s has two fixed answers: %s and %s", b->path.p,
                       b->has_star ? "*" : "", kind_names[a->kind], kind_names[b->kind]);
        return ORIBI_EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        if (set->all[i]->kind != ORIBI_FIXED_REDIRECT)
            continue;
        int code = check_loop(set, set->all[i], count, error);
        if (code < 0)
            return code;
    }
    return 0;
}

static int add(struct oribi_fixed_set *set, enum oribi_fixed_kind kind, char *const *lines, size_t count, char *error)
{
    if (count > ORIBI_FIXED_MAX) {
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s is given more than %d times", kind_names[kind],
                       ORIBI_FIXED_MAX);
        return ORIBI_EINVAL;
    }
    for (size_t i = 0; i < count; i++) {
        struct oribi_fixed *fixed = NULL;
        int code = oribi_fixed_read(kind, lines[i], &fixed, error);
        if (code < 0)
            return code;
        set->all[set->exact_count + set->star_count] = fixed;
        *(fixed->has_star ? &set->star_count : &set->exact_count) += 1;
    }
    return 0;
}

int oribi_fixed_set_create(const struct oribi_fixed_lines *lines, struct oribi_fixed_set **out, char *error)
{
    size_t count = lines->answer_count + lines->redirect_count + (lines->health != NULL);
    *out = NULL;
    if (count == 0)
        return 0;
    struct oribi_fixed_set *set = oribi_mem_alloc(1, sizeof(*set) + count * sizeof(set->all[0]));
    char *health = (char *)lines->health; /* only read */
    int code = add(set, ORIBI_FIXED_ANSWER, lines->answers, lines->answer_count, error);
    if (code == 0)
        code = add(set, ORIBI_FIXED_REDIRECT, lines->redirects, lines->redirect_count, error);
    if (code == 0 && health)
        code = add(set, ORIBI_FIXED_HEALTH, &health, 1, error);
    if (code == 0) {
        qsort(set->all, count, sizeof(set->all[0]), compare_entries);
        set->exact = set->all;
        set->stars = set->all + set->exact_count;
        code = check_set(set, error);
    }
    if (code < 0)
        oribi_fixed_set_destroy(set);
    else
        *out = set;
    return code;
}

void oribi_fixed_set_destroy(struct oribi_fixed_set *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->exact_count + set->star_count; i++)
        oribi_mem_free(set->all[i]);
    oribi_mem_free(set);
}

/* --- where a redirect leads --- */

struct writing {
    char *p;
    size_t n;
    size_t cap;
};

static void put(struct writing *w, const char *p, size_t n)
{
    if (w->n + n <= w->cap && n)
        memcpy(w->p + w->n, p, n);
    w->n += n; /* beyond cap: it did not fit */
}

/* The rest of the path, as it came, behind so many bytes of the decoded one. */
static struct oribi_slice rest_of(struct oribi_slice raw, size_t decoded_n)
{
    size_t at = 0;
    for (; decoded_n > 0 && at < raw.n; decoded_n--)
        at += raw.p[at] == '%' ? 3 : 1;
    return at < raw.n ? oribi_slice(raw.p + at, raw.n - at) : oribi_slice("", 0);
}

/* A backslash is a slash to browsers, and two of these at the front are another server. */
static void put_rest(struct writing *w, struct oribi_slice rest)
{
    for (size_t i = 0; i < rest.n; i++)
        put(w, rest.p[i] == '\\' ? "%5C" : rest.p + i, rest.p[i] == '\\' ? 3 : 1);
}

ssize_t oribi_fixed_location(const struct oribi_fixed *fixed, struct oribi_slice raw_path, struct oribi_slice query,
                             char *dst, size_t cap)
{
    struct writing w = {.p = dst, .cap = cap};
    assert(fixed->kind == ORIBI_FIXED_REDIRECT);
    put(&w, fixed->text.p, fixed->text.n);
    if (fixed->takes_rest)
        put_rest(&w, rest_of(raw_path, fixed->path.n));
    if (query.n) {
        put(&w, memchr(fixed->text.p, '?', fixed->text.n) ? "&" : "?", 1);
        put(&w, query.p, query.n);
    }
    put(&w, fixed->fragment.p, fixed->fragment.n);
    return w.n <= cap ? (ssize_t)w.n : ORIBI_ELIMIT;
}
