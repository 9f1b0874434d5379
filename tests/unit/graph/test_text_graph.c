/*
 * The builder of text graphs: every mistake has its message; what words are shared by.
 */
#include "unit/graph/text_net.h"
#include "unit/test_main.h"

typedef ls_status (*mistake)(ls_graph *g);

static ls_value embed(ls_graph *g)
{
	return text_embed(g, 9, 3, 48, "segments");
}

static ls_status close_with(ls_graph *g, ls_value x)
{
	return ls_graph_finish(g, net_head(g, ls_first_token(g, x)));
}

static ls_value attend(ls_graph *g, ls_value q, ls_value k, ls_value v, int heads, float dropout)
{
	return ls_attention(g, q, k, v, (ls_attention_options){ .num_heads = heads, .dropout = dropout });
}

/* ---- input and embedding ----------------------------------------------------------------------------------------- */

static ls_status two_inputs(ls_graph *g)
{
	ls_value x = embed(g);
	ls_text_input(g, 9, 0);
	return close_with(g, x);
}

static ls_status text_and_images(ls_graph *g)
{
	ls_value x = embed(g);
	ls_input(g, 3, 8, 8);
	return close_with(g, x);
}

static ls_status images_and_text(ls_graph *g)
{
	ls_value x = ls_input(g, 3, 8, 8);
	ls_text_input(g, 9, 0);
	return ls_graph_finish(g, net_head(g, x));
}

static ls_status no_tokens(ls_graph *g)
{
	return close_with(g, text_embed(g, 0, 0, 48, NULL));
}

static ls_status more_masked_than_tokens(ls_graph *g)
{
	return close_with(g, text_embed(g, 9, 10, 48, NULL));
}

static ls_status embedding_options(ls_graph *g, ls_embedding_options o)
{
	return close_with(g, ls_embedding(g, ls_text_input(g, 9, 0), o));
}

static ls_status few_positions(ls_graph *g)
{
	return embedding_options(
		g,
		(ls_embedding_options){ .words = "w", .positions = "p", .vocabulary = 30, .longest = 8, .width = 48 });
}

static ls_status embedding_with_unused(ls_graph *g)
{
	return embedding_options(
		g, (ls_embedding_options){
			   .words = "w", .positions = "p", .vocabulary = 5, .longest = 9, .width = 48, .unused = 1 });
}

static ls_status no_words(ls_graph *g)
{
	return embedding_options(
		g, (ls_embedding_options){ .positions = "p", .vocabulary = 30, .longest = 9, .width = 48 });
}

static ls_status no_vocabulary(ls_graph *g)
{
	return embedding_options(g,
				 (ls_embedding_options){ .words = "w", .positions = "p", .longest = 9, .width = 48 });
}

static ls_status no_width(ls_graph *g)
{
	return embedding_options(
		g, (ls_embedding_options){ .words = "w", .positions = "p", .vocabulary = 30, .longest = 9 });
}

static ls_status huge_vocabulary(ls_graph *g)
{
	return embedding_options(
		g, (ls_embedding_options){
			   .words = "w", .positions = "p", .vocabulary = 1 << 30, .longest = 9, .width = 48 });
}

static ls_status same_tables(ls_graph *g)
{
	return embedding_options(
		g,
		(ls_embedding_options){ .words = "w", .positions = "w", .vocabulary = 30, .longest = 9, .width = 48 });
}

static ls_status embedding_of_rows(ls_graph *g)
{
	ls_embedding_options o = { .words = "w", .positions = "p", .vocabulary = 30, .longest = 9, .width = 48 };
	return close_with(g, ls_embedding(g, embed(g), o));
}

static ls_status embedding_of_images(ls_graph *g)
{
	ls_embedding_options o = { .words = "w", .positions = "p", .vocabulary = 30, .longest = 9, .width = 48 };
	return close_with(g, ls_embedding(g, ls_input(g, 3, 8, 8), o));
}

/* ---- layers of the other kind ------------------------------------------------------------------------------------ */

static ls_status conv_of_text(ls_graph *g)
{
	return close_with(g, net_conv(g, embed(g), "c", 8, 3, 1));
}

static ls_status batch_norm_of_text(ls_graph *g)
{
	return close_with(g, net_norm(g, embed(g), "n"));
}

static ls_status pool_of_text(ls_graph *g)
{
	return close_with(g, ls_max_pool2d(g, embed(g), (ls_pool_options){ .kernel = 2 }));
}

static ls_status average_of_text(ls_graph *g)
{
	return close_with(g, ls_global_avg_pool(g, embed(g)));
}

static ls_status flatten_of_text(ls_graph *g)
{
	return close_with(g, ls_flatten(g, embed(g)));
}

static ls_status linear_of_tokens(ls_graph *g)
{
	return close_with(g, net_linear(g, ls_text_input(g, 9, 0), "l", 8));
}

static ls_status relu_of_tokens(ls_graph *g)
{
	return close_with(g, ls_relu(g, ls_text_input(g, 9, 0)));
}

static ls_status dropout_of_tokens(ls_graph *g)
{
	return close_with(g, net_dropout(g, ls_text_input(g, 9, 0), 0.5f));
}

static ls_status add_of_tokens(ls_graph *g)
{
	ls_value x = ls_text_input(g, 9, 0);
	return close_with(g, ls_add(g, x, x));
}

static ls_status first_of_tokens(ls_graph *g)
{
	return close_with(g, ls_text_input(g, 9, 0));
}

static ls_status attention_of_images(ls_graph *g)
{
	ls_value x = ls_input(g, 32, 8, 8);
	return ls_graph_finish(g, net_head(g, attend(g, x, x, x, 2, 0)));
}

static ls_status masked_of_images(ls_graph *g)
{
	ls_value x = net_conv(g, ls_input(g, 3, 8, 8), "c", 16, 3, 1);
	return ls_graph_finish_pretraining(g, net_head(g, x), ls_masked_positions(g, x));
}

/* ---- rows that do not fit ---------------------------------------------------------------------------------------- */

static ls_status norm_without_name(ls_graph *g)
{
	return close_with(g, net_layer_norm(g, embed(g), NULL, 0));
}

static ls_status first_of_samples(ls_graph *g)
{
	return close_with(g, ls_mean_token(g, embed(g)));
}

static ls_status tokens_plus_samples(ls_graph *g)
{
	ls_value x = text_embed(g, 1, 0, 48, NULL);
	return close_with(g, ls_add(g, x, ls_first_token(g, x)));
}

static ls_status tokens_plus_masked(ls_graph *g)
{
	ls_value x = text_embed(g, 3, 3, 48, NULL);
	return close_with(g, ls_add(g, x, ls_masked_positions(g, x)));
}

static ls_status nothing_masked(ls_graph *g)
{
	return close_with(g, ls_masked_positions(g, text_embed(g, 9, 0, 48, NULL)));
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

static ls_status heads_that_do_not_divide(ls_graph *g)
{
	return close_with(g, text_attend(g, embed(g), "a", 48, 5, 0));
}

static ls_status no_heads(ls_graph *g)
{
	return close_with(g, text_attend(g, embed(g), "a", 48, 0, 0));
}

static ls_status heads_of_48(ls_graph *g)
{
	return close_with(g, text_attend(g, embed(g), "a", 48, 1, 0));
}

static ls_status heads_of_8(ls_graph *g)
{
	return close_with(g, text_attend(g, embed(g), "a", 48, 6, 0));
}

static ls_status attention_dropout(ls_graph *g)
{
	return close_with(g, text_attend(g, embed(g), "a", 48, 3, 1.0f));
}

static ls_status attention_widths(ls_graph *g)
{
	ls_value x = embed(g), q = net_linear(g, x, "q", 48), k = net_linear(g, x, "k", 48);
	return close_with(g, attend(g, q, k, net_linear(g, x, "v", 64), 3, 0));
}

static ls_status attention_of_samples(ls_graph *g)
{
	ls_value x = embed(g), q = ls_first_token(g, x), k = ls_mean_token(g, x);
	return ls_graph_finish(g, net_head(g, attend(g, q, k, net_linear(g, q, "v", 48), 3, 0)));
}

/* ---- shared words and logits ------------------------------------------------------------------------------------- */

static ls_status pretrain(ls_graph *g, ls_value x, ls_value tokens)
{
	return ls_graph_finish_pretraining(g, net_head(g, ls_first_token(g, x)), tokens);
}

static ls_status tied_of_another_width(ls_graph *g)
{
	ls_value x = embed(g), y = net_linear(g, ls_masked_positions(g, x), "y", 64);
	return pretrain(g, x, ls_tied_linear(g, y, x, "tied"));
}

static ls_status tied_to_no_embedding(ls_graph *g)
{
	ls_value x = embed(g), y = net_linear(g, x, "y", 48);
	return pretrain(g, y, ls_tied_linear(g, ls_masked_positions(g, y), y, "tied"));
}

static ls_status tied_unread(ls_graph *g)
{
	ls_value x = embed(g);
	ls_tied_linear(g, ls_masked_positions(g, x), x, "tied");
	return close_with(g, x);
}

static ls_status token_logits_of_tokens(ls_graph *g)
{
	ls_value x = embed(g);
	return pretrain(g, x, ls_tied_linear(g, x, x, "tied"));
}

static ls_status token_logits_of_samples(ls_graph *g)
{
	ls_value x = embed(g);
	return pretrain(g, x, ls_tied_linear(g, ls_first_token(g, x), x, "tied"));
}

static ls_status few_token_logits(ls_graph *g)
{
	ls_value x = embed(g);
	return pretrain(g, x, net_linear(g, ls_masked_positions(g, x), "few", TEXT_VOCABULARY - 1));
}

static ls_status logits_of_tokens(ls_graph *g)
{
	return ls_graph_finish(g, net_head(g, embed(g)));
}

static ls_status logits_of_masked(ls_graph *g)
{
	return ls_graph_finish(g, net_head(g, ls_masked_positions(g, embed(g))));
}

static ls_status unread_layer(ls_graph *g)
{
	ls_value x = embed(g);
	net_linear(g, x, "lost", 8);
	return close_with(g, x);
}

static const struct {
	const char *name;
	mistake make;
	const char *says;
} mistakes[] = {
	{ "two inputs", two_inputs, "second" },
	{ "text and images", text_and_images, "one input" },
	{ "images and text", images_and_text, "one input" },
	{ "no tokens", no_tokens, "0 tokens" },
	{ "more masked positions than tokens", more_masked_than_tokens, "10 of them" },
	{ "few positions", few_positions, "8 tokens, and the data has samples of 9" },
	{ "no words", no_words, "names for words" },
	{ "no vocabulary", no_vocabulary, "a vocabulary" },
	{ "no width", no_width, "a width" },
	{ "huge vocabulary", huge_vocabulary, "too large" },
	{ "same tables", same_tables, "'w'" },
	{ "embedding of rows", embedding_of_rows, "ls_text_input" },
	{ "embedding of images", embedding_of_images, "ls_text_input" },
	{ "conv of text", conv_of_text, "conv2d works on images" },
	{ "batch norm of text", batch_norm_of_text, "batch_norm works on images" },
	{ "pool of text", pool_of_text, "max_pool2d works on images" },
	{ "average of text", average_of_text, "global_avg_pool works on images" },
	{ "flatten of text", flatten_of_text, "flatten works on images" },
	{ "embedding with `unused`", embedding_with_unused, "`unused` is 1; it must be 0" },
	{ "linear of tokens", linear_of_tokens, "ls_embedding() first" },
	{ "relu of tokens", relu_of_tokens, "ls_embedding() first" },
	{ "dropout of tokens", dropout_of_tokens, "ls_embedding() first" },
	{ "add of tokens", add_of_tokens, "ls_embedding() first" },
	{ "first of tokens", first_of_tokens, "ls_embedding() first" },
	{ "attention of bare images", attention_of_images, "from layers" },
	{ "masked positions of images", masked_of_images, "no tokens to be predicted" },
	{ "norm without name", norm_without_name, "needs a name" },
	{ "first of samples", first_of_samples, "one row per token" },
	{ "tokens plus samples", tokens_plus_samples, "one row per token, the other one row per sample" },
	{ "tokens plus masked positions", tokens_plus_masked, "the other one row per masked position" },
	{ "nothing masked", nothing_masked, "no tokens to be predicted" },
	{ "heads that do not divide", heads_that_do_not_divide, "5 heads in a width of 48" },
	{ "no heads", no_heads, "0 heads in a width of 48" },
	{ "heads of 48", heads_of_48, "16, 32 or 64" },
	{ "heads of 8", heads_of_8, "16, 32 or 64" },
	{ "attention dropout", attention_dropout, "dropout 1 is not" },
	{ "attention widths", attention_widths, "one width" },
	{ "attention of samples", attention_of_samples, "one row per token" },
	{ "tied of another width", tied_of_another_width, "'tied': the words are 48 wide and its input is 64" },
	{ "tied to no embedding", tied_to_no_embedding, "ls_embedding()" },
	{ "tied unread", tied_unread, "'tied'" },
	{ "token logits of tokens", token_logits_of_tokens, "masked positions" },
	{ "token logits of samples", token_logits_of_samples, "masked positions" },
	{ "few token logits", few_token_logits, "36 classes, and the vocabulary 37" },
	{ "logits of tokens", logits_of_tokens, "one row per token" },
	{ "logits of masked positions", logits_of_masked, "one row per token" },
	{ "unread layer", unread_layer, "'lost'" },
};

static void test_mistakes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		ls_graph *g = net_graph();
		ls_status status = mistakes[i].make(g);
		if (status != LS_EINVALID || !strstr(ls_last_error(), mistakes[i].says))
			fail_msg("%s: %s \"%s\", expected a message with \"%s\"", mistakes[i].name,
				 ls_status_name(status), status == LS_OK ? "" : ls_last_error(), mistakes[i].says);
		ls_graph_free(g);
	}
}

/* Words are counted once, however many layers share them. */
static void test_shared_words(void **state)
{
	ls_graph *g = net_graph();
	ls_value words = embed(g), x = ls_masked_positions(g, words);
	ls_value y = ls_add(g, ls_tied_linear(g, x, words, "a"), ls_tied_linear(g, ls_tanh(g, x), words, "b"));
	(void)state;
	assert_ok(pretrain(g, words, y));
	uint64_t tables = (TEXT_VOCABULARY + 12 + 2) * 48, head = 49 * NET_CLASSES;
	assert_int_equal(ls_graph_describe(g).parameters, tables + head + 2 * TEXT_VOCABULARY);
	assert_int_equal(ls_graph_vocabulary(g), TEXT_VOCABULARY);
	ls_graph_free(g);
}

TEST_MAIN(test_mistakes, test_shared_words)
