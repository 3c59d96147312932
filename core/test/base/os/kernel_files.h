/* Files as the kernel shows them, in a folder that stands before their names. */
#ifndef ORIBI_TEST_BASE_OS_KERNEL_FILES_H
#define ORIBI_TEST_BASE_OS_KERNEL_FILES_H

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/oribi-kernel-XXXXXX";

/* Writes the file, with the folders on its way, below root, which mkdtemp() has made. */
static void put_file(const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *p = full + strlen(root) + 1; *p; p++) {
        if (*p == '/') {
            *p = '\0';
            mkdir(full, 0755);
            *p = '/';
        }
    }
    FILE *file = fopen(full, "w");
    fputs(text, file);
    fclose(file);
}

#endif
