/* The line for a person whose setting is refused (options_value.c). */
#ifndef ORIBI_CONFIG_REFUSE_H
#define ORIBI_CONFIG_REFUSE_H

/* Fills `error` (ORIBI_ERROR_TEXT_CAP, cut where a user's text is long) and returns ORIBI_EINVAL. For everything
 * that configures. */
__attribute__((format(printf, 2, 3))) int oribi__refuse(char *error, const char *format, ...);

#endif
