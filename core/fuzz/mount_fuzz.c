/* Lines of mounts, whatever they hold: what is read keeps the rules of its header. */
#include "oribi/base/error.h"
#include "oribi/files/mount.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_in_room(const struct oribi_mount *mount, const char *text)
{
    return text >= mount->room && text < mount->room + sizeof(mount->room) &&
           memchr(text, '\0', (size_t)(mount->room + sizeof(mount->room) - text));
}

static void check(const struct oribi_mount *mount)
{
    assert(is_in_room(mount, mount->prefix) && is_in_room(mount, mount->folder) && mount->folder[0]);
    assert(strlen(mount->prefix) <= ORIBI_MOUNT_PREFIX_MAX && strlen(mount->folder) < PATH_MAX);
    assert(!mount->prefix[0] || (mount->prefix[0] == '/' && mount->prefix[strlen(mount->prefix) - 1] != '/'));
    assert(!mount->index || (is_in_room(mount, mount->index) && !strchr(mount->index, '/')));
    assert(mount->link_count <= ORIBI_MOUNT_LINKS_MAX && mount->header_count <= ORIBI_MOUNT_HEADERS_MAX);
    for (uint32_t i = 0; i < mount->link_count; i++)
        assert(is_in_room(mount, mount->links[i]) && mount->links[i][0]);
    for (uint32_t i = 0; i < mount->header_count; i++) {
        assert(mount->headers[i].name[0] && !strpbrk(mount->headers[i].name, ": \t\r\n"));
        assert(!strpbrk(mount->headers[i].value, "\r\n") && strlen(mount->headers[i].value) <= ORIBI_MOUNT_VALUE_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct oribi_mount mount;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    char *text = malloc(size + 1);
    if (!text)
        abort();
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    int code = oribi_mount_read(text, &mount, error);
    if (code == 0)
        check(&mount);
    else
        assert(code == ORIBI_EINVAL && error[0] && strlen(error) < sizeof(error));
    free(text);
    return 0;
}
