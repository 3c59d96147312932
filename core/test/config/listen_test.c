/* Sockets that listen, and the files of unix sockets: which are removed, and which stay. */
#include "config/listen.c"

#include "oribi/base/buf.h"
#include "tap.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

static char dir[] = "/tmp/oribi-listen-XXXXXX";
static char path[64];
static const char *why;

/* Stands for another server that puts its own socket file at `path` while we look whether anybody answers there. */
static bool is_replaced_meanwhile;
static int others_fd = -1;
static struct oribi_socket_file others;

static int open_here(struct oribi_socket_file *file)
{
    return oribi_listen_unix(path, 0177, NULL, 4, file);
}

static void replace_by_other(void)
{
    struct oribi_socket_file before;
    oribi_listen_file(path, &before);
    do { /* a file system may give the next file the number of the one that went */
        (void)rename(path, "aside");
        oribi_os_close(others_fd);
        others_fd = open_here(&others);
    } while (others.inode == before.inode);
    (void)unlink("aside");
}

int oribi_os_unix_answers(const char *asked)
{
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    (void)snprintf(where.sun_path, sizeof(where.sun_path), "%s", asked);
    int fd = oribi_os_socket(AF_UNIX, SOCK_STREAM, true);
    bool answers = connect(fd, (struct sockaddr *)&where, sizeof(where)) == 0;
    oribi_os_close(fd);
    if (is_replaced_meanwhile)
        replace_by_other();
    return answers;
}

static bool is_there(void)
{
    struct oribi_socket_file file;
    oribi_listen_file(path, &file);
    return file.inode != 0;
}

static void test_a_socket_file_is_its_owners_and_goes_with_its_socket(void)
{
    struct oribi_socket_file file;
    struct stat entry;
    int fd = open_here(&file);
    ok(fd >= 0 && file.inode != 0);
    ok(stat(path, &entry) == 0 && (entry.st_mode & 0777) == 0600);
    ok_eq(oribi_os_unix_answers(path), 1);
    oribi_listen_unlink(path, &file);
    ok(!is_there());
    oribi_os_close(fd);
}

static void test_another_servers_file_under_the_name_stays(void)
{
    struct oribi_socket_file file;
    int fd = open_here(&file);
    replace_by_other();
    oribi_listen_unlink(path, &file);
    ok(is_there());
    oribi_listen_unlink(path, &others);
    ok(!is_there());
    oribi_os_close(fd);
    oribi_os_close(others_fd);
    others_fd = -1;
}

static void test_only_a_stale_file_makes_way(void)
{
    struct oribi_socket_file file;
    int fd = open_here(&file);
    ok_eq(oribi_listen_clear(path, false, &why), ORIBI_ELIMIT);
    is_str(why, "address already in use");
    ok(is_there());
    oribi_os_close(fd);
    ok_eq(oribi_listen_clear(path, false, &why), 0);
    ok(!is_there());
    ok_eq(oribi_listen_clear(path, false, &why), 0); /* nothing is there */
}

static void test_a_successor_replaces_a_file_that_answers(void)
{
    struct oribi_socket_file file;
    int fd = open_here(&file);
    ok_eq(oribi_listen_clear(path, true, &why), 0);
    ok(!is_there());
    oribi_os_close(fd);
}

static void test_a_file_that_comes_between_the_look_and_the_removal_stays(void)
{
    struct oribi_socket_file file;
    oribi_os_close(open_here(&file)); /* stale */
    is_replaced_meanwhile = true;
    ok_eq(oribi_listen_clear(path, false, &why), 0);
    is_replaced_meanwhile = false;
    ok_eq(oribi_os_unix_answers(path), 1);
    oribi_listen_unlink(path, &others);
    oribi_os_close(others_fd);
    others_fd = -1;
}

static void test_a_file_that_is_no_socket_stays(void)
{
    struct oribi_socket_file file;
    FILE *other = fopen(path, "w");
    ok(other && fclose(other) == 0);
    ok_eq(oribi_listen_clear(path, false, &why), ORIBI_EINVAL);
    is_str(why, "there is a file that is not a socket");
    ok_eq(oribi_listen_clear(path, true, &why), ORIBI_EINVAL);
    ok(open_here(&file) < 0); /* and none is opened over it */
    ok(unlink(path) == 0);
}

enum { NOBODY = 65534, SOMEBODY = 12345 };

/* User and group of the file, as text. */
static const char *owner_of(const char *name)
{
    static char text[64];
    struct stat entry;
    if (lstat(name, &entry) < 0)
        return "gone";
    (void)snprintf(text, sizeof(text), "%d:%d", (int)entry.st_uid, (int)entry.st_gid);
    return text;
}

static const struct oribi_socket_owner *owner_named(const char *user, const char *group)
{
    static struct oribi_socket_owner owner;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    ok_named(oribi_listen_owner(user, group, &owner, error) == 0, "an owner is found %s", error);
    return &owner;
}

static void is_given(const char *user, const char *group, const char *owner)
{
    struct oribi_socket_file file;
    int fd = oribi_listen_unix(path, 07, owner_named(user, group), 4, &file);
    struct stat entry;
    ok(fd >= 0 && stat(path, &entry) == 0 && (entry.st_mode & 0777) == 0770);
    ok_named(strcmp(owner_of(path), owner) == 0, "%s:%s has %s", user ? user : "", group ? group : "", owner_of(path));
    ok_eq(oribi_os_unix_answers(path), 1);
    oribi_listen_unlink(path, &file);
    ok(!is_there());
    oribi_os_close(fd);
}

static void test_a_socket_file_is_the_users_and_groups(void)
{
    is_given(NULL, NULL, "0:0");
    is_given("65534", NULL, "65534:65534");
    is_given("65534", "12345", "65534:12345");
    is_given("0", "12345", "0:12345");
}

/* How a folder gives its sockets to a group without an option. */
static void test_a_folders_group_stays_unless_a_group_is_named(void)
{
    ok(chown(dir, 0, SOMEBODY) == 0 && chmod(dir, 02755) == 0);
    is_given("65534", NULL, "65534:12345");
    is_given("65534", "65534", "65534:65534");
    ok(chmod(dir, 0700) == 0 && chown(dir, 0, 0) == 0);
}

static void test_a_user_that_is_not_there_is_refused(void)
{
    struct oribi_socket_owner owner;
    char error[ORIBI_ERROR_TEXT_CAP] = "";
    ok_eq(oribi_listen_owner("no-such-user", NULL, &owner, error), ORIBI_EINVAL);
    is_str(error, "user: there is no user 'no-such-user'");
}

static int give_here(const struct oribi_socket_file *file)
{
    return oribi_os_give_socket_file(path, file->device, file->inode, NOBODY, NOBODY);
}

/* The owner of the folder can put these there between bind(2) and chown(2). */
static void test_what_came_into_its_place_is_not_given_away(void)
{
    struct oribi_socket_file file;
    static const char words[] = "another file has come into its place";
    int fd = open_here(&file);
    replace_by_other();
    ok_eq(give_here(&file), ORIBI_ESYS);
    is_str(oribi_os_error_text(), words);
    is_str(owner_of(path), "0:0");

    ok(link(path, "second") == 0); /* a socket of another folder, say */
    ok_eq(give_here(&others), ORIBI_ESYS);
    is_str(oribi_os_error_text(), words);
    ok(unlink("second") == 0 && chown(path, SOMEBODY, SOMEBODY) == 0);
    ok_eq(give_here(&others), ORIBI_ESYS);
    is_str(owner_of(path), "12345:12345");

    ok(rename(path, "aside") == 0 && symlink("aside", path) == 0);
    ok_eq(give_here(&others), ORIBI_ESYS);
    is_str(oribi_os_error_text(), words);
    is_str(owner_of("aside"), "12345:12345");
    is_str(owner_of(path), "0:0");
    ok(unlink(path) == 0 && unlink("aside") == 0);
    ok(give_here(&others) < 0);
    oribi_os_close(fd);
    oribi_os_close(others_fd);
    others_fd = -1;
}

static void test_owners(void)
{
    if (geteuid() != 0) {
        diag("skipped, not root: the owners of socket files");
        return;
    }
    test_a_socket_file_is_the_users_and_groups();
    test_a_folders_group_stays_unless_a_group_is_named();
    test_a_user_that_is_not_there_is_refused();
    test_what_came_into_its_place_is_not_given_away();
}

static void test_a_port_in_the_place_of_the_addresss(void)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(9)};
    socklen_t n = sizeof(where);
    int fd = oribi_listen_tcp((struct sockaddr *)&where, n, 0, 0, 4);
    ok(fd >= 0 && getsockname(fd, (struct sockaddr *)&where, &n) == 0);
    ok(ntohs(where.sin_port) > 1023);
    ok_eq(oribi_listen_tcp((struct sockaddr *)&where, n, ntohs(where.sin_port), 0, 4), ORIBI_ESYS); /* taken */
    ok(!oribi_os_forbidden() && !oribi_os_address_missing());
    oribi_os_close(fd);
}

int main(void)
{
    if (!mkdtemp(dir) || chdir(dir) < 0)
        return 1;
    (void)snprintf(path, sizeof(path), "%s/s", dir);
    test_a_socket_file_is_its_owners_and_goes_with_its_socket();
    test_another_servers_file_under_the_name_stays();
    test_only_a_stale_file_makes_way();
    test_a_successor_replaces_a_file_that_answers();
    test_a_file_that_comes_between_the_look_and_the_removal_stays();
    test_a_file_that_is_no_socket_stays();
    test_a_port_in_the_place_of_the_addresss();
    test_owners();
    (void)rmdir(dir);
    return done_testing();
}
