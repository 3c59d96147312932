/* Texts about certificates by ACME: a line of the option, and words of a client that has failed. The first byte
 * chooses. A line that is read holds host names alone, is read again from its own names with the same result, and its
 * first name stays in its folder; a reason is one line of printable ASCII within its bound. */
#include "frontend/acme.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_line(const char *text)
{
    static struct oribi_acme_line line;
    static struct oribi_acme_line again;
    static char joined[ORIBI_ACME_TEXT_MAX + 16 + ORIBI_ACME_MAIL_MAX];
    char error[ORIBI_ERROR_TEXT_CAP];
    char path[512];
    size_t n = 0;
    if (oribi_acme_read(text, &line, error) < 0) {
        assert(error[0] && strlen(error) < ORIBI_ERROR_TEXT_CAP);
        return;
    }
    assert(line.count > 0 && line.count <= ORIBI_ACME_NAMES_MAX);
    for (uint32_t i = 0; i < line.count; i++) {
        assert(strlen(line.names[i]) <= ORIBI_ACME_NAME_MAX);
        assert(strspn(line.names[i], "abcdefghijklmnopqrstuvwxyz0123456789-.") == strlen(line.names[i]));
        assert(line.names[i][0] != '.' && !strstr(line.names[i], ".."));
        n += (size_t)snprintf(joined + n, sizeof(joined) - n, "%s%s", i ? "," : "", line.names[i]);
    }
    assert(oribi_acme_read(joined, &again, error) == 0 && again.count == line.count);
    assert(oribi_acme_seed(&again) == oribi_acme_seed(&line));
    if (oribi_acme_file("/d", &line, path, sizeof(path)))
        assert(strrchr(path, '/') == path + 2);
}

static void check_words(const char *p, size_t n)
{
    char reason[ORIBI_ACME_REASON_MAX + 1];
    oribi__acme_client_words((struct oribi_slice){p, n}, reason);
    assert(strlen(reason) <= ORIBI_ACME_REASON_MAX && reason[0]);
    for (const char *at = reason; *at; at++)
        assert(*at >= ' ' && *at <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size); /* ends where a read beyond it is seen */
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 2)
        check_words(text, size - 1);
    else
        check_line(text);
    free(text);
    return 0;
}
