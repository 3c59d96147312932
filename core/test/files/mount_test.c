/* Mounts as operators write them. */
#include "files/mount.c"

#include "tap.h"

static struct oribi_mount mount;
static char error[ORIBI_ERROR_TEXT_CAP];

static void read_line(const char *text)
{
    ok_named(oribi_mount_read(text, &mount, error) == 0, "%s: %s", text, error);
}

static void refused(const char *text, const char *want)
{
    ok_named(oribi_mount_read(text, &mount, error) == ORIBI_EINVAL, "%s is refused", text);
    is_str(error, want);
}

static void test_prefix_and_folder(void)
{
    read_line("/assets=public/assets");
    is_str(mount.prefix, "/assets");
    is_str(mount.folder, "public/assets");
    ok(!mount.fallthrough && !mount.index && !mount.html && mount.nosniff);
    ok_eq(mount.header_count, 0);
    read_line("/assets/=/srv/a=b");
    is_str(mount.prefix, "/assets");
    is_str(mount.folder, "/srv/a=b");
    read_line("public");
    is_str(mount.prefix, "");
    is_str(mount.folder, "public");
    ok(mount.fallthrough);
    read_line("/srv/www");
    is_str(mount.prefix, "");
    is_str(mount.folder, "/srv/www");
    read_line("/=/srv/x=y");
    is_str(mount.prefix, "");
    is_str(mount.folder, "/srv/x=y");
    read_line("/srv/www?cache=no-store"); /* the equals sign of a setting makes no prefix */
    is_str(mount.folder, "/srv/www");
}

static void test_settings(void)
{
    read_line("/a=b?cache=public, max-age=31536000, immutable&header=X-One: 1&header=X-Two:a%26b&index=index.html"
              "&html=on&fallthrough=on&symlinks=/srv/shared&symlinks=/srv/a%20b&nosniff=off");
    ok_eq(mount.header_count, 3);
    is_str(mount.headers[0].name, "Cache-Control");
    is_str(mount.headers[0].value, "public, max-age=31536000, immutable");
    is_str(mount.headers[1].name, "X-One");
    is_str(mount.headers[1].value, "1");
    is_str(mount.headers[2].value, "a&b");
    is_str(mount.index, "index.html");
    ok(mount.html && mount.fallthrough && !mount.nosniff);
    ok_eq(mount.link_count, 2);
    is_str(mount.links[0], "/srv/shared");
    is_str(mount.links[1], "/srv/a b");
    read_line("public?fallthrough=off");
    ok(!mount.fallthrough);
}

static void test_what_is_refused(void)
{
    refused("", "static \"\" needs a folder, as /assets=public/assets");
    refused("/a=", "static \"/a=\" needs a folder, as /assets=public/assets");
    refused("/a=?cache=x", "static \"/a=?cache=x\" needs a folder, as /assets=public/assets");
    refused("/a/../b=c", "static \"/a/../b=c\" needs a prefix that a path can begin with, as /assets");
    refused("/a%20b=c", "static \"/a%20b=c\" needs a prefix that a path can begin with, as /assets");
    refused("a?cahce=x", "static \"a?cahce=x\" has an unknown setting \"cahce\" (known: cache, header, index, html, "
                         "fallthrough, symlinks, nosniff, etag)");
    refused("a?etag=hash", "static \"a?etag=hash\" needs etag to be content or time");
    refused("a?html", "static \"a?html\" needs html to be on or off");
    refused("a?html=yes", "static \"a?html=yes\" needs html to be on or off");
    refused("a?index=x/y", "static \"a?index=x/y\" needs index to be a file's name, as index.html");
    refused("a?index=.htaccess", "static \"a?index=.htaccess\" needs index to be a file's name, as index.html");
    refused("a?header=X", "static \"a?header=X\" needs header to be NAME:TEXT");
    refused("a?header=X Y:1", "static \"a?header=X Y:1\" has a header whose name is none");
    refused("a?cache=a%0d%0aB:c", "static \"a?cache=a%0d%0aB:c\" has a header whose value no answer may have: "
                                  "Cache-Control");
    refused("a?cache=%", "static \"a?cache=%\" has a % without two hex digits behind it: write %25");
    refused("a?cache=%00", "static \"a?cache=%00\" has a NUL byte");
    refused("a?symlinks=", "static \"a?symlinks=\" needs symlinks to be a folder");
}

/* `count` times the setting, joined. */
static const char *repeated(const char *setting, int count)
{
    static char text[4096];
    size_t n = (size_t)snprintf(text, sizeof(text), "a?");
    for (int i = 0; i < count; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? "&" : "", setting);
    return text;
}

static const char *long_line(const char *before, size_t n)
{
    static char text[8 * PATH_MAX];
    size_t before_n = strlen(before);
    memcpy(text, before, before_n);
    memset(text + before_n, 'x', n);
    text[before_n + n] = '\0';
    return text;
}

static void test_maxima(void)
{
    read_line(repeated("header=A:1", ORIBI_MOUNT_HEADERS_MAX));
    ok_eq(oribi_mount_read(repeated("header=A:1", ORIBI_MOUNT_HEADERS_MAX + 1), &mount, error), ORIBI_EINVAL);
    read_line(repeated("symlinks=/s", ORIBI_MOUNT_LINKS_MAX));
    ok_eq(oribi_mount_read(repeated("symlinks=/s", ORIBI_MOUNT_LINKS_MAX + 1), &mount, error), ORIBI_EINVAL);
    read_line(long_line("a?cache=", ORIBI_MOUNT_VALUE_MAX));
    ok_eq(oribi_mount_read(long_line("a?cache=", ORIBI_MOUNT_VALUE_MAX + 1), &mount, error), ORIBI_EINVAL);
    read_line(long_line("a?index=", ORIBI_MOUNT_INDEX_MAX));
    ok_eq(oribi_mount_read(long_line("a?index=", ORIBI_MOUNT_INDEX_MAX + 1), &mount, error), ORIBI_EINVAL);
    read_line(long_line("", PATH_MAX - 1));
    ok_eq(oribi_mount_read(long_line("", PATH_MAX), &mount, error), ORIBI_EINVAL);
    ok_eq(oribi_mount_read(long_line("a?symlinks=", sizeof(mount.room)), &mount, error), ORIBI_EINVAL);
    ok(strstr(error, " is too long") != NULL);
}

int main(void)
{
    test_prefix_and_folder();
    test_settings();
    test_what_is_refused();
    test_maxima();
    return done_testing();
}
