#include "trainer/target_sums.h"

#include <math.h>

void ls_target_sums_count(ls_task task, const ls_microbatch *m, const float *logits, ls_target_sums *out)
{
	int outputs = m->target_count;

	for (int k = 0; k < outputs; k++)
		out[k] = (ls_target_sums){ { 0 } };
	for (int64_t i = 0; i < m->count; i++)
		for (int k = 0; k < outputs; k++) {
			double x = (double)logits[i * outputs + k], t = (double)m->targets[i * outputs + k],
			       *of = out[k].of;
			if (task == LS_TASK_REGRESSION) {
				of[0] += fabs(x - t);
				of[1] += (x - t) * (x - t);
				of[2] += t;
				of[3] += t * t;
			} else {
				int is_said = x > 0, is_so = t > 0.5;
				of[0] += is_said && is_so;
				of[1] += is_said && !is_so;
				of[2] += !is_said && is_so;
				of[3] += is_so;
			}
		}
}

void ls_target_sums_add(ls_target_sums *out, const ls_target_sums *more, int outputs)
{
	for (int k = 0; k < outputs; k++)
		for (int i = 0; i < 4; i++)
			out[k].of[i] += more[k].of[i];
}

static double part(double some, double all)
{
	return all > 0 ? some / all : 0;
}

/* 1 - squared error / squared distance from the mean; as scikit-learn has it where all targets are the same. */
static double r2_of(const ls_target_sums *s, double samples)
{
	double spread = s->of[3] - s->of[2] * s->of[2] / samples;

	if (spread > 0)
		return 1 - s->of[1] / spread;
	return s->of[1] > 0 ? 0 : 1;
}

void ls_target_score_of(ls_task task, const ls_target_sums *s, double samples, double scale, ls_target_score *out)
{
	const double *of = s->of;

	*out = (ls_target_score){ 0 };
	if (task == LS_TASK_REGRESSION) {
		out->mae = scale * of[0] / samples;
		out->rmse = scale * sqrt(of[1] / samples);
		out->r2 = r2_of(s, samples);
		return;
	}
	out->support = (uint64_t)of[3];
	out->predicted = (uint64_t)(of[0] + of[1]);
	out->precision = part(of[0], of[0] + of[1]);
	out->recall = part(of[0], of[0] + of[2]);
	out->f1 = part(2 * of[0], 2 * of[0] + of[1] + of[2]);
}

void ls_target_sums_conclude(ls_task task, const ls_target_sums *sums, int outputs, const double *scale,
			     ls_eval_result *out)
{
	ls_target_sums all = { { 0 } };
	double each = outputs;

	out->task = task;
	for (int k = 0; k < outputs; k++) {
		ls_target_score score;
		ls_target_score_of(task, &sums[k], (double)out->samples, scale ? scale[k] : 1, &score);
		ls_target_sums_add(&all, &sums[k], 1);
		out->mae += score.mae / each;
		out->rmse += score.rmse / each;
		out->r2 += score.r2 / each;
		out->macro_f1 += score.f1 / each;
	}
	if (task == LS_TASK_MULTI_LABEL)
		out->micro_f1 = part(2 * all.of[0], 2 * all.of[0] + all.of[1] + all.of[2]);
	else
		out->accuracy = NAN;
}
