/* A tree of files in a temporary folder of this process, and the ways to change it. */
#ifndef ORIBI_TEST_FILES_TREE_H
#define ORIBI_TEST_FILES_TREE_H

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char tree_dir_[PATH_MAX];

/* Asserts that hold in every build: the tree is what the test says, or there is no test. */
#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            perror("tree: " #condition);                                                                               \
            exit(2);                                                                                                   \
        }                                                                                                              \
    } while (0)

__attribute__((unused)) static void tree_begin(void)
{
    char dir[64] = "/tmp/oribi-files-XXXXXX";
    must(mkdtemp(dir) && realpath(dir, tree_dir_) && chmod(tree_dir_, 0755) == 0);
}

__attribute__((unused)) static void tree_end(void)
{
    char command[128];
    (void)snprintf(command, sizeof(command), "rm -rf %.100s", tree_dir_);
    must(system(command) == 0);
}

/* The absolute path of a name in the tree; one of eight that take turns. */
__attribute__((unused)) static const char *at(const char *name)
{
    static char paths[8][2 * PATH_MAX];
    static int turn;
    turn = (turn + 1) % 8;
    (void)snprintf(paths[turn], sizeof(paths[turn]), "%s/%s", tree_dir_, name);
    return paths[turn];
}

__attribute__((unused)) static void make_folder(const char *name)
{
    must(mkdir(at(name), 0755) == 0);
}

__attribute__((unused)) static void make_bytes(const char *name, const void *p, size_t n)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    must(fd >= 0 && write(fd, p, n) == (ssize_t)n && close(fd) == 0);
}

__attribute__((unused)) static void make_file(const char *name, const char *text)
{
    make_bytes(name, text, strlen(text));
}

/* The link's text as it is. */
__attribute__((unused)) static void make_link(const char *text, const char *name)
{
    must(symlink(text, at(name)) == 0);
}

/* As deployments do it: a new link under another name, renamed over the old one. */
__attribute__((unused)) static void change_link(const char *text, const char *name)
{
    must(symlink(text, at("link.new")) == 0 && rename(at("link.new"), at(name)) == 0);
}

__attribute__((unused)) static void replace_file(const char *name, const char *text)
{
    make_file("file.new", text);
    must(rename(at("file.new"), at(name)) == 0);
}

/* Puts the time of the last change `seconds` before now; whole seconds, so that two calls give the same. */
__attribute__((unused)) static void age_file(const char *name, int64_t wall_s, int64_t seconds)
{
    struct timespec times[2] = {{.tv_sec = wall_s - seconds}, {.tv_sec = wall_s - seconds}};
    must(utimensat(AT_FDCWD, at(name), times, 0) == 0);
}

__attribute__((unused)) static void remove_name(const char *name)
{
    must(unlink(at(name)) == 0);
}

__attribute__((unused)) static uint64_t inode_of(const char *name)
{
    struct stat file;
    must(stat(at(name), &file) == 0);
    return (uint64_t)file.st_ino;
}

/* Descriptors that this process has open, for seeing that none was left behind. */
__attribute__((unused)) static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

#endif
