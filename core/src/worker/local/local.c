/* What a worker answers without the application. Reading order: oribi__site_answer, oribi__site_create. */
#include "worker/local/local_private.h"

#include "oribi/base/clock.h"
#include "oribi/base/error.h"
#include "oribi/base/mem.h"

#include <stdio.h>
#include <string.h>

bool oribi__site_claims(void *self, struct oribi_conn *c)
{
    struct oribi__site *site = ((struct oribi_worker *)self)->site;
    const struct oribi_head *head = &c->exchange->head;
    if (oribi__site_wants_https(self, c))
        return true;
    if (site->count > 0 && (head->is_head || oribi_slice_equal(head->method, ORIBI_SLICE("GET"))))
        return true;
    return site->fixed && oribi_path_read(head->path, &site->path) == ORIBI_PATH_OK &&
           oribi_fixed_find(site->fixed, &site->path) != NULL;
}

bool oribi__site_answer(void *self, struct oribi_conn *c)
{
    struct oribi_worker *w = self;
    struct oribi__site *site = w->site;
    struct oribi__site_answer a = {.w = w, .site = site, .c = c};
    struct oribi__exchange *exchange = (struct oribi__exchange *)c->exchange;
    exchange->worker = w;
    oribi__logged_begin(exchange);
    if (oribi__site_wants_https(w, c)) {
        oribi__site_send_https(&a);
        return true;
    }
    enum oribi_path_verdict verdict = oribi_path_read(c->exchange->head.path, &site->path);
    const struct oribi_fixed *fixed =
        site->fixed && verdict == ORIBI_PATH_OK ? oribi_fixed_find(site->fixed, &site->path) : NULL;
    if (fixed) {
        oribi__site_answer_fixed(&a, fixed);
        return true;
    }
    a.now = (struct oribi_cache_now){.ms = w->reactor.now_ms, .wall_s = oribi_clock_wall_s()};
    return verdict == ORIBI_PATH_OK ? oribi__site_answer_file(&a) : oribi__site_refuse_path(&a, verdict);
}

/* --- life --- */

_Static_assert((int)ORIBI_OPTION_ITEMS_MAX <= (int)ORIBI_MOUNTS_MAX, "as many mounts as the option static takes");

static int open_mount(struct oribi__site_mount *mount, const char *text, char *error)
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

struct oribi__site *oribi__site_create(const struct oribi_options *options)
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
    struct oribi__site *site = oribi_mem_alloc(1, sizeof(*site) + options->mounts.count * sizeof(site->mounts[0]));
    site->types = oribi_types_create("utf-8");
    (void)oribi_types_read_file(site->types, ORIBI_TYPES_SYSTEM_FILE); /* where there is one */
    site->cache = oribi_cache_create(&limits, site->types);
    site->fixed = fixed;
    for (size_t i = 0; i < options->mounts.count; i++) {
        struct oribi__site_mount *mount = &site->mounts[site->count];
        if (open_mount(mount, options->mounts.items[i], error) < 0) {
            oribi_log(ORIBI_LOG_ERROR, "%s; this worker does without the mount", error);
            continue;
        }
        site->prefixes[site->count++] = oribi_slice(mount->spec.prefix, strlen(mount->spec.prefix));
    }
    return site;
}

void oribi__site_abandon(struct oribi__site *site)
{
    if (!site)
        return;
    oribi_cache_abandon(site->cache);
    for (uint32_t i = 0; i < site->count; i++)
        oribi_root_abandon(site->mounts[i].root);
}

void oribi__site_destroy(struct oribi__site *site)
{
    if (!site)
        return;
    oribi_cache_destroy(site->cache);
    oribi_types_destroy(site->types);
    oribi_fixed_set_destroy(site->fixed);
    for (uint32_t i = 0; i < site->count; i++)
        oribi_root_destroy(site->mounts[i].root);
    oribi_mem_free(site);
}
