/*
 * table.c - the table of datasets. A new one is a row here and a file with its open function: in readers/ when it is
 * read from files, in synthetic/ when it is generated.
 */
#include "base/array.h"
#include "base/names.h"
#include "data/dataset.h"

static const char *const sentiments[] = { "very negative", "negative", "neutral", "positive", "very positive", NULL };

static const char *const fashion[] = { "T-shirt/top", "Trouser", "Pullover", "Dress",      "Coat", "Sandal",
				       "Shirt",       "Sneaker", "Bag",      "Ankle boot", NULL };

static const char *const cifar10[] = { "airplane", "automobile", "bird", "cat",   "deer", "dog",
				       "frog",     "horse",      "ship", "truck", NULL };
static const char *const cifar100[] = { "apple",    "aquarium_fish", "baby",       "bear",         "beaver",
					"bed",      "bee",           "beetle",     "bicycle",      "bottle",
					"bowl",     "boy",           "bridge",     "bus",          "butterfly",
					"camel",    "can",           "castle",     "caterpillar",  "cattle",
					"chair",    "chimpanzee",    "clock",      "cloud",        "cockroach",
					"couch",    "crab",          "crocodile",  "cup",          "dinosaur",
					"dolphin",  "elephant",      "flatfish",   "forest",       "fox",
					"girl",     "hamster",       "house",      "kangaroo",     "keyboard",
					"lamp",     "lawn_mower",    "leopard",    "lion",         "lizard",
					"lobster",  "man",           "maple_tree", "motorcycle",   "mountain",
					"mouse",    "mushroom",      "oak_tree",   "orange",       "orchid",
					"otter",    "palm_tree",     "pear",       "pickup_truck", "pine_tree",
					"plain",    "plate",         "poppy",      "porcupine",    "possum",
					"rabbit",   "raccoon",       "ray",        "road",         "rocket",
					"rose",     "sea",           "seal",       "shark",        "shrew",
					"skunk",    "skyscraper",    "snail",      "snake",        "spider",
					"squirrel", "streetcar",     "sunflower",  "sweet_pepper", "table",
					"tank",     "telephone",     "television", "tiger",        "tractor",
					"train",    "trout",         "tulip",      "turtle",       "wardrobe",
					"whale",    "willow_tree",   "wolf",       "woman",        "worm",
					NULL };

static const ls_dataset_kind kinds[] = {
	{ { "mnist", "handwritten digits, 28x28, 60,000 training and 10,000 test samples", 1, 0, NULL },
	  ls_mnist_open,
	  0 },
	{ { "glyphs", "generated digits, 28x28, any number of samples, no download", 0, 0, NULL }, ls_glyphs_open, 1 },
	{ { "bigmnist", "MNIST with random distortions, generated on the fly, 72,000,000 samples or any number", 1, 0,
	    NULL },
	  ls_bigmnist_open,
	  1 },
	{ { "babble", "generated sentences of a toy language, five sentiment classes, any number, no download", 0, 1,
	    sentiments },
	  ls_babble_open,
	  0 },
	{ { "babble-pairs", "generated sentence pairs with masked words, to pretrain BERT, any number", 0, 1, NULL },
	  ls_babble_pairs_open,
	  0 },
	{ { "sst5", "film reviews, five sentiment classes, 8,544 training and 2,210 test sentences", 1, 1, sentiments },
	  ls_sst_open,
	  0 },
	{ { "sotu", "233 State of the Union addresses, 1790 to 2021, to pretrain BERT or GPT", 1, 1, NULL },
	  ls_sotu_open,
	  0 },
	{ { "fashion-mnist", "articles of clothing, 28x28, 60,000 training and 10,000 test samples", 1, 0, fashion },
	  ls_fashion_mnist_open,
	  0 },
	{ { "cifar10", "photographs of ten classes, 32x32 RGB, 50,000 training and 10,000 test samples", 1, 0,
	    cifar10 },
	  ls_cifar10_open,
	  0 },
	{ { "cifar100", "photographs of a hundred classes, 32x32 RGB, 50,000 training and 10,000 test samples", 1, 0,
	    cifar100 },
	  ls_cifar100_open,
	  0 },
};

const ls_dataset_kind *ls_dataset_kind_at(size_t i)
{
	return i < LS_COUNT(kinds) ? &kinds[i] : NULL;
}

const ls_dataset_row *ls_dataset_row_at(size_t i)
{
	return i < LS_COUNT(kinds) ? &kinds[i].row : NULL;
}

const char *ls_dataset_name_at(size_t i)
{
	return i < LS_COUNT(kinds) ? kinds[i].row.name : NULL;
}

const ls_dataset_row *ls_dataset_row_of(const char *name)
{
	return ls_dataset_row_at(ls_name_row(name, ls_dataset_name_at));
}
