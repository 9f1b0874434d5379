#include "base/handles.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { LISTS = 256 };

typedef struct handle {
	const void *object;
	const char *kind;
	struct handle *next;
} handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists */
static handle *lists[LISTS];

/* Objects lie 16 bytes apart or more. */
static handle **list_of(const void *object)
{
	return &lists[((uintptr_t)object >> 4) % LISTS];
}

/* The pointer to it; to the NULL at the end of its list where it is not there. */
static handle **find(const void *object, const char *kind)
{
	handle **at = list_of(object);
	while (*at && !((*at)->object == object && strcmp((*at)->kind, kind) == 0))
		at = &(*at)->next;
	return at;
}

ls_status ls_handle_add(const void *object, const char *kind)
{
	handle *h = malloc(sizeof(*h));

	if (!h)
		return ls_fail(LS_EMEMORY, "no memory for a %s", kind);
	pthread_mutex_lock(&lock);
	*h = (handle){ .object = object, .kind = kind, .next = *list_of(object) };
	*list_of(object) = h;
	pthread_mutex_unlock(&lock);
	return LS_OK;
}

int ls_handle_remove(const void *object, const char *kind)
{
	pthread_mutex_lock(&lock);
	handle **at = find(object, kind), *h = *at;
	if (h)
		*at = h->next;
	pthread_mutex_unlock(&lock);
	free(h);
	return h != NULL;
}

ls_status ls_handle_check(const void *object, const char *kind)
{
	if (!object)
		return ls_fail(LS_EINVALID, "the %s is NULL", kind);
	pthread_mutex_lock(&lock);
	int is_alive = *find(object, kind) != NULL;
	pthread_mutex_unlock(&lock);
	return is_alive ? LS_OK : ls_fail(LS_EINVALID, "the %s was freed, or never made", kind);
}

ls_status ls_argument_check(const void *argument, const char *name)
{
	return argument ? LS_OK : ls_fail(LS_EINVALID, "`%s` is NULL", name);
}
