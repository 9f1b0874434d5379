#!/bin/bash
# The report's page in a real browser, headless Chromium: no script errors, every plot present and drawn, values on hover,
# light and dark, narrow and wide, without script, on paper, and with names that are markup.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

if ! command -v python3 >/dev/null; then
	skip "the page in a browser" "python3 is not installed"
	test_end
fi
if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null && ! command -v google-chrome >/dev/null; then
	skip "the page in a browser" "there is no Chromium (tools/install-deps test gets it where the system has it)"
	test_end
fi

python3 "$SOURCE_DIR/tests/browser/make_results.py" data || exit 1
"$LOCKSTEP" report data/throughput data/epochs data/walltime data/strategies data/states data/launches data/run data/forecast.json \
	--compare published --out page.html >/dev/null || exit 1
"$LOCKSTEP" report data/hostile --out hostile.html >/dev/null || exit 1

PYTHONDONTWRITEBYTECODE=1 timeout 240 python3 "$SOURCE_DIR/tests/browser/check_report.py" page.html hostile.html
