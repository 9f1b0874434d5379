/*
 * operators.h - the list of operators.
 *
 * An operator is one file, src/ops/NAME.c, and one row here. docs/operators.md has the formula, inputs and attributes
 * of each. Every row but those marked OWN becomes a function of lockstep/graph.h:
 *
 *   PLAIN(name)           ls_value ls_name(ls_graph *graph, ls_value x);
 *   PAIR(name)            ls_value ls_name(ls_graph *graph, ls_value a, ls_value b);
 *   OPTIONS(name, type)   ls_value ls_name(ls_graph *graph, ls_value x, type options);
 *   LAYER(name, type)     ls_value ls_name(ls_graph *graph, ls_value x, const char *name, type options);
 *   LOSS(name)            void ls_name(ls_graph *graph, ls_value x);
 *   OWN(name)             graph.h declares it by hand, or it is internal
 */
#ifndef LOCKSTEP_OPERATORS_H
#define LOCKSTEP_OPERATORS_H

#define LS_OPERATORS(PLAIN, PAIR, OPTIONS, LAYER, LOSS, OWN)                                                           \
	OWN(pack)                                                                                                      \
	LAYER(conv2d, ls_conv_options)                                                                                 \
	OWN(linear)                                                                                                    \
	OWN(linear_map)                                                                                                \
	OPTIONS(embedding, ls_embedding_options)                                                                       \
	OWN(attention)                                                                                                 \
	LAYER(batch_norm, ls_norm_options)                                                                             \
	LAYER(layer_norm, float)                                                                                       \
	PLAIN(relu)                                                                                                    \
	OPTIONS(gelu, int)                                                                                             \
	PLAIN(tanh)                                                                                                    \
	PLAIN(silu)                                                                                                    \
	PLAIN(sigmoid)                                                                                                 \
	PAIR(add)                                                                                                      \
	PAIR(multiply)                                                                                                 \
	PAIR(concat)                                                                                                   \
	OPTIONS(dropout, float)                                                                                        \
	OPTIONS(max_pool2d, ls_pool_options)                                                                           \
	OPTIONS(avg_pool2d, ls_pool_options)                                                                           \
	PLAIN(global_avg_pool)                                                                                         \
	PLAIN(flatten)                                                                                                 \
	PLAIN(first_token)                                                                                             \
	PLAIN(mean_token)                                                                                              \
	PLAIN(masked_positions)                                                                                        \
	LOSS(binary_cross_entropy)                                                                                     \
	LOSS(mean_squared_error)                                                                                       \
	OWN(cross_entropy)

#endif
