/*
 * sweep.h - many measurements, one after another, each saved when it is done: a published table from one call.
 *
 *     ls_sweep_options options = LS_SWEEP_OPTIONS_INIT;
 *     ls_sweep_result result = { 0 };
 *     options.recipe = "oneflow-bert";
 *     options.quick = 1;
 *     if (ls_sweep(&options, &result) == LS_OK)
 *             printf("%zu points, in %s\n", result.row_count, result.path);
 *     ls_sweep_result_release(&result);
 *
 * A sweep is a list of points, from a recipe or from lists that are multiplied out. Each point is measured by this
 * program itself, started as a process of its own (`lockstep bench` or `lockstep train`). Without hosts, several nodes
 * are emulated on this machine with network namespaces (tools/lab). results.json in the output directory holds all
 * points and is written again after each: the same call continues a sweep that was stopped or killed.
 *
 * With more devices than cores, the compute time of a bench is simulated from a profile of one device (see bench.h),
 * and its row says so; communication is real. Training cannot be simulated: such points are skipped.
 */
#ifndef LOCKSTEP_SWEEP_H
#define LOCKSTEP_SWEEP_H

#include <stddef.h>
#include <stdint.h>

#include <lockstep/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Lists are written "1,2,4". With a recipe they choose among its points; without one they are multiplied out. */
typedef struct ls_sweep_options {
	size_t size;        /* set by LS_SWEEP_OPTIONS_INIT */
	const char *recipe; /* one of ls_recipe_at(), or a file; NULL: the lists */
	int quick;          /* the recipe's short form, for two cores and two minutes; of lists, fewer steps */
	int full;           /* the recipe's full form, with the settings of the published runs; not with quick */
	int again;          /* also measure points that are done */
	const char *out;    /* directory; NULL: runs/bench-NAME, followed by -quick or -full */
	const char *model, *data, *nodes, *batch, *strategy, *wire, *rate, *threads, *servers;
	const char *optimizer;         /* one; NULL: the recipe's, else adam */
	const char *epoch;             /* of training in a recipe: "data", every sample once over all devices, or
					* "worker", every device reads all data; NULL: the recipe's, else data */
	const char *devices;           /* per node: "4", or for each node: "3+2" */
	const char *hosts;             /* "lm1,lm6": real hosts; NULL: nodes are emulated */
	const char *arguments;         /* other options of the commands, as typed; may be NULL */
	int64_t warmup, steps, repeat; /* below 0: the recipe's, else 20, 100 and 7, quick 5, 20 and 3 */
	int64_t launches;   /* processes that measure each point, one after another; below 1: the recipe's, else 1. With
			   * several, repeat is 3 by default, and a launch on a busy machine is repeated once */
	double to_accuracy; /* train to this test accuracy instead, once per seed; 0: measure throughput */
	int64_t seeds;      /* to_accuracy: seeds 1, 2, ..., each a launch; below 1: 5 */
	int64_t epochs;     /* to_accuracy: the most that a seed trains; below 1: 20 */
	int64_t samples;    /* to_accuracy: size of the training set; below 1: all of it */
	const char *program;   /* path of lockstep; NULL: this program */
	const char *precision; /* list; of a recipe's points one name in place of theirs; NULL: theirs, else fp32 */
} ls_sweep_options;
#define LS_SWEEP_OPTIONS_INIT                                                                                          \
	{                                                                                                              \
		.size = sizeof(ls_sweep_options), .warmup = -1, .steps = -1, .repeat = -1                              \
	}

/* Summary of a point; results.json has all figures. */
typedef struct ls_sweep_row {
	char key[256], kind[16], model[64], shape[64], strategy[16], wire[16], rate[32];
	int64_t nodes, devices, servers, batch;
	int replay;
	const char *state; /* "done", "skipped", "failed" or "pending" */
	char reason[256];
	double samples_per_s, samples_per_s_min, samples_per_s_max; /* median, minimum and maximum of the repeats */
	int64_t launches, launches_failed, launches_busy; /* that were made; of these: failed, on a busy machine */
	double spread_within, spread_between; /* (maximum - minimum) / median of repeats in a launch, and of launches */
	double speedup;                       /* over one device with the same model, data and batch; 0: not measured */
	char precision[16];                   /* "fp32", "bf16" or "bf16-amx" */
	uint64_t reserved[6];                 /* 0 */
} ls_sweep_row;

typedef struct ls_sweep_result {
	char path[4096]; /* of results.json */
	size_t row_count;
	ls_sweep_row *rows;
	size_t done, skipped, failed; /* points */
	uint64_t reserved[8];         /* 0 */
} ls_sweep_result;

/*
 * Measure all points that are not done. Prints one line per point on stderr, and on a terminal a progress line with the
 * time left. LS_EINTERRUPTED: after ls_sweep_stop(); finished points are kept. A point that fails does not fail the
 * sweep: its row has the reason. With LS_OK and LS_EINTERRUPTED the result is set, otherwise it is not.
 */
LS_API ls_status ls_sweep(const ls_sweep_options *options, ls_sweep_result *result);

/* The points that ls_sweep() would measure, all pending. */
LS_API ls_status ls_sweep_points(const ls_sweep_options *options, ls_sweep_result *result);
LS_API void ls_sweep_result_release(ls_sweep_result *result);

/* End the running measurement and then the sweep. Safe in a signal handler. */
LS_API void ls_sweep_stop(void);

/* The built-in recipes; NULL past the end. `text` is the contents of the file. */
typedef struct ls_recipe {
	const char *name, *text;
	size_t bytes;
} ls_recipe;
LS_API const ls_recipe *ls_recipe_at(size_t i);

/* The title of a recipe, and where its table was published. */
LS_API ls_status ls_recipe_title(const ls_recipe *recipe, char *title, size_t title_size, char *source,
				 size_t source_size);

/* Whether a recipe has a short and a full form besides the default one, whose points fit two cores and an hour. */
LS_API ls_status ls_recipe_forms(const ls_recipe *recipe, int *quick, int *full);

#ifdef __cplusplus
}
#endif
#endif
