/* Files and folders that options name, looked at where a start or a reload can still be refused. */
#include "config/options_private.h"
#include "oribi/config/options_names.h"

#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os/os.h"
#include "oribi/files/fixed.h"
#include "oribi/files/mount.h"
#include "oribi/files/root.h"

#include <stdio.h>
#include <string.h>

static int check_mount(const char *text, struct oribi_mount *mount, char *error)
{
    struct oribi_root *root = NULL;
    int bad = -1;
    int code = oribi_mount_read(text, mount, error);
    if (code < 0)
        return code;
    code = oribi_root_create(&root, mount->folder, mount->links, mount->link_count, &bad);
    bool slash_forgotten = text[0] != '/' && bad < 0 && strchr(mount->folder, '=');
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "static %.80s: %.100s: %s%s", text,
                       bad < 0 ? mount->folder : mount->links[bad], oribi_os_error_text(),
                       slash_forgotten ? " (a prefix begins with a slash)" : "");
    else
        oribi_root_destroy(root);
    return code;
}

static int check_folder(const char *option, const char *text, const char *folder, char *error)
{
    struct oribi_root *root = NULL;
    int code = oribi_root_create(&root, folder, NULL, 0, NULL);
    if (code < 0)
        (void)snprintf(error, ORIBI_ERROR_TEXT_CAP, "%s %.180s: %s", option, text, oribi_os_error_text());
    else
        oribi_root_destroy(root);
    return code;
}

/* Every look, one after the other, until the teller has heard enough. */
struct look {
    oribi__files_tell tell;
    void *self;
    int code; /* of the last thing that is wrong */
    bool goes_on;
};

static void note(struct look *look, int code, const char *error)
{
    if (code == 0)
        return;
    look->code = code;
    look->goes_on = look->tell(look->self, error);
}

static void look_at_sendfile(struct look *look, const struct oribi_options *options, char *error)
{
    const struct oribi_text_list *roots = &options->sendfile_root;
    const struct oribi_text_list *maps = &options->sendfile_map;
    struct oribi_slice prefix;
    const char *folder;
    for (size_t i = 0; look->goes_on && i < roots->count; i++)
        note(look, check_folder("sendfile_root", roots->items[i], roots->items[i], error), error);
    for (size_t i = 0; look->goes_on && i < maps->count; i++) {
        int code = oribi_mount_map_read("sendfile_map", maps->items[i], &prefix, &folder, error);
        if (code == 0)
            code = check_folder("sendfile_map", maps->items[i], folder, error);
        note(look, code, error);
    }
}

static int check_error_pages(const struct oribi_options *options, char *error)
{
    struct oribi_error_pages *pages = NULL;
    int code = oribi_error_pages_create(options->error_pages.items, options->error_pages.count, &pages, error);
    oribi_error_pages_destroy(pages);
    return code;
}

int oribi__options_each_file(const struct oribi_options *options, oribi__files_tell tell, void *self)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct look look = {tell, self, 0, true};
    struct oribi_mount *mount = oribi_mem_alloc(1, sizeof(*mount));
    for (size_t i = 0; look.goes_on && i < options->mounts.count; i++)
        note(&look, check_mount(options->mounts.items[i], mount, error), error);
    oribi_mem_free(mount);
    look_at_sendfile(&look, options, error);
    if (look.goes_on)
        note(&look, check_error_pages(options, error), error);
    return look.code;
}

static bool keep_first(void *self, const char *error)
{
    (void)snprintf(self, ORIBI_ERROR_TEXT_CAP, "%s", error); /* of the same size */
    return false;
}

int oribi_options_check_files(const struct oribi_options *options, char *error)
{
    return oribi__options_each_file(options, keep_first, error);
}

static void warn_of_second(const struct oribi_mount *first, const struct oribi_mount *second)
{
    const char *prefix = *first->prefix ? first->prefix : "/";
    if (first->fallthrough)
        oribi_log(ORIBI_LOG_WARN, "static: %s has two folders; %s is asked for what %s lacks", prefix, second->folder,
                  first->folder);
    else
        oribi_log(ORIBI_LOG_WARN, "static: %s has two folders; %s is never asked, since %s answers 404 (fallthrough)",
                  prefix, second->folder, first->folder);
}

void oribi_options_warn_of_files(const struct oribi_options *options)
{
    char error[ORIBI_ERROR_TEXT_CAP];
    struct oribi_mount *pair = oribi_mem_alloc(2, sizeof(*pair));
    for (size_t j = 1; j < options->mounts.count; j++) {
        for (size_t i = 0; i < j; i++) {
            if (oribi_mount_read(options->mounts.items[i], &pair[0], error) < 0 ||
                oribi_mount_read(options->mounts.items[j], &pair[1], error) < 0 ||
                strcmp(pair[0].prefix, pair[1].prefix) != 0)
                continue;
            warn_of_second(&pair[0], &pair[1]);
            break;
        }
    }
    oribi_mem_free(pair);
}
