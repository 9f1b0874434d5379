/*
 * model_rows.h - the rows of commands that load a trained model and predict with it. AT(member) is the place of a
 * field of ls_model_load_options.
 */
#ifndef LS_CLI_MODEL_ROWS_H
#define LS_CLI_MODEL_ROWS_H

#include <lockstep/model.h>

#include "text_rows.h"

#define LS_MACHINE "Machine"
#define LS_MODEL_GROUP "Model (needed if the run or file does not record it)"

#define LS_DEVICE_ROWS(group, AT)                                                                                      \
	{ "devices",      0,           "N", group,          "use N devices (default: one per core)",                   \
	  LS_SETTING_INT, AT(devices), 0,   LS_THREADS_MAX, 0 },                                                       \
	{                                                                                                              \
		"threads", 't', "N", group, "use N threads per device (default 1)", LS_SETTING_INT, AT(threads), 1,    \
			LS_THREADS_MAX, 0                                                                              \
	}

#define LS_STRING_ROW(name, arg, group, help, place)                                                                   \
	{                                                                                                              \
		name, 0, arg, group, help, LS_SETTING_STRING, place, 0, 0, 0                                           \
	}
#define LS_FLAG_ROW(name, group, help, place)                                                                          \
	{                                                                                                              \
		name, 0, NULL, group, help, LS_SETTING_FLAG, place, 0, 1, 0                                            \
	}

#define LS_MODEL_ROWS(group, AT)                                                                                       \
	LS_FLAG_ROW("best", group, "take the run's best weights, not its newest", AT(best)),                           \
		{ "model",           'm',       "NAME", group, "use this architecture, such as resnet50",              \
		  LS_SETTING_STRING, AT(model), 0,      0,     0 },                                                    \
		LS_STRING_ROW("input", "CxHxW", group, "give the shape of an image, such as 3x224x224", AT(input)),    \
		{ "data",   'd', "NAME", group, "take the shape of this dataset's samples", LS_SETTING_STRING,         \
		  AT(data), 0,   0,      0 },                                                                          \
		LS_STRING_ROW("data-dir", "DIR", group, "read its files from DIR", AT(data_dir)),                      \
		LS_STRING_ROW("mean", "LIST", group, "images: subtract these from pixels of 0 to 1", AT(mean)),        \
		LS_STRING_ROW("deviation", "LIST", group, "images: then divide by these deviations", AT(deviation)),   \
		LS_STRING_ROW("labels", "FILE", group, "name the classes, one per line", AT(labels)),                  \
		LS_STRING_ROW("vocab", "FILE", group, "tokenize with this WordPiece vocabulary", AT(vocab)),           \
		LS_FLAG_ROW("cased", group, "keep capitals and accents", AT(cased)),                                   \
		LS_FLAG_ROW("replace-invalid", group, "drop bytes that are not UTF-8", AT(replace_invalid)),           \
		LS_TEXT_SIZE_ROWS(group, AT)

#endif
