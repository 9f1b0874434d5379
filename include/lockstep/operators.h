/*
 * operators.h - the list of operators.
 *
 * An operator is one file, src/ops/NAME.c, and one line here. docs/operators.md has the formula, inputs and attributes
 * of each. Every line but the last kind becomes a function of lockstep/graph.h; `type` is the struct of its attributes:
 *
 *   PLAIN(name)                ls_value ls_name(ls_graph *graph, ls_value x);
 *   PAIR(name)                 ls_value ls_name(ls_graph *graph, ls_value a, ls_value b);
 *   OPTIONS(name, type)        ls_value ls_name(ls_graph *graph, ls_value x, type options);
 *   TRIPLE(name, type)         ls_value ls_name(ls_graph *graph, ls_value q, ls_value k, ls_value v, type options);
 *   LAYER(name, type)          ls_value ls_name(ls_graph *graph, ls_value x, const char *name, type options);
 *   LOSS(name)                 void ls_name(ls_graph *graph, ls_value x);
 *   OPTIONS_LOSS(name, type)   void ls_name(ls_graph *graph, ls_value x, type options);
 *   OWN(name)                  ls_linear(), which chooses between two operators, and those that the graph adds itself
 */
#ifndef LOCKSTEP_OPERATORS_H
#define LOCKSTEP_OPERATORS_H

#define LS_OPERATORS(PLAIN, PAIR, OPTIONS, TRIPLE, LAYER, LOSS, OPTIONS_LOSS, OWN)                                     \
	OWN(pack)                                                                                                      \
	LAYER(conv2d, ls_conv_options)                                                                                 \
	OWN(linear)                                                                                                    \
	OWN(linear_map)                                                                                                \
	OPTIONS(embedding, ls_embedding_options)                                                                       \
	TRIPLE(attention, ls_attention_options)                                                                        \
	LAYER(batch_norm, ls_batch_norm_options)                                                                       \
	LAYER(layer_norm, ls_layer_norm_options)                                                                       \
	PLAIN(relu)                                                                                                    \
	OPTIONS(gelu, ls_gelu_options)                                                                                 \
	PLAIN(tanh)                                                                                                    \
	PLAIN(silu)                                                                                                    \
	PLAIN(sigmoid)                                                                                                 \
	PAIR(add)                                                                                                      \
	PAIR(multiply)                                                                                                 \
	PAIR(concat)                                                                                                   \
	OPTIONS(slice, ls_slice_options)                                                                               \
	OPTIONS(dropout, ls_dropout_options)                                                                           \
	OPTIONS(max_pool2d, ls_pool_options)                                                                           \
	OPTIONS(avg_pool2d, ls_pool_options)                                                                           \
	PLAIN(global_avg_pool)                                                                                         \
	PLAIN(flatten)                                                                                                 \
	LAYER(class_token, ls_class_token_options)                                                                     \
	PLAIN(first_token)                                                                                             \
	PLAIN(mean_token)                                                                                              \
	PLAIN(masked_positions)                                                                                        \
	LOSS(binary_cross_entropy)                                                                                     \
	LOSS(mean_squared_error)                                                                                       \
	OPTIONS_LOSS(cross_entropy, ls_cross_entropy_options)

#endif
