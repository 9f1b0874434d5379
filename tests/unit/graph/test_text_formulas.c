/*
 * Layers of text by their formulas, in double, sample by sample: what finite differences cannot find (a wrong scale is
 * its own gradient's). Dropout is for training and must not be seen here.
 */
#include "unit/graph/text_net.h"
#include "unit/test_main.h"

enum { LONGEST = 11, MASKED = 3, WIDTH = 48 };

/* Rows of doubles, as wide as declared; a net's parameters by name. */
typedef double row[WIDTH];

static float *values_of(const text_net *t, const char *name)
{
	const ls_param *p = net_param(t->net.graph, name);
	float *out = net_take(ls_param_elements(p) * sizeof(float));
	ls_param_export(p, LS_STORE_WHOLE, t->net.params, out);
	return out;
}

static void hand_linear(const text_net *t, const char *name, const double *x, int in, int out, double *y)
{
	char names[2][32];
	snprintf(names[0], sizeof(names[0]), "%s.weight", name);
	snprintf(names[1], sizeof(names[1]), "%s.bias", name);
	float *w = values_of(t, strcmp(name, "tied") == 0 ? "words.weight" : names[0]), *b = values_of(t, names[1]);
	for (int o = 0; o < out; o++) {
		y[o] = b[o];
		for (int i = 0; i < in; i++)
			y[o] += x[i] * (double)w[o * in + i];
	}
	free(w);
	free(b);
}

static void hand_norm(const text_net *t, const char *name, double *x, double epsilon)
{
	char names[2][32];
	double mean = 0, variance = 0;
	snprintf(names[0], sizeof(names[0]), "%s.weight", name);
	snprintf(names[1], sizeof(names[1]), "%s.bias", name);
	float *scale = values_of(t, names[0]), *shift = values_of(t, names[1]);
	for (int c = 0; c < WIDTH; c++)
		mean += x[c] / WIDTH;
	for (int c = 0; c < WIDTH; c++)
		variance += (x[c] - mean) * (x[c] - mean) / WIDTH;
	for (int c = 0; c < WIDTH; c++)
		x[c] = (x[c] - mean) / sqrt(variance + epsilon) * scale[c] + shift[c];
	free(scale);
	free(shift);
}

static void hand_embed(const text_net *t, int32_t first, int length, row *x)
{
	float *words = values_of(t, "words.weight"), *positions = values_of(t, "positions.weight");
	float *segments = values_of(t, "segments.weight");
	for (int p = 0; p < length; p++)
		for (int c = 0; c < WIDTH; c++)
			x[p][c] = (double)words[t->token[first + p] * WIDTH + c] + positions[p * WIDTH + c] +
				  segments[t->segment[first + p] * WIDTH + c];
	free(words);
	free(positions);
	free(segments);
}

/* softmax(q k^T / 4) v, heads of 16. */
static void hand_attend(int length, row *q, row *k, row *v, row *out)
{
	memset(out, 0, sizeof(row) * (size_t)length);
	for (int head = 0; head < WIDTH; head += 16)
		for (int i = 0; i < length; i++) {
			double weight[LONGEST], sum = 0;
			for (int j = 0; j < length; j++) {
				double score = 0;
				for (int c = head; c < head + 16; c++)
					score += q[i][c] * k[j][c];
				sum += weight[j] = exp(score / 4);
			}
			for (int j = 0; j < length; j++)
				for (int c = head; c < head + 16; c++)
					out[i][c] += weight[j] / sum * v[j][c];
		}
}

static double hand_loss(const double *z, int classes, int32_t label)
{
	double sum = 0;
	for (int c = 0; c < classes; c++)
		sum += exp(z[c] - z[label]);
	return log(sum);
}

/* Of one sample: logits, and the loss of its tokens. */
static double hand_sample(const text_net *t, int64_t i, double *logits)
{
	int32_t first = t->start[i];
	int length = t->start[i + 1] - first;
	row x[LONGEST], q[LONGEST], k[LONGEST], v[LONGEST], y[LONGEST];
	double wide[2 * WIDTH], words[TEXT_VOCABULARY], loss = 0;

	hand_embed(t, first, length, x);
	for (int p = 0; p < length; p++) {
		hand_norm(t, "norm", x[p], 1e-5);
		hand_linear(t, "a.q", x[p], WIDTH, WIDTH, q[p]);
		hand_linear(t, "a.k", x[p], WIDTH, WIDTH, k[p]);
		hand_linear(t, "a.v", x[p], WIDTH, WIDTH, v[p]);
	}
	hand_attend(length, q, k, v, y);
	for (int p = 0; p < length; p++) {
		for (int c = 0; c < WIDTH; c++)
			x[p][c] += y[p][c];
		hand_norm(t, "norm1", x[p], 0.5);
		hand_linear(t, "up", x[p], WIDTH, 2 * WIDTH, wide);
		for (int c = 0; c < 2 * WIDTH; c++)
			wide[c] *= 0.5 * (1 + erf(wide[c] / sqrt(2)));
		hand_linear(t, "down", wide, 2 * WIDTH, WIDTH, x[p]);
	}
	for (int32_t p = t->masked_start[i]; p < t->masked_start[i + 1]; p++) {
		hand_linear(t, "tied", x[t->masked_at[p] - first], WIDTH, TEXT_VOCABULARY, words);
		loss += hand_loss(words, TEXT_VOCABULARY, t->target[p]);
	}
	for (int c = 0; c < WIDTH; c++) {
		double mean = 0, z = x[0][c];
		for (int p = 0; p < length; p++)
			mean += x[p][c] / length;
		wide[c] = tanh(z) + 0.5 * mean * (1 + tanh(sqrt(2 / M_PI) * (mean + 0.044715 * mean * mean * mean)));
	}
	hand_linear(t, "head", wide, WIDTH, NET_CLASSES, logits);
	return loss;
}

static void test_by_hand(void **state)
{
	enum { N = 12 };
	float logits[N * NET_CLASSES];
	text_net t;
	double loss = 0, token_loss = 0, expected[NET_CLASSES];
	ls_graph *g = net_graph();
	ls_value words = text_embed(g, LONGEST, MASKED, WIDTH, "segments");
	ls_value x = net_dropout(g, net_layer_norm(g, words, "norm", 0), 0.2f);
	(void)state;
	x = net_layer_norm(g, ls_add(g, x, net_dropout(g, text_attend(g, x, "a", WIDTH, 3, 0.3f), 0.2f)), "norm1",
			   0.5f);
	x = net_linear(g, net_gelu(g, net_linear(g, x, "up", 2 * WIDTH), 0), "down", WIDTH);
	ls_value pooled = ls_add(g, ls_tanh(g, ls_first_token(g, x)), net_gelu(g, ls_mean_token(g, x), 1));
	ls_value tokens = ls_tied_linear(g, net_dropout(g, ls_masked_positions(g, x), 0.1f), words, "tied");
	assert_ok(ls_graph_finish_pretraining(g, net_head(g, pooled), tokens));
	text_init(&t, g, N, 0, 1, 1);
	text_infer(&t, N, logits);
	for (int64_t i = 0; i < N; i++) {
		token_loss += hand_sample(&t, i, expected);
		loss += hand_loss(expected, NET_CLASSES, t.net.labels[i]);
		for (int c = 0; c < NET_CLASSES; c++)
			if (!(fabs((double)logits[i * NET_CLASSES + c] - expected[c]) < 2e-5 * (1 + fabs(expected[c]))))
				fail_msg("logit %d of sample %d is %.7g, by hand %.7g", c, (int)i,
					 (double)logits[i * NET_CLASSES + c], expected[c]);
	}
	assert_true(fabs(t.net.microbatch.token_loss - token_loss) < 1e-5 * token_loss);
	assert_true(fabs(t.net.microbatch.loss - loss - TEXT_WEIGHT * token_loss) < 1e-5 * loss);
	text_release(&t);
}

TEST_MAIN(test_by_hand)
