/* Local content of a worker: no application answers. Reading order: oribi__local_answer, oribi__local_create. */
#include "worker/local/local_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <stdio.h>
#include <string.h>

bool oribi__local_claims(void *self, struct oribi_conn *c)
{
    struct oribi__local *local = ((struct oribi_worker *)self)->local;
    const struct oribi_head *head = &c->exchange->head;
    if (oribi__local_wants_https(self, c))
        return true;
    if (local->count > 0 && (head->is_head || oribi_slice_equal(head->method, ORIBI_SLICE("GET"))))
        return true;
    return local->fixed && oribi_path_read(head->path, &local->path) == ORIBI_PATH_OK &&
           oribi_fixed_find(local->fixed, &local->path) != NULL;
}

bool oribi__local_answer(void *self, struct oribi_conn *c)
{
    struct oribi_worker *w = self;
    struct oribi__local *local = w->local;
    struct oribi__local_answer a = {.w = w, .local = local, .c = c};
    struct oribi__exchange *exchange = (struct oribi__exchange *)c->exchange;
    exchange->worker = w;
    oribi__logged_begin(exchange);
    if (oribi__local_wants_https(w, c)) {
        oribi__local_send_https(&a);
        return true;
    }
    enum oribi_path_verdict verdict = oribi_path_read(c->exchange->head.path, &local->path);
    const struct oribi_fixed *fixed =
        local->fixed && verdict == ORIBI_PATH_OK ? oribi_fixed_find(local->fixed, &local->path) : NULL;
    if (fixed) {
        oribi__local_answer_fixed(&a, fixed);
        return true;
    }
    a.now = (struct oribi_cache_now){.ms = w->reactor.now_ms, .wall_s = oribi_clock_wall_s()};
    return verdict == ORIBI_PATH_OK ? oribi__local_answer_file(&a) : oribi__local_refuse_path(&a, verdict);
}

/* --- life --- */

_Static_assert((int)ORIBI_OPTION_ITEMS_MAX <= (int)ORIBI_MOUNTS_MAX, "as many mounts as the option static takes");

static int open_mount(struct oribi__local_mount *mount, const char *text, char *error)
{
    int bad = -1;
    int code = oribi_mount_read(text, &mount->spec, error);
    if (code < 0)
        return code;
    code = oribi_root_create(&mount->root, mount->spec.folder, mount->spec.links, mount->spec.link_count, &bad);
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "static %.80s: %.100s: %s", text,
                       bad < 0 ? mount->spec.folder : mount->spec.links[bad], oribi_os_error_text());
    return code;
}

struct oribi__local *oribi__local_create(const struct oribi_options *options)
{
    const struct oribi_cache_limits limits = {options->static_open_max, ORIBI_CACHE_MISSING_DEFAULT,
                                              (uint64_t)options->static_memory_max};
    const struct oribi_fixed_lines lines = oribi_options_fixed_lines(options);
    struct oribi_fixed_set *fixed = NULL;
    char error[ORIBI_ERROR_TEXT_CAP];
    if (oribi_fixed_set_create(&lines, &fixed, error) < 0)
        oribi_log(ORIBI_LOG_ERROR, "%s; this worker does without fixed answers", error);
    if (options->mounts.count == 0 && !fixed && !options->https_redirect)
        return NULL;
    struct oribi__local *local = oribi_mem_alloc(1, sizeof(*local) + options->mounts.count * sizeof(local->mounts[0]));
    local->types = oribi_types_create("utf-8");
    (void)oribi_types_read_file(local->types, ORIBI_TYPES_SYSTEM_FILE); /* where there is one */
    local->cache = oribi_cache_create(&limits, local->types);
    local->fixed = fixed;
    for (size_t i = 0; i < options->mounts.count; i++) {
        struct oribi__local_mount *mount = &local->mounts[local->count];
        if (open_mount(mount, options->mounts.items[i], error) < 0) {
            oribi_log(ORIBI_LOG_ERROR, "%s; this worker does without the mount", error);
            continue;
        }
        local->prefixes[local->count++] = oribi_slice(mount->spec.prefix, strlen(mount->spec.prefix));
    }
    return local;
}

void oribi__local_abandon(struct oribi__local *local)
{
    if (!local)
        return;
    oribi_cache_abandon(local->cache);
    for (uint32_t i = 0; i < local->count; i++)
        oribi_root_abandon(local->mounts[i].root);
}

void oribi__local_destroy(struct oribi__local *local)
{
    if (!local)
        return;
    oribi_cache_destroy(local->cache);
    oribi_types_destroy(local->types);
    oribi_fixed_set_destroy(local->fixed);
    for (uint32_t i = 0; i < local->count; i++)
        oribi_root_destroy(local->mounts[i].root);
    oribi_mem_free(local);
}
