/* Edit distance with neighbours swapped (optimal string alignment). Three rows of the table are enough: a swap looks
 * two rows back.
 *
 *            b →
 *      before  ...
 *   a  above   . x .      current[j] = least of above[j] + 1, current[j-1] + 1, above[j-1] + differs,
 *                                     before[j-2] + 1 when swapped
 *   ↓  current . . ?
 */
#include "oribi/config/options_names.h"

#include <stddef.h>
#include <string.h>

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t oribi_suggest_distance(const char *a, const char *b)
{
    uint32_t rows[3][ORIBI_SUGGEST_WORD_MAX + 1];
    size_t a_len = strlen(a);
    size_t b_len = strlen(b);
    if (a_len > ORIBI_SUGGEST_WORD_MAX || b_len > ORIBI_SUGGEST_WORD_MAX)
        return UINT32_MAX;

    for (uint32_t j = 0; j <= b_len; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        uint32_t *current = rows[i % 3];
        const uint32_t *above = rows[(i + 2) % 3];
        const uint32_t *before = rows[(i + 1) % 3];
        current[0] = (uint32_t)i;
        for (size_t j = 1; j <= b_len; j++) {
            uint32_t differs = a[i - 1] != b[j - 1];
            current[j] = least(least(above[j], current[j - 1]) + 1, above[j - 1] + differs);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                current[j] = least(current[j], before[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

/* A third of the word may be wrong, at least one character and at most four: beyond that the guess would be noise. */
bool oribi_suggest_likely(const char *typed, uint32_t distance)
{
    size_t allowed = strlen(typed) / 3;
    if (allowed < 1)
        allowed = 1;
    if (allowed > 4)
        allowed = 4;
    return distance <= allowed;
}
