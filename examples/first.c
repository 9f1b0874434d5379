/*
 * first.c - the program at the head of lockstep.h: train the small CNN on glyphs, the built-in dataset, and print its
 * accuracy.
 *
 *     cc first.c $(pkg-config --cflags --libs lockstep) && ./a.out
 */
#include <lockstep/lockstep.h>
#include <stdio.h>

int main(void)
{
	ls_train_options options = LS_TRAIN_OPTIONS_INIT;
	options.model = "cnn";
	options.data = "glyphs";
	options.samples = 6000;
	options.run = "runs/example";

	ls_train_result result;
	if (ls_train(&options, &result)) {
		fprintf(stderr, "%s\n", ls_last_error());
		return 1;
	}
	printf("accuracy %.4f, parameters %016llx\n", result.test_accuracy, (unsigned long long)result.fingerprint);
	return 0;
}
