/* macOS has another name for it. */
#include <malloc/malloc.h>
#define malloc_usable_size malloc_size
