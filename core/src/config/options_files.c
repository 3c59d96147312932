/* What options name on the disk, looked at where a start or a reload can still be refused. */
#include "config/options_private.h"

#include "oribi/base/log.h"
#include "oribi/base/mem.h"
#include "oribi/base/os.h"
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

int oribi_options_check_files(const struct oribi_options *options, char *error)
{
    int code = 0;
    struct oribi_mount *mount = oribi_mem_alloc(1, sizeof(*mount));
    for (size_t i = 0; code == 0 && i < options->mounts.count; i++)
        code = check_mount(options->mounts.items[i], mount, error);
    oribi_mem_free(mount);
    return code;
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
