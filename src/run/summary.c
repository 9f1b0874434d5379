#include "run/summary.h"

#include <stdio.h>

#include "base/isa.h"
#include "base/log.h"
#include "base/names.h"
#include "data/normalise.h"

/* "10 classes", "3 labels" or "1 target". */
static const char *unit(const ls_dataset_info *info)
{
	int is_one = info->classes == 1;
	return info->task == LS_TASK_CLASSIFICATION ? (is_one ? "class" : "classes")
	       : info->task == LS_TASK_MULTI_LABEL  ? (is_one ? "label" : "labels")
	       : is_one                             ? "target"
						    : "targets";
}

/* "1x28x28, 10 classes, normalised with mean 0.1307, deviation 0.3081", or "at most 64 tokens, 5 classes". */
static void describe_samples(char *out, size_t size, const ls_dataset *set)
{
	const ls_dataset_info *info = ls_dataset_describe(set);
	const ls_normalisation *n = ls_dataset_normalisation(set);
	char constants[320] = "";

	if (n)
		ls_normalisation_show(n, constants, sizeof(constants));
	if (info->tokens_max > 0 && info->classes == 1 && info->task == LS_TASK_CLASSIFICATION)
		snprintf(out, size, "%d token%s, vocabulary of %d", info->tokens_max,
			 ls_plural((uint64_t)info->tokens_max, "s"), info->vocabulary);
	else if (info->tokens_max > 0)
		snprintf(out, size, "at most %d token%s, %d %s, vocabulary of %d", info->tokens_max,
			 ls_plural((uint64_t)info->tokens_max, "s"), info->classes, unit(info), info->vocabulary);
	else
		snprintf(out, size, "%dx%dx%d, %d %s%s%s", info->channels, info->height, info->width, info->classes,
			 unit(info), n ? ", normalised with " : "", constants);
}

static void print_model(const ls_setup *s)
{
	const ls_train_options *o = s->options;
	const ls_dataset_info *info = ls_dataset_describe(s->train_set);
	char samples[480], test[48] = "", frozen[64] = "";
	uint64_t last = info->samples; /* the number before the word */

	describe_samples(samples, sizeof(samples), s->train_set);
	if (s->test_set) {
		last = ls_dataset_describe(s->test_set)->samples;
		snprintf(test, sizeof(test), " and %llu test", (unsigned long long)last);
	}
	if (s->graph->params.frozen > 0)
		snprintf(frozen, sizeof(frozen), ", %llu of them frozen", (unsigned long long)s->graph->params.frozen);
	ls_log_line("model %s: %llu parameters%s%s%s; data %s: %llu training%s sample%s of %s",
		    o->graph ? "of the program" : o->model, (unsigned long long)ls_graph_describe(s->graph).parameters,
		    o->init ? " from " : "", o->init ? o->init : "", frozen, info->name,
		    (unsigned long long)info->samples, test, ls_plural(last, "s"), samples);
}

static void print_steps(const ls_setup *s, uint64_t first_step)
{
	const ls_train_options *o = s->options;
	const ls_schedule_options *schedule = &s->trainer->options.schedule;
	double epochs = (double)s->total_steps / (double)s->steps_per_epoch;
	char from[48] = "", warmup[48] = "", clip[48] = "";

	if (first_step > 0)
		snprintf(from, sizeof(from), ", from step %llu on", (unsigned long long)first_step + 1);
	if (schedule->warmup > 0)
		snprintf(warmup, sizeof(warmup), " after %llu warm-up step%s", (unsigned long long)schedule->warmup,
			 ls_plural(schedule->warmup, "s"));
	if (o->clip_norm > 0)
		snprintf(clip, sizeof(clip), ", gradient norm clipped to %g", o->clip_norm);
	ls_log_line(
		"%llu step%s (%.4g epoch%s%s) of %lld sample%s in micro-batches of %lld; %s, lr %g, schedule %s%s%s",
		(unsigned long long)s->total_steps, ls_plural(s->total_steps, "s"), epochs, epochs == 1 ? "" : "s",
		from, (long long)s->batches.global, ls_plural((uint64_t)s->batches.global, "s"),
		(long long)s->batches.microbatch, o->optimizer, schedule->lr, o->schedule, warmup, clip);
}

static void print_machine(const ls_setup *s)
{
	const ls_layout *l = &s->layout;
	char nodes[64] = "";

	if (l->nodes > 1 && l->servers > 0)
		snprintf(nodes, sizeof(nodes), "%d nodes, %d of them %sparameter server%s, ", l->nodes, l->servers,
			 l->servers == 1 ? "a " : "", ls_plural((uint64_t)l->servers, "s"));
	else if (l->nodes > 1)
		snprintf(nodes, sizeof(nodes), "%d nodes, ", l->nodes);
	ls_log_line("%s%lld device%s x %d thread%s (%s, %s); %s%s", nodes, (long long)l->all_devices,
		    ls_plural((uint64_t)l->all_devices, "s"), l->threads, ls_plural((uint64_t)l->threads, "s"),
		    s->backend->kernels(), ls_isa_name(ls_isa_get()),
		    s->options->run ? "run directory " : "nothing is saved (no options.run)",
		    s->options->run ? s->options->run : "");
}

static void print_precision(ls_precision precision)
{
	const char *name = ls_precision_name_at(precision),
		   *with = precision == LS_PRECISION_BF16_AMX ? "AMX" : "AVX512-BF16";

	if (precision == LS_PRECISION_FP32)
		return;
	if (ls_op_precision_is_native(precision))
		ls_log_line("products in %s, by the processor's instructions; sums, weights and update in fp32", name);
	else
		ls_log_warning("%s is emulated, so that the bits are those of processors with %s; "
			       "training takes some 1.2 to 3 times as long as with options.precision fp32 here",
			       name, with);
	if (precision == LS_PRECISION_BF16_AMX)
		ls_log_line(
			"bf16-amx sums products in the order of AMX: bit-identical on any processor, but not to bf16");
}

void ls_summary(const ls_setup *setup, uint64_t first_step)
{
	if (!ls_setup_is_first(setup))
		return;
	print_model(setup);
	print_steps(setup, first_step);
	print_machine(setup);
	print_precision(setup->graph->precision);
	if (ls_isa_is_emulated(ls_isa_get()))
		ls_log_warning(
			"%s: fused multiply-adds are emulated, so that the bits are those of any other processor; "
			"that is some 20 times slower than on a processor with AVX2 or NEON",
			ls_isa_name(ls_isa_get()));
}
