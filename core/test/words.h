/* The C library's words for an errno value, as a log line has them: they differ between glibc and musl. */
#ifndef ORIBI_TEST_WORDS_H
#define ORIBI_TEST_WORDS_H

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Valid until the next call. */
__attribute__((unused)) static const char *words_of(int number)
{
    static char text[128];
    (void)snprintf(text, sizeof(text), "%s", strerror(number));
    text[0] = (char)tolower((unsigned char)text[0]);
    return text;
}

#endif
