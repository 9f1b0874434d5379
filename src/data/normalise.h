/*
 * normalise.h - mean and standard deviation of images, per channel: read, written, compared; measure.h measures them.
 *
 * A directory of images has its own constants: those of its file `normalisation`, one line per channel with mean and
 * deviation (`lockstep data make` writes it, so that the files train like the named dataset), else measured over the
 * training images. A run stores its constants, and later uses of its weights apply the same.
 */
#ifndef LS_DATA_NORMALISE_H
#define LS_DATA_NORMALISE_H

#include <lockstep/data.h>

#define LS_NORMALISATION_FILE "normalisation"

/* MNIST's, which generated images also use, and Fashion-MNIST's. One channel's constants serve images of any number. */
extern const ls_normalisation ls_mnist_normalisation, ls_fashion_mnist_normalisation;

ls_status ls_normalisation_new(ls_normalisation *out, int channels);
void ls_normalisation_release(ls_normalisation *normalisation); /* may be zeroed */
ls_status ls_normalisation_copy(ls_normalisation *out, const ls_normalisation *from);
int ls_normalisation_equal(const ls_normalisation *a, const ls_normalisation *b);

/* Check the constants: finite numbers, deviations above zero. `where` names their source in the error. */
ls_status ls_normalisation_check(const ls_normalisation *normalisation, const char *where);

/* From the file in a directory; *found = 0 when there is none. It must have a line for each channel. */
ls_status ls_normalisation_read(ls_normalisation *out, const char *dir, int channels, int *found);
ls_status ls_normalisation_write(const ls_normalisation *normalisation, const char *dir);

/* "0.4914 0.4822 0.4465": numbers that read back exactly, malloc'd (NULL: no memory), and back. */
char *ls_normalisation_to_text(const double *values, int channels);
ls_status ls_normalisation_from_text(ls_normalisation *out, const char *mean, const char *deviation, const char *where);

/* "mean 0.1307, deviation 0.3081", of several channels in brackets and of many the first ones. Returns `out`. */
const char *ls_normalisation_show(const ls_normalisation *normalisation, char *out, size_t size);

#endif
