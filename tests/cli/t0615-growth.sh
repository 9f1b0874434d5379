#!/bin/bash
# Programs and libraries of different versions: an older program runs with a library whose options have grown, and a newer
# one with an older library as long as it uses nothing that is new (docs/decisions/0021). The later version is this one
# with a field more in every struct that begins with its size.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

export SOURCE_DIR
ok "a later version is made of this one" python3 "$SOURCE_DIR/tests/cli/grow.py" "$BUILD_DIR" grown
mv .ok names
later=$PWD/grown

cat >program.c <<'C'
#include <lockstep/lockstep.h>
#include <stdio.h>
#include <string.h>

static void show(const char *what, ls_status status)
{
	printf("%s: %s %s\n", what, ls_status_name(status), status ? ls_last_error() : "");
}

/* Room for later versions, which is 0 whatever was there before. */
#define ZERO(s)                                                                                                        \
	for (size_t i_ = 0; i_ < sizeof((s).reserved) / sizeof((s).reserved[0]); i_++)                                 \
		if ((s).reserved[i_])                                                                                  \
			printf("%s is not zero\n", #s)
#define DIRTY(s) memset(&(s), 0xff, sizeof(s))

/* Every operator that has attributes. */
static ls_graph *images(void)
{
	ls_graph *g = NULL;
	ls_graph_new(&g);
	ls_value x = ls_input(g, 1, 28, 28);
	x = ls_conv2d(g, x, "conv", (ls_conv_options){ .out_channels = 16, .kernel = 3, .padding = 1, CONV_MORE });
	x = ls_relu(g, ls_batch_norm(g, x, "norm", (ls_batch_norm_options){ .zero_init = 0 }));
	x = ls_max_pool2d(g, x, (ls_pool_options){ .kernel = 2 });
	x = ls_avg_pool2d(g, x, (ls_pool_options){ .kernel = 2 });
	x = ls_dropout(g, ls_gelu(g, x, (ls_gelu_options){ .approximate = 1 }), (ls_dropout_options){ .p = 0.1f });
	x = ls_linear(g, x, "fc", (ls_linear_options){ .out_features = 10 });
	ls_cross_entropy(g, x, (ls_cross_entropy_options){ .label_smoothing = 0.1f });
	ls_status status = ls_graph_finish(g, x);
	show("graph of images", status);
	if (!status)
		ZERO(ls_graph_describe(g));
	return g;
}

static ls_graph *text(void)
{
	ls_graph *g = NULL;
	ls_graph_new(&g);
	ls_value x = ls_text_input(g, 16, 0);
	x = ls_embedding(g, x, (ls_embedding_options){ .words = "words", .positions = "positions", .vocabulary = 100,
						       .longest = 16, .width = 64 });
	x = ls_attention(g, x, x, x, (ls_attention_options){ .num_heads = 4 });
	x = ls_layer_norm(g, x, "norm", (ls_layer_norm_options){ .eps = 1e-6f });
	x = ls_linear(g, ls_mean_token(g, x), "fc", (ls_linear_options){ .out_features = 5 });
	show("graph of text", ls_graph_finish(g, x));
	return g;
}

static void predict(ls_graph *g)
{
	ls_model *model = NULL;
	ls_model_facts facts;
	ls_model_param param;
	DIRTY(facts);
	DIRTY(param);
	if (ls_model_new(&model, g, 7) || ls_model_describe(model, &facts)) {
		show("model", LS_EINVALID);
		ls_graph_free(g);
		return;
	}
	printf("model of %lld outputs, %016llx\n", (long long)facts.outputs, (unsigned long long)facts.fingerprint);
	ls_model_param_at(model, 0, &param);
	ZERO(facts);
	ZERO(param);
	ls_model_free(model);
}

/* x -> weight x, and the sum of squares of x - label's one-hot vector. */
static int scale_shape(ls_operator_shape *s)
{
	s->params = 1;
	s->param[0] = (ls_operator_param){ .name = "weight", .rank = 1, .shape = { 1 }, .start = LS_START_ONE };
	return 0;
}
static void scale(const ls_operator_call *call)
{
	for (int64_t i = 0; i < call->rows[0] * call->channels[0]; i++)
		call->y[i] = call->x[0][i] * call->param[0][0];
}
static void scale_back(const ls_operator_call *call)
{
	for (int64_t i = 0; i < call->rows[0] * call->channels[0]; i++) {
		if (call->dx[0])
			call->dx[0][i] = call->dy[i] * call->param[0][0];
		if (call->grad[0])
			call->grad[0][0] += call->dy[i] * call->x[0][i];
	}
}
static float squares(ls_loss_call *call)
{
	float sum = 0;
	for (int k = 0; k < call->channels; k++) {
		float d = call->x[k] - (float)(k == call->label);
		sum += d * d;
		if (call->dx)
			call->dx[k] = 2 * d;
	}
	return sum;
}

static ls_graph *custom(const char *what, const ls_operator *row, const ls_loss *loss)
{
	ls_graph *g = NULL;
	ls_graph_new(&g);
	ls_value x = ls_linear(g, ls_input(g, 1, 4, 4), "fc", (ls_linear_options){ .out_features = 3 });
	if (row)
		x = ls_graph_operator(g, row, "scale", &x, NULL);
	if (loss)
		ls_graph_loss(g, loss, x, NULL);
	show(what, ls_graph_finish(g, x));
	return g;
}

static void own_operators(void)
{
	ls_operator row = LS_OPERATOR_INIT;
	ls_loss loss = LS_LOSS_INIT;
	PLAIN(row);
	PLAIN(loss);
	row.name = "scale", row.shape = scale_shape, row.forward = scale, row.backward = scale_back;
	loss.name = "squares", loss.row = squares;
	ls_graph_free(custom("operator", &row, NULL));
	ls_graph_free(custom("loss", NULL, &loss));
	show("check of the operator", ls_operator_check(&row, NULL));
	show("check of the loss", ls_loss_check(&loss, NULL));
	OLD(row);
	OLD(loss);

	float images[4 * 16];
	int32_t labels[4] = { 0, 1, 2, 0 };
	for (int i = 0; i < 4 * 16; i++)
		images[i] = (float)(i % 7) / 7;
	ls_model *model = NULL;
	ls_trainer *trainer = NULL;
	ls_trainer_options how = LS_TRAINER_OPTIONS_INIT;
	ls_trainer_report report = { 0 };
	OLD(how);
	how.devices = how.threads = 1;
	if (ls_model_new(&model, custom("both", &row, &loss), 1) || ls_trainer_new(&trainer, model, &how))
		show("trainer of custom operators", LS_EINVALID);
	ls_batch batch = LS_BATCH_INIT;
	PLAIN(batch);
	batch.count = 4, batch.images = images, batch.labels = labels;
	show("step", ls_trainer_step(trainer, &batch, &report));
	OLD(batch);
	show("steps", ls_trainer_step(trainer, &batch, &report));
	printf("loss %a\n", report.loss);
	ls_trainer_free(trainer);
	ls_model_free(model);
}

static void own_loop(void)
{
	ls_graph *g = NULL;
	ls_model *model = NULL;
	ls_graph_new(&g);
	ls_value x = ls_linear(g, ls_input(g, 1, 28, 28), "fc", (ls_linear_options){ .out_features = 10 });
	if (ls_graph_finish(g, x) || ls_model_new(&model, g, 1))
		show("model", LS_EINVALID);

	static float image[28 * 28];
	ls_image_options how = LS_IMAGE_OPTIONS_INIT;
	PLAIN(how);
	show("image", ls_model_read_image(model, "GIF", 3, &how, image));
	const char *inputs[] = { "no such file" };
	ls_predict_options files = LS_PREDICT_OPTIONS_INIT;
	PLAIN(files);
	files.inputs = inputs;
	files.input_count = 1;
	show("predict", ls_predict(model, &files, NULL));
	ls_generate_options draw = LS_GENERATE_OPTIONS_INIT;
	ls_generate_result drawn;
	DIRTY(drawn);
	PLAIN(draw);
	show("generate", ls_generate(model, &draw, &drawn));

	ls_trainer_options options = LS_TRAINER_OPTIONS_INIT;
	ls_trainer *trainer = NULL;
	ls_trainer_position position;
	DIRTY(position);
	PLAIN(options);
	show("trainer", ls_trainer_new(&trainer, model, &options));
	if (trainer && !ls_trainer_get_position(trainer, &position))
		ZERO(position);
	ls_trainer_free(trainer);
	ls_model_free(model);

	ls_operator_check_options check = LS_OPERATOR_CHECK_OPTIONS_INIT;
	ls_operator row = LS_OPERATOR_INIT;
	OLD(row);
	PLAIN(check);
	show("check", ls_operator_check(&row, &check));
	ls_allreduce_options sum = LS_ALLREDUCE_OPTIONS_INIT;
	ls_allreduce *reduce = NULL;
	PLAIN(sum);
	show("allreduce", ls_allreduce_new(&reduce, &sum));
	ls_allreduce_free(reduce);
}

static ls_status read_sample(void *self, uint64_t index, float *image, int32_t *label)
{
	(void)self;
	for (int i = 0; i < 28 * 28; i++)
		image[i] = (float)((index + (uint64_t)i) % 7) / 7;
	*label = (int32_t)(index % 10);
	return LS_OK;
}

static ls_status count_step(void *context, const ls_train_step *step)
{
	(void)step;
	++*(int64_t *)context;
	return LS_OK;
}

static void train_and_evaluate(void)
{
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	ls_train_result result;
	DIRTY(result);
	PLAIN(options);
	options.model = "cnn";
	options.data = "glyphs";
	options.samples = options.test_samples = 64;
	options.run = "run";
	options.quiet = 1;
	show("set", ls_train_options_set(&options, "batch", "32"));
	show("train", ls_train(&options, &result));
	OLD(options);
	ls_train_hooks hooks = LS_TRAIN_HOOKS_INIT;
	PLAIN(hooks);
	int64_t steps = 0;
	hooks.step = count_step;
	hooks.context = &steps;
	options.hooks = &hooks;
	options.run = NULL;
	show("hooks", ls_train(&options, &result));
	printf("%lld steps were heard of\n", (long long)steps);
	printf("trained %016llx\n", (unsigned long long)result.fingerprint);
	ZERO(result);

	struct {
		ls_train_stored stored;
		char behind[64];
	} s = { .stored = LS_TRAIN_STORED_INIT, .behind = "nobody writes here" };
	show("recall", ls_train_recall(&s.stored, "run"));
	printf("%s, batch %lld, %s\n", s.stored.options.model ? s.stored.options.model : "", (long long)s.stored.options.batch, s.behind);
	ls_train_stored_release(&s.stored);

	ls_eval_options eval = LS_EVAL_OPTIONS_INIT;
	ls_eval_result found;
	DIRTY(found);
	PLAIN(eval);
	eval.source = "run";
	eval.quiet = 1;
	show("eval", ls_eval(&eval, &found));
	printf("evaluated %.4f of %llu\n", found.accuracy, (unsigned long long)found.samples);
	ZERO(found);

	ls_model_load_options load = LS_MODEL_LOAD_OPTIONS_INIT;
	ls_model *model = NULL;
	PLAIN(load);
	load.source = "run";
	show("load", ls_model_load(&model, &load));
	ls_model_free(model);
}

static void data(void)
{
	ls_dataset *set = NULL;
	ls_dataset_info info = { .name = "mine", .samples = 20, .channels = 1, .height = 28, .width = 28, .classes = 10 };
	ls_dataset_ops ops = { .read = read_sample };
	show("dataset", ls_dataset_new(&set, &info, &ops, NULL));
	ls_dataset_free(set);

	ls_dataset_options open = LS_DATASET_OPTIONS_INIT;
	PLAIN(open);
	open.name = "glyphs";
	open.samples = 50;
	set = NULL;
	show("open", ls_dataset_open(&set, &open));
	if (set)
		printf("%llu samples\n", (unsigned long long)ls_dataset_describe(set)->samples);
	ls_dataset_free(set);

	ls_data_get_options get = LS_DATA_GET_OPTIONS_INIT;
	PLAIN(get);
	get.name = "mnits";
	show("get", ls_data_get(&get));
	ls_data_make_options make = LS_DATA_MAKE_OPTIONS_INIT;
	PLAIN(make);
	make.name = "nothing";
	make.out = "made";
	show("make", ls_data_make(&make));
	ls_data_show_options sheet = LS_DATA_SHOW_OPTIONS_INIT;
	PLAIN(sheet);
	show("sheet", ls_data_show(&open, &sheet));
	ls_vocab_make_options vocab = LS_VOCAB_MAKE_OPTIONS_INIT;
	PLAIN(vocab);
	show("vocabulary", ls_vocab_make(&vocab));
	ls_model_options named = LS_MODEL_OPTIONS_INIT;
	ls_graph *g = NULL;
	PLAIN(named);
	named.name = "mlp";
	show("build", ls_model_build(&g, &named));
	ls_graph_free(g);
}

static void tools(void)
{
	ls_bench_options bench = LS_BENCH_OPTIONS_INIT;
	ls_bench_result measured = { 0 };
	PLAIN(bench);
	PLAIN(bench.job);
	bench.job.model = "mlp";
	bench.job.batch_per_device = 4;
	bench.warmup = 1;
	bench.steps = 2;
	bench.repeat = 3;
	show("bench", ls_bench(&bench, &measured));
	printf("%zu repeats of %s\n", measured.repeat_count, measured.model);
	ZERO(measured);
	for (size_t i = 0; i < measured.node_count; i++)
		ZERO(measured.nodes[i]);
	for (size_t i = 0; i < measured.repeat_count; i++)
		ZERO(measured.repeats[i]);
	ls_bench_result_release(&measured);

	ls_sweep_options sweep = LS_SWEEP_OPTIONS_INIT;
	ls_sweep_result points = { 0 };
	PLAIN(sweep);
	sweep.recipe = "oneflow-bert";
	show("sweep", ls_sweep_points(&sweep, &points));
	printf("%zu points, %s\n", points.row_count, points.row_count ? points.rows[points.row_count - 1].key : "");
	ZERO(points);
	for (size_t i = 0; i < points.row_count; i++)
		ZERO(points.rows[i]);
	ls_sweep_result_release(&points);

	ls_fault_bench_options faults = LS_FAULT_BENCH_OPTIONS_INIT;
	ls_fault_bench_result kept = { 0 };
	char *const job[] = { NULL };
	PLAIN(faults);
	faults.train = job;
	faults.every = 30;
	show("faults", ls_fault_bench(&faults, &kept));
	ZERO(kept);

	ls_forecast_options plan = LS_FORECAST_OPTIONS_INIT;
	ls_forecast forecast = { 0 };
	PLAIN(plan);
	plan.profile = "no such file";
	show("plan", ls_forecast_make(&forecast, &plan));
	ls_fit_options fit = LS_FIT_OPTIONS_INIT;
	ls_fit fitted = { 0 };
	PLAIN(fit);
	fit.table = "oneflow-bert";
	show("fit", ls_fit_make(&fitted, &fit));
	printf("%zu rows, mean error %.4f\n", fitted.count, fitted.mean_error);
	ZERO(fitted);
	for (size_t i = 0; i < fitted.count; i++)
		ZERO(fitted.row[i]);
	for (size_t i = 0; i < fitted.left_out_count; i++)
		ZERO(fitted.left_out[i]);
	ls_fit_release(&fitted);
	ls_probe_options probe = LS_PROBE_OPTIONS_INIT;
	ls_probe_result seen = { 0 };
	PLAIN(probe);
	probe.repeat = -1;
	show("probe", ls_probe(&probe, &seen));
	ls_report_options report = LS_REPORT_OPTIONS_INIT;
	PLAIN(report);
	show("report", ls_report_print(&report, stdout));
	ls_serve_options serve = LS_SERVE_OPTIONS_INIT;
	PLAIN(serve);
	serve.listen = "nowhere";
	show("serve", ls_serve(NULL, &serve, NULL));
	ls_launch_options launch = LS_LAUNCH_OPTIONS_INIT;
	int code = 0;
	PLAIN(launch);
	launch.hosts = "a:1,b";
	show("launch", ls_launch(&launch, &code));
	ls_elastic_options elastic = LS_ELASTIC_OPTIONS_INIT;
	PLAIN(elastic);
	elastic.hosts = "a:1,a:1";
	show("elastic", ls_launch_elastic(&elastic, &code));
}

int main(void)
{
	predict(images());
	predict(text());
	train_and_evaluate();
	own_operators();
	own_loop();
	data();
	tools();
	return 0;
}
C
compiler=$(sed -nE 's/^CMAKE_C_COMPILER:[A-Z]+=//p' "$BUILD_DIR/CMakeCache.txt")
compile() { # INCLUDE OUT FLAGS...
	local include=$1 out=$2
	shift 2
	"$compiler" -Wall -Wextra -Werror ${SANITIZER:+-fsanitize=$SANITIZER} program.c -I "$include" "$@" -L "$BUILD_DIR" -llockstep-tools \
		-llockstep -o "$out"
}
ok "a program compiles against this version" compile "$SOURCE_DIR/include" older "-DPLAIN(o)=(void)(o)" "-DOLD(o)=(void)(o)" -DCONV_MORE=
ok "and against the later one" compile "$later/include" newer "-DPLAIN(o)=(o).grown=0" "-DOLD(o)=(o).grown=0" -DCONV_MORE=
ok "and one that uses what is new there" compile "$later/include" new_options "-DPLAIN(o)=(void)(o)" "-DOLD(o)=(o).grown=0" -DCONV_MORE=.grown=1
try() { # LIBRARIES PROGRAM
	rm -rf run made
	run env LD_LIBRARY_PATH="$1" ./"$2"
	[ "$status" = 0 ] || test_note "$err"
}

try "$BUILD_DIR" older
is "the program runs with its own version" "$status" 0
expected=$out
like "it trains" "$out" 'trained [0-9a-f]{16}'
like "and measures" "$out" '3 repeats of mlp'
unlike "results have room for more, which is zero" "$out" 'is not zero'
like "nobody writes behind its structs" "$out" 'cnn, batch 32, nobody writes here'

export GROWN_LOG=$PWD/log
try "$later/lib" older
is "the older program runs with the later library" "$status" 0
is "and does the same" "$out" "$expected"
# Operators' attributes have no INIT; ls_bench_options is taken together with its job; ls_train_stored has no size.
is "every struct with an INIT was taken from a shorter one" "$(sort -u log | xargs)" \
	"$(grep -hoE '^#define LS_[A-Z_]+_INIT' "$SOURCE_DIR"/include/lockstep/*.h | awk '{ print $2 }' | grep -v STORED | sort -u | xargs)"
for name in ls_conv_options ls_operator_shape ls_operator_call ls_loss_call; do
	ok "the later version has a longer $name, too" grep -qx "$name" names
done
unset GROWN_LOG

try "$BUILD_DIR" newer
is "a newer program that uses nothing new runs with this library" "$out" "$expected"
try "$BUILD_DIR" new_options
for what in train eval load open get make vocabulary build bench sweep faults plan fit probe report serve launch trainer predict image check allreduce operator loss step hooks; do
	like "$what: an option that this library does not have is refused" "$out" \
		"^$what: unsupported options are of a newer version of Lockstep than this library"
done
like "and so is an operator's" "$out" \
	'graph of images: unsupported options are of a newer version of Lockstep than this library'
try "$later/lib" new_options
is "with its own library it runs" "$out" "$expected"

# A field added at the end of a struct must not lie in what was padding, for an older program leaves anything there.
for header in "$SOURCE_DIR"/include/lockstep/*.h; do echo "#include <lockstep/$(basename "$header")>"; done >all.c
gcc -Wpadded -I "$SOURCE_DIR/include" -fsyntax-only all.c 2>padded
sed -nE 's/^([^:]+):([0-9]+):.*padding struct size.*/\1 \2/p' padded | while read -r file line; do
	sed -n "${line}p" "$file"
done | grep -oE 'ls_\w+' | sort -u | grep -xf names >padded.names
is "no struct that can grow ends in padding" "$(xargs <padded.names)" ""
ok "as the compiler tells" test -s padded

test_end
