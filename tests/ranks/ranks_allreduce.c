/*
 * ranks_allreduce PART: the public all-reduce in an MPI program of one's own, at the lowest thread level. Rank 0 prints
 * "ok"; t6300-allreduce.sh runs it.
 *
 *   many      calls of different sizes, other traffic of the program between them, arrays that do not fit one message
 *   split     two halves of the ranks sum different things at the same time, then all together
 *   memory    rank 1 has not enough memory: all ranks get an error at once, and the next sum is right
 *   absent    the last rank does not make the object: the others are told within the timeout
 *   silent    the last rank makes it, and then does not take part
 *   before    before MPI_Init()
 *   null      a handle that is no communicator
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <lockstep/exchange.h>

#ifdef LS_HAVE_MPI
#include <mpi.h>

static int rank, ranks;

static int fail(const char *what)
{
	fprintf(stderr, "rank %d: %s: %s\n", rank, what, ls_last_error());
	return 5;
}

static ls_status make(ls_allreduce **out, MPI_Comm comm, double timeout)
{
	ls_allreduce_options options = LS_ALLREDUCE_OPTIONS_INIT;
	options.communicator = (int)MPI_Comm_c2f(comm);
	options.timeout = timeout;
	return ls_allreduce_new(out, &options);
}

/* Small whole numbers: any order has the right sum. */
static float value(int64_t i, size_t k, int round)
{
	return (float)((i * 7 + (int64_t)k * 3 + round) % 97);
}

/* The sum of `contributions` arrays, dealt in turns; 0: it is right. */
static int sum(ls_allreduce *reduce, int64_t contributions, size_t floats, int round)
{
	int me = ls_allreduce_rank(reduce), all = ls_allreduce_ranks(reduce), wrong = 0;
	float *values = malloc((size_t)contributions * (floats + 1) * sizeof(float)),
	      *out = malloc((floats + 1) * sizeof(float));
	ls_contribution *mine = malloc((size_t)contributions * sizeof(*mine));
	int64_t count = 0;

	for (int64_t i = 0; i < contributions; i++) {
		float *at = values + (size_t)i * floats;
		if (i % all != (me + round) % all)
			continue;
		for (size_t k = 0; k < floats; k++)
			at[k] = value(i, k, round);
		mine[count++] = (ls_contribution){ .index = i, .values = at };
	}
	if (ls_allreduce_sum(reduce, mine, count, contributions, out, floats) != LS_OK)
		wrong = fail("the sum");
	for (size_t k = 0; k < floats && !wrong; k += 1 + floats / 1000) {
		float expected = 0;
		for (int64_t i = 0; i < contributions; i++)
			expected += value(i, k, round);
		wrong = out[k] != expected;
	}
	free(mine);
	free(out);
	free(values);
	return wrong;
}

static int many(void)
{
	ls_allreduce *reduce = NULL;
	int wrong = 0, token = rank;
	if (make(&reduce, MPI_COMM_WORLD, 30) != LS_OK)
		return fail("new");
	for (int round = 0; round < 40 && !wrong; round++) {
		wrong = sum(reduce, 1 + round * 5 % 23, (size_t)(round * 37 % 400), round);
		MPI_Bcast(&token, 1, MPI_INT, round % ranks, MPI_COMM_WORLD);
	}
	wrong = wrong || sum(reduce, ranks, 1000003, 1);
	ls_allreduce_free(reduce);
	return wrong;
}

static int split(void)
{
	ls_allreduce *halves = NULL, *all = NULL;
	MPI_Comm half;
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
	if (make(&halves, half, 30) != LS_OK || make(&all, MPI_COMM_WORLD, 30) != LS_OK)
		return fail("new");
	MPI_Comm_free(&half); /* the object has its own */
	int wrong =
		sum(halves, 3 + rank % 2, 100 + (size_t)(rank % 2), 0) || sum(all, 11, 50, 1) || sum(halves, 5, 70, 2);
	ls_allreduce_free(halves);
	ls_allreduce_free(all);
	return wrong;
}

/* Address space that this process may take from now on; 0: as much as before. */
static void limit_memory(size_t bytes)
{
	static struct rlimit before;
	long pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");
	struct rlimit limit;

	if (statm && fscanf(statm, "%ld", &pages) == 1 && bytes > 0) {
		getrlimit(RLIMIT_AS, &before);
		limit = before;
		limit.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + bytes;
		setrlimit(RLIMIT_AS, &limit);
	} else if (bytes == 0) {
		setrlimit(RLIMIT_AS, &before);
	}
	if (statm)
		fclose(statm);
}

/* Arrays of 256 MB that nobody touches, because the sum fails before. */
static int memory(void)
{
	size_t floats = (size_t)64 << 20;
	ls_allreduce *reduce = NULL;
	float *values = calloc(floats, sizeof(*values)), *out = calloc(floats, sizeof(*out));
	ls_contribution mine = { rank, values };

	if (!values || !out || make(&reduce, MPI_COMM_WORLD, 60) != LS_OK)
		return fail("new");
	int wrong = sum(reduce, 5, 100, 0);
	if (rank == 1)
		limit_memory((size_t)64 << 20);
	ls_status status = ls_allreduce_sum(reduce, &mine, 1, ranks, out, floats);
	fprintf(stderr, "rank %d: %s\n", rank, status == LS_OK ? "the sum went well" : ls_last_error());
	wrong |= status != LS_EMEMORY;
	if (rank == 1)
		limit_memory(0);
	wrong |= sum(reduce, 5, 100, 1) | sum(reduce, 7, 5000, 2);
	ls_allreduce_free(reduce);
	free(values);
	free(out);
	return wrong;
}

/* Whether a failure came after about a second, and is that of a rank that is gone. */
static int is_peer(ls_status status, const struct timespec *began)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	double seconds = (double)(now.tv_sec - began->tv_sec) + (double)(now.tv_nsec - began->tv_nsec) * 1e-9;
	if (status == LS_EPEER && seconds > 0.9 && seconds < 20)
		return 1;
	fprintf(stderr, "rank %d: status %s after %.1f s\n", rank, ls_status_name(status), seconds);
	return 0;
}

static int missing(int makes)
{
	struct timespec began, rest = { .tv_sec = 4 };
	ls_allreduce *reduce = NULL;
	float x = 1;
	ls_contribution mine = { rank, &x };
	int right = 1;

	clock_gettime(CLOCK_MONOTONIC, &began);
	int is_last = rank == ranks - 1;
	ls_status status = !is_last || makes ? make(&reduce, MPI_COMM_WORLD, 1) : LS_OK;
	if (makes && status == LS_OK && !is_last)
		status = ls_allreduce_sum(reduce, &mine, 1, ranks, &x, 1);
	if (!is_last) {
		right = is_peer(status, &began);
		fprintf(stderr, "%s\n", ls_last_error());
	}
	nanosleep(&rest, NULL);
	if (rank == 0)
		puts(right ? "ok" : "wrong");
	fflush(stdout);
	nanosleep(&rest, NULL);
	MPI_Abort(MPI_COMM_WORLD, 9);
	return 9;
}

static int refuse(const char *part)
{
	ls_allreduce *reduce = NULL;
	ls_allreduce_options options = LS_ALLREDUCE_OPTIONS_INIT;
	if (!strcmp(part, "null"))
		options.communicator = (int)MPI_Comm_c2f(MPI_COMM_NULL);
	return ls_allreduce_new(&reduce, &options) == LS_OK ? 0 : fail(part);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "before"))
		return refuse(argv[1]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int wrong = !strcmp(argv[1], "many")     ? many()
		    : !strcmp(argv[1], "split")  ? split()
		    : !strcmp(argv[1], "memory") ? memory()
		    : !strcmp(argv[1], "absent") ? missing(0)
		    : !strcmp(argv[1], "silent") ? missing(1)
						 : refuse(argv[1]);
	if (rank == 0 && !wrong)
		puts("ok");
	MPI_Finalize();
	return wrong;
}
#else
int main(void)
{
	fputs("this build has no MPI\n", stderr);
	return 4;
}
#endif
