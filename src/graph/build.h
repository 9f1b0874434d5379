/*
 * build.h - what the files of the builder share: graph.c adds layers of images, graph_text.c layers of text.
 */
#ifndef LS_GRAPH_BUILD_H
#define LS_GRAPH_BUILD_H

#include "graph/graph.h"

/* Values, weights and patches are indexed with int inside a sample; the product of what describes them must fit. */
#define LS_FLOATS_MOST INT32_MAX

static const ls_value ls_build_invalid = { LS_NONE };

/* Record the first mistake; later ones are dropped. Returns the invalid value. */
__attribute__((format(printf, 3, 4))) ls_value ls_build_mistake(ls_graph *graph, ls_status status, const char *format,
								...);

/* The graph is open, without a mistake so far, and x is of it. */
int ls_build_usable(ls_graph *graph, ls_value x);

/* The same, and x is of images: `what` cannot work on tokens. */
int ls_build_usable_image(ls_graph *graph, ls_value x, const char *what);

int64_t ls_build_padded(int channels);                  /* to whole panels */
int ls_build_too_many(int64_t a, int64_t b, int64_t c); /* a * b * c is more than LS_FLOATS_MOST */

ls_value ls_build_value(ls_graph *graph, int channels, int height, int width);
ls_value ls_build_like(ls_graph *graph, ls_value x);

/* A node with one input and a fresh output; NULL after a mistake. */
ls_node *ls_build_node(ls_graph *graph, ls_node_kind kind, const char *name, ls_value input, ls_value output);

/* A row of the parameter table named "<layer>.<suffix>"; returns its index. */
int ls_build_param(ls_graph *graph, const char *layer, const char *suffix, ls_param row);
ls_param ls_build_vector(int length, ls_param_role role, ls_param_init init, int fan_in);
ls_param_init ls_build_init(ls_weight_init init);

/* A linear layer over rows, where the graph is of text. */
ls_value ls_build_linear_rows(ls_graph *graph, ls_value x, const char *name, ls_linear_options o);

#endif
