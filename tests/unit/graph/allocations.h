/*
 * allocations.h - a program that includes this counts what it, the modules it is linked with and libxsmm allocate or
 * map. Once a program: it defines malloc.
 */
#ifndef LS_TESTS_ALLOCATIONS_H
#define LS_TESTS_ALLOCATIONS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define OWN_MALLOC 0
#endif
#endif
#ifndef OWN_MALLOC
#define OWN_MALLOC 1
#endif

__attribute__((unused)) static atomic_long allocations;

#if OWN_MALLOC
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_realloc(old, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	*out = __libc_memalign(alignment, bytes);
	return !*out;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	atomic_fetch_add(&allocations, 1);
	return __libc_memalign(alignment, bytes);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
	atomic_fetch_add(&allocations, 1);
	return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}
#endif

#endif
