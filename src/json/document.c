#include "json/document.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"

ls_status ls_json_document_parse(const ls_json_document *document, void *out, const void *text, size_t bytes,
				 const char *label)
{
	json_t *root;

	LS_TRY(ls_json_parse(&root, text, bytes, document->most, label));
	void *draft = calloc(1, document->bytes);
	ls_status status =
		draft ? document->read(draft, root, label) : ls_fail(LS_EMEMORY, "%s: no memory to read it", label);
	json_decref(root);
	if (status == LS_OK)
		memcpy(out, draft, document->bytes);
	else if (draft)
		document->release(draft);
	free(draft);
	return status;
}

ls_status ls_json_document_read(const ls_json_document *document, void *out, const char *path)
{
	ls_file_map map;
	LS_TRY(ls_file_map_open(&map, path));
	ls_status status = ls_json_document_parse(document, out, map.data, map.bytes, path);
	ls_file_map_close(&map);
	return status;
}
