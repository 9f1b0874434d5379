#include "tools/report/text.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static int is_control(unsigned char c)
{
	return c < 0x20 || c == 0x7f;
}

static const char *html_entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void ls_write_html(FILE *to, const char *text)
{
	for (; *text; text++) {
		const char *entity = html_entity(*text);
		if (entity)
			fputs(entity, to);
		else
			fputc(is_control((unsigned char)*text) ? ' ' : *text, to);
	}
}

/* '<' and '&' as entities: a backslash does not keep every reader of Markdown from seeing a tag. */
void ls_write_markdown(FILE *to, const char *text)
{
	char before = '\0';
	for (; *text; before = *text++) {
		int star = *text == '*' && !(before == ' ' && (text[1] == ' ' || text[1] == '\0'));
		int inside = isalnum((unsigned char)before) && isalnum((unsigned char)text[1]);
		if (*text == '<' || *text == '&' || *text == '>')
			fputs(html_entity(*text), to);
		else if (strchr("\\`|~", *text) || star || (*text == '_' && !inside) ||
			 (*text == ']' && text[1] && strchr("([:", text[1])))
			fprintf(to, "\\%c", *text);
		else
			fputc(is_control((unsigned char)*text) ? ' ' : *text, to);
	}
}

const char *ls_number_text(char out[LS_NUMBER_TEXT], double value)
{
	double size = fabs(value);
	if (!isfinite(value))
		snprintf(out, LS_NUMBER_TEXT, "-");
	else if (size >= 1e9 || (size > 0 && size < 1e-4))
		snprintf(out, LS_NUMBER_TEXT, "%.4g", value);
	else
		snprintf(out, LS_NUMBER_TEXT, "%.*f",
			 size >= 1000 || size == 0 ? 1
			 : size >= 10              ? 2
			 : size >= 0.1             ? 3
						   : 5,
			 value);
	return out;
}

const char *ls_short_text(char out[LS_NUMBER_TEXT], double value)
{
	static const struct {
		double unit;
		const char *letter;
	} units[] = { { 1e12, "T" }, { 1e9, "G" }, { 1e6, "M" }, { 1e4, "k" } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		double unit = units[i].unit == 1e4 ? 1e3 : units[i].unit;
		if (fabs(value) >= units[i].unit) {
			snprintf(out, LS_NUMBER_TEXT, "%.4g%s", value / unit, units[i].letter);
			return out;
		}
	}
	snprintf(out, LS_NUMBER_TEXT, "%.4g", value);
	return out;
}

const char *ls_runtime_text(char out[LS_NUMBER_TEXT], double seconds)
{
	if (!(seconds >= 0) || seconds > 1e12) {
		snprintf(out, LS_NUMBER_TEXT, "-");
		return out;
	}
	long long whole = seconds < 59.995 ? (long long)seconds : llround(seconds);
	if (seconds < 59.995)
		snprintf(out, LS_NUMBER_TEXT, "0:00:%05.2f", seconds);
	else
		snprintf(out, LS_NUMBER_TEXT, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
	return out;
}

const char *ls_bytes_text(char out[LS_NUMBER_TEXT], double bytes)
{
	static const char *const names[] = { "B", "kB", "MB", "GB", "TB" };
	size_t i = 0;
	for (; bytes >= 1000 && i + 1 < sizeof(names) / sizeof(names[0]); i++)
		bytes /= 1000;
	snprintf(out, LS_NUMBER_TEXT, "%.*f %s", i == 0 ? 0 : bytes < 10 ? 2 : 1, bytes, names[i]);
	return out;
}
