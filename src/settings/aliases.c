/*
 * aliases.c - the names that options have in other trainers, and what they are called here.
 *
 * They are not accepted, for many of them mean something a little different; the error names the option here, and the
 * difference where there is one. The one exception is a name that abbreviates an option here, --device: see args.c. Of
 * several commands each has some of the options: a row counts where its option is known, and one without an option
 * everywhere. The manual page lists the table.
 */
#include <lockstep/train.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CPUS "Lockstep computes on CPUs"
#define FP16 "there is no fp16; --precision bf16 multiplies in bf16"
#define LAUNCH "start the same command under mpirun or srun, or name the hosts with --hosts A:4,B:4"

static const ls_option_alias aliases[] = {
	{ "batch-size", "batch", "samples per step over all devices; per device: --batch-per-device" },
	{ "batchsize", "batch", "samples per step over all devices; per device: --batch-per-device" },
	{ "train-batch-size", "batch", "samples per step over all devices; per device: --batch-per-device" },
	{ "per-device-train-batch-size", "batch-per-device", NULL },
	{ "global-batch-size", "batch", NULL },
	{ "micro-batch-size", "micro-batch", NULL },
	{ "gradient-accumulation-steps", "micro-batch", "a step accumulates batch / micro-batch of them" },
	{ "accumulate-grad-batches", "micro-batch", "a step accumulates batch / micro-batch of them" },
	{ "num-epochs", "epochs", NULL },
	{ "num-train-epochs", "epochs", NULL },
	{ "max-epochs", "epochs", NULL },
	{ "max-steps", "steps", NULL },
	{ "num-steps", "steps", NULL },
	{ "target-accuracy", "to-accuracy", NULL },
	{ "accuracy-target", "to-accuracy", NULL },
	{ "stop-accuracy", "to-accuracy", NULL },
	{ "iterations", "steps", NULL },
	{ "max-iters", "steps", NULL },

	{ "learning-rate", "lr", NULL },
	{ "optimiser", "optimizer", NULL },
	{ "wd", "weight-decay", NULL },
	{ "lr-scheduler", "schedule", NULL },
	{ "lr-scheduler-type", "schedule", NULL },
	{ "scheduler", "schedule", NULL },
	{ "warmup-steps", "warmup", NULL },
	{ "num-warmup-steps", "warmup", NULL },
	{ "min-lr", "lr-min", NULL },
	{ "grad-clip", "clip-norm", NULL },
	{ "gradient-clip-val", "clip-norm", NULL },
	{ "max-grad-norm", "clip-norm", NULL },
	{ "adam-beta1", "beta1", NULL },
	{ "adam-beta2", "beta2", NULL },
	{ "adam-epsilon", "epsilon", NULL },
	{ "random-seed", "seed", NULL },
	{ "manual-seed", "seed", NULL },

	{ "size", "image-size", NULL },
	{ "img-size", "image-size", NULL },
	{ "imgsz", "image-size", NULL },
	{ "smoothing", "label-smoothing", NULL },
	{ "augmentation", "augment", NULL },
	{ "transforms", "augment", NULL },

	{ "arch", "model", NULL },
	{ "model-name", "model", NULL },
	{ "model-name-or-path", "model", "--init FILE takes weights" },
	{ "dataset", "data", NULL },
	{ "dataset-name", "data", NULL },
	{ "train-file", "data", NULL },
	{ "target-column", "target", NULL },
	{ "label-column", "target", NULL },
	{ "data-path", "data-dir", NULL },
	{ "data-root", "data-dir", NULL },
	{ "dataset-dir", "data-dir", NULL },
	{ "max-seq-length", "seq-len", NULL },
	{ "max-seq-len", "seq-len", NULL },
	{ "block-size", "seq-len", NULL },
	{ "num-layers", "layers", NULL },
	{ "hidden-size", "width", NULL },
	{ "d-model", "width", NULL },
	{ "num-heads", "heads", NULL },
	{ "vocab-file", "vocab", NULL },
	{ "tokenizer", "vocab", "a vocab.txt of WordPiece, or for GPT a directory with vocab.json and merges.txt" },

	{ "device", "devices", CPUS "; --devices N is how many teams of threads share the work" },
	{ "gpus", "devices", CPUS "; --devices N is how many teams of threads share the work" },
	{ "gpu", "devices", CPUS "; --devices N is how many teams of threads share the work" },
	{ "num-gpus", "devices", CPUS "; --devices N is how many teams of threads share the work" },
	{ "accelerator", "devices", CPUS "; --devices N is how many teams of threads share the work" },
	{ "nproc-per-node", "devices", "one process runs all devices of a node" },
	{ "cuda", NULL, CPUS },
	{ "no-cuda", NULL, CPUS ": leave it out" },
	{ "num-workers", NULL, "samples are read ahead by a thread of each device: leave it out" },
	{ "workers", NULL, "samples are read ahead by a thread of each device: leave it out" },
	{ "num-threads", "threads", "threads per device" },
	{ "nnodes", "hosts", LAUNCH },
	{ "num-nodes", "hosts", LAUNCH },
	{ "hostfile", "hosts", "--hosts @FILE reads them from a file" },
	{ "host-discovery-script", "discover", "with --elastic" },
	{ "min-np", "min-nodes", "with --elastic; it counts hosts" },
	{ "master-addr", "hosts", LAUNCH },
	{ "master-port", "hosts", LAUNCH },
	{ "world-size", "hosts", LAUNCH },
	{ "local-rank", "hosts", LAUNCH },
	{ "backend", "strategy", "nodes communicate by MPI" },
	{ "fp16", NULL, FP16 },
	{ "amp", NULL, FP16 },
	{ "bf16", "precision", NULL },
	{ "dtype", "precision", NULL },
	{ "mixed-precision", "precision", NULL },
	{ "compile", NULL, "kernels are compiled already: leave it out" },

	{ "output-dir", "run", "the run's directory: settings, metrics, checkpoints" },
	{ "out-dir", "run", "the run's directory: settings, metrics, checkpoints" },
	{ "save-dir", "run", "the run's directory: settings, metrics, checkpoints" },
	{ "log-dir", "run", "TensorBoard's records are in it, too" },
	{ "checkpoint-dir", "run", "checkpoints are in RUN/ckpt" },
	{ "resume-from-checkpoint", "resume", "with --run DIR, the run to continue" },
	{ "resume-from", "resume", "with --run DIR, the run to continue" },
	{ "pretrained", "init", NULL },
	{ "weights", "init", NULL },
	{ "init-from", "init", NULL },
	{ "freeze-layers", "freeze", NULL },
	{ "frozen", "freeze", NULL },
	{ "freeze-backbone", "freeze", "name what stays as it is: --freeze 'conv1*,bn1*,layer*'" },
	{ "save-steps", "ckpt-every", NULL },
	{ "save-every", "ckpt-every", NULL },
	{ "checkpoint-every", "ckpt-every", NULL },
	{ "save-total-limit", "keep", NULL },
	{ "logging-steps", "log-every", NULL },
	{ "log-interval", "log-every", NULL },
	{ "print-freq", "log-every", NULL },
	{ "eval-interval", "eval-steps", NULL },
	{ "val-check-interval", "eval-steps", "it counts steps" },
	{ "patience", "early-stop", "it counts evaluations" },
	{ "early-stopping-patience", "early-stop", "it counts evaluations" },
	{ "min-delta", "early-stop-delta", NULL },
	{ "early-stopping-threshold", "early-stop-delta", NULL },
	{ "save-best", "keep-best", NULL },
	{ "metric-for-best-model", "keep-best", NULL },
	{ "ema-decay", "ema", NULL },
	{ "model-ema-decay", "ema", NULL },
	{ "silent", "quiet", NULL },

	/* options of earlier versions of Lockstep */
	{ "global-batch", "batch", "samples per step over all devices" },
	{ "leaf", "micro-batch", NULL },
	{ "placement", "strategy", NULL },
	{ "exchange", "strategy", "--exchange mpi is --strategy mpi" },
	{ "beside", "compare", "--beside seeds is now --compare published" }, /* of report */
};

const ls_option_alias *ls_option_alias_at(size_t i)
{
	return i < sizeof(aliases) / sizeof(aliases[0]) ? &aliases[i] : NULL;
}

/* weight_decay and Weight-Decay are weight-decay. */
static void with_dashes(char *out, size_t size, const char *typed)
{
	snprintf(out, size, "%s", typed);
	for (char *c = out; *c; c++)
		*c = *c == '_' ? '-' : *c;
}

/* The option of `names` that a row is about; NULL: there is none. */
static const char *option_of(const ls_option_alias *alias, const char *const *names, size_t count)
{
	for (size_t i = 0; alias->option && i < count; i++)
		if (!strcmp(names[i], alias->option))
			return names[i];
	return NULL;
}

void ls_option_explain(char *out, size_t size, const char *typed, const char *const *names, size_t count)
{
	char name[64];
	with_dashes(name, sizeof(name), typed);
	out[0] = '\0';
	for (size_t i = 0; i < count; i++)
		if (!strcasecmp(name, names[i])) {
			snprintf(out, size, "; did you mean '--%s'?", names[i]);
			return;
		}
	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++) {
		const char *option = option_of(&aliases[i], names, count);
		if (strcasecmp(name, aliases[i].name) != 0 || (aliases[i].option && !option))
			continue;
		if (option)
			snprintf(out, size, "; here it is '--%s'%s%s%s", option, aliases[i].note ? " (" : "",
				 aliases[i].note ? aliases[i].note : "", aliases[i].note ? ")" : "");
		else
			snprintf(out, size, ": %s", aliases[i].note);
		return;
	}
	const char *nearest = ls_name_nearest(name, names, count);
	if (nearest)
		snprintf(out, size, "; did you mean '--%s'?", nearest);
}
