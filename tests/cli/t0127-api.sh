#!/bin/bash
# docs/api.md is what tools/api-reference makes of the public headers, and names all of their functions.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

ok "docs/api.md is up to date (tools/api-reference writes it)" "$SOURCE_DIR/tools/api-reference" --check

# Functions as the compiler sees them, but for those that only the inline builders call.
for header in "$SOURCE_DIR"/include/lockstep/*.h; do
	cc -E -P -I "$SOURCE_DIR/include" "$header"
done | grep -oE '\bls_[a-z0-9_]+\(' | grep -vE '_sized\($' | sort -u >declared
ok "the headers declare functions" test "$(wc -l <declared)" -gt 100
# In code, at the beginning of a line after its type.
grep -E '^[a-z].*\bls_[a-z0-9_]+\(' "$SOURCE_DIR/docs/api.md" | grep -oE '\bls_[a-z0-9_]+\(' | sort -u >described
is "all of them are on the page" "$(comm -23 declared described | xargs)" ""
is "every header has a section" "$(grep -oE '^## .*\.h$' "$SOURCE_DIR/docs/api.md" | cut -c4- | sort | xargs)" \
	"$(cd "$SOURCE_DIR/include/lockstep" && find . -name '*.h' ! -name lockstep.h -printf '%f\n' | sort | xargs)"

# A header that changes, changes the page.
cp -r "$SOURCE_DIR/include" include
is "other headers can be given" "$("$SOURCE_DIR/tools/api-reference" --include include | diff - "$SOURCE_DIR/docs/api.md")" ""
sed -i 's,^/\* Softmax of each row.*,/* Another comment. */\nLS_API void ls_new_function(int number); /* trailing */\n\n&,' include/lockstep/model.h
"$SOURCE_DIR/tools/api-reference" --include include >changed.md
like "a new function has its comment" "$(grep -A 8 '^### .ls_new_function' changed.md)" 'Another comment\.'
like "and its declaration" "$(cat changed.md)" '^void ls_new_function\(int number\); /\* trailing \*/$'

test_end
