/*
 * cmd_bench.c - lockstep bench: measure training speed on data in memory, on this machine, under a launcher, or on
 * hosts; with a recipe or lists of values, run a sweep of such measurements.
 *
 * Options that accept a list are parsed as text; their rows parse the text once it is known that each has one value.
 */
#include <stdio.h>
#include <string.h>

#include <lockstep/bench.h>
#include <lockstep/launch.h>

#include "args.h"
#include "bench_faults.h"
#include "bench_print.h"
#include "bench_sweep.h"
#include "command.h"
#include "on_hosts.h"

/* Options parsed as text. */
static const char *const texts[] = { "model",     "data",     "batch-per-device", "devices", "threads",
				     "optimizer", "strategy", "servers",          "wire",    "warmup",
				     "steps",     "repeat",   "precision" };
#define TEXTS (sizeof(texts) / sizeof(texts[0]))
enum { MODEL, DATA, BATCH, DEVICES, THREADS, OPTIMIZER, STRATEGY, SERVERS, WIRE, WARMUP, STEPS, REPEAT, PRECISION };

/* The library's options, with whole numbers as rows hold them. */
typedef struct bench_options {
	ls_bench_options bench;
	int64_t channels, size, classes;
	int json;
	const char *text[TEXTS], *nodes, *rate, *out, *epoch, *fault_every;
	int64_t launches, seeds, epochs, samples; /* 0: not given */
	double to_accuracy;
	int quick, full, again, list;
} bench_options;

#define BENCH(member) offsetof(bench_options, bench) + offsetof(ls_bench_options, member)
#define OWN(member) offsetof(bench_options, member)

/* In the order of help. Rows with only a name are those of lockstep train. */
static const ls_setting rows[] = {
	{ .name = "model" },
	{ "channels", 0, "N", "Model and data", "image channels", LS_SETTING_INT, OWN(channels), 1, 4096, 0 },
	{ "image-size", 0, "N", "Model and data", "image height and width in pixels", LS_SETTING_INT, OWN(size), 1,
	  4096, 0 },
	{ "classes", 0, "N", "Model and data", "number of classes", LS_SETTING_INT, OWN(classes), 1, 1000000, 0 },
	{ "data", 'd', "NAME", "Model and data", "text: train on this dataset", LS_SETTING_STRING, BENCH(data), 0, 0,
	  LS_SETTING_COMMON },
	{ .name = "data-dir" },
	{ .name = "test-samples" },
	{ .name = "dropout" },
	{ .name = "vocab" },
	{ .name = "seq-len" },
	{ .name = "layers" },
	{ .name = "width" },
	{ .name = "heads" },
	{ .name = "ffn" },
	{ .name = "max-len" },
	{ .name = "cased" },
	{ .name = "phrases" },
	{ .name = "batch" },
	{ .name = "micro-batch" },
	{ .name = "batch-per-device" },
	{ .name = "optimizer" },
	{ .name = "lr" },
	{ .name = "momentum" },
	{ .name = "nesterov" },
	{ .name = "beta1" },
	{ .name = "beta2" },
	{ .name = "epsilon" },
	{ .name = "weight-decay" },
	{ .name = "clip-norm" },
	{ .name = "seed" },
	{ .name = "devices" },
	{ .name = "threads" },
	{ .name = "precision" },
	{ .name = "conv" },
	{ .name = "pin" },
	{ .name = "hosts" },
	{ .name = "strategy" },
	{ .name = "servers" },
	{ .name = "staleness" },
	{ .name = "wire" },
	{ .name = "share" },
	{ .name = "bucket-bytes" },
	{ .name = "timeout" },
	{ "warmup", 0, "N", "Measurement", "steps of warm-up per repeat (default 3, in a sweep 20)", LS_SETTING_INT,
	  BENCH(warmup), 0, 1e9, LS_SETTING_COMMON },
	{ "steps", 0, "N", "Measurement", "timed steps per repeat (default 10, in a sweep 100)", LS_SETTING_INT,
	  BENCH(steps), 1, 1e9, LS_SETTING_COMMON },
	{ "repeat", 0, "N", "Measurement", "repeats; the median is reported (default 5, in a sweep 7)", LS_SETTING_INT,
	  BENCH(repeat), 1, 1e6, LS_SETTING_COMMON },
	{ "profile", 0, NULL, "Measurement", "also time every layer", LS_SETTING_FLAG, BENCH(profile), 0, 1,
	  LS_SETTING_COMMON },
	{ "json", 0, NULL, "Measurement", "print one JSON object", LS_SETTING_FLAG, OWN(json), 0, 1,
	  LS_SETTING_COMMON },
	{ "fault-every", 0, "TIME", "Measurement", "kill a node every TIME on average, as 30s; measure what is lost",
	  LS_SETTING_STRING, OWN(fault_every), 0, 0, LS_SETTING_COMMON },
	{ "nodes", 0, "N,...", "Sweep", "numbers of nodes, emulated on this machine (needs root)", LS_SETTING_STRING,
	  OWN(nodes), 0, 0, LS_SETTING_COMMON },
	{ "rate", 0, "R,...", "Sweep", "link rates of emulated nodes: 100mbit,1gbit", LS_SETTING_STRING, OWN(rate), 0,
	  0, LS_SETTING_COMMON },
	{ "epoch", 0, "WHAT", "Sweep", "epoch of a recipe: data, or worker (each reads all data)", LS_SETTING_STRING,
	  OWN(epoch), 0, 0, 0 },
	{ "launches", 0, "N", "Sweep", "measure each point in N processes, one by one", LS_SETTING_INT, OWN(launches),
	  0, 1e6, LS_SETTING_COMMON | LS_SETTING_NOT_0 },
	{ "to-accuracy", 0, "X", "Sweep", "time training to this test accuracy, seed by seed", LS_SETTING_REAL,
	  OWN(to_accuracy), 0, 1, LS_SETTING_COMMON | LS_SETTING_NOT_0 },
	{ "seeds", 0, "N", "Sweep", "--to-accuracy: train N seeds (default 5)", LS_SETTING_INT, OWN(seeds), 0, 1e6,
	  LS_SETTING_NOT_0 },
	{ "epochs", 0, "N", "Sweep", "--to-accuracy: train at most N epochs (default 20)", LS_SETTING_INT, OWN(epochs),
	  0, 1e9, LS_SETTING_NOT_0 },
	{ "samples", 0, "N", "Sweep", "--to-accuracy, --fault-every: use N training samples (default: all)",
	  LS_SETTING_INT, OWN(samples), 0, 1e15, LS_SETTING_NOT_0 },
	{ "out", 'o', "DIR", "Sweep", "directory for results.json", LS_SETTING_STRING, OWN(out), 0, 0,
	  LS_SETTING_COMMON },
	{ "quick", 0, NULL, "Sweep", "fewer steps; of a recipe, also smaller models", LS_SETTING_FLAG, OWN(quick), 0, 1,
	  LS_SETTING_COMMON },
	{ "full", 0, NULL, "Sweep", "run a recipe with all settings of the published runs", LS_SETTING_FLAG, OWN(full),
	  0, 1, LS_SETTING_COMMON },
	{ "again", 0, NULL, "Sweep", "measure points again that are done", LS_SETTING_FLAG, OWN(again), 0, 1,
	  LS_SETTING_COMMON },
	{ "list", 0, NULL, "Sweep", "list recipes, or the points of one; measure nothing", LS_SETTING_FLAG, OWN(list),
	  0, 1, LS_SETTING_COMMON },
	{ "profile-out", 0, "FILE", "Replay", "write the profile of one device to FILE", LS_SETTING_STRING,
	  BENCH(profile_out), 0, 0, 0 },
	{ "replay", 0, "FILE", "Replay", "simulate compute: sleep through this profile", LS_SETTING_STRING,
	  BENCH(replay), 0, 0, 0 },
	{ "replay-speed", 0, "X", "Replay", "speed of simulated compute: 0.5 takes twice as long", LS_SETTING_REAL,
	  BENCH(replay_speed), 1e-6, 1e6, 0 },
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* Offsets in the rows of training are relative to its options, which are part of these. */
static const ls_setting *row_at(size_t i)
{
	static ls_setting moved[ROWS];
	if (i >= ROWS || rows[i].help)
		return i < ROWS ? &rows[i] : NULL;
	const ls_setting *row = ls_train_setting_of(rows[i].name);
	if (row) {
		moved[i] = *row;
		moved[i].offset += BENCH(job);
	}
	return row ? &moved[i] : NULL;
}

/* Index in texts[]; TEXTS: not there. */
static size_t text_of(const char *name)
{
	size_t k = 0;
	while (k < TEXTS && strcmp(texts[k], name) != 0)
		k++;
	return k;
}

/* The rows for the parser: some take text. */
static const ls_setting *taken_at(size_t i)
{
	static ls_setting taken[ROWS];
	const ls_setting *row = row_at(i);
	size_t k = row ? text_of(row->name) : TEXTS;
	if (k == TEXTS)
		return row;
	taken[i] = *row;
	taken[i].kind = LS_SETTING_STRING;
	taken[i].offset = OWN(text) + k * sizeof(const char *);
	return &taken[i];
}

/* Rows of training are set by name, so that its options record which were given. */
static ls_status set_row(void *options, const ls_setting *row, const char *value)
{
	bench_options *bench = options;
	size_t i = 0;
	while (i < ROWS && strcmp(rows[i].name, row->name) != 0)
		i++;
	if (i < ROWS && !rows[i].help && row->offset < offsetof(bench_options, channels))
		return ls_train_options_set(&bench->bench.job, row->name, value);
	return ls_setting_set(row, options, value);
}

static const ls_args args = {
	.command = "lockstep bench",
	.operands = "[RECIPE|FILE.json]",
	.purpose = "Measure training speed on data in memory: warm-up excluded, median of repeats.\n"
		   "Lists, as in --batch-per-device 24,32, or a recipe make a sweep (results.json).",
	.example = "lockstep bench --model cnn --batch-per-device 64 --threads 2 --profile\n"
		   "         lockstep bench distml-strategies --quick",
	.operands_max = 1,
	.brief = 1,
	.at = taken_at,
	.set = set_row,
};

/* One node prints the error; the others have no message. */
static int finish(ls_status status)
{
	if (status != LS_OK && !ls_last_error()[0])
		return LS_EXIT_FAILURE;
	return ls_command_finish(args.command, status);
}

static int bench_here(const bench_options *options)
{
	ls_bench_result result;
	ls_on_hosts_report();
	ls_status status = ls_bench(&options->bench, &result);
	if (status != LS_OK)
		return finish(status);
	int failed = 0;
	if (result.node == 0)
		failed = options->json ? ls_bench_print_json(&options->bench, &result, stdout)
				       : ls_bench_print_text(&options->bench, &result, stdout);
	ls_bench_result_release(&result);
	if (failed)
		ls_command_end(args.command, LS_EIO, "cannot write the result");
	return failed ? LS_EXIT_FAILURE : LS_EXIT_OK;
}

/* ---- sweeps ---- */

/* All defaults. `words` holds their texts: an option was given when its text is not the one in `words`. */
static bench_options defaults(char words[TEXTS][32])
{
	bench_options options = { .bench = LS_BENCH_OPTIONS_INIT };
	const ls_setting *row;
	options.bench.job.devices = options.bench.job.threads = 1;
	options.channels = options.bench.channels;
	options.size = options.bench.height;
	options.classes = options.bench.classes;
	for (size_t i = 0; (row = row_at(i)); i++) {
		size_t k = text_of(row->name);
		if (k == TEXTS)
			continue;
		ls_setting_format(row, &options, words[k], sizeof(words[k]));
		options.text[k] = words[k];
	}
	return options;
}

static const char *given(const bench_options *options, char words[TEXTS][32], int k)
{
	return options->text[k] != words[k] ? options->text[k] : NULL;
}

static int is_sweep(const bench_options *options, const char *recipe)
{
	int lists = recipe || options->launches > 0 || options->to_accuracy > 0 || options->nodes || options->rate ||
		    options->out || options->quick || options->full || options->epoch || options->again ||
		    options->list;
	for (size_t k = 0; k < TEXTS; k++)
		lists |= strchr(options->text[k], ',') != NULL;
	return lists;
}

/* Set the options from their texts, each of which has one value. */
static int set_texts(bench_options *options, char words[TEXTS][32])
{
	const ls_setting *row;
	for (size_t i = 0; (row = row_at(i)); i++) {
		size_t k = text_of(row->name);
		const char *text = k < TEXTS ? given(options, words, (int)k) : NULL;
		ls_status status = text ? set_row(options, row, text) : LS_OK;
		if (status != LS_OK)
			return ls_command_finish(args.command, status);
	}
	return LS_ARGS_GO;
}

/* Other options that are not at their defaults are passed to all commands of a sweep. */
static int add_rest(const bench_options *options, char *out, size_t size)
{
	static const char *const single[] = { "json", "profile", "profile-out", "replay", "replay-speed" };
	char words[TEXTS][32], value[1024], usual[1024];
	bench_options plain = defaults(words);
	const ls_setting *row;
	for (size_t i = 0; (row = row_at(i)); i++) {
		ls_setting_format(row, options, value, sizeof(value));
		ls_setting_format(row, &plain, usual, sizeof(usual));
		if (text_of(row->name) < TEXTS || !strcmp(value, usual) ||
		    (row->group && !strcmp(row->group, "Sweep")) || !strcmp(row->name, "hosts"))
			continue;
		for (size_t k = 0; k < sizeof(single) / sizeof(single[0]); k++)
			if (!strcmp(row->name, single[k]))
				return ls_usage_error(args.command, "--%s is for one measurement, not for a sweep",
						      row->name);
		if (ls_bench_sweep_word(out, size, row->name, row->arg ? value : NULL))
			return ls_usage_error(args.command,
					      "--%s: too many options for a sweep, or its value has a quotation mark",
					      row->name);
	}
	return LS_ARGS_GO;
}

static int sweep(const bench_options *options, char words[TEXTS][32], const char *recipe)
{
	char rest[1024] = "";
	ls_sweep_options s = LS_SWEEP_OPTIONS_INIT;
	int code = add_rest(options, rest, sizeof(rest));
	s.recipe = recipe, s.quick = options->quick, s.full = options->full, s.epoch = options->epoch,
	s.again = options->again, s.out = options->out;
	s.model = given(options, words, MODEL), s.data = given(options, words, DATA);
	s.batch = given(options, words, BATCH), s.devices = given(options, words, DEVICES);
	s.threads = given(options, words, THREADS), s.optimizer = given(options, words, OPTIMIZER);
	s.strategy = given(options, words, STRATEGY), s.servers = given(options, words, SERVERS);
	s.wire = given(options, words, WIRE), s.nodes = options->nodes, s.rate = options->rate;
	s.hosts = options->bench.job.hosts, s.arguments = rest, s.launches = options->launches;
	s.to_accuracy = options->to_accuracy, s.seeds = options->seeds, s.epochs = options->epochs;
	s.samples = options->samples, s.precision = given(options, words, PRECISION);
	const struct {
		int text;
		int64_t least, *to;
	} numbers[] = { { WARMUP, 0, &s.warmup }, { STEPS, 1, &s.steps }, { REPEAT, 1, &s.repeat } };
	for (size_t i = 0; i < 3 && code == LS_ARGS_GO; i++) {
		const char *text = given(options, words, numbers[i].text);
		const ls_setting row = { .name = texts[numbers[i].text],
					 .kind = LS_SETTING_INT,
					 .min = (double)numbers[i].least,
					 .max = 1e9 };
		if (text && ls_setting_set(&row, numbers[i].to, text) != LS_OK)
			code = ls_command_finish(args.command, LS_EINVALID);
	}
	return code == LS_ARGS_GO ? ls_bench_sweep(args.command, &s, options->list) : code;
}

/* ---- faults ---- */

static int faults(bench_options *options, char words[TEXTS][32], const char *recipe)
{
	char usual_words[TEXTS][32], value[1024], usual[1024];
	bench_options plain = defaults(usual_words);
	const ls_setting *row;
	int code = LS_ARGS_GO;

	if (recipe)
		return ls_usage_error(args.command, "--fault-every measures one job, and '%s' is a recipe of many",
				      recipe);
	for (size_t i = 0; code == LS_ARGS_GO && (row = taken_at(i)); i++) {
		ls_setting_format(row, options, value, sizeof(value));
		ls_setting_format(row, &plain, usual, sizeof(usual));
		code = ls_bench_faults_check(args.command, row, value, usual, text_of(row->name) < TEXTS);
	}
	if (code == LS_ARGS_GO)
		code = set_texts(options, words);
	if (code != LS_ARGS_GO)
		return code;
	return ls_bench_faults(args.command, &(ls_bench_faults_options){ .bench = &options->bench,
									 .every = options->fault_every,
									 .nodes = options->nodes,
									 .rate = options->rate,
									 .samples = options->samples,
									 .json = options->json });
}

int ls_cmd_bench(int argc, char **argv)
{
	char words[TEXTS][32];
	const char *recipe = NULL;
	bench_options options = defaults(words);
	ls_bench_options *bench = &options.bench;
	int code = ls_args_parse(&args, &options, &recipe, argc, argv);
	if (code != LS_ARGS_GO)
		return code;
	if (!options.fault_every && options.to_accuracy > 0 && (recipe || options.launches > 0))
		return ls_usage_error(args.command, "--to-accuracy is not for %s",
				      recipe ? "recipes" : "--launches: every seed is a launch, use --seeds");
	if (options.fault_every)
		return faults(&options, words, recipe);
	if (options.to_accuracy <= 0 && (options.seeds > 0 || options.epochs > 0 || options.samples > 0))
		return ls_usage_error(args.command, "--%s needs --to-accuracy",
				      options.seeds > 0    ? "seeds"
				      : options.epochs > 0 ? "epochs"
							   : "samples");
	if (is_sweep(&options, recipe))
		return sweep(&options, words, recipe);
	code = set_texts(&options, words);
	if (code != LS_ARGS_GO)
		return code;
	bench->channels = (int)options.channels, bench->classes = (int)options.classes;
	bench->height = bench->width = (int)options.size;
	ls_on_hosts_options hosts = { .command = args.command,
				      .hosts = bench->job.hosts,
				      .timeout = (double)bench->job.timeout,
				      .argc = argc,
				      .argv = argv };
	code = ls_on_hosts(&hosts, &bench->job.devices);
	return code == LS_ON_HOSTS_HERE ? bench_here(&options) : code;
}
