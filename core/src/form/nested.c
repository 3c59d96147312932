/* Names into steps. What a step has looked at belongs to its key or to the brackets beside it, so a name is walked once
 * however deep it is. */
#include "oribi/form/nested.h"

#include "oribi/base/os/os.h"

static struct oribi_slice from(struct oribi_slice text, size_t at)
{
    return oribi_slice(text.p + at, text.n - at);
}

static bool begins_list(struct oribi_slice text)
{
    return text.n >= 2 && text.p[0] == '[' && text.p[1] == ']';
}

void oribi_nested_begin(struct oribi_nested *nested, struct oribi_slice name, uint32_t depth_max)
{
    *nested = (struct oribi_nested){.rest = name, .depth_max = depth_max, .ended = name.n == 0};
}

/* The key at the front of a name, and what stands behind it. */
static struct oribi_slice cut_key(struct oribi_slice name, bool outermost, struct oribi_slice *after)
{
    const char *mark;
    size_t n = name.n;
    if (outermost) {
        mark = name.n > 1 ? memchr(name.p + 1, '[', name.n - 1) : NULL;
        n = mark ? (size_t)(mark - name.p) : name.n;
        *after = from(name, n);
        return oribi_slice(name.p, n);
    }
    if (begins_list(name)) {
        *after = from(name, 2);
        return oribi_slice(name.p, 2);
    }
    mark = name.p[0] == '[' ? memchr(name.p, ']', name.n) : NULL;
    if (!mark) {
        *after = from(name, name.n);
        return name;
    }
    n = (size_t)(mark - name.p);
    *after = from(name, n + 1);
    return oribi_slice(name.p + 1, n - 1);
}

static const char *first_bracket(struct oribi_slice text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '[' || text.p[i] == ']')
            return text.p + i;
    return NULL;
}

/* The name behind the brackets of an element: `[key]` with no bracket in it is a plain key. */
static struct oribi_slice child_of(struct oribi_slice after)
{
    struct oribi_slice child = from(after, 2);
    if (child.n > 2 && child.p[0] == '[' && child.p[child.n - 1] == ']' &&
        first_bracket(from(child, 1)) == child.p + child.n - 1)
        return oribi_slice(child.p + 1, child.n - 2);
    return child;
}

static int end(struct oribi_nested *nested, struct oribi_nested_step *step, enum oribi_nested_kind kind)
{
    step->kind = kind;
    nested->ended = true;
    return 1;
}

static int go_on(struct oribi_nested *nested, struct oribi_nested_step *step, enum oribi_nested_kind kind,
                 struct oribi_slice rest)
{
    step->kind = kind;
    nested->rest = rest;
    nested->depth++;
    return 1;
}

int oribi_nested_next(struct oribi_nested *nested, struct oribi_nested_step *step)
{
    struct oribi_slice after;
    if (nested->ended)
        return 0;
    if (nested->depth >= nested->depth_max)
        return ORIBI_ELIMIT;
    step->key = cut_key(nested->rest, nested->depth == 0, &after);
    if (after.n == 0)
        return end(nested, step, ORIBI_NESTED_SET);
    if (after.n == 1 && after.p[0] == '[') {
        step->key = nested->rest;
        return end(nested, step, ORIBI_NESTED_SET);
    }
    if (!begins_list(after))
        return go_on(nested, step, ORIBI_NESTED_HASH, after);
    if (after.n == 2)
        return end(nested, step, ORIBI_NESTED_APPEND);
    step->path = child_of(after);
    if (step->path.n == 2 && begins_list(step->path))
        return nested->depth + 1 >= nested->depth_max ? ORIBI_ELIMIT : end(nested, step, ORIBI_NESTED_LIST);
    step->shared = oribi_os_memmem(step->path.p, step->path.n, "[]", 2) != NULL;
    return go_on(nested, step, ORIBI_NESTED_ELEMENT, step->path);
}

bool oribi_nested_part(struct oribi_slice *path, struct oribi_slice *key)
{
    while (path->n && (path->p[0] == '[' || path->p[0] == ']'))
        *path = from(*path, 1);
    const char *mark = first_bracket(*path);
    *key = oribi_slice(path->p, mark ? (size_t)(mark - path->p) : path->n);
    *path = from(*path, key->n);
    return key->n > 0;
}

bool oribi_nested_is_plain(struct oribi_slice name)
{
    bool was_empty = false;
    const char *mark = first_bracket(name);
    struct oribi_slice rest = mark ? from(name, (size_t)(mark - name.p)) : from(name, name.n);
    if (rest.n == name.n || (name.n && memchr(name.p, '\n', name.n)))
        return false;
    while (rest.n > 0) {
        mark = rest.p[0] == '[' ? first_bracket(from(rest, 1)) : NULL;
        if (!mark || *mark != ']')
            return false;
        bool is_empty = mark == rest.p + 1;
        rest = from(rest, (size_t)(mark - rest.p) + 1);
        if (was_empty && is_empty)
            return rest.n == 0;
        was_empty = is_empty;
    }
    return true;
}
