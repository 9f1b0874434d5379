/*
 * Weights of one task for another, and of Hugging Face's writers: what fits, what is newly initialised, what is
 * ignored, and vocabularies that differ.
 */
#include "support.h"

#include "checkpoint/safetensors.h"
#include "unit/test_main.h"

/* A tensor of a file, all its elements one value. */
typedef struct item {
	const char *name;
	ls_dtype dtype;
	int64_t shape[2]; /* 0 ends it */
	float value;
} item;

#define WORDS "bert.embeddings.word_embeddings.weight"
#define NORM "bert.embeddings.LayerNorm."
enum { VOCABULARY = 4, ITEMS = 8 };

/* As `lockstep train` leaves a pretrained model. */
static const item pretrained[ITEMS] = {
	{ WORDS, LS_F32, { VOCABULARY, 2 }, 1 },
	{ NORM "weight", LS_F32, { 2 }, 2 },
	{ NORM "bias", LS_F32, { 2 }, 3 },
	{ "cls.predictions.bias", LS_F32, { VOCABULARY }, 4 },
	{ "cls.seq_relationship.weight", LS_F32, { 2, 2 }, 5 },
};

typedef struct file {
	item items[ITEMS];
	ls_st_tensor tensors[ITEMS];
	size_t count;
} file;

static ls_status fill(void *context, size_t i, void *data)
{
	const file *f = context;
	const item *it = &f->items[i];
	size_t bytes = ls_dtype_bytes(it->dtype), elements = 1;
	for (int k = 0; k < f->tensors[i].rank; k++)
		elements *= (size_t)it->shape[k];
	memset(data, 0, bytes * elements);
	for (size_t k = 0; it->dtype == LS_F32 && k < elements; k++)
		((float *)data)[k] = it->value;
	return LS_OK;
}

static void write_file(char path[2048], const scratch *s, const item *items, const char *vocabulary)
{
	file f = { .count = 0 };
	ls_st_pair pair = { LS_CKPT_VOCABULARY, vocabulary };
	for (; f.count < ITEMS && items[f.count].name; f.count++) {
		ls_st_tensor *t = &f.tensors[f.count];
		f.items[f.count] = items[f.count];
		*t = (ls_st_tensor){ .name = items[f.count].name, .dtype = items[f.count].dtype };
		for (; t->rank < 2 && items[f.count].shape[t->rank]; t->rank++)
			t->shape[t->rank] = items[f.count].shape[t->rank];
	}
	join(path, s->path, "weights.safetensors");
	assert_int_equal(ls_st_write(path, f.tensors, f.count, &pair, vocabulary ? 1 : 0, fill, &f, NULL), LS_OK);
}

/* The body, and a head of three classes or the one of pretraining. */
static void make_model(model *m, int classes)
{
	*m = (model){ .table = { .rows = m->rows, .capacity = ROWS_MAX } };
	add_row(m, WORDS, LS_ROLE_WEIGHT, 2, (int64_t[]){ VOCABULARY, 2 }, 4);
	add_row(m, NORM "weight", LS_ROLE_NORM, 1, (int64_t[]){ 2 }, 4);
	add_row(m, NORM "bias", LS_ROLE_NORM, 1, (int64_t[]){ 2 }, 4);
	if (classes) {
		add_row(m, "classifier.weight", LS_ROLE_WEIGHT, 2, (int64_t[]){ 3, 2 }, 4);
	} else {
		add_row(m, "cls.predictions.bias", LS_ROLE_BIAS, 1, (int64_t[]){ VOCABULARY }, 4);
		add_row(m, "cls.seq_relationship.weight", LS_ROLE_WEIGHT, 2, (int64_t[]){ 2, 2 }, 4);
	}
	ls_params_lay_out(&m->table, 0);
	m->params = calloc(m->table.total, sizeof(float));
	for (size_t i = 0; i < m->table.total; i++)
		m->params[i] = -1;
}

static float first_of(const model *m, size_t row)
{
	return m->params[m->rows[row].offset];
}

static ls_status load(const scratch *s, model *m, const item *items, const char *vocabulary, ls_ckpt_import how,
		      char **notes)
{
	char path[2048];
	capture c;
	write_file(path, s, items, vocabulary);
	capture_begin(&c, s);
	ls_status status = ls_ckpt_load_weights(path, &m->table, &how, m->params, NULL, NULL);
	*notes = capture_end(&c);
	return status;
}

static const ls_ckpt_import other_task = { .fresh_heads = 1, .vocabulary = 0xabc };
static const ls_ckpt_import same_task = { .vocabulary = 0xabc };

static void fine_tuning(void **state)
{
	model m;
	char *notes;
	make_model(&m, 1);
	assert_int_equal(load(*state, &m, pretrained, "0000000000000abc", other_task, &notes), LS_OK);
	assert_mentions_in(notes, "has no classifier.*: this head is newly initialised\n");
	assert_mentions_in(notes, "cls.* of ");
	assert_mentions_in(notes, "is the head of another task: not used\n");
	for (size_t i = 0; i < 3; i++)
		assert_true(first_of(&m, i) == (float)(i + 1));
	assert_true(first_of(&m, 3) == -1); /* as it was */
	free(notes);
	free(m.params);
}

static void evaluation_wants_its_head(void **state)
{
	model m;
	char *notes;
	make_model(&m, 1);
	assert_int_equal(load(*state, &m, pretrained, NULL, same_task, &notes), LS_EMISMATCH);
	assert_mentions("'classifier.weight' (3, 2) is missing");
	assert_true(first_of(&m, 0) == -1);
	free(notes);
	free(m.params);
}

static void the_body_must_be_there(void **state)
{
	static const item headless[ITEMS] = { { WORDS, LS_F32, { VOCABULARY, 2 }, 1 },
					      { NORM "weight", LS_F32, { 3 }, 2 },
					      { "bert.stranger", LS_F32, { 1 }, 2 } };
	model m;
	char *notes;
	make_model(&m, 1);
	assert_int_equal(load(*state, &m, headless, NULL, other_task, &notes), LS_EMISMATCH);
	assert_mentions("'" NORM "weight' has shape (3), the model needs (2); '" NORM "bias' (2) is missing; "
			"'bert.stranger' (1) is not in the model");
	assert_string_equal(notes, "");
	free(notes);
	free(m.params);
}

/* Old names of norms, the shared weights stored again, places as numbers. */
static void hugging_face(void **state)
{
	static const item theirs[ITEMS] = {
		{ WORDS, LS_F32, { VOCABULARY, 2 }, 1 },
		{ NORM "gamma", LS_F32, { 2 }, 2 },
		{ NORM "beta", LS_F32, { 2 }, 3 },
		{ "bert.embeddings.position_ids", LS_I64, { 1, 2 }, 0 },
		{ "cls.predictions.bias", LS_F32, { VOCABULARY }, 4 },
		{ "cls.predictions.decoder.bias", LS_F32, { VOCABULARY }, 4 },
		{ "cls.predictions.decoder.weight", LS_F32, { VOCABULARY, 2 }, 1 },
		{ "cls.seq_relationship.weight", LS_F32, { 2, 2 }, 5 },
	};
	item untied[ITEMS];
	model m;
	char *notes;
	make_model(&m, 0);
	assert_int_equal(load(*state, &m, theirs, NULL, same_task, &notes), LS_OK);
	assert_string_equal(notes, "");
	for (size_t i = 0; i < 5; i++)
		assert_true(first_of(&m, i) == (float)(i + 1));
	free(notes);

	memcpy(untied, theirs, sizeof(untied));
	untied[6].value = 7;
	assert_int_equal(load(*state, &m, untied, NULL, same_task, &notes), LS_EMISMATCH);
	assert_mentions("'" WORDS "' and 'cls.predictions.decoder.weight' differ");
	free(notes);
	free(m.params);
	make_model(&m, 1); /* a classifier has no use for them */
	assert_int_equal(load(*state, &m, untied, NULL, other_task, &notes), LS_OK);
	free(notes);
	free(m.params);
}

/* One of two shared tensors was dropped, and the encoder was saved alone. */
static void other_names(void **state)
{
	static const item bare[ITEMS] = {
		{ "embeddings.word_embeddings.weight", LS_F32, { VOCABULARY, 2 }, 1 },
		{ "embeddings.LayerNorm.weight", LS_F32, { 2 }, 2 },
		{ "embeddings.LayerNorm.beta", LS_F32, { 2 }, 3 },
		{ "embeddings.position_ids", LS_I64, { 1, 2 }, 0 },
	};
	static const item dropped[ITEMS] = {
		{ "cls.predictions.decoder.weight", LS_F32, { VOCABULARY, 2 }, 1 },
		{ NORM "weight", LS_F32, { 2 }, 2 },
		{ NORM "bias", LS_F32, { 2 }, 3 },
		{ "cls.predictions.decoder.bias", LS_F32, { VOCABULARY }, 4 },
		{ "cls.seq_relationship.weight", LS_F32, { 2, 2 }, 5 },
	};
	model m;
	char *notes;
	make_model(&m, 1);
	assert_int_equal(load(*state, &m, bare, NULL, other_task, &notes), LS_OK);
	assert_true(first_of(&m, 0) == 1 && first_of(&m, 2) == 3);
	free(notes);
	free(m.params);
	make_model(&m, 0);
	assert_int_equal(load(*state, &m, dropped, NULL, same_task, &notes), LS_OK);
	for (size_t i = 0; i < 5; i++)
		assert_true(first_of(&m, i) == (float)(i + 1));
	free(notes);
	free(m.params);
}

static void vocabularies(void **state)
{
	item larger[ITEMS];
	model m;
	char *notes;
	make_model(&m, 1);
	memcpy(larger, pretrained, sizeof(larger));
	larger[0].shape[0] = 30522;
	assert_int_equal(load(*state, &m, larger, NULL, other_task, &notes), LS_EMISMATCH);
	assert_mentions("was trained with a vocabulary of 30522 tokens, the data is read with one of 4: the vocabulary "
			"does not match; give the one it was trained with, options.vocab FILE");
	free(notes);
	assert_int_equal(load(*state, &m, pretrained, "0000000000000abd", other_task, &notes), LS_EMISMATCH);
	assert_mentions("another vocabulary (xxh64 0000000000000abd) than the data is read with (0000000000000abc)");
	free(notes);
	ls_ckpt_import generated = { .fresh_heads = 1 }; /* text without one */
	assert_int_equal(load(*state, &m, pretrained, "0000000000000abd", generated, &notes), LS_OK);
	free(notes);
	free(m.params);
}

/* Without name rules every tensor has exactly its own name, and none may be missing. */
static void no_family(void **state)
{
	static const item other[ITEMS] = { { "fc.weight", LS_F32, { 2, 2 }, 1 }, { "cls.bias", LS_F32, { 2 }, 1 } };
	model m = { .table = { .rows = m.rows, .capacity = ROWS_MAX } };
	char *notes;
	add_row(&m, "fc.weight", LS_ROLE_WEIGHT, 2, (int64_t[]){ 2, 2 }, 4);
	add_row(&m, "fc.LayerNorm.bias", LS_ROLE_NORM, 1, (int64_t[]){ 2 }, 4);
	ls_params_lay_out(&m.table, 0);
	m.params = calloc(m.table.total, sizeof(float));
	assert_int_equal(load(*state, &m, other, "0000000000000abd", other_task, &notes), LS_EMISMATCH);
	assert_mentions("'fc.LayerNorm.bias' (2) is missing; 'cls.bias' (2) is not in the model");
	free(notes);
	free(m.params);
}

/* Weights for 3 classes of a model with 2: the layer of classes stays as it was, all else is the file's. */
static void another_number_of_classes(void **state)
{
	static const item three[ITEMS] = { { "body.weight", LS_F32, { 2, 2 }, 1 },
					   { "fc.weight", LS_F32, { 3, 2 }, 2 },
					   { "fc.bias", LS_F32, { 3 }, 3 } };
	const ls_ckpt_import how = { .fresh_heads = 1, .head = "fc" }, strict = { .head = "fc" };
	model m = { .table = { .rows = m.rows, .capacity = ROWS_MAX } };
	item bad[ITEMS];
	char *notes;
	add_row(&m, "body.weight", LS_ROLE_WEIGHT, 2, (int64_t[]){ 2, 2 }, 4);
	add_row(&m, "fc.weight", LS_ROLE_WEIGHT, 2, (int64_t[]){ 2, 2 }, 4);
	add_row(&m, "fc.bias", LS_ROLE_BIAS, 1, (int64_t[]){ 2 }, 4);
	ls_params_lay_out(&m.table, 0);
	m.params = calloc(m.table.total, sizeof(float));
	for (size_t i = 0; i < m.table.total; i++)
		m.params[i] = -1;
	assert_int_equal(load(*state, &m, three, NULL, strict, &notes), LS_EMISMATCH);
	assert_mentions(
		"'fc.weight' has shape (3, 2), the model needs (2, 2); 'fc.bias' has shape (3), the model needs "
		"(2)");
	free(notes);
	const struct {
		size_t item;
		int64_t shape[2];
		const char *message;
	} wrong[] = {
		{ 2, { 4 }, "'fc.bias' has shape (4), the model needs (2)" },
		{ 1, { 3, 5 }, "'fc.weight' has shape (3, 5), the model needs (2, 2)" },
		{ 0, { 3, 2 }, "'body.weight' has shape (3, 2), the model needs (2, 2)" },
	};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memcpy(bad, three, sizeof(bad));
		memcpy(bad[wrong[i].item].shape, wrong[i].shape, sizeof(wrong[i].shape));
		assert_int_equal(load(*state, &m, bad, NULL, how, &notes), LS_EMISMATCH);
		assert_mentions(wrong[i].message);
		free(notes);
	}
	assert_true(first_of(&m, 0) == -1);
	assert_int_equal(load(*state, &m, three, NULL, how, &notes), LS_OK);
	assert_mentions_in(notes, "has 3 classes, this model 2: its ");
	assert_mentions_in(notes, "layer fc is not used, the model's own is newly initialised\n");
	assert_true(first_of(&m, 0) == 1 && first_of(&m, 1) == -1 && first_of(&m, 2) == -1);
	free(notes);
	free(m.params);
}

TEST_MAIN_EACH(scratch_make, scratch_remove, fine_tuning, evaluation_wants_its_head, the_body_must_be_there,
	       hugging_face, other_names, vocabularies, no_family, another_number_of_classes)
