/* Events as text, for comparison. */
#ifndef ORIBI_REDIS_TEST_TOLD_H
#define ORIBI_REDIS_TEST_TOLD_H

#include "oribi/redis/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A reply as text: the notation of spec/redis. */
struct told {
    char text[8192];
    size_t n;
};

__attribute__((format(printf, 2, 3), unused)) static void say(struct told *told, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(told->text + told->n, sizeof(told->text) - told->n, format, arguments);
    va_end(arguments);
    if (n > 0 && told->n + (size_t)n < sizeof(told->text))
        told->n += (size_t)n;
}

__attribute__((unused)) static void say_text(struct told *told, const char *what, struct oribi_slice text)
{
    if (text.n > 40)
        say(told, "%s%.*s...%zu", what, 8, text.p, text.n);
    else
        say(told, "%s%.*s", what, (int)text.n, text.p);
}

__attribute__((unused)) static void tell(struct told *told, const struct oribi_redis_event *event)
{
    static const char *const WORDS[] = {"null", "bool ",  "int ",    "double ", "big ", "status ", "string ",
                                        "",     "error ", "string ", "array ",  "set ", "map ",    "push "};
    if (told->n)
        say(told, ", ");
    switch (event->kind) {
    case ORIBI_REDIS_NULL:
        say(told, "null");
        break;
    case ORIBI_REDIS_BOOLEAN:
    case ORIBI_REDIS_INTEGER:
        say(told, "%s%lld", WORDS[event->kind], (long long)event->integer);
        break;
    case ORIBI_REDIS_ARRAY:
    case ORIBI_REDIS_SET:
    case ORIBI_REDIS_MAP:
    case ORIBI_REDIS_PUSH:
        say(told, "%s%llu", WORDS[event->kind], (unsigned long long)event->count);
        break;
    case ORIBI_REDIS_VERBATIM:
        say(told, "%s:", event->format);
        say_text(told, "", event->text);
        break;
    default:
        say_text(told, WORDS[event->kind], event->text);
    }
    if (event->ends)
        say(told, ".");
}

#endif
